"""Copies of one run, over all formats: equal content counts once and is named; of two contents neither is read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from .all_formats import ALL

PLACE_IS_THE_RUN = {"harbor", "swe-agent"}
"""A trial's folder and an instance's name tell what a file is of: equal ones are two runs."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", [name for name, sample in ALL.items() if sample.format not in PLACE_IS_THE_RUN])
def test_a_copy_of_a_log_under_another_name_counts_once(tmp_path: Path, name: str) -> None:
    path = ALL[name].write(tmp_path / "logs")
    alone = read(tmp_path)
    (path.parent / f"copy of {path.name}").write_bytes(path.read_bytes())
    both = read(tmp_path)
    assert both.sizes == alone.sizes
    assert [problem for problem in both.problems if problem.is_failure] == []
    assert np.array_equal(both.graph.group_ids, alone.graph.group_ids)


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


def test_nothing_is_left_of_a_log_that_contradicts_itself(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(native(1.0) + native(0.5))
    with pytest.raises(NothingReadError, match="so neither is read"):
        read(tmp_path)
