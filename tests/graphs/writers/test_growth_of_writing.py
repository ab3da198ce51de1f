"""Writing takes time linear in a trace, however long it is and however many agents started one another in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linear_time import assert_linear

from graphs.logs import read
from graphs.traces.cache import write_cache
from graphs.writers import native, otlp


def chain(size: int) -> tuple[list[dict[str, Any]], list[tuple[int, int, str]]]:
    """Events of a hundred agents, each after the one before it."""
    events = [{"id": f"e{i}", "t": i, "type": "message", "agent": f"a{i % 100}"} for i in range(size)]
    return events, [(i, i + 1, "causal") for i in range(size - 1)]


def team(size: int) -> tuple[list[dict[str, Any]], list[tuple[int, int, str]]]:
    """Agents each of which starts the next one."""
    events: list[dict[str, Any]] = []
    for i in range(size // 2):
        events += [
            {"id": f"m{i}", "t": 2 * i, "type": "message", "agent": f"a{i}"},
            {"id": f"s{i}", "t": 2 * i + 1, "type": "spawn", "agent": f"a{i}", "to": f"a{i + 1}"},
        ]
    events.append({"id": "last", "t": size, "type": "message", "agent": f"a{size // 2}"})
    return events, [(i, i + 1, "spawn" if i % 2 else "causal") for i in range(len(events) - 1)]


WRITERS: dict[str, Callable[[Any, Path], object]] = {
    "native": lambda traces, path: native.write(traces, path.with_suffix(".jsonl")),
    "otlp": lambda traces, path: otlp.write(traces, path),
    "cache": lambda traces, path: write_cache(traces, path.with_suffix(".parquet")),
}


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("shape", [chain, team], ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("writer", WRITERS)
def test_writing_is_linear(tmp_path: Path, writer: str, shape: Callable[[int], Any]) -> None:
    def prepare(size: int) -> Callable[[], object]:
        events, edges = shape(size)
        listed = [{"src": events[s]["id"], "dst": events[r]["id"], "type": kind} for s, r, kind in edges]
        path = tmp_path / f"{size}.json"
        path.write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": events, "edges": listed}))
        traces = read(path)
        return lambda: WRITERS[writer](traces, tmp_path / f"out{size}")

    assert_linear(prepare, 8_000, runs=1)
