"""What a small file can cost: time and memory are linear in the input, whatever it holds."""

from __future__ import annotations

import functools
import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_time import assert_linear

from graphs.logs import detect, read
from graphs.reading.keys import opening
from graphs.reading.tables.rows import number
from graphs.traces import limits
from graphs.traces.batch import Traces
from graphs.traces.cache import read_cache, write_cache
from graphs.writers import native, otlp


def trace(name: str, **more: object) -> dict[str, object]:
    event = {"id": "1", "type": "message", "agent": "x"}
    return {"trace_id": name, "task_id": "k", "events": [event], "rewards": {"team": 1.0}, **more}


PIECES = [
    b'"',
    b'\\"',
    b'{"a":"\\"',
    b'{"',
    b"[",
    b"{",
    b" ",
    b"\\",
    b'{"a":1}',
    b"[{",
    b'"\\\\',
    b"a",
    b":",
    b"}{",
    b"} ",
]


def tell(head: bytes) -> None:
    opening.cache_clear()  # or all runs but the first would not look at the head
    detect(head)


@pytest.mark.sampled
@pytest.mark.parametrize("piece", PIECES, ids=repr)
@pytest.mark.parametrize("start", [b"", b"{", b'{"events":[{"id":"', b"["], ids=repr)
def test_telling_the_format_is_linear(start: bytes, piece: bytes) -> None:

    def prepare(size: int) -> Callable[[], object]:
        head = (start + piece * (size // len(piece)))[:size]
        return lambda: tell(head)

    assert_linear(prepare, 1 << 16)  # a head is 64 KiB at most


SEVERAL = st.lists(st.sampled_from([*PIECES, b'"a"', b",", b"]", b"}", b"\n", b"traj", b'"role":', b"1e9"]), max_size=4)


@settings(max_examples=100, deadline=None)
@given(SEVERAL.map(b"".join), SEVERAL.map(b"".join).filter(bool), SEVERAL.map(b"".join))
@pytest.mark.slow
def test_telling_the_format_of_any_repetition_is_linear(start: bytes, piece: bytes, end: bytes) -> None:
    """What repeats is drawn, and what stands before and behind it."""

    def prepare(size: int) -> Callable[[], object]:
        head = start + piece * (size // len(piece)) + end
        return lambda: tell(head)

    assert_linear(prepare, 1 << 15, runs=1)


@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_measuring_depth_is_linear(piece: bytes) -> None:
    assert_linear(lambda size: functools.partial(limits.depth, b'{"a": "' + piece * size + b'"}'), 1 << 16)


VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.text('ab"\\[]{}:,\n\u00e9'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\[{'), inner, max_size=3),
)


@pytest.mark.slow
@given(VALUES)
def test_depth_counts_no_bracket_within_a_string(value: object) -> None:
    def nested(part: object) -> int:
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else None
        return 0 if inner is None else 1 + max(map(nested, inner), default=0)

    assert limits.depth(json.dumps(value).encode()) == nested(value)


@pytest.mark.slow
def test_naming_an_agent_that_is_listed_twice_is_linear(tmp_path: Path) -> None:
    def prepare(count: int) -> Callable[[], object]:
        agents = [{"id": f"a{i}"} for i in range(count)]
        path = tmp_path / f"{count}.jsonl"
        path.write_text(json.dumps(trace("a", agents=[*agents, agents[-1]])) + "\n" + json.dumps(trace("b")))
        return lambda: named(read(path), count)

    def named(traces: Traces, count: int) -> None:
        problem, outcome = traces.problems
        assert (problem.kind, problem.value) == ("duplicate-agent", f"'a{count - 1}'")
        assert (outcome.kind, outcome.trace) == ("unread-outcome", "a")

    assert_linear(prepare, 40_000, runs=1)


QUOTED = st.lists(st.sampled_from([b'"', b'\\"', b"\\\\", b"\\", b"ab", b",", b"{", b"x" * 9, b'""']), max_size=40)


@pytest.mark.slow
@given(QUOTED.map(b"".join), st.integers(1, 30), st.integers(1, 12))
def test_strings_are_measured_only_where_one_may_be_too_long(text: bytes, most: int, block: int) -> None:
    longest = max((len(match[0]) - 2 for match in limits._STRING.finditer(text)), default=0)
    with mock.patch.object(limits, "_BLOCK", block):
        assert limits._longest_run(text) >= longest
        refused = limits.Limits(string_bytes=most).refuse_size(text, "x", 1)
    assert (refused is not None) == (longest > most)


def test_a_record_longer_than_a_string_may_be_costs_no_more_a_byte() -> None:
    """Each of its 2 million strings was measured on its own, which took longer than decoding them."""
    record = b"[" + b'"ab",' * 1000 + b"1]"
    with mock.patch.object(limits, "_STRING", None):
        assert limits.Limits(string_bytes=1000).refuse_size(record, "x", 1) is None


@pytest.mark.parametrize(("start", "piece", "end"), [("", "1", "x"), ("", ".", ""), ("", " ", "x"), ("1e", "9", "x")])
def test_telling_a_number_is_linear(start: str, piece: str, end: str) -> None:
    assert number(start + piece * 300_000 + end) is None
    assert_linear(lambda size: functools.partial(number, start + piece * size + end), 1 << 18)


def test_a_value_longer_than_the_head_is_looked_past(tmp_path: Path) -> None:
    log = json.dumps(trace("a"))
    for content in (" " * 70_000 + log, json.dumps({"note": 'y"\\' * 70_000, **trace("a")}), "\n" * 70_000 + log):
        (tmp_path / "x.json").write_text(content)
        assert read(tmp_path).traces["trace"].to_pylist() == ["a"]
    (tmp_path / "x.json").write_text('{"note": "' + "y" * 70_000 + '"}')
    with pytest.raises(ValueError, match="--format NAME"):
        read(tmp_path)


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A folder of 1,100 folders within each other, with a log in the 4th and in the last."""
    here = os.open(tmp_path, os.O_RDONLY)
    for depth in range(1100):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
        if depth in (3, 1099):
            file = os.open("x.jsonl", os.O_CREAT | os.O_WRONLY, dir_fd=here)
            os.write(file, json.dumps(trace(f"a{depth}")).encode())
            os.close(file)
    os.close(here)
    yield tmp_path
    while (tmp_path / "d").exists():  # removed from above: what cleans up afterwards would need a deep stack
        (tmp_path / "d" / "x.jsonl").unlink(missing_ok=True)
        if (tmp_path / "d" / "d").exists():
            (tmp_path / "d" / "d").rename(tmp_path / "next")
        (tmp_path / "d").rmdir()
        if (tmp_path / "next").exists():
            (tmp_path / "next").rename(tmp_path / "d")


@pytest.mark.slow
def test_folders_nested_a_thousand_deep(deep: Path) -> None:
    assert sorted(read(deep).traces["trace"].to_pylist()) == ["a1099", "a3"]


@pytest.mark.study
def test_names_of_numbers_that_differ_in_every_trace_take_linear_memory(tmp_path: Path) -> None:
    def log(traces: int) -> Path:
        lines = []
        for i in range(traces):
            names = {f"{family}{i}-{k}": k / 2 for family in "mc" for k in range(5)}
            lines.append(json.dumps(trace(f"t{i}", metrics=names, rewards={"team": i, f"r{i}": 0.5})))
        (tmp_path / f"{traces}.jsonl").write_text("\n".join(lines))
        return tmp_path / f"{traces}.jsonl"

    peaks = []
    for traces in (250, 1000):
        path = log(traces)
        tracemalloc.start()
        batch = read(path)
        write_cache(batch, tmp_path / "cache.parquet")
        again = read_cache(tmp_path / "cache.parquet")
        native.write(batch, tmp_path / "again.jsonl")
        otlp.write(batch, tmp_path / f"otlp{traces}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(batch.evidence) == 11 * traces + 1 and again.evidence.keys() == batch.evidence.keys()
        same = read(tmp_path / "again.jsonl")
        for name in ("metrics.m7-4", "rewards.r9", "rewards.team"):
            np.testing.assert_array_equal(batch.evidence[name].array, again.evidence[name].array)
            np.testing.assert_array_equal(batch.evidence[name].array, same.evidence[name].array)
    assert peaks[1] < 6 * peaks[0]  # 16 where it is quadratic
