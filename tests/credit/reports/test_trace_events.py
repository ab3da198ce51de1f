"""Excerpts and causes of events: what the log says of each, in time linear in the log."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from credit.reports.trace_events import event_rows, event_texts
from graphs.event_graph import EdgeType, EventType
from graphs.logs import read
from graphs.traces.assembling import assemble
from graphs.traces.record import Agent, TraceRecord


def test_a_call_has_the_text_of_its_own_object_and_others_that_of_the_record(tmp_path: Path) -> None:
    """The first object of an id counts; its result has the same text; a record that names no event is quoted whole."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "first"}}
    again = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "second"}}
    log = tmp_path / "log.jsonl"
    log.write_text(
        json.dumps({"content": "all of it", "tool_calls": [call, {"call_id": "c2", "text": "other"}, again]})
    )
    record = TraceRecord("t", "q", str(log), format="native")
    record.instances = {"a": Agent()}
    for name in ("c1", "c1.result", "c2", "e"):
        record.event(name, EventType.MESSAGE, "a", action=True)
    traces = assemble([record])
    assert event_texts(traces, np.arange(4), 60) == ["first", "first", "other", "all of it first other second"]
    assert event_texts(traces, np.arange(4), 6) == ["first", "first", "other", "all o…"]


@pytest.mark.slow
def test_texts_of_one_large_record_take_time_linear_in_it(tmp_path: Path) -> None:
    """A record was searched anew for each of its events."""
    steps = [{"step_id": i, "source": "agent", "message": f"step {i}"} for i in range(1, 4001)]
    path = tmp_path / "trajectory.json"
    path.write_text(
        json.dumps({"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a"}, "steps": steps})
    )
    traces = read(path)
    assert traces.sizes.events == 4000
    start = time.process_time()
    texts = event_texts(traces, np.arange(4000), 40)
    assert len(texts) == 4000 and time.process_time() - start < 2


@pytest.mark.slow
def test_an_event_of_many_causes_takes_time_linear_in_them() -> None:
    """Its causes were copied for each further one."""
    many = 50_000
    record = TraceRecord("t", "q", "log.jsonl", format="native")
    record.instances = {"a": Agent()}
    for i in range(many + 1):
        record.event(f"e{i}", EventType.MESSAGE, "a", action=True)
    for i in range(many):
        record.edge(i, many, EdgeType.CAUSAL)
    traces = assemble([record])
    start = time.process_time()
    (row,) = event_rows(traces, 0, [many], limit=0)
    assert row.causes[:2] == ((0, "causal"), (1, "causal")) and len(row.causes) == many
    assert time.process_time() - start < 2
