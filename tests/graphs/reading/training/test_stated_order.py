"""The rows of a trace stand in the order that they state, and where they state none that is named."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import credit
from graphs.errors import UnreadWarning
from graphs.traces.batch import Traces

ACTS = ("a plan 0 0 1", "b plan 0 0 1", "a code 1 0 2", "a code 2 1 3", "b code 1 0 3", "b plan 2 1 5")
"""Rows in their order: a trace, an agent, a turn of the trace, one of the agent, and a time."""


def written(folder: Path, column: str, rows: Sequence[int]) -> Path:
    names = ("trace", "agent", "turn", "own", "time")
    lines = [f"trace,agent,{column},id,event_reward,reward,group"]
    for row in rows:
        cells = dict(zip(names, ACTS[row].split(), strict=True))
        outcome = float(cells["trace"] == "a")
        lines.append(f"{cells['trace']},{cells['agent']},{cells[column]},e{row},{row / 8},{outcome},q")
    path = folder / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def numbers(traces: Traces) -> list[list[float]]:
    """What two methods that read the order give each row."""
    place = {event: at for at, event in enumerate(traces.events["event"].to_pylist())}
    given = [credit.run(traces, method).advantage for method in ("discounted_return", "turn_baseline")]
    return [[float(of[place[f"e{row}"]]) for row in range(len(ACTS))] for of in given]


@pytest.mark.filterwarnings("ignore:turn_baseline compares by the turn")
@pytest.mark.parametrize("column", ["time", "turn"])
@pytest.mark.parametrize("seed", range(4))
def test_shuffled_rows_have_the_numbers_of_sorted_ones(column: str, seed: int, tmp_path: Path) -> None:
    """Methods took the order of the file, whatever times and turns said, and only a warning told it."""
    first = numbers(credit.read(written(tmp_path, column, range(6))))
    shuffled = np.random.default_rng(seed).permutation(6).tolist()
    again = credit.read(written(tmp_path, column, shuffled))
    kept = all(rows == sorted(rows) for t in "ab" for rows in [[row for row in shuffled if ACTS[row][0] == t]])
    assert [problem.kind for problem in again.problems] == ["sorted-rows"] * (not kept)
    assert numbers(again) == first


def test_rows_by_turns_of_agents_stand_in_them_and_leave_open_who_was_first(tmp_path: Path) -> None:
    path = written(tmp_path, "own", [3, 2, 0, 5, 4, 1])
    found = credit.read(path, columns={"turn": "own"})
    assert [problem.kind for problem in found.problems] == ["sorted-rows", "turns-by-agent"]
    assert found.events["event"].to_pylist() == ["e2", "e0", "e3", "e4", "e1", "e5"]


def test_agents_that_act_at_once_stand_as_the_file_has_them(tmp_path: Path) -> None:
    """By names, which no action chooses; a time may be that at which they ended, which actions do choose."""
    path = tmp_path / "rows.csv"
    rows = [f"t,q,{agent},{round_},{time},1,e{at}" for at, (agent, round_, time) in enumerate(
        [("a", "c1", 5), ("b", "c1", 3), ("a", "c2", 9), ("b", "c2", 8), ("a", "", 1), ("b", "", 0)])]  # fmt: skip
    path.write_text("trace,group,agent,context,time,reward,id\n" + "\n".join(rows) + "\n")
    assert credit.read(path).events["event"].to_pylist() == ["e5", "e4", "e0", "e1", "e2", "e3"]


@pytest.mark.parametrize(
    ("times", "turns", "kinds"),
    [
        ("0 2 1", "", ["sorted-rows"]),
        ("2 1 1", "", ["sorted-rows"]),
        ("0 2 ", "", []),
        ("2 0 ", "", ["unordered-rows"]),  # one has no time
        ("", "1 0 1", ["unordered-rows"]),  # two agents of one name, or a turn of two calls
        ("", "p1 p0 q2", ["unordered-rows"]),
        ("0 2 1", "0 1 2", ["sorted-rows", "unordered-rows"]),  # they contradict each other
        ("2 1 0", "2 1 0", ["sorted-rows"]),
        ("1 1 1", "1 0 2", ["sorted-rows"]),  # turns between equal times
    ],
)
def test_what_stays_out_of_order_is_named(times: str, turns: str, kinds: list[str], tmp_path: Path) -> None:
    """A warning says that numbers are wrong where they are, and not where rows were put in order."""
    columns = (["0"] * 3, *(column.split(" ") if column else [""] * 3 for column in (times, turns)))
    rows = [f"t,q,p,{time},{turn},1\n" for _, time, turn in zip(*columns, strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("trace,group,agent,time,turn,reward\n" + "".join(rows))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = credit.read(path)
    assert [problem.kind for problem in found.problems] == kinds
    assert len(said) == ("unordered-rows" in kinds)


@pytest.mark.parametrize(
    ("name", "option"),
    [("timestamp", "time"), ("createdAt", "time"), ("Time", "time"), ("step", "turn"), ("turn_idx", "turn")],
)
def test_a_column_that_may_tell_the_order_is_named(name: str, option: str, tmp_path: Path) -> None:
    """The note said that there is neither a time nor a turn, beside a time under another name."""
    rows = [f"t{t},q,{agent},{place},{t % 2}\n" for t in range(8) for agent, place in zip("aabb", "0213", strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text(f"trace,group,agent,{name},reward\n" + "".join(rows))
    problems = credit.read(path).problems
    assert [problem.kind for problem in problems] == ["unread-columns", "turns-by-agent"]
    assert all(f"--columns {option}={name}" in problem.expected for problem in problems)
    assert [problem.kind for problem in credit.read(path, columns={option: name}).problems] == ["sorted-rows"]


@pytest.mark.parametrize("name", ["response_time", "runtime", "steps", "restarted"])
def test_other_numbers_are_no_order(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = [f"t{t},q,{agent},{n},{t % 2}\n" for t in range(8) for agent, n in zip("aabb", "0213", strict=True)]
    path.write_text(f"trace,group,agent,{name},reward\n" + "".join(rows))
    assert not any(f"={name}" in problem.expected for problem in credit.read(path).problems)


@pytest.mark.parametrize("cell", [[1.0], {"a": 1}, b"x", None, "x" * 1000, True])
@pytest.mark.parametrize("name", ["step", "timestamp"])
def test_a_column_that_holds_something_else_stays_unread(name: str, cell: Any, tmp_path: Path) -> None:
    table = pa.table({"trace": ["a", "a", "b"], "group": ["q"] * 3, "reward": [1.0, 1.0, 0.0], name: [cell] * 3})
    pq.write_table(table, tmp_path / "rows.parquet")
    (note,) = credit.read(tmp_path).problems
    assert (note.kind, note.value) == ("unread-columns", repr(name))


@pytest.mark.parametrize(
    ("name", "numbers", "version"),
    [
        ("step", "11 22", True),
        ("global_step", "11 22", True),
        ("trainStep", "11 22", True),
        ("iteration", "11 22", True),
        ("step", "01 01", False),  # of the trace
        ("step", "xx yy", False),
        ("global_step", "12 12", False),  # a trace that ended under a later policy: the user decides
        ("steps", "11 22", False),
    ],
)
@pytest.mark.parametrize("files", [1, 2])
def test_a_step_of_each_trace_is_the_version_of_its_policy(
    name: str, numbers: str, version: bool, files: int, tmp_path: Path
) -> None:
    """It was not read: groups of several steps were one without a word, and over files the note asked for a step."""
    rows = [f"{k}{step[0]}{'ab'[k]},q,{one},{k}\n" for step in numbers.split() for k in range(2) for one in step]
    rows = [f"s{at // 4}{row}" for at, row in enumerate(rows)]
    for file in range(files):
        of_file = rows[file * 4 :: 1][:4] if files == 2 else rows
        (tmp_path / f"{file}.csv").write_text(f"trace,group,{name},reward\n" + "".join(of_file))
    found = credit.read(tmp_path)
    assert ("policy_version" in found.evidence) == version
    notes = {problem.kind: problem for problem in found.problems}
    assert set(notes) - {"group-over-files"} == ({"several-versions"} if version else {"unread-columns"})
    assert ("group-over-files" in notes) == (files == 2 and not version)
    if name == "global_step" and not version:
        assert "--columns policy_version=global_step" in notes["unread-columns"].expected
    left = credit.read(tmp_path, columns={"policy_version": ""})
    assert "policy_version" not in left.evidence


@pytest.mark.parametrize("files", [1, 2])
def test_ids_that_begin_again_in_each_step_are_told_with_the_remedy(files: int, tmp_path: Path) -> None:
    """Of one table the step was called a turn; of two, each with its trace 0, 16 refusals named no remedy."""
    steps = [[f"{k},q,{step},{int(k == 0) ^ step}\n" for k in range(4)] for step in range(2)]
    for file in range(files):
        rows = steps[file] if files == 2 else [*steps[0], *steps[1]]
        (tmp_path / f"{file}.csv").write_text("trace,group,step,reward\n" + "".join(rows) + "u,r,2,1\n" * (1 - file))
    with pytest.warns(UnreadWarning):
        problems = credit.read(tmp_path).problems
    assert {problem.kind for problem in problems if problem.is_failure} == {
        "duplicate-trace" if files == 2 else "inconsistent-reward"
    }
    said = "join its name or step to them" if files == 2 else "where ids of traces begin again in each 'step', join it"
    assert all(said in problem.expected for problem in problems if problem.is_failure)
    assert not any("turn=step" in problem.expected for problem in problems)


def epochs(seed: int, turns: bool, name: str, alike: bool = False) -> str:
    """Rollouts of four tasks at two steps of training, under the same ids, each with its own outcome."""
    draw = np.random.default_rng([81, seed])
    rows = [f"trace,group,agent,{name}{',turn' * turns},reward\n"]
    outcome = draw.integers(0, 2, (2, 12))
    for step in range(2):
        for k in range(12):
            for turn in range(1 + draw.integers(3)):
                of = outcome[0 if alike else step, k]
                rows.append(f"q{k // 3}-r{k},q{k // 3},solver,{10 + 2 * step}{f',{turn}' * turns},{of}\n")
    return "".join(rows)


@pytest.mark.parametrize("name", ["global_step", "policy_version", "step"])
@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_ids_used_again_at_a_later_step_are_refused_also_where_outcomes_agree(
    seed: int, turns: bool, name: str, tmp_path: Path
) -> None:
    """Those that agree by chance were merged and the others refused: a choice by outcome."""
    path = tmp_path / "rows.csv"
    path.write_text(epochs(seed, turns, name) + "u,r,solver,9," + "0," * turns + "1\n")
    with pytest.warns(UnreadWarning):
        traces = credit.read(path)
    assert traces.traces["trace"].to_pylist() == ["u"]
    failures = [problem for problem in traces.problems if problem.is_failure]
    assert {problem.kind for problem in failures} == {"duplicate-trace", "inconsistent-reward"}
    assert all("begin again in each" in problem.expected and "join it" in problem.expected for problem in failures)
    merged = [problem for problem in failures if problem.kind == "duplicate-trace"]
    assert all(f"'{name}' differs within " in problem.expected for problem in merged)
    assert not any("policy_version=" in problem.expected for problem in traces.problems)


@pytest.mark.parametrize("name", ["global_step", "policy_version"])
def test_steps_that_differ_within_traces_are_named_where_nothing_tells_what_they_are(name: str, tmp_path: Path) -> None:
    """Without turns and with equal outcomes, a note on the name of the column was all."""
    path = tmp_path / "rows.csv"
    path.write_text(epochs(0, False, name, alike=True))
    (note,) = credit.read(path).problems
    assert note.kind == ("several-versions" if name == "policy_version" else "unread-columns")
    assert name == "policy_version" or "; 'global_step' differs within 12 traces" in note.expected
    assert "where ids of traces begin again in each, join it" in note.expected


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", ["global_step", "policy_version"])
def test_a_trace_that_goes_on_under_a_later_policy_is_one(name: str, shuffled: bool, tmp_path: Path) -> None:
    draw = np.random.default_rng(82)
    rows = [(k, turn, 10 + (turn >= k % 6)) for k in range(12) for turn in range(5)]
    rows = [rows[i] for i in draw.permutation(len(rows))] if shuffled else rows
    path = tmp_path / "rows.csv"
    path.write_text(
        f"trace,group,turn,{name},reward\n" + "".join(f"t{k},q{k // 4},{t},{v},{k % 2}\n" for k, t, v in rows)
    )
    traces = credit.read(path)
    assert traces.graph.num_traces >= 12 and not any(problem.is_failure for problem in traces.problems)
    steps = "trace,group,turn,step,reward\n" + "".join(
        f"t{k},q{k // 4},{step // 2},{step},{k % 2}\n" for k in range(8) for step in range(6)
    )
    path.write_text(steps)  # a turn of two steps
    assert not any(problem.is_failure for problem in credit.read(path).problems)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_turns_along_the_trace_tell_the_order_where_agents_at_once_share_one(workers: int, tmp_path: Path) -> None:
    """Rows stood as in the file, 17 of 61 traces were wrong, and a note asked for turns along the trace."""
    acts = [
        ("plan", 0, ""),
        *((f"w{w}", 1, "c") for w in range(workers)),
        ("test", 2, ""),
        ("plan", 3, ""),
        ("w0", 4, ""),
    ]
    rows = [
        f"{trace},q,{agent},{turn},{trace + context if context else ''},{int(trace > 'b')},{at / 8}"
        for trace in "abcd"
        for at, (agent, turn, context) in enumerate(acts)
    ]
    header = "trace,group,agent,turn,context,reward,event_reward"
    numbers = []
    for shuffled in (False, True):
        at = np.random.default_rng(3).permutation(len(rows)).tolist() if shuffled else range(len(rows))
        path = tmp_path / f"rows{shuffled}.csv"
        path.write_text("\n".join([header, *(rows[row] for row in at)]) + "\n")
        traces = credit.read(path)
        assert [problem.kind for problem in traces.problems] == ["sorted-rows"] * shuffled
        table = credit.table(traces, credit.run(traces, "turn_baseline")).to_pylist()
        numbers.append({rows[at[row["line"] - 2]]: row["advantage"] for row in table})
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-6)
