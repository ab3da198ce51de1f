"""Logs in which only some spans have a time: it is placed by the file, or its trace is refused in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from .test_graph_nodes import FORMATS, Run, node

STARTS = ("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano", "started_at", "start")
NAMES = [name for name in FORMATS if name != "langsmith"]  # whose runs have an order of their own
TEAM = [Run(1, 0, "LangGraph", "chain"), node(2, "coder"), *(Run(n, 2, "model", "llm", "coder") for n in (3, 4, 5))]


def without_start(value: Any, name: str) -> Any:
    """The records, without the start of the span with this number."""
    if isinstance(value, list):
        return [without_start(one, name) for one in value]
    if not isinstance(value, dict):
        return value
    ids = (value.get(key) for key in ("id", "span_id", "spanId"))
    of_context = value["context"].get("span_id") if isinstance(value.get("context"), dict) else None
    if any(isinstance(one, str) and one.lstrip("0") == name for one in (*ids, of_context)):
        value = {key: value for key, value in value.items() if key not in STARTS}
        if "metrics" in value:
            value["metrics"] = {}
    return {key: without_start(one, name) for key, one in value.items()}


def written(tmp_path: Path, log: Iterator[Any], name: str = "4") -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(without_start(value, name)) + "\n" for value in log))
    return path


def order(path: Path) -> list[str]:
    return [name.lstrip("0") for name in read(path).events["event"].to_pylist() if name[-1] in "345"]


@pytest.mark.parametrize("name", NAMES)
def test_a_span_without_a_time_keeps_its_place_where_times_run_forward(tmp_path: Path, name: str) -> None:
    """It came first as OTLP, and last as Langfuse; elsewhere no time of the trace counted."""
    log = FORMATS[name](TEAM[::-1] if name.startswith("otlp") else TEAM)  # which lists the latest first
    assert order(written(tmp_path, log)) == ["3", "4", "5"]


@pytest.mark.parametrize("name", NAMES)
def test_a_span_without_a_time_is_refused_where_times_run_backward(tmp_path: Path, name: str) -> None:
    """As they do in the answers of APIs that list the newest first."""
    log = FORMATS[name](TEAM if name.startswith("otlp") else TEAM[::-1])
    with pytest.raises(NothingReadError) as caught:
        read(written(tmp_path, log))
    (problem,) = caught.value.problems
    assert problem.kind == "unordered-events" and "run against the order of the file" in problem.expected
    assert order(written(tmp_path, FORMATS[name](TEAM[::-1]), "2")) == ["3", "4", "5"], "alone below its parent"


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("otlp", "mlflow"))])
def test_a_span_without_a_time_is_refused_in_a_trace_of_two_files(tmp_path: Path, name: str) -> None:
    lines = written(tmp_path, FORMATS[name](TEAM)).read_text().splitlines()
    for file, part in (("a", lines[:3]), ("log", lines[:2:-1])):
        (tmp_path / f"{file}.jsonl").write_text("\n".join(part) + "\n")
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path)
    (problem,) = caught.value.problems
    assert problem.kind == "unordered-events" and "a.jsonl has events of the trace, too" in problem.expected
