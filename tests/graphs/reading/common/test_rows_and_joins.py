"""Rows of tables with their places, and rewards and groups joined to traces."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from graphs.errors import CreditError, NothingReadError, TraceError
from graphs.logs import read
from graphs.logs.chunks import read_chunks
from graphs.reading.source import Lost, Source
from graphs.reading.tables.rows import column_names, number, read_rows


def parquet(**columns: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, row_group_size=2)
    return out.getvalue()


def rows_of(content: bytes, folder: Path, name: str = "table") -> list[tuple[int, Any]]:
    file = folder / name
    file.write_bytes(content)
    return [(line, row.problem.kind if isinstance(row, Lost) else row) for line, row in read_rows(file)]


def test_csv_cells_stay_text_and_empty_cells_are_absent(tmp_path: Path) -> None:
    content = b'trace,reward,note\r\n007,1.5,"a, ""b""\nc"\r\n\r\nx,,""\n'
    assert rows_of(content, tmp_path)[0] == (2, {"trace": "007", "reward": "1.5", "note": 'a, "b"\nc'})
    assert rows_of(b"a,b\n1,\n", tmp_path) == [(2, {"a": "1", "b": None})]


def test_a_bad_row_of_csv_stands_alone(tmp_path: Path) -> None:
    content = b"a,b\n1,2\n1\n1,2,3\n5,6\n"
    assert rows_of(content, tmp_path) == [
        (2, {"a": "1", "b": "2"}),
        (3, "bad-row"),
        (4, "bad-row"),
        (5, {"a": "5", "b": "6"}),
    ]


def test_json_lines_keep_their_types_and_a_bad_line_stands_alone(tmp_path: Path) -> None:
    content = b'{"a": 1, "b": [2]}\n\n{"a": \n[1]\n{"a": 1e999}\n{"a": null}\n' + b'{"a":' * 9999
    assert rows_of(content, tmp_path) == [
        (1, {"a": 1, "b": [2]}),
        (3, "bad-json"),
        (4, "bad-type"),
        (5, "non-finite"),
        (6, {"a": None}),
        (7, "too-deep"),
    ]


def test_parquet_rows_are_numbered(tmp_path: Path) -> None:
    content = parquet(a=[1, None, 3], b=["x", "y", "z"])
    assert rows_of(content, tmp_path) == [(1, {"a": 1, "b": "x"}), (2, {"a": None, "b": "y"}), (3, {"a": 3, "b": "z"})]
    assert [row for _, row in read_rows(tmp_path / "table", ["b"])] == [{"b": "x"}, {"b": "y"}, {"b": "z"}]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gz", "zst"])
@pytest.mark.parametrize("content", [b"a\n1\n", b'{"a": "1"}', parquet(a=["1"])], ids=["csv", "jsonl", "parquet"])
def test_compressed_tables(pack: Callable[[bytes], bytes], content: bytes, tmp_path: Path) -> None:
    assert [row for _, row in rows_of(pack(content), tmp_path)] == [{"a": "1"}]


@pytest.mark.parametrize(
    ("content", "kind", "line"),
    [
        (b"", "empty-file", 0),
        (b"\n \n", "empty-file", 0),
        (b"a,a\n1,2\n", "bad-header", 1),
        (b'"a\n1,2\n', "bad-csv", 1),
        (b'a,b\n1,2\n3,"x"y\n5,6\n', "bad-csv", 3),
        (b'a,b\n1,2\n3,"x\n5,6\n', "bad-csv", 3),
        (b"a\n\xff\n", "not-utf-8", 2),
        (b"PAR1 and no more", "bad-parquet", 0),
        (parquet(a=list(range(1000)))[:-9], "bad-parquet", 0),
        (gzip.compress(b"a\n1\n")[:-3], "unreadable", 0),
    ],
    # gzip stamps the time into its header: an id made of it would differ between the workers of a run.
    ids=lambda value: repr(value[:4]) if isinstance(value, bytes) else str(value),
)
def test_tables_that_cannot_be_read(content: bytes, kind: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        rows_of(content, tmp_path)
    assert (caught.value.problem.kind, caught.value.problem.line) == (kind, line)
    assert caught.value.problem.file == str(tmp_path / "table")


def test_damage_inside_a_parquet_file_is_named(tmp_path: Path) -> None:
    content = bytearray(parquet(a=[f"text {i}" for i in range(1000)]))
    rng = np.random.default_rng(7)
    seen: set[str] = set()
    for _ in range(60):
        damaged = bytearray(content)
        for at in rng.integers(4, len(content), 20):
            damaged[at] = rng.integers(256)
        try:
            seen.add(str(len(rows_of(bytes(damaged), tmp_path))))
        except TraceError as error:
            seen.add(error.problem.kind)
    assert "bad-parquet" in seen


def test_column_names(tmp_path: Path) -> None:
    for content, names in (
        (b"a,b\n1,2\n", ["a", "b"]),
        (b'{"a": 1}\n{"b": 2, "a": 3}\n', ["a", "b"]),
        (parquet(x=[1], y=[2]), ["x", "y"]),
    ):
        (tmp_path / "t").write_bytes(content)
        assert column_names(Source("t", tmp_path / "t")) == names


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three traces, the first with an outcome of its own."""
    file = tmp_path / "log.jsonl"
    lines = [
        {"trace_id": name, "task_id": "k", "events": [{"id": "1", "type": "message", "agent": "x"}]} for name in "abc"
    ]
    lines[0]["rewards"] = {"team": 5.0}
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


@pytest.mark.parametrize(
    "content",
    [b"trace,reward,other\nc,0.5,x\na,-1,y\n", b'{"trace_id": "c", "reward": 0.5}\n{"trace": "a", "reward": -1}',
     parquet(trace=["c", "a"], reward=[0.5, -1.0])],
    ids=["csv", "jsonl", "parquet"],
)  # fmt: skip
def test_rewards_from_a_file(content: bytes, log: Path, tmp_path: Path) -> None:
    (tmp_path / "rewards").write_bytes(content)
    traces = read(log, rewards=tmp_path / "rewards")
    np.testing.assert_array_equal(traces.reward[:3], np.array([-1, np.nan, 0.5], np.float32))
    assert [problem.kind for problem in traces.problems] == ["unread-columns"] * (b"other" in content)


def test_groups_from_a_file_and_mappings(log: Path, tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("trace,group\na,1\nb,2\nc,1\n")
    traces = read(log, groups=tmp_path / "groups.csv", rewards={"a": 1, "b": 2.5, "c": "3"}, reward="judge")
    assert traces.traces["group"].to_pylist() == ["1", "2", "1"]
    assert traces.graph.group_ids[:3].tolist() == [0, 1, 0]
    assert traces.reward[:3].tolist() == [1, 2.5, 3]
    assert traces.evidence["rewards.team"].mask[:3].tolist() == [True, False, False]


def test_kinds_of_tasks_stand_beside_groups_and_replace_those_of_the_log(tmp_path: Path) -> None:
    event = {"id": "e", "type": "message", "agent": "x", "t": 0}
    runs = [{"trace_id": name, "task_id": "q", "task_kind": "own", "events": [event], "edges": []} for name in "abcd"]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    (tmp_path / "groups.csv").write_text("trace,group,task_kind\na,q,theft\nb,q,\nc,q,none\n")
    traces = read(tmp_path / "log.jsonl", groups=tmp_path / "groups.csv")
    assert traces.traces["task_kind"].to_pylist() == ["theft", "own", "own", "own"]
    rows = '{"trace": "a", "group": "q", "task_kind": ["x"]}\n{"trace": "b", "group": "q", "task_kind": 7}\n'
    (tmp_path / "groups.jsonl").write_text(rows)
    traces = read(tmp_path / "log.jsonl", groups=tmp_path / "groups.jsonl")
    assert traces.traces.select(["trace", "task_kind"]).to_pylist() == [
        {"trace": "b", "task_kind": "7"}, {"trace": "c", "task_kind": "own"}, {"trace": "d", "task_kind": "own"}
    ]  # fmt: skip
    assert [(one.kind, one.field) for one in traces.problems if one.is_failure] == [("bad-type", "task_kind")]


def test_systems_stand_beside_groups_and_replace_those_of_the_log(tmp_path: Path) -> None:
    """`system` beside `group` was read by nothing, and nothing said so."""
    event = {"id": "e", "type": "message", "agent": "x", "t": 0}
    runs = [{"trace_id": name, "task_id": "q", "system": "own", "events": [event], "edges": []} for name in "abcd"]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    (table := tmp_path / "groups.csv").write_text("trace,group,system\na,q,v2\nb,q,\nc,r,v2\n")
    traces = read(tmp_path / "log.jsonl", groups=table)
    assert traces.traces["system"].to_pylist() == ["v2", "own", "v2", "own"]
    assert [*traces.graph.group_ids[:4]] == [0, 1, 2, 1], "groups are of one system"
    every: dict[str, str] = {}
    for part in read_chunks(tmp_path / "log.jsonl", groups=table, events=1):
        every |= dict(zip(part.traces["trace"].to_pylist(), part.traces["system"].to_pylist(), strict=True))
    assert every == {"a": "v2", "b": "own", "c": "v2", "d": "own"}, "chunks, too"
    (other := tmp_path / "groups.jsonl").write_text('{"trace": "a", "group": "q", "system": ["x"]}\n')
    failed = [one for one in read(tmp_path / "log.jsonl", groups=other).problems if one.is_failure]
    assert [(one.kind, one.field) for one in failed] == [("bad-type", "system")]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("column", ["group", "task_id"])
def test_a_table_of_groups_and_kinds_alone_gives_each_task_its_kind(column: str, form: str, tmp_path: Path) -> None:
    """It was refused for want of a trace, though what it says is plain."""
    event = {"id": "1", "type": "message", "agent": "x"}
    runs = [{"trace_id": n, "task_id": g, "events": [event]} for n, g in zip("abcd", "qqrs", strict=True)]
    (log := tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, runs)))
    rows: list[dict[str, Any]] = [{column: "q", "task_kind": "theft"}, {column: "r", "task_kind": "fraud"}]
    rows += [{column: "r", "task_kind": "fraud"}, {column: "s", "task_kind": "x"}, {column: "s", "task_kind": "y"}]
    rows += [{column: "t", "task_kind": "theft"}]
    table = tmp_path / f"kinds.{form}"
    if form == "csv":
        table.write_text("\n".join(",".join(row) for row in ([column, "task_kind"], *(r.values() for r in rows))))
    elif form == "jsonl":
        table.write_text("\n".join(map(json.dumps, rows)))
    else:
        pq.write_table(pa.Table.from_pylist(rows), table)
    traces = read(log, groups=table)
    assert traces.traces["group"].to_pylist() == ["q", "q", "r", "s"]
    assert traces.traces["task_kind"].to_pylist() == ["theft", "theft", "fraud", None]
    said = [(one.kind, one.line, one.field, one.value) for one in traces.problems if one.is_failure]
    first = 2 if form == "csv" else 1
    assert said == [("ambiguous-row", first + 4, "task_kind", "'y'"), ("unmatched-row", first + 5, column, "'t'")]
    assert any(one.kind == "near-columns" for one in traces.problems) == (column != "group")


@pytest.mark.parametrize(("column", "reward"), [("trace", False), ("trace_id", True), ("run_id", True)])
def test_kinds_stand_beside_traces_where_the_log_states_the_tasks(column: str, reward: bool, tmp_path: Path) -> None:
    """A table of traces and their kinds was refused for want of groups, which the log has."""
    event = {"id": "1", "type": "message", "agent": "x"}
    runs = [{"trace_id": n, "task_id": g, "events": [event]} for n, g in zip("abcd", "qqrs", strict=True)]
    runs.append({"trace_id": "e", "task_id": "q", "events": []})  # refused
    (log := tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, runs)))
    rows = ["atheft", "btheft", "cfraud", "efraud", "dx", "dy", "tx", " x"]
    table = tmp_path / "kinds.csv"
    table.write_text(f"{column},task_kind{',reward' * reward}\n")
    with table.open("a") as file:
        file.writelines(f"{row[0].strip()},{row[1:].strip()}{',1' * reward}\n" for row in rows)
    traces = read(log, groups=table)
    assert traces.traces["group"].to_pylist() == ["q", "q", "r", "s"]
    assert traces.traces["task_kind"].to_pylist() == ["theft", "theft", "fraud", None]
    found = [(one.kind, one.line) for one in traces.problems if one.is_failure and one.file == str(table)]
    assert found == [("ambiguous-row", 7), ("bad-row", 9), ("unmatched-row", 8)]
    assert any(one.kind == "near-columns" for one in traces.problems) == (column == "run_id")
    if reward:
        assert read(log, groups=table, rewards=table).traces["task_kind"].to_pylist() == [
            "theft",
            "theft",
            "fraud",
            None,
        ]


def test_a_table_without_traces_is_told_what_may_stand_alone(log: Path, tmp_path: Path) -> None:
    (table := tmp_path / "kinds.csv").write_text("group,task_kind\n")
    with pytest.raises(TraceError, match="empty-file"):
        read(log, groups=table)
    table.write_text("group,task_kind,level\nk,x,1\n")
    with pytest.raises(
        TraceError, match=r"any of `group` \(the task.*\), `task_kind` \(what kind.*\) and `system` \(which system"
    ):
        read(log, groups=table)


@pytest.mark.parametrize("column", ["trace", "task"])
def test_a_table_of_systems_and_kinds_leaves_each_trace_its_task(column: str, tmp_path: Path) -> None:
    """Where each task runs once a team has no groups to state: the advice made groups of the kinds."""
    event = {"id": "1", "type": "message", "agent": "x"}
    runs = [{"trace_id": n, "task_id": n, "system": "v0", "events": [event]} for n in "abc"]
    (log := tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, runs)))
    (table := tmp_path / "table.csv").write_text(f"{column},system,task_kind\na,v1,theft\nb,,fraud\na,v2,theft\n")
    traces = read(log, groups=table)
    rows = traces.traces.select(["group", "system", "task_kind"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [("a", None, "theft"), ("b", "v0", "fraud"), ("c", "v0", None)]
    assert [(one.kind, one.line) for one in traces.problems if one.is_failure] == [("ambiguous-row", 4)]
    table.write_text("trace,system,day\na,v1,mo\n")
    notes = [(one.kind, one.value) for one in read(log, groups=table).problems]
    assert notes == [("unread-columns", "'day'")]
    table.write_text("trace,release\na,v1\n")
    with pytest.raises(TraceError, match="bad-header") as error:
        read(log, groups=table)
    assert "rename" not in str(error.value)


@pytest.mark.parametrize("header", ["trace,task_id,task_kind", "trace,task,task_kind"])
def test_a_column_of_kinds_is_not_taken_for_the_tasks(log: Path, tmp_path: Path, header: str) -> None:
    (tmp_path / "groups.csv").write_text(f"{header}\na,1,x\nb,2,x\nc,1,y\n")
    assert read(log, groups=tmp_path / "groups.csv").traces["task_kind"].to_pylist() == ["x", "x", "y"]


@pytest.mark.parametrize(
    ("text", "kinds", "reward_of_b"),
    [
        ("b,1\nb,1\n", [("ambiguous-row", 3)], np.nan),
        ("b,1\nb,2\nb,3\n", [("ambiguous-row", 3), ("ambiguous-row", 4)], np.nan),
        ("b,\n", [("bad-row", 2)], np.nan),
        (",1\n", [("bad-row", 2)], np.nan),
        ("b,high\n", [("non-finite-reward", 2)], np.nan),
        ("b,nan\n", [("non-finite-reward", 2)], np.nan),
        ("b,1e999\n", [("non-finite-reward", 2)], np.nan),
        ("b,1_000\n", [("non-finite-reward", 2)], np.nan),
        ("b,١\n", [("non-finite-reward", 2)], np.nan),
        ("b,maybe\n", [("non-finite-reward", 2)], np.nan),
        ("b,high\nb,1\n", [("non-finite-reward", 2), ("ambiguous-row", 3)], np.nan),
        ("zzz,1\nb,2\n", [("unmatched-row", 2)], 2.0),
    ],
)
def test_rows_that_do_not_fit_are_reported_and_never_guessed(
    text: str, kinds: list[tuple[str, int]], reward_of_b: float, log: Path, tmp_path: Path
) -> None:
    file = tmp_path / "rewards.csv"
    file.write_text("trace,reward\n" + text)
    traces = read(log, rewards=file)
    assert [(p.kind, p.line) for p in traces.problems] == kinds
    assert {p.file for p in traces.problems} == {str(file)}
    np.testing.assert_array_equal(traces.reward[:3], np.array([5, reward_of_b, np.nan], np.float32))


def test_what_a_row_of_an_unknown_trace_may_have_meant_is_counted_as_what_it_is(log: Path, tmp_path: Path) -> None:
    """Of 47 traces that were read it said "There are 9": so many had no row."""
    file = tmp_path / "rewards.csv"
    file.write_text("trace,reward\na,1\nzzz,1\n")
    (problem,) = read(log, rewards=file).problems
    assert problem.expected.endswith("that was read, whose reward the row states. Traces without a row (2): b, c.")


def test_one_table_states_several_rewards(log: Path, tmp_path: Path) -> None:
    """A table of a person's and a judge's verdicts had to be split: one channel was read of each."""
    file = tmp_path / "verdicts.csv"
    file.write_text(
        "run_id,rewards.human,rewards.judge,rewards.critic\na,no,approved,pass\nb,yes,,1\nzzz,yes,approved,\n"
    )
    traces = read(log, rewards=file, reward="human", outcomes={"approved": 0.5})
    np.testing.assert_array_equal(traces.reward[:3], np.array([0, 1, np.nan], np.float32))
    stated = {name: traces.evidence[f"rewards.{name}"] for name in ("human", "judge")}
    assert {name: (one.rows.tolist(), one.amounts.tolist()) for name, one in stated.items()} == {
        "human": ([0, 1], [0.0, 1.0]), "judge": ([0], [0.5])
    }  # fmt: skip
    assert [(p.kind, p.line, p.about) for p in traces.problems if p.is_failure] == [
        ("mixed-outcomes", 2, "rewards.critic"), ("unmatched-row", 4, "reward")
    ]  # fmt: skip
    file.write_text("trace,reward,rewards.judge\na,0,1\n")
    beside = read(log, rewards=file)
    chunks = read_chunks(log, events=1, rewards=file)
    assert beside.reward[0] == 0 and beside.reward_channels == ["team", "judge"] and not beside.problems
    assert {name for part in chunks for name in part.reward_channels} == {"team", "judge"} and not list(chunks.problems)
    file.write_text("trace,human_says,judge_says\na,0,1\n")
    with pytest.raises(TraceError, match=r"one of `human_says`, `judge_says` to `reward`, others to `rewards\.NAME`"):
        read(log, rewards=file)
    file.write_text("trace,reward,rewards.team\na,0,1\n")
    with pytest.raises(TraceError, match=r"expected one column of the reward 'team', `reward` or `rewards\.team`"):
        read(log, rewards=file)


@pytest.mark.parametrize(
    ("one", "zero"),
    [("True", "False"), ("pass", "fail"), ("PASSED", "failed"), ("Yes", "no"), ("success", "Failure"), (True, False),
     ("resolved", "unresolved"), ("solved", "Unsolved"), ("succeeded", "failed")],
)  # fmt: skip
def test_outcomes_as_words_of_one_pair_are_read_and_told(one: Any, zero: Any, log: Path, tmp_path: Path) -> None:
    rows = [("a", zero), ("b", one), ("c", zero)]
    texts = {
        "csv": "trace,reward\n" + "".join(f"{name}, {word}\n" for name, word in rows),
        "jsonl": "".join(json.dumps({"trace": name, "reward": word}) + "\n" for name, word in rows),
    }
    for suffix, text in texts.items():
        table = tmp_path / f"outcomes.{suffix}"
        table.write_text(text)
        traces = read(log, rewards=table)
        assert traces.reward[:3].tolist() == [0, 1, 0]
        (told,) = traces.problems
        words = f"a number: {one} is read as 1 (1 row) and {zero} as 0 (2 rows)".lower()
        assert (told.kind, told.is_failure, told.expected) == ("worded-outcomes", False, words)


@pytest.mark.parametrize("cells", [("1", "cannot tell"), ("cannot tell", "1"), ("cannot tell", "cannot tell")])
def test_two_rows_of_a_trace_void_its_outcome_whatever_they_say(
    cells: tuple[str, str], log: Path, tmp_path: Path
) -> None:
    table = tmp_path / "outcomes.csv"
    table.write_text("trace,reward\n" + "".join(f"a,{cell}\n" for cell in cells) + "b,cannot tell\n")
    traces = read(log, rewards=table)
    np.testing.assert_array_equal(traces.reward[:3], np.where([True, False, False], np.nan, read(log).reward[:3]))
    assert {problem.kind for problem in traces.problems} == {"ambiguous-row", "untold-outcomes"}


def test_a_row_without_an_id_is_not_of_a_trace_whose_row_cannot_tell(log: Path, tmp_path: Path) -> None:
    """The broken row took the outcome of the log away, of which the note said that it is kept."""
    table, known = tmp_path / "outcomes.jsonl", read(log).reward[:3]
    table.write_text('{"trace": "a", "reward": "cannot tell"}\nbroken\n')
    kept = read(log, rewards=table)
    np.testing.assert_array_equal(kept.reward[:3], np.where([True, False, False], known, np.nan))
    assert "a" not in {problem.trace for problem in kept.problems if problem.kind == "lost-row"}


@pytest.mark.parametrize("word", ["killed", "timeout", "error"])
def test_a_word_without_a_meaning_is_refused_with_those_that_have_one(word: str, log: Path, tmp_path: Path) -> None:
    """`killed` got "expected a finite number", though `passed` and `failed` beside it were read."""
    table = tmp_path / "outcomes.csv"
    table.write_text(f"trace,reward\na,resolved\nb,{word}\nc,unresolved\n")
    (problem, _) = (traces := read(log, rewards=table)).problems
    np.testing.assert_array_equal(traces.reward[:3], np.array([1, np.nan, 0], np.float32))
    assert problem.kind == "non-finite-reward" and problem.trace == "b"
    for part in ("pass/fail", "resolved/unresolved", "true/false", "0 states that a run failed", "'cannot tell'"):
        assert part in problem.expected


@pytest.mark.parametrize(
    ("cells", "rewards", "kinds", "words"),
    [
        (("pass", "no", "fail"), [np.nan] * 3, ["mixed-outcomes"] * 3, "has pass or fail, and yes or no"),
        (("pass", "failed", ""), [np.nan] * 3, ["bad-row"] + ["mixed-outcomes"] * 2, "pass or fail, and passed or"),
        (("true", "0.5", "1"), [np.nan, 0.5, 1], ["mixed-outcomes"], "has true or false, and numbers"),
        (("pass", "high", "fail"), [1, np.nan, 0], ["non-finite-reward", "worded-outcomes"], "fail as 0 (1 row)"),
        (("passed", "succeeded", "failed"), [np.nan] * 3, ["mixed-outcomes"] * 3, "or failed, and succeeded or failed"),
        (("pass", "nan", "fail"), [1, np.nan, 0], ["non-finite-reward", "worded-outcomes"], "pass is read as 1"),
    ],
)
def test_a_mixture_of_kinds_of_outcomes_is_refused(
    cells: tuple[str, ...], rewards: list[float], kinds: list[str], words: str, log: Path, tmp_path: Path
) -> None:
    """Whatever row comes first: a word has no meaning beside other kinds."""
    for rows in (list(zip("abc", cells, strict=True)), list(zip("abc", cells, strict=True))[::-1]):
        table = tmp_path / "outcomes.csv"
        table.write_text("trace,reward\n" + "".join(f"{name},{cell}\n" for name, cell in rows))
        traces = read(log, rewards=table)
        np.testing.assert_array_equal(traces.reward[:3], np.array(rewards, np.float32))
        assert [p.kind for p in traces.problems] == kinds and words in traces.problems[-1].expected


@pytest.mark.parametrize(
    ("text", "rewards", "of"),
    [
        ("b,1,x\n", [5, 1, np.nan], ""),
        ("b,1\n", [5, np.nan, np.nan], "b"),  # a cell is missing, and not that of the id
        ("b\n", [np.nan, np.nan, np.nan], "abc"),  # the id may be cut
        ("b,1,xc,2,x\n", [np.nan, np.nan, np.nan], "abc"),  # two rows in one
        ("c,2,x\nb,1,\0\n", [5, np.nan, 2], "b"),
        ("c,2,x\n\0,1,x\n", [np.nan, np.nan, 2], "ab"),
    ],
)
def test_a_row_that_cannot_be_read_may_be_of_any_trace_without_another(
    text: str, rewards: list[float], of: str, log: Path, tmp_path: Path
) -> None:
    file = tmp_path / "rewards.csv"
    file.write_text("trace,reward,note\n" + text)
    traces = read(log, rewards=file)
    np.testing.assert_array_equal(traces.reward[:3], np.array(rewards, np.float32))
    assert sorted(p.trace for p in traces.problems if p.kind == "lost-row") == sorted(of)


@pytest.mark.parametrize(
    ("option", "rows", "words"),
    [
        ("rewards", "trace,reward\nb,\n",
         "2: trace 'b': reward is empty; expected a finite number: without it the trace has no outcome [bad-row]"),
        ("rewards", '{"trace": "b"}\n{"trace": "c", "reward": 1}\n',
         "1: trace 'b': reward is missing; expected a finite number: without it the trace has no outcome [bad-row]"),
        ("groups", "trace,group\nb,\n",
         "2: trace 'b': group is empty; expected the id of a group: without it the trace is left out [bad-row]"),
        ("rewards", "trace,reward\n,1\n",
         "2: trace is empty; expected the id of the trace whose reward the row states [bad-row]"),
    ],
)  # fmt: skip
def test_a_cell_that_is_empty_is_called_so(option: str, rows: str, words: str, log: Path, tmp_path: Path) -> None:
    """`reward is None; expected a row with trace and reward` was said of a row with both."""
    (tmp_path / "table").write_text(rows)
    (problem,) = read(log, **{option: tmp_path / "table"}).problems  # type: ignore[arg-type]
    assert str(problem) == f"{tmp_path / 'table'}:{words}"


@pytest.mark.parametrize("text", ["1", "+1.", ".5", "-1.5e-3", " 2 ", "NaN", "-inf", "Infinity"])
def test_numbers_are_what_tables_write(text: str) -> None:
    np.testing.assert_equal(number(text), float(text))


@pytest.mark.parametrize(
    "value", ["", ".", "e5", "1_000", "١", "0x1", "1,5", "n", "i", "1e", "naninf", True, None, [1]]
)
def test_what_is_no_number_is_none(value: Any) -> None:
    assert number(value) is None


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_table_with_other_separators_is_refused_by_them(separator: str, log: Path, tmp_path: Path) -> None:
    """It was said of `trace;reward` that `trace` and `reward` were expected."""
    file = tmp_path / "rewards.csv"
    file.write_text(f"trace{separator}reward\nb{separator}1\n")
    for read_table in (lambda: read(log, rewards=file), lambda: list(read_rows(file))):
        with pytest.raises(TraceError) as caught:
            read_table()
        assert caught.value.problem.expected == f"commas between the cells, not {separator!r}"


@pytest.mark.parametrize(
    ("header", "renamed"),
    [
        ("id,score", ": rename `id` to `trace` and `score` to `reward`"), ("id,reward", ": rename `id` to `trace`"),
        ("trace,points,note", ": rename `points` to `reward`"), ("trace,note", ""),
        ("run_key,resolution", ": rename `run_key` to `trace` and `resolution` to `reward`"),
        ("run_key,state,review", ": rename `run_key` to `trace` and one of `state`, `review` to `reward`, others to "
         "`rewards.NAME`"),
        ("trace,score,passed", ": rename `score` to `reward`"),
        ("run_7,score", ": rename `run_7` to `trace` and `score` to `reward`"),
        ("run,passed,outcome", ": rename `run` to `trace` and `outcome` to `reward`"),
    ],
)  # fmt: skip
def test_a_table_of_other_columns_is_refused_and_says_what_to_rename(
    header: str, renamed: str, log: Path, tmp_path: Path
) -> None:
    """A user gave `--columns reward=score`, which names columns of logs, and the same error came again."""
    file = tmp_path / "rewards.csv"
    file.write_text(f"{header}\nb,1{',1' * (header.count(',') - 1)}\n")
    with pytest.raises(TraceError, match=r"expected columns `trace` and `reward`.* \[bad-header\]") as caught:
        read(log, rewards=file)
    problem = caught.value.problem
    assert problem.file == str(file)
    assert problem.expected == f"columns `trace` and `reward`, which --columns does not name (it is for logs){renamed}"


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("field", "names"),
    [("reward", ("run_id", "passed", "note")), ("reward", ("rolloutId", "reward")), ("reward", ("trace", "score")),
     ("group", ("run", "task", "reward"))],
)  # fmt: skip
def test_a_table_of_other_columns_is_read_where_one_each_may_be_meant(
    field: str, names: tuple[str, ...], form: str, log: Path, tmp_path: Path
) -> None:
    """`run_id,passed` was refused: the file had to be written anew."""
    rows = [
        dict(zip(names, (trace, value, "x"), strict=False)) for trace, value in (("a", 1.0), ("b", 0.0), ("c", 1.0))
    ]
    file = tmp_path / f"table.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif form == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        file.write_text("\n".join([",".join(names), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    given: dict[str, Any] = {f"{field}s": file}
    traces = read(log, **given)
    found = traces.reward[:3].tolist() if field == "reward" else traces.traces["group"].to_pylist()
    assert [float(value) for value in found] == [1.0, 0.0, 1.0]
    (note,) = [problem for problem in traces.problems if problem.kind == "near-columns"]
    read_as = {names[0]: "trace", names[1]: field}
    said = " and ".join(f"`{theirs}` is read as `{ours}`" for theirs, ours in read_as.items() if theirs != ours)
    assert note.expected == f"columns `trace` and `{field}`: {said}" and not note.is_failure


@pytest.mark.parametrize(("task", "left"), [("task", ""), ("group", ""), ("task", "judge")])
def test_one_table_of_outcomes_and_tasks_has_no_column_that_the_other_option_reads(
    task: str, left: str, log: Path, tmp_path: Path
) -> None:
    """ "`task` … not read" was told of a table that `--groups` read."""
    table = tmp_path / "table.csv"
    table.write_text(f"trace,{task},reward,task_kind{left and ','}{left}\n" + f"a,q,1,hard{left and ',1'}\n")
    notes = [one.value for one in read(log, rewards=table, groups=table).problems if one.kind == "unread-columns"]
    assert notes == ([repr(left)] if left else [])
    (alone,) = [one.value for one in read(log, rewards=table).problems if one.kind == "unread-columns"]
    assert "task_kind" in alone


@pytest.mark.parametrize("value", [True, 10**400, [1], None, "x", float("inf")])
def test_odd_rewards_of_a_mapping(value: Any, log: Path) -> None:
    traces = read(log, rewards={"b": value})
    assert len(traces.problems) == 1
    assert traces.problems[0].file == "<rewards>"
    assert np.isnan(traces.reward[1])


@pytest.mark.parametrize("value", ["1e300", "-1e39", "nan", "high", "", "1\na,1"])
def test_a_bad_reward_never_leaves_the_log_s_own_in_its_place(value: str, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "rewards.csv"
    file.write_text(f"trace,reward\na,{value}\nb,2\n")
    traces = read(log, rewards=file)
    assert traces.traces["trace"].to_pylist() == ["a", "b", "c"]
    np.testing.assert_array_equal(traces.reward[:3], np.array([np.nan, 2, np.nan], np.float32))
    (problem,) = traces.problems
    assert (problem.file, problem.trace) == (str(file), "a")
    assert problem.line == (3 if "\n" in value else 2)
    assert "rewards.team" not in traces.evidence or not traces.evidence["rewards.team"].mask[0]


def test_a_reward_beyond_float32_names_the_table(log: Path) -> None:
    traces = read(log, rewards={"b": 1e39})
    assert [(p.kind, p.trace, p.file) for p in traces.problems] == [("out-of-range", "b", "<rewards>")]
    np.testing.assert_array_equal(traces.reward[:3], np.array([5, np.nan, np.nan], np.float32))


@pytest.mark.parametrize("rows", ["b,\n", "b,1\nb,1\n"])
@pytest.mark.parametrize("columns", [None, {"trace": "trace", "group": "group"}], ids=["parts", "records"])
def test_a_trace_whose_group_is_unknown_is_left_out(
    rows: str, columns: dict[str, str] | None, log: Path, tmp_path: Path
) -> None:
    """To compare it with the traces of the group that the log names would be a guess."""
    (tmp_path / "groups.csv").write_text("trace,group\na,1\nc,1\n" + rows)
    if columns:
        log.write_text("trace,group\na,k\nb,k\nc,k\n")
    traces = read(log, groups=tmp_path / "groups.csv", columns=columns)
    assert traces.traces["trace"].to_pylist() == ["a", "c"]
    assert [p.trace for p in traces.problems if p.kind in ("bad-row", "ambiguous-row")] == ["b"]


@pytest.mark.parametrize("option", ["rewards", "groups"])
def test_a_table_that_is_named_but_cannot_be_read_is_an_error(option: str, log: Path, tmp_path: Path) -> None:
    """To read on without the rewards that were asked for would be a guess."""
    with pytest.raises(CreditError, match="unreadable"):
        read(log, **{option: tmp_path / "nothing.csv"})  # type: ignore[arg-type]
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(CreditError, match="empty-file") as caught:
        read(log, **{option: tmp_path / "empty.csv"})  # type: ignore[arg-type]
    assert not isinstance(caught.value, NothingReadError)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint64])
def test_a_mapping_of_numpy_scalars_is_one_of_numbers(kind: Any, log: Path) -> None:
    groups: dict[str, Any] = {"a": kind(7), "b": 7, "c": np.str_("q")}
    traces = read(log, rewards={np.str_("b"): kind(1), "c": kind(0)}, groups=groups)
    assert traces.reward[:3].tolist() == [5, 1, 0] and traces.problems == ()
    assert traces.traces["group"].to_pylist() == ["7", "7", "q"]


@pytest.mark.parametrize("value", [np.bool_(True), np.float32("nan"), np.datetime64("2026-01-01")])
def test_numpy_scalars_that_are_no_numbers(value: Any, log: Path) -> None:
    traces = read(log, rewards={"b": value})
    assert [problem.kind for problem in traces.problems] == ["non-finite-reward"] and np.isnan(traces.reward[1])


@pytest.mark.parametrize("field, value", [("reward", "2"), ("group", "g")])
def test_a_header_within_a_table_is_information(field: str, value: str, log: Path, tmp_path: Path) -> None:
    file, header = tmp_path / f"{field}s.csv", f"trace,{field}\n"
    given: Any = {f"{field}s": file}
    file.write_text(f"{header}a,{value}\n{header}b,{value}\n{header}c,{value}\n")
    traces = read(log, **given)
    assert [(p.kind, p.line, p.about, p.is_failure) for p in traces.problems] == [
        ("repeated-header", 3, field, False),
        ("repeated-header", 5, field, False),
    ]
    assert traces.traces.num_rows == 3
    file.write_text(header * 2)
    with pytest.raises(TraceError, match="empty-file"):
        read(log, **given)


def test_a_row_that_names_two_traces_is_of_neither(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "rewards.csv"
    file.write_text("trace,trace_id,reward\na,b,2\nc,c,3\n")
    traces = read(log, rewards=file)
    (problem,) = traces.problems
    assert (problem.kind, problem.line, problem.field, problem.value, problem.is_failure) == (
        "ambiguous-row", 2, "trace_id", "'b'", True
    )  # fmt: skip
    assert "'a'" in problem.expected
    rewards = dict(zip(traces.traces["trace"].to_pylist(), np.asarray(traces.reward)[:3].tolist(), strict=True))
    assert rewards["c"] == 3 and np.isnan([rewards["a"], rewards["b"]]).all()


@pytest.mark.parametrize(
    "text", ["trace,reward\na,0\rb,1\nc,0\n", "trace,reward\ra,0\nb,1\r", 'trace,reward\n"a",0\r\n"b",1\rc,0\n']
)
def test_a_cr_alone_ends_no_row_of_a_file_whose_rows_end_in_lf(text: str, tmp_path: Path) -> None:
    """A cell with a CR made a row of a trace that the writer did not write."""
    path = tmp_path / "rewards.csv"
    path.write_bytes(text.encode())
    with pytest.raises(TraceError) as caught:
        list(read_rows(path))
    assert caught.value.problem.kind == "bad-csv" and "end alike" in caught.value.problem.expected


@pytest.mark.parametrize(
    "text", ["trace,reward\ra,0\rb,1\r", "trace,reward\r\na,0\nb,1\r", 'trace,reward\n"a",0\nb,"1\r"\n']
)
def test_rows_that_end_alike_are_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rewards.csv"
    path.write_bytes(text.encode())
    assert [row["trace"] for _, row in read_rows(path) if not isinstance(row, Lost)] == ["a", "b"]
