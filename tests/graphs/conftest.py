"""Random small traces for the tests of structure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphs.event_graph import EdgeType, EventType
from graphs.traces.record import Agent, TraceRecord


def random_record(rng: np.random.Generator, name: str, *, events: int | None = None) -> TraceRecord:
    """A trace with a random spawn forest, random edges (some twice, between the same events) and random evidence."""
    record = TraceRecord(trace_id=name, group_id=f"task {rng.integers(3)}", file="a.jsonl", line=int(rng.integers(9)))
    num_agents = int(rng.integers(1, 6))
    for i in range(num_agents):
        parent = "" if i == 0 or rng.random() < 0.2 else f"a{rng.integers(i)}"
        record.instances[f"a{i}"] = Agent(f"n{rng.integers(4)}", f"r{rng.integers(3)}", parent)
    n = int(rng.integers(1, 25)) if events is None else events
    for i in range(n):
        record.event(
            f"e{i}",
            EventType(int(rng.integers(11))),
            f"a{rng.integers(num_agents)}",
            action=bool(rng.random() < 0.7),
            time=float(rng.random()) if rng.random() < 0.8 else float("nan"),
            value=float(rng.normal()) if rng.random() < 0.5 else None,
            context=f"c{rng.integers(3)}" if rng.random() < 0.5 else None,
            stage=int(rng.integers(4)),
            tool="search" if rng.random() < 0.2 else None,
        )
    for _ in range(int(rng.integers(0, 2 * n)) if n > 1 else 0):
        sender, receiver = sorted(rng.choice(n, 2, replace=False).tolist())
        record.edge(sender, receiver, EdgeType(int(rng.integers(8))))
    record.rewards["team"] = float(rng.normal())
    record.costs["tokens"] = float(rng.integers(100))
    return record


@pytest.fixture(scope="session")
def random_records() -> Callable[..., list[TraceRecord]]:
    """`random_records(seed, traces=6)`: several random traces, the third with a single event."""
    return _random_records


def _random_records(seed: int, traces: int = 6) -> list[TraceRecord]:
    rng = np.random.default_rng(seed)
    return [random_record(rng, f"t{i}", events=1 if i == 2 else None) for i in range(traces)]
