"""Spans that frame a run: no agent of their own, no name of an agent, no failure, in every form of spans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.logs import read
from graphs.traces.batch import Traces

from ..samples import SAMPLES, observation

Given = tuple[str, str, str | None, dict[str, Any]]  # id, name, parent, attributes

AGENT = {"openinference.span.kind": "AGENT"}
LLM = {"openinference.span.kind": "LLM"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
SESSION = {"gen_ai.agent.id": "s-77", "gen_ai.conversation.id": "s-77"}

WORKFLOW: list[Given] = [
    ("1", "Agent workflow", None, AGENT),
    ("2", "lead", "1", AGENT | {"graph.node.id": "lead"}),
    ("3", "llm", "2", LLM),
]
UNNAMED: dict[str, list[Given]] = {
    "the agent's id": [
        ("1", "invoke_agent s-77", None, {"gen_ai.operation.name": "invoke_agent"} | SESSION), ("2", "x", "1", CHAT)
    ],
    "the span's name": [
        ("1", "invoke_agent s-77", None, {"gen_ai.operation.name": "invoke_agent", "session.id": "s-77"}),
        ("2", "x", "1", CHAT),
    ],
    "a UUID": [("1", "3f2b8a1e-6c1d-4f0e-9a59-0a8a53f6d2aa", None, AGENT), ("2", "x", "1", LLM)],
    "the name of OpenInference": [
        ("1", "s-77", None, AGENT | {"agent.name": "s-77", "session.id": "s-77"}), ("2", "x", "1", LLM)
    ],
}  # fmt: skip


def otlp(trace: str, spans: list[Given]) -> str:
    listed = [
        {"traceId": trace, "spanId": own.zfill(16), "parentSpanId": (parent or "").zfill(16) if parent else "",
         "name": name, "startTimeUnixNano": own + "0" * 9, "endTimeUnixNano": "9" * 11,
         "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in given.items()]}
        for own, name, parent, given in spans
    ]  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]})


def dump(trace: str, spans: list[Given]) -> str:
    return "\n".join(
        json.dumps({"trace_id": trace, "span_id": own.zfill(16), "parent_span_id": parent and parent.zfill(16),
                    "name": name, "start_time": int(own) * 10**9, "end_time": 10**11, "attributes": given})
        for own, name, parent, given in spans
    )  # fmt: skip


def langfuse(trace: str, spans: list[Given]) -> str:
    kinds = {"AGENT": "AGENT", "LLM": "GENERATION", "invoke_agent": "AGENT", "chat": "GENERATION"}
    listed = []
    for own, name, parent, given in spans:
        kind = kinds.get(given.get("openinference.span.kind") or given.get("gen_ai.operation.name", ""), "SPAN")
        more = {"traceId": trace, "metadata": {"attributes": given}}
        listed.append(observation(own, kind, name, parent, int(own), **more))
    return json.dumps(listed)


FORMS = {"otlp": otlp, "spans": dump, "langfuse": langfuse}
EACH = pytest.mark.parametrize("form", FORMS)


def written(folder: Path, form: str, spans: list[Given], traces: int = 3) -> Traces:
    for number in range(traces):
        (folder / f"{number}.json").write_text(FORMS[form](f"{number + 1:032x}", spans))
    return read(folder)


@EACH
def test_the_span_of_a_workflow_is_no_agent(tmp_path: Path, form: str) -> None:
    traces = written(tmp_path, form, WORKFLOW)
    assert traces.agents["name"].to_pylist() == ["lead"] * 3
    assert traces.sizes.events == 3 and traces.problems == ()


@EACH
@pytest.mark.parametrize("name", UNNAMED)
def test_an_unnamed_agent_is_not_named_after_its_session(tmp_path: Path, form: str, name: str) -> None:
    assert written(tmp_path, form, UNNAMED[name]).agents["name"].to_pylist() == ["agent"] * 3


@EACH
def test_a_trace_without_events_is_no_failure(tmp_path: Path, form: str) -> None:
    written(tmp_path, form, WORKFLOW)
    (tmp_path / "none.json").write_text(FORMS[form]("f" * 32, [("1", "c", None, {"openinference.span.kind": "CHAIN"})]))
    traces = read(tmp_path)
    assert traces.sizes.traces == 3
    assert [(problem.kind, problem.is_failure) for problem in traces.problems] == [("no-events", False)]


def test_an_episode_in_which_no_agent_ran_is_no_failure(tmp_path: Path) -> None:
    sample = SAMPLES["verifiers"]
    whole = read(sample.write(tmp_path)).sizes.traces
    nothing = sample.values[0] | {"id": "nothing", "traces": []}
    traces = read(sample._replace(values=[*sample.values, nothing]).write(tmp_path))
    assert traces.sizes.traces == whole
    assert [(problem.kind, problem.is_failure) for problem in traces.problems] == [("no-events", False)]
