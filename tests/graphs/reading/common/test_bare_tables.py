"""A table of rewards or groups that states nothing is refused, and one that states a part says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.errors import TraceError
from graphs.logs import read


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    event = {"id": "e", "type": "message", "agent": "a"}
    traces: list[dict[str, Any]] = [
        {"trace_id": f"t{i}", "task_id": "q", "events": [event], "rewards": {"team": float(i)}} for i in range(4)
    ]
    path.write_text("\n".join(map(json.dumps, traces)))
    return path


BARE = {
    "another header": ("id,{}x\n", "bad-header"),
    "a header alone": ("trace,{}\n", "empty-file"),
    "a cut header": ("tra", "bad-header"),
    "null": ("null", "bad-header"),
    "a list": ("[]", "bad-header"),
    "a row without a header": ("t1,1", "bad-header"),
    "a page": ("<html><body>404</body></html>", "bad-header"),
    "the end of a line": ('": 1}}', "bad-csv"),
}


@pytest.mark.parametrize("name", BARE)
@pytest.mark.parametrize("field", ["reward", "group"])
def test_a_table_that_states_nothing_is_refused(log: Path, field: str, name: str) -> None:
    """The log's own rewards or groups would be used without a word."""
    content, kind = BARE[name]
    table = log.parent / "table.csv"
    table.write_text(content.format(field))
    given: dict[str, Any] = {f"{field}s": table}
    with pytest.raises(TraceError) as caught:
        read(log, **given)
    assert (caught.value.problem.kind, caught.value.problem.file) == (kind, str(table))


@pytest.mark.parametrize("field", ["reward", "group"])
def test_a_parquet_table_without_a_row_is_refused(log: Path, field: str) -> None:
    table = log.parent / "table.parquet"
    pq.write_table(pa.table({"trace": pa.array([], pa.string()), field: pa.array([], pa.float64())}), table)
    given: dict[str, Any] = {f"{field}s": table}
    with pytest.raises(TraceError, match="a table without a row"):
        read(log, **given)


def test_groups_of_some_traces_are_named(log: Path) -> None:
    table = log.parent / "groups.csv"
    table.write_text("trace,group\nt0,g\nt1,g\n")
    traces = read(log, groups=table)
    (problem,) = traces.problems
    assert (problem.kind, problem.file, problem.is_failure) == ("groups-of-some", str(table), False)
    assert problem.value == "a row for 2 of 4 traces"
    table.write_text("trace,group\n" + "".join(f"t{i},g\n" for i in range(4)))
    assert read(log, groups=table).problems == ()
    assert read(log, groups={}).problems == ()
