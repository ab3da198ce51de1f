"""The order of a trace's events where its spans come from several processes, by clocks that need not agree.

Events are taken one by one. The next is, among the events whose predecessors were all taken, the one with the smallest
(instant, place of the span in the log, opening before closing): `Span.instant`. At one time the end of a span comes
before the begin of another. An event without a time comes before events with one.
The tree gives the predecessors, whatever the clocks say. A span opens before the spans inside it, and closes after
them. It closes after it opened. A model call comes before the tool call that answers one of its tool call ids.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphs.formats.common.span_tree import Tree
from graphs.traces.record import topological_order

__all__ = ["in_order"]


def in_order(tree: Tree, events: list[tuple[str, bool]], asked: Iterable[tuple[str, str]]) -> list[int]:
    """The events in position order, by their places in `events`.

    Args:
      tree: the trace.
      events: the span of each event, and whether it is the end of the span.
      asked: spans of a model call and of the tool, or agent, that it alone asked for.

    Raises:
      TraceError: "cycle", a model call lies inside the tool call that it asked for.
    """
    opens = {span_id: i for i, (span_id, closing) in enumerate(events) if not closing}
    closes = {span_id: i for i, (span_id, closing) in enumerate(events) if closing}
    takers = {taker: handoff for handoff, taker in tree.handed_to.items() if handoff in opens}
    opener, closer = _enclosing(tree, opens, takers), _enclosing(tree, closes, {})
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
    pairs += [(opens[call], opens[effect]) for call, effect in asked]
    spans, ranks = tree.spans, tree.rank
    keys = [(spans[span_id].instant(is_end), ranks[span_id], is_end, i) for i, (span_id, is_end) in enumerate(events)]
    order = [key[-1] for key in sorted(keys)]
    rank = [0] * len(order)
    for position, i in enumerate(order):
        rank[i] = position
    if all(rank[first] < rank[second] for first, second in pairs):  # clocks agree with the tree
        return order
    turns = topological_order(len(events), [(rank[first], rank[second]) for first, second in pairs])
    if len(turns) < len(events):
        taken = {order[position] for position in turns}
        stuck = tree.spans[next(events[i][0] for i in range(len(events)) if i not in taken)]
        expected = "tool call ids that no call inside the tool's own span emitted"
        raise stuck.refuse("cycle", "spans", stuck.id, expected, tree.trace)
    return [order[position] for position in turns]


def _enclosing(tree: Tree, having: dict[str, int], takers: dict[str, str]) -> dict[str, str]:
    """The nearest enclosing span among those `having` an event, "" without one; a hand-off encloses what it started."""
    nearest: dict[str, str] = {}
    for span_id, parent in tree.parent.items():
        parent = takers.get(span_id, parent)
        nearest[span_id] = parent if not parent or parent in having else nearest[parent]
    return nearest
