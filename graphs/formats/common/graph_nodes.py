"""Nodes of LangGraph among spans: which of them are agents."""

from __future__ import annotations

from graphs.formats.common.span_tree import Kind, Span

__all__ = ["keep_agents"]


def keep_agents(spans: list[Span]) -> None:
    """Make spans of kind AGENT structure where they are no agent of their own.

    A node that calls no model is no agent. A node inside an agent, with no tool between, is a step of that agent.
    """
    nodes = [span for span in spans if span.kind is Kind.AGENT]
    if not nodes:
        return
    by_id = {span.id: span for span in spans}
    calling: set[str] = set()  # spans above a model call; each walk ends where an earlier one has passed
    for span in spans:
        above = by_id.get(span.parent) if span.kind is Kind.CALL else None
        while above is not None and above.id not in calling:
            calling.add(above.id)
            above = by_id.get(above.parent)
    for span in nodes:
        if span.id not in calling:
            span.kind = Kind.OTHER
    agents = {span.id for span in nodes if span.kind is Kind.AGENT}
    is_inside: dict[str, bool] = {}  # whether a span is inside an agent, so that each is passed once
    for span in nodes:
        path: set[str] = set()
        above = by_id.get(span.parent)
        while above is not None and above.id not in is_inside and above.id not in path:
            if above.kind is Kind.TOOL or above.id in agents:
                break
            path.add(above.id)
            above = by_id.get(above.parent)
        inside = above is not None and (above.id in agents or is_inside.get(above.id, False))
        is_inside |= dict.fromkeys(path, inside)
        if inside:
            span.kind = Kind.OTHER
