"""Words in a trainer's table: outcomes as pass and fail, and times that end in UTC."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.reports.outcome_differences import outcome_differences
from graphs.errors import CreditError, UnreadWarning
from graphs.logs import read
from graphs.reading.tables.outcome_words import PAIRS
from graphs.traces.batch import Traces
from graphs.writers.native import write


def read_outcomes(folder: Path, *outcomes: str) -> Traces:
    """Two rows a trace, each with the outcome."""
    lines = [f"t{place},q,{outcome}" for place, outcome in enumerate(outcomes) for _ in range(2)]
    (path := folder / "log.csv").write_text("\n".join(["trace,group,reward", *lines, ""]))
    return read(path)


@pytest.mark.parametrize(("one", "zero"), PAIRS)
def test_an_outcome_of_a_table_may_be_a_word(one: str, zero: str, tmp_path: Path) -> None:
    """Each trace of a table with `success` was refused, though a table of `--rewards` may have it."""
    traces = read_outcomes(tmp_path, one.upper(), zero, one, "")
    assert np.asarray(traces.reward)[:4] == pytest.approx([1, 0, 1, np.nan], nan_ok=True)
    (told,) = [problem for problem in traces.problems if problem.kind == "worded-outcomes"]
    assert not told.is_failure and f"{one} is read as 1 (2 traces) and {zero} as 0 (1 trace)" in told.expected


@pytest.mark.parametrize(
    "pair", ["up,down", "thumbs_up,thumbs_down", "👍,👎", "like,dislike", "positive,negative", "good,bad"]
)
def test_words_of_feedback_are_outcomes(pair: str, tmp_path: Path) -> None:
    """A table of thumbs was refused row by row: "expected a finite number, or a word of true/false, …"."""
    assert np.asarray(read_outcomes(tmp_path, *pair.split(",")).reward)[:2].tolist() == [1, 0]


@pytest.mark.parametrize(("outcomes", "kept"), [(("pass", "0.5", "no"), 1), (("pass", "yes", "1"), 2)])
def test_a_mixture_refuses_the_outcomes_that_are_words(outcomes: tuple[str, ...], kept: int, tmp_path: Path) -> None:
    traces = read_outcomes(tmp_path, *outcomes)
    assert traces.traces["trace"].to_pylist() == ["t0", "t1", "t2"]
    assert np.flatnonzero(np.isfinite(np.asarray(traces.reward)[:3])).tolist() == [kept]
    assert [(p.kind, p.about) for p in traces.problems if p.is_failure] == [("mixed-outcomes", "reward")] * 2


def test_a_word_of_no_pair_names_the_pairs(tmp_path: Path) -> None:
    """It refused the trace, where in a table of rewards it refuses the outcome."""
    traces = read_outcomes(tmp_path, "1", "maybe", "cannot tell")
    assert traces.traces["trace"].to_pylist() == ["t0", "t1", "t2"]
    np.testing.assert_array_equal(np.asarray(traces.reward)[:3], np.array([1, np.nan, np.nan], np.float32))
    assert [(p.kind, p.trace, p.about) for p in traces.problems if p.is_failure] == [("bad-type", "t1", "reward")]
    assert all("success/failure" in p.expected and "--outcomes" in p.expected for p in traces.problems if p.is_failure)
    assert "untold-outcomes" in {p.kind for p in traces.problems}


def feedback(place: int, *, score: float | None, value: object, kind: str) -> list[dict[str, Any]]:
    """A run of a model with what a tracing system has of its outcome."""
    trace = f"t{place}"
    if kind == "langsmith":
        run = {"id": trace, "trace_id": trace, "name": "m", "run_type": "llm", "dotted_order": f"a{place}"}
        return [run, {"key": "outcome", "score": score, "value": value, "run_id": trace, "trace_id": trace}]
    if kind == "langsmith statistics":
        stats = {"outcome": {"n": 1, "avg": score, "values": {value: 1}}}
        return [{"id": trace, "trace_id": trace, "name": "m", "run_type": "llm", "dotted_order": f"a{place}",
                 "feedback_stats": stats}]  # fmt: skip
    if kind == "langfuse":
        verdict = {"id": f"s{place}", "name": "outcome", "traceId": trace, "value": 0 if score is None else score,
                   "dataType": "CATEGORICAL" if score is None else "NUMERIC", "stringValue": value}  # fmt: skip
        call = {"id": f"g{place}", "type": "GENERATION", "traceId": trace, "startTime": "2026-01-01T00:00:00.000Z"}
        record: dict[str, Any] = {
            "id": trace,
            "projectId": "p",
            "name": "x",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "scores": [verdict],
        }
        return [{"trace": record, "observations": [call]}]
    stem = "gen_ai.evaluation"
    stated: dict[str, object] = {f"{stem}.name": "reward", f"{stem}.score.label": value}
    stated |= {} if score is None else {f"{stem}.score.value": score}
    if kind == "openinference":
        stem = "evaluations.0.evaluation"
        stated = {f"{stem}.name": "reward", f"{stem}.label": value} | (
            {} if score is None else {f"{stem}.score": score}
        )
    attributes: dict[str, object] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    if kind == "openinference":
        attributes = {"openinference.span.kind": "LLM"} | stated

    def wire(values: dict[str, object]) -> list[dict[str, object]]:
        return [{"key": key, "value": {"stringValue": of} if isinstance(of, str) else {"doubleValue": of}}
                for key, of in values.items()]  # fmt: skip

    span = {"traceId": f"{place + 1:032x}", "spanId": f"{place + 1:016x}", "name": "chat m", "startTimeUnixNano": "1",
            "endTimeUnixNano": "2", "attributes": wire(attributes), "events": [
                {"name": "gen_ai.evaluation.result", "timeUnixNano": "2", "attributes": wire(stated)}
            ] if kind == "otlp" else []}  # fmt: skip
    return [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}]


KINDS = ("langsmith", "langsmith statistics", "langfuse", "otlp", "openinference")


def read_words_of(folder: Path, kind: str, stated: list[tuple[float | None, object]], **options: Any) -> Traces:
    lines = [line for place, (score, value) in enumerate(stated)
             for line in feedback(place, score=score, value=value, kind=kind)]  # fmt: skip
    (path := folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadWarning)
        return read(path, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_beside_an_empty_score_is_read_by_the_rule_of_tables(kind: str, tmp_path: Path) -> None:
    """LangSmith's `"score": null, "value": "resolved"` was no outcome, without a word about it."""
    words: list[tuple[float | None, object]] = [(None, "resolved"), (None, "Unresolved"), (None, "escalated")]
    traces = read_words_of(tmp_path, kind, words)
    np.testing.assert_array_equal(np.asarray(traces.reward)[:3], np.array([1, 0, np.nan], np.float32))
    kinds = {problem.kind: problem for problem in traces.problems}
    assert kinds.keys() == {"worded-outcomes", "bad-type"} and kinds["bad-type"].value == "'escalated'"
    assert "resolved is read as 1 (1 trace) and unresolved as 0 (1 trace)" in kinds["worded-outcomes"].expected
    declared = read_words_of(tmp_path, kind, words, outcomes={"Escalated": 0.25})
    assert np.asarray(declared.reward)[:3].tolist() == [1, 0, 0.25]
    (told,) = declared.problems
    assert told.kind == "worded-outcomes" and "escalated is read as 0.25 (1 trace)" in told.expected


@pytest.mark.parametrize("kind", KINDS)
def test_words_beside_scores_of_other_traces_are_refused_and_named(kind: str, tmp_path: Path) -> None:
    """With a score on half of the traces, the other half had no outcome and no note."""
    stated: list[tuple[float | None, object]] = [(1.0, "resolved"), (0.0, "unresolved"), (None, "resolved")]
    traces = read_words_of(tmp_path, kind, stated)
    np.testing.assert_array_equal(np.asarray(traces.reward)[:3], np.array([1, 0, np.nan], np.float32))
    (problem,) = traces.problems
    assert (problem.kind, problem.is_failure) == ("mixed-outcomes", True) and "--outcomes" in problem.expected
    declared = read_words_of(tmp_path, kind, stated, outcomes={"resolved": 1})
    assert np.asarray(declared.reward)[:3].tolist() == [1, 0, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_category_is_named_once_and_no_channel(kind: str, tmp_path: Path) -> None:
    traces = read_words_of(tmp_path, kind, [(None, "billing"), (None, "shipping")])
    assert not np.isfinite(np.asarray(traces.reward)[:2]).any() and len(traces.reward_channels) == 0
    (problem,) = traces.problems
    assert (problem.kind, problem.count, problem.is_failure) == ("category-score", 2, False)
    assert "billing, shipping, of the score" in problem.value and "--outcomes" in problem.expected


@pytest.mark.parametrize("kind", [*KINDS, "table"])
def test_a_reward_beside_the_outcome_is_read_whole_or_not_at_all(kind: str, tmp_path: Path) -> None:
    """Of resolved and escalated the first was read, and "By resolved 0 of 53 (0 %) failed"."""
    words, path = ("resolved", "Resolved", "escalated"), tmp_path / "log"
    if kind == "table":
        rows = (f"t{i},,{word},{i % 2}" for i, word in enumerate(words))
        path.write_text("\n".join(["trace,reward,rewards.resolved,rewards.grade", *rows]))
    else:
        lines = [re.sub('"(reward|outcome)"', f'"{name}"', json.dumps(line))
                 for i, name, score, value in [*((i, "resolved", None, word) for i, word in enumerate(words)),
                                               (3, "grade", 0.0, "0"), (4, "grade", 1.0, "1")]
                 for line in feedback(i, score=score, value=value, kind=kind)]  # fmt: skip
        path.write_text("\n".join(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadWarning)
        traces = read(path)
        declared = read(path, outcomes={"escalated": 0})
    assert [*traces.reward_channels] == ["grade"]
    (problem,) = (one for one in traces.problems if one.about)
    assert (problem.kind, problem.count, problem.is_failure) == ("category-score", 1, False)
    assert sorted(declared.evidence["rewards.resolved"].amounts.tolist()) == [0, 1, 1]
    said = "resolved is not read: its words are not known (escalated): say what they mean by --outcomes"
    for arguments in (["summary"], ["summary", "--reward-channel", "grade"]):
        shown = " ".join(CliRunner().invoke(cli, [arguments[0], str(path), *arguments[1:]]).stdout.split())
        assert shown.count(said) == 1
    refused = CliRunner().invoke(cli, ["summary", str(path), "--reward-channel", "resolved"])
    assert refused.exit_code == 1 and said.partition(": ")[2] in " ".join(refused.output.split())


def test_each_reward_that_is_not_read_is_told(tmp_path: Path) -> None:
    """Of two, one note stood for both, and named the first alone."""
    rows = "t0,1,resolved,good", "t1,0,escalated,fair", "t2,0,escalated,fair", ""
    (path := tmp_path / "log.csv").write_text("\n".join(["trace,reward,rewards.a,rewards.b", *rows]))
    assert [problem.about for problem in read(path).problems] == ["rewards.a", "rewards.b"]
    shown = " ".join(CliRunner().invoke(cli, ["summary", str(path)]).stdout.split())
    assert "a is not read: its words are not known (escalated)" in shown
    assert "b is not read: its words are not known (fair)" in shown


@pytest.mark.parametrize("kind", ["log", "rewards"])
def test_words_of_tables_mean_what_the_user_says(kind: str, tmp_path: Path) -> None:
    words = ("resolved", "ESCALATED", "unresolved", "2")
    (path := tmp_path / "log.csv").write_text(
        "trace,group,reward\n" + "".join(f"t{i},q,{word if kind == 'log' else ''}\n" for i, word in enumerate(words))
    )
    (table := tmp_path / "outcomes.csv").write_text(
        "trace,reward\n" + "".join(f"t{i},{w}\n" for i, w in enumerate(words))
    )
    meant = {"escalated": 0.5, "resolved": 1, "unresolved": 0}
    traces = read(path, outcomes=meant, rewards=table if kind == "rewards" else None)
    assert np.asarray(traces.reward)[:4].tolist() == [1, 0.5, 0, 2]
    assert [problem.kind for problem in traces.problems] == ["worded-outcomes"]


@pytest.mark.parametrize("outcomes", [{"": 0}, {"a": "x"}, {"a": float("nan")}, {"1": 0}, {"a": 0, "A": 1}, ["a"]])
def test_what_words_mean_is_checked(outcomes: Any, tmp_path: Path) -> None:
    with pytest.raises(CreditError, match="outcomes"):
        read(tmp_path, outcomes=outcomes)


@pytest.mark.parametrize("form", ["{} UTC", "{}+00:00", "{}Z"])
def test_a_time_may_end_in_utc(form: str, tmp_path: Path) -> None:
    """`2026-11-29 12:00:00 UTC`, as BigQuery exports it, refused its trace."""
    moments = [form.format(f"2026-11-29 12:00:0{second}") for second in (0, 5.5)]
    (path := tmp_path / "log.csv").write_text("trace,reward,time\n" + "".join(f"t,1,{time}\n" for time in moments))
    (second, third), traces = (1795953600.0, 1795953605.5), read(path)
    assert traces.problems == () and np.asarray(traces.graph.time)[:2].tolist() == [0, third - second]


@pytest.mark.parametrize("kind", ["langsmith", "log", "rewards"])
def test_failed_traces_are_counted_by_their_word(kind: str, tmp_path: Path) -> None:
    """That 2 were wrong and 1 gave up stood in one note alone: both are 0."""
    words, meant = ("solved", "wrong", "gave_up", "wrong", "solved"), {"solved": 1, "wrong": 0, "gave_up": 0}
    rows = [f"t{place},{word}" for place, word in enumerate(words)]
    path, table = tmp_path / "log", tmp_path / "outcomes.csv"
    if kind == "langsmith":
        items = [one for i, word in enumerate(words) for one in feedback(i, score=None, value=word, kind=kind)]
        path.write_text("\n".join(map(json.dumps, items)))
    else:
        stated = rows if kind == "log" else [f"{row.partition(',')[0]}," for row in rows]
        path.write_text("\n".join(["trace,reward", *stated]))
        table.write_text("\n".join(["trace,reward", *rows]))
    traces = read(path, outcomes=meant, rewards=table if kind == "rewards" else None)
    found = outcome_differences(traces)
    assert found.headline().startswith("3 of 5 traces with an outcome failed: 2 wrong, 1 gave_up.")
    assert found.counts()[0].startswith("3 traces failed (outcome below 1: 2 wrong, 1 gave_up), 2 succeeded.")
    written = tmp_path / "native.jsonl"
    write(traces, written)
    assert outcome_differences(read(written)).words == found.words, "a log that was converted says it, too"
    mixed = read(path, outcomes=meant, rewards={f"t{place}": place % 2 for place in range(5)})
    assert not outcome_differences(mixed).words, "another outcome has no words"


def test_two_words_of_outcomes_are_their_numbers(tmp_path: Path) -> None:
    assert not outcome_differences(read_outcomes(tmp_path, "pass", "fail", "fail")).words


@pytest.mark.parametrize("zero", ["not solved", "Not_solved", "un-solved", "unsolved", "non-solved"])
def test_a_negation_is_the_other_side_of_its_word(zero: str, tmp_path: Path) -> None:
    """`not solved` was no word of outcomes, though `unsolved` was."""
    traces = read_outcomes(tmp_path, "solved", zero)
    assert np.asarray(traces.reward)[:2].tolist() == [1, 0]
    (told,) = traces.problems
    assert f"solved is read as 1 (1 trace) and {zero.lower()} as 0 (1 trace)" in told.expected
    (table := tmp_path / "outcomes.csv").write_text(f"trace,reward\nt0,{zero}\nt1,solved\n")
    assert np.asarray(read(tmp_path / "log.csv", rewards=table).reward)[:2].tolist() == [0, 1]
    mixed = read_outcomes(tmp_path, "pass", zero)
    assert not np.isfinite(np.asarray(mixed.reward)[:2]).any()


def test_each_channel_of_a_table_may_have_words(tmp_path: Path) -> None:
    """Words in `rewards.review` refused all traces, and `outcomes` did not reach them."""
    lines = ["trace,reward,verdict,rewards.style", "t0,1,approved,pass", "t1,0,sent back,fail", "t2,1,approved,pass"]
    (path := tmp_path / "log.csv").write_text("\n".join([*lines, ""]))
    columns = {"rewards.review": "verdict"}
    traces = read(path, columns=columns, outcomes={"approved": 1, "sent back": 0})
    assert {name: traces.evidence[f"rewards.{name}"].amounts.tolist() for name in ("team", "review", "style")} == {
        "team": [1, 0, 1], "review": [1, 0, 1], "style": [1, 0, 1]
    }  # fmt: skip
    unknown = read(path, columns=columns)
    assert [*unknown.reward_channels] == ["team", "style"] and unknown.sizes.traces == 3
    (category,) = [problem for problem in unknown.problems if problem.kind == "category-score"]
    assert category.count == 3 and "--outcomes" in category.expected
