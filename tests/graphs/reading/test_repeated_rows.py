"""Rows that a table has twice are named, and equal rows that may be several events are not."""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.tables.columns import built_from_columns, from_columns
from graphs.errors import Problem, UnreadWarning
from graphs.event_graph import EventGraph
from graphs.logs.read_logs import read
from graphs.traces.repeated_traces import repeated_traces

Table = list[dict[str, Any]]


def team(seed: int = 0, traces: int = 8) -> Table:
    """Rollouts of a planner and two workers, with rewards of steps and a critic's values."""
    draw = np.random.default_rng([63, seed])
    table: Table = []
    for trace in range(traces):
        for step in range(int(draw.integers(2, 5))):
            for agent in ("planner", "one", "two"):
                earned, value = float(draw.choice([-0.1, 0.0, 0.25])), round(float(draw.random()), 3)
                row = {"trace": f"t{trace}", "group": f"q{trace // 4}", "agent": agent, "reward": float(trace % 2)}
                row |= {"time": float(step), "turn": f"{agent}/{step}"}
                table.append(row | {"event_reward": earned if agent != "planner" else 0.0, "value": value})
    return table


def without(table: Table, *names: str) -> Table:
    return [{name: cell for name, cell in row.items() if name not in names} for row in table]


def noted(tmp_path: Path, table: Table, *, csv: bool = False) -> list[Problem]:
    path = tmp_path / "table"
    columns = pa.Table.from_pylist(table)
    (pyarrow.csv.write_csv if csv else pq.write_table)(columns, path)
    found = read(path, format="table").problems
    return [problem for problem in found if problem.kind == "repeated-rows"]


def last_trace(table: Table) -> Table:
    return [row for row in table if row["trace"] == table[-1]["trace"]]


WAYS: dict[str, Callable[[Table], tuple[Table, int, str]]] = {
    "each row twice": lambda rows: ([row for row in rows for _ in "ab"], 2, "line 1"),
    "each row three times": lambda rows: ([row for row in rows for _ in "abc"], 2, "line 1"),
    "the table again": lambda rows: (rows * 2, len(rows) + 1, "line 1"),
    "a rollout again": lambda rows: (rows + rows[:6], len(rows) + 1, "line 1"),
    "the last rows again": lambda rows: (rows + rows[-20:], len(rows) + 1, f"line {len(rows) - 19}"),
}


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("csv", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("drop", [(), ("time", "turn"), ("time", "turn", "event_reward"), ("value", "time")])
@pytest.mark.parametrize("way", WAYS)
def test_copies_are_named_with_their_number_and_the_first(
    tmp_path: Path, way: str, drop: tuple[str, ...], csv: bool
) -> None:
    """Only a turn or a time that falls was: each row twice side by side paid each reward twice without a word."""
    once = without(team(), *drop)
    rows, line, original = WAYS[way](once)
    assert not noted(tmp_path, once, csv=csv)
    if "value" in drop and len(rows) < 2 * len(once):
        return  # few rewards of three kinds may be equal by chance
    (note,) = noted(tmp_path, rows, csv=csv)
    assert not note.is_failure
    assert note.count == len(rows) - len(once)
    assert note.line == line + csv  # behind the header
    assert csv or f"equal to {original} in" in note.value


@pytest.mark.parametrize("way", WAYS)
def test_columns_that_tell_rows_apart_leave_nothing_to_note(tmp_path: Path, way: str) -> None:
    rows, _, _ = WAYS[way](without(team(), "time", "turn"))
    for column in ("id", "answer"):  # the second is not read
        told = [row | {column: f"{number}"} for number, row in enumerate(rows)]
        assert not noted(tmp_path, told)
    alike = [row | {"answer": "yes"} for row in rows]
    with pytest.warns(UnreadWarning, match="repeated-rows"):
        assert noted(tmp_path, alike)


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 60))])
def test_equal_calls_are_no_copies(tmp_path: Path, seed: int) -> None:
    """Drawn: agents that say the same again, turns of two calls, loops; few or many kinds of numbers."""
    draw = np.random.default_rng([64, seed])
    kinds, repeats, loops = int(draw.integers(1, 60)), draw.random() * 0.5, draw.random() * 0.5
    both = seed % 3 == 0
    table: Table = []
    for trace in range(int(draw.integers(2, 30))):
        steps: Table = []
        for step in range(int(draw.integers(1, 12))):
            row = {"agent": str(draw.choice([*"ab"])), "tokens": int(draw.integers(kinds)), "event_reward": 0.0}
            row = steps[-1] if steps and draw.random() < loops else row
            again = 1 + int(draw.random() < repeats)
            steps += [row] * again
            if both:  # a message and a call of each turn
                steps[-again:] = [row | {"turn": step, "tokens": 7} for _ in "ab"]
        table += [{"trace": str(trace), "reward": float(trace % 2)} | row for row in steps]
    assert not noted(tmp_path, table)


def turns_only(seed: int = 0) -> Table:
    """What tells rows apart is their turn: each step costs the same."""
    return without(team(seed), "time", "value", "event_reward")


SHUFFLED: dict[str, Callable[[Table], Table]] = {
    "appended": lambda rows: rows * 2,
    "three times": lambda rows: rows * 3,
    "shuffled": lambda rows: [(rows * 2)[at] for at in np.random.default_rng(66).permutation(2 * len(rows))],
}


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("penalty", [{}, {"event_reward": -0.1}])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
@pytest.mark.parametrize("way", SHUFFLED)
def test_a_table_whose_every_row_stands_again_is_named_though_nothing_was_measured(
    tmp_path: Path, way: str, seed: int, penalty: dict[str, float]
) -> None:
    """Only the numbers of rows told copies: a penalty of each step was paid twice without a word."""
    once = [row | penalty for row in turns_only(seed)]
    rows = SHUFFLED[way](once)
    (note,) = noted(tmp_path, rows)
    assert note.count == len(rows) - len(once)
    assert not noted(tmp_path, once)
    assert not noted(tmp_path, [once[at] for at in np.random.default_rng(seed).permutation(len(once))])
    assert not noted(tmp_path, rows + once[:1])  # one is more often: not the whole table


def short(seed: int) -> Table:
    """Rollouts of one or two turns of two agents, whose tokens were counted: none has four rows of its own."""
    draw = np.random.default_rng([67, seed])
    table: Table = []
    for trace in range(64):
        for turn in range(int(draw.integers(1, 3))):
            row = {"trace": f"t{trace}", "reward": float(trace % 2), "turn": turn}
            table += [row | {"agent": agent, "tokens": int(draw.integers(10, 400))} for agent in "ab"]
    return table


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("order", ["behind", "sorted", "shuffled"])
@pytest.mark.parametrize("seed", range(3))
def test_all_rows_that_equal_an_earlier_one_are_counted(tmp_path: Path, seed: int, order: str) -> None:
    """Of 200 rows that a step's file had twice 144 were counted, 36 once shuffled, and none once sorted."""
    once = short(seed)
    again = [row for row in once if int(row["trace"][1:]) % 2]
    rows = once + again
    if order == "sorted":
        rows = sorted(rows, key=lambda row: (row["trace"], row["turn"], row["agent"]))
    elif order == "shuffled":
        rows = [rows[at] for at in np.random.default_rng(seed).permutation(len(rows))]
    (note,) = noted(tmp_path, rows)
    assert note.count == len(again)
    assert not noted(tmp_path, once)


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("csv", [False, True])
def test_a_table_of_single_calls_that_follows_itself_is_named(tmp_path: Path, csv: bool) -> None:
    """`pd.concat` of a file with itself, where no turn is left and nothing measured, was silent."""
    once: Table = [{"trace": f"t{k}", "group": f"q{k // 4}", "reward": float(k % 3)} for k in range(16)]
    for parts in (2, 3):
        (note,) = noted(tmp_path, once * parts, csv=csv)
        assert note.count == 16 * (parts - 1)
    assert not noted(tmp_path, once + once[:8], csv=csv)  # their second calls may say the same
    assert not noted(tmp_path, [row for row in once for _ in "ab"], csv=csv)


def calls(*agents: str, turns: bool = True, traces: int = 20) -> Table:
    """A trace of each agent's calls, in this order: "one/3" is a call of agent one in its turn 3."""
    told = [dict(zip(("agent", "turn"), call.split("/"), strict=True)) for call in agents]
    rows = [{"trace": f"t{trace}", "reward": trace % 2 * 1.0} | call for trace in range(traces) for call in told]
    return rows if turns else without(rows, "turn")


HONEST: dict[str, Table] = {
    "a solver calls twice": calls("solver/0", "solver/1", turns=False),
    "a solver calls four times": calls(*["solver/0"] * 4, turns=False),
    "two rounds of a debate": calls("a/0", "b/0", "c/0", "a/1", "b/1", "c/1", turns=False),
    "two calls in each turn": calls(*(f"a/{turn // 2}" for turn in range(12))),
    "calls behind those of others": calls(*(f"{agent}/{turn}" for turn in range(3) for agent in "ababab")),
    "agents at once": calls(*["a/0", "b/5", "a/0", "b/5", "a/1", "b/6", "a/1", "b/6"]),
    "one agent, one turn": calls(*["a/0", "b/1", "c/2", "a/0", "b/1", "c/2"]),
    "one trace in which turns come back": calls(*(f"a/{turn % 9}" for turn in range(18)), traces=1),
}


@pytest.mark.parametrize("name", HONEST)
def test_each_call_twice_is_no_copy_where_agents_return_to_no_turn(tmp_path: Path, name: str) -> None:
    assert not noted(tmp_path, HONEST[name])
    assert not noted(tmp_path, [row | {"event_reward": -0.1} for row in HONEST[name]])


@pytest.mark.parametrize("csv", [False, True])
@pytest.mark.parametrize("way", ["two files", "one file", "other values", "few"])
def test_a_step_that_is_read_twice_under_new_ids_is_named(tmp_path: Path, way: str, csv: bool) -> None:
    """Values, tokens and turns were identical, and nothing was said."""
    draw, traces = np.random.default_rng(0), 4 if way == "few" else 12
    rows = [
        f"{{}}{i},q{i // 4},{'ab'[k % 2]},{k},{i % 2},{value:.3f},{int(400 * value)}\n"
        for i in range(traces)
        for k, value in enumerate(draw.random(int(draw.integers(1, 4))))
    ]
    head = "trace,group,agent,turn,reward,value,tokens\n"
    first, again = ("".join(rows).replace("{}", name) for name in "xy")
    again = again.replace(".", ".9") if way == "other values" else again
    texts = [head + first + again] if way == "one file" else [head + first, head + again]
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.csv"
        path.write_text(text)
        if not csv:
            pq.write_table(pyarrow.csv.read_csv(path), path.with_suffix(".parquet"))
            path.unlink()
    with pytest.warns(UnreadWarning, match="repeated-rows") if "file" in way else contextlib.nullcontext():
        found = [problem for problem in read(tmp_path).problems if problem.kind == "repeated-rows"]
    assert [(problem.trace, problem.count) for problem in found] == [("y0", len(rows))] * ("file" in way)
    assert all("equal to that of trace 'x0'" in problem.value for problem in found)


@pytest.mark.parametrize("fine", [True, False], ids=["scores", "passes"])
@pytest.mark.parametrize("way", ["two files", "one file", "once"])
def test_a_native_step_that_is_read_twice_under_new_ids_is_named(tmp_path: Path, way: str, fine: bool) -> None:
    """Only tables were looked at."""
    scores = np.random.default_rng(72).normal(size=12)
    lines = [
        {"trace_id": f"x{i}", "task_id": f"q{i // 4}", "rewards": {"team": score if fine else float(score > 0)},
         "events": [{"id": "e", "type": "message", "agent": "solver"}]}
        for i, score in enumerate(scores.tolist())
    ]  # fmt: skip
    again = [line | {"trace_id": f"y{i}"} for i, line in enumerate(lines)]
    files = {"two files": [lines, again], "one file": [lines + again], "once": [lines]}[way]
    for number, records in enumerate(files):
        (tmp_path / f"{number}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    named = fine and way != "once"
    with pytest.warns(UnreadWarning, match="repeated-rows") if named else contextlib.nullcontext():
        found = [problem for problem in read(tmp_path).problems if problem.kind == "repeated-rows"]
    assert [(problem.trace, problem.count) for problem in found] == [("y0", 12)] * named


def test_a_group_that_a_file_has_again_under_new_ids_is_named(tmp_path: Path) -> None:
    """A part of a step, appended when a run was resumed: only whole files were looked at."""
    lines = [
        {"trace_id": f"x{i}", "task_id": f"q{i // 8}", "rewards": {"team": score},
         "events": [{"id": "e", "type": "message", "agent": "solver"}]}
        for i, score in enumerate(np.random.default_rng(3).normal(size=24).tolist())
    ]  # fmt: skip
    records = lines + [line | {"trace_id": f"y{i}"} for i, line in enumerate(lines[8:16])]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.warns(UnreadWarning, match="repeated-rows"):
        (found,) = (problem for problem in read(tmp_path).problems if problem.kind == "repeated-rows")
    assert (found.trace, found.count) == ("y0", 8)


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("twice", [False, True], ids=["rows once", "rows twice"])
def test_rows_of_a_copied_file_are_not_counted_as_read(tmp_path: Path, twice: bool) -> None:
    """Its traces were dropped, and their rows said to count twice."""
    rows = without(team(), "turn") * (1 + twice)
    for name in ("17", "18"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (tmp_path / "18.jsonl").open("a") as file:
        file.write("\n")
    found = read(tmp_path).problems
    assert any(problem.kind == "repeated-run" for problem in found)
    noted = [(Path(problem.file).name, problem.count) for problem in found if problem.kind == "repeated-rows"]
    assert noted == [("17.jsonl", len(rows) // 2)] * twice


def passes(seed: int, kind: str = "drawn") -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of 0 and 1, and groups, of drawn tasks; kinds of policies and of orders in which files have them."""
    draw = np.random.default_rng([73, seed])
    tasks, size = int(draw.integers(1, 33)), int(draw.choice([2, 4, 8, 16]))
    chance = draw.beta(0.5, 0.5, tasks) if draw.random() < 0.5 else draw.beta(2, 2, tasks)
    if kind == "hardly varies":
        chance = np.where(draw.random(tasks) < 0.5, 0.02, 0.98)
    again = (draw.random((2, tasks, size)) < chance[:, None]).astype(float)
    group = np.repeat(np.arange(tasks), size).reshape(tasks, size)
    if kind == "sorted":
        again = -np.sort(-again, axis=-1)
    elif kind == "chosen and rejected":
        again[:] = np.arange(size) % 2
    elif kind == "by turns":
        again[:] = np.arange(again[0].size).reshape(tasks, size) % 3 == 0
    if kind == "two epochs":
        return again.ravel(), np.concatenate([group.ravel(), tasks * (seed % 2) + group.ravel()])
    if kind == "a sample of each task first":
        return again[0].T.ravel(), group.T.ravel()
    return again[0].ravel(), group.ravel()


KINDS = ["drawn", "hardly varies", "sorted", "chosen and rejected", "by turns", "two epochs",
         "a sample of each task first"]  # fmt: skip


def graph_of(group: np.ndarray) -> EventGraph:
    return built_from_columns({"group": group, "trace": np.arange(len(group)), "reward": 0.0 * group})[0]


@pytest.mark.parametrize("kind", KINDS)
def test_no_honest_batch_of_passes_is_called_repeated(kind: str) -> None:
    for seed in range(40):
        outcome, group = passes(seed, kind)
        assert not len(repeated_traces(graph_of(group), outcome, [], [])[0]), seed


@pytest.mark.parametrize("groups", ["the same", "new"])
def test_passes_that_stand_again_in_their_order_are_named(groups: str) -> None:
    """A step of 0 and 1 that was read twice under new ids was silent, and any step under new groups."""
    found = []
    for seed in range(40):
        outcome, group = passes(seed)
        both = np.concatenate([group, group + (group.max() + 1) * (groups == "new")])
        again, first = repeated_traces(graph_of(both), np.tile(outcome, 2), [], [])
        varied = sum(outcome[group == task].std() > 0.3 for task in range(group.max() + 1)) * np.bincount(group)[0]
        assert len(again) in (0, len(outcome))
        assert not len(again) or (again - first == len(outcome)).all()
        found.append((varied >= 64, len(again) > 0))
    assert all(named for enough, named in found if enough)  # 64 traces of tasks that are neither solved nor failed


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_batch_that_stands_again_under_new_ids_and_groups_is_named(shuffled: bool) -> None:
    """Only traces of one group were compared. The first named pair is no chance twin."""
    draw = np.random.default_rng(74)
    scores, tasks = draw.normal(size=24).round(3), np.repeat(np.arange(6), 4)
    scores[9] = scores[2]  # twins by chance
    order = draw.permutation(24) if shuffled else np.arange(24)
    rows: dict[str, Any] = {"group": [*tasks, *(tasks[order] + 6)], "trace": np.arange(48)}
    rows["reward"] = [*scores, *scores[order]]
    with pytest.warns(UserWarning, match="rows of .* traces that equal earlier ones in every number") as said:
        from_columns(**rows)
    copy, original = map(int, re.findall(r"row (\d+) is row (\d+) again", str(said[0].message))[0])
    assert copy >= 24 > original and original not in (2, 9)
    with warnings.catch_warnings(action="error"):
        from_columns(**{name: column[:24] for name, column in rows.items()})


def test_the_row_that_is_named_is_no_call_that_was_made_twice(tmp_path: Path) -> None:
    """Line 2 was called that of line 1 again, though an agent had said the same twice, beside 20 copies."""
    draw = np.random.default_rng(75)
    once: Table = [{"trace": f"t{k // 4}", "reward": k // 4 % 2, "tokens": int(draw.integers(999))} for k in range(20)]
    once[1] = once[0]
    (note,) = noted(tmp_path, once * 2)
    assert (note.line, note.value) == (23, "equal to line 3 in every column")


def scored() -> Table:
    """Sixteen traces of four calls, each with a reward that is a real number."""
    draw = np.random.default_rng(76)
    return [
        {
            "trace": f"t{k // 4}",
            "group": f"q{k // 16}",
            "agent": "papc"[k % 4],
            "turn": k % 4,
            "reward": float(k // 8 % 2),
        }
        | {"event_reward": float(draw.normal())}
        for k in range(64)
    ]


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
def test_a_row_and_a_few_traces_again_are_named_where_real_numbers_tell_all_others_apart(tmp_path: Path) -> None:
    """Fewer than eight were not, whatever their rewards."""
    once = scored()
    assert not noted(tmp_path, once)
    (note,) = noted(tmp_path, [*once, once[7]])
    assert (note.line, note.value) == (65, "equal to line 8 in every column")
    (note,) = noted(tmp_path, once + [row | {"trace": f"{row['trace']} again"} for row in once[:16]])
    assert note.line == 65 and note.value.startswith("equal to that of trace 't0'") and note.count == 16
    coarse = [row | {"event_reward": round(row["event_reward"], 1)} for row in once]
    assert not noted(tmp_path, [*coarse, coarse[7]])


@pytest.mark.parametrize("name", ["value", "event_reward", "q_value"])
def test_one_number_for_a_trace_proves_no_copied_row(tmp_path: Path, name: str) -> None:
    """A critic's value of the task, in each row, made second calls of an agent copies."""
    once = [row | {name: 0.1234567 * int(row["trace"][1:]), "agent": "pw"[i % 2]} for i, row in enumerate(scored())]
    rows = [{key: cell for key, cell in row.items() if key not in {"turn", "event_reward"} - {name}} for row in once]
    assert not [note for note in noted(tmp_path, rows) if note.kind == "repeated-rows"]


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
def test_rows_of_a_copied_trace_are_counted_with_that_trace_alone(tmp_path: Path) -> None:
    """They were named as copies of single rows, too: 15 rows counted twice where 8 did."""
    once = [row | {"token_ids": [k, 7], "token_log_probs": [-9.25, -8.5]} for k, row in enumerate(scored())]
    again = [row | {"trace": "t0 again"} for row in once[:4]]
    found = noted(tmp_path, [*once[:8], once[7], *once[8:], *again])
    assert [(note.line, note.count) for note in found] == [(9, 1), (66, 4)]


@pytest.mark.parametrize("kind", ["scores of few kinds", "a policy that does not vary"])
def test_numbers_that_honest_traces_share_are_no_copies(kind: str) -> None:
    """Eight traces of which each has the score of one of others, or all samples of each task were the same text."""
    for seed in range(60):
        draw = np.random.default_rng([76, seed])
        tasks, size = int(draw.integers(9, 16)), int(draw.choice([4, 8]))
        group = np.repeat(np.arange(tasks), size)
        outcome = draw.choice(draw.normal(size=20), len(group))
        outcome = outcome if "few" in kind else draw.normal(size=tasks)[group]
        assert not len(repeated_traces(graph_of(group), outcome, [], [])[0]), seed


def drawn(seed: int, texts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, tokens and groups of a policy that writes some texts of each task, a few of them mostly."""
    draw = np.random.default_rng([77, seed, texts])
    tasks, size = int(draw.integers(8, 25)), int(draw.choice([4, 8]))
    often = draw.dirichlet(np.full(texts, 0.3), tasks)
    text = np.stack([draw.choice(texts, size, p=chances) for chances in often])
    tokens, passed = draw.integers(5, 300, (tasks, texts)), draw.random((tasks, texts)) < 0.5
    of = np.repeat(np.arange(tasks), size), text.ravel()
    return passed[of].astype(float), tokens[of], of[0]


@pytest.mark.parametrize("texts", [2, 50, *(pytest.param(texts, marks=pytest.mark.slow) for texts in (5, 5000))])
def test_a_stretch_of_traces_under_new_ids_is_named_wherever_it_lies(texts: int) -> None:
    """A block of rows that was copied within a file counted twice in silence. No honest batch is accused."""
    found = []
    for seed in range(40):
        outcome, tokens, group = drawn(seed, texts)
        assert not len(repeated_traces(graph_of(group), outcome, [tokens], [tokens])[0]), seed
        draw = np.random.default_rng([78, seed])
        size = int(draw.integers(12, len(group) // 2))
        start = int(draw.integers(0, len(group) - size))
        place = int(draw.integers(start + size, len(group) + 1))
        rows = np.insert(np.arange(len(group)), place, np.arange(start, start + size))
        again, first = repeated_traces(graph_of(group[rows]), outcome[rows], [tokens[rows]], [tokens[rows]])
        copies = np.arange(place, place + size)
        found.append(np.isin(copies, again).all())
        assert (group[rows][again] == group[rows][first]).all() and (first < again).all()
    assert texts < 50 or all(found)


def at_places(seed: int, place: str) -> Table:
    """Jobs of a planner, two coders at once and a reviewer, whose rewards are of few kinds: only a place tells rows."""
    draw = np.random.default_rng([81, seed])
    table: Table = []
    for trace in range(24):
        at = float(draw.integers(1_000_000))
        for step, agent in enumerate(("planner", "coder_a", "coder_b", "reviewer")):
            at += float(draw.random() * 20)
            row = {"trace": f"t{trace}", "group": f"q{trace // 4}", "agent": agent, "reward": float(trace % 2)}
            row["event_reward"] = 0.2 * float(step in (1, 2) and draw.random() < 0.7)
            row["time"] = round(at, 6) if place == "time" else float(step)
            row["context"] = f"t{trace}/r" if place == "context" and step in (1, 2) else None
            table.append(row)
    return table


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("place", ["time", "context"])
@pytest.mark.parametrize("count", [1, 11])
@pytest.mark.parametrize("end", [False, True])
def test_every_row_that_equals_one_at_its_place_is_counted(tmp_path: Path, place: str, count: int, end: bool) -> None:
    """One copy moved its whole group without a word, and of 35 two were counted: a proof by chance needed more."""
    once = at_places(count, place)
    assert not noted(tmp_path, once)
    again = [row for row in once if row["agent"] == "coder_b"][:count]
    rows = once + again if end else [row for row in once for _ in range(1 + (row in again))]
    (note,) = noted(tmp_path, rows)
    assert note.count == count
    assert not noted(tmp_path, [row | {"answer": str(number)} for number, row in enumerate(rows)])  # unread, and unlike


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("clock", ["whole seconds", "of the run", "several calls at one time"])
def test_equal_rows_without_a_place_of_their_own_are_no_copies(tmp_path: Path, clock: str, seed: int) -> None:
    """Drawn: calls of few kinds, two of them in some steps; a clock of seconds, one of the run, and calls at once."""
    draw = np.random.default_rng([82, seed])
    table: Table = []
    for trace in range(16):
        begin = float(draw.random() * 1e6)
        for step in range(int(draw.integers(2, 5))):
            at = {"whole seconds": begin // 1 + step, "of the run": begin}.get(clock, begin + step)
            row = {"trace": f"t{trace}", "reward": float(trace % 2), "agent": "solver", "time": at}
            times = 4 if clock.startswith("several") else 1 + int(draw.random() < 0.3)
            table += [row | {"tokens": int(draw.integers(4))} for _ in range(times)]
    assert not noted(tmp_path, table)


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "1 row of the log equals an earlier one, and counts"), (3, "3 rows of the log equal earlier ones, and count")],
)
def test_assign_counts_them(tmp_path: Path, count: int, said: str) -> None:
    """Of one it said "1 row of the log equal earlier ones, and count twice"."""
    once = at_places(0, "context")
    again = [row for row in once if row["agent"] == "coder_b"][:count]
    pq.write_table(pa.Table.from_pylist(once + again), tmp_path / "rows.parquet")
    done = CliRunner().invoke(
        cli, ["assign", str(tmp_path / "rows.parquet"), "-m", "rloo", "-o", str(tmp_path / "a.csv")]
    )
    assert f"the policy gradient may be biased: {said} twice" in done.output
