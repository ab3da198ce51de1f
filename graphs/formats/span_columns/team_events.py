"""The events of plain traces: what `otlp.drafts` and `otlp.order` make, for all traces at once."""

from __future__ import annotations

import dataclasses

import numpy as np

from graphs.event_types import EventType
from graphs.formats.span_columns.forest import AGENT, CALL, NOWHERE, TOOL, Forest
from graphs.formats.span_columns.turns import STUCK, in_turns

__all__ = ["Instances", "TeamEvents", "events_of", "instances_of", "ordered"]


@dataclasses.dataclass
class Instances:
    """Agent instances by number, traces in their order, and within a trace in the order of its tree.

    Attributes:
      row: the agent span; for the service of spans outside any agent, the first such span.
      is_span: whether it is an agent span.
      acting: by span, the instance whose act its begin is, `NOWHERE` for spans without events.
      of_span: by span, the instance that an agent span is.
    """

    row: np.ndarray
    is_span: np.ndarray
    acting: np.ndarray
    of_span: np.ndarray


@dataclasses.dataclass
class TeamEvents:
    """Events by position, those of a trace together, the traces in their order.

    Attributes:
      row: the span of the event.
      closing: whether the event is the span's end.
      types, agents, actions: as in `graphs.traces.part.Part`.
      opened, closed: by span, the position of its begin and of its end, `NOWHERE` for none.
    """

    row: np.ndarray
    closing: np.ndarray
    types: np.ndarray
    agents: np.ndarray
    actions: np.ndarray
    opened: np.ndarray
    closed: np.ndarray


def positions(row: np.ndarray, closing: np.ndarray, spans: int) -> tuple[np.ndarray, np.ndarray]:
    """By span, the positions of its begin and of its end, `NOWHERE` for none."""
    opened, closed = np.full(spans, NOWHERE, np.int64), np.full(spans, NOWHERE, np.int64)
    opened[row[~closing]], closed[row[closing]] = np.flatnonzero(~closing), np.flatnonzero(closing)
    return opened, closed


def ordered(
    trace: np.ndarray, start: np.ndarray, end: np.ndarray, forest: Forest, asked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The span of each event of plain traces, in position order, and whether the event is the span's end.

    Where clocks and tree disagree, the tree decides (`otlp.order`). A trace whose calls lie inside the tool calls that
    they asked for is plain no more.

    Args:
      trace, start, end: of each span.
      forest: the trees.
      asked: [pairs, 2], the spans of a model call and of a tool call that it alone asked for.
    """
    plain_mask = forest.plain[trace]
    begins, ends = np.flatnonzero(forest.opens & plain_mask), np.flatnonzero(forest.closes & plain_mask)
    row = np.r_[begins, ends]
    closing = np.arange(len(row)) >= len(begins)
    order = np.lexsort((closing, row, np.r_[start[begins], end[ends]], trace[row]))
    row, closing = row[order], closing[order]
    opened, closed = positions(row, closing, len(trace))
    lone = begins[~forest.closes[begins]]
    calls, tools = asked[plain_mask[asked[:, 0]]].T
    opener, closer = forest.opener, forest.closer
    before = (
        (opener[begins], opened[opener[begins]], opened[begins]),
        (ends, opened[ends], closed[ends]),
        (closer[lone], opened[lone], closed[closer[lone]]),
        (closer[ends], closed[ends], closed[closer[ends]]),
        (calls, opened[calls], opened[tools]),
    )  # a span that must be there, and positions of which the first comes before the second
    pairs = np.concatenate([np.stack([first, second], 1)[sender_place >= 0] for sender_place, first, second in before])
    wrong = np.unique(trace[row[pairs[pairs[:, 0] >= pairs[:, 1], 0]]])
    if len(wrong):
        turns = _by_tree(trace[row], pairs, wrong, forest)
        row, closing = row[turns], closing[turns]
    return row, closing


def _by_tree(trace: np.ndarray, pairs: np.ndarray, wrong: np.ndarray, forest: Forest) -> np.ndarray:
    """Positions in the order that the tree wants in the traces where the clocks want another; without those of circles.

    Args:
      trace: of each position.
      pairs: [n, 2], positions of which the first comes before the second.
      wrong: the traces where some do not.
    """
    of_pairs = trace[pairs[:, 0]]
    order = np.argsort(of_pairs, kind="stable")
    pairs, of_pairs = pairs[order], of_pairs[order]
    starts, stops = (np.searchsorted(trace, wrong, side) for side in ("left", "right"))
    place = np.searchsorted(wrong, of_pairs)
    concerned = wrong[np.minimum(place, len(wrong) - 1)] == of_pairs
    pairs, place = pairs[concerned], place[concerned]
    turns = np.arange(len(trace))
    for one, start, taken in zip(
        wrong.tolist(), starts.tolist(), in_turns(stops - starts, place, pairs - starts[place, None]), strict=True
    ):
        if taken[-1] == STUCK:
            forest.plain[one] = False
        else:
            turns[start : start + len(taken)] = start + taken
    kept: np.ndarray = turns[forest.plain[trace]]
    return kept


def instances_of(trace: np.ndarray, kind: np.ndarray, service: np.ndarray, forest: Forest) -> Instances:
    """The agent instances of plain traces."""
    plain_mask = forest.plain[trace]
    agents = np.flatnonzero(plain_mask & (kind == AGENT))
    alone = np.flatnonzero(plain_mask & (forest.owner < 0) & ((kind == CALL) | (kind == TOOL)))
    alone = alone[np.argsort(forest.place[alone], kind="stable")]
    service_of = trace[alone].astype(np.int64) * (int(service.max(initial=0)) + 1) + service[alone]
    _, first, which = np.unique(service_of, return_index=True, return_inverse=True)
    row = np.r_[agents, alone[first]]
    order = np.argsort(forest.place[row], kind="stable")
    number = np.empty(len(row), np.int64)
    number[order] = np.arange(len(row))
    of_span = np.full(len(trace), NOWHERE, np.int64)
    of_span[agents] = number[: len(agents)]
    acting = np.where(forest.owner >= 0, of_span[forest.owner], NOWHERE)
    acting[alone] = number[len(agents) :][which]
    return Instances(row[order], (np.arange(len(row)) < len(agents))[order], acting, of_span)


def events_of(
    row: np.ndarray, closing: np.ndarray, trace: np.ndarray, kind: np.ndarray, forest: Forest, team: Instances
) -> TeamEvents:
    """The events of ordered begins and ends."""
    spawners = np.zeros(len(kind), bool)
    spawners[forest.owner[(kind == AGENT) & (forest.owner >= 0)]] = True
    decides = (forest.owner >= 0) & spawners[forest.owner]
    begin = np.where(kind == AGENT, EventType.SPAWN, EventType.TOOL_CALL)
    begin = np.where(kind == CALL, np.where(decides, EventType.ORCHESTRATOR_DECISION, EventType.MESSAGE), begin)
    end = np.where(kind == AGENT, EventType.RETURN, EventType.TOOL_RESULT)
    calling = np.zeros(len(forest.plain), bool)
    calling[trace[kind == CALL]] = True
    opened, closed = positions(row, closing, len(trace))
    return TeamEvents(
        row=row,
        closing=closing,
        types=np.where(closing, end[row], begin[row]).astype(np.int32),
        agents=np.where(closing & (kind[row] == AGENT), team.of_span[row], team.acting[row]).astype(np.int32),
        actions=~closing & ((kind[row] == CALL) | ~calling[trace[row]]),
        opened=opened,
        closed=closed,
    )
