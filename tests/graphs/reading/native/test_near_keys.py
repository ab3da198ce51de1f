"""A misspelt key of a native log is named; it was no evidence, without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from credit.cli import cli
from graphs.errors import Problem
from graphs.formats.native.misspelt import LOOKED_AT
from graphs.formats.native.wire import EventBase, Trace
from graphs.logs import read
from graphs.logs.chunks import read_chunks
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

from .logs import extended_trace, survey_trace


def log(trace: str, event: dict[str, Any] | None = None, **more: Any) -> str:
    events = [
        {"id": "0", "type": "message", "agent": "a"},
        {"id": "1", "type": "message", "agent": "a", **(event or {})},
    ]
    return json.dumps({"trace_id": trace, "task_id": "t", "events": events, "rewards": {"team": 1.0}, **more}) + "\n"


def named(path: Path) -> list[Problem]:
    problems = read(path).problems
    assert not any(problem.is_failure for problem in problems)
    chunks = read_chunks(path, events=64)
    assert len(list(chunks)) > 0 and list(chunks.problems) == list(problems)
    return list(problems)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("form", ["plural", "upper case", "hyphens", "camel case"])
def test_misspelt_evidence_is_named(form: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    keys = [
        *EVENT_EVIDENCE,
        *(name for name in EventBase.__struct_encode_fields__ if len(name) > 4 and name != "agent"),
    ]
    for key in keys:
        camel = key.split("_")[0] + "".join(word.title() for word in key.split("_")[1:])
        plural = f"{key[:-1]}ies" if key.endswith("y") else f"{key}s"
        forms = {"plural": plural, "upper case": key.upper(), "hyphens": key.replace("_", "-"), "camel case": camel}
        for wrong in {forms[form]} - {key}:
            path.write_text(log("a", {wrong: 0.5}) + log("b", {wrong: 0.5}))
            (problem,) = named(path)
            expected = f"the key {key!r}: this one is not read"
            assert (problem.kind, problem.line, problem.field) == ("near-key", 1, f"events[1].{wrong}")
            assert (problem.value, problem.expected) == ("0.5", expected), wrong


def test_rewards_of_an_event_by_other_names_and_swapped_letters_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rewards = ("reward", "process_reward", "stepReward", "PROCESS_REWARDS")
    for wrong, key in [
        *((wrong, "event_reward") for wrong in rewards),
        ("vlaue", "value"),
        ("propnesity", "propensity"),
    ]:
        path.write_text(log("a", {wrong: 0.5}))
        (problem,) = named(path)
        expected = f"the key {key!r}: this one is not read"
        assert (problem.field, problem.expected) == (f"events[1].{wrong}", expected)
        path.write_text(log("a", {wrong: 0.5, key: 0.5}))
        assert named(path) == []


@pytest.mark.parametrize("wrong", ["time", "timestamp", "Timestamp", "ts", "created_at", "startTime"])
def test_a_time_of_an_event_by_another_name_is_named(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(log("a", {wrong: 0.5}, timestamp=3))
    (problem,) = named(path)
    assert (problem.field, problem.expected) == (f"events[1].{wrong}", "the key 't': this one is not read")
    path.write_text(log("a", {wrong: 0.5, "t": 0.5}))
    assert named(path) == []


def test_a_key_that_only_a_later_trace_has_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    later = [log(f"t{number}", {"event_rewards": 0.5}, evidence={"policy_versions": 1}) for number in range(3)]
    path.write_text(log("a") + log("b", {"latency": 1}) + "".join(later))
    first, second = named(path)
    assert (first.line, first.field) == (3, "events[1].event_rewards")
    assert (second.line, second.field) == (3, "evidence.policy_versions")
    path.write_text(log("a", {"event_reward": 0.5, "event_rewards": [0.5]}) + log("b", {"event_rewards": [0.5]}))
    assert named(path) == []


@pytest.mark.parametrize(("wrong", "key"), [("reward", "rewards"), ("evidences", "evidence"), ("Model", "model")])
def test_misspelt_keys_of_a_trace_are_named(tmp_path: Path, wrong: str, key: str) -> None:
    path = tmp_path / "log.jsonl"
    document = json.loads(log("a"))
    document.pop(key, None)
    path.write_text(json.dumps({**document, wrong: {"team": 1.0}}))
    (problem,) = named(path)
    assert (problem.field, key in problem.expected) == (wrong, True)


@pytest.mark.slow
def test_keys_in_another_place_are_named(tmp_path: Path) -> None:
    """Of a trace at an event, of an event at the trace or in its evidence: each was no evidence, without a word."""
    path = tmp_path / "log.jsonl"
    for key in TRACE_EVIDENCE:
        for text, field in ((log("a", {key: 1}), f"events[1].{key}"), (log("a", **{key: 1}), key)):
            path.write_text(text)
            (problem,) = named(path)
            assert (problem.field, problem.value) == (field, "1")
            assert problem.expected == f"the key {key!r} of the trace's 'evidence': here it is not read"
    for key in EVENT_EVIDENCE:
        for more, field in (({key: 1}, key), ({"evidence": {key: 1}}, f"evidence.{key}")):
            path.write_text(log("a", **more))
            (problem,) = named(path)
            assert (problem.field, problem.expected) == (field, f"the key {key!r} of an event: here it is not read")
    path.write_text(log("a", {"group": "g", "trace_id": "a"}))
    (problem,) = named(path)
    assert (problem.field, problem.expected) == ("events[1].group", "the key 'group' of the trace: here it is not read")
    path.write_text(log("a", {"policy_version": 1, "rewards": 2}, evidence={"policy_version": 1}))
    assert named(path) == []
    path.write_text(log("a", evidence={"policy_versions": 1}))
    (problem,) = named(path)
    assert (problem.field, problem.expected) == (
        "evidence.policy_versions", "the key 'policy_version': this one is not read",
    )  # fmt: skip


@pytest.mark.parametrize("key", ["step", "global_step"])
def test_a_step_of_a_trace_is_named_as_the_version_of_its_policy(tmp_path: Path, key: str) -> None:
    """Groups of several steps were one without a word, or over files with one that asked for a step."""
    path = tmp_path / "log.jsonl"
    trace = json.loads(log("a"))
    path.write_text(json.dumps(trace | {key: 3}))
    (problem,) = named(path)
    expected = "the key 'policy_version' of the trace's 'evidence': here it is not read"
    assert (problem.field, problem.value, problem.expected) == (key, "3", expected)
    for other in ({"evidence": {"policy_version": 3}, key: 3}, {"steps": 3}):
        path.write_text(json.dumps(trace | other))
        assert named(path) == []


@pytest.mark.parametrize("trace", [survey_trace(), extended_trace()])
def test_known_keys_and_foreign_ones_are_not(tmp_path: Path, trace: dict[str, Any]) -> None:
    path = tmp_path / "log.jsonl"
    trace = {**trace, "dataset": "x", "events": [{**event, "latency": 3, "payload": {}} for event in trace["events"]]}
    path.write_text(json.dumps(trace))
    assert [problem.kind for problem in read(path).problems if problem.kind == "near-key"] == []
    assert set(Trace.__struct_encode_fields__) >= trace.keys() - {"dataset"}


def test_a_key_beside_the_one_that_it_resembles_is_another(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(log("a", {"event_reward": 0.5, "event_rewards": [0.5]}))
    assert named(path) == []


def test_validate_says_so_and_succeeds(tmp_path: Path) -> None:
    for number in range(LOOKED_AT + 2):
        (tmp_path / f"{number:03}.json").write_text(log(f"t{number}", {"event_rewards": 0.5}))
    result = CliRunner().invoke(cli, ["validate", str(tmp_path)])
    assert result.exit_code == 0 and "near-key" in result.output and "'event_reward'" in result.output


COUNTS = {
    "cached_tokens": ["cached_input_tokens", "cached_input", "cached", "cache_read_input_tokens", "cacheReadTokens",
                      "cache_read", "prompt_cache_hit_tokens", "cachedContentTokenCount", "input_cached_tokens"],
    "cache_write_tokens": ["cache_creation_input_tokens", "cache_creation", "cacheWriteInputTokens"],
    "input_tokens": ["prompt_tokens", "promptTokens", "tokens_in", "num_prompt_tokens"],
    "tokens": ["output_tokens", "completion_tokens", "candidatesTokenCount", "token_count", "n_tokens"],
}  # fmt: skip
"""What other logs call the counts of a call."""


@pytest.mark.parametrize(("key", "wrong"), [(key, wrong) for key, words in COUNTS.items() for wrong in words])
def test_a_count_in_the_words_of_another_log_is_named(key: str, wrong: str, tmp_path: Path) -> None:
    """Cached tokens under such a key cost what others do, without a word."""
    path = tmp_path / "log.jsonl"
    others = {known: 0 for known in COUNTS if known != key}
    path.write_text(log("a", {wrong: 7} | others) + log("b", {wrong: 7} | others))
    (problem,) = named(path)
    assert (problem.field, problem.value) == (f"events[1].{wrong}", "7")
    assert problem.expected == f"the key {key!r}: this one is not read"
    path.write_text(log("a", {wrong: 7, key: 7}))
    assert named(path) == []


def test_counts_inside_an_object_are_named_each_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    details = {"cached_tokens": 5, "audio_tokens": 0}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "prompt_tokens_details": details}
    path.write_text(log("a", {"usage": usage, "input_tokens": 9}))
    assert {(problem.field, problem.expected.split("'")[1]) for problem in named(path)} == {
        ("events[1].usage.completion_tokens", "tokens"),
        ("events[1].usage.prompt_tokens_details.cached_tokens", "cached_tokens"),
    }
    path.write_text(log("a", {"usage": {"input": 9, "output": 3}}))
    assert [problem.expected.split("'")[1] for problem in named(path)] == ["input_tokens", "tokens"]
    path.write_text(log("a", {"prompt_tokens_details": details, "input_tokens": 9}))
    assert [problem.field for problem in named(path)] == ["events[1].prompt_tokens_details.cached_tokens"]


@pytest.mark.parametrize(
    "event",
    [
        {"cache_key": "a"}, {"cached": True}, {"max_tokens": 9}, {"total_tokens": 9}, {"token_price": 0.1},
        {"prompt_cache_miss_tokens": 9}, {"usage": "high"}, {"cache_size": 9}, {"tokenizer": 3}, {"token_id": 3},
    ],
)  # fmt: skip
def test_a_number_that_is_no_count_of_a_call_is_none(event: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(log("a", event))
    assert [problem for problem in named(path) if problem.expected != "the key 'token_ids': this one is not read"] == []
