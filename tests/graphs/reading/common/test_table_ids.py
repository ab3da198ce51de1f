"""A table never gains a reward: a broken row makes no row, hides none, and voids the trace that it may be about."""

from __future__ import annotations

import csv
import io
import json
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
from graphs.reading.source import Lost, Source
from graphs.reading.tables.csv_rows import csv_rows
from graphs.reading.tables.rows import read_rows
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


@pytest.mark.slow
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


def test_ids_that_differ_in_type_alone_are_refused(tmp_path: Path) -> None:
    rows = [{"trace": 1, "reward": 1.0}, {"trace": "1", "reward": 1.0}, {"trace": 2, "reward": 0.0}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["2"]
    assert [(p.kind, p.line, p.trace) for p in traces.problems] == [("ambiguous-id", 2, "1")]


def test_integers_that_floats_made_one_id_are_refused(tmp_path: Path) -> None:
    """pandas makes a column floats where one is missing: two traces of 2**53 and 2**53 + 1 were one."""
    lost, whole = [2.0**53, 2.0**53], [2**53, 2**53 + 1]
    for name, ids in (("trace", lost), ("group", lost), ("context", lost), ("trace", whole), ("trace", [7.0, 8.0])):
        table = pa.table({"trace": ["a", "b"], "reward": [1.0, 1.0]} | {name: ids})
        pq.write_table(table, tmp_path / "rows.parquet")
        if ids is lost:
            with pytest.raises(NothingReadError, match="below 2\\*\\*53"):
                read(tmp_path / "rows.parquet")
        else:
            assert read(tmp_path / "rows.parquet").sizes.traces == 2
    (tmp_path / "rows.parquet").unlink()
    groups: Any = {"a": 2.0**53}
    assert ["below 2**53" in p.expected for p in read(native_log(tmp_path), groups=groups).problems][:1] == [True]


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
    named = [("some-without-group", "")]
    assert groups("rows.csv", b'trace,group,reward\na,,0\nb,"",1\nc,q,1\n') == (alone, named)
    assert groups("rows.jsonl", b'{"trace":"a","group":null,"reward":0}\n{"trace":"b","reward":0}\n'
                  b'{"trace":"c","group":"q","reward":0}') == (alone, named)  # fmt: skip
    three: dict[str, list[Any]] = {"trace": ["a", "b", "c"], "reward": [0.0, 1.0, 1.0]}
    assert groups("rows.parquet", three | {"group": [None, None, "q"]}) == (alone, named)
    nan = float("nan")
    assert groups("rows.parquet", three | {"group": [nan, nan, 7.0]}) == (alone | {"c": "7"}, named)
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_text_in_a_dictionary_is_held_once(tmp_path: Path) -> None:
    """A megabyte that 200,000 rows share is 200 GB where each row spells it out."""
    ids = pa.DictionaryArray.from_arrays(pa.array([0] + [1] * 200_000), pa.array(["a", "b" * (1 << 20)]))
    pq.write_table(pa.table({"trace": ids, "reward": [1.0] * 200_001}), tmp_path / "rows.parquet")
    assert (tmp_path / "rows.parquet").stat().st_size < 3 << 20
    traces = read(tmp_path / "rows.parquet")
    assert traces.traces["trace"].to_pylist() == ["a"]  # the other is a text as an id


TEXT = st.text(st.sampled_from('a,"\n\r;é '), max_size=12)


@pytest.mark.slow
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


@pytest.mark.slow
@given(st.binary(max_size=60).map(lambda b: b"x,y\n" + b), st.integers(0, 60))
def test_no_bytes_give_a_row_that_python_s_reader_lacks(content: bytes, at: int) -> None:
    """Whatever is accepted, an independent strict reader accepts with the same cells."""
    source = Source("t", None)
    source.__dict__["data"] = content.replace(b"\r", b"\n").replace(b"\0", b'"')
    try:
        rows = [row for _, row in read_rows(source) if not isinstance(row, Lost)]
    except TraceError:
        return
    text = source.data.decode()
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    expected = [cells for cells in reader if cells][1:]
    assert [list(row.values()) for row in rows] == [[c or None for c in cells] for cells in expected if len(cells) == 2]


ROWS = [{"agent": agent, "trace": trace, "group": "g", "reward": 1} for trace in ("t1", "u1") for agent in "ab"]
