"""Items that are JSON and lack what tells their trace or kind: they were taken for others, and something was lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graphs.readers import read

from .test_lost_parts import LOGS, found, observation, run, score, write


def channels(folder: Path) -> dict[str, list[float]]:
    evidence = read(folder).evidence
    return {name: evidence[name].amounts.tolist() for name in evidence if name.startswith("rewards.")}


def test_a_score_that_a_trace_of_langfuse_names_only_makes_no_other_the_outcome(tmp_path: Path) -> None:
    """The other one was the only channel, and so the outcome."""
    trace = {
        "id": "t",
        "projectId": "p",
        "timestamp": "2026-01-01T00:00:00Z",
        "scores": [score("q", 1.0, "t"), "s-r-t"],
    }
    log = {"trace": trace, "observations": [observation("o", "t", "x")]}
    assert found(tmp_path, [log]) == (["t"], [("missing-part", "t")])
    assert channels(tmp_path) == {"rewards.q": [1.0]}
    (tmp_path / "scores.json").write_text(json.dumps({"data": [score("r", 0.0, "t")], "meta": {}, "projectId": "p"}))
    assert found(tmp_path, [log]) == (["t"], [])
    assert channels(tmp_path) == {"rewards.q": [1.0], "rewards.r": [0.0]}
    (tmp_path / "scores.json").unlink()
    for wrong in (0.5, True, None, [score("r", 0.0, "t")], ""):
        log["trace"] = trace | {"scores": [score("q", 1.0, "t"), wrong]}
        traces, problems = found(tmp_path, [log])
        assert traces == [] and len(problems) == 1, wrong


def test_an_observation_that_a_trace_of_langfuse_names_only_is_missed(tmp_path: Path) -> None:
    named = {"id": "t", "timestamp": "2026-01-01T00:00:00Z", "observations": ["o", "lost"], "scores": []}
    page = {"data": [named], "meta": {"page": 1}, "projectId": "p"}
    (tmp_path / "page.json").write_text(json.dumps(page))
    assert found(tmp_path, [observation("o", "t", "x")]) == (["t"], [("missing-part", "t")])


def test_an_observation_of_langfuse_without_a_time_is_no_score(tmp_path: Path) -> None:
    """It was taken for a score without a value, and lost."""
    untimed = {key: value for key, value in observation("A3", "A", "A1").items() if key != "startTime"}
    traces = read(write(tmp_path, [*LOGS["langfuse"], untimed]))
    assert traces.problems == () and traces.events["event"].to_pylist().count("A3") == 1


def test_a_run_of_langsmith_without_its_trace_is_none_of_its_own(tmp_path: Path) -> None:
    """It was a trace, and the trace of the run above it was read without it."""
    untold = run("A3", "", "A1")
    assert found(tmp_path, [*LOGS["langsmith"], untold | {"trace_id": None}]) == (
        ["B"],
        [("missing-field", ""), ("lost-row", "A")],
    )


def test_a_span_of_agent_lightning_without_an_id_is_no_attempt(tmp_path: Path) -> None:
    """It was taken for the record of an attempt: its reward was lost, and the one before it was the outcome."""

    def span(number: int, name: str, **attributes: Any) -> dict[str, Any]:
        return {"rollout_id": "r", "attempt_id": "a", "sequence_id": number, "span_id": f"s{number}", "parent_id": None,
                "trace_id": "t", "name": name, "attributes": attributes, "start_time": 0.0, "end_time": 1.0,
                "status": {"status_code": "OK"}}  # fmt: skip

    def reward(number: int, amount: float) -> dict[str, Any]:
        return span(number, "agentlightning.annotation", **{"agentlightning.reward.0.value": amount})

    log = [span(1, "openai.chat.completion"), reward(2, 0.0), reward(3, 1.0)]
    assert float(read(write(tmp_path, log)).reward[0]) == 1.0
    for lost in ({"span_id": None}, {"span_id": None, "status": None}):
        assert found(tmp_path, [*log[:2], log[2] | lost]) == ([], [("unknown-item", "r")])


def test_an_event_of_openhands_that_is_neither_action_nor_observation_refuses_its_trace(tmp_path: Path) -> None:
    """It was left out, an action among them."""
    event_of = {"timestamp": "2026-01-01T00:00:00", "source": "agent", "cause": None}
    stream = [{"id": 0, "action": "run", **event_of}, {"id": 1, "observation": "run", **event_of, "cause": 0}]
    assert found(tmp_path, stream) == (["log"], [])
    assert found(tmp_path, [*stream, {"id": 2, **event_of}]) == ([], [("missing-field", "log")])


def test_an_event_of_openhands_that_stands_twice_counts_not_twice(tmp_path: Path) -> None:
    """A second model call was made of it."""
    first = {"id": 0, "timestamp": "2026-01-01T00:00:00", "source": "agent", "cause": None, "action": "think"}
    assert found(tmp_path, [first, first | {"id": 1}]) == (["log"], [])
    assert found(tmp_path, [first, first]) == ([], [("duplicate-id", "log")])
