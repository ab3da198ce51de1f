"""Ids of two keys that are compared with each other: the observation that followed an action may be another's anchor.

Each door numbered the two keys apart, so that `next_anchor` led to a wrong state without a word.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
import credit.devices
from graphs.traces.schema import EVENT_EVIDENCE

ANCHOR = ["s0", "s1", "s0", "s2", "s1", "s0", "s2", "s2"]
NEXT = ["s1", "x", "s2", "s1", "s2", "s2", "s2", "x"]
TRACE, OUTCOME = list("aabbbccc"), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
EXECUTED = [2.77488, 2.327288, -1.11741, 0.61073, -1.247167, -1.11741, -1.033257, -1.197655]
"""By recipe/GraphGPO/core_graph.py of zzj1111/alfworldauto at 37aec78 (Apache-2.0), its scores and its normalisers."""


def batch_of(door: str, folder: Path) -> Any:
    columns = {"next_anchor": NEXT, "anchor": ANCHOR}
    rows = [dict(zip(columns, pair, strict=True)) for pair in zip(*columns.values(), strict=True)]
    if door == "table":
        table = [{"trace": t, "group": "q", "reward": r, **row} for t, r, row in zip(TRACE, OUTCOME, rows, strict=True)]
        (folder / "log.jsonl").write_text("\n".join(map(json.dumps, table)))
        return credit.read(folder / "log.jsonl")
    if door == "log":
        lines = []
        for trace in "abc":
            places = [i for i, name in enumerate(TRACE) if name == trace]
            events = [{"id": str(i), "type": "message", "agent": "s", **rows[i]} for i in places]
            outcome = {"team": OUTCOME[places[0]]}
            lines.append({"trace_id": trace, "task_id": "q", "events": events, "rewards": outcome})
        (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
        return credit.read(folder / "log.jsonl")
    return credit.from_columns(group=["q"] * 8, trace=TRACE, reward=OUTCOME, evidence=columns)[2].traces


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("door", ["log", "columns", "table", "devices", "wide ids"])
def test_next_states_are_those_that_other_actions_answered(door: str, tmp_path: Path) -> None:
    traces = batch_of(door, tmp_path)
    arrays = {name: traces.evidence[name].array for name in ("anchor", "next_anchor")}
    if door == "devices":  # which renumber the ids of each part: here x comes first
        apart = {k: np.where(ids >= 0, np.array([5, 6, 7, 1])[ids], -1).astype(np.int32) for k, ids in arrays.items()}
        found = credit.devices.compute(traces.graph, traces.reward, credit.graph_gpo, apart, scope="group")
    elif door == "wide ids":
        wide = {k: np.where(ids >= 0, ids.astype(np.int64) * 2**32 + 7, -1) for k, ids in arrays.items()}
        found = credit.graph_gpo(traces.graph, traces.reward, **wide)
    else:
        found = credit.run(traces, "graph_gpo", evidence=["next_anchor"])
    np.testing.assert_allclose(np.asarray(found.advantage)[:8], EXECUTED, rtol=0, atol=1e-5)


def test_keys_of_one_kind_of_id_are_named() -> None:
    """A method that compares two keys names them so; there is one such pair."""
    assert {name: key.ids_of for name, key in EVENT_EVIDENCE.items() if key.ids_of} == {"next_anchor": "anchor"}
