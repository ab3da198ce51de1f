"""Nodes of LangGraph among spans: which of them are agents, and whose the tools are."""

from __future__ import annotations

from graphs.formats.common.span_tree import Kind, Span

__all__ = ["keep_agents"]


def keep_agents(spans: list[Span]) -> None:
    """Make the agent spans that are nodes, which have an `instance`, structure where they are no agent of their own.

    A node that calls no model by itself, such as LangGraph's `tools`, runs what was asked for: it moves below the
    node under the same parent that calls a model and ran last before it. Without one before, it is an agent if a tool
    of it calls a model. A node inside an agent, with no tool between, is a step of that agent.

    Args:
      spans: of a trace, siblings in the order in which they ran.
    """
    nodes = [span for span in spans if span.kind is Kind.AGENT and span.instance]
    if not nodes:
        return
    by_id = {span.id: span for span in spans}
    asking = _above_calls(spans, by_id, frozenset({Kind.TOOL}))
    calling = _above_calls(spans, by_id, frozenset())
    latest: dict[str, str] = {}  # parent -> its node that ran last and calls a model
    for span in nodes:
        if span.id in asking:
            latest[span.parent] = span.id
        elif span.parent in latest:
            span.kind, span.parent = Kind.OTHER, latest[span.parent]
        elif span.id not in calling:
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


def _above_calls(spans: list[Span], by_id: dict[str, Span], ends: frozenset[Kind]) -> set[str]:
    """Ids of the spans above a model call, up to a span of a kind in `ends`; each walk ends where one has passed."""
    above: set[str] = set()
    for span in spans:
        outer = by_id.get(span.parent) if span.kind is Kind.CALL else None
        while outer is not None and outer.id not in above and outer.kind not in ends:
            above.add(outer.id)
            outer = by_id.get(outer.parent)
    return above
