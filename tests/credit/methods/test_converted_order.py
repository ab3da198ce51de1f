"""One run is one graph, however it is written: in native logs, too, its order is as much told as where it came from."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import credit
from credit.methods.registry import METHODS
from credit.untold_order import reads_untold, traces_untold
from credit.values_at_once import Rounds, reads_rounds, rounds_of_log
from graphs.errors import CreditError
from graphs.writers import native
from tests.definitions.samples import SAMPLES
from tests.graphs.reading.all_formats import ALL

ASKED: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("turn_baseline", "discounted_return", "gae", "puppeteer", "igpo", "rloo")),
    ("rloo", {"by": "task,turn"}),
    ("gae", {"lambda_": 1}),
]


def row(trace: int, agent: str, **columns: Any) -> dict[str, Any]:
    return {"trace": f"t{trace}", "group": "q", "agent": agent, "reward": trace % 2, "event_reward": 0.5, **columns}


TABLES: dict[str, list[dict[str, Any]]] = {
    "rounds with contexts": [
        row(t, agent, time=time, context=time and f"{t}-{time}")
        for t in range(2)
        for agent, time in (("plan", 0), ("a", 1), ("b", 1), ("plan", 2), ("a", 3), ("b", 3))
    ],
    "rounds of one name": [
        row(t, agent, time=time, context=time and f"{t}-{time}")
        for t in range(2)
        for agent, time in (("plan", 0), ("a", 1), ("a", 1))
    ],
    "times": [row(t, agent, time=time) for t in range(2) for time, agent in enumerate("abab")],
    "one time": [row(t, agent, time=time // 2) for t in range(2) for time, agent in enumerate("abab")],
    "one time of one name": [row(t, "a", time=time // 2, turn=0) for t in range(2) for time in range(4)],
    "in order": [row(t, agent) for t in range(2) for agent in "abab"],
    "turns by agent": [row(t, agent, turn=k) for t in range(2) for agent in "ab" for k in range(2)],
    "scattered": [row(t, agent) for t, agent in zip((0, 1, 0, 1, 0, 2, 1, 2), "aabbcabb", strict=True)],
    "scattered, one agent": [row(t, "a") for t in (0, 1, 0, 1, 0, 2, 1, 2)],
}


def said(traces: credit.Traces) -> dict[str, tuple[bool, Rounds]]:
    """Of each method whether it is warned of an untold order, and the rounds whose order of rows moves its numbers."""
    return {
        f"{name} {options}": (
            bool(reads_untold(name, traces_untold(traces, METHODS[name], options, traces.evidence))),
            rounds_of_log(traces).read(*reads_rounds(METHODS[name], options, traces.evidence)),
        )
        for name, options in ASKED
    }


def alike(path: Path, folder: Path) -> dict[str, tuple[bool, Rounds]]:
    """What is said of a log, which must be the same of what `convert` makes of it, and of that again."""
    traces = credit.read(path)
    first = said(traces)
    for name in ("once", "twice"):
        native.write(traces, folder / f"{name}.jsonl")
        traces = credit.read(folder / f"{name}.jsonl")
        assert said(traces) == first
    return first


@pytest.mark.parametrize("name", [*ALL, *SAMPLES])
def test_a_converted_log_tells_as_much_of_its_order(name: str, tmp_path: Path) -> None:
    """After `convert`, eight formats were warned of an order that they had told."""
    (tmp_path / "log").mkdir()
    (ALL.get(name) or SAMPLES[name]).write(tmp_path / "log")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            credit.read(tmp_path / "log")
        except CreditError:
            return  # samples of what is refused
        alike(tmp_path / "log", tmp_path)


@pytest.mark.parametrize("name", TABLES)
def test_a_converted_table_tells_as_much_of_its_order(name: str, tmp_path: Path) -> None:
    """A table with contexts and times warned of nothing, and of its native form `assign` said that it may be biased."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in TABLES[name]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = alike(path, tmp_path)
    told = name in ("rounds with contexts", "rounds of one name", "times", "in order")
    assert any(warned for warned, _ in found.values()) != told
    rounds = [rounds for _, rounds in found.values()]
    assert any(of.several for of in rounds) == (name == "rounds with contexts")
    assert any(of.one for of in rounds) == (name == "rounds of one name")


def test_a_native_log_may_state_its_order(tmp_path: Path) -> None:
    events = [{"id": str(k), "t": k, "type": "message", "agent": agent} for k, agent in enumerate("aba")]
    for told, warned in ((None, True), (True, False), (False, True)):
        trace = {"trace_id": "t", "task_id": "q", "events": events, "told_order": told}
        (tmp_path / "log.jsonl").write_text(json.dumps(trace))
        assert said(credit.read(tmp_path / "log.jsonl"))["turn_baseline {}"][0] == warned
