"""Parts of a batch: the checked columns of some traces.

Readers and `graphs.traces.record_parts` create parts, and `graphs.traces.assembling.assemble` joins them. Positions and
ids in a part start at 0. The module does not import JAX, so that worker processes that read logs start fast.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from graphs.event_types import EdgeType, EventType
from graphs.traces.schema import TEXT_COLUMNS
from graphs.traces.tokens import Tokens

__all__ = ["ABSENT_COUNT", "EVENT_TEXT", "Heading", "Part", "Sole", "derive_turns", "first_of_each", "present"]

EVENT_TEXT: dict[str, pa.DataType] = {"event": pa.string(), "trusted": pa.bool_()} | {
    name: pa.string() for name in TEXT_COLUMNS
}
"""Text columns of events; `event` is the id."""

ABSENT_COUNT = -1
"""Entry of a column of counts where a log has none."""


class Sole(NamedTuple):
    """The channels of a trace whose outcome is the only channel of its log.

    Attributes:
      channels: which the log states, unsettled ones too.
      log: names what was scored in one way among the traces of a format.
      of_file: whether that are traces of one file, such as an evaluation.
    """

    channels: tuple[str, ...]
    log: str = ""
    of_file: bool = False


@dataclasses.dataclass(slots=True)
class Heading:
    """The values that a trace has once: ids, its place in a file, and its numbers by name (see `TraceRecord`)."""

    trace_id: str
    group_id: str
    file: str
    line: int
    offset: int
    format: str
    topology: str = ""
    system: str = ""
    model: str = ""
    rewards: dict[str, float] = dataclasses.field(default_factory=dict)
    costs: dict[str, float] = dataclasses.field(default_factory=dict)
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    evidence: dict[str, float] = dataclasses.field(default_factory=dict)
    run: str = ""
    task_kind: str = ""
    sole: Sole | None = None
    told_order: bool | None = None


@dataclasses.dataclass
class Part:
    """Columns of t traces with e events, k edges and a agent instances, each axis in the order of the traces.

    Attributes:
      headings: one for each trace.
      event_ends, edge_ends, agent_ends: int64 [t], end of each trace on its axis.
      types, agents, turns, actions, times: per event; types int32 `EventType`, times float64, NaN where absent.
      senders, receivers, edge_types: int32 per edge.
      agent_ids, agent_names, agent_roles: strings per agent instance; parents: int32, a root is its own.
      text: `EVENT_TEXT` columns per event; a missing column is all null.
      evidence: by the names of `graphs.traces.schema.EVENT_EVIDENCE`, per event: float32 with NaN where absent, int32
        with -1 where absent, or strings with null where absent; and what `graphs.traces.cache_conventions` adds.
      places: file, line and offset of each event; None where they equal the trace's and all traces are of one file.
      tokens: the tokens of the events; None where no event has any.
    """

    headings: list[Heading]
    event_ends: np.ndarray
    edge_ends: np.ndarray
    agent_ends: np.ndarray
    types: np.ndarray
    agents: np.ndarray
    turns: np.ndarray
    actions: np.ndarray
    times: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    edge_types: np.ndarray
    agent_ids: pa.Array
    agent_names: pa.Array
    agent_roles: pa.Array
    parents: np.ndarray
    text: dict[str, pa.Array]
    evidence: dict[str, np.ndarray | pa.Array]
    places: tuple[pa.Array, pa.Array, pa.Array] | None = None
    tokens: Tokens | None = None

    def slice(self, start: int, stop: int) -> Part:
        """The traces from `start` up to but not including `stop`; arrays are views where no number changes."""
        if (start, stop) == (0, len(self.headings)):
            return self
        events, edges, agents = (
            slice(int(ends[start - 1]) if start else 0, int(ends[stop - 1]) if stop else 0)
            for ends in (self.event_ends, self.edge_ends, self.agent_ends)
        )
        turns = self.turns[events]
        return Part(
            headings=self.headings[start:stop],
            event_ends=self.event_ends[start:stop] - events.start,
            edge_ends=self.edge_ends[start:stop] - edges.start,
            agent_ends=self.agent_ends[start:stop] - agents.start,
            types=self.types[events],
            agents=self.agents[events] - np.int32(agents.start),
            turns=turns - turns[:1],  # turns are numbered by first event, so the first is the least
            actions=self.actions[events],
            times=self.times[events],
            senders=self.senders[edges] - np.int32(events.start),
            receivers=self.receivers[edges] - np.int32(events.start),
            edge_types=self.edge_types[edges],
            agent_ids=self.agent_ids[agents],
            agent_names=self.agent_names[agents],
            agent_roles=self.agent_roles[agents],
            parents=self.parents[agents] - np.int32(agents.start),
            text={name: column[events] for name, column in self.text.items()},
            evidence={name: column[events] for name, column in self.evidence.items() if present(column[events]).any()},
            places=None if self.places is None else tuple(column[events] for column in self.places),
            tokens=None if self.tokens is None else self.tokens.slice(events.start, events.stop),
        )

    def without(self, rows: Container[int]) -> Iterator[Part]:
        """What is left without some traces, in pieces."""
        start = 0
        for row in range(len(self.headings)):
            if row in rows:
                if row > start:
                    yield self.slice(start, row)
                start = row + 1
        if start < len(self.headings):
            yield self.slice(start, len(self.headings))


def present(column: np.ndarray | pa.Array) -> np.ndarray:
    """Mask of the entries of an evidence column that have a value."""
    if isinstance(column, np.ndarray):
        return ~np.isnan(column) if column.dtype == np.float32 else column != ABSENT_COUNT
    valid: np.ndarray = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def first_of_each(ids: np.ndarray, values: np.ndarray, count: int, absent: float = -1) -> np.ndarray:
    """The first value of each id in [0, count); `absent` for an id that is not in `ids`."""
    first = np.full(count, absent, np.result_type(values.dtype, np.int64))
    first[ids[::-1]] = values[::-1]  # the last of several assignments to one index wins
    return first


def derive_turns(
    types: np.ndarray, agents: np.ndarray, senders: np.ndarray, receivers: np.ndarray, edge_type: np.ndarray
) -> np.ndarray:
    """Turn of each event, int32 [e], dense from 0, numbered by first event; agent instances are those of all traces.

    A turn of an agent begins at its first event, at an event caused by another agent's event (an activation), and after
    a return. Temporal edges do not activate an agent.
    """
    n = len(types)
    if n == 0:
        return np.zeros(0, np.int32)
    activated = np.zeros(n, bool)
    activated[receivers[(agents[senders] != agents[receivers]) & (edge_type != EdgeType.TEMPORAL)]] = True
    few = agents.max() <= np.iinfo(np.uint16).max  # NumPy sorts 16 bits by radix
    order = np.argsort(agents.astype(np.uint16) if few else agents, kind="stable")
    agent_sorted = agents[order]
    begins = np.ones(n, bool)
    begins[1:] = (
        (agent_sorted[1:] != agent_sorted[:-1]) | activated[order[1:]] | (types[order[:-1]] == EventType.RETURN)
    )
    is_first = np.empty(n, bool)
    is_first[order] = begins
    number = np.cumsum(is_first, dtype=np.int32) - np.int32(1)  # correct only at the first event of each turn
    starts = np.flatnonzero(begins)
    turns = np.empty(n, np.int32)
    turns[order] = np.repeat(number[order[starts]], np.diff(starts, append=n))
    return turns
