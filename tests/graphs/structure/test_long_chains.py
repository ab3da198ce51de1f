"""Walks along causes: exact whether many events are taken together or one by one, and linear in a long chain."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from graphs.errors import CreditError
from graphs.readers import read
from graphs.structure.forest import ancestors, descendants, longest_paths


@pytest.mark.parametrize("kind", [np.int64, np.float32])
@pytest.mark.parametrize("width", [1, 63, 65, 200])
def test_longest_paths_are_those_of_a_slow_reading(width: int, kind: type) -> None:
    rng = np.random.default_rng(width)
    num = 40 * width
    senders = rng.integers(0, num - width, 3 * num)
    receivers = rng.integers(senders + 1, np.minimum(senders + 2 * width, num - 1) + 1)
    weight: np.ndarray = (10 * rng.random(num)).astype(kind)
    causes: list[list[int]] = [[] for _ in range(num)]
    for s, r in zip(senders, receivers, strict=True):
        causes[r].append(s)
    before, total = np.zeros_like(weight), weight.copy()
    for event in range(num):
        before[event] = max(total[causes[event]], default=kind(0))
        total[event] = before[event] + weight[event]
    found = longest_paths(senders, receivers, weight)
    np.testing.assert_array_equal(found, (total, before))
    assert found[0].dtype == weight.dtype
    with pytest.raises(CreditError, match="cycle"):
        longest_paths(np.append(receivers, senders), np.append(senders, receivers), weight)


def test_walks_along_a_long_chain_are_linear(tmp_path: Path) -> None:
    """A round for each event took 3 seconds for paths, and the square of the chain for descendants."""
    events = 50_000
    start = time.process_time()
    total, _ = longest_paths(np.arange(events - 1), np.arange(1, events), np.ones(events, np.int64))
    assert total[-1] == events
    assert time.process_time() - start < 1
    listed = [{"id": f"e{i}", "type": "message", "agent": "a"} for i in range(events)]
    edges = [{"src": f"e{i}", "dst": f"e{i + 1}", "type": "causal"} for i in range(events - 1)]
    log = {"trace_id": "t", "task_id": "q", "events": listed, "edges": edges, "rewards": {"team": 1.0}}
    (tmp_path / "x.json").write_text(json.dumps(log))
    graph = read(tmp_path).graph
    start = time.process_time()
    assert descendants(graph, 0).sum() == ancestors(graph, events - 1).sum() == events - 1
    assert time.process_time() - start < 2
