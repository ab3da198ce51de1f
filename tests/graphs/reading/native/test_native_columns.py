"""The columns of many traces at once are those of one trace after another, and what is wrong is named the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError, Problem
from graphs.formats import native
from graphs.formats.native import batches as native_batches
from graphs.formats.native.columns import columns
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.limits import DEFAULT, Limits

TYPES = ("orchestrator_decision", "spawn", "message", "tool_call", "tool_result", "return", "stop")
EDGES = ("temporal", "causal", "spawn", "message", "return")
Row = dict[str, Any]
Fault = Callable[[Row, np.random.Generator], None]


def random_trace(rng: np.random.Generator, name: str) -> Row:
    """A trace with spawns, tools whose results bear their names, listed agents, and keys at some events only."""
    n = int(rng.integers(1, 14))
    events: list[Row] = []
    for i in range(n):
        kind = TYPES[rng.integers(len(TYPES))]
        event: Row = {"id": f"e{i}", "type": kind, "agent": f"a{rng.integers(3)}"}
        if kind == "spawn" and rng.random() < 0.8:
            event["to"] = f"new{i}" if rng.random() < 0.95 else f"a{rng.integers(3, 5)}"
        if kind == "message" and rng.random() < 0.5:
            event["to"] = ["", "a1", "elsewhere"][rng.integers(3)]
        if kind.startswith("tool") and rng.random() < 0.8:
            event["tool"] = ["search", "shell"][rng.integers(2)]
        if kind == "tool_result" and rng.random() < 0.5:
            event["agent"] = ["search", "shell", "nobody"][rng.integers(3)]
        for key, value in (
            ("t", float(i)),
            ("role", ["", "worker", "planner"][rng.integers(3)]),
            ("agent_name", ["", "ann", "bob"][rng.integers(3)]),
            ("value", float(rng.normal())),
            ("tokens", int(rng.integers(9))),
            ("context", f"c{rng.integers(3)}"),
            ("action", bool(rng.integers(2))),
            ("trusted", bool(rng.integers(2))),
            ("status", "ok"),
        ):
            if rng.random() < 0.3:
                event[key] = value
        events.append(event)
    trace: Row = {"trace_id": name, "task_id": f"q{rng.integers(3)}", "events": events, "edges": []}
    for _ in range(int(rng.integers(0, 2 * n))):
        src, dst = sorted(rng.integers(n, size=2).tolist())
        if src < dst:
            trace["edges"].append({"src": f"e{src}", "dst": f"e{dst}", "type": EDGES[rng.integers(len(EDGES))]})
    if rng.random() < 0.3:
        trace["agents"] = [
            {"id": "a1", "name": "first", "role": "", "parent": ""},
            {"id": "extra", "role": "idle", "parent": ["a1", "a0", "", "extra"][rng.integers(4)]},
            {"id": "a0", "parent": "extra"} if rng.random() < 0.1 else {"id": "a0"},
        ]
    if rng.random() < 0.8:
        trace["rewards"] = {"team": float(rng.random()), "style": 1.0}
        trace["costs"] = {"tokens": 3, "wall_clock_s": 1.5}
    if rng.random() < 0.05:
        for i, event in enumerate(events):
            event["turn"] = ["x", 1, 1.0, "1"][i * len(name) % 4]
    return trace


def _event(row: Row, rng: np.random.Generator) -> Row:
    return row["events"][rng.integers(len(row["events"]))]  # type: ignore[no-any-return]


def _edge(row: Row, **edge: str) -> None:
    row["edges"].insert(len(row["edges"]) // 2, {"type": "causal"} | edge)


FAULTS: dict[str, Fault] = {
    "no events": lambda row, rng: row.update(events=[], edges=[]),
    "an id twice": lambda row, rng: row["events"].append(dict(row["events"][0])),
    "a dangling source": lambda row, rng: _edge(row, src="nothing", dst="e0"),
    "a dangling end": lambda row, rng: _edge(row, src="e0", dst="nothing"),
    "an edge backwards": lambda row, rng: _edge(row, src=row["events"][-1]["id"], dst="e0"),
    "half a token": lambda row, rng: _event(row, rng).update(tokens=0.5),
    "tokens of other lengths": lambda row, rng: _event(row, rng).update(token_ids=[1, 2], token_mask=[True]),
    "half a turn": lambda row, rng: [event.update(turn=0.5) for event in row["events"]] and None,
    "a turn at one event": lambda row, rng: _event(row, rng).update(turn=1),
    "an unknown version": lambda row, rng: row.update(schema_version="2.0"),
    "a reward beyond float32": lambda row, rng: row.update(rewards={"team": -1e39}),
    "a negative cost": lambda row, rng: row.update(costs={"tokens": -1}),
    "an agent twice": lambda row, rng: row.update(agents=[{"id": "a"}, {"id": "a"}]),
    "an unknown parent": lambda row, rng: row.update(agents=[{"id": "a0", "parent": "nowhere"}]),
    "a cycle of parents": lambda row, rng: row.update(agents=[{"id": "x", "parent": "y"}, {"id": "y", "parent": "x"}]),
    "a spawn too late": lambda row, rng: row["events"].append(
        {"id": "late", "type": "spawn", "agent": "boss", "to": row["events"][0]["agent"]}
    ),
    "too many events": lambda row, rng: row["events"].extend(
        {"id": f"more{i}", "type": "message", "agent": "a0"} for i in range(30)
    ),
    "too many edges": lambda row, rng: [_edge(row, src="e0", dst=row["events"][-1]["id"]) for _ in range(40)] and None,
    "an extension's key that is another's": lambda row, rng: _event(row, rng).update(value="a text"),
    "a type that is none": lambda row, rng: _event(row, rng).update(type="dance"),
}
LIMITS = Limits(events=30, edges=40)


def lines(seed: int, traces: int = 24) -> list[bytes]:
    rng = np.random.default_rng(seed)
    rows = [random_trace(rng, f"t{seed}-{i}") for i in range(traces)]
    for row in rows:
        if rng.random() < 0.15:
            list(FAULTS.values())[rng.integers(len(FAULTS))](row, rng)
    return [json.dumps(row).encode() for row in rows]


def one_by_one(*arguments: Any) -> tuple[Any, np.ndarray]:
    """In place of `columns`: no trace is plain, so each takes the slower way."""
    part, plain = columns(*arguments)
    return part, np.zeros_like(plain)


def everything(traces: Traces) -> dict[str, Any]:
    return (
        {name: np.asarray(array).tolist() for name, array in vars(traces.graph).items() if name != "time"}
        | {"time": np.nan_to_num(np.asarray(traces.graph.time), nan=-1).tolist()}
        | {"reward": np.nan_to_num(traces.reward, nan=-1).tolist()}
        | {name: (e.array.tobytes(), e.array.dtype) for name, e in traces.evidence.items()}
        | {f"table {name}": getattr(traces, name) for name in ("events", "agents", "traces")}
        | {"problems": traces.problems}
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled
def test_many_traces_at_once_are_read_as_one_by_one(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines(seed)))
    at_once = everything(read(path, limits=LIMITS))
    monkeypatch.setattr(native_batches, "columns", one_by_one)
    assert everything(read(path, limits=LIMITS)) == at_once


@pytest.mark.parametrize("fault", sorted(FAULTS))
@pytest.mark.sampled
def test_a_fault_takes_no_neighbour_with_it(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    good = [random_trace(rng, f"good{i}") | {"agents": []} for i in range(6)]
    bad = random_trace(rng, "bad") | {"schema_version": "1.0", "agents": []}
    FAULTS[fault](bad, rng)
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(json.dumps(row).encode() for row in [*good[:3], bad, *good[3:]]))
    traces = read(path, limits=LIMITS)
    assert [name for name in traces.traces["trace"].to_pylist() if name != "bad"] == [f"good{i}" for i in range(6)]
    monkeypatch.setattr(native_batches, "columns", one_by_one)
    assert everything(read(path, limits=LIMITS)) == everything(traces)


def test_plain_traces_are_not_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the slower way was taken")

    rng = np.random.default_rng(1)
    plain = {"id": "e", "type": "message", "agent": "a"}
    rows = [
        {"trace_id": f"t{i}", "task_id": "q", "events": [plain | {"value": float(rng.random())}]} for i in range(50)
    ]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(json.dumps(row).encode() for row in rows))
    monkeypatch.setattr(native_batches, "from_wire", never)
    assert read(path).sizes.traces == 50


def test_parts_are_cut_where_a_trace_is_refused(tmp_path: Path) -> None:
    """Two traces of one id are left out of the middle of a part; ids of the rest stay dense."""
    rng = np.random.default_rng(2)
    rows = [random_trace(rng, name) | {"agents": []} for name in ("a", "b", "c", "b", "d")]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(json.dumps(row).encode() for row in rows))
    items = list(native.read([Source(str(path), path)]))
    traces = assemble(items)
    assert traces.traces["trace"].to_pylist() == ["a", "c", "d"]
    assert [(p.kind, p.line) for p in traces.problems] == [("duplicate-trace", 4), ("duplicate-trace", 2)]
    path.write_bytes(b"\n".join(json.dumps(rows[i]).encode() for i in (0, 2, 4)))
    alone = everything(read(path))
    cut = everything(traces)
    for table in ("table events", "table traces"):
        alone[table], cut[table] = (found[table].drop_columns(["line", "offset"]) for found in (alone, cut))
    assert cut | {"problems": ()} == alone


@pytest.mark.slow
def test_small_files_are_read_together_as_each_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    contents = [json.dumps(random_trace(rng, f"t{i}") | {"agents": []}) for i in range(30)]
    contents[7], contents[8], contents[20] = "{broken", f"\n{contents[8]}\n{contents[7]}\n", f"[{contents[20]}, null]"
    sources = []
    for i, content in enumerate(contents):
        (tmp_path / f"{i:02}.jsonl").write_text(content)
        sources.append(Source(f"file {i}", tmp_path / f"{i:02}.jsonl"))
    found = list(native.read(sources))
    assert sum(not isinstance(item, Problem) for item in found) < 10
    alone = [item for source in sources for item in native.read([source])]
    together = assemble(found)
    assert everything(together) == everything(assemble(alone))
    assert [p.file for p in together.problems if p.is_failure] == ["file 7", "file 20"]
    assert together.events["file"].to_pylist()[-1] == "file 29"


def test_nothing_is_left_of_a_file_of_faults(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"trace_id": "t", "task_id": "q", "events": []}\n' * 3)
    with pytest.raises(NothingReadError) as error:
        read(path, limits=DEFAULT)
    kinds = [dataclasses.astuple(problem)[0] for problem in error.value.problems]
    assert kinds == ["empty-trace"] * 3
    assert all(isinstance(problem, Problem) for problem in error.value.problems)
