"""Ids that several groups share: numbers of a part of whole groups are those of all traces at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.methods.chunked import ChunkedMethod
from estimators.base import Reason
from graphs.logs.chunks import read_chunks


def action(context: str | None, node: str | None, **more: Any) -> dict[str, Any]:
    ids = {"context": context, "node": node, "alternative": node}
    ids |= {"propensity": 0.5, "target_propensity": 0.25 + 0.5 * (node == "n0")}
    return {"type": "message", "agent": "a"} | {
        name: value for name, value in (ids | more).items() if value is not None
    }


def write(path: Path, traces: list[tuple[str, str, float, list[dict[str, Any]], str]]) -> Path:
    with path.open("w") as file:
        for name, task, reward, events, model in traces:
            listed = [{"id": f"e{i}"} | event for i, event in enumerate(events)]
            entry = {"trace_id": name, "task_id": task, "events": listed, "rewards": {"team": reward}}
            file.write(json.dumps(entry | ({"model": model} if model else {})) + "\n")
    return path


def by_trace(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["trace"], row["event"]): {k: v for k, v in row.items() if k != "line"} for row in rows}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Three tasks whose trees count their contexts and nodes afresh, and differ in shape."""
    traces = []
    for task in ("p", "q", "r"):
        for i in range(4):
            events = [action("root", f"n{i % 2}"), action(f"c{i % 2}", f"m{i}")]
            traces.append((f"{task}{i}", task, float(i) if task == "p" else i * i / 7, events, ""))
    traces.append(("s0", "s", 1.0, [action("root", "n0"), action("c0", "n1"), action(None, None)], ""))
    traces.append(("s1", "s", 0.0, [action("root", "n2"), action("c3", "n3")], ""))
    return write(tmp_path / "shared.jsonl", traces)


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("method", ["magrpo", "c3", "off_policy", "rloo"])
def test_contexts_and_nodes_that_tasks_share_give_the_rows_of_one_process(method: str, shared: Path) -> None:
    traces = credit.read(shared)
    whole = by_trace(credit.table(traces, credit.run(traces, method)).to_pylist())
    parts: dict[tuple[str, str], dict[str, Any]] = {}
    for part in read_chunks(shared, events=1):
        parts |= by_trace(credit.table(part, ChunkedMethod(method).run(part)).to_pylist())
    assert parts == whole
    if method != "off_policy":
        assert any(row["valid"] for row in parts.values())


@pytest.mark.slow
def test_one_context_of_two_models_has_the_siblings_of_each(tmp_path: Path) -> None:
    log = [(f"t{i}", "q", float(i), [action("root", f"t{i}")], ("small", "large")[i % 2]) for i in range(4)]
    traces = credit.read(write(tmp_path / "log.jsonl", log))
    result = credit.run(traces, "c3")
    assert np.asarray(result.reason)[:4].tolist() == [Reason.VALID] * 4
    assert np.asarray(result.advantage)[:4].tolist() == [-2.0, -2.0, 2.0, 2.0]


def test_replays_are_found_by_the_ids_of_their_own_task(shared: Path) -> None:
    """Trace s0 holds n0 and n1, which other tasks have in traces that share nothing."""
    traces = credit.read(shared)
    clusters, groups = np.asarray(traces.graph.cluster_ids), np.asarray(traces.graph.group_ids)
    of_p = clusters[groups == groups[0]][:4]
    assert of_p[0] == of_p[2] != of_p[1] == of_p[3]


def test_groups_have_the_names_that_one_process_gives(tmp_path: Path) -> None:
    """A task may bear the name that a group of another task would have."""
    log = [(f"t{i}", "q", float(i), [action(None, None)], ("small", "large")[i % 2]) for i in range(4)]
    log += [(f"u{i}", "q [small]", float(i), [action(None, None)], "") for i in range(2)]
    log += [(f"v{i}", "z", float(i), [action(None, None)], "") for i in range(2)]
    path = write(tmp_path / "log.jsonl", log)
    traces = credit.read(path)
    whole = by_trace(credit.table(traces, credit.run(traces, "rloo")).to_pylist())
    parts: dict[tuple[str, str], dict[str, Any]] = {}
    chunks = read_chunks(path, events=1)
    for part in chunks:
        parts |= by_trace(credit.table(part, ChunkedMethod("rloo").run(part)).to_pylist())
    assert parts == whole
    assert len(chunks) == 2  # tasks whose names may meet are in one part, others are not
    assert parts["t0", "e0"]["group"] == "q [small]'" and parts["u0", "e0"]["group"] == "q [small]"
