"""`Rows`: where the rows of a trainer stand among the events, and the way back from results to rows and tables."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import pyarrow as pa

from credit.missing_columns import missing_in_rows_of, rewards_forgotten
from credit.tables.column_teams import Team
from estimators.base import Credit, check_batch
from graphs.errors import CreditError, MissingColumnWarning, UnusedRewardsWarning
from graphs.event_graph import Array, EventGraph
from graphs.look_alikes import look_alikes
from graphs.text import counted, excerpt
from graphs.traces.batch import Traces
from graphs.traces.evidence import Evidence
from graphs.traces.schema import TEXT_COLUMNS
from graphs.traces.tokens import Tokens

__all__ = ["RowNames", "Rows", "as_traces", "warn_of_direct_call"]

FORMAT = "columns"
"""The format and the file of traces that came from columns."""


@dataclasses.dataclass(frozen=True)
class RowNames:
    """Rows, agents and traces of a table of the batch: the ids of the caller's columns.

    Attributes:
      graph: the padded graph.
      reward: float32 [T].
      rows: the caller's row at each position of an event, [N].
      traces: id of each trace.
      groups: id of each group.
      team: the agent instances.
      rounded: whether single precision, or the type of a column, changes differences of outcomes, or of returns, of
        each group: bool [groups].
      offset: as `rounded`, of outcomes in single precision, by a hundredth of that: bool [groups].
      noise: of each group whose returns are equal with rewards of rows, how large a result is rounding; else 0. It is
        not `rounded`: a method that divides by a spread makes something of what single precision tells apart.
      alike: groups of equal returns that differ in single precision, in words.
      coarse, typed: `rounded` in words, one warning each: by single precision, and by the type of a column.
      exact: evidence in the unit of outcomes that single precision changes, in double precision: float64 [E] or [T].
      sampled: the tokens of the rows, None where they were not given.
      untold: in words, where nothing tells the order of rows, of `untold_order`; else "".
      at_once: how many rounds have rows of several agents, and how many one agent's twice, of `rounds_at_once`.
      told: the sentence on the order of rows that `credit.run` has printed already.
    """

    graph: EventGraph
    reward: np.ndarray
    rows: np.ndarray
    traces: pa.Array
    groups: pa.Array
    team: Team
    rounded: np.ndarray
    noise: np.ndarray
    alike: tuple[str, ...] = ()
    coarse: tuple[str, ...] = ()
    exact: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    sampled: Tokens | None = None
    untold: str = ""
    at_once: tuple[int, int] = (0, 0)
    told: set[str] = dataclasses.field(default_factory=set)
    typed: tuple[str, ...] = ()
    offset: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, bool))

    def labels_alike(self) -> str:
        """Groups, traces and agents whose labels a person would take for one, the first of each, in words; "" of none.

        Examples:
          >>> import credit, warnings
          >>> with warnings.catch_warnings(action="ignore"):
          ...     _, _, rows = credit.from_columns(group=["q", "Q", "r", "R"], trace=[*"abcd"], reward=[1, 0, 1, 0])
          >>> rows.names.labels_alike()
          "groups 'q', 'Q' and 1 more like them"
        """
        labels = {"groups": self.groups, "traces": self.traces, "agents": self.team.distinct_names}
        said = []
        for what, ids in labels.items():
            if ids is not None and not pa.types.is_integer(ids.type) and (alike := look_alikes(ids.to_pylist())):
                more = f" and {len(alike) - 1} more like them" if len(alike) > 1 else ""
                said.append(f"{what} {alike[0]}{more}")
        return "; ".join(said)


@dataclasses.dataclass(frozen=True)
class Rows:
    """Where each row of the trainer stands among the events, and the per-row columns in the order of events.

    Attributes:
      event: int32 [N], the position of each row's event.
      events: E, the padded length of arrays per event.
      evidence: by the names of `graphs.traces.schema`; [E], or [T] for evidence of traces. NaN (floats) or
        -1 (ids and counts) where a row has none.
      names: what tables need.
    """

    event: np.ndarray
    events: int
    evidence: Mapping[str, np.ndarray]
    names: RowNames = dataclasses.field(repr=False)

    @property
    def event_reward(self) -> np.ndarray | None:
        """float32 [E], what each row earned by itself; None where neither `row_reward` nor `event_reward` was given."""
        return self.evidence.get("event_reward")

    @property
    def tokens(self) -> np.ndarray | None:
        """int32 [E], tokens that each row generated; None where they were not given."""
        return self.evidence.get("tokens")

    def known(self, taken: Mapping[str, Any]) -> dict[str, Any]:
        """Evidence that a method was given, in double precision where it came from columns that had it."""
        exact = self.names.exact
        return {
            name: exact[name] if name in exact and array is self.evidence[name] else array
            for name, array in taken.items()
        }

    @functools.cached_property
    def traces(self) -> Traces:
        """The batch as `credit.read` would give it, for `credit.run`, tables and reports.

        The event of row i has the id "i", line i + 1 and the file "columns".
        """
        return _traces(self)

    def gather(self, values: Any) -> Array:
        """The number of each row, in the order of the columns: [E, ...] to [N, ...].

        Arrays are gathered on the host, so a new number of rows compiles nothing; under `jax.jit` the gathering is
        traced.

        Args:
          values: a `Credit`, or what has one as its attribute `credit` (a `Signal`), of which the advantages are taken;
            or an array with one entry for each event, padding included. A `Credit` of another batch is told by who
            acted when, as of `batch_fingerprint`; an array by its size alone.

        Returns:
          NumPy array [N, ...]; a traced array under `jax.jit`.

        Raises:
          CreditError: `values` is something else, has not one entry for each event, or is the result of another batch.

        Warns:
          UnusedRewardsWarning: rows have rewards of their own, and a direct call of a method was not given them.
          MissingColumnWarning: as of `credit.run`, for a `Credit` of a direct call.

        Examples:
          >>> import credit
          >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["b", "a"], reward=[1.0, 0.0])
          >>> rows.gather(credit.rloo(graph, reward)).tolist()
          [1.0, -1.0]
        """
        result = getattr(values, "credit", None)
        result = values if isinstance(values, Credit) else result
        if isinstance(result, Credit):
            values = result.advantage
            if np.shape(values) == (self.events,) and not isinstance(values, jax.core.Tracer):
                check_batch(self.names.graph, "values", result)
                warn_of_direct_call(self, result, stacklevel=3)
        if not hasattr(values, "shape"):
            kind = type(values).__name__
            raise CreditError(
                f"values is {excerpt(values)}, of type {kind}; expected an array, one number for each event"
            )
        if values.shape[:1] != (self.events,):
            raise CreditError(f"values have shape {values.shape}; expected ({self.events}, ...), one for each event")
        if isinstance(values, jax.core.Tracer):
            traced: jax.Array = values[self.event]
            return traced
        return np.asarray(values)[self.event]


def as_traces(source: Traces | Rows) -> Traces:
    """The batch of what was read, or of what came from columns.

    Args:
      source: of `credit.read`, or the rows of `from_columns`.
    """
    return source.traces if isinstance(source, Rows) else source


def warn_of_direct_call(source: Traces | Rows, result: Credit, stacklevel: int) -> None:
    """Warn of what `credit.run` would have passed to a method or warned of, where its result meets the batch.

    Args:
      source: the batch.
      result: of a method on it, not traced.
      stacklevel: 2 is the caller of this function.

    Warns:
      UnusedRewardsWarning: the batch has rewards at events, and the method was called without them.
      MissingColumnWarning: as of `missing_in_rows_of`, of rows.
    """
    logged = source.evidence.get("event_reward")
    if unpaid := rewards_forgotten(result, logged.array if isinstance(logged, Evidence) else logged):
        of_rows = isinstance(source, Rows)
        what, array = ("row", "rows.event_reward") if of_rows else ("event", "traces.evidence['event_reward'].array")
        text = f"event_reward of {counted(unpaid, what)} is not used: {result.source} was called without it; "
        warnings.warn(f"{text}pass event_reward={array}", UnusedRewardsWarning, stacklevel=stacklevel)
    if isinstance(source, Rows):
        for said in missing_in_rows_of(result, source.names, source.evidence):
            if said not in source.names.told:
                warnings.warn(said, MissingColumnWarning, stacklevel=stacklevel)


def _traces(rows: Rows) -> Traces:
    names, graph = rows.names, rows.names.graph
    n, agents, traces = len(rows.event), len(names.team.name_ids), len(names.traces)
    none = pa.nulls(traces, pa.string())
    first = np.zeros(traces, np.int64)
    first[np.asarray(graph.trace_ids)[:n][::-1]] = names.rows[::-1]
    groups = names.groups.take(pa.array(np.asarray(graph.group_ids)[:traces])).cast(pa.string())
    return Traces(
        graph=graph,
        reward=names.reward,
        evidence={name: Evidence(array) for name, array in rows.evidence.items()},
        events=pa.table(
            {
                "event": pa.array(names.rows).cast(pa.string()),
                "file": pa.repeat(FORMAT, n),
                "line": pa.array(names.rows + 1, pa.int32()),
                "offset": pa.array(np.zeros(n, np.int64)),
                "time": pa.nulls(n, pa.float64()),
                "trusted": pa.nulls(n, pa.bool_()),
                **{name: pa.nulls(n, pa.string()) for name in TEXT_COLUMNS},
            }
        ),
        agents=pa.table(
            {
                "agent": names.team.names,
                "name": names.team.names,
                "role": names.team.roles,
                "parent": np.asarray(graph.agent_parent)[:agents],
                "trace": np.asarray(graph.agent_trace)[:agents],
            }
        ),
        traces=pa.table(
            {
                "trace": names.traces.cast(pa.string()),
                "group": groups,
                "task": groups,
                "model": none,
                "format": pa.repeat(FORMAT, traces),
                "file": pa.repeat(FORMAT, traces),
                "line": pa.array(first + 1, pa.int32()),
                "offset": pa.array(np.zeros(traces, np.int64)),
                "topology": none,
                "system": none,
                "task_kind": none,
                "told_order": pa.nulls(traces, pa.bool_()),
            }
        ),
    )
