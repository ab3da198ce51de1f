"""A row of a table of rewards or groups that is cut before its trace id may be of any trace without a row there."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from graphs.logs import read
from graphs.logs.chunks import read_chunks

CUT = {
    "a cell": "reward,trace\n0.5,b\n3",
    "a separator": "reward,trace\n0.5,b\n3,",
    "a line": "reward,trace\n3\n0.5,b\n",
    "another column": "note,reward,trace_id\nx,0.5,b\ny,3",
    "a key": '{"trace": "b", "reward": 0.5}\n{"tr',
    "a brace": '{"trace": "b", "reward": 0.5}\n{',
    "a value": '{"reward": 0.5, "trace_id": "b"}\n{"reward": 3, "trace_id": "',
    "in between": '{"reward": 3,\n{"reward": 0.5, "trace": "b"}\n',
}
WHOLE = {
    "no row": "reward,trace\n0.5,b\n",
    "no break": "reward,trace\n0.5,b",
    "an empty id": "reward,trace\n0.5,b\n3,\n",
    "an id": '{"trace": "b", "reward": 0.5}\n{"trace": "zzz", "rew',
    "cells enough": "trace,reward\nb,0.5\nzzz",
}


@pytest.mark.parametrize("case", CUT)
def test_without_a_row_a_trace_has_no_outcome(case: str, log: Path) -> None:
    """The log's own outcomes stayed beside those of the table, whichever trace the row was of."""
    table = log.parent / "table"
    table.write_text(CUT[case])
    together = read_chunks(log, events=9, rewards=table)
    (batch,) = together
    apart = pickle.loads(pickle.dumps(read_chunks(log, events=9, rewards=table))).part(0)[1]
    found = read(log, rewards=table)
    for traces in (found, batch):
        np.testing.assert_array_equal(traces.reward[:3], np.array([np.nan, 0.5, np.nan], np.float32))
    for problems in (found.problems, together.problems, apart):
        lost = [problem for problem in problems if problem.kind == "lost-row"]
        assert [problem.trace for problem in lost] == ["a", "c"]
        assert {problem.expected for problem in lost} == {
            "a readable row: without it the reward of the trace is unknown"
        }
    assert str(together.sources) == f"rewards: 1 of 3 traces from {table}, 2 without an outcome"


@pytest.mark.parametrize("case", CUT)
def test_without_a_row_a_trace_has_no_group(case: str, log: Path) -> None:
    (log.parent / "table").write_text(CUT[case].replace("reward", "group"))
    traces = read(log, groups=log.parent / "table")
    assert traces.traces["trace"].to_pylist() == ["b"]
    assert [problem.trace for problem in traces.problems if problem.kind == "lost-row"] == ["a", "c"]


@pytest.mark.parametrize("case", WHOLE)
def test_a_row_that_is_not_cut_there_is_of_no_other_trace(case: str, log: Path) -> None:
    (log.parent / "table").write_text(WHOLE[case])
    traces = read(log, rewards=log.parent / "table")
    assert traces.reward[:3].tolist() == [5.0, 0.5, 5.0]
    assert all(not problem.trace for problem in traces.problems)
