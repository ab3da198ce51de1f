"""Calls of Weave and spans of Braintrust beyond the logs whose meaning is written out."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.traces.batch import Traces

from ..samples import BRAINTRUST, WEAVE

EXAMPLES = [call["id"] for call in WEAVE if "predict_and_score" in call["op_name"]]


def written(folder: Path, values: list[Any]) -> Traces:
    folder.mkdir(exist_ok=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(value) + "\n" for value in values))
    return read(folder)


def test_an_evaluation_is_a_trace_for_each_example(tmp_path: Path) -> None:
    traces = written(tmp_path, WEAVE)
    rows = traces.traces.to_pylist()
    assert len(EXAMPLES) == 4 and {row["trace"] for row in rows} > set(EXAMPLES) and len(rows) == 5
    of_rows = {row["group"] for row in rows if row["trace"] in EXAMPLES}
    assert len(of_rows) == 2 and all("/attr/rows/id/" in group for group in of_rows)
    assert sorted(traces.reward[:4].tolist()) == [0, 0, 1, 1]


def test_evaluations_of_two_models_on_one_row_are_two_groups(tmp_path: Path) -> None:
    """What is evaluated is a team of its own, whatever language model it calls."""
    calls = json.loads(json.dumps(WEAVE))
    examples = [call for call in calls if "predict_and_score" in call["op_name"]]
    for number, call in enumerate(examples):
        call["inputs"] = {"example": "weave:///e/p/object/row:1", "model": f"weave:///e/p/op/lead:{number % 2}"}
    traces = written(tmp_path, calls).traces.to_pylist()
    groups = {row["system"]: row["group"] for row in traces if row["system"]}
    assert set(groups) == {"e/p/op/lead:0", "e/p/op/lead:1"}
    assert len(set(groups.values())) == 2


def test_examples_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    """Without the call between, the model calls below it may be of any example."""
    lead = next(call["id"] for call in WEAVE if "/op/lead:" in call["op_name"] and call["parent_id"] in EXAMPLES)
    traces = written(tmp_path, [call for call in WEAVE if call["id"] != lead])
    assert not set(EXAMPLES) & set(traces.traces["trace"].to_pylist())
    assert {problem.kind for problem in traces.problems} == {"missing-parent"}


def test_what_surrounds_an_evaluation_is_a_trace_of_its_own(tmp_path: Path) -> None:
    outer = {"id": "o", "trace_id": "T", "op_name": "main", "started_at": "2026-01-01T00:00:00Z"}
    call = {"parent_id": "o", "op_name": "complete", "attributes": {"weave": {"kind": "llm"}}}
    inside = {"id": "p", "parent_id": "e", "op_name": "Evaluation.predict_and_score"}
    calls = [outer, outer | call | {"id": "c"}, outer | {"id": "e", "parent_id": "o", "op_name": "Evaluation.evaluate"}]
    calls += [outer | inside, outer | call | {"id": "d", "parent_id": "p"}]
    traces = written(tmp_path, calls)
    assert dict(zip(traces.traces["trace"].to_pylist(), traces.events["event"].to_pylist(), strict=True)) == {
        "T": "c", "p": "d",
    }  # fmt: skip


def test_calls_that_state_neither_a_kind_nor_usage_are_no_events(tmp_path: Path) -> None:
    plain = [{key: part for key, part in call.items() if key not in ("attributes", "summary")} for call in WEAVE]
    with pytest.raises(NothingReadError) as caught:
        written(tmp_path, plain)
    assert {problem.kind for problem in caught.value.problems} == {"no-events"}


def judged(*feedback: tuple[str, Any]) -> list[Any]:
    """The lead's own run with this feedback on it, and a step of .25 on its first model call."""
    calls = [call for call in WEAVE if call["trace_id"] != WEAVE[0]["trace_id"]]
    first = next(call["id"] for call in calls if (call.get("attributes") or {}).get("weave", {}).get("kind") == "llm")
    given = [{"id": f"f{i}", "feedback_type": kind, "payload": value} for i, (kind, value) in enumerate(feedback)]
    step = [{"id": "s", "feedback_type": "wandb.runnable.step", "payload": {"output": 0.25}}]
    of = {call["id"]: step if call["id"] == first else [] if call.get("parent_id") else given for call in calls}
    return [call | {"summary": call["summary"] | {"weave": {"feedback": of[call["id"]]}}} for call in calls]


def test_feedback_of_scorers_and_of_people_is_a_reward(tmp_path: Path) -> None:
    """It was not read: a run that a monitor or a person judges had no outcome."""
    scorer, reaction = (
        ("wandb.runnable.judge", {"output": {"right": True, "why": "x"}}),
        ("wandb.reaction.1", {"emoji": "x"}),
    )
    traces = written(tmp_path, judged(scorer, reaction))
    assert (
        traces.problems == () and traces.reward[0] == 1 and float(traces.evidence["event_reward"].amounts.sum()) == 0.25
    )


@pytest.mark.parametrize("output", ["0.8", "true", {"right": "1", "why": "x"}])
def test_a_scorer_that_states_its_number_as_a_text_alone_is_refused(tmp_path: Path, output: Any) -> None:
    """The run had no outcome, without a word; other formats refuse such a score."""
    with pytest.raises(NothingReadError) as caught:
        written(tmp_path, judged(("wandb.runnable.judge", {"output": output})))
    (problem,) = caught.value.problems
    assert problem.kind == "bad-value" and problem.field.startswith("judge")
    with pytest.raises(NothingReadError, match="bad-value"):
        written(tmp_path, [_scored(call, {"match": output}) for call in WEAVE if call["trace_id"] == EVALUATION])


def test_texts_beside_the_number_of_a_scorer_are_details_of_it(tmp_path: Path) -> None:
    scores = {"match": {"right": True, "answer": "42"}, "words": "polite"}
    traces = written(tmp_path, [_scored(call, scores) for call in WEAVE if call["trace_id"] == EVALUATION])
    assert [(p.kind, "polite, of the score words" in p.value) for p in traces.problems] == [("category-score", True)]
    assert list(traces.reward_channels) == ["match.right", "team"]
    worded = scores | {"words": "PASS"}  # was no score, without a note
    traces = written(tmp_path, [_scored(call, worded) for call in WEAVE if call["trace_id"] == EVALUATION])
    assert [p.kind for p in traces.problems] == ["worded-outcomes"]
    assert list(traces.reward_channels) == ["match.right", "words"]


EVALUATION = WEAVE[0]["trace_id"]


def _scored(call: Any, scores: dict[str, Any]) -> Any:
    """The call; an example has these scores."""
    is_example = call["id"] in EXAMPLES
    return call | {"output": call["output"] | {"scores": scores}} if is_example else call


def test_one_row_in_two_experiments_of_braintrust_is_one_task(tmp_path: Path) -> None:
    """The experiment's id was part of the task, then a version of the system: each run of one has another."""
    shared = {"root_span_id": "e", "metrics": {"start": 1}}
    rows: list[dict[str, Any]] = []
    for name in ("before", "after"):
        trial = {"id": name, "span_id": name, "root_span_id": name, "experiment_id": name, "input": {"q": 1}}
        rows.append(shared | trial | {"span_attributes": {"type": "eval"}})
        call = {"id": f"{name} c", "span_id": f"{name} c", "root_span_id": name, "span_parents": [name]}
        rows.append(shared | call | {"span_attributes": {"type": "llm"}})
    written(tmp_path, rows)
    traces = read(tmp_path).traces.to_pylist()
    assert [row["system"] for row in traces] == [None, None] and len({row["group"] for row in traces}) == 1


def test_metadata_of_users_refuse_no_row_of_braintrust(tmp_path: Path) -> None:
    """A `model` of theirs that is an object refused the trace, though the row's span is no model call."""
    own = {"model": {"name": "m"}, "agent_name": ["a"], "to_agent": 3, "triggered": "yes"}
    rows = [{**row, "metadata": own} if row["span_attributes"]["type"] == "tool" else row for row in BRAINTRUST]
    assert rows != BRAINTRUST
    plain, other = (written(tmp_path / name, log) for name, log in (("plain", BRAINTRUST), ("own", rows)))
    assert not other.problems and other.events.drop(["file", "offset"]).equals(plain.events.drop(["file", "offset"]))


@pytest.mark.parametrize("page", [{"events": BRAINTRUST, "cursor": None}, {"data": BRAINTRUST, "schema": {}}])
def test_a_page_of_braintrust_s_api_is_its_rows(tmp_path: Path, page: dict[str, Any]) -> None:
    lines, paged = written(tmp_path / "lines", BRAINTRUST), written(tmp_path / "page", [page])
    assert paged.events["event"].to_pylist() == lines.events["event"].to_pylist() and paged.reward[0] == 1


def test_a_score_of_a_call_under_the_name_of_the_outcome_is_no_reward(tmp_path: Path) -> None:
    rows = [row | {"scores": {"right": 0.5}} if row["span_attributes"]["type"] == "llm" else row for row in BRAINTRUST]
    traces = written(tmp_path, rows)
    assert traces.reward[0] == 1 and "event_reward" not in traces.evidence
    assert {problem.kind for problem in traces.problems} == {"earlier-outcome"}


def test_a_part_of_a_turn_that_states_the_agent_s_name_is_no_agent_of_its_own(tmp_path: Path) -> None:
    """Of three spans of one agent inside each other the innermost was a second instance, with a spawn and a return."""
    shared = {"root_span_id": "e", "metrics": {"start": 1}}
    named = {"span_attributes": {"type": "task"}, "metadata": {"agent_name": "lead"}}
    of_type = {"f": {"span_attributes": {"type": "tool"}}, "d": {"span_attributes": {"type": "llm"}}}
    chain = ["e", "a", "t", "u", "v", "f", "b", "c", "d"]
    rows = [shared | {"id": one, "span_id": one, "span_parents": [above]} | (of_type.get(one) or named)
            for above, one in itertools.pairwise(chain)]  # fmt: skip
    rows.append(shared | {"id": "e", "span_id": "e", "span_attributes": {"type": "task"}})
    rows.append(shared | {"id": "g", "span_id": "g", "span_parents": ["u"], "span_attributes": {"type": "llm"}})
    traces = written(tmp_path, rows)
    assert traces.agents["agent"].to_pylist() == ["a", "b"]  # a tool with the agent inside starts another instance
    assert sorted(traces.events["event"].to_pylist()) == ["b.return", "b.spawn", "d", "g"]
