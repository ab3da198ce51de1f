"""Scores that contradict each other take the outcome of their trace away, not the trace; `--rewards` settles it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.logs import read

from .samples import BRAINTRUST, LANGFUSE, OBSERVATIONS, OPENHANDS, SWE_AGENT, TINKER

Files = dict[str, Any]  # by name, the values of its lines; one value that is no list is the whole file


def langfuse(*scores: dict[str, Any]) -> Files:
    own = [{"id": str(i), "traceId": "t", "dataType": "NUMERIC"} | score for i, score in enumerate(scores)]
    return {"trace.json": {"trace": LANGFUSE["trace"] | {"scores": []}, "observations": OBSERVATIONS},
            "scores.json": {"data": own, "meta": {"page": 1}}}  # fmt: skip


def langsmith(*feedback: dict[str, Any], stats: dict[str, Any] | None = None) -> Files:
    root = {"id": "t", "name": "x", "run_type": "chain", "trace_id": "t", "feedback_stats": stats}
    call = {"id": "a", "name": "x", "run_type": "llm", "trace_id": "t", "parent_run_id": "t"}
    return {"runs.jsonl": [root, call, *({"run_id": "t", "trace_id": "t"} | one for one in feedback)]}


def braintrust(scores: dict[str, float], of_scorer: dict[str, float]) -> Files:
    root = next(row for row in BRAINTRUST if not row.get("span_parents"))
    scorer = {"id": "s", "span_id": "s", "root_span_id": root["root_span_id"], "span_parents": [root["span_id"]],
              "span_attributes": {"name": "judge", "type": "score", "exec_counter": 99},
              "metrics": root["metrics"], "scores": of_scorer}  # fmt: skip
    rows = [row | {"scores": scores if row is root else None} for row in BRAINTRUST]
    return {"spans.jsonl": [*rows, scorer]}


def weave(*feedback: tuple[str, Any]) -> Files:
    call = {"id": "o", "trace_id": "T", "op_name": "main", "started_at": "2026-01-01T00:00:00Z", "summary": {}}
    listed = [{"id": str(i), "feedback_type": kind, "payload": value} for i, (kind, value) in enumerate(feedback)]
    inner = call | {"id": "c", "parent_id": "o", "op_name": "ask", "attributes": {"weave": {"kind": "llm"}}}
    return {"calls.jsonl": [call | {"summary": {"weave": {"feedback": listed}}}, inner]}


def otlp(*evaluations: tuple[str, int, float]) -> Files:
    def attributes(**values: Any) -> list[dict[str, Any]]:
        kinds = {str: "stringValue", float: "doubleValue"}
        return [{"key": key, "value": {kinds[type(value)]: value}} for key, value in values.items()]

    def span(number: int, operation: str) -> dict[str, Any]:
        events = [
            {"name": "gen_ai.evaluation.result", "timeUnixNano": "1",
             "attributes": attributes(**{"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": score})}
            for name, of, score in evaluations if of == number
        ]  # fmt: skip
        parent = f"{number - 1:016x}" if number > 1 else ""
        return {"traceId": "0" * 31 + "1", "spanId": f"{number:016x}", "parentSpanId": parent, "name": "x",
                "startTimeUnixNano": str(number), "endTimeUnixNano": "9", "events": events,
                "attributes": attributes(**{"gen_ai.operation.name": operation})}  # fmt: skip

    spans = [span(1, "invoke_workflow"), span(2, "chat"), span(3, "chat")]
    return {"spans.jsonl": [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}]}


def openhands(**more: Any) -> Files:
    return {"output.jsonl": [OPENHANDS | {"test_result": {"report": {"resolved": False}}} | more]}


def harbor(verifier: dict[str, Any]) -> Files:
    steps = [{"step_id": 1, "source": "user", "message": "go"}, {"step_id": 2, "source": "agent", "message": "x"}]
    agent = {"name": "terminus", "model_name": "m"}
    trajectory = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": steps}
    result = {"task_name": "t", "trial_name": "T", "verifier_result": verifier}
    return {"T/agent/trajectory.json": trajectory, "T/result.json": result}


def who_and_when(**verdicts: bool) -> Files:
    history = [{"content": "go", "role": "human"}, {"content": "x", "role": "Orchestrator (thought)"}]
    return {"1.json": {"question": "q", "question_ID": "q", "history": history} | verdicts}


def swe_agent(*results: dict[str, Any]) -> Files:
    return {"i.traj": SWE_AGENT} | {f"{i}.json": result for i, result in enumerate(results)}


ROOT = {"observationId": None}
SOLVED = {"name": "solved", "value": 0.5} | ROOT
STEP = {"name": "step", "value": 0.25, "observationId": "o2"}
LOST = {"resolved": [], "generated": ["i"]}
WON = {"resolved_ids": ["i"], "submitted_ids": ["i"]}

TABLE: dict[str, tuple[Files, tuple[str, ...]]] = {
    "langfuse, one channel": (langfuse(SOLVED, SOLVED | {"value": 1}), ("'solved' 1.0", "0.5")),
    "langfuse, one id": (langfuse(SOLVED | {"id": "s"}, SOLVED | {"id": "s", "value": 1}), ("'solved' 1.0", "0.5")),
    "langfuse, one id at a call": (
        langfuse(SOLVED, STEP | {"id": "s"}, STEP | {"id": "s", "value": 0.5}), ("'step' 0.5", "0.25")),
    "langfuse, without ids at a call": (langfuse(SOLVED, *[STEP | {"id": None}] * 2), ("'step' 0.25",)),
    "langfuse, two outcomes": (
        langfuse(SOLVED | {"name": "team", "value": 0}, SOLVED | {"name": "reward", "value": 1}),
        ("'team' 1.0", "0.0")),
    "langsmith, one channel": (
        langsmith({"key": "ok", "score": 0.0}, {"key": "ok", "score": 1.0}), ("'ok' 1.0", "0.0")),
    "langsmith, one id": (
        langsmith({"key": "ok", "score": 0.0, "id": "1"}, {"key": "other", "score": 0.0, "id": "1"}),
        ("'other' 0.0", "'ok' 0.0")),
    "langsmith, beside its mean": (
        langsmith({"key": "ok", "score": 1.0}, stats={"ok": {"avg": 0.5}}), ("'ok' 1.0", "0.5")),
    "langsmith, beside a settled one": (
        langsmith({"key": "ok", "score": 0.0}, {"key": "ok", "score": 1.0}, {"key": "tone", "score": 1.0}),
        ("'ok' 1.0", "0.0")),
    "braintrust, one channel": (braintrust({"right": 0.0}, {"right": 1.0}), ("'right' 1.0", "0.0")),
    "weave, one channel": (
        weave(("wandb.runnable.judge", {"output": {"right": True}}), ("wandb.annotation.judge.right", {"value": 0})),
        ("'judge.right' 0.0", "1.0")),
    "otlp, one channel": (otlp(("team", 1, 0.5), ("team", 1, 0.75)), ("'team' 0.75", "0.5")),
    "otlp, two outcomes": (otlp(("team", 1, 0.5), ("reward", 1, 0.75)), ("'team' 0.75", "0.5")),
    "otlp, one step": (otlp(("team", 1, 0.5), ("useful", 2, 0.5), ("useful", 2, 0.75)), ("'useful' 0.75", "0.5")),
    "openhands": (openhands(resolved=True), ("'resolved' 0.0", "1.0")),
    "openhands, report": (openhands(report={"resolved": True}), ("'resolved' 0.0", "1.0")),
    "harbor": (harbor({"rewards": {"reward": 0}, "reward": 1}), ("'reward' 1", "0")),
    "harbor, beside a settled one": (harbor({"rewards": {"reward": 0, "x": 1}, "reward": 1}), ("'reward' 1", "0")),
    "who-and-when": (who_and_when(is_correct=True, is_corrected=False), ("'team' 0.0", "1.0")),
    "tinker": ({"rollouts.jsonl": [TINKER | {"total_reward": 9.0}]}, ("9.0", "sum of its parts")),
    "swe-agent": (swe_agent(LOST, WON), ("True", "False")),
    "swe-agent, later": (swe_agent(WON, LOST), ("False", "True")),
    "swe-agent, two lists": (swe_agent(WON | {"unresolved_ids": ["i"]}), ("True", "unresolved_ids")),
    "swe-agent, second file": (swe_agent(WON, WON | {"error_ids": ["i"]}), ("True", "error_ids")),
}  # fmt: skip


def write(folder: Path, files: Files) -> Path:
    for name, values in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = values if isinstance(values, list) else [values]
        path.write_text("".join(json.dumps(value) + "\n" for value in lines))
    return folder


@pytest.mark.parametrize("name", TABLE)
def test_contradicting_scores_take_the_outcome_and_not_the_trace(name: str, tmp_path: Path) -> None:
    """The trace was refused, or in part the last number won."""
    files, words = TABLE[name]
    traces = read(write(tmp_path, files))
    (problem,) = traces.problems
    assert problem.kind == "unsettled-rewards" and not problem.is_failure
    assert traces.sizes.traces == 1 and traces.sizes.events > 0 and np.isnan(traces.reward[0])
    assert problem.trace == traces.traces["trace"][0].as_py()
    assert words[0] in problem.value and all(word in problem.expected for word in (*words[1:], "--rewards"))
    assert "event_reward" not in traces.evidence, "they belong to the outcome"
    settled = read(tmp_path, rewards={problem.trace: 0.25})
    assert settled.problems == () and settled.reward[0] == 0.25


def test_a_settled_channel_beside_an_unsettled_one_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, TABLE["langsmith, beside a settled one"][0])
    assert float(read(path, reward="tone").reward[0]) == 1.0
    assert np.isnan(read(path, reward="ok").reward[0])


def test_steps_of_several_scores_leave_the_outcome(tmp_path: Path) -> None:
    """The trace was refused, though its outcome is stated; which score rewards a step nobody said."""
    traces = read(write(tmp_path, otlp(("team", 1, 0.5), ("useful", 2, 1.0), ("polite", 3, 0.0))))
    (problem,) = traces.problems
    assert problem.kind == "unsettled-rewards" and "polite, useful" in problem.expected
    assert float(traces.reward[0]) == 0.5 and "event_reward" not in traces.evidence


def test_equal_scores_of_one_channel_are_one(tmp_path: Path) -> None:
    equal = {
        "langfuse": langfuse(SOLVED, SOLVED),
        "langsmith": langsmith({"key": "ok", "score": 0.3}, stats={"ok": {"n": 3, "avg": 0.1 + 0.2}}),
        "harbor": harbor({"rewards": {"reward": 1}, "reward": 1}),
        "who": who_and_when(is_correct=True, is_corrected=True),
    }
    for name, files in equal.items():
        traces = read(write(tmp_path / name, files))
        assert traces.problems == () and np.isfinite(traces.reward[0]), name
