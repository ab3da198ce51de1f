"""The text of a table's `status` and of its column of errors is shown as that of other logs, and notes say what is."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credit.reports.event_texts import event_texts
from graphs.logs import read
from graphs.reading.text_keys import ASKED, CALLED, FAILED, GAVE, SAID, TOLD

WHY = 'column "cust_id" does not exist (SQLSTATE 42703)'


def table(folder: Path, form: str, rows: list[dict[str, object]]) -> Path:
    path = folder / f"log.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as opened:
            (writer := csv.DictWriter(opened, list(rows[0]))).writeheader()
            writer.writerows(rows)
    return path


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("kind", ["message", "tool_call", "tool_result"])
def test_the_text_of_a_status_in_a_table_is_shown(kind: str, with_ids: bool, form: str, tmp_path: Path) -> None:
    """`error: column cust_id does not exist` was "error" in a table and nothing more, and shown of native logs."""
    statuses = [f"error: {WHY}", "ok: 3 rows", "429 Too Many Requests"]
    rows: list[dict[str, object]] = [
        {"trace": "t", "group": "q", "reward": 1, "agent": "a", "type": kind, "tool": "sql", "status": status}
        | ({"id": f"e{place}"} if with_ids else {})
        for place, status in enumerate(statuses)
    ]
    traces = read(table(tmp_path, form, rows))
    assert traces.events["status"].to_pylist() == ["error", "ok", "Too Many Requests"]
    assert event_texts(traces, np.arange(3), 200) == [WHY, "", statuses[2]]


def test_a_column_that_is_shown_is_not_called_unread(tmp_path: Path) -> None:
    """The note called a column `error` unread, whose text was shown of rows with a `status` of an error."""
    shown = sorted({key for keys in (SAID, CALLED, ASKED, GAVE, FAILED, TOLD) for key in keys} - {"action"})
    for names, status, unread in (
        (shown, "error", ""),
        (["error"], None, "error"),
        (["error"], "", "error"),
        (["error", "cost"], "ok", "cost"),
    ):
        row: dict[str, object] = {"trace": "t", "group": "q", "reward": 1} | dict.fromkeys(names, WHY)
        found = read(table(tmp_path, "csv", [row | ({} if status is None else {"status": status})])).problems
        for problem in found:
            assert ("a mapped `error` says so" in problem.expected) == (unread == "error")
        values = [problem.value for problem in found if problem.kind == "unread-columns"]
        assert values == [repr(unread)] * bool(unread)


@pytest.mark.parametrize("arguments", ['{"order": 7}', None])
@pytest.mark.parametrize("name", ["error", "error_message", "output", "result"])
def test_the_error_of_a_call_without_a_result_of_its_own_is_shown(
    name: str, arguments: str | None, tmp_path: Path
) -> None:
    """A row or event a call showed its arguments alone, or nothing, and never why it failed."""
    calls = [{"type": "tool_call", "tool": "refund", "status": status, name: WHY if status == "error" else "done"}
             | ({} if arguments is None else {"arguments": arguments}) for status in ("error", "ok")]  # fmt: skip
    failed = f"{WHY} ← {arguments}" if arguments else WHY
    ended = arguments or ("done" if name in SAID else "")
    rows: list[dict[str, object]] = [{"trace": "t", "group": "q", "reward": 1} | call for call in calls]
    for form in ("csv", "jsonl", "parquet"):
        assert event_texts(read(table(tmp_path, form, rows)), np.arange(2), 200) == [failed, ended]
    events = [call | {"id": f"e{place}", "agent": "a"} for place, call in enumerate(calls)]
    run = {"trace_id": "t", "task_id": "q", "rewards": {"team": 1}, "events": events}
    (path := tmp_path / "native.jsonl").write_text(json.dumps(run) + "\n")
    assert event_texts(read(path), np.arange(2), 200) == [failed, ended]


@pytest.mark.parametrize("name", ["error", "error_message"])
def test_a_column_of_errors_is_the_text_of_what_failed(name: str, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"trace": "t", "group": "q", "reward": 1, "type": "tool_result", "tool": "sql", "status": status, name: WHY}
        for status in ("error", "ok")
    ]
    assert event_texts(read(table(tmp_path, "csv", rows)), np.arange(2), 200) == [WHY, ""]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", ["result", "output", "message"])
def test_an_outcome_is_no_text_of_its_rows_whatever_its_column_is_called(name: str, form: str, tmp_path: Path) -> None:
    """An outcome in a column `result` stood as what each agent had said, so that all of them repeated one another."""
    rows: list[dict[str, object]] = [
        {"trace": f"t{i}", "group": "q", "type": kind, name: float(i), "text": "hello"}
        for i in range(2)
        for kind in ("message", "tool_result")
    ]
    traces = read(table(tmp_path, form, rows), columns={"reward": name})
    assert traces.reward[:2].tolist() == [0.0, 1.0]
    assert not {"0.0", "1.0"} & {*event_texts(traces, np.arange(4), 200)}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("kind", ["tool_call", "tool_result"])
@pytest.mark.parametrize("mapped", ["status", "error"])
@pytest.mark.parametrize("word", ["failed", "ERROR", "timeout", "True"])
def test_a_bare_word_hides_no_text_of_the_error_beside_it(
    word: str, mapped: str, kind: str, form: str, tmp_path: Path
) -> None:
    """`error=state` hid the column `error_message`, so that what failed was quoted as `failed`."""
    rows: list[dict[str, object]] = [
        {"trace": f"t{place}", "group": "q", "reward": 1, "type": kind, "tool": "sql", "state": word}
        | {"error_message": why, "output": "0 rows"}
        for place, why in enumerate([WHY, ""])
    ]
    traces = read(table(tmp_path, form, rows), columns={mapped: "state"})
    quoted, silent = event_texts(traces, np.arange(2), 200)
    if (mapped, word) == ("status", "True"):
        assert (quoted, silent) == ("0 rows", "0 rows")  # a status of no error
        return
    shown = "timeout" if (mapped, word) == ("error", "timeout") else ""
    assert quoted == (f"{WHY} ← 0 rows" if kind == "tool_call" else WHY)
    assert silent == (f"{shown} ← 0 rows" if shown and kind == "tool_call" else shown or "0 rows")


@pytest.mark.parametrize("columns", [{"status": "state", "error": "note"}, {"status": "note", "error": ""}])
def test_mapped_columns_say_why_a_call_failed_as_those_of_our_names_do(columns: dict[str, str], tmp_path: Path) -> None:
    """A text behind the word of a status was lost where the status had another name."""
    rows: list[dict[str, object]] = [
        {"trace": "t", "group": "q", "reward": 1, "type": "tool_call", "tool": "sql", "state": word, "note": note}
        for word, note in (("failed", f"error: {WHY}"), ("ok", ""))
    ]
    texts = event_texts(read(table(tmp_path, "csv", rows), columns=columns), np.arange(2), 200)
    assert [text.removeprefix("error: ") for text in texts] == [WHY, ""]
