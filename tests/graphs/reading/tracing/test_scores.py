"""Scores of Langfuse and feedback of LangSmith: each counts once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.traces.batch import Traces

from ..samples import LANGFUSE, OBSERVATIONS

STEP = {"id": "r", "traceId": "t", "observationId": "o2", "name": "step", "value": 0.25, "dataType": "NUMERIC"}
WHOLE = {"id": "s", "traceId": "t", "observationId": None, "name": "solved", "value": 0.5, "dataType": "NUMERIC"}


def langfuse(folder: Path, *pages: list[dict[str, Any]], nested: list[dict[str, Any]] | None = None) -> Path:
    """A trace with the scores `nested`, and a page of the API for each of the others."""
    trace = {"trace": LANGFUSE["trace"] | {"scores": nested or []}, "observations": OBSERVATIONS}
    (folder / "trace.json").write_text(json.dumps(trace))
    for number, scores in enumerate(pages):
        (folder / f"scores{number}.json").write_text(json.dumps({"data": scores, "meta": {"page": number}}))
    return folder


def langsmith(folder: Path, *feedback: dict[str, Any], stats: dict[str, Any] | None = None) -> Path:
    root = {"id": "t", "name": "x", "run_type": "chain", "trace_id": "t", "feedback_stats": stats}
    call = {"id": "a", "name": "x", "run_type": "llm", "trace_id": "t", "parent_run_id": "t"}
    (folder / "runs.jsonl").write_text("\n".join(map(json.dumps, [root, call, *feedback])))
    return folder


def feedback(score: float, run: str = "t", key: str = "ok", **more: Any) -> dict[str, Any]:
    return {"key": key, "score": score, "run_id": run, "trace_id": "t"} | more


def step_reward(traces: Traces) -> float:
    return float(np.nansum(traces.evidence["event_reward"].amounts))


def refused(path: Path) -> list[tuple[str, str]]:
    with pytest.raises(NothingReadError) as caught:
        read(path)
    return [(problem.kind, problem.trace) for problem in caught.value.problems]


def test_a_score_in_the_trace_and_on_a_page_counts_once(tmp_path: Path) -> None:
    """It counted twice."""
    traces = read(langfuse(tmp_path, [STEP, WHOLE], [STEP], nested=[STEP, WHOLE]))
    assert traces.problems == () and step_reward(traces) == 0.25 and float(traces.reward[0]) == 0.5


@pytest.mark.parametrize("kind", ["CATEGORICAL", "CORRECTION"])
@pytest.mark.parametrize("value", [0, 1.5])
def test_the_number_of_a_category_is_no_reward(tmp_path: Path, kind: str, value: float) -> None:
    """The 0 that stands for a category without a mapping was the outcome."""
    category = WHOLE | {"name": "verdict", "value": value, "stringValue": "polite", "dataType": kind}
    traces = read(langfuse(tmp_path, [category, category | {"id": "s2"}, STEP | {"dataType": kind}]))
    assert np.isnan(traces.reward[0]) and "event_reward" not in traces.evidence
    step, verdict = sorted(traces.problems, key=lambda problem: "verdict" in problem.value)
    assert [(p.kind, p.trace, p.is_failure) for p in (step, verdict)] == [("category-score", "t", False)] * 2
    of_word = kind == "CATEGORICAL"  # which is read where it has a meaning
    assert (verdict.field, step.field) == (f"scores.{'stringValue' if of_word else 'dataType'}", "scores.dataType")
    assert "step" in step.value and ("polite" in verdict.value) == of_word
    solved = WHOLE | {"value": 1, "stringValue": "True", "dataType": "BOOLEAN"}
    assert float(read(langfuse(tmp_path, [solved, category | {"id": "s2"}])).reward[0]) == 1.0


def test_a_number_that_is_written_as_a_text_counts(tmp_path: Path) -> None:
    """It was dropped, and alone it left no outcome; beside another score, that one was the outcome."""
    assert float(read(langfuse(tmp_path, [WHOLE | {"value": "0.5"}])).reward[0]) == 0.5
    tone = WHOLE | {"id": "t", "name": "tone", "value": 1.0}
    assert np.isnan(read(langfuse(tmp_path, [WHOLE | {"value": "0.5"}, tone])).reward[0]), "the user says which"


@pytest.mark.parametrize("kind", ["NUMERIC", "BOOLEAN"])
@pytest.mark.parametrize("value", ["good", "", "NaN", "1e99", "true", "[1]"])
def test_a_text_that_is_no_number_is_named(tmp_path: Path, kind: str, value: str) -> None:
    with pytest.raises(NothingReadError) as caught:
        read(langfuse(tmp_path, [WHOLE | {"value": value, "dataType": kind}]))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.field, problem.trace) == ("bad-value", "scores.value", "t")
    assert value in problem.value and "'solved'" in problem.expected and kind in problem.expected


def test_a_word_is_named_by_the_field_that_it_stands_in(tmp_path: Path) -> None:
    """LangSmith's `value` was said to be its `score`, and Langfuse's `stringValue` its `value`."""
    folders = [tmp_path / name for name in ("feedback", "stats", "langfuse")]
    for folder in folders:
        folder.mkdir()
    langsmith(folders[0], feedback(0.0) | {"score": None, "value": "pass"})
    langsmith(folders[1], stats={"ok": {"n": 1, "avg": None, "values": {"pass": 1}}})
    langfuse(folders[2], [WHOLE | {"value": 0, "stringValue": "pass", "dataType": "CATEGORICAL"}])
    told = [problem for folder in folders for problem in read(folder).problems]
    assert [problem.kind for problem in told] == ["worded-outcomes"] * 3
    assert [problem.field for problem in told] == ["value", "feedback_stats.ok.values", "scores.stringValue"]


def test_a_step_under_the_name_of_the_outcome_is_no_reward(tmp_path: Path) -> None:
    """It was added to the outcome."""
    for name in ("langfuse", "langsmith"):
        (tmp_path / name).mkdir()
    same = STEP | {"name": "solved"}
    both = feedback(0.25, "a"), feedback(0.5)
    for traces in (
        read(langfuse(tmp_path / "langfuse", [WHOLE, same])),
        read(langsmith(tmp_path / "langsmith", *both)),
    ):
        assert float(traces.reward[0]) == 0.5 and "event_reward" not in traces.evidence
        assert [(problem.kind, problem.is_failure) for problem in traces.problems] == [("earlier-outcome", False)]
    value = read(tmp_path / "langfuse").evidence["value"]
    assert value.array[value.mask].tolist() == [0.25], "of the state before the next call"


def test_scores_of_two_ids_at_one_event_add_up(tmp_path: Path) -> None:
    for name in ("langfuse", "langsmith"):
        (tmp_path / name).mkdir()
    assert step_reward(read(langfuse(tmp_path / "langfuse", [STEP, STEP | {"id": "r2"}]))) == 0.5
    both = feedback(0.5, "a", id="1"), feedback(0.5, "a", id="2")
    assert step_reward(read(langsmith(tmp_path / "langsmith", *both))) == 1.0


def test_an_outcome_named_team_and_an_equal_one_named_reward_are_one(tmp_path: Path) -> None:
    team, reward = WHOLE | {"id": "1", "name": "team", "value": 1}, WHOLE | {"id": "2", "name": "reward", "value": 1}
    assert float(read(langfuse(tmp_path, [team, reward])).reward[0]) == 1


def test_a_column_of_scores_beside_a_page_of_them_is_unsettled(tmp_path: Path) -> None:
    """The column has no ids, so nothing tells whether the page repeats it."""
    rows = [row | {"traceName": "run", "step": [0.25, 0.25] if row["id"] == "o2" else None} for row in OBSERVATIONS]
    (tmp_path / "export.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert step_reward(read(tmp_path)) == 0.5
    (tmp_path / "scores.json").write_text(json.dumps({"data": [STEP], "meta": {"page": 1}}))
    traces = read(tmp_path)
    assert [problem.kind for problem in traces.problems] == ["unsettled-rewards"]
    assert "event_reward" not in traces.evidence


def test_feedback_that_is_stated_twice_counts_once(tmp_path: Path) -> None:
    """It counted twice."""
    traces = read(langsmith(tmp_path, feedback(1.0, "a", "step", id="f"), feedback(1.0, "a", "step", id="f")))
    assert step_reward(traces) == 1.0


def test_feedback_on_a_run_that_was_not_read_is_no_outcome_of_its_trace(tmp_path: Path) -> None:
    """Its `trace_id` made it the outcome."""
    traces = read(langsmith(tmp_path, feedback(1.0, "gone")))
    assert np.isnan(traces.reward[0])
    assert [(problem.kind, problem.value) for problem in traces.problems] == [("orphan-feedback", "'gone'")]
    assert float(read(langsmith(tmp_path, feedback(1.0) | {"run_id": None})).reward[0]) == 1.0


def test_feedback_on_a_root_run_that_is_not_at_hand_is_the_traces(tmp_path: Path) -> None:
    """It was lost with each run that was killed before its root was sent: the root's id is its trace's."""
    langsmith(tmp_path, feedback(0.0))
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    (tmp_path / "runs.jsonl").write_text("\n".join(lines[1:]))
    traces = read(tmp_path)
    assert traces.reward[0] == 0.0 and [problem.kind for problem in traces.problems] == ["outside-caller"]


def test_a_score_of_an_absent_observation_is_left_out_alone(tmp_path: Path) -> None:
    """It refused the trace."""
    traces = read(langfuse(tmp_path, [STEP | {"observationId": "gone"}, WHOLE]))
    (problem,) = traces.problems
    assert (problem.kind, problem.value, problem.is_failure) == ("unknown-span", "'gone'", True)
    assert traces.reward[0] == 0.5 and "event_reward" not in traces.evidence


def test_a_score_of_the_only_missing_observation_above_all_is_the_traces(tmp_path: Path) -> None:
    """It refused the trace."""
    langfuse(tmp_path, [WHOLE | {"observationId": "lost"}])
    below = [one | {"parentObservationId": one["parentObservationId"] or "lost"} for one in OBSERVATIONS]
    trace = {"trace": LANGFUSE["trace"] | {"scores": []}, "observations": below}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    traces = read(tmp_path)
    assert traces.reward[0] == 0.5 and [problem.kind for problem in traces.problems] == ["outside-caller"]


def bare(score: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A score that states no trace."""
    return {key: value for key, value in score.items() if key != "traceId"} | more


@pytest.mark.parametrize("page", ["0", "z"])  # before and after the trace
def test_a_score_without_a_trace_is_of_that_of_its_observation(tmp_path: Path, page: str) -> None:
    """It was a trace of its own without events, which is no failure, and the reward was lost."""
    scores = [bare(STEP), bare(WHOLE, observationId="o1"), bare(WHOLE, observationId="o1", traceId=None)]
    langfuse(tmp_path, scores)
    (tmp_path / "scores0.json").rename(tmp_path / f"{page}.json")
    traces = read(tmp_path)
    assert traces.problems == () and step_reward(traces) == 0.25 and float(traces.reward[0]) == 0.5


@pytest.mark.parametrize("observation", [None, "of no trace"])
def test_a_score_of_no_trace_at_hand_is_a_failure(tmp_path: Path, observation: str | None) -> None:
    """It was named as a trace without events, which is no failure."""
    traces = read(langfuse(tmp_path, [STEP, bare(WHOLE, observationId=observation)]))
    (problem,) = traces.problems
    assert (problem.kind, problem.field, problem.trace) == ("missing-field", "traceId", "")
    assert Path(problem.file).name == "scores0.json" and repr(observation or "absent").strip("'") in problem.value


@pytest.mark.parametrize("about", ["sessionId", "datasetRunId"])
def test_a_score_of_a_session_is_no_failure(tmp_path: Path, about: str) -> None:
    traces = read(langfuse(tmp_path, [STEP, bare(WHOLE, **{about: "x"})]))
    assert [(problem.kind, problem.trace) for problem in traces.problems] == [("no-events", "s")]


def test_a_score_without_a_trace_whose_value_is_no_number_refuses_that_of_its_observation(tmp_path: Path) -> None:
    assert refused(langfuse(tmp_path, [WHOLE, bare(STEP, value="much")])) == [("bad-value", "t")]
