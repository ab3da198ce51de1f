"""A table with names of its own: the note names what a mapping lacks, where cells fit; nothing is read unasked."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credit.reports.event_errors import error_mask
from credit.reports.event_texts import event_texts
from graphs.errors import CreditError, Problem
from graphs.event_graph import EventType
from graphs.logs import read
from graphs.traces.batch import Traces
from tests.credit.cli.logs import run

WHOLE = "type=kind,time=started_at,end=ended_at,tokens=output_tokens,error=error"
OWN = {"trace": "run_id"}
ROW = {
    "run_id": "a", "agent": "x", "kind": "message", "reward": 1, "output_tokens": 5, "error": None,
    "started_at": "2026-01-31T12:00:00Z", "ended_at": "2026-01-31T12:00:02.5Z",
}  # fmt: skip
CALL = ROW | {
    "kind": "tool_result", "error": "Timeout after 30 s", "output_tokens": None,
    "started_at": "2026-01-31T12:00:03Z", "ended_at": "2026-01-31T12:00:04Z",
}  # fmt: skip


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, [*rows[0]])
            table.writeheader()
            table.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def note(traces: Traces) -> Problem:
    (problem,) = traces.problems
    assert problem.kind == "unread-columns"
    return problem


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_of_a_new_user_is_told_what_its_mapping_lacks(tmp_path: Path, ending: str) -> None:
    """`kind, error, output_tokens, started_at, ended_at` were read by nobody, and the note named one of them."""
    path = written(tmp_path / f"runs.{ending}", [ROW, CALL])
    unasked = read(path, columns=OWN)
    assert f", or {WHOLE} in --columns: the others" in note(unasked).expected
    assert not error_mask(unasked).any() and "tokens" not in unasked.evidence
    mapped = read(path, columns=OWN | dict(pair.split("=") for pair in WHOLE.split(",")))
    assert mapped.problems == ()
    assert np.asarray(mapped.graph.event_type)[:2].tolist() == [EventType.MESSAGE, EventType.TOOL_RESULT]
    assert mapped.evidence["seconds"].array[:2].tolist() == [2.5, 1.0]
    assert error_mask(mapped).tolist() == [False, True]
    assert event_texts(mapped, np.array([1]), 40) == ["Timeout after 30 s"]


@pytest.mark.parametrize(
    ("theirs", "cells", "option"),
    [
        ("kind", ["llm", "message"], ""), ("note_type", ["message"], ""), ("stepType", ["spawn"], "type=stepType"),
        ("output_tokens", ["5"], "tokens=output_tokens"), ("output_tokens", ["5", "many"], ""),
        ("prompt_tokens", ["7"], "input_tokens=prompt_tokens"), ("total_tokens", ["9"], ""),
        ("tool_name", ["bash"], "tool=tool_name"), ("tool_name", ["x" * 300], ""),
        ("duration_s", ["1.5"], "seconds=duration_s"), ("duration", ["1.5"], ""),
        ("latency_ms", ["15"], "seconds=latency_ms"),
        ("error", ["no such file", ""], "error=error"), ("error", ["0.25"], ""), ("error", ["", ""], ""),
        ("is_error", ["True", "False"], "error=is_error"), ("state", ["done", "failed"], "status=state"),
        ("state", ["Texas"], ""), ("logProb", ["-0.5"], "log_prob=logProb"), ("logProb", ["low"], ""),
    ],
)  # fmt: skip
def test_a_name_is_proposed_where_each_cell_fits(tmp_path: Path, theirs: str, cells: list[str], option: str) -> None:
    path = written(tmp_path / "runs.csv", [{"trace": "a", "reward": 1, theirs: cell} for cell in cells])
    assert f"--columns {option}: the others" in note(read(path)).expected.replace("--columns:", "--columns :")


@pytest.mark.parametrize(
    ("begin", "end", "option"),
    [
        ([10, 20], [12, 20.5], "time=start,end=end"),
        ([10, 20], [9, 21], "time=start"),  # another clock
        ([1.7e12, 1.8e12], [1.7e12 + 2e6, 1.8e12], "time=start"),  # milliseconds
        ([10, 20], [10, 20], "time=start"),
        (["10", "late"], [12, 21], "time=end"),
    ],
)
def test_an_end_is_proposed_beside_the_begin_that_it_never_precedes(
    tmp_path: Path, begin: list[Any], end: list[Any], option: str
) -> None:
    rows = [{"trace": "a", "reward": 1, "start": a, "end": b} for a, b in zip(begin, end, strict=True)]
    assert f"--columns {option}: the others" in note(read(written(tmp_path / "x.jsonl", rows))).expected


def test_a_column_of_ends_is_read_as_asked_alone(tmp_path: Path) -> None:
    """`end` may say whether an episode ended."""
    path = written(tmp_path / "x.csv", [{"trace": "a", "reward": 1, "time": time, "end": 9} for time in (7, 8)])
    assert (
        "--columns end=end: " in note(read(path)).expected and "seconds" not in read(path, columns={"end": ""}).evidence
    )
    assert read(path, columns={"end": "end"}).evidence["seconds"].array[:2].tolist() == [2, 1]
    alone = read(path, columns={"end": "end", "time": ""})
    assert alone.events["time"].to_pylist() == [9, 9] and "seconds" not in alone.evidence
    path = written(
        tmp_path / "x.csv", [{"trace": t, "reward": 1, "time": 7, "end": end} for t, end in (("a", 6), ("b", 8))]
    )
    (problem,) = read(path, columns={"end": "end"}).problems
    assert (problem.kind, problem.trace, problem.expected) == (
        "out-of-range",
        "a",
        "an end not before the row's time, '7'",
    )


def test_a_status_says_what_failed_before_an_error_does(tmp_path: Path) -> None:
    rows = [("ok", "late"), (None, "late"), ("failed", None), (None, "None"), (None, "no error"), (None, {"code": 5})]
    table = [{"trace": "a", "reward": 1, "status": status, "why": why} for status, why in rows]
    traces = read(written(tmp_path / "x.jsonl", table), columns={"error": "why"})
    assert error_mask(traces).tolist() == [False, True, True, False, False, True]


@pytest.mark.parametrize(("cell", "is_proposed"), [("no such file", True), ("True", False), ("", False)])
def test_what_failed_has_the_text_of_a_column_beside_its_status(tmp_path: Path, cell: str, is_proposed: bool) -> None:
    """Why a call failed stood in `failure_reason`, and no note said how to have it shown."""
    row = {"trace": "a", "reward": 1, "status": "failed", "failure_reason": cell}
    assert ("error=failure_reason" in note(read(written(tmp_path / "x.csv", [row]))).expected) == is_proposed


def test_a_hint_keeps_the_columns_that_are_mapped(tmp_path: Path) -> None:
    """Who typed the option as it stood lost the traces."""
    path = written(tmp_path / "x.csv", [{"run": run, "task": "q", "Agent": "x", "reward": 1} for run in "ab"])
    with pytest.raises(CreditError, match="--columns trace=run,agent=Agent"):
        read(path, columns={"trace": "run"})
    columns = {"trace": "run", "agent": "Agent", "tool": ""}
    assert ", or group=task in --columns: " in note(read(path, columns=columns)).expected
    said = run("validate", path, "--columns", "trace=run,agent=Agent").stdout
    assert "pass --columns trace=run,agent=Agent,group=task or" in said


@pytest.mark.parametrize(
    ("steps", "kinds", "is_proposed"),
    [
        ("0101", "mmmm", True),  # numbered anew in each trace: each row calls a model
        ("0112", "mmmm", True),
        ("0123", "mmmm", False),  # numbered through the log
        ("0011", "cccc", False),  # of training
        ("01230123", "mcmcmcmc", False),  # numbered through each trace, whose turns hold calls of tools
        ("00110011", "mcmcmcmc", True),
    ],
)
def test_a_number_of_all_rows_is_no_turn(tmp_path: Path, steps: str, kinds: str, is_proposed: bool) -> None:
    """`turn=step_no` made a turn of each row, also of a call that its agent's turn holds."""
    half = len(steps) // 2
    rows = [
        {"trace": "ab"[at // half], "reward": 1, "agent": "x", "type": {"m": "message", "c": "tool_call"}[kind]}
        | {"step_no": step}
        for at, (step, kind) in enumerate(zip(steps, kinds, strict=True))
    ]
    assert ("turn=step_no" in note(read(written(tmp_path / "x.csv", rows))).expected) == is_proposed
