"""Faults are bounded in memory and counted in full, by every way of reading."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from linear_time import assert_linear

from credit.reports.corpus import survey
from graphs.errors import NothingReadError, Problem
from graphs.logs import read
from graphs.logs.chunks import read_chunks
from graphs.problem_log import MOST_LISTED, ProblemLog
from graphs.traces.batch import Traces

TRACE = {
    "trace_id": "a",
    "task_id": "k",
    "events": [{"id": "1", "type": "message", "agent": "x"}],
    "rewards": {"team": 1},
}


def fault(line: int, kind: str = "bad-json", file: str = "x", count: int = 1) -> Problem:
    return Problem(kind, file, line, "content", "{", "JSON", count=count)


def test_problems_beyond_the_limit_are_counted() -> None:
    log = ProblemLog([*(fault(i) for i in range(MOST_LISTED + 7)), fault(3, "cycle"), fault(4, file="y")])
    assert len(log) == MOST_LISTED + 3 and log.total == MOST_LISTED + 9
    assert [(p.line, p.count) for p in log if p.count > 1] == [(MOST_LISTED, 7)]
    again = ProblemLog([*log, *log])
    assert again.total == 2 * log.total and len(again) <= 2 * len(log)


@pytest.mark.slow
def test_a_small_file_of_many_faults(tmp_path: Path) -> None:
    lines = [json.dumps(TRACE), *["{}"] * 30_000, '{"trace_id": 1}', "{", json.dumps(TRACE | {"trace_id": "b"})]
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    traces = read(tmp_path)
    assert traces.sizes.traces == 2
    kinds = survey(traces).problem_kinds
    assert sum(kinds.values()) == 30_002 and kinds["missing-field"] == 30_000 + (kinds.get("bad-type", 0) == 0)
    assert len(traces.problems) < MOST_LISTED + 10
    chunks = read_chunks(tmp_path, events=10)
    assert sum(one.sizes.traces for one in chunks) == 2
    assert chunks.problems.total == 30_002 and len(chunks.problems) < MOST_LISTED + 10


TABLES = {
    "ragged": ("bad-row", b"trace,reward\nb,1\n", lambda i: b"%d\n" % i),
    "quoted and ragged": ("bad-row", b"trace,reward\nb,1\n", lambda i: b'"%d"\n' % i),
    "no trace": ("missing-field", b'{"trace": "b", "reward": 1}\n', lambda i: b"{}\n"),
    "no number": ("bad-type", b"trace,reward\nb,1\n", lambda i: b"t%d,x\n" % i),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_many_broken_rows(tmp_path: Path, name: str) -> None:
    kind, first, row = TABLES[name]
    (tmp_path / "rows.jsonl").write_bytes(first + b"".join(row(i) for i in range(5000)))
    if kind != "bad-row":  # whole rows, of other traces than "b" or of none
        problems = read(tmp_path, format="table").problems
    else:
        with pytest.raises(NothingReadError) as caught:
            read(tmp_path, format="table")
        problems = caught.value.problems
        assert "lost-row" in {problem.kind for problem in problems}
    named = [problem for problem in problems if problem.kind == kind]
    assert sum(problem.count for problem in named) == 5000 and len(named) == MOST_LISTED + 1
    assert [p.line for p in named[:3]] == [2 + (first.count(b"\n") > 1) + i for i in range(3)]


@pytest.mark.study
def test_a_million_ragged_rows(tmp_path: Path) -> None:
    def prepare(rows: int) -> Callable[[], object]:
        path = tmp_path / f"{rows}.csv"
        path.write_bytes(b"trace,reward\nb,1\n" + b"1\n" * rows)
        return lambda: counted(path, rows)

    def counted(path: Path, rows: int) -> None:
        with pytest.raises(NothingReadError) as caught:  # a row that is cut in its first cell may be of any trace
            read(path)
        named = [problem for problem in caught.value.problems if problem.kind == "bad-row"]
        assert sum(problem.count for problem in named) == rows and len(named) == MOST_LISTED + 1

    assert_linear(prepare, 1_000_000, runs=1)


@pytest.mark.study
def test_a_million_empty_objects(tmp_path: Path) -> None:

    def prepare(lines: int) -> Callable[[], object]:
        path = tmp_path / f"{lines}.jsonl.gz"
        path.write_bytes(gzip.compress(json.dumps(TRACE).encode() + b"\n" + b"{}\n" * lines))
        return lambda: bounded(read(path))

    def bounded(traces: Traces) -> None:
        assert len(traces.problems) == MOST_LISTED + 1

    assert_linear(prepare, 1_000_000, runs=1)


def test_a_message_has_no_id_of_any_length() -> None:
    """A trace's id of 20,000 characters was printed whole."""
    text = str(Problem("bad-json", "x", 1, "content", "{", "JSON", trace="a" * 20_000))
    assert len(text) < 400 and "trace 'aaa" in text and "…" in text
