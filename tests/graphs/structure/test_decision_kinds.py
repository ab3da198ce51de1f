"""Calls of an agent that leads decide about the team where they reach another agent."""

from __future__ import annotations

from credit.metrics.cost_summary import cost_rows
from credit.metrics.trace_metrics import trace_metrics
from graphs.event_types import EdgeType, EventType
from graphs.structure.decision_kinds import KIND_NAMES, decision_kind
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

ORCHESTRATOR, RETURN = EventType.ORCHESTRATOR_DECISION, EventType.RETURN


def session() -> Traces:
    """Of three calls of main the second starts a scout, who answers it."""
    instances = {"m": Agent("main"), "s": Agent("scout", parent="m")}
    record = TraceRecord("t", "q", "log.jsonl", instances=instances, rewards={"team": 1.0})
    record.event("a", ORCHESTRATOR, "m", action=True, tokens=40)
    record.event("b", ORCHESTRATOR, "m", action=True, tokens=10)
    record.event("spawn", EventType.SPAWN, "m", action=False)
    record.event("k", EventType.MESSAGE, "s", action=True, tokens=30)
    record.event("back", RETURN, "s", action=False)
    record.event("c", ORCHESTRATOR, "m", action=True, tokens=20)
    for sender, receiver, form in (
        (0, 1, EdgeType.TEMPORAL), (1, 2, EdgeType.CAUSAL), (2, 3, EdgeType.SPAWN), (3, 4, EdgeType.CAUSAL),
        (4, 5, EdgeType.RETURN),
    ):  # fmt: skip
        record.edge(sender, receiver, form)
    return assemble([record])


def test_a_call_that_reaches_no_other_agent_is_a_message() -> None:
    traces = session()
    names = [KIND_NAMES[kind] for kind in decision_kind(traces.graph)[: traces.sizes.events]]
    assert names == ["message", "whom", "spawn", "message", "other", "message"]
    tokens = {row.unit: row.tokens.total for row in cost_rows(traces, "decision")}
    assert tokens == {"message": 90, "whom": 10, "spawn": 0, "other": 0}
    assert trace_metrics(traces)["protocol_overhead"].value.tolist() == [0.1]


def test_types_decide_where_no_decision_of_an_instance_reaches_another() -> None:
    record = TraceRecord("t", "q", "log.jsonl", instances={"m": Agent("main")}, rewards={"team": 1.0})
    record.event("a", ORCHESTRATOR, "m", action=True)
    assert KIND_NAMES[decision_kind(assemble([record]).graph)[0]] == "whom"


def test_a_lone_agent_has_no_redundant_message() -> None:
    record = TraceRecord("t", "q", "log.jsonl", instances={"m": Agent("main")}, rewards={"team": 1.0})
    record.event("a", EventType.MESSAGE, "m", action=True, content_ref="x")
    record.event("b", EventType.MESSAGE, "m", action=True, content_ref="x")
    assert trace_metrics(assemble([record]))["message_redundancy"].reasons[0].startswith("the trace has no second")
