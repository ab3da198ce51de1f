"""Copies of one run, over all formats: equal content counts once and is named; of two contents neither is read."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from graphs.errors import NothingReadError, condensed
from graphs.logs import read
from graphs.writers import otlp

from .all_formats import ALL

PLACE_IS_THE_RUN = {"harbor", "swe-agent"}
"""A trial's folder and an instance's name tell what a file is of: equal ones are two runs."""


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", [name for name, sample in ALL.items() if sample.format not in PLACE_IS_THE_RUN])
def test_a_copy_of_a_log_under_another_name_counts_once(tmp_path: Path, name: str) -> None:
    path = ALL[name].write(tmp_path / "logs")
    alone = read(tmp_path)
    (path.parent / f"copy of {path.name}").write_bytes(path.read_bytes())
    both = read(tmp_path)
    assert both.sizes == alone.sizes
    assert [problem for problem in both.problems if problem.is_failure] == []
    assert np.array_equal(both.graph.group_ids, alone.graph.group_ids)


@pytest.mark.parametrize("name", [name for name, sample in ALL.items() if sample.format == "rollouts" and sample.lines])
@pytest.mark.parametrize("between", [b"", b"\n"])
def test_shards_beside_the_file_of_all_of_them_count_once(tmp_path: Path, name: str, between: bytes) -> None:
    """Of `cat shard-*.jsonl > all.jsonl` the first shard was known again, and every other one counted twice."""
    path = ALL[name].write(tmp_path / "logs")
    shards = [path.read_bytes().replace(b"{", b'{"shard": %d, "text": "%s", ' % (i, b"x" * 200), 1) for i in range(3)]
    path.write_bytes(between.join([*shards]))
    alone = read(tmp_path)
    for i, shard in enumerate(shards):
        path.with_name(f"shard-{i}{path.suffix}").write_bytes(shard)
    both = read(tmp_path)
    assert both.sizes == alone.sizes
    assert [problem.kind for problem in both.problems].count("repeated-run") >= len(shards)
    assert not any(problem.is_failure for problem in both.problems)


def native(reward: float, trace: str = "a") -> str:
    events = [{"id": "1", "type": "message", "agent": "x"}]
    return json.dumps({"trace_id": trace, "task_id": "q", "events": events, "rewards": {"team": reward}}) + "\n"


def test_one_id_with_two_contents_is_read_from_neither(tmp_path: Path) -> None:
    (tmp_path / "first.jsonl").write_text(native(1.0) + native(0.0, "b"))
    (tmp_path / "second.jsonl").write_text(native(0.0) + native(0.0, "b"))
    (tmp_path / "third.jsonl").write_text(native(1.0))
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["b"]
    kinds = sorted((Path(p.file).name, p.kind, p.trace) for p in traces.problems)
    assert kinds == [
        ("first.jsonl", "duplicate-trace", "a"),
        ("second.jsonl", "duplicate-trace", "a"),
        ("second.jsonl", "repeated-run", "b"),
        ("third.jsonl", "duplicate-trace", "a"),
    ]


def test_an_id_that_begins_again_in_each_file_is_listed_once(tmp_path: Path) -> None:
    """Each of its traces was a line of its own, which named another one as the culprit."""
    for step in range(3):
        (tmp_path / f"{step}.jsonl").write_text("".join(native(step + i, str(i)) for i in range(4)))
    (tmp_path / "own.jsonl").write_text(native(1.0, "own"))
    problems = read(tmp_path).problems
    assert len({(problem.file, problem.line) for problem in problems}) == len(problems) == 12  # each is looked up
    listed = condensed(problems)
    assert [(problem.trace, problem.count) for problem in listed] == [(str(i), 3) for i in range(4)]
    assert len({problem.expected for problem in listed}) == 1  # so that it is said once


def other_outcome(name: str) -> str:
    """The log of a format with another outcome in its first record."""
    first, *others = copy.deepcopy(ALL[name].values)
    if name == "verifiers":
        first["traces"][0]["rewards"] = {"right": {"score": 0.125, "weight": 1.0}}
    elif name == "tau2-bench":
        first["simulations"][0]["reward_info"]["reward"] = 0.25
    elif name == "openhands":
        first["resolved"] = False
    else:
        first["reward"] = 0.25
    return ALL[name]._replace(values=[first, *others]).text


@pytest.mark.parametrize("name", ["verifiers", "rollouts of nemo gym", "openhands", "tau2-bench"])
def test_two_outcomes_of_one_run_are_read_from_neither_file(tmp_path: Path, name: str) -> None:
    """The first file's outcome counted, or both did."""
    path = ALL[name].write(tmp_path)
    alone = read(tmp_path).traces["trace"].to_pylist()
    (tmp_path / f"copy of {path.name}").write_text(other_outcome(name))
    try:
        traces = read(tmp_path)
        left, problems = traces.traces["trace"].to_pylist(), traces.problems
    except NothingReadError as error:
        left, problems = [], error.problems
    contradicting = [problem for problem in problems if problem.kind == "duplicate-trace"]
    assert {Path(problem.file).name for problem in contradicting} == {path.name, f"copy of {path.name}"}
    assert len(contradicting) == 2 and len(left) == len(alone) - 1


def test_two_sessions_of_codex_with_one_id_are_read_from_neither_file(tmp_path: Path) -> None:
    lines = (ALL["codex"].write(tmp_path)).read_text().splitlines(keepends=True)
    (tmp_path / "rollout-2.jsonl").write_text("".join([lines[0], *lines[2:]]))
    with pytest.raises(NothingReadError, match="so neither is read") as caught:
        read(tmp_path)
    assert sorted(Path(problem.file).name for problem in caught.value.problems) == [
        "rollout-1.jsonl",
        "rollout-2.jsonl",
    ]


def test_a_folder_with_a_run_in_two_formats_says_so(tmp_path: Path) -> None:
    """As the folder that `credit demo` writes, whose traces were two contents of one id, without a way out."""
    (tmp_path / "log.jsonl").write_text(native(1.0))
    otlp.write(read(tmp_path / "log.jsonl"), tmp_path / "otlp")
    with pytest.raises(NothingReadError, match="Read the files of one format alone") as caught:
        read(tmp_path)
    told = {Path(problem.file).name: problem for problem in caught.value.problems}
    assert told["log.jsonl"].value.endswith("spans.jsonl:1") and told["spans.jsonl"].value.endswith("log.jsonl:1")
    assert all("these are native and otlp" in problem.expected for problem in told.values())


def test_nothing_is_left_of_a_log_that_contradicts_itself(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(native(1.0) + native(0.5))
    with pytest.raises(NothingReadError, match="so neither is read"):
        read(tmp_path)
