"""Small logs in the layouts that public projects write, each of which once failed, with what must be found in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import pytest

import credit
from graphs.logs import read

CASES = (
    "langfuse-object", "langfuse-jsonl-text-metadata", "inspect-attempts", "verifiers-eval-folder", "mini-swe-agent-1",
)  # fmt: skip


@pytest.fixture
def cases(shared_data: Path) -> tuple[Path, dict[str, dict[str, Any]]]:
    folder = shared_data / "cases"
    if not folder.is_dir():
        pytest.skip(f"no logs at {folder}")
    return folder, {case["case"]: case for case in json.loads((folder / "expected.json").read_text())}


def test_no_case_is_left_out(cases: tuple[Path, dict[str, dict[str, Any]]]) -> None:
    assert set(cases[1]) == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_case_holds_what_must_be_found(cases: tuple[Path, dict[str, dict[str, Any]]], name: str) -> None:
    folder, expected = cases[0], cases[1][name]
    traces = read(folder / expected["path"])
    graph, sizes = traces.graph, traces.sizes
    found: dict[str, Any] = {"traces": sizes.traces, "events": sizes.events, "actions": int(graph.action_mask.sum())}
    found["agents"] = sizes.agents
    assert [problem for problem in traces.problems if problem.is_failure] == []  # exit code 0
    if "team" in expected:
        found["team"] = traces.reward[: sizes.traces].tolist()
    if "rloo" in expected or "rloo_abs" in expected:
        advantage = jax.device_get(credit.run(traces, "rloo").advantage)
        ids, of_event = traces.traces["trace"].to_pylist(), graph.trace_ids[: sizes.events]
        acting = [i for i in range(sizes.events) if graph.action_mask[i]]
        found["rloo"] = {ids[of_event[i]].partition("/")[2]: float(advantage[i]) for i in acting}
        assert {abs(amount) for amount in found["rloo"].values()} == {expected.get("rloo_abs", 1.0)}
    assert {key: found[key] for key in expected.keys() & found.keys()} == {
        key: expected[key] for key in expected.keys() & found.keys()
    }
