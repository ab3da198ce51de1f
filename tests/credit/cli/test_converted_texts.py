"""What `credit convert` writes as native says of each event what its log said, so that summaries are the same."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credit.reports.event_texts import call_arguments, event_texts, native_texts
from graphs.event_graph import EventType
from graphs.logs import read
from graphs.writers import native
from tests.credit.cli.logs import run
from tests.graphs.reading.samples import SAMPLES

TEXTS = ("text", "arguments", "output", "error", "status")


def rows() -> list[dict[str, Any]]:
    """Calls that fail, are made again and fail again, with what they say and give."""
    choose, table = random.Random(5), []
    for run_ in range(32):
        for step in range(choose.randint(2, 6)):
            bad, query = choose.random() < 0.4, json.dumps({"q": choose.choice("ab")})
            of_call = {"arguments": query, "status": "error: HTTP 500" if bad else "ok"}
            of_result = {"output": "nothing" if bad else "it\nworked", "status": "failed" if bad else "ok"}
            said = {"message": {"text": f" try {step}\nagain"}, "tool_call": of_call, "tool_result": of_result}
            for kind, stated in said.items():
                of_run = {"trace": f"t{run_}", "group": f"q{run_ // 4}", "reward": run_ % 2, "agent": "coder"}
                why = "no such file" if bad and kind != "message" else None
                of_run |= dict.fromkeys(TEXTS) | {"error": why} | stated
                table.append(of_run | {"type": kind, "tool": None if kind == "message" else "sh", "time": len(table)})
    return table


def written(path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows()), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            (table := csv.DictWriter(file, [*rows()[0]])).writeheader()
            table.writerows(rows())
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return path


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_summary_of_a_converted_table_is_that_of_the_table(ending: str, tmp_path: Path) -> None:
    """Arguments and errors were dropped: retries, loops and why a call failed were unknown."""
    table, out = written(tmp_path / f"in.{ending}"), tmp_path / "out.jsonl"
    assert run("convert", table, "-o", out).exit_code == 0
    before, after = (run("summary", path).stdout.replace(path.name, "LOG") for path in (table, out))
    assert after == before
    assert "try 0 again" in run("show", out, "--trace", "t1").stdout
    assert run("convert", table, "--no-texts", "-o", out).exit_code == 0
    assert "HTTP 500" not in out.read_text() and run("summary", out).stdout.replace(out.name, "LOG") != before


@pytest.mark.parametrize("name", SAMPLES)
def test_the_events_of_each_format_say_the_same_when_converted(tmp_path: Path, name: str) -> None:
    traces = read(SAMPLES[name].write(tmp_path / "log"))
    native.write(traces, tmp_path / "native.jsonl", native_texts(traces))
    again = read(tmp_path / "native.jsonl")
    assert again.problems == ()
    every = np.arange(traces.sizes.events)
    calls = np.flatnonzero(np.isin(np.asarray(traces.graph.event_type), [EventType.TOOL_CALL, EventType.SPAWN]))
    for limit in (20, 100_000):
        assert event_texts(again, every, limit) == event_texts(traces, every, limit)
        assert call_arguments(again, calls, limit) == call_arguments(traces, calls, limit)
