"""Turns that a trace skips, unlike others: a lost row, told alike of tables, native logs and rows of a trainer."""

import csv
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.bias_in_log import on_log
from credit.integrations import RowAdvantages
from graphs.traces.turn_gaps import turn_gaps

Drawn = list[tuple[int, int, int]]
"""The trace, agent and turn of each row."""


def _along(step: Callable[[np.random.Generator], int], start: Callable[[np.random.Generator], int]) -> Any:
    """Turns numbered along each trace, over all its agents."""

    def draw(rng: np.random.Generator, traces: int) -> Drawn:
        rows = []
        for trace in range(traces):
            turn = start(rng)
            for _ in range(rng.integers(1, 9)):
                rows.append((trace, int(rng.integers(3)), turn))
                turn += step(rng)
        return rows

    return draw


def _rounds(*acts: float) -> Any:
    """Rounds, in each of which an agent acts by its own chance."""

    def draw(rng: np.random.Generator, traces: int) -> Drawn:
        return [
            (trace, agent, turn)
            for trace in range(traces)
            for turn in range(rng.integers(1, 9))
            for agent, chance in enumerate(acts)
            if rng.random() < chance
        ]

    return draw


def _over_the_batch(rng: np.random.Generator, traces: int) -> Drawn:
    """Turns numbered over a batch whose traces ran side by side."""
    trace = rng.permutation(np.repeat(np.arange(traces), 6))
    return sorted((int(of), int(rng.integers(3)), turn) for turn, of in enumerate(trace))


def _within_agents(rng: np.random.Generator, traces: int) -> Drawn:
    rows = []
    for trace in range(traces):
        turns = [0, 0, 0]
        for agent in rng.integers(3, size=int(rng.integers(1, 9))).tolist():
            rows.append((trace, agent, turns[agent]))
            turns[agent] += 1
    return rows


_STEADY = _along(lambda rng: 1, lambda rng: 0)
_HONEST = {
    "along": _STEADY,
    "from 1": _along(lambda rng: 1, lambda rng: 1),
    "from anywhere": _along(lambda rng: 1, lambda rng: int(rng.integers(50))),
    "users between": _along(lambda rng: 2, lambda rng: 0),
    "tools between": _along(lambda rng: int(rng.integers(1, 3)), lambda rng: 0),
    "over the batch": _over_the_batch,
    "within agents": _within_agents,
    "all in each round": _rounds(1.0, 1.0, 1.0),
    "one in each round": _rounds(1.0, 0.5, 0.3),
    "often out": _rounds(0.5, 0.5, 0.5),
    "seldom out": _rounds(0.9, 0.9),
}


def _gaps(rows: Drawn) -> int:
    return len(turn_gaps(*np.array(rows, np.int64).reshape(-1, 3).T)[0])


@pytest.mark.parametrize("kind", _HONEST)
def test_honest_logs_of_any_numbering_have_no_gap(kind: str) -> None:
    said = sum(_gaps(_HONEST[kind](np.random.default_rng([seed, 7]), 4 + 3 * (seed % 20))) > 0 for seed in range(100))
    assert said <= 4  # some had an empty round by chance


@pytest.mark.parametrize("kind", ["along", "from 1", "all in each round", "one in each round"])
def test_a_lost_turn_is_a_gap_where_it_is_not_the_last(kind: str) -> None:
    said, tried = 0, 0
    for seed in range(50):
        rng = np.random.default_rng([seed, 8])
        rows = _HONEST[kind](rng, 12)
        trace = int(rng.integers(12))
        turns = sorted({turn for of, _, turn in rows if of == trace})
        if len(turns) < 2:
            continue
        lost, tried = int(rng.choice(turns[:-1])), tried + 1
        said += _gaps([row for row in rows if (row[0], row[2]) != (trace, lost)]) == 1
    assert said == tried >= 40


def _columns(lost: tuple[int, int] | None) -> dict[str, list[Any]]:
    """Three traces of two agents, four turns each, numbered along it; one of them without its turn."""
    rows = [(trace, turn) for trace in range(3) for turn in range(4) if (trace, turn) != lost]
    return {
        "group": ["q"] * len(rows),
        "trace": [f"t{trace}" for trace, _ in rows],
        "agent": ["planner" if turn % 2 == 0 else "worker" for _, turn in rows],
        "turn": [turn for _, turn in rows],
        "reward": [float(trace > 0) for trace, _ in rows],
        "event_reward": [0.1 * (1 + trace * turn) for trace, turn in rows],
    }


def _native(columns: dict[str, list[Any]], path: Path) -> Path:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = []
    for name in dict.fromkeys(columns["trace"]):
        of = [row for row in rows if row["trace"] == name]
        events = [
            {"id": str(i), "t": i, "type": "orchestrator_decision", "agent": row["agent"], "turn": row["turn"]}
            for i, row in enumerate(of)
        ]
        trace = {"trace_id": name, "task_id": "q", "events": events, "rewards": {"team": of[0]["reward"]}}
        lines.append(json.dumps({**trace, "told_order": True}))
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("lost", "said"), [((1, 2), "3 behind 1"), ((1, 0), "1 at the start"), ((1, 3), ""), (None, "")]
)
def test_tables_native_logs_and_rows_tell_alike(tmp_path: Path, lost: tuple[int, int] | None, said: str) -> None:
    columns = _columns(lost)
    table = tmp_path / "log.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    first = columns["trace"].index("t1") + (2 if lost == (1, 2) else 0)
    for path in (table, _native(columns, tmp_path / "log.jsonl")):
        traces = credit.read(path)
        notes = [note for note in traces.problems if note.kind == "turn-gap"]
        assert [(note.trace, note.value.partition(",")[0]) for note in notes] == [("t1", said)] * bool(said)
        assert path is not table or [note.line for note in notes] == [first + 2] * bool(said)
        assert not any(note.is_failure for note in notes)
        assert on_log(traces, "turn_baseline").unbiased is (None if said else True)
        assert on_log(traces, "rloo").unbiased is True  # it reads no turn
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            credit.run(traces, "turn_baseline")
        assert [said in str(warning.message) for warning in caught] == [True] * bool(said)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, _, rows = credit.from_columns(**columns)
    assert [f"turn of row {first} is {said}" in str(warning.message) for warning in caught] == [True] * bool(said)
    assert bool(rows.names.untold) is bool(said)
    for strict in ("warn", True):
        live = RowAdvantages("turn_baseline", rows=16, strict=strict)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = live(**columns)
        assert [said in str(warning.message) for warning in caught] == [True] * bool(said)
        assert ("credit/condition/unbiased" in result.metrics) is not bool(said)


def test_a_gap_is_named_by_the_row_that_was_passed() -> None:
    """With `order=` it was a place among sorted rows, with `where` one among the rows that count."""
    columns = _columns((1, 2))
    at = np.random.default_rng(4).permutation(len(columns["turn"])).tolist()
    passed = {name: [*column[:1], *(column[row] for row in at)] for name, column in columns.items()}
    row = next(i for i, key in enumerate(zip(passed["trace"], passed["turn"], strict=True)) if key == ("t1", 3))
    live = RowAdvantages("turn_baseline")
    with pytest.warns(UserWarning, match=f"turn of row {row} is 3 behind 1"):
        live(**passed, order=passed["turn"], where=np.arange(len(at) + 1) > 0)
