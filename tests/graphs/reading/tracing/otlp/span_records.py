"""Spans written by hand, and the records that the reader makes of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from graphs.errors import Problem
from graphs.event_graph import EdgeType, EventType
from graphs.formats import otlp
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord, check


def load(name: str) -> ModuleType:
    """A module of `tests/recordings`."""
    path = Path(__file__).parents[4] / "recordings" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"recordings_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = load("spans")
LEAD, WORKER = make.span_id(2), make.span_id(5)


def read_files(folder: Path, *requests: dict[str, Any]) -> list[TraceRecord | Problem]:
    """What the reader makes of these requests, each in a file of its own."""
    files = [make.write_lines(folder / f"{i}.jsonl", request) for i, request in enumerate(requests)]
    return list(otlp.read([Source(str(file), file) for file in files]))


def read_one(folder: Path, spans: list[dict[str, Any]], **more: Any) -> TraceRecord:
    """The one trace that these spans make, its checks passed with its order untouched."""
    (record,) = read_files(folder, make.spans_request(spans, **more))
    assert isinstance(record, TraceRecord), record
    assert check(record) is record
    assert all(s < r for s, r in zip(record.senders, record.receivers, strict=True))
    return record


def refused(folder: Path, spans: list[dict[str, Any]], **more: Any) -> Problem:
    """The problem that these spans make, before what counts of the refused trace."""
    problem, unread = read_files(folder, make.spans_request(spans, **more))
    assert isinstance(problem, Problem) and isinstance(unread, TraceRecord) and unread.unread == ()
    return problem


def shape(record: TraceRecord) -> list[tuple[str, str, bool]]:
    """Type, agent's name and action of each event."""
    names = {agent_id: agent.name for agent_id, agent in record.instances.items()}
    columns = zip(record.types, record.agents, record.actions, strict=True)
    return [(EventType(t).name.lower(), names[a], action) for t, a, action in columns]


def edges(record: TraceRecord) -> set[tuple[int, int, str]]:
    columns = zip(record.senders, record.receivers, record.edge_types, strict=True)
    return {(s, r, EdgeType(t).name.lower()) for s, r, t in columns}


def column(record: TraceRecord, name: str) -> list[Any]:
    values = record.columns.get(name, [])
    return values + [None] * (len(record.ids) - len(values))
