"""The order of a conventional trace's events, and which model call emitted which of them.

Position order is the total order made by taking, again and again, among the events whose predecessors have been taken,
the one of smallest (time, file order of the span, opening before closing); an event without a time comes before those
with one. Predecessors are what the tree says, whatever the clocks say: an enclosing span opens before what it encloses
opens and closes after all of it, a span closes after it opened, and a model call comes before the tool call that
answers one of its tool call ids.
"""

from __future__ import annotations

import bisect

from graphs.errors import Problem, TraceError
from graphs.event_graph import EventType
from graphs.formats.otlp.drafts import Draft
from graphs.formats.otlp.tree import Tree
from graphs.text import excerpt
from graphs.traces.record_checks import topological_order

__all__ = ["emitters", "in_order"]

_EFFECTS = (EventType.SPAWN, EventType.TOOL_CALL)


def in_order(tree: Tree, drafts: list[Draft]) -> list[Draft]:
    """The events in position order.

    Raises:
      TraceError: kind "cycle": a model call lies inside the tool call that it is said to have emitted.
    """
    opens = {draft.span.id: i for i, draft in enumerate(drafts) if not draft.closing}
    closes = {draft.span.id: i for i, draft in enumerate(drafts) if draft.closing}
    opener, closer = _enclosing(tree, opens), _enclosing(tree, closes)
    pairs: list[tuple[int, int]] = []  # of events, the first before the second
    for span_id, opening in opens.items():
        if opener[span_id]:
            pairs.append((opens[opener[span_id]], opening))
        if span_id in closes:
            pairs.append((opening, closes[span_id]))
        elif closer[span_id]:
            pairs.append((opening, closes[closer[span_id]]))
    for span_id, closing in closes.items():
        if closer[span_id]:
            pairs.append((closing, closes[closer[span_id]]))
    asked = _asked(drafts)
    for i, draft in enumerate(drafts if asked else ()):
        calls = _calls_by_id(tree, draft, asked)
        if len(calls) == 1:
            pairs.append((calls[0], i))
    return [drafts[i] for i in _taken(tree, drafts, pairs)]


def _enclosing(tree: Tree, having: dict[str, int]) -> dict[str, str]:
    """The nearest enclosing span among those `having` an event, "" without one."""
    nearest: dict[str, str] = {}
    for span_id in tree.spans:
        above = tree.above[span_id]
        nearest[span_id] = "" if not above else above if above in having else nearest[above]
    return nearest


def _taken(tree: Tree, drafts: list[Draft], pairs: list[tuple[int, int]]) -> list[int]:
    keys = [
        (-1 if draft.nanoseconds is None else draft.nanoseconds, draft.span.index, draft.closing, i)
        for i, draft in enumerate(drafts)
    ]
    order = [key[-1] for key in sorted(keys)]
    rank = [0] * len(order)
    for position, i in enumerate(order):
        rank[i] = position
    for first, second in pairs:
        if rank[first] >= rank[second]:
            break
    else:  # clocks agree with the tree
        return order
    turns = topological_order(len(drafts), [(rank[first], rank[second]) for first, second in pairs])
    if len(turns) < len(drafts):
        taken = {order[position] for position in turns}
        stuck = next(draft for i, draft in enumerate(drafts) if i not in taken)
        place, expected = stuck.span.place, "tool call ids that no call inside the tool's own span emitted"
        raise TraceError(
            Problem("cycle", place.file, place.line, "spans", excerpt(stuck.span.id), expected, tree.trace)
        )
    return [order[position] for position in turns]


def _asked(drafts: list[Draft]) -> dict[tuple[str, str], list[int]]:
    """Positions of the model calls of an instance that listed a tool call id."""
    asked: dict[tuple[str, str], list[int]] = {}
    for i, draft in enumerate(drafts):
        if draft.call:
            for call_id in draft.span.meaning.emitted:
                asked.setdefault((draft.agent, call_id), []).append(i)
    return asked


def _calls_by_id(tree: Tree, draft: Draft, asked: dict[tuple[str, str], list[int]]) -> list[int]:
    if draft.closing or draft.type not in _EFFECTS:
        return []
    own = draft.span.meaning.call_id
    call_ids = tree.called_as.get(draft.span.id, ()) if draft.type is EventType.SPAWN else (own,) if own else ()
    return next((asked[draft.agent, i] for i in call_ids if (draft.agent, i) in asked), [])


def emitters(tree: Tree, drafts: list[Draft]) -> dict[int, int]:
    """For ordered events: position of each spawn and tool call to the position of the model call that emitted it.

    That is the last earlier call of the same instance that lists its tool call id; where none does, the last earlier
    call of the instance. A spawn or tool call before its instance's first call has no emitter, nor has one that is an
    action.
    """
    asked = _asked(drafts)
    latest: dict[str, int] = {}
    emitter: dict[int, int] = {}
    for i, draft in enumerate(drafts):
        if draft.call:
            latest[draft.agent] = i
        elif draft.type in _EFFECTS and not draft.action:
            calls = _calls_by_id(tree, draft, asked)
            earlier = bisect.bisect_left(calls, i)
            if earlier or draft.agent in latest:
                emitter[i] = calls[earlier - 1] if earlier else latest[draft.agent]
    return emitter
