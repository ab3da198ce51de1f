"""Trajectories of ART: tables of another type are refused in words, and both forms mean the same."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from ..samples import RECORDINGS, recorded

TABLE = RECORDINGS / "art_0007.parquet"


@pytest.mark.parametrize(
    ("column", "values", "field"),
    [
        ("reward", ["1", "0"], "reward"),
        ("messages", [1, 2], "messages"),
        ("metrics", [1, 2], "metrics"),
        ("group_index", ["a", "b"], "group_index"),
        ("messages", [[{"role": 1}], [{"role": 2}]], "messages[0]"),
        ("messages", [[{"role": "assistant", "tool_calls": "{"}]] * 2, "messages[0]"),
        ("reward", [float("inf"), float("nan")], "reward"),
    ],
)
def test_a_table_of_another_type_is_refused(tmp_path: Path, column: str, values: list[object], field: str) -> None:
    table = pq.read_table(TABLE)
    table = table.set_column(table.column_names.index(column), column, pa.array(values))
    pq.write_table(table, tmp_path / "0007.parquet")
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path)
    assert {problem.field for problem in caught.value.problems} == {field}


def test_a_trajectory_of_a_wrong_type_refuses_no_other_of_its_group(tmp_path: Path) -> None:
    """One reward that was a text lost all trajectories of the line."""
    group = recorded("art_0007.jsonl")[0]
    group["trajectories"] = [group["trajectories"][0] | {"reward": reward} for reward in (0.25, "high", 0.75)]
    path = tmp_path / "0007.jsonl"
    path.write_text(json.dumps(group) + "\n")
    traces = read(path, format="art")
    assert traces.reward[:2].tolist() == [0.25, 0.75]
    (problem,) = (problem for problem in traces.problems if problem.is_failure)
    assert (problem.field, problem.value, problem.trace[-2:]) == ("trajectories[1].reward", "'high'", "/1")


def test_the_table_and_the_lines_of_one_run_mean_the_same() -> None:
    rows, lines = read(TABLE), read(RECORDINGS / "art_0007.jsonl")
    assert rows.graph.event_type.tolist() == lines.graph.event_type.tolist()
    assert rows.graph.action_mask.tolist() == lines.graph.action_mask.tolist()
    assert rows.reward.tolist() == lines.reward.tolist()
