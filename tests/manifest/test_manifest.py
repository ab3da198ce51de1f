"""The real logs against an account of them that knows nothing of this library."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.event_graph import EventType
from graphs.logs import read
from graphs.traces.batch import Traces

HERE = Path(__file__).parent
MANIFEST: dict[str, Any] = json.loads((HERE / "manifest.json").read_text())
ABSENT = {"claude_code_subagent_files/subagent.jsonl": [("missing-subagent", "'afb92ff'")]}
"""Sub-agents whose files are not in the published data."""


def counter() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manifest_count", HERE / "count.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kind_of(refused: str) -> str:
    """Why a file is refused: spans without agents' attributes, or an unknown format."""
    return "no-agent-spans" if "otel_traces" in refused else "unknown-format"


def numbers_of(traces: Traces) -> dict[str, Any]:
    """What the library says, in the manifest's terms."""
    graph = traces.graph
    types = graph.event_type[graph.event_mask]
    tokens = {
        name: int(traces.evidence[name].amounts.sum()) if name in traces.evidence else None
        for name in ("tokens", "input_tokens")
    }
    known = traces.reward[np.isfinite(traces.reward) & graph.trace_mask]
    return {
        "format": traces.traces["format"][0].as_py(),
        "traces": traces.sizes.traces,
        "groups": len(np.unique(graph.group_ids[graph.trace_mask])),
        "events": traces.sizes.events,
        "actions": int(graph.action_mask.sum()),
        "agents": traces.sizes.agents,
        "tool_calls": int((types == EventType.TOOL_CALL).sum()),
        "spawns": int((types == EventType.SPAWN).sum()),
        **tokens,
        "reward": float(known.sum()) if len(known) else None,
    }


def test_the_count_reproduces_the_manifest(shared_data: Path) -> None:
    assert counter().count(shared_data) == MANIFEST


def test_the_count_does_not_use_the_library() -> None:
    source = (HERE / "count.py").read_text()
    imports = [line for line in source.splitlines() if line.startswith(("import", "from"))]
    assert not [line for line in imports if any(name in line for name in ("graphs", "estimators", "credit"))]


@pytest.mark.parametrize("name", MANIFEST["files"])
def test_reading_gives_the_numbers_of_the_manifest(shared_data: Path, name: str) -> None:
    traces = read(shared_data / name)
    assert [(problem.kind, problem.value) for problem in traces.problems] == ABSENT.get(name, [])
    expected = {key: value for key, value in MANIFEST["files"][name].items() if key != "parts"}
    assert numbers_of(traces) == expected


@pytest.mark.parametrize("folder", sorted({Path(name).parts[0] for name in MANIFEST["files"]}))
def test_a_folder_holds_the_sum_of_its_files(shared_data: Path, folder: str) -> None:
    """Also: a sub-agent's file found in the folder is counted with its session, once."""
    traces = read(shared_data / folder)
    refused = [str(shared_data / name) for name in MANIFEST["refused"] if name.startswith(f"{folder}/")]
    named = [("missing-subagent", str(shared_data / name)) for name in ABSENT if name.startswith(f"{folder}/")]
    expected = [(kind_of(f), f) for f in refused] + named
    assert [(problem.kind, problem.file) for problem in traces.problems] == expected
    parts = [entry for name, entry in MANIFEST["files"].items() if name.startswith(f"{folder}/")]
    found = numbers_of(traces)
    groups = MANIFEST["questions"] if folder == "who_and_when" else sum(part["groups"] for part in parts)
    assert found["groups"] == groups
    for key in ("traces", "events", "actions", "agents", "tool_calls", "spawns"):
        assert found[key] == sum(part[key] for part in parts), key
    if found["tokens"] is not None:
        assert found["tokens"] == sum(part["tokens"] or 0 for part in parts)


@pytest.mark.parametrize("name", MANIFEST["refused"])
def test_files_of_other_formats_are_refused_by_name(shared_data: Path, name: str) -> None:
    with pytest.raises(NothingReadError) as caught:
        read(shared_data / name)
    (problem,) = caught.value.problems
    assert problem.kind == kind_of(name)
    assert problem.file == str(shared_data / name)


def test_a_refused_file_does_not_stop_its_neighbours(shared_data: Path) -> None:
    good = "claude_code_subagent_files/short.jsonl"
    traces = read(shared_data / MANIFEST["refused"][0], shared_data / good)
    assert [problem.kind for problem in traces.problems] == [kind_of(MANIFEST["refused"][0])]
    assert traces.sizes.events == MANIFEST["files"][good]["events"]
