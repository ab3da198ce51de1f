"""Reading runs of Who&When: who spoke to whom, who is blamed, and that nothing can be learned from failures alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError, Problem
from graphs.event_graph import EdgeType, EventType
from graphs.formats.who_and_when import read as read_runs
from graphs.formats.who_and_when import sniff
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord, check

CHAT = [("Ann", "plan"), ("Bob", "code"), ("Computer_terminal", "out"), ("Ann", "so"), ("Ann", "done")]
LED = [
    "human",
    "Orchestrator (thought)",
    "Orchestrator (-> Web)",
    "Web",
    "Orchestrator (thought)",
    "Orchestrator (-> Web)",
    "Web",
    "Orchestrator (-> Files)",
    "Orchestrator (termination condition)",
]


def chat(**more: Any) -> dict[str, Any]:
    history = [{"content": text, "role": "user", "name": name} for name, text in CHAT]
    run = {"is_correct": False, "question": "?", "question_ID": "q", "history": history}
    return run | {"mistake_agent": "Bob", "mistake_step": "1"} | more


def led(**more: Any) -> dict[str, Any]:
    history = [{"content": "x", "role": role} for role in LED]
    run = {"history": history, "question": "?", "is_corrected": False, "question_ID": "q"}
    return run | {"mistake_agent": "web", "mistake_step": "6"} | more


def only(folder: Path, run: Any) -> TraceRecord:
    path = folder / "1.json"
    path.write_text(json.dumps(run))
    (record,) = read_runs([Source(str(path), path)])
    assert isinstance(record, TraceRecord), record
    return check(record)


def shape(record: TraceRecord) -> list[tuple[str, str, bool]]:
    rows = zip(record.types, record.agents, record.actions, strict=True)
    return [(EventType(kind).name.lower(), agent, action) for kind, agent, action in rows]


def edges(record: TraceRecord) -> set[tuple[int, int, str]]:
    found = zip(record.senders, record.receivers, record.edge_types, strict=True)
    return {(s, r, EdgeType(kind).name.lower()) for s, r, kind in found}


def test_a_group_chat(tmp_path: Path) -> None:
    record = only(tmp_path, chat())
    assert shape(record) == [
        ("message", "Ann", True),
        ("tool_call", "Bob", True),
        ("tool_result", "Bob", False),
        ("message", "Ann", True),
        ("message", "Ann", True),
    ]
    assert edges(record) == {
        (0, 1, "message"),
        (1, 2, "return"),
        (2, 3, "causal"),
        (0, 3, "temporal"),
        (3, 4, "temporal"),
    }
    assert record.trace_id == f"{tmp_path.name}/1" and record.group_id == "q"
    assert record.rewards == {"team": 0.0}
    assert record.columns["blamed"] == [0, 1, 0, 0, 0]
    assert record.columns["blamed_agent"] == [0, 1, 1, 0, 0]


def test_an_orchestrated_team(tmp_path: Path) -> None:
    record = only(tmp_path, led())
    assert shape(record) == [
        ("human_intervention", "Orchestrator", False),
        ("orchestrator_decision", "Orchestrator", True),
        ("spawn", "Orchestrator", True),
        ("message", "Web", True),
        ("orchestrator_decision", "Orchestrator", True),
        ("message", "Orchestrator", True),
        ("message", "Web", True),
        ("spawn", "Orchestrator", True),
        ("stop", "Orchestrator", True),
    ]
    assert edges(record) == {
        (0, 1, "causal"),
        (1, 2, "temporal"),
        (2, 3, "spawn"),
        (3, 4, "message"),
        (2, 4, "temporal"),
        (4, 5, "temporal"),
        (5, 6, "message"),
        (3, 6, "temporal"),
        (6, 7, "message"),
        (5, 7, "temporal"),
        (7, 8, "temporal"),
    }
    assert {name: agent.parent for name, agent in record.instances.items()} == {
        "Orchestrator": "",
        "Web": "Orchestrator",
        "Files": "Orchestrator",
    }
    assert record.columns["blamed_agent"] == [0, 0, 0, 1, 0, 0, 1, 0, 0]  # spelt in another case


def test_runs_without_labels_read(tmp_path: Path) -> None:
    run = {key: value for key, value in chat().items() if not key.startswith("mistake")}
    record = only(tmp_path, run)
    assert "blamed" not in record.columns and "blamed_agent" not in record.columns
    assert only(tmp_path, led(is_corrected=True)).rewards == {"team": 1.0}


BAD = {
    "step": (chat(mistake_step="5"), "bad-value", "mistake_step"),
    "negative": (chat(mistake_step=-1), "bad-value", "mistake_step"),
    "word": (chat(mistake_step="two"), "bad-value", "mistake_step"),
    "digits": (chat(mistake_step="²"), "bad-value", "mistake_step"),
    "agent": (chat(mistake_agent=3), "bad-type", "mistake_agent"),
    "history": (chat(history={}), "bad-type", "history"),
    "message": (chat(history=[3]), "bad-type", "history[0]"),
    "role": (chat(history=[{"role": ""}]), "empty-id", "history[0].role"),
    "question": (chat(question_ID=None), "bad-type", "question_ID"),
    "solved": (chat(is_correct="no"), "bad-type", "is_correct"),
    "nothing": (chat(history=[]), "bad-value", "mistake_step"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_run_is_named(tmp_path: Path, name: str) -> None:
    run, kind, field = BAD[name]
    (tmp_path / "1.json").write_text(json.dumps(run))
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path)
    (problem,) = caught.value.problems
    assert isinstance(problem, Problem) and (problem.kind, problem.field) == (kind, field)


def test_a_long_role_is_read_in_time_linear_in_it(tmp_path: Path) -> None:
    role = "a (-> " * 300_000 + "!"
    assert only(tmp_path, led(history=[{"role": role}], mistake_step=0)).agents == [role]


def test_a_history_longer_than_the_head_is_known_by_its_roles() -> None:
    text = json.dumps(led(history=[{"content": "x" * 70_000, "role": "human"}]))
    assert not sniff(text[: 1 << 16].encode())  # not even one role is there to see
    text = json.dumps(led(history=[{"role": role, "content": "x" * 30_000} for role in LED]))
    assert sniff(text[: 1 << 16].encode())


@pytest.mark.slow
def test_the_real_runs_teach_a_group_relative_method_nothing(shared_data: Path) -> None:
    """Every run failed: within a group all rewards are equal, and most groups have one run only."""
    from estimators import rloo

    traces = read(shared_data / "who_and_when")
    graph, n = traces.graph, traces.sizes.traces
    assert n == 67 and traces.problems == ()
    assert set(traces.reward[:n].tolist()) == {0.0}
    groups = np.bincount(graph.group_ids[:n])
    assert (len(groups), int(np.sum(groups == 1))) == (48, 29)
    assert not np.any(np.asarray(rloo(graph, traces.reward).advantage))

    blamed, by_agent = traces.evidence["blamed"], traces.evidence["blamed_agent"]
    steps = np.flatnonzero(blamed.array == 1)
    assert graph.trace_ids[steps].tolist() == list(range(n))  # one step each
    elsewhere = [traces.traces["trace"][int(t)].as_py() for t in graph.trace_ids[steps[by_agent.array[steps] != 1]]]
    assert [name.split("/")[-1] for name in elsewhere] == ["22"]  # 14 and 59 blame what the terminal answered
