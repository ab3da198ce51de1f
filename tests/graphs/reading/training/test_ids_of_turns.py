"""Ids of messages that begin again in each step of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.logs import read


def table(folder: Path, steps: str, ids: list[list[str]], column: str = "turn") -> Path:
    """Two traces with a row for each id: a list of ids a step."""
    path = folder / "rows.csv"
    rows = [
        f"{trace},q,x,{steps}{number},{name},{reward}"
        for trace, reward in (("a", 1), ("b", 0))
        for number, names in enumerate(ids if trace == "a" else ids[:1])
        for name in names
    ]
    path.write_text("\n".join([f"trace,group,agent,{column},id,reward", *rows]) + "\n")
    return path


@pytest.mark.parametrize("steps", ["", "step-"])
def test_ids_that_begin_again_in_each_turn_are_joined_to_it(tmp_path: Path, steps: str) -> None:
    """All traces were refused, and nothing joined the two columns. Also of a trace with one turn, for one form."""
    events = read(table(tmp_path, steps, [["m0", "m1"], ["m0", "m1"]])).events["event"].to_pylist()
    assert events == [f"{steps}{name}" for name in ("0/m0", "0/m1", "1/m0", "1/m1", "0/m0", "0/m1")]
    whole = read(table(tmp_path, steps, [["m0", "m1"], ["m2"]])).events["event"].to_pylist()
    assert whole == ["m0", "m1", "m2", "m0", "m1"]  # unique as they are


def test_an_id_that_stands_twice_in_a_turn_refuses_its_trace(tmp_path: Path) -> None:
    with pytest.warns(match="duplicate-id"):
        traces = read(table(tmp_path, "", [["m0"], ["m0", "m0"]]))
    assert traces.traces["trace"].to_pylist() == ["b"] and traces.events["event"].to_pylist() == ["m0"]
    assert "turn=" not in traces.problems[0].expected


def test_ids_that_begin_again_in_a_column_of_steps_without_a_name_say_what_to_do(tmp_path: Path) -> None:
    path = table(tmp_path, "", [["m0"], ["m0"]], column="env")
    with pytest.warns(match="duplicate-id"):
        traces = read(path)
    problem = traces.problems[0]
    assert problem.line == 3 and "joined to it by --columns turn=COLUMN" in problem.expected
    assert read(path, columns={"turn": "env"}).events["event"].to_pylist() == ["0/m0", "1/m0", "0/m0"]
