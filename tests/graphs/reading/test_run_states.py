"""Runs that their log calls failed or withdrawn: named, counted, and left out where that is asked for."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.reports.endings import endings, lasts
from credit.reports.tool_calls import ToolCalls
from graphs.errors import CreditError
from graphs.logs import read

from .all_formats import ALL, TAU
from .samples import HARBOR_RESULT, MLFLOW, OPENHANDS, SWE_AGENT, TAU2, codex

EVENTS = [{"event": "model", "output": {"choices": [{"message": {}}], "usage": {"input_tokens": 3}}}]
INSPECT: dict[str, Any] = {"version": 2, "status": "success", "eval": {"task": "quiz"}, "samples": []}
EPISODE = ALL["verifiers"].values[0]


def sample(epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": "q", "epoch": epoch, "input": "hi", "scores": {"match": {"value": "C"}}, "events": EVENTS} | more


def within(value: Any, *path: Any, **changes: Any) -> Any:
    """A copy in which the object at a path is changed."""
    value = copy.deepcopy(value)
    part = value
    for step in path:
        part = part[step]
    part.update(changes)
    return value


class Case(NamedTuple):
    files: dict[str, Any]
    error: str


def file(name: str, value: Any, error: str) -> Case:
    return Case({name: value}, error)


FAILED = {
    "inspect-ai": file("l.json", INSPECT | {"samples": [sample(error={"message": "no sandbox"})]}, "no sandbox"),
    "verifiers": file(
        "t.jsonl",
        EPISODE | {"ok": False, "errors": [{"type": "SandboxError", "message": "lost"}]},
        "SandboxError: lost",
    ),
    "verifiers agent": file("t.jsonl", within(EPISODE, "traces", 0, ok=False), "ok is false"),
    "verifiers results": file(
        "results.jsonl", ALL["verifiers results"].values[0] | {"error": {"error": "ModelError"}}, "ModelError"
    ),
    "tau2-bench": file(
        "r.json", within(TAU2, "simulations", 0, termination_reason="infrastructure_error"), "infrastructure_error"
    ),
    "tau-bench": file("log.json", [within(TAU, "info", error="no user")], "no user"),
    "openhands": file("output.jsonl", OPENHANDS | {"error": "RuntimeError"}, "RuntimeError"),
    "swe-agent": file("i.traj", within(SWE_AGENT, "info", exit_status="submitted (exit_api)"), "exit_api"),
    "harbor": Case(
        {
            "t/result.json": HARBOR_RESULT
            | {"exception_info": {"exception_type": "EnvError", "exception_message": "m", "exception_traceback": ""}},
            "t/agent/trajectory.json": ALL["atif"].values[0],
        },
        "EnvError: m",
    ),
    "mlflow": file("m.json", within(MLFLOW, "info", state="ERROR"), "ERROR"),
    "root span": file("m.json", within(MLFLOW, "data", "spans", 0, status={"code": "STATUS_CODE_ERROR"}), "root span"),
}
"""A run that failed, of each format that says so, and a part of what it says."""


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value) + "\n")
    return folder


def native(folder: Path) -> None:
    event = {"id": "e", "type": "message", "agent": "a"}
    write(folder, {"n.json": {"trace_id": "whole", "task_id": "n", "events": [event], "rewards": {"team": 1.0}}})


@pytest.mark.parametrize("name", FAILED)
def test_a_run_that_failed_is_named_and_left_out_where_that_is_asked_for(name: str, tmp_path: Path) -> None:
    """It was read with its reward, and nothing said so."""
    native(tmp_path)
    write(tmp_path, FAILED[name].files)
    kept, left = read(tmp_path), read(tmp_path, errors="drop")
    assert kept.sizes.traces == 2 and left.traces["trace"].to_pylist() == ["whole"]
    for traces in (kept, left):
        (problem,) = (problem for problem in traces.problems if problem.kind == "run-error")
        assert FAILED[name].error in problem.value and not problem.is_failure
        assert problem.trace in kept.traces["trace"].to_pylist()
    assert np.isfinite(kept.reward[:2]).sum() == 2 - (name in ("swe-agent",)), "the reward that the log states"


TURNS = "MaxTurnsExceeded: agent stopped after 12 turns"
GRAPH = (
    "GraphRecursionError('Recursion limit of 25 reached')Traceback (most recent call last):\n  File \"a.py\", line 1"
)
BUDGET = 'Traceback (most recent call last):\n  File "a.py"\nlitellm.BudgetExceededError: Budget has been exceeded!'
API = "TimeoutError: of the API"
PARENTS = {"spanId": "parentSpanId", "run_type": "parent_run_id", "span_attributes": "span_parents"}
"""By a field that each span of OTLP, LangSmith and Braintrust has, that of its parent."""
PARENTS |= {"startTime": "parentObservationId", "span_data": "parent_id", "op_name": "parent_id"}


def of_root(value: Any, changes: dict[str, Any]) -> Any:
    """The value, with changes in its spans without a parent."""
    if isinstance(value, list | tuple):
        return [of_root(part, changes) for part in value]
    if not isinstance(value, dict):
        return value
    if any(field in value and not value.get(parent) for field, parent in PARENTS.items()):
        return value | changes
    return {name: of_root(part, changes) for name, part in value.items()}


def otlp(message: str, name: str = "", *, raised: str = "") -> dict[str, Any]:
    def text(key: str, value: str) -> dict[str, Any]:
        return {"key": key, "value": {"stringValue": value}}

    of_agent = [text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", "planner")]
    events = [{"name": "exception", "attributes": [text("exception.type", raised)]}] if raised else []
    named = [text("error.type", name)] if name else []
    return {"status": {"code": 2, "message": message}, "attributes": of_agent + named, "events": events}


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("otlp of gen_ai", otlp(TURNS, "MaxTurnsExceeded"), TURNS),
        ("otlp of gen_ai", otlp("stop", "pydantic_ai.exceptions.UsageLimitExceeded"), "UsageLimitExceeded: stop"),
        ("otlp of gen_ai", otlp("", raised="langgraph.errors.GraphRecursionError"), "GraphRecursionError"),
        ("langsmith", {"error": GRAPH}, "Recursion limit of 25"),
        ("braintrust", {"error": BUDGET}, "Budget has been"),
        ("weave", {"exception": BUDGET}, "Budget has been"),
        ("langfuse lines", {"level": "ERROR", "statusMessage": TURNS}, TURNS),
        ("openai-agents", {"error": {"message": "Max turns exceeded", "data": {}}}, "Max turns exceeded"),
    ],
)
def test_an_error_by_which_a_limit_ends_a_run_is_the_limit(
    name: str, changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """Runs that stopped after so many turns were errors of their own, in words that named the root span alone."""
    values = of_root(ALL[name].values, changes)
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))
    for errors in ("keep", "drop"):
        traces = read(tmp_path, errors=errors)
        (problem, *_) = (one for one in traces.problems if one.kind in ("run-error", "run-limit"))
        assert words in problem.value and (problem.kind, problem.is_failure) == ("run-limit", False)
        assert traces.evidence["metrics.ended_at_limit"].array.any()
        assert "metrics.ended_in_error" not in traces.evidence
        assert any(words in one.words and "at a limit" in one.words for one in endings(traces))


HIT = "You've hit your usage limit. Try again at 3:00 PM."


@pytest.mark.parametrize(
    ("payload", "kind", "words"),
    [
        ({"type": "error", "codex_error_info": "usage_limit_exceeded", "message": HIT}, "run-limit", "usage_limit_ex"),
        ({"type": "error", "codex_error_info": "context_window_exceeded", "message": "x"}, "run-limit", "context_win"),
        ({"type": "error", "codex_error_info": "session_budget_exceeded", "message": "x"}, "run-limit", "session_bud"),
        ({"type": "turn_aborted", "reason": "budget_limited"}, "run-limit", "budget_limited"),
        ({"type": "task_complete", "error": {"message": HIT, "codex_error_info": "usage_limit_exceeded"}}, "run-limit",
         HIT),
        ({"type": "error", "codex_error_info": "server_overloaded", "message": "busy"}, "run-error", "busy"),
        ({"type": "error", "codex_error_info": {"http_connection_failed": {"http_status_code": 502}}}, "run-error",
         "http_connection_failed"),
        ({"type": "error", "codex_error_info": "other", "message": "odd"}, "run-error", "'odd'"),
        ({"type": "error", "codex_error_info": "thread_rollback_failed", "message": "x"}, "", ""),
        ({"type": "turn_aborted", "reason": "interrupted"}, "", ""),
        ({"type": "task_complete", "last_agent_message": "done"}, "", ""),
    ],
)  # fmt: skip
def test_a_limit_or_an_error_that_ends_a_codex_session_is_named(
    payload: dict[str, Any], kind: str, words: str, tmp_path: Path
) -> None:
    """A session that its plan's quota ended looked like one that was done."""
    notice = codex(
        "response_item", 8, type="message", role="user", content=[{"type": "input_text", "text": "<turn_aborted>"}]
    )
    lines = [*ALL["codex"].values, codex("event_msg", 7, **payload), notice]
    more = [codex("response_item", 9, type="message", role="assistant", content=[{"type": "output_text", "text": "y"}])]
    for after in ([], more):  # in a session that went on it is no end
        (tmp_path / "rollout-1.jsonl").write_text("".join(json.dumps(value) + "\n" for value in [*lines, *after]))
        traces = read(tmp_path)
        found = [problem for problem in traces.problems if problem.kind.startswith("run-")]
        assert [problem.kind for problem in found] == ([kind] if kind and not after else [])
        assert all(words in problem.value for problem in found)
        told = "at a limit" if kind == "run-limit" else "in an error"
        assert any(told in one.words and words.strip("'") in one.words for one in endings(traces)) == bool(found)


@pytest.mark.parametrize("name", ["openhands", "openhands-sdk"])
@pytest.mark.parametrize("words", [
    "RuntimeError: Agent reached maximum iteration. Current iteration: 30, max iteration: 30",
    "RuntimeError: Agent reached maximum iteration in headless mode. Current iteration: 30, max iteration: 30",
    "RuntimeError: Agent reached maximum budget for conversation. Current budget: 5.01, max budget: 5.00",
    "MaxIterationsReached: Agent reached maximum iterations limit (500).",
    "STATUS$ERROR_MAX_ITERATIONS",
    "Last error: the remote conversation ended. MaxIterationsReached: Agent reached maximum iterations limit (500)",
])  # fmt: skip
def test_a_limit_that_an_error_has_in_its_words_is_no_failure_of_the_harness(
    name: str, words: str, tmp_path: Path
) -> None:
    """OpenHands' runs of 30 iterations were failures of the harness: success was higher with `--errors drop`."""
    values: list[Any] = [OPENHANDS | {"error": words}]
    if name == "openhands-sdk":
        code, _, detail = words.partition(": ")
        error = {"kind": "ConversationErrorEvent", "id": "err", "source": "environment", "code": code, "detail": detail}
        values = [*ALL[name].values, error | {"timestamp": "2026-01-01T00:00:09.000000"}]
    (tmp_path / "output.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))
    traces = read(tmp_path, errors="drop")
    assert [one.kind for one in traces.problems if one.kind.startswith("run-")] == ["run-limit"]
    assert traces.evidence["metrics.ended_at_limit"].array.any()


@pytest.mark.parametrize(
    "words",
    [
        "KeyError: 'a'",
        "MaxRetryError: Max retries exceeded",
        "OSError: reached max open files",
        "RateLimitError: 429, maximum tokens a minute reached",
        API,
        "the tool said MaxTurnsExceeded",
        "ModelError: MaxTurnsExceeded",
    ],
)
def test_another_error_of_a_run_is_told_in_its_words(words: str, tmp_path: Path) -> None:
    """They were thrown away for the name of the root span."""
    values = of_root(ALL["otlp of gen_ai"].values, otlp(words))
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))
    traces = read(tmp_path)
    (problem, *_) = (one for one in traces.problems if one.kind == "run-error")
    assert words in problem.value
    assert "metrics.ended_at_limit" not in traces.evidence
    (ending,) = (one for one in endings(traces) if "in an error" in one.words)
    assert words in ending.words
    (said,) = {said for _, _, said in lasts(traces, ToolCalls(traces)).values()}
    assert said == f": {problem.value}"


@pytest.mark.parametrize("name", ["inspect-ai", "verifiers", "tau2-bench", "openhands", "swe-agent", "spans of mlflow"])
def test_a_run_without_an_error_is_none(name: str, tmp_path: Path) -> None:
    samples = {name: sample for name, sample in ALL.items() if name != "inspect-ai"}
    value: Any = INSPECT | {"samples": [sample()]} if name == "inspect-ai" else samples[name].values[0]
    write(tmp_path, {"i.traj" if name == "swe-agent" else "l.json": value})
    assert "run-error" not in {problem.kind for problem in read(tmp_path, errors="drop").problems}


def test_an_attempt_that_was_repeated_leaves_its_error_in_a_run_that_is_whole(tmp_path: Path) -> None:
    repeated = EPISODE | {"ok": True, "errors": [{"type": "SandboxError", "message": "lost"}]}
    assert read(write(tmp_path, {"t.json": repeated})).problems == ()


def test_a_sample_that_was_invalidated_has_no_outcome(tmp_path: Path) -> None:
    """It was read with its score."""
    why = {"timestamp": "2026-01-01T00:00:00Z", "author": "me", "reason": "leaked answer"}
    log = INSPECT | {"invalidated": True, "samples": [sample(1, invalidation=why), sample(2)]}
    traces = read(write(tmp_path, {"l.json": log}))
    assert np.isnan(traces.reward[0]) and float(traces.reward[1]) == 1.0
    (problem,) = traces.problems
    assert (problem.kind, problem.trace, problem.is_failure) == ("invalidated", "l/q/1", False)
    assert "leaked answer" in problem.value


def test_a_reward_that_harbor_calls_invalid_is_no_outcome(tmp_path: Path) -> None:
    """A trial whose model was not reached was a failure of the agent; its error said that the reward counts."""
    files = FAILED["harbor"].files
    for change, kind, value in (
        ({"reward_valid": True}, "run-error", "EnvError: m"),
        ({"reward_valid": False}, "invalidated", "reward_valid is false: EnvError: m"),
        ({"reward_valid": False, "exception_info": None}, "invalidated", "reward_valid is false"),
    ):
        traces = read(write(tmp_path, files | {"t/result.json": files["t/result.json"] | change}))
        assert bool(np.isnan(traces.reward[0])) is (kind == "invalidated")
        assert [(problem.kind, problem.value.strip("'")) for problem in traces.problems] == [(kind, value)]


def test_a_log_that_does_not_say_which_samples_were_invalidated_has_no_outcome(tmp_path: Path) -> None:
    log = INSPECT | {"invalidated": True, "samples": [sample(1), sample(2)]}
    traces = read(write(tmp_path, {"l.json": log}))
    assert np.isnan(traces.reward[:2]).all() and [problem.kind for problem in traces.problems] == ["invalidated"] * 2


def test_failed_runs_are_counted_by_validate_and_left_out_by_an_option(tmp_path: Path) -> None:
    native(tmp_path)
    write(tmp_path, FAILED["tau2-bench"].files)
    result = CliRunner().invoke(cli, ["validate", str(tmp_path)])
    assert result.exit_code == 0 and "1 run-error" in result.output
    result = CliRunner().invoke(cli, ["validate", "--errors", "drop", "--json", str(tmp_path)])
    assert json.loads(result.stdout)["traces"] == 1


def test_another_name_of_what_is_done_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CreditError, match="errors is 'ignore'; expected one of keep, drop"):
        read(tmp_path, errors="ignore")
