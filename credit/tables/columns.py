"""Rows of a trainer as an event graph: equal-length columns in, padded arrays out, no Python loop over rows.

    graph, reward, rows = credit.from_columns(group=uid, trace=traj_uid, agent=agent_id, reward=score, events=4096)
    advantage = rows.gather(credit.dr_mas(graph, reward).advantage)      # [N], in the trainer's order

A row is one model call, hence one action (`docs/data-model.md`). Rows need not be sorted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from credit.tables.column_values import ColumnError, as_ids, begins, factorise, finite, numbers, renumber
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph, EventType
from graphs.padding import Sizes, bucket, pad, pad_array
from graphs.replay_clusters import with_clusters
from graphs.text import excerpt
from graphs.traces.evidence import Evidence
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["ColumnError", "Rows", "from_columns"]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Where each row of the trainer stands among the events, and the per-row columns in the order of events.

    Attributes:
      event: int32 [N], the position of each row's event.
      events: E, the padded length of arrays per event.
      evidence: by the names of `graphs.traces.schema`; [E], or [T] for evidence of traces. NaN (floats) or
      -1 (ids and counts) where a row has none.
    """

    event: np.ndarray
    events: int
    evidence: Mapping[str, np.ndarray]

    @property
    def event_reward(self) -> np.ndarray | None:
        """float32 [E], what each row earned by itself; None where neither `row_reward` nor `event_reward` was given."""
        return self.evidence.get("event_reward")

    @property
    def tokens(self) -> np.ndarray | None:
        """int32 [E], tokens that each row generated; None where they were not given."""
        return self.evidence.get("tokens")

    def gather(self, values: Array) -> Array:
        """The number of each row, from numbers of events: [E, ...] to [N, ...]; works under `jit`.

        Raises:
          CreditError: `values` is no array, or has not one entry for each event, padding included.
        """
        if not hasattr(values, "shape"):
            kind = type(values).__name__
            raise CreditError(
                f"values is {excerpt(values)}, of type {kind}; expected an array, one number for each event"
            )
        if values.shape[:1] != (self.events,):
            raise CreditError(f"values have shape {values.shape}; expected ({self.events}, ...), one for each event")
        return _take(values, self.event) if isinstance(values, jax.Array) else values[self.event]


@jax.jit  # for speed: one call of a compiled program, where indexing makes five
def _take(values: jax.Array, rows: Array) -> jax.Array:
    return values[rows]


def from_columns(
    *,
    group: Any,
    trace: Any,
    agent: Any = None,
    role: Any = None,
    parent: Any = None,
    reward: Any = None,
    row_reward: Any = None,
    event_reward: Any = None,
    turn: Any = None,
    tokens: Any = None,
    evidence: Mapping[str, Any] | None = None,
    events: int | None = None,
    traces: int | None = None,
    agents: int | None = None,
) -> tuple[EventGraph, np.ndarray, Rows]:
    """Build a padded event graph from columns of equal length N, one entry a row.

    Every row becomes one action of type `message`. Traces stand in order of first appearance, the rows of a trace in
    the order given. Columns say nothing about causes, so the graph has no edges (K = 8, all padding); methods that need
    edges need logs. Columns are lists, NumPy arrays, CPU tensors, Arrow arrays or pandas series; ids are strings or
    integers, and categorical (dictionary-encoded) ids are fastest.

    Args:
      group: the task of each row; one for each trace. verl calls it `uid`.
      trace: the execution of the team that the row belongs to. verl's agent forks call it `traj_uid`.
      agent: the name of the agent that acted; rows of one name in one trace are one instance. Default: one for all.
      role: the role of that agent, one for each instance. Default: its name.
      parent: the name of the agent of the same trace that spawned the row's agent, one for each instance; null, or its
        own name, where nobody did. Default: nobody spawned anybody, so that all are main agents (M-GRPO, MATPO).
      reward: the outcome of the row's trace, the same on all its rows.
      row_reward: instead, what each row earned by itself: becomes `rows.event_reward`, with outcome 0. The
        return of a trace is then the sum over its rows: an outcome that was copied to every row belongs in `reward`.
      event_reward: beside `reward`, what each row earned in addition (step penalties); never the outcome again.
      turn: a label of the row's turn, distinct within its agent instance. Default: one turn an instance, since
        columns do not say what activated it anew (`docs/data-model.md`).
      tokens: tokens that the row generated.
      evidence: further columns by the names in `graphs.traces.schema`; null or NaN where a row has none. Evidence of
        traces (`greedy_reward`) must be constant within a trace. `context`, `node` and `sibling_parent` say which
        traces are replays that share a choice (`graphs.replay_clusters`); group-relative methods heed it.
      events, traces, agents: padded sizes, so that every batch compiles to the same shape. Default:
        `graphs.padding.bucket` of the content, or of `events` where only that is given.

    Returns:
      The graph (NumPy arrays), the reward float32 [T], and `Rows`, which leads results back to rows.

    Raises:
      ColumnError: lengths differ, ids are missing or of a wrong type, numbers are not finite, a trace has two groups or
        two outcomes, an instance has two roles or parents, a parent is no agent of the trace, or descends from its
        child; with the row numbers.
      CapacityError: the content does not fit the sizes asked for; it names the size needed.
    """
    if (reward is None) == (row_reward is None):
        problem = "pass either reward= (the outcome, the same on all rows of a trace) or row_reward= (per row)"
        raise ColumnError("reward", [], problem)
    if row_reward is not None and event_reward is not None:
        raise ColumnError("event_reward", [], "row_reward= already holds what each row earned; pass one of them")

    trace_codes, trace_names = factorise("trace", trace)
    n = len(trace_codes)
    order = np.argsort(trace_codes, kind="stable")
    in_order = order if np.any(trace_codes[1:] < trace_codes[:-1]) else slice(None)  # for speed: nothing is moved
    trace_ids = trace_codes[in_order]
    by_trace = _Segments("trace", trace_ids, begins(trace_ids), order, lambda trace: trace_names[trace])

    group_codes, _ = factorise("group", group, n)
    group_ids = by_trace.constant("group", group_codes[in_order], "a trace belongs to one group")

    if agent is None:
        agent = role
    agent_codes, agent_names = factorise("agent", agent, n) if agent is not None else (np.zeros(n, np.int64), None)
    name_ids = agent_codes[in_order]
    names = int(name_ids.max()) + 1
    instance, first = renumber(trace_ids * names + name_ids, len(trace_names) * names)
    name_of_agent = name_ids[first]
    by_agent = _Segments(
        "agent", instance, first, order, lambda i: None if agent_names is None else agent_names[name_of_agent[i]]
    )
    instances = by_agent.count
    role_ids = name_of_agent
    if role is not None:
        role_codes, _ = factorise("role", role, n)
        role_ids = by_agent.constant("role", role_codes[in_order], "an agent has one role within a trace")
    agent_parent = np.arange(instances)
    if parent is not None:
        if agent_names is None:
            raise ColumnError("parent", [], "names agents, and there is no agent= column")
        agent_parent = _parents(parent, agent_names, trace_ids, name_ids, first, by_agent)
    if turn is None:
        turn_ids = instance
    else:
        turn_codes, _ = factorise("turn", turn, n)
        turns = int(turn_codes.max()) + 1
        turn_ids, _ = renumber(instance * turns + turn_codes[in_order], instances * turns)

    columns = dict(evidence or {})
    for name, column in (("event_reward", event_reward if row_reward is None else row_reward), ("tokens", tokens)):
        if column is not None:
            columns[name] = column
    outcome = np.zeros(by_trace.count)
    if reward is not None:
        per_row = finite("reward", numbers("reward", reward, n))[in_order]
        advice = "the outcome is one number for each trace; for numbers that differ between rows pass row_reward= "
        outcome = by_trace.constant("reward", per_row, advice + "(alone) or event_reward= (beside reward=)")

    to = _sizes(Sizes(n, 0, instances, by_trace.count), events, agents, traces)
    graph = pad(
        EventGraph(
            event_type=np.full(n, int(EventType.MESSAGE), np.int32),
            action_mask=np.ones(n, bool),
            event_mask=np.ones(n, bool),
            time=np.full(n, np.nan, np.float32),
            trace_ids=trace_ids.astype(np.int32),
            agent_ids=instance.astype(np.int32),
            turn_ids=turn_ids.astype(np.int32),
            senders=np.zeros(0, np.int32),
            receivers=np.zeros(0, np.int32),
            edge_type=np.zeros(0, np.int32),
            edge_mask=np.zeros(0, bool),
            agent_name_ids=name_of_agent.astype(np.int32),
            agent_role_ids=role_ids.astype(np.int32),
            agent_parent=agent_parent.astype(np.int32),
            agent_trace=trace_ids[first].astype(np.int32),
            agent_mask=np.ones(instances, bool),
            group_ids=group_ids.astype(np.int32),
            trace_mask=np.ones(by_trace.count, bool),
        ),
        to,
    )
    position = np.empty(n, np.int32)
    position[order] = np.arange(n, dtype=np.int32)
    arrays = {name: _evidence(name, column, n, by_trace, to) for name, column in columns.items()}
    tree = {name: arrays.get(name) for name in ("context", "node", "sibling_parent")}
    graph = with_clusters(graph, **tree)
    return graph, pad_array(outcome.astype(np.float32), to.traces), Rows(position, to.events, arrays)


@dataclasses.dataclass(frozen=True)
class _Segments:
    """Rows in the order of events, split into traces or instances numbered by first appearance, at `first`."""

    kind: str
    ids: np.ndarray
    first: np.ndarray
    order: np.ndarray
    name: Callable[[int], pa.Scalar | None]

    @property
    def count(self) -> int:
        return len(self.first)

    def constant(self, column: str, values: np.ndarray, advice: str) -> np.ndarray:
        """The one value of each segment: [N] to [count]."""
        whole = values[self.first]
        different = values != whole[self.ids]
        if different.any():
            expected = whole[self.ids]
            different &= ~((values != values) & (expected != expected))  # NaN agrees with NaN
        if different.any():
            at = int(np.argmax(different))
            segment = int(self.ids[at])
            name = self.name(segment)
            rows = sorted((int(self.order[self.first[segment]]), int(self.order[at])))
            which = "" if name is None else f" {excerpt(name.as_py())}"
            raise ColumnError(column, rows, f"{self.kind}{which} has different values; {advice}")
        return whole


def _parents(
    parent: Any, names: pa.Array, trace_ids: np.ndarray, name_ids: np.ndarray, first: np.ndarray, by_agent: _Segments
) -> np.ndarray:
    """The instance that spawned each instance, itself where none did: [A]."""
    array = as_ids("parent", parent, len(trace_ids))
    there = array.is_valid().to_numpy(zero_copy_only=False)
    codes = np.full(len(there), -1)
    if there.any():
        words, distinct = factorise("parent", array.filter(pa.array(there)))
        if distinct.type != names.type:
            problem = f"names agents by {distinct.type}, column 'agent' by {names.type}; expected one type"
            raise ColumnError("parent", np.flatnonzero(there), problem)
        known = pc.index_in(distinct, value_set=names).fill_null(-2).to_numpy(zero_copy_only=False)
        codes[there] = known[words]
    spawner = by_agent.constant("parent", codes[by_agent.order], "an agent has one parent within a trace")
    width = len(names)
    keys = trace_ids[first] * width + name_ids[first]  # of instances
    order = np.argsort(keys)
    wanted = trace_ids[first] * width + spawner
    found = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    stranger = (spawner != -1) & ((spawner < 0) | (keys[found] != wanted))
    if stranger.any():
        at = int(by_agent.order[first[np.argmax(stranger)]])
        raise ColumnError("parent", [at], f"{excerpt(array[at].as_py())} is no agent of the row's trace")
    parents = np.where(spawner == -1, np.arange(len(first)), found)
    above = parents
    for _ in range(len(first).bit_length()):  # twice as far each time: from every agent that has one, a root is reached
        above = above[above]
    circular = parents[above] != above
    if circular.any():
        at = by_agent.order[first[circular]]
        raise ColumnError("parent", at, "agents spawned each other in a circle; a main agent has no parent")
    return parents


def _evidence(column: str, values: Any, n: int, by_trace: _Segments, to: Sizes) -> np.ndarray:
    """A column of evidence in the order of events [E], or of traces [T], padded."""
    known = {**EVENT_EVIDENCE, **TRACE_EVIDENCE}
    if column not in known:
        raise ColumnError(column, [], f"is no evidence that methods know; expected one of {', '.join(sorted(known))}")
    kind = known[column].kind
    if kind == "id":
        array = as_ids(column, values, n)
        there = array.is_valid().to_numpy(zero_copy_only=False)
        amounts = np.zeros(n)
        if there.any():
            amounts[there] = factorise(column, array.filter(pa.array(there)))[0]
    else:
        amounts = numbers(column, values, n)
        if column == "event_reward":
            finite(column, amounts)
        there = np.isfinite(amounts)
        amounts = np.where(there, amounts, 0)
    amounts, there = amounts[by_trace.order], there[by_trace.order]
    length = to.events
    if column in TRACE_EVIDENCE:
        whole = by_trace.constant(column, np.where(there, amounts, np.nan), "it is one number for each trace")
        there, amounts, length = np.isfinite(whole), np.nan_to_num(whole), to.traces
    typed = amounts.astype(np.float32 if kind == "float" else np.int32)
    padded = pad_array(Evidence.of(typed, there).array, length, np.nan if kind == "float" else -1)
    return np.nan_to_num(padded) if column == "event_reward" else padded


def _sizes(real: Sizes, events: int | None, agents: int | None, traces: int | None) -> Sizes:
    """The padded sizes: those given, the rest from the bucket of the content.

    Raises:
      CreditError: a size that is no positive integer.
    """
    for name, size in (("events", events), ("agents", agents), ("traces", traces)):
        if size is not None and (isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1):
            raise CreditError(
                f"{name} is {excerpt(size)}; expected a positive integer: how many the arrays have room for"
            )
    base = bucket(real._replace(events=max(real.events, events or 0)))
    return Sizes(
        base.events if events is None else events,
        base.edges,
        base.agents if agents is None else agents,
        base.traces if traces is None else traces,
    )
