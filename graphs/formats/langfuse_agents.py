"""Who acts in an export of Langfuse: what integrations write as agents or nodes, and is none."""

from __future__ import annotations

from typing import Any

from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.otlp.dialects import is_session

__all__ = ["TOOL_NODE", "drop_workflow", "give_tools_to_callers", "note_agent"]

TOOL_NODE = "tools"
"""The node of LangGraph that runs the tools of all agents."""


def note_agent(span: Span, given: dict[str, Any]) -> None:
    """Mark a root of OpenInference that may be no agent, and take no session for an agent's name."""
    if "openinference.span.kind" in given and not span.parent:
        span.target = "" if given.get("agent.name") or given.get("graph.node.id") else "workflow"
    if is_session(span.name.removeprefix("invoke_agent").strip(), given):
        span.name = "agent"


def drop_workflow(spans: list[Span]) -> None:
    """The root that OpenInference's instrumentation of the OpenAI Agents SDK makes of a run is no agent."""
    roots = [span for span in spans if span.kind is Kind.AGENT and span.target == "workflow"]
    holding = {span.parent for span in spans}
    acting = {span.parent for span in spans if span.kind is not Kind.AGENT}
    for span in roots:
        if span.id in holding and span.id not in acting:
            span.kind = Kind.OTHER
        span.target = ""


def give_tools_to_callers(spans: list[Span]) -> None:
    """LangGraph runs tools in a node of their own, beside and behind the node of the agent that asked for them."""
    agents = {span.id for span in spans if span.instance and span.name != TOOL_NODE}
    latest: Span | None = None
    for span in spans:
        if span.id in agents:
            latest = span
        elif span.kind is Kind.TOOL and span.target == TOOL_NODE:
            span.target = ""
            if latest is not None:
                span.parent = latest.id
