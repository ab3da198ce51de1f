"""The real logs of further formats against an account of them that knows nothing of this library."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphs.event_graph import EventType
from graphs.logs import read

HERE = Path(__file__).parent
MANIFEST: dict[str, Any] = json.loads((HERE / "manifest_more.json").read_text())


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manifest_count_more", HERE / "count_more.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_count_reproduces_the_manifest(shared_data: Path) -> None:
    assert load().count(shared_data) == MANIFEST


@pytest.mark.parametrize("name", MANIFEST["files"])
def test_reading_gives_the_numbers_of_the_manifest(shared_data: Path, name: str) -> None:
    traces = read(shared_data / name)
    assert [problem for problem in traces.problems if problem.is_failure] == []
    graph, tokens = traces.graph, traces.evidence
    types = graph.event_type[graph.event_mask]
    known = np.asarray(traces.reward)[np.isfinite(traces.reward) & graph.trace_mask]
    assert {
        "format": traces.traces["format"][0].as_py(),
        "traces": traces.sizes.traces,
        "groups": len(np.unique(graph.group_ids[graph.trace_mask])),
        "events": traces.sizes.events,
        "actions": int(graph.action_mask.sum()),
        "agents": traces.sizes.agents,
        "tool_calls": int((types == EventType.TOOL_CALL).sum()),
        "spawns": int((types == EventType.SPAWN).sum()),
        "tokens": int(tokens["tokens"].amounts.sum()) if "tokens" in tokens else None,
        "reward": pytest.approx(float(known.sum())) if len(known) else None,
    } == MANIFEST["files"][name]


def test_half_a_run_is_named(shared_data: Path) -> None:
    traces = read(shared_data / "harbor")
    kinds = [problem.kind for problem in traces.problems]
    assert kinds == ["missing-subagent"] * 3 + ["missing-continuation"]
    assert traces.graph.action_mask.sum() == 3  # steps of source agent, counted by hand


@pytest.mark.slow
def test_all_real_logs_read_in_one_call(shared_data: Path) -> None:
    traces = read(shared_data)
    expected = {"tau-bench", "claude-code", "openai-agents", "inspect-ai", "atif", "who-and-when"}
    expected |= {entry["format"] for entry in MANIFEST["files"].values()}
    assert set(traces.traces["format"].to_pylist()) == expected
