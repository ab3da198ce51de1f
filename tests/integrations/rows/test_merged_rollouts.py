"""Two rollouts under one id: turns of every agent begin again, which every method is warned of; honest rows are not."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import credit
from credit.integrations import RowAdvantages
from credit.tables.merged_rollouts import merged_rollouts

Drawn = list[tuple[int, int, int]]
"""The trace, agent and turn of each row, as it stands in the batch."""


def _rounds(rng: np.random.Generator, traces: int, *, calls: int = 1) -> list[Drawn]:
    """Rounds of three agents, one trace after another, of which some are out."""
    return [
        [
            (trace, 9 * trace + name, turn)
            for turn in range(rng.integers(2, 6))
            for name in range(3)
            for _ in range(rng.integers(1, calls + 1) if name else 1)
            if name == 0 or rng.random() < 0.8
        ]
        for trace in range(traces)
    ]


def _within_agents(rng: np.random.Generator, traces: int) -> list[Drawn]:
    found = []
    for trace in range(traces):
        turns = [0, 0, 0]
        rows = []
        for name in [0, *rng.integers(3, size=int(rng.integers(3, 9))).tolist()]:
            rows.append((trace, 9 * trace + name, turns[name]))
            turns[name] += 1
        found.append(rows)
    return found


def _numbered(rng: np.random.Generator, traces: int) -> list[Drawn]:
    """Turns count the rows of a trace, whose first agent acts once."""
    return [
        [(trace, 9 * trace, 0)]
        + [(trace, 9 * trace + int(name), turn) for turn, name in enumerate(rng.integers(1, 3, rng.integers(6, 14)), 1)]
        for trace in range(traces)
    ]


def _joined(of: list[Drawn]) -> Drawn:
    return [row for rows in of for row in rows]


def _shuffled(rng: np.random.Generator, traces: int, calls: int) -> Drawn:
    rows = _joined(_rounds(rng, traces, calls=calls))
    return [rows[i] for i in rng.permutation(len(rows))]


def _two_workers(rng: np.random.Generator, traces: int) -> Drawn:
    """A worker of one name is seldom started twice, one after the other."""
    found = []
    for trace in range(traces):
        found += [(trace, 9 * trace, 0)]
        found += [(trace, 9 * trace + 1, turn) for _ in range(1 + (rng.random() < 0.1)) for turn in range(3)]
        found += [(trace, 9 * trace, 1)]
    return found


_HONEST: dict[str, Callable[[np.random.Generator, int], Drawn]] = {
    "rounds": lambda rng, n: _joined(_rounds(rng, n)),
    "several calls": lambda rng, n: _joined(_rounds(rng, n, calls=3)),
    "within agents": lambda rng, n: _joined(_within_agents(rng, n)),
    "numbered": lambda rng, n: _joined(_numbered(rng, n)),
    "by turn": lambda rng, n: sorted(_joined(_rounds(rng, n)), key=lambda row: row[2]),
    "by agent": lambda rng, n: sorted(_joined(_rounds(rng, n))),
    "backwards": lambda rng, n: _joined(_rounds(rng, n))[::-1],
    "shuffled": lambda rng, n: _shuffled(rng, n, 1),
    "shuffled calls": lambda rng, n: _shuffled(rng, n, 3),
    "two workers": _two_workers,
    "all begin again": lambda rng, n: _joined([2 * rows for rows in _rounds(rng, n)]),
}


def _found(rows: Drawn) -> list[int]:
    return [rows[row][0] for row in merged_rollouts(*np.array(rows).T).tolist()]


@pytest.mark.parametrize("kind", _HONEST)
def test_honest_rows_begin_no_trace_again(kind: str) -> None:
    for seed in range(60):
        assert not _found(_HONEST[kind](np.random.default_rng([seed, 5]), (3, 8, 32)[seed % 3])), seed


@pytest.mark.parametrize("draw", [_rounds, _within_agents, _numbered])
def test_merged_rollouts_are_found_together_or_apart(draw: Callable[..., list[Drawn]]) -> None:
    for seed in range(60):
        rng = np.random.default_rng([seed, 6])
        of = draw(rng, 12)
        one, other = rng.choice(12, 2, replace=False).tolist()
        again = [(one, agent + 9 * (one - other), turn) for _, agent, turn in of[other]]
        whole = _joined([rows for i, rows in enumerate(of) if i not in (one, other)])
        at = int(rng.integers(2)) * len(whole)
        if draw is not _numbered and min(len([row for row in of[i] if row[1] == 9 * i]) for i in (one, other)) < 2:
            continue  # its first agent acts once
        assert _found(of[one] + whole[:at] + again + whole[at:]) == [one], seed


def _columns(merged: bool) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in ("group", "trace", "agent", "turn", "reward")}
    for trace in range(16):
        for turn in range(3):
            for name in ("planner", "coder"):
                id_ = 3 if merged and trace == 4 else trace
                cells = f"q{id_ // 8}", f"t{id_}", name, turn, float(id_ % 3 > 0)
                for column, cell in zip(columns.values(), cells, strict=True):
                    column.append(cell)
    return columns


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("name", ["rloo", "turn_baseline", "dr_mas"])
def test_every_method_warns_of_two_rollouts_under_one_id(name: str, merged: bool) -> None:
    """`rloo` was silent and `unbiased` 1."""
    columns = _columns(merged)
    earned = np.random.default_rng(7).normal(size=len(columns["turn"]))  # no row equals another
    said = "1 trace in which turns begin again, unlike in others (row 24)"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = RowAdvantages(name)(**columns, event_reward=earned)
    assert [said in str(warning.message) for warning in caught] == [True] * merged
    if name == "rloo":
        assert ("credit/condition/unbiased" in result.metrics) is not merged
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        credit.from_columns(**columns, event_reward=earned)
    assert [said in str(warning.message) for warning in caught] == [True] * merged
    with warnings.catch_warnings(record=True) as caught:  # each place stands twice
        warnings.simplefilter("always")
        RowAdvantages(name)(**columns, event_reward=earned, order=columns["turn"])
    assert any(said in str(warning.message) for warning in caught) is merged
