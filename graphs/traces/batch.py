"""`Traces`: a batch with its arrays, strings, places in files, evidence and problems.

Text is in Arrow tables, with one row for each event, agent instance or trace, in the order of the arrays. No Python
object is kept per event.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from graphs.errors import CreditError, Problem, expect
from graphs.event_graph import EventGraph
from graphs.html_table import html_table
from graphs.padding import Sizes
from graphs.text import counted, ids_cut_so, near_names
from graphs.traces.evidence import Evidence
from graphs.traces.record import BY_PEOPLE
from graphs.traces.tokens import Tokens
from graphs.when_imported import when_imported

__all__ = ["Traces"]

REWARDS = "rewards."  # what names of rewards begin with among evidence


@dataclasses.dataclass(frozen=True)
class Traces:
    """A batch of traces: arrays for methods, tables for people.

    Attributes:
      graph: the padded `EventGraph`, NumPy arrays.
      reward: float32 [T], the outcome of each trace, 0 in padding. NaN where the log has none: such a trace gets no
        credit and enters no baseline.
      evidence: by name: the keys of `graphs.traces.schema`, and "rewards.CHANNEL", "costs.NAME", "metrics.NAME" per
        trace.
      events: Arrow table, a row for each real event: event (id), file, line, offset, time, and the text columns.
      agents: Arrow table, a row for each agent instance: agent (id), name, role, and the rows of its parent and trace.
      traces: Arrow table, a row for each trace: trace (id), group (name), task (id), model, format, file, line,
        topology, system, task_kind, told_order. Traces of one group have one task and, by default, one model and
        system.
      tokens: token ids, masks of generated tokens and log-probabilities of each event; None where the logs have none.
      problems: faults of the input. A refused trace is not in the batch. Kinds such as "unmatched-row" and
        "foreign-key" concern a row or a key, and no trace is refused for them.
      ignored: files of a folder that were skipped: their names are not names of logs, or they stand beside logs.
      text_columns: columns of tables that hold texts under other names than ours, as "arguments" and the status, or
        what is no text under the name of one: their name by ours.
      outcome: the name that the user gave the outcome: a column read as `reward`, or a channel; "" without one.
      refused_systems: the systems of traces that were not read, by id, where their log states them.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], agent=["x", "y"], reward=[1.0, 0.0])
      >>> traces = rows.traces
      >>> traces.sizes.events, traces.agents["name"].to_pylist(), traces.reward[:2].tolist()
      (2, ['x', 'y'], [1.0, 0.0])
    """

    graph: EventGraph
    reward: np.ndarray
    evidence: Mapping[str, Evidence]
    events: pa.Table
    agents: pa.Table
    traces: pa.Table
    problems: tuple[Problem, ...] = ()
    ignored: tuple[str, ...] = ()
    tokens: Tokens | None = None
    text_columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    outcome: str = ""
    refused_systems: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def sizes(self) -> Sizes:
        """Real numbers of events, edges, agents and traces; kept, since edges are counted by their mask."""
        edges = int(np.count_nonzero(self.graph.edge_mask))
        return Sizes(self.events.num_rows, edges, self.agents.num_rows, self.traces.num_rows)

    @functools.cached_property
    def kept(self) -> dict[Any, Any]:
        """What was worked out of the batch, by what does (`credit.reports.of_batch`); no part of a pickle."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "kept"}

    @property
    def reward_channels(self) -> list[str]:
        """The channels of which a trace has a reward, those that people gave first."""
        names = [name.removeprefix(REWARDS) for name in self.evidence if name.startswith(REWARDS)]
        return sorted(names, key=lambda name: self._given(name) is None)

    @property
    def by_people(self) -> dict[str, int]:
        """For each channel that people gave, of how many traces the log says so."""
        given = {name: self._given(name) for name in self.reward_channels}
        return {name: len(marks.rows) for name, marks in given.items() if marks is not None}

    def channel_name(self, channel: str) -> str:
        """A channel of reward, that of the outcome with the column that the user read as it: "team (score_x)"."""
        return f"{channel} ({self.outcome})" if channel == "team" and self.outcome else channel

    def _given(self, channel: str) -> Evidence | None:
        return self.evidence.get(f"metrics.{BY_PEOPLE.format(channel)}")

    def index(self, trace: int | str) -> int:
        """The row of a trace, given its id, the beginning of it that no other has, one cut by "…", or its row.

        Raises:
          CreditError: no trace has this id or row, or several ids begin so.
        """
        expect("trace", trace, (str, int, np.integer), "the id of a trace, or its row")
        if isinstance(trace, str):
            rows = np.flatnonzero(np.asarray(self.traces["trace"]) == trace)
            if len(rows) == 0 and trace:
                cut = trace if "…" in trace else f"{trace}…"
                rows = np.array(ids_cut_so(cut, self.traces["trace"].to_pylist()), np.int64)
                if len(rows) > 1:
                    raise CreditError(f"{counted(len(rows), 'trace')} have ids like {trace!r}; expected one")
            if len(rows) == 0:
                raise CreditError(
                    f"No trace {trace!r}. {near_names(trace.removesuffix('…'), self.traces['trace'].to_pylist())}"
                )
            return int(rows[0])
        if not 0 <= trace < self.traces.num_rows:
            raise CreditError(f"trace is {trace}; expected 0 to {self.traces.num_rows - 1}, or the id of a trace")
        return trace

    def event_row(self, trace: int | str, event: int | str) -> int:
        """The row of an event, given its trace as `index` takes it, and its id or its place in the trace.

        A place may be a text, where no event has it as id. An id may be cut by one "…".

        Raises:
          CreditError: no such trace or event.

        Examples:
          >>> import credit
          >>> _, _, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "b"], reward=[1.0, 0.0, 0.0])
          >>> rows.traces.event_row("b", 1), rows.traces.event_row("b", "1")  # a place, and the id of another
          (2, 1)
          >>> rows.traces.event_row("b", "…2")
          2
        """
        row = self.index(trace)
        members = np.flatnonzero(np.asarray(self.graph.trace_ids)[: self.sizes.events] == row)
        ids: list[str] = self.events["event"].take(members).to_pylist()
        if event in ids:
            return int(members[ids.index(str(event))])
        place = int(event) if isinstance(event, int | np.integer) or event.isdecimal() else -1
        if 0 <= place < len(members):
            return int(members[place])
        if "…" in str(event) and len(cut := ids_cut_so(str(event), ids)) == 1:
            return int(members[cut[0]])
        near = near_names(event, ids) if isinstance(event, str) else ""
        hint = f". {near}" if near.startswith("Did") else ""
        name = self.traces["trace"][row].as_py()
        expected = f"the id of an event of trace {name!r}, or its number from 0 to {len(ids) - 1}"
        raise CreditError(f"event is {event!r}; expected {expected}{hint}")

    def __repr__(self) -> str:
        n = self.sizes
        groups = len(set(self.traces["group"].to_pylist()))
        return (
            f"Traces({counted(n.traces, 'trace')} in {counted(groups, 'group')}, {counted(n.events, 'event')}, "
            f"{counted(n.agents, 'agent')}, {counted(sum(p.count for p in self.problems), 'problem')})"
        )

    def _repr_html_(self) -> str:
        """Sizes, and the first traces with their groups and rewards, for notebooks."""
        n, shown = self.sizes, 5
        columns = self.traces.slice(0, shown)
        rewards = np.asarray(self.reward)[: n.traces]
        rows = [
            {"trace": trace, "group": group, "reward": "" if np.isnan(reward) else float(reward)}
            for trace, group, reward in zip(
                columns["trace"].to_pylist(), columns["group"].to_pylist(), rewards[:shown], strict=True
            )
        ]
        facts = {
            "traces": n.traces,
            "with a reward": int(np.isfinite(rewards).sum()),
            "groups": len(set(self.traces["group"].to_pylist())),
            "events": n.events,
            "agents": n.agents,
            "evidence": ", ".join(self.evidence) or "none",
            "problems": sum(p.count for p in self.problems),
        }
        return html_table("Traces", facts, rows, max(n.traces - shown, 0))


def _refuse_as_arrays(*_: object) -> NoReturn:
    raise CreditError("got Traces where arrays are expected; pass traces.graph and traces.reward to a method")


def _register() -> None:
    """Have JAX, which flattens the arguments of a jitted function, raise where `Traces` is passed for its graph."""
    import jax

    jax.tree_util.register_pytree_node(Traces, _refuse_as_arrays, _refuse_as_arrays)


when_imported("jax", _register)
