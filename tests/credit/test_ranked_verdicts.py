"""What a verdict of many values is worth: how often it ranks a succeeded trace above a failed one, by side."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import ndtr, ndtri

from credit.cli import cli
from credit.doctor.ranked_verdicts import ranked_verdicts
from credit.doctor.ranking_interval import ranking_interval
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
    assert (one.within, bare.within) == ("kind of task", "") and one.low < one.chance < one.high
    assert "of the same kind of task in" in one.told() and "of any task in" in bare.told()


@pytest.mark.parametrize("channel", ["people", "judge"])
@pytest.mark.parametrize(("apart", "worth"), [(0.0, "says little: it"), (2.5, "agrees: it")])
def test_a_judge_of_runs_of_two_versions_is_ranked_beside_people(
    tmp_path: Path, apart: float, worth: str, channel: str
) -> None:
    """Each task was run once, by one of two versions: neither the head nor `doctor` said what the judge is worth."""
    rng, lines = np.random.default_rng(6), []
    for i in range(200):
        good = rng.random() < 0.8
        rewards = {"judge": round(float(ndtr(rng.normal(apart * good))), 3)}
        rewards |= {"people": float(good)} if i % 2 else {}
        said = {"metrics": {"people by people": 1.0}} if i % 2 else {}
        event = {"id": "e", "type": "message", "agent": "a"}
        line = {"schema_version": "1.0", "trace_id": f"t{i}", "task_id": f"q{i}", "system": f"v{1 + (i > 99)}"}
        lines.append(json.dumps(line | said | {"events": [event], "rewards": rewards}) + "\n")
    (path := tmp_path / "log.jsonl").write_text("".join(lines))
    call = [str(path), "--reward-channel", channel]
    head, doctor = (CliRunner().invoke(cli, [of, *call], catch_exceptions=False).stdout for of in ("summary", "doctor"))
    pair = "succeeded trace above a failed one" if channel == "people" else "trace that people pass above one that they"
    assert f"\nHow judge agrees with people (by people):\n  judge {worth} ranks a {pair}" in head
    assert f"judge ranks a {pair}" in doctor and "cannot tell: verdict_disagreement" not in doctor


@pytest.mark.parametrize(("apart", "found"), [(2.0, False), (0.0, True)])
def test_doctor_answers_for_a_judge_of_many_values(apart: float, found: bool) -> None:
    """It said "cannot tell: verdicts and outcomes have not two values each", and no more."""
    rng = np.random.default_rng(3)
    good, task = np.arange(320) % 2 > 0, np.arange(320) // 8
    finding = {each.check: each for each in examine(log(good, rng.normal(apart * good), task))}["verdict_disagreement"]
    assert finding.found is found and len(finding.traces) == finding.shown
    assert finding.statistic == pytest.approx(2 * (1 - ndtr(apart / 2**0.5)), abs=0.15)


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


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("draws", [40, 1500])
def test_the_interval_of_pairs_holds_the_chance(draws: int) -> None:
    """Of runs of any task, of which a task has one or three that are more or less alike, and kinds differ in level."""
    rng, rights = np.random.default_rng(21), list[bool]()
    sizes, worlds = ((10, 30), (16, 78), (8, 150), (60, 60)), ((1.0, 1, 1), (2.0, 1, 1), (0.5, 1, 1), (1.0, 3, 4))
    for (bad, good), (spread, runs, kinds), chance in itertools.product(sizes, worlds, (0.5, 0.7, 0.9, 0.97)):
        for _ in range(max(draws // 20, 1)):
            tasks = (bad + good) // runs
            task, part = np.repeat(np.arange(tasks), runs), good / (bad + good)
            passed = np.arange(len(task)) >= bad if runs == 1 else (
                rng.random(len(task)) < rng.beta(3 * part, 3 - 3 * part, tasks)[task])  # fmt: skip
            z = np.sqrt(0.6) * rng.normal(size=tasks)[task] + np.sqrt(0.4) * rng.normal(size=len(task))
            number = np.where(passed, ndtri(chance) * (1 + spread**2) ** 0.5 + z, spread * z)
            kind = rng.integers(0, kinds, tasks)[task]
            _, low, high = ranking_interval(number + 2 * kind, passed, kind, task)
            rights += [low <= chance <= high] * bool(np.isfinite(low))
    assert len(rights) > draws and 0.94 <= np.mean(rights) <= 0.985, np.mean(rights)
