"""The edges of a trace that states none: those of the table in `docs/data-model.md`.

Where a log shows no model calls, its actions take the place of the calls in that table, and nothing is emitted.
"""

from __future__ import annotations

from graphs.event_graph import EdgeType, EventType
from graphs.formats.otlp.drafts import Draft

__all__ = ["Edge", "derived_edges"]

Edge = tuple[int, int, EdgeType]  # sender, receiver, type


def derived_edges(drafts: list[Draft], emitted_by: dict[int, int]) -> list[Edge]:
    """Edges between ordered events, sorted by receiver, then sender; all run forward.

    Args:
      drafts: the events in position order.
      emitted_by: position of each effect to that of its call (`order.emitters`).
    """
    any_call = any(draft.call for draft in drafts)
    edges: list[Edge] = []
    last: dict[str, int] = {}  # the last act of each instance
    news: dict[str, list[tuple[int, EdgeType]]] = {}  # what an instance learned since its last act
    spawned: dict[str, int] = {}  # spawns of instances that have no event yet
    tool_calls: dict[str, int] = {}
    for i, draft in enumerate(drafts):
        causes: list[tuple[int, EdgeType]] = []
        to = draft.columns.get("to")
        if draft.agent in spawned:
            causes.append((spawned.pop(draft.agent), EdgeType.SPAWN))
        if draft.call if any_call else draft.action:
            if draft.agent in last:
                causes.append((last[draft.agent], EdgeType.TEMPORAL))
            causes += news.pop(draft.agent, [])
            last[draft.agent] = i
        if i in emitted_by:
            spawns = draft.type is EventType.SPAWN
            causes.append((emitted_by[i], EdgeType.CAUSAL if spawns else EdgeType.TOOL_DEPENDENCY))
        if draft.type is EventType.SPAWN and to and to != draft.agent:
            spawned[to] = i
        elif draft.type is EventType.TOOL_CALL:
            tool_calls[draft.span.id] = i
        elif draft.type is EventType.TOOL_RESULT:
            if draft.span.id in tool_calls:
                causes.append((tool_calls[draft.span.id], EdgeType.RETURN))
            news.setdefault(draft.agent, []).append((i, EdgeType.CAUSAL))
        elif draft.type is EventType.RETURN:
            if draft.agent in last:
                causes.append((last[draft.agent], EdgeType.CAUSAL))
            if to:
                news.setdefault(to, []).append((i, EdgeType.RETURN))
        elif draft.type is EventType.MESSAGE and not draft.action and to and to != draft.agent:
            news.setdefault(to, []).append((i, EdgeType.MESSAGE))
        edges += [(sender, i, edge_type) for sender, edge_type in sorted(causes)]
    return edges
