"""Outcomes that people gave to some traces, more often to failed ones: what a failure rate of these says of all."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.doctor.selected_outcomes import corrected_failures, selected_outcomes
from credit.page.findings import Findings
from credit.page.overview import overview
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord
from graphs.writers.native import write


def thumbs(rng: np.random.Generator, traces: int, given: tuple[float, float], *, judged: bool = True) -> Traces:
    """A third of the traces fail; thumbs are given to this part of failed and of succeeded ones."""
    records = []
    for i in range(traces):
        good = rng.random() > 1 / 3
        rewards = {"judge": float(rng.random() < (0.9 if good else 0.3))} if judged else {}
        rewards |= {"thumb": float(good)} if rng.random() < given[good] else {}
        record = TraceRecord(f"t{i}", f"q{i}", "x", instances={"a": Agent()}, rewards=rewards)
        for place in range(3 if good else 6):
            record.event(f"e{place}", EventType.MESSAGE, "a", action=True)
        records.append(record)
    return assemble(records, reward="thumb")


def test_feedback_of_some_is_told_to_be_of_these(tmp_path: Path) -> None:
    """ "70 of 121 failed" was the rate, of traces of which a judge passed 54 %, and 74 % of the others."""
    traces = thumbs(np.random.default_rng(0), 400, (0.7, 0.3))
    judge, known = traces.evidence["rewards.judge"].array[:400] > 0, np.isfinite(np.asarray(traces.reward)[:400])
    counts = [int((judge & of).sum()) for of in (known, ~known)]
    told = " ".join(lines := selected_outcomes(traces))
    assert told.startswith("They differ from those without one beyond chance: judge passes")
    for some, of in zip(counts, (known, ~known), strict=True):
        assert f"{some} of {of.sum()} ({100 * some / of.sum():.0f} %)" in told
    assert "; events " in told and "If thumb was given by chance among runs that judge judges alike, 39 % (95 " in told
    assert "given for how a run went" not in told  # of 9 logs in which people read verdicts it was below all truths
    write(traces, log := tmp_path / "log.jsonl")
    said = CliRunner().invoke(cli, ["summary", str(log), "--reward-channel", "thumb"], catch_exceptions=False).stdout
    assert "\n  ".join(["\nTraces with an outcome:", *lines]) in said
    read = credit.read(log, reward="thumb")
    assert told in [one["told"] for one in overview(Findings.of(read, {}))["findings"]]


def test_without_a_verdict_what_else_differs_is_told() -> None:
    told = " ".join(selected_outcomes(thumbs(np.random.default_rng(0), 300, (0.7, 0.3), judged=False)))
    assert told.startswith("They differ from those without one beyond chance: events 4.") and "of all" not in told


def test_the_rate_stands_with_what_it_assumes_whichever_reward_is_the_outcome(tmp_path: Path) -> None:
    """Of one log 19 % failed by people's verdicts and 24 % by the judge's: each assumed another choice of runs."""
    traces = thumbs(np.random.default_rng(0), 400, (0.7, 0.3))
    write(traces, log := tmp_path / "log.jsonl")
    found = []
    for channel in ("thumb", "judge"):
        call = ["summary", str(log), "--reward-channel", channel]
        said = CliRunner().invoke(cli, call, catch_exceptions=False).stdout
        found.append(
            said.lower()
            .partition("if thumb was given by chance among runs that judge judges alike, ")[2]
            .partition("\n")[0]
        )
    assert found[0] == found[1] and found[0].startswith("39 % (95 % interval ")


def test_beside_a_corrected_rate_stands_no_other_rate_of_failures() -> None:
    """ "Corrected by these, 28 % failed", then "18 % of all 240 failed", as the judge would say; 31 % had."""
    traces, _ = labelled(np.random.default_rng(4), 0.9, chosen=False, check=True, reward="judge", of_failed=0.5)
    (differ,), told = selected_outcomes(traces), " ".join(corrected_failures(traces))
    assert differ.startswith("They differ from those without one beyond chance: check passes ")
    assert re.search(r"Corrected by these, .*% interval .* failed", told)


def test_the_numbers_that_are_shown_are_those_that_were_tested() -> None:
    """ "They differ beyond chance: events 19.5 and 19.2": within tasks, which the test compares, it was 1.1 more."""
    records = []
    for i in range(160):  # of long tasks few are rated
        task = i // 4
        rated = i % 4 < (1 if task % 2 else 3)
        record = TraceRecord(
            f"t{i}", f"q{task}", "x", instances={"a": Agent()}, rewards={"thumb": 1.0} if rated else {}
        )
        for place in range(3 + 2 * (task % 2) + rated):
            record.event(f"e{place}", EventType.MESSAGE, "a", action=True)
        records.append(record)
    told = selected_outcomes(assemble(records, reward="thumb"))[0]
    assert told == "They differ from those without one beyond chance: events 5 and 4 within tasks."


@pytest.mark.parametrize("draws", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_outcomes_that_were_given_at_random_differ_in_nothing(draws: int) -> None:
    rng = np.random.default_rng(1)
    found = sum(selected_outcomes(thumbs(rng, 120, (0.4, 0.4))) != [] for _ in range(draws))
    assert found <= draws * 0.05 + 2 * (draws * 0.05 * 0.95) ** 0.5


def labelled(
    rng: np.random.Generator, cover: float, *, chosen: bool, check: bool, reward: str, of_failed: float = 1.0
) -> tuple[Traces, float]:
    """300 traces, of which a quarter fail; a judge of this part of them, of fewer `of_failed`, 9 of 10 times right; a
    check that is right on a half, or none; and labels of 48, of as many that the judge rejects as passes where they are
    `chosen` by it."""
    good, has = rng.random(300) < 0.75, rng.random(300) < cover
    has &= good | (np.arange(300) % 100 < 100 * of_failed)
    passes, checked = good ^ (rng.random(300) < 0.1), check & (rng.random(300) < 0.5)
    order = rng.permutation(300)
    kinds = [order[(has & (passes == verdict))[order]][:24] for verdict in (False, True)] if chosen else [order[:48]]
    seen = np.isin(np.arange(300), np.concatenate(kinds))
    records = []
    for i in range(300):
        said = {"judge": (has[i], passes[i]), "check": (checked[i], good[i]), "human": (seen[i], good[i])}
        rewards = {name: float(yes) for name, (some, yes) in said.items() if some}
        people = {"human by people": 1.0} if seen[i] else {}
        record = TraceRecord(f"t{i}", f"q{i}", "x", instances={"a": Agent()}, rewards=rewards, metrics=people)
        record.event("e", EventType.MESSAGE, "a", action=True)
        records.append(record)
    return assemble(records, reward=reward), 1 - float(good.mean())


@pytest.mark.parametrize("draws", [8, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize(("check", "reward"), [(True, "check"), (True, "judge"), (False, "judge"), (False, "human")])
def test_the_corrected_rate_holds_the_truth_whatever_part_the_judge_judged(
    check: bool, reward: str, chosen: bool, draws: int
) -> None:
    """ "41 % of all 240 failed", of 27 %: a judge on 85 % of traces had chosen whom people looked at, unseen."""
    rng, held, error = np.random.default_rng(5), list[bool](), list[float]()
    for cover in (0.4, 0.6, 0.85, 0.95, 1) * draws:
        traces, truth = labelled(rng, cover, chosen=chosen, check=check, reward=reward)
        told = " ".join([*corrected_failures(traces), *selected_outcomes(traces)])
        found = re.search(r"(\d+) % \(95 % interval (\d+) to (\d+) %\) of (all|\d+ that)", told)
        assert found is not None
        held.append(int(found[2]) - 0.5 <= 100 * truth <= int(found[3]) + 0.5)
        error.append(int(found[1]) - 100 * truth)
    assert np.mean(held) >= 0.95 - 2 * (0.05 * 0.95 / len(held)) ** 0.5
    assert abs(np.mean(error)) <= 2


def test_rates_of_sides_are_weighted_by_the_verdict_that_chose(tmp_path: Path) -> None:
    rng, held = np.random.default_rng(6), list[bool]()
    for _ in range(10):
        traces, _ = labelled(rng, 0.85, chosen=True, check=True, reward="check")
        told = " ".join(corrected_failures(traces, side=np.arange(300) % 2, heads=("old", "new")))
        assert "if human was given by chance among runs that judge judges alike, " in told
        rates = re.findall(r"(?:old|new) \d+ % \(95 % interval (\d+) to (\d+) %\)", told)
        held += [int(low) <= 25 <= int(high) for low, high in rates]
    assert len(held) == 20 and np.mean(held) >= 0.85
