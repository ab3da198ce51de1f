"""What a verdict of many values is worth: how often it ranks a succeeded trace above a failed one, by side."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import ndtr

from credit.cli import cli
from credit.doctor.ranked_verdicts import ranked_verdicts
from credit.doctor.team_checks import examine
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord


def log(
    good: np.ndarray, number: np.ndarray, task: np.ndarray, systems: np.ndarray | None = None, kinds: int = 0
) -> Traces:
    """A trace for each outcome, with what a judge gave it."""
    records = []
    for i in range(len(good)):
        rewards = {"team": float(good[i]), "judge": float(number[i])}
        record = TraceRecord(f"t{i}", f"q{task[i]}", "x", instances={"a": Agent()}, rewards=rewards)
        record.task_kind = f"k{i % kinds}" if kinds else ""
        record.system = "" if systems is None else str(systems[i])
        record.event("e", EventType.MESSAGE, "a", action=True)
        records.append(record)
    return assemble(records)


def test_a_judge_is_ranked_by_hand_and_only_beside_two_outcomes() -> None:
    good, task = np.arange(80) % 2 > 0, np.arange(80) // 4
    number = np.where(good, 0.8, np.where(task % 2 > 0, 0.9, 0.1))  # wrong in every second task
    (one,) = ranked_verdicts(log(good, number, task))
    assert one.chance == 0.5 and one.low < 0.5 < one.high and one.tasks == 20
    assert (one.failed, len(one.misled), one.found) == (40, 20, True)
    assert one.told().startswith(
        "judge ranks a succeeded trace above a failed one of the same task in 50 % of pairs (95"
    )
    assert ranked_verdicts(log(good, good * 1.0, task)) == []  # two values: `verdict_errors`
    assert ranked_verdicts(log(number, number + good, task)) == []
    few = ranked_verdicts(log(good[:8], number[:8], task[:8]))[0]
    assert few.found is None and "these traces are too few to be sure" in few.told()


def test_a_judge_of_tasks_of_stated_kinds_that_are_run_once_has_an_interval() -> None:
    good, number = np.arange(80) % 2 > 0, np.random.default_rng(2).normal(size=80)
    (one,), (bare,) = (ranked_verdicts(log(good, number, np.arange(80), kinds=kinds)) for kinds in (3, 0))
    assert not one.within and one.told() == bare.told() and one.low < one.chance < one.high


@pytest.mark.parametrize(("apart", "found"), [(2.0, False), (0.0, True)])
def test_doctor_answers_for_a_judge_of_many_values(apart: float, found: bool) -> None:
    """It said "cannot tell: verdicts and outcomes have not two values each", and no more."""
    rng = np.random.default_rng(3)
    good, task = np.arange(320) % 2 > 0, np.arange(320) // 8
    finding = {each.check: each for each in examine(log(good, rng.normal(apart * good), task))}["verdict_disagreement"]
    assert finding.found is found and finding.statistic is not None and len(finding.traces) == finding.shown
    assert finding.mean == pytest.approx(2 * (1 - ndtr(apart / 2**0.5)), abs=0.15)


def test_that_a_judge_became_kinder_is_told_by_side(tmp_path: Path) -> None:
    rng, lines = np.random.default_rng(4), []
    for i in range(240):
        late, good = i % 2, i // 2 % 2
        event = {"id": "e", "type": "message", "agent": "a"}
        line = {"schema_version": "1.0", "trace_id": f"t{i}", "task_id": f"q{i // 8}", "system": f"r{late + 1}"}
        rewards = {"team": float(good), "judge": round(0.5 + 0.2 * good + 0.15 * late + rng.normal(0, 0.1), 2)}
        lines.append(json.dumps(line | {"events": [event], "rewards": rewards}) + "\n")
    (path := tmp_path / "log.jsonl").write_text("".join(lines))

    def said(*call: str) -> str:
        return " ".join(CliRunner().invoke(cli, [call[0], str(path), *call[1:]], catch_exceptions=False).stdout.split())

    kinder = "it gave failed traces 0.4"
    for call in (("doctor",), ("summary",), ("metrics", "--sides", "system")):
        told = said(*call)
        assert kinder in told and ", beyond chance; succeeded ones 0." in told, (call, told)
        (one,) = json.loads(said(*call, "--json"))["ranked_verdicts"]
        assert one["found"] is False and one["of_sides"].keys() == {"r1", "r2"} and one["low"] > 0.8


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(("spread", "draws"), [(1.0, 25), (1.0, 600), (0.0, 600)])
def test_the_interval_holds_the_chance(spread: float, draws: int) -> None:
    """Over tasks of 2 to 6 runs, of which a judge knows more or less: its numbers differ by N(effect, spread)."""
    rng, rights = np.random.default_rng(17), list[bool]()
    for effect in (0.0, 0.5, 1.0):
        for _ in range(draws):
            tasks = int(np.exp(rng.uniform(np.log(15), np.log(60))))
            task = np.repeat(np.arange(tasks), rng.integers(2, 7, tasks))
            good = rng.random(len(task)) < rng.uniform(0.2, 0.8, tasks)[task]
            worth = rng.normal(effect, spread, tasks)[task]
            number = rng.normal(0, 2, tasks)[task] + rng.normal(size=len(task)) + worth * good
            for one in ranked_verdicts(log(good, number, task)):
                rights += [one.low <= ndtr(effect / (2 + spread**2) ** 0.5) <= one.high] * bool(np.isfinite(one.low))
    known_to = 2 * (0.05 * 0.95 / len(rights)) ** 0.5
    assert len(rights) > 2 * draws and 0.93 - known_to <= np.mean(rights) <= 0.97 + known_to, np.mean(rights)
