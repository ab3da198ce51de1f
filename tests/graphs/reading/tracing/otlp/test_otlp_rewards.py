"""Evaluations in OTLP logs: which become the trace's reward, which a step's, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import Problem
from graphs.formats import otlp
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

from .span_records import make


def spans() -> list[dict[str, Any]]:
    """A workflow (1) with an agent (2): call (3), tool (4), call (5)."""
    return [
        make.span(1, 0, 0, 9, {"gen_ai.operation.name": "invoke_workflow"}),
        make.agent(2, 1, 0, 9, "lead"),
        make.chat(3, 2, 1, 2, attributes={"gen_ai.response.id": "r3"}),
        make.tool(4, 2, 3, 4),
        make.chat(5, 2, 5, 6, attributes={"gen_ai.response.id": "r5"}),
    ]


def results(folder: Path, *logs: dict[str, Any], of: list[dict[str, Any]] | None = None) -> list[TraceRecord | Problem]:
    request = make.spans_request(spans() if of is None else of)
    files = [make.write_lines(folder / "spans.jsonl", request)]
    files.append(make.write_lines(folder / "logs.jsonl", make.logs_request(list(logs))))
    return list(otlp.read([Source(file.name, file) for file in files]))


def one(folder: Path, *logs: dict[str, Any], of: list[dict[str, Any]] | None = None) -> TraceRecord:
    (record,) = results(folder, *logs, of=of)
    assert isinstance(record, TraceRecord), record
    return record


def refused(folder: Path, *logs: dict[str, Any], of: list[dict[str, Any]] | None = None) -> Problem:
    problem, *unread = results(folder, *logs, of=of)
    assert isinstance(problem, Problem) and all(isinstance(one, TraceRecord) and one.unread == () for one in unread)
    return problem


def steps(record: TraceRecord) -> dict[int, float]:
    """Step rewards by position."""
    return {i: amount for i, amount in enumerate(record.columns.get("event_reward", [])) if amount is not None}


def test_evaluations_of_the_root_and_of_no_span_are_the_traces(tmp_path: Path) -> None:
    logs = [make.evaluation("team", 0.5, of=1), make.evaluation("safety", 1), make.evaluation("team", 0.5)]
    assert one(tmp_path, *logs).rewards == {"team": 0.5, "safety": 1.0}


def test_an_evaluation_named_reward_is_the_teams(tmp_path: Path) -> None:
    assert one(tmp_path, make.evaluation("reward", 0.5)).rewards == {"team": 0.5}


def test_a_single_channel_of_another_name_is_not_guessed_to_be_the_outcome(tmp_path: Path) -> None:
    results(tmp_path, make.evaluation("correctness", 0.5))
    assert np.isnan(read(tmp_path).reward[0])
    assert read(tmp_path, reward="correctness").reward[0] == np.float32(0.5)


@pytest.mark.parametrize(("span", "position"), [(3, 0), (4, 0), (5, 3), (2, 3)])
def test_an_evaluation_of_a_span_is_its_actions(tmp_path: Path, span: int, position: int) -> None:
    assert steps(one(tmp_path, make.evaluation("useful", -0.25, of=span))) == {position: -0.25}


def test_step_rewards_of_one_action_add_up_and_repeats_do_not(tmp_path: Path) -> None:
    logs = [make.evaluation("useful", 0.25, of=span) for span in (3, 4, 4)]
    assert steps(one(tmp_path, *logs)) == {0: 0.5}


def test_the_evaluation_of_a_response_finds_its_call(tmp_path: Path) -> None:
    with_trace = make.evaluation("useful", 0.25, **{"gen_ai.response.id": "r5"})
    without = make.evaluation("useful", 0.5, **{"gen_ai.response.id": "r3"})
    del without["traceId"]
    assert steps(one(tmp_path, with_trace, without)) == {0: 0.5, 3: 0.25}


def test_where_steps_have_several_scores_event_reward_is_theirs(tmp_path: Path) -> None:
    two = [make.evaluation("useful", 1, of=3), make.evaluation("polite", 1, of=5)]
    assert list(one(tmp_path, *two).unsettled) == ["polite"]
    assert steps(one(tmp_path, *two, make.evaluation("event_reward", 0.125, of=3))) == {0: 0.125}


def test_a_step_under_the_name_of_the_outcome_is_no_reward(tmp_path: Path) -> None:
    """It was added to the outcome."""
    whole = make.evaluation("reward", 1.0)
    record = one(tmp_path, whole, make.evaluation("team", 0.5, of=3), make.evaluation("useful", 0.25, of=5))
    assert record.rewards == {"team": 1.0} and record.earlier_outcomes == "team"
    assert list(steps(record).values()) == [0.25]
    assert [value for value in record.columns["value"] if value is not None] == [0.5]


def test_span_events_carry_evaluations_too(tmp_path: Path) -> None:
    def event(name: str) -> list[dict[str, Any]]:
        given = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": 0.5}
        return [{"name": "gen_ai.evaluation.result", "attributes": make.pairs(given)}]

    with_events = spans()
    with_events[0]["events"], with_events[2]["events"] = event("team"), event("useful")
    record = one(tmp_path, of=with_events)
    assert record.rewards == {"team": 0.5} and steps(record) == {0: 0.5}


def test_the_event_name_may_be_an_attribute(tmp_path: Path) -> None:
    old = make.evaluation("team", 0.5, **{"event.name": "gen_ai.evaluation.result"})
    del old["eventName"]
    other = {"eventName": "gen_ai.choice", "traceId": "not hex", "attributes": []}
    assert one(tmp_path, old, other).rewards == {"team": 0.5}


def test_a_label_without_a_score_is_no_number(tmp_path: Path) -> None:
    label = make.evaluation("team", 1, **{"gen_ai.evaluation.score.label": "good"})
    label["attributes"] = [pair for pair in label["attributes"] if "value" not in pair["key"]]
    assert one(tmp_path, label).rewards == {}


def test_openinference_evaluations(tmp_path: Path) -> None:
    whole = {"trace.evaluations.0.evaluation.name": "reward", "trace.evaluations.0.evaluation.score": 0.5}
    more = {"trace.annotations.0.annotation.name": "style", "trace.annotations.0.annotation.score": 2}
    step = {"evaluations.0.evaluation.name": "useful", "evaluations.0.evaluation.score": 0.25}
    label = {"evaluations.1.evaluation.name": "tone", "evaluations.1.evaluation.label": "kind"}
    session = {"session.evaluations.0.evaluation.name": "team", "session.evaluations.0.evaluation.score": 9}
    llm = {"openinference.span.kind": "LLM"}
    of = [
        make.span(1, 0, 0, 9, {"openinference.span.kind": "CHAIN"} | whole | session),
        make.span(2, 1, 1, 2, llm | whole | more),
        make.span(3, 1, 3, 4, llm | step | label),
    ]
    record = one(tmp_path, of=of)
    assert record.rewards == {"team": 0.5, "style": 2.0} and steps(record) == {1: 0.25}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"doubleValue": "NaN"}, "NaN"),
        ({"doubleValue": "-Infinity"}, "-Infinity"),
        ({"stringValue": "0.5"}, "0.5"),
        ({"doubleValue": 1.5, "intValue": "2"}, "2 and 1.5"),
    ],
)
def test_scores_that_are_no_finite_numbers_are_refused(tmp_path: Path, value: dict[str, Any], shown: str) -> None:
    record = make.evaluation("team", 0)
    record["attributes"][1]["value"] = value
    problem = refused(tmp_path, record)
    assert (problem.kind, problem.field) == ("bad-attribute", "gen_ai.evaluation.score.value")
    assert shown in problem.value and problem.trace == make.TRACE and problem.file.endswith("logs.jsonl")


def test_an_evaluation_without_a_name_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, make.evaluation("", 1)).kind == "bad-attribute"


def test_the_verdict_on_a_root_that_was_never_exported_is_the_traces(tmp_path: Path) -> None:
    """It refused each killed run that a judge had scored."""
    others = [span | {"traceId": "e" * 32} for span in spans()]
    results(tmp_path, make.evaluation("team", 0.0, of=1), of=[*spans()[1:], *others])
    traces = read(tmp_path)
    assert [problem.kind for problem in traces.problems] == ["cut-short"]
    assert np.array_equal(traces.reward[:2], [0.0, np.nan], equal_nan=True)


def test_an_evaluation_of_one_of_several_missing_parents_is_left_out(tmp_path: Path) -> None:
    """Nothing says which of them is the root."""
    results(tmp_path, make.evaluation("team", 1, of=1), of=[*spans()[1:], make.chat(6, 9, 7, 8)])
    traces = read(tmp_path)
    assert np.isnan(traces.reward[0])
    assert {problem.kind for problem in traces.problems} == {"unknown-span", "cut-short"}


def test_an_evaluation_of_an_absent_part_is_left_out_alone(tmp_path: Path) -> None:
    """It refused the trace."""
    guard = make.span(6, 1, 7, 8, {"openinference.span.kind": "GUARDRAIL"})
    lost = make.evaluation("useful", 1, **{"gen_ai.response.id": "r9"})
    for absent, kind in (
        (make.evaluation("useful", 1, of=77), "unknown-span"),
        (lost, "unknown-span"),
        (make.evaluation("useful", 1, of=6), "unplaced-evaluation"),
    ):
        results(tmp_path, absent, make.evaluation("team", 0.5), of=[*spans(), guard])
        traces = read(tmp_path)
        assert traces.reward[0] == 0.5 and "event_reward" not in traces.evidence
        (problem,) = traces.problems
        assert (problem.kind, problem.trace, problem.is_failure) == (kind, make.TRACE, True)


def test_an_evaluation_of_another_log_is_a_problem_beside_the_trace(tmp_path: Path) -> None:
    record, problem = results(tmp_path, make.evaluation("team", 1, trace="e" * 32))
    assert isinstance(record, TraceRecord) and isinstance(problem, Problem)
    assert (problem.kind, problem.trace) == ("orphan-evaluation", "e" * 32)
