"""Spans whose status tells nothing: what else says that they failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.logs import read

from ..samples import OBSERVATIONS, RECORDINGS, observation

FAILED = ("error.type", "timeout")
ESCAPED = [("exception.type", "E"), ("exception.escaped", "True")]  # as text, as the SDK of Python writes it
CAUGHT = [("exception.type", "E")]
UNSET = {"otlp": 0, "spans": "UNSET", "agent-lightning": "UNSET", "langfuse": "DEFAULT"}
OK = {"otlp": 1, "spans": "OK", "agent-lightning": "OK"}


def otlp(code: Any, named: list[tuple[str, str]], raised: list[tuple[str, str]]) -> list[Any]:
    def attributes(of: list[tuple[str, str]]) -> list[Any]:
        return [{"key": key, "value": {"stringValue": value}} for key, value in of]

    tool = [("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.name", "search"), *named]
    span = {"traceId": "1" * 32, "spanId": "2" * 16, "name": "search", "startTimeUnixNano": "9", "endTimeUnixNano": "9"}
    events = [{"name": "exception", "attributes": attributes(raised)}] if raised else []
    span |= {"status": {} if code is None else {"code": code}, "attributes": attributes(tool), "events": events}
    return [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}]


def spans(code: Any, named: list[tuple[str, str]], raised: list[tuple[str, str]]) -> list[Any]:
    attributes = {"openinference.span.kind": "TOOL", "tool.name": "search"} | dict(named)
    span = {"name": "search", "context": {"trace_id": "1" * 32, "span_id": "2" * 16}, "attributes": attributes}
    events = [{"name": "exception", "attributes": dict(raised)}] if raised else []
    moment = "2026-01-01T00:00:00Z"
    return [span | {"status_code": code, "events": events, "start_time": moment, "end_time": moment}]


def agent_lightning(code: Any, named: list[tuple[str, str]], _: list[tuple[str, str]]) -> list[Any]:
    lines = [json.loads(line) for line in (RECORDINGS / "agent_lightning_spans.jsonl").read_text().splitlines()]
    (*_, last) = (line for line in lines if line["name"] == "search.tool")  # of the attempt that counts
    last |= {"status": {"status_code": code}, "attributes": last["attributes"] | dict(named)}
    return lines


def langfuse(code: Any, named: list[tuple[str, str]], _: list[tuple[str, str]]) -> list[Any]:
    said = {"level": code, "metadata": {"attributes": dict(named)}}
    return [observation("o4", "TOOL", "search", "o1", 4, **said), *OBSERVATIONS[1:3]]


WRITERS = {"otlp": otlp, "spans": spans, "agent-lightning": agent_lightning, "langfuse": langfuse}


def failures(folder: Path, lines: list[Any]) -> int:
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read(folder).events["status"].to_pylist().count("error")


@pytest.mark.parametrize("name", WRITERS)
def test_a_span_without_a_status_failed_where_it_states_the_type_of_its_error(name: str, tmp_path: Path) -> None:
    """127 failed calls of tools were "errors 0": their tracer set `error.type` alone."""
    assert failures(tmp_path, WRITERS[name](UNSET[name], [FAILED], [])) == 1
    assert failures(tmp_path, WRITERS[name](None, [FAILED], [])) == 1
    assert failures(tmp_path, WRITERS[name](UNSET[name], [("error.type", "")], [])) == 0
    assert failures(tmp_path, WRITERS[name](UNSET[name], [], [])) == 0


@pytest.mark.parametrize("name", OK)
def test_a_status_of_ok_wins_over_the_type_of_an_error(name: str, tmp_path: Path) -> None:
    """OpenTelemetry: analysis tools suppress what they would call an error where the status is OK."""
    assert failures(tmp_path, WRITERS[name](OK[name], [FAILED], ESCAPED)) == 0


@pytest.mark.parametrize("name", ["otlp", "spans"])
def test_an_exception_among_the_events_is_an_error_where_it_left_the_span(name: str, tmp_path: Path) -> None:
    assert failures(tmp_path, WRITERS[name](UNSET[name], [], ESCAPED)) == 1
    assert failures(tmp_path, WRITERS[name](UNSET[name], [], CAUGHT)) == 0  # it may have been handled
    assert failures(tmp_path, WRITERS[name](UNSET[name], [], [*CAUGHT, ("exception.escaped", "False")])) == 0
