"""Damage anywhere in a log: what is read is as without it, the rest is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.traces.batch import Traces

from .native_faults import FAULTS, Document, trace


def hundred(skip: int | None = None) -> list[str]:
    """A hundred different traces as lines, without number `skip`."""
    lines = []
    for i in range(100):
        document = trace(f"t{i}", reward=float(i % 7))
        document["task_id"] = f"task{i // 4}"
        document["events"] = document["events"][: 3 + i % 3]
        document["edges"] = document["edges"][: 1 + i % 2]
        document["events"][0]["value"] = i / 8
        document["events"][0]["context"] = f"context{i % 5}"
        if i != skip:
            lines.append(json.dumps(document))
    return lines


def assert_same(a: Traces, b: Traces) -> None:
    for field, array in vars(a.graph).items():
        np.testing.assert_array_equal(array, getattr(b.graph, field), err_msg=field)
    np.testing.assert_array_equal(a.reward, b.reward)
    assert a.evidence.keys() == b.evidence.keys()
    for name in a.evidence:
        np.testing.assert_array_equal(a.evidence[name].array, b.evidence[name].array, err_msg=name)
        np.testing.assert_array_equal(a.evidence[name].mask, b.evidence[name].mask, err_msg=name)
    assert a.agents.equals(b.agents)
    assert a.events.drop_columns(["line", "offset", "file"]).equals(b.events.drop_columns(["line", "offset", "file"]))


@pytest.mark.parametrize("name", ["truncated in the middle", "reward NaN", "cycle", "type unknown", "parent cycle"])
def test_one_bad_trace_in_a_hundred_leaves_exactly_the_ninety_nine(name: str, tmp_path: Path) -> None:
    kind, _, make = FAULTS[name]
    lines = hundred()
    lines[42] = make()
    (tmp_path / "with.jsonl").write_text("\n".join(lines))
    (tmp_path / "without.jsonl").write_text("\n".join(hundred(skip=42)))
    traces = read(tmp_path / "with.jsonl")
    assert [(p.kind, p.line) for p in traces.problems if p.is_failure] == [(kind, 43)]
    assert traces.sizes.traces == 99
    assert_same(traces, read(tmp_path / "without.jsonl"))


def test_one_bad_file_in_a_folder_leaves_the_others(tmp_path: Path) -> None:
    for i, line in enumerate(hundred()[:10]):
        (tmp_path / f"{i:03d}.json").write_text(line)
    (tmp_path / "004.json").write_text('{"trace_id": "t4", "task_id": "x", "events": [')
    traces = read(tmp_path)
    assert [(p.kind, p.file) for p in traces.problems] == [("bad-json", str(tmp_path / "004.json"))]
    assert traces.traces["trace"].to_pylist() == [f"t{i}" for i in range(10) if i != 4]


@pytest.mark.slow
def test_a_long_chain_of_spawns_is_read_in_linear_time(tmp_path: Path) -> None:
    """Deep chains and many second spawns: quadratic checks would take minutes."""
    n = 20_000
    events: list[Document] = []
    for i in range(n):
        events.append({"id": f"s{i}", "type": "spawn", "agent": f"a{i}", "to": f"a{i + 1}"})
    events += [{"id": f"r{i}", "type": "spawn", "agent": "a0", "to": f"a{i + 1}"} for i in range(n)]
    agents = [{"id": f"a{i}", "parent": f"a{max(0, i - 1)}"} for i in range(n, -1, -1)]
    document = trace() | {"events": events, "edges": [], "agents": agents}
    file = tmp_path / "deep.json"
    file.write_text(json.dumps(document))
    traces = read(file)
    assert traces.sizes.agents == n + 1
    assert traces.problems == ()


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("seed", [11, 12])
def test_random_damage_never_escapes_as_another_error(tmp_path: Path, seed: int) -> None:
    """Bytes replaced, cut out and doubled: what is read is read, the rest is named."""
    rng = np.random.default_rng(seed)
    content = "\n".join(hundred()[:4]).encode()
    file = tmp_path / "x.jsonl"
    kinds: set[str] = set()
    for _ in range(200):
        damaged = bytearray(content)
        for _ in range(rng.integers(1, 6)):
            at, length = rng.integers(len(damaged)), rng.integers(1, 30)
            way = rng.integers(4)
            if way == 0:
                damaged[at] = rng.integers(256)
            elif way == 1:
                del damaged[at : at + length]
            elif way == 2:
                damaged[at:at] = damaged[at : at + length]
            else:
                damaged[at : at + 1] = rng.choice([b'"', b"{", b"]", b"null", b"1e999", b"-", b"\\", b"\n", b"true"])
        file.write_bytes(damaged)
        try:
            kinds |= {p.kind for p in read(file).problems}
        except NothingReadError as error:
            kinds |= {p.kind for p in error.problems}
    assert kinds >= {"bad-json", "bad-type", "missing-field"}


@pytest.mark.slow
def test_every_scalar_of_a_trace_replaced_by_every_kind_of_value(tmp_path: Path) -> None:
    """No place of a trace takes a wrong type badly: it reads, or has a problem of its own line."""
    document = trace("x") | {"agents": [{"id": "lead", "parent": "lead"}], "evidence": {"greedy_reward": 1}}
    text = json.dumps(document)
    values = ["null", "true", "-1", "1e999", "1e39", '""', '"e0"', "[]", "{}", "[[]]", '{"id": 1}', "9" * 400]
    scalars = [m.span() for m in re.finditer(r'(?<=: )("[^"]*"|-?[\d.]+)', text)]
    lines = [text[:a] + value + text[b:] for a, b in scalars for value in values]
    lines = [line.replace('"trace_id": "x"', f'"trace_id": "x{i}"') for i, line in enumerate(lines)]
    file = tmp_path / "x.jsonl"
    file.write_text("\n".join(lines))
    traces = read(file)
    read_lines = traces.traces["line"].to_pylist()
    refused = [p.line for p in traces.problems if p.is_failure]
    assert sorted(read_lines + refused) == list(range(1, len(lines) + 1))
    assert all(p.field and p.expected and p.file == str(file) for p in traces.problems)
    assert len(traces.problems) > len(read_lines) > 0
