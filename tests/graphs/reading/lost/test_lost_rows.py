"""A table never gains a reward: a broken row makes no row, hides none, and voids the trace that it may be about."""

from __future__ import annotations

import csv
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.errors import CreditError, NothingReadError, TraceError
from graphs.logs import read
from graphs.logs.chunks import read_chunks
from graphs.reading.source import Source
from graphs.reading.tables.csv_rows import csv_rows
from graphs.reading.tables.rows import LostRow, read_rows
from graphs.traces.limits import Limits

FORGERY = '\nforged,q1,1.0\nb,q1,1.0\n"'


def as_csv(rows: list[list[str]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def outcomes(path: Path, **options: Any) -> dict[str, float]:
    try:
        traces = read(path, **options)
    except NothingReadError:
        return {}
    names = traces.traces["trace"].to_pylist()
    return dict(zip(names, np.asarray(traces.reward)[: len(names)].tolist(), strict=True))


def native_log(folder: Path) -> Path:
    event = {"id": "1", "type": "message", "agent": "x"}
    lines = [
        {"trace_id": name, "task_id": "k", "events": [event], "rewards": {"team": 5.0}} for name in ("a", "b", "forged")
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder / "log.jsonl"


@pytest.mark.parametrize("size", [10, 131_072, 131_073, 3_000_000])
def test_a_long_text_is_a_cell_and_no_rows(tmp_path: Path, size: int) -> None:
    text = "x" * size + FORGERY * 3
    rows = [["trace", "group", "reward", "text"], ["a", "q1", "0.0", text], ["b", "q1", "0.5", "y"]]
    (tmp_path / "rows.csv").write_bytes(as_csv(rows))
    assert outcomes(tmp_path / "rows.csv") == {"a": 0.0, "b": 0.5}
    rows = [["trace", "note", "reward"], ["a", text, "0.0"], ["b", "y", "0.5"]]
    (tmp_path / "rewards.csv").write_bytes(as_csv(rows))
    found = outcomes(native_log(tmp_path), rewards=tmp_path / "rewards.csv")
    assert found == {"a": 0.0, "b": 0.5, "forged": 5.0}


@pytest.mark.parametrize(
    "broken",
    [
        b'a,q1,0,"one "quoted" word"\n',
        b'a,q1,0,"not closed\n',
        b'a,q1,0,"closed" and more\n',
    ],
)
def test_faulty_quotes_refuse_the_table(tmp_path: Path, broken: bytes) -> None:
    content = b"trace,group,reward,text\nb,q1,0.5,y\n" + broken + b'c,q1,1,"forged,q1,1.0,z"\n'
    (tmp_path / "rows.csv").write_bytes(content)
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path / "rows.csv")
    assert [(p.kind, p.line) for p in caught.value.problems] == [("bad-csv", 3)]
    with pytest.raises(CreditError, match="bad-csv"):
        read(native_log(tmp_path), rewards=tmp_path / "rows.csv")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("rows.csv", b"trace,reward\nb,0.5\n", b"a,1.0,0\n"),
        ("rows.jsonl", b'{"trace": "b", "reward": 0.5}\n', b'{"trace": "a", "reward": 1.0,}\n'),
        ("rows.jsonl", b'{"trace": "b", "reward": 0.5}\n', b'{"reward": 1.0, "trace": "a\n'),
        ("rows.jsonl", b'{"trace": "b", "reward": 0.5}\n', b'{"trace": "a", "reward": 0, "reward": 1.0}\n'),
        ("rows.jsonl", b'{"trace": "b", "reward": 0.5}\n', b'{"trace": "a", "reward": 0, "rew\\u0061rd": 1.0}\n'),
    ],
)
def test_a_row_that_is_lost_voids_its_trace(tmp_path: Path, name: str, good: bytes, bad: bytes) -> None:
    row = b"a,0.25\n" if name == "rows.csv" else b'{"trace": "a", "reward": 0.25}\n'
    (tmp_path / name).write_bytes(good + row + bad)
    traces = read(tmp_path / name)
    assert traces.traces["trace"].to_pylist() == ["b"]
    assert "lost-row" in [p.kind for p in traces.problems if p.trace == "a"]
    (tmp_path / name).write_bytes(good + bad)
    joined = read(native_log(tmp_path), rewards=tmp_path / name)
    assert joined.reward[:3].tolist()[1:] == [0.5, 5.0] and np.isnan(joined.reward[0])
    assert [p.trace for p in joined.problems if p.kind == "lost-row"] == ["a"]


def test_a_trace_whose_row_is_lost_counts_as_one_without_an_outcome(tmp_path: Path) -> None:
    """It was counted as one with the table's outcome, where another row of it can be read."""
    table = tmp_path / "rewards.csv"
    table.write_text("trace,reward\na,0.25\nb,0.5\na,1.0,0\n")
    chunks = read_chunks(native_log(tmp_path), events=1, rewards=table)
    assert np.isnan(next(iter(chunks)).reward[0])
    assert len(list(chunks)) == len(chunks)
    assert str(chunks.sources) == f"rewards: 1 of 3 traces from {table}, 1 from the log, 1 without an outcome"


def test_parts_count_a_trace_whose_row_is_cut_as_one_without_an_outcome(tmp_path: Path) -> None:
    """Where other processes read, it was counted as one with the log's outcome."""
    log, table = native_log(tmp_path), tmp_path / "rewards.jsonl"
    log.write_text(log.read_text().replace('"trace_id": "a"', '"trace_id": "abc"'))
    table.write_text('{"trace": "b", "reward": 0.5}\n{"trace": "ab')
    together, apart = (read_chunks(log, events=1, rewards=table) for _ in range(2))
    assert len(list(together)) == len(apart)
    for number in range(len(apart)):
        traces, _ = apart.part(number)
        assert traces is not None
        apart.sources.add_counts(apart.sources_of(traces))
    expected = f"rewards: 1 of 3 traces from {table}, 1 from the log, 1 without an outcome"
    assert str(together.sources) == str(apart.sources) == expected


def test_a_row_that_is_cut_names_the_traces_that_other_processes_read(tmp_path: Path) -> None:
    """It took their outcomes, and only a process that read all of them said so."""
    log, table = native_log(tmp_path), tmp_path / "rewards.jsonl"
    log.write_text(log.read_text().replace('"trace_id": "a"', '"trace_id": "abc"'))
    table.write_text('{"trace": "b", "reward": 0.5}\n{"trace": "ab')
    together = read_chunks(log, events=1, rewards=table)
    (batch,) = together
    assert np.isfinite(batch.reward[:3]).tolist() == [False, True, True]
    apart = pickle.loads(pickle.dumps(read_chunks(log, events=1, rewards=table))).part(0)[1]
    for problems in (together.problems, apart):
        assert [(p.kind, p.trace) for p in problems if p.trace] == [("lost-row", "abc")]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("é", '{"trace": "\\u00e9", "reward": 1,}'),
        ("é", '{"trace": "\\u00e9", "reward": 0, "reward": 1}'),
        ('a"q', '{"trace": "a\\"q", "reward": 1,}'),
        ("a/q", '{"trace": "a\\/q", "reward": 1,}'),
        ("a\\q", '{"trace": "a\\\\q", "reward": 1,}'),
        ("1000.0", '{"trace": 1e3, "reward": 1,}'),
        ("1e+20", '{"trace": 100000000000000000000, "reward": 1,}'),
        ("abc", '{"reward": 1, "trace": "ab'),
        ("aé", '{"reward": 1, "trace": "a\\u00'),
        ("x" * 1200, '{"trace": "' + "x" * 1200 + '", "reward": 1,}'),
        ("abc", "ab"),
        ('a"q', '"a""q",1,2'),
    ],
)
@pytest.mark.parametrize("field", ["rewards", "groups"])
def test_a_row_that_is_lost_voids_its_trace_however_its_id_is_written(
    tmp_path: Path, name: str, row: str, field: str
) -> None:
    """The log's own reward stayed in place of the lost row's."""
    event = {"id": "1", "type": "message", "agent": "x"}
    lines = [{"trace_id": t, "task_id": "k", "events": [event], "rewards": {"team": 5.0}} for t in (name, "b", "other")]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    good = '{"trace": "b", "reward": 0.5, "group": "q"}' if row.startswith("{") else f"trace,{field[:-1]}\nb,0.5"
    (tmp_path / "table").write_text(f"{good}\n{row}")
    traces = read(tmp_path / "log.jsonl", **{field: tmp_path / "table"})  # type: ignore[arg-type]
    found = dict(zip(traces.traces["trace"].to_pylist(), traces.reward.tolist(), strict=False))
    if field == "rewards":
        assert np.isnan(found.pop(name)) and found == {"b": 0.5, "other": 5.0}
    else:
        assert list(found) == ["b", "other"]
    assert [p.trace for p in traces.problems if p.kind == "lost-row"] == [name]


def test_a_row_that_is_cut_within_an_id_voids_no_trace_with_a_row_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "rewards.jsonl").write_text('{"trace": "a", "reward": 0.5}\n{"trace": "b", "reward": 1}\n{"trace": "f')
    traces = read(native_log(tmp_path), rewards=tmp_path / "rewards.jsonl")
    assert traces.reward[:2].tolist() == [0.5, 1.0] and np.isnan(traces.reward[2])


def test_ids_that_differ_in_type_alone_are_refused(tmp_path: Path) -> None:
    rows = [{"trace": 1, "reward": 1.0}, {"trace": "1", "reward": 1.0}, {"trace": 2, "reward": 0.0}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["2"]
    assert [(p.kind, p.line, p.trace) for p in traces.problems] == [("ambiguous-id", 2, "1")]


def test_runs_that_are_told_apart_by_their_text_alone_are_refused(tmp_path: Path) -> None:
    texts = ["The answer is 4.\nSo 4." * 20, "The answer is 5.\nSo 5." * 20, "short"]
    rows = [{"output": text, "input": "q", "reward": 1.0} for text in (texts[0], texts[0], texts[1], texts[2])]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    traces = read(tmp_path, columns={"trace": "output", "group": "input"})
    assert traces.traces["trace"].to_pylist() == [texts[1], "short"]
    assert [p.kind for p in traces.problems] == ["text-as-id"]


def test_rows_without_a_group_are_never_one_group(tmp_path: Path) -> None:
    def groups(name: str, content: bytes | dict[str, list[Any]]) -> tuple[dict[str, str], list[tuple[str, str]]]:
        if isinstance(content, bytes):
            (tmp_path / name).write_bytes(content)
        else:
            pq.write_table(pa.table(content), tmp_path / name)
        traces = read(tmp_path / name)
        columns = (traces.traces[column].to_pylist() for column in ("trace", "group"))
        return dict(zip(*columns, strict=True)), [(p.kind, p.trace) for p in traces.problems]

    alone = {"a": "a", "b": "b", "c": "q"}
    assert groups("rows.csv", b'trace,group,reward\na,,0\nb,"",1\nc,q,1\n') == (alone, [])
    assert groups("rows.jsonl", b'{"trace":"a","group":null,"reward":0}\n{"trace":"b","reward":0}\n'
                  b'{"trace":"c","group":"q","reward":0}') == (alone, [])  # fmt: skip
    three: dict[str, list[Any]] = {"trace": ["a", "b", "c"], "reward": [0.0, 1.0, 1.0]}
    assert groups("rows.parquet", three | {"group": [None, None, "q"]}) == (alone, [])
    nan = float("nan")
    assert groups("rows.parquet", three | {"group": [nan, nan, 7.0]}) == (alone | {"c": "7"}, [])
    empty = [("empty-id", "a"), ("empty-id", "b")]
    assert groups("rows.csv", b"trace,group,reward\na, ,0\nb, ,1\nc,q,1\n") == ({"c": "q"}, empty)
    assert groups("rows.parquet", three | {"group": ["", "", "q"]}) == ({"c": "q"}, empty)
    assert groups("rows.jsonl", b'{"trace":"a","group":"","reward":0}\n{"trace":"b","group":"","reward":0}\n'
                  b'{"trace":"c","group":"q","reward":0}') == ({"c": "q"}, empty)  # fmt: skip
    assert groups("rows.csv", b"trace,group,reward\n1,,0\n2,1,1\n3,1,0\n") == (
        {"2": "1", "3": "1"}, [("ambiguous-id", "1")])  # fmt: skip
    assert groups("rows.jsonl", b'{"trace":"a","group":1,"reward":0}\n{"trace":"b","group":"1","reward":0}\n'
                  b'{"trace":"c","group":true,"reward":0}') == ({"a": "1"},
                  [("ambiguous-id", "b"), ("bad-type", "c")])  # fmt: skip


def test_a_table_of_groups_states_each(tmp_path: Path) -> None:
    log = native_log(tmp_path)
    for unknown in ("", " ", float("nan"), {"x": 1}, ["q"], True, None):
        traces = read(log, groups={"a": unknown, "b": unknown, "forged": "q"})  # type: ignore[dict-item]
        assert traces.traces["group"].to_pylist() == ["q"]
        assert sorted(p.trace for p in traces.problems) == ["a", "b"]


def test_rows_told_apart_by_a_column_of_texts_are_refused(tmp_path: Path) -> None:
    rows = [{"output": "4", "input": "q", "reward": 1.0}] * 4 + [{"output": "5", "input": "q", "reward": 0.0}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    traces = read(tmp_path, columns={"trace": "output", "group": "input"})
    assert traces.traces["trace"].to_pylist() == ["5"]
    assert [p.kind for p in traces.problems] == ["text-as-id"]


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array([0.0]), pa.array([1.0])], ["trace", "reward", "reward"])
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(NothingReadError, match="bad-header"):
        read(tmp_path)
    with pytest.raises(TraceError, match="bad-header"):
        read(native_log(tmp_path), rewards=tmp_path / "rows.parquet")


def test_names_of_columns_that_are_not_utf_8_are_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"trace": ["a"], "reward": [1.0], "zzzzzz": [1]}), tmp_path / "rows.parquet")
    damaged = (tmp_path / "rows.parquet").read_bytes().replace(b"zzzzzz", b"zzz\x9bzz")
    (tmp_path / "rows.parquet").write_bytes(damaged)
    for path in (tmp_path, tmp_path / "rows.parquet"):
        with pytest.raises(NothingReadError, match="bad-parquet"):
            read(path)
    with pytest.raises(TraceError, match="bad-parquet"):
        read(native_log(tmp_path), rewards=tmp_path / "rows.parquet")


def test_names_of_columns_that_stand_differently_in_two_places_are_named(tmp_path: Path) -> None:
    completions = [[{"role": "assistant", "content": "x"}]]
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"step": [1], "prompt": ["p"], "completion": completions, "advantage": [0.5]}), path)
    whole = path.read_bytes()
    places = [at for at in range(len(whole)) if whole.startswith(b"list", at)]
    assert len(places) > 2
    for at in places:
        path.write_bytes(whole[:at] + b"l\x1ast" + whole[at + 4 :])
        with pytest.raises(NothingReadError, match="bad-parquet"):
            read(path)


def test_a_parquet_file_that_unpacks_to_gigabytes_is_refused_before_it_is(tmp_path: Path) -> None:
    """A run of one value takes no room in the file: a dictionary and its length."""
    with pq.ParquetWriter(
        tmp_path / "bomb.parquet", pa.schema([("trace", pa.string()), ("reward", pa.float64())])
    ) as out:
        rows = pa.table({"trace": pa.array(["a"]).take(pa.array([0] * 1_000_000)), "reward": [0.0] * 1_000_000})
        for _ in range(3):
            out.write_table(rows)
    assert (tmp_path / "bomb.parquet").stat().st_size < 100_000
    limits = Limits(file_bytes=10 << 20)
    with pytest.raises(NothingReadError, match="too-large"):
        read(tmp_path / "bomb.parquet", limits=limits)


def test_a_text_in_a_dictionary_is_held_once(tmp_path: Path) -> None:
    """A megabyte that 200,000 rows share is 200 GB where each row spells it out."""
    ids = pa.DictionaryArray.from_arrays(pa.array([0] + [1] * 200_000), pa.array(["a", "b" * (1 << 20)]))
    pq.write_table(pa.table({"trace": ids, "reward": [1.0] * 200_001}), tmp_path / "rows.parquet")
    assert (tmp_path / "rows.parquet").stat().st_size < 3 << 20
    traces = read(tmp_path / "rows.parquet")
    assert traces.traces["trace"].to_pylist() == ["a"]  # the other is a text as an id


TEXT = st.text(st.sampled_from('a,"\n\r;é '), max_size=12)


@given(st.lists(st.lists(TEXT, min_size=3, max_size=3), min_size=1, max_size=6), st.booleans())
def test_what_a_writer_quotes_is_read_back(rows: list[list[str]], quoted: bool) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL).writerows([["x", "y", "z"], *rows])
    source = Source("t", None)
    source.__dict__["data"] = out.getvalue().encode()
    expected = [dict(zip("xyz", (cell or None for cell in row), strict=True)) for row in rows]
    assert [row for _, row, _ in csv_rows(source)] == expected
    # A row begins on the line behind that on which the row before it ends, by Python's reader.
    reader = csv.reader(io.StringIO(out.getvalue(), newline=""))
    assert [line for line, _, _ in csv_rows(source)] == [1 + reader.line_num for _ in reader][:-1]


@given(st.binary(max_size=60).map(lambda b: b"x,y\n" + b), st.integers(0, 60))
def test_no_bytes_give_a_row_that_python_s_reader_lacks(content: bytes, at: int) -> None:
    """Whatever is accepted, an independent strict reader accepts with the same cells."""
    source = Source("t", None)
    source.__dict__["data"] = content.replace(b"\r", b"\n").replace(b"\0", b'"')
    try:
        rows = [row for _, row in read_rows(source) if not isinstance(row, LostRow)]
    except TraceError:
        return
    text = source.data.decode()
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    expected = [cells for cells in reader if cells][1:]
    assert [list(row.values()) for row in rows] == [[c or None for c in cells] for cells in expected if len(cells) == 2]


ROWS = [{"agent": agent, "trace": trace, "group": "g", "reward": 1} for trace in ("t1", "u1") for agent in "ab"]


@pytest.mark.parametrize(
    ("cut", "left"),
    [
        ('{"agent": "c", "trace": "t', ["u1"]),
        ('{"agent": "c", "trace": "\\u007', []),
        ('{"agent": "c", "trace": "\\u0074', ["u1"]),
        ('{"agent": "c", "trace": "', []),
        ('{"agent": "c", "tr', []),
        ('{"agent": "c", "trace": "v1", "re', ["t1", "u1"]),
        ("INFO saved", ["t1", "u1"]),
        ("c,t", ["u1"]),
        ("c,", []),
        ("c", []),
        ("c,v1", ["t1", "u1"]),
    ],
)
def test_a_row_that_is_cut_may_be_of_a_trace_of_several(tmp_path: Path, cut: str, left: list[str]) -> None:
    """The trace was read without the row."""
    if cut.startswith("c"):
        lines = [",".join(ROWS[0]), *(",".join(map(str, row.values())) for row in ROWS)]
        name = "rows.csv"
    else:
        lines, name = [json.dumps(row) for row in ROWS], "rows.jsonl"
    (tmp_path / name).write_text("\n".join([*lines, cut]))
    assert list(outcomes(tmp_path / name)) == left


@pytest.mark.parametrize("cut", ['{"agent": "c", "tr', '{"agent": "c", "trace": "'])
def test_a_row_that_is_cut_beside_traces_of_a_row_each_is_another_trace(tmp_path: Path, cut: str) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join([*map(json.dumps, ROWS[::2]), cut]))
    assert list(outcomes(tmp_path / "rows.jsonl")) == ["t1", "u1"]


def test_a_number_that_is_cut_may_be_the_beginning_of_an_id(tmp_path: Path) -> None:
    """Its trace was read without the row, as that of a text was."""
    for ids, cut in (((123, 45), '{"agent": "c", "trace": 12'), (("t12", "45"), '{"agent": "c", "trace": "\\u00741')):
        rows = [{"agent": agent, "trace": trace, "reward": 1} for trace in ids for agent in "ab"]
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join([*map(json.dumps, rows), cut]))
        assert list(outcomes(path)) == ["45"]
