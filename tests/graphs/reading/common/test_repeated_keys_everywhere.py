"""A reward or an id that stands twice in one object is refused by its name, in every format of another project."""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_time import assert_linear

from graphs.errors import NothingReadError, Problem
from graphs.logs import read
from graphs.reading import repeated_keys

from ..samples import RECORDINGS, SAMPLES, Sample

TAKEN = re.compile(r"reward|score|(^|_)id$|Id$|uuid|resolved|success|is_correct|uid|value$|acc$")
WITHOUT = frozenset({"swe-agent"})  # no reward and no id is in its trajectories
UNREAD = frozenset({"tasks"})  # of tau2-bench
LINES = "agent_lightning_spans", "langsmith_team", "openai_agents_team", "team_genai", "team_openinference"
SHARED = {
    "atif": "atif_examples/exmp01_atif.json",
    "claude-code": "claude_code_inline/1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl",
    "inspect-ai": "inspect_ai/2025-05-12T20-28-13-04-00_popularity.json",
    "openai-agents": "openai_agents_sdk/traces_2025-06-29_00-23-37.json",
    "tau-bench": "tau_bench_airline/gpt-4o-airline.json",
    "tau2-bench": "tau2_bench/tau2_airline_relaxed_grok-4-fast_4trials.json",
    "verifiers": "verifiers/traces.jsonl",
    "who-and-when": "who_and_when/Hand-Crafted/13.json",
}


def written(value: Any, twice: int) -> tuple[str, int]:
    """A value as JSON in which the object with this `id()` states its first key that is taken twice."""
    if isinstance(value, dict):
        parts = []
        for key, member in value.items():
            if id(value) == twice and TAKEN.search(key):
                parts.append(f"{json.dumps(key)}: {json.dumps(other(member))}")
                twice = 0
            text, twice = written(member, twice)
            parts.append(f"{json.dumps(key)}: {text}")
        return "{" + ", ".join(parts) + "}", twice
    if isinstance(value, list):
        parts = []
        for member in value:
            text, twice = written(member, twice)
            parts.append(text)
        return "[" + ", ".join(parts) + "]", twice
    return json.dumps(value), twice


def other(value: Any) -> Any:
    """Another value of the same type; a container, null and base64 stay as they are."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}0" if isinstance(value, str) and not value.endswith("=") else value


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Objects that have a key for a reward or an id."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict) and any(TAKEN.search(key) for key in one):
            yield one
        if isinstance(one, dict):
            waiting += [value for key, value in one.items() if key not in UNREAD]
        elif isinstance(one, list):
            waiting += one


def refusals(path: Path) -> list[Problem]:
    try:
        return list(read(path).problems)
    except NothingReadError as error:
        return list(error.problems)


def check(sample: Sample, folder: Path, most: int) -> None:
    found = list(objects(sample.values))
    assert found
    for one in random.Random(sample.file).sample(found, min(most, len(found))):
        lines = []
        mark = id(one)
        for value in sample.values:
            text, mark = written(value, mark)
            lines.append(text)
        assert mark == 0
        path = folder / sample.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines))
        key = next(key for key in one if TAKEN.search(key))
        repeated = [p for p in refusals(path) if p.kind == "repeated-key"]
        assert [p.value for p in repeated] == ["stated twice"], (one, refusals(path))
        assert repeated[0].field.endswith(key) and repeated[0].is_failure


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in WITHOUT])
def test_a_reward_or_id_that_stands_twice_refuses_what_has_it(tmp_path: Path, name: str) -> None:
    check(SAMPLES[name], tmp_path, 12)


@pytest.mark.parametrize("name", LINES)
def test_so_in_recordings(tmp_path: Path, name: str) -> None:
    lines = (RECORDINGS / f"{name}.jsonl").read_text().splitlines()
    check(Sample("", "x.jsonl", [json.loads(line) for line in lines]), tmp_path, 8)


@pytest.mark.parametrize("name", SHARED)
def test_so_in_real_logs(tmp_path: Path, name: str, shared_data: Path) -> None:
    path = shared_data / SHARED[name]
    text = path.read_text()
    lines = path.suffix == ".jsonl"
    values = [json.loads(line) for line in text.splitlines()] if lines else [json.loads(text)]
    check(Sample("", path.name, values, lines), tmp_path, 4)


TRAJECTORY = {
    "schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a"},
    "steps": [{"step_id": 1, "source": "agent", "message": "x"}],
}  # fmt: skip


@pytest.mark.parametrize("twice", ['"reward": 1.0', '"trial_name": "hello__b"', '"task_name": "other"'])
def test_so_in_results_of_harbor(tmp_path: Path, twice: str) -> None:
    for name in ("hello__a", "hello__c"):
        (tmp_path / name / "agent").mkdir(parents=True)
        (tmp_path / name / "agent" / "trajectory.json").write_text(json.dumps(TRAJECTORY))
        result = {"task_name": "hello", "trial_name": name, "config": {}, "verifier_result": {"reward": 0.0}}
        (tmp_path / name / "result.json").write_text(json.dumps(result))
    file = tmp_path / "hello__a" / "result.json"
    key = twice.partition(":")[0]
    file.write_text(file.read_text().replace(key, f"{twice}, {key}", 1))
    traces = read(tmp_path)
    assert [(p.kind, p.file) for p in traces.problems] == [("repeated-key", str(file))]
    assert traces.traces["trace"].to_pylist() == ["hello__c"] and traces.reward[0] == 0


def test_so_in_results_of_swe_agent(tmp_path: Path) -> None:
    SAMPLES["swe-agent"].write(tmp_path / "repo__repo-1")
    (tmp_path / "report.json").write_text('{"resolved_ids": ["repo__repo-1"], "submitted_ids": [], "resolved_ids": []}')
    traces = read(tmp_path)
    assert [(p.kind, p.field) for p in traces.problems] == [("repeated-key", "resolved_ids")]
    assert str(traces.reward[0]) == "nan"


def test_attributes_of_a_span_that_differ_under_one_key_are_refused(tmp_path: Path) -> None:
    lines = (RECORDINGS / "team_genai.jsonl").read_text().splitlines()
    document = json.loads(lines[0])
    first = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    key, same = first["attributes"][0]["key"], first["attributes"][0]
    first["attributes"].append(same)
    (tmp_path / "x.jsonl").write_text("\n".join([json.dumps(document), *lines[1:]]))
    assert read(tmp_path).problems == ()
    first["attributes"][-1] = {"key": key, "value": {"stringValue": "another"}}
    (tmp_path / "x.jsonl").write_text("\n".join([json.dumps(document), *lines[1:]]))
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path)
    assert [(p.kind, p.field) for p in caught.value.problems] == [("repeated-key", f"attributes.{key}")]


KEYS = st.sampled_from(["a", "b", ":", "\\u003a", "\\u0061", 'q\\"', ""])
LEAVES = st.sampled_from(["1", "null", '"x:y"', '"\\u003a"', '"\\""', "1e999", "9" * 30, '":"', "true"])


def joined(pairs: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{key}" : {value}' for key, value in pairs) + "}"


JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda v: "[" + ", ".join(v) + "]")
        | st.lists(st.tuples(KEYS, inner), max_size=3).map(joined)
    ),
    max_leaves=8,
)


class Pairs(list[tuple[str, Any]]):
    """The pairs of an object."""


def any_repeats(value: Any) -> bool:
    if isinstance(value, Pairs):
        return len({key for key, _ in value}) < len(value) or any(any_repeats(one) for _, one in value)
    return isinstance(value, list) and any(map(any_repeats, value))


@given(JSON, st.sampled_from([1, 20, 1 << 20]))
def test_it_is_found_exactly_where_python_s_parser_shows_it(text: str, at_once: int) -> None:
    with mock.patch.object(repeated_keys, "_AT_ONCE", at_once):
        found = repeated_keys.repeated_anywhere(text.encode())
    assert (found is not None) == any_repeats(json.loads(text, object_pairs_hook=Pairs))


def test_bytes_that_are_no_text_hide_no_repeated_key() -> None:
    assert repeated_keys.repeated_anywhere(b'{"a": "\xff", "b": 1}') is None
    assert repeated_keys.repeated_anywhere(b'{"a": "\xff", "b": 1, "b": 2}') == "b"


def test_a_key_that_is_no_text_is_skipped_as_a_decoder_skips_it() -> None:
    text = b'{"a": {"a": 1, "\x80": 1}, "\x80": 1, "\xff": 2}'
    msgspec.json.decode(text, type=Outer)
    for few in (0, 1 << 16):
        with mock.patch.object(repeated_keys, "_FEW", few):
            assert repeated_keys.repeated_where_read(Outer, text) is None
            assert repeated_keys.repeated_where_read(Outer, text[:-1] + b', "a": 1}') == "a"
    assert not repeated_keys.may_repeat(b'{"a": 1, "\x80": 1}')
    assert repeated_keys.may_repeat(b'{"a": 1, "\x80": 1, "a": 2}')


class Inner(msgspec.Struct):
    a: Any = None


class Outer(msgspec.Struct):
    a: Inner | list[Inner] | None = None
    raw: msgspec.Raw = msgspec.Raw()
    by: dict[str, float] | None = None


CASES = {
    '{"a": {"a": 1}, "raw": {"a": 1, "a": 2}, "x": 1, "x": 2}': None,
    '{"a": {"a": 1}, "a": {"a": 1}}': "a",
    '{"a": {"b": 1, "b": 2, "a": 1}}': None,
    '{"a": {"a": 1, "a": 2}}': "a.a",
    '{"a": {"a": {"z": [{"y": 1, "y": 2}]}}}': "a.a.z[0].y",
    '{"raw": 1, "r\\u0061w": 2}': "raw",
    '{"by": {"z": 1, "z": 2}}': "by.z",
    '{"note": "\\u003a", "by": {"z": 1}}': None,
}


@pytest.mark.parametrize("few", [0, 1 << 16])
@pytest.mark.parametrize("text", CASES)
def test_of_an_envelope_what_is_read_is_looked_at(text: str, few: int) -> None:
    with mock.patch.object(repeated_keys, "_FEW", few):
        assert repeated_keys.repeated_where_read(Outer, text.encode()) == CASES[text]


@pytest.mark.parametrize(
    "text",
    [lambda n: b'{"a":' * 150 + b'"' + b":" * n + b'"' + b"}" * 150, lambda n: b"[" + b'{"a":1},' * (n // 8) + b"{}]",
     lambda n: b"[" * 150 + b'{"a":"' + b"x" * n + b'"}' + b"]" * 150,
     lambda n: b'{"b":[' + b'{"a":1},' * (n // 8) + b"{}]}"],
    ids=["nested", "list", "lists", "member"],
)  # fmt: skip
def test_looking_takes_linear_time(text: Callable[[int], bytes]) -> None:
    large = text(1 << 22)
    assert repeated_keys.repeated_anywhere(large) is None
    # Of a text over a megabyte, keys are looked at one by one.
    assert_linear(lambda n: functools.partial(repeated_keys.repeated_anywhere, text(n)), 1 << 24)


PAIRS = st.lists(
    st.tuples(
        st.text(alphabet='ab:"\\ ,é', max_size=3),
        st.one_of(
            st.integers(),
            st.text(alphabet='ab:"\\ ,', max_size=5),
            st.dictionaries(st.sampled_from("ab"), st.none(), max_size=2),
        ),
    ),
    max_size=4,
)


@pytest.mark.parametrize("comma, colon", [(",", ":"), (", ", ": "), (", ", ":"), (" ,", " : "), (",\t", ":")])
@given(pairs=PAIRS, ascii_=st.booleans())
def test_no_spacing_hides_a_repeated_key(pairs: list[tuple[str, object]], ascii_: bool, comma: str, colon: str) -> None:
    """An oracle by hand: the keys themselves. Objects that are written as usual, without escapes, are not suspected."""
    write = functools.partial(json.dumps, ensure_ascii=ascii_)
    text = "{" + comma.join(f"{write(key)}{colon}{write(value)}" for key, value in pairs) + "}"
    twice = len({key for key, _ in pairs}) < len(pairs)
    may = repeated_keys.may_repeat(text.encode())
    assert may or not twice
    assert not may or twice or "\\u003" in text or colon == " : "


@given(
    objects=st.lists(PAIRS, min_size=1, max_size=4),
    comma=st.sampled_from([",", ", "]),
    colon=st.sampled_from([":", ": "]),
)
def test_no_line_of_many_hides_a_repeated_key(objects: list[list[tuple[str, object]]], comma: str, colon: str) -> None:
    """Lines together are certain to state no key twice only where each line is; most are certain."""
    lines = []
    for pairs in objects:
        written = comma.join(json.dumps(key) + colon + json.dumps(value) for key, value in pairs)
        lines.append(f"{{{written}}}".encode())
    certain = repeated_keys.members_of_lines(b"\n".join(lines), len(lines)) is not None
    twice = any(len({key for key, _ in pairs}) < len(pairs) for pairs in objects)
    assert not (certain and twice)
    plain = (comma, colon) in ((",", ":"), (", ", ": ")) and b"\\" not in b"".join(lines)
    assert certain or twice or not all(objects) or not plain
    assert repeated_keys.members_of_lines(b"\n".join(lines), len(lines) + 1) is None
