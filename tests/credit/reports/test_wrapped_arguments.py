"""Arguments of calls are those of the call, however a tracer spells them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.metrics.message_contents import team_messages
from credit.reports.event_texts import call_arguments, event_texts, result_texts
from credit.reports.tool_calls import call_mask
from graphs.event_types import EventType
from tests.graphs.reading.samples import MLFLOW

ASKED = {"order_id": "A1", "note": 'the "é" \\d', "lines": [1, None, True]}


def logged(inputs: Any) -> list[dict[str, Any]]:
    """Runs of LangSmith: an agent's model asks for a call without a word, twice the same, as ChatOpenAI logs it."""
    node = {"extra": {"metadata": {"langgraph_node": "a"}}, "trace_id": "t"}
    message = {
        "content": "",
        "additional_kwargs": {"tool_calls": [{"id": "c", "type": "function", "function": {
            "name": "lookup", "arguments": json.dumps(ASKED, separators=(",", ":"))}}]},
        "tool_calls": [{"name": "lookup", "args": ASKED, "id": "c", "type": "tool_call"}],
    }  # fmt: skip
    said = {"generations": [[{"text": "", "message": {"lc": 1, "type": "constructor", "kwargs": message}}]]}
    last = {"generations": [[{"text": "Sent.", "message": {"kwargs": {"content": "Sent."}}}]]}
    runs: list[dict[str, Any]] = [{"id": "t", "name": "root", "run_type": "chain", "trace_id": "t"}]
    runs.append(node | {"id": "a", "name": "a", "run_type": "chain", "parent_run_id": "t"})
    for i in range(2):
        runs.append(node | {"id": f"m{i}", "name": "m", "run_type": "llm", "parent_run_id": "a", "outputs": said})
        tool = {"id": f"c{i}", "name": "lookup", "run_type": "tool", "parent_run_id": "a", "inputs": inputs}
        runs.append(node | tool | {"outputs": {"output": "ok"}})
    return [*runs, node | {"id": "m2", "name": "m", "run_type": "llm", "parent_run_id": "a", "outputs": last}]


@pytest.mark.parametrize("inputs", [ASKED, {"input": str(ASKED)}, {"input": json.dumps(ASKED)}], ids=repr)
def test_a_call_says_its_arguments_however_langchain_wraps_them(tmp_path: Path, inputs: Any) -> None:
    """Messages without words counted as repeated ones: `message_redundancy` was 0.1 where the truth is 0."""
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, logged(inputs))))
    traces = credit.read(tmp_path)
    calls = np.flatnonzero(call_mask(traces))
    assert event_texts(traces, calls, 999) == [json.dumps(ASKED, ensure_ascii=False)] * 2
    assert call_arguments(traces, calls, 999) == [json.dumps(ASKED, sort_keys=True)] * 2
    assert traces.events["event"].take(team_messages(traces)).to_pylist() == ["m2"]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"input": "plain text"}, '{"input": "plain text"}'),
        ({"input": "{'input': 'plain text'}"}, '{"input": "plain text"}'),  # of a tool with that argument
        ({"input": "{'a': Order(1)}"}, """{"input": "{'a': Order(1)}"}"""),
        ({"input": "{'a': " + "[" * 300 + "]" * 300 + "}"}, None),  # deeper than Python reads
        ({"input": "{'a': {(1, 2): 3}}"}, """{"input": "{'a': {(1, 2): 3}}"}"""),  # no object of JSON
        ({"input": "{ ls; }"}, '{"input": "{ ls; }"}'),
        ({"input": "{'a': 1}", "k": 2}, """{"input": "{'a': 1}", "k": 2}"""),
        ("{'a': 1}", '{"a": 1}'),  # as Langfuse has it of LangChain
        ('{"a":1}', '{"a": 1}'),
        ({"thought": "so", "a": 1}, '{"a": 1}'),
        ({"thought": "so"}, '{"thought": "so"}'),  # all that a call may have
    ],
)
def test_what_is_not_wrapped_stays_as_it_is(tmp_path: Path, inputs: Any, text: str | None) -> None:
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, logged(inputs))))
    traces = credit.read(tmp_path)
    assert event_texts(traces, np.flatnonzero(call_mask(traces)), 9999)[0] == (text or json.dumps(inputs))


@pytest.mark.parametrize(
    ("gave", "text"),
    [({"status": "ok"}, '{"status": "ok"}'), ("found", "found"), ([], "[]"), (None, "null"), ({"output": "x"}, "x")],
    ids=repr,
)
def test_a_call_of_mlflow_says_what_it_was_given_and_gave(tmp_path: Path, gave: Any, text: str) -> None:
    """Its attributes are JSON in texts, under keys with dots and capitals, which were read nowhere."""
    log = copy.deepcopy(MLFLOW)
    stated = {"mlflow.spanInputs": json.dumps(ASKED), "mlflow.spanOutputs": json.dumps(gave)}
    log["data"]["spans"][2]["attributes"] |= stated
    chat = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Sent."}}]}
    log["data"]["spans"][1]["attributes"]["mlflow.spanOutputs"] = json.dumps(chat)
    (tmp_path / "log.jsonl").write_text(json.dumps(log))
    traces = credit.read(tmp_path)
    types = np.asarray(traces.graph.event_type)[: traces.sizes.events]
    calls, results = (np.flatnonzero(types == kind) for kind in (EventType.TOOL_CALL, EventType.TOOL_RESULT))
    assert call_arguments(traces, calls, 999) == [json.dumps(ASKED, sort_keys=True)]
    assert result_texts(traces, results, 999) == [text]
    acts = np.setdiff1d(np.arange(traces.sizes.events), [*calls, *results])
    assert event_texts(traces, acts, 999) == ["Sent."]
