"""A byte that is no text within an id: the line named no trace, or another, and its own was read without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from ..samples import observation
from ..tracing.otlp.span_records import make


def _langfuse(trace: str) -> list[dict[str, Any]]:
    call = observation(f"{trace}-call", "GENERATION", "m", None, 1) | {"traceId": trace}
    score = {"id": f"{trace}-score", "traceId": trace, "name": "solved", "value": 1.0, "dataType": "NUMERIC"}
    return [call, score]


def _openai(trace: str) -> list[dict[str, Any]]:
    return [
        {"object": "trace.span", "id": f"{trace}-{i}", "trace_id": trace, "span_data": {"type": "generation"}}
        for i in range(2)
    ]


def _otlp(trace: str) -> list[dict[str, Any]]:
    name = trace * 16
    return [make.spans_request([make.chat(number, 0, number, number + 1, trace=name)]) for number in (1, 2)]


FORMATS: dict[str, tuple[Callable[[str], list[dict[str, Any]]], str, str]] = {
    "langfuse": (_langfuse, "t2", "u2"),
    "openai agents": (_openai, "t2", "u2"),
    "otlp": (_otlp, "a2", "b2"),
}


def left(folder: Path, name: str, at: int) -> list[str]:
    """The traces that are read where a byte of the id in the second line is damaged."""
    make_lines, damaged, other = FORMATS[name]
    first, last, *others = [json.dumps(line).encode() for trace in (damaged, other) for line in make_lines(trace)]
    begin = last.index(b'"', last.index(b":", max(last.find(b'"traceId"'), last.find(b'"trace_id"')))) + 1
    last = last[: begin + at] + b"\x80" + last[begin + at + 1 :]
    (folder / "log.jsonl").write_bytes(b"\n".join([first, last, *others]))
    try:
        traces = read(folder / "log.jsonl")
    except NothingReadError as error:
        assert "not-utf-8" in [problem.kind for problem in error.problems]
        return []
    assert [problem.kind for problem in traces.problems] == ["not-utf-8", "lost-row"]
    return [str(trace)[:2] for trace in traces.traces["trace"].to_pylist()]


@pytest.mark.parametrize("name", FORMATS)
def test_an_id_with_a_bad_byte_refuses_what_begins_as_it_does(tmp_path: Path, name: str) -> None:
    assert left(tmp_path, name, 1) == [FORMATS[name][2]]


@pytest.mark.parametrize("name", FORMATS)
def test_an_id_that_begins_with_a_bad_byte_may_be_any(tmp_path: Path, name: str) -> None:
    assert left(tmp_path, name, 0) == []
