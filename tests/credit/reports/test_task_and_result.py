"""What a trace was asked and what it came to, wherever the root of its log says it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.page import Findings
from credit.page.trace_view import TraceViews
from credit.reports.event_texts import event_texts
from credit.reports.task_and_result import task_and_result
from credit.reports.trace_text import trace_json
from tests.graphs.reading.samples import MLFLOW

ASKED, GAVE = "Which is larger, 3 or 5?", "Five is larger."
STATE = {"messages": [["system", "be brief"], ["user", ASKED]], "step": 3}
ENDED = {"messages": [{"type": "human", "content": ASKED}, {"type": "ai", "content": ""},
                      {"type": "tool", "content": "5"},
                      {"type": "ai", "content": [{"type": "text", "text": GAVE}]}]}  # fmt: skip
SERIALISED = {"messages": [{"lc": 1, "kwargs": {"type": "ai", "content": GAVE}}]}


def langsmith(inputs: Any, outputs: Any) -> list[Any]:
    call = {"id": "a", "name": "m", "run_type": "llm", "trace_id": "t", "parent_run_id": "t", "inputs": {"x": "inner"}}
    root = {"id": "t", "name": "g", "run_type": "chain", "trace_id": "t", "inputs": inputs, "outputs": outputs}
    return [call, root]


def braintrust(asked: Any, gave: Any) -> list[Any]:
    def row(name: str, kind: str, parents: list[str], **more: Any) -> dict[str, Any]:
        about = {"id": name, "span_id": name, "root_span_id": "r", "span_parents": parents, "metrics": {"start": 1.0}}
        return about | {"span_attributes": {"name": name, "type": kind}} | more

    return [row("c", "llm", ["r"], input="inner"), row("r", "task", [], input=asked, output=gave)]


def weave(inputs: Any, output: Any, name: str = "main") -> list[Any]:
    about = {"trace_id": "T", "started_at": "2026-01-01T00:00:00Z"}
    call = {"id": "c", "parent_id": "o", "op_name": "ask", "attributes": {"weave": {"kind": "llm"}}}
    return [about | call, about | {"id": "o", "op_name": name, "inputs": inputs, "output": output}]


def otlp(root: dict[str, str], call: dict[str, str] | None = None) -> list[Any]:
    def span(number: int, operation: str, stated: dict[str, str]) -> dict[str, Any]:
        attributes = [
            {"key": key, "value": {"stringValue": value}}
            for key, value in ({"gen_ai.operation.name": operation} | stated).items()
        ]
        parent = f"{number - 1:016x}" if number > 1 else ""
        return {"traceId": "0" * 31 + "1", "spanId": f"{number:016x}", "parentSpanId": parent, "name": "x",
                "startTimeUnixNano": str(number), "endTimeUnixNano": "9", "attributes": attributes}  # fmt: skip

    spans = [span(2, "chat", call or {}), span(1, "invoke_agent", root)]
    return [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}]


def mlflow(inputs: Any, outputs: Any) -> list[Any]:
    log = copy.deepcopy(MLFLOW)
    log["data"]["spans"][0]["attributes"] |= {
        "mlflow.spanInputs": json.dumps(inputs), "mlflow.spanOutputs": json.dumps(outputs)}  # fmt: skip
    return [log]


def langfuse(trace: dict[str, Any], root: dict[str, Any], call: dict[str, Any] | None = None) -> dict[str, Any]:
    about = {"traceId": "t", "startTime": "2026-01-01T00:00:00Z"}
    observations = [about | {"id": "o2", "type": "GENERATION", "name": "m", "parentObservationId": "o1"} | (call or {}),
                    about | {"id": "o1", "type": "SPAN", "name": "g", "parentObservationId": None} | root]  # fmt: skip
    return {"trace": {"id": "t", "projectId": "p", "scores": []} | trace, "observations": observations}


CHAT = [{"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
        {"role": "user", "parts": [{"type": "text", "content": ASKED}]}]  # fmt: skip
REFERENCE = "weave:///e/p/object/row:1/attr/rows/id/x"
LOGS: dict[str, Any] = {
    "langsmith": langsmith({"question": ASKED}, {"answer": GAVE}),
    "langsmith, a state": langsmith(STATE, ENDED),
    "langsmith, serialised": langsmith({"input": ASKED, "chat_history": []}, SERIALISED),
    "braintrust": braintrust(ASKED, GAVE),
    "braintrust, a chat": braintrust([{"role": "user", "content": ASKED}], {"role": "assistant", "content": GAVE}),
    "weave": weave({"self": REFERENCE, "question": ASKED}, {"answer": GAVE}),
    "weave, an example": weave({"model": REFERENCE, "example": {"question": ASKED}},
                               {"scores": {"right": True}, "output": GAVE, "model_latency": 1.5},
                               "weave:///e/p/op/Evaluation.predict_and_score:x"),
    "otlp": otlp({"input.value": json.dumps({"messages": CHAT[1:]}), "output.value": GAVE}),
    "otlp, conventions": otlp({"gen_ai.input.messages": json.dumps(CHAT), "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": GAVE}]}])}),
    "mlflow": mlflow({"question": ASKED}, GAVE),
    "mlflow, a state": mlflow(STATE, ENDED),
    "langfuse": langfuse({"input": json.dumps(json.dumps(STATE)), "output": ENDED}, {}),
    "langfuse, its root": langfuse({"input": None, "output": None}, {"input": ASKED, "output": GAVE}),
}  # fmt: skip
OF_THE_FIRST_CALL: dict[str, Any] = {
    "otlp": otlp({}, {"gen_ai.input.messages": json.dumps(CHAT)}),
    "otlp, flat": otlp({}, {"llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "x",
                            "llm.input_messages.1.message.role": "user",
                            "llm.input_messages.1.message.content": ASKED}),
    "langfuse": langfuse({}, {}, {"input": [{"role": "user", "content": ASKED}]}),
}  # fmt: skip


def read(folder: Path, log: Any) -> credit.Traces:
    lines = log if isinstance(log, list) else [log]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return credit.read(folder / "log.jsonl")


@pytest.mark.parametrize("name", LOGS)
def test_the_root_says_what_was_asked_and_what_came_of_it(name: str, tmp_path: Path) -> None:
    """A person who labels saw neither the question nor the answer: no event of these logs says them."""
    traces = read(tmp_path, LOGS[name])
    assert task_and_result(traces, 0, 400) == (ASKED, GAVE)
    assert task_and_result(traces, 0, 5) == ("Whic…", "Five…")
    told = trace_json(traces, 0)
    assert (told["asked"], told["result"]) == (ASKED, GAVE)
    for text, expected in ((True, [ASKED, GAVE]), (False, ["", ""])):
        assert TraceViews(Findings.of(traces, {}, text=text)).of(0, excerpt=400)["task"] == expected
    assert TraceViews(Findings.of(traces, {})).of(0, excerpt=0)["task"] == ["", ""]


@pytest.mark.parametrize("name", OF_THE_FIRST_CALL)
def test_a_root_that_says_nothing_leaves_the_question_to_its_first_call(name: str, tmp_path: Path) -> None:
    assert task_and_result(read(tmp_path, OF_THE_FIRST_CALL[name]), 0, 400) == (ASKED, "")


def test_langfuse_says_it_on_whichever_page_the_trace_stands(tmp_path: Path) -> None:
    """Scores came first, and their page was the place of the trace."""
    score = {"id": "s", "traceId": "t", "name": "ok", "value": 1, "dataType": "NUMERIC"}
    whole = langfuse({}, {"input": "of the root", "output": GAVE})
    pages = {
        "0": [score],
        "1": whole["observations"],
        "2": [{"id": "t", "projectId": "p", "input": ASKED, "observations": ["o1", "o2"]}],
    }
    for name, data in pages.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"data": data, "meta": {"page": 1}}))
    traces = credit.read(tmp_path)
    assert task_and_result(traces, 0, 400) == (ASKED, "")
    (tmp_path / "2.json").unlink()
    assert task_and_result(credit.read(tmp_path), 0, 400) == ("of the root", GAVE)


@pytest.mark.parametrize("value", [None, "", [], {}, REFERENCE, {"self": REFERENCE}, {"messages": [[]]}])
def test_what_says_nothing_is_nothing(value: Any, tmp_path: Path) -> None:
    for log in (weave(value, value), mlflow(value, value)):
        assert task_and_result(read(tmp_path, log), 0, 400) == ("", "")


def test_a_record_without_end_is_searched_to_a_depth(tmp_path: Path) -> None:
    value: Any = "x"
    for _ in range(60):
        value = {"input": [value]}
    assert task_and_result(read(tmp_path, braintrust(value, "y")), 0, 400) == ("inner", "y"), "that of the first call"


def test_a_download_of_megabytes_is_read(tmp_path: Path) -> None:
    """Langfuse writes a trace as one object, which was no longer read from 1 MiB on: its page quoted nothing."""
    log = langfuse({"input": ASKED, "output": GAVE}, {"output": "long " * 500_000}, {"output": "said"})
    (tmp_path / "log.json").write_text(json.dumps(log, indent=1))
    traces = credit.read(tmp_path / "log.json")
    assert task_and_result(traces, 0, 400) == (ASKED, GAVE)
    assert event_texts(traces, np.arange(traces.sizes.events), 10) == ["said"]


def test_files_that_are_gone_or_packed_are_read_as_far_as_they_are_there(tmp_path: Path) -> None:
    import gzip

    traces = read(tmp_path, LOGS["braintrust"])
    text = (tmp_path / "log.jsonl").read_bytes()
    (tmp_path / "log.jsonl").unlink()
    assert task_and_result(traces, 0, 400) == ("", "")
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(text))
    assert task_and_result(credit.read(tmp_path / "log.jsonl.gz"), 0, 400) == (ASKED, GAVE)
    (tmp_path / "marked.jsonl").write_bytes(b"\xef\xbb\xbf" + text)
    assert task_and_result(credit.read(tmp_path / "marked.jsonl"), 0, 400) == (ASKED, GAVE)
