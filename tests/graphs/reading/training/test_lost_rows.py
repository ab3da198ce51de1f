"""Rows of one agent that are lost: told where others of its name are hardly ever out, not where it was not asked."""

import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.bias_in_log import on_log
from credit.integrations import RowAdvantages
from graphs.traces.lost_rows import lost_rows

Drawn = list[tuple[float, ...]]
"""The trace, agent, name, turn and place of each row."""
Acts = Callable[[np.random.Generator, int, int], int]
"""How often an agent acts in a round, of so many."""
Places = Callable[[np.random.Generator, int], float]


def _asked(chance: float) -> Acts:
    return lambda rng, turn, turns: int(rng.random() < chance)


_ALWAYS: Acts = lambda rng, turn, turns: 1  # noqa: E731
_TEAMS: dict[str, tuple[int, int, list[Acts]]] = {
    "steady": (3, 3, [_ALWAYS] * 3),
    "uneven": (1, 6, [_ALWAYS] * 3),
    "every second": (1, 6, [_ALWAYS, lambda rng, turn, turns: int(turn % 2 == 0)]),
    "every other": (1, 6, [_ALWAYS, lambda rng, turn, turns: turn % 2]),
    "asked by half": (1, 6, [_ALWAYS, _asked(0.5), _ALWAYS]),
    "mostly asked": (3, 3, [_ALWAYS, _asked(0.9), _ALWAYS]),
    "nearly always asked": (3, 3, [_ALWAYS, _asked(0.95), _ALWAYS]),
    "opens and closes": (1, 6, [lambda rng, turn, turns: int(turn in (0, turns - 1)), _ALWAYS]),
    "out of the last": (1, 6, [_ALWAYS, lambda rng, turn, turns: int(turn < turns - 1)]),
    "joins late": (2, 5, [_ALWAYS, lambda rng, turn, turns: int(turn > 0)]),
    "several calls": (2, 5, [_ALWAYS, lambda rng, turn, turns: int(rng.integers(1, 4))]),
    "seldom again": (2, 5, [_ALWAYS, lambda rng, turn, turns: 1 + int(rng.random() < 0.02)]),
}


def _counted(missed: float) -> Places:
    """Events are counted, of which some are no rows."""
    at = 0

    def place(rng: np.random.Generator, row: int) -> float:
        nonlocal at
        at = 0 if row == 0 else at + 1 + int(rng.random() < missed)
        return at

    return place


def _clock(whole: bool) -> Places:
    at = 0.0

    def place(rng: np.random.Generator, row: int) -> float:
        nonlocal at
        at = 0.0 if row == 0 else at + rng.exponential(1.5)
        return np.floor(at) if whole else at

    return place


_PLACES: dict[str, Callable[[], Places]] = {
    "rows": lambda: _counted(0.0),
    "none": lambda: lambda rng, row: np.nan,
    "few other events": lambda: _counted(0.01),
    "other events": lambda: _counted(0.3),
    "times": lambda: _clock(False),
    "seconds": lambda: _clock(True),
}


def _rows(rng: np.random.Generator, kind: str, places: str, traces: int) -> Drawn:
    least, most, team = _TEAMS[kind]
    rows: Drawn = []
    for trace in range(traces):
        place, row, turns = _PLACES[places](), 0, int(rng.integers(least, most + 1))
        for turn in range(turns):
            for name, acts in enumerate(team):
                for _ in range(acts(rng, turn, turns)):
                    rows.append((trace, 9 * trace + name, name, turn, place(rng, row)))
                    row += 1
    return rows


def _found(rows: Drawn) -> list[int]:
    """The traces."""
    columns = np.array(rows).T
    ids = columns[:4].astype(np.int64)
    return [int(ids[0][gap.row]) for gap in lost_rows(*ids, place=columns[4])]


@pytest.mark.parametrize("places", _PLACES)
@pytest.mark.parametrize("kind", _TEAMS)
def test_agents_that_are_out_by_design_have_lost_nothing(kind: str, places: str) -> None:
    drawn = [_rows(np.random.default_rng([seed, 3]), kind, places, (8, 32, 128)[seed % 3]) for seed in range(12)]
    assert sum(map(bool, map(_found, drawn))) <= 1  # an event that is no row may stand where an agent was not asked


@pytest.mark.parametrize("places", ["rows", "none", "other events", "times"])
@pytest.mark.parametrize("kind", ["steady", "uneven", "every second", "asked by half", "joins late"])
def test_a_lost_turn_of_one_agent_is_told(kind: str, places: str) -> None:
    said, tried = 0, 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 4])
        rows = _rows(rng, kind, places, 128)
        later = {(agent, turn) for _, agent, _, turn, _ in rows}
        regular = [
            i
            for i, (_, agent, name, turn, _) in enumerate(rows)
            if (agent, turn + 1) in later and not (kind == "asked by half" and name == 1)
        ]
        lost = int(rng.choice(regular))
        said += _found(rows[:lost] + rows[lost + 1 :]) == [rows[lost][0]]
        tried += 1
    assert said >= tried * (1 / 3 if kind == "joins late" else 3 / 4)
    assert places != "rows" or said == tried


def test_a_late_return_is_no_gap() -> None:
    rows = [(trace, trace, 0, turn, np.nan) for trace in range(400) for turn in range(2)]
    rows += [(trace, 400 + trace, 1, turn, np.nan) for trace in range(400) for turn in range(6)]
    assert _found(sorted([*rows, (7, 7, 0, 5, np.nan)])) == []


def _team(lost: str) -> dict[str, list[Any]]:
    """Eight tasks of eight traces in three rounds, whose coder calls a tool; one without some rows of round 1."""
    columns: dict[str, list[Any]] = {name: [] for name in ("group", "trace", "agent", "turn", "order", "reward")}
    for trace in range(64):
        names = ["planner", "coder", "tool", "tester"] * 3
        for order, name in enumerate(names):
            if trace != 13 or order // 4 != 1 or name not in lost:
                cells = f"q{trace // 8}", f"t{trace}", name, order // 4, order, float(trace * trace % 5 > 1)
                for column, cell in zip(columns.values(), cells, strict=True):
                    column.append(cell)
    return columns


@pytest.mark.parametrize("lost", ["planner", "tester", "coder tool", ""])
def test_rows_and_tables_tell_of_a_lost_turn_of_one_agent(tmp_path: Path, lost: str) -> None:
    columns = _team(lost)
    said = "2 behind 0 of its agent, unlike in other traces"
    for given in (columns, {name: column for name, column in columns.items() if name != "order"}):
        live = RowAdvantages("turn_baseline", strict="warn")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = live(**given, instance=columns["agent"])
        assert [said in str(warning.message) for warning in caught] == [True] * bool(lost)
        told = not lost and "order" in given  # which says who of a round was first
        assert ("credit/condition/unbiased" in result.metrics) is told
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            _, _, rows = credit.from_columns(**given, instance=columns["agent"])
        assert (said in rows.names.untold) is bool(lost)
    table = tmp_path / "log.csv"
    with table.open("w", newline="") as file:
        named = ["time" if name == "order" else name for name in columns]
        csv.writer(file).writerows([named, *zip(*columns.values(), strict=True)])
    traces = credit.read(table)
    notes = [note for note in traces.problems if note.kind == "turn-gap"]
    assert [(note.trace, note.value) for note in notes] == [("t13", said)] * bool(lost)
    assert on_log(traces, "turn_baseline").unbiased is (None if lost else True)


def test_an_empty_place_is_told_without_turns() -> None:
    columns = _team("tester")
    del columns["turn"]
    value = np.linspace(0, 1, len(columns["order"]))
    live = RowAdvantages("gae", strict="warn")
    with pytest.warns(UserWarning, match=r"order of row \d+ is 8 behind 6, unlike in other traces: a row may be lost"):
        live(**columns, evidence={"value": value})


@pytest.mark.parametrize("lost", ["tester", ""])
def test_a_lost_row_is_told_where_rewards_of_rows_are_added_up(lost: str) -> None:
    """`rloo` reads no order, and its return lacked what the lost row had earned: `unbiased` was 1."""
    columns = _team(lost)
    earned = np.random.default_rng(0).normal(size=len(columns["order"]))
    live = RowAdvantages("rloo", strict="warn")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        live(**columns, instance=columns["agent"])
        assert not caught  # the outcome alone is whole
        result = live(**columns, instance=columns["agent"], event_reward=earned)
    said = "adds up what the rows of a trace earned, and turn of row"
    assert [said in str(warning.message) for warning in caught] == [True] * bool(lost)
    assert result.metrics.get("credit/condition/unbiased") == (None if lost else 1.0)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_an_empty_place_tells_of_a_lost_call_of_an_agent_with_another_in_the_round(tmp_path: Path, lost: int) -> None:
    """All places but it had a row, and nothing was said: the agent had another call in the round."""
    rows = _rows(np.random.default_rng(7), "several calls", "rows", 200)
    again = [i for i in range(1, len(rows) - 1) if rows[i - 1][1:4] == rows[i][1:4] and rows[i + 1][0] == rows[i][0]]
    gone = set(again[:: len(again) // 2][:lost])
    kept = [row for i, row in enumerate(rows) if i not in gone]
    assert _found(kept) == [rows[i][0] for i in sorted(gone)]
    table = tmp_path / "log.csv"
    cells = [(int(t) // 8, f"t{int(t)}", int(name), int(turn), int(at), t % 3) for t, _, name, turn, at in kept]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([["group", "trace", "agent", "turn", "time", "reward"], *cells])
    traces = credit.read(table)
    notes = [note for note in traces.problems if note.kind == "turn-gap"]
    assert on_log(traces, "turn_baseline").unbiased is (None if lost else True)
    assert [(note.field, note.count) for note in notes] == [("time", lost)] * bool(lost)
