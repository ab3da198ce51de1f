"""A few tasks of both sides, or of both outcomes, stand for no others: 4 of 130 tickets replaced 96 outcomes."""

from __future__ import annotations

import numpy as np
import pytest

from credit.reports.compared_kinds import ComparedKinds
from credit.reports.leading_causes import leading_causes
from credit.reports.outcome_differences import outcome_differences
from credit.reports.trace_numbers import numbered
from credit.sides.chosen_sides import Sides
from credit.sides.compare_sides import compare_costs
from credit.sides.side_comparison import SideComparison
from credit.sides.side_tests import compare_metric
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

FAILS = (0.15, 0.25, 0.7)
"""How often runs of each of three kinds of ticket fail."""


def run_of(
    task: str, system: str, outcome: float, *, kind: str = "", money: float = 1.0, fails: bool = False, run: int = 0
) -> TraceRecord:
    """A run of three events, of which git may fail."""
    record = TraceRecord(f"{task}.{system}.{run}", task, "log.jsonl", task_kind=kind, system=system)
    record.instances, record.rewards = {"a": Agent()}, {"team": outcome}
    record.event("plan", EventType.MESSAGE, "a", action=True, money=money)
    record.event("call", EventType.TOOL_CALL, "a", action=False, tool="git", status="error" if fails else "ok")
    record.event("end", EventType.MESSAGE, "a", action=True, money=0.0)
    return record


def tickets(random: np.random.Generator, *, worse: float = 0.0, broken: float = 0.0, shared: int = 4) -> Traces:
    """64 tickets with 1 to 3 runs before a release, and as many later ones, of which some were there before. The
    release makes more fail, and git fails in a third of runs; `broken` is what that loses."""
    records = []
    for new in (False, True):
        for number in range(64):
            name, kind = f"ENG-{number + 64 * (new and number >= shared)}", number % 5 // 2
            for run in range(random.choice([1, 2, 3], p=[0.8, 0.15, 0.05])):
                fails = random.random() < 1 / 3
                good = float(random.random() >= FAILS[kind] + worse * new + broken * fails)
                paid, of = random.lognormal(0, 0.3), f"kind {kind}"
                records.append(run_of(name, ("v1", "v2")[new], good, kind=of, money=paid, fails=fails, run=run))
    return assemble(records)


def compared(traces: Traces) -> SideComparison:
    _, sides = Sides.joined("system", traces)
    assert sides is not None
    return compare_costs(traces, sides)


def test_a_few_shared_tickets_do_not_stand_for_all_outcomes() -> None:
    """ "Success 0.625 to 0.75" was of 4 tickets, where it fell from 0.6 to 0.48; no log of 24 said that it is worse."""
    random, told = np.random.default_rng(1), 0
    for _ in range(6):
        found = compared(traces := tickets(random, worse=0.3))
        row = next(row for row in found.rows if row.metric == "success")
        assert (row.paired, row.within, row.shared, sum(row.traces)) == (False, 3, 4, traces.sizes.traces)
        assert "on tasks that both ran" not in found.failed() and row.difference < 0
        assert not any(of.paired for of in found.kinds), "1 to 0 was of the one shared ticket of a kind"
        assert found.paid_tasks == 0 and (found.paid[0].cost or 0) < (found.paid[1].cost or 0), "of a success"
        told += found.in_short()[0].startswith("v2 is worse than v1 (success 0.")
        assert "within kinds of task, as 4 tasks of both are too few" in found.in_short()[0]
        assert "4 tasks of both are too few: within a kind, those of one may be harder" in found.but()
    assert told == 6


def test_tasks_that_alone_could_tell_nothing_are_named_without_numbers() -> None:
    """ "Success: no change shown (0.333 to 0.333)" was of three tasks."""
    runs = [run_of(f"q{i // 2}", ("v1", "v2")[i % 2], outcome) for i, outcome in enumerate((1.0, 0, 0, 1, 0, 0))]
    assert compared(assemble(runs)).in_short()[0] == "Success: 3 tasks of both are too few to tell."


def test_the_head_says_what_change_would_be_shown() -> None:
    (told, *_) = compared(tickets(np.random.default_rng(6))).in_short()
    end = " within kinds of task, as 4 tasks of both are too few; a change of 0."
    assert told.startswith("Success: no change shown (0.") and end in told and told.endswith(" would be).")


def test_causes_are_sought_within_kinds_where_few_tickets_have_both_outcomes() -> None:
    """git was named in 3 of 24 logs with tickets, in 14 by their kinds alone: 9 failed and 9 succeeded runs of 96 were
    compared."""
    random, named = np.random.default_rng(2), 0
    for _ in range(6):
        found = outcome_differences(traces := tickets(random, broken=0.4))
        assert found.noun == "kind of task" and sum(found.compared) == traces.sizes.traces
        named += any(one.beyond_chance and "git" in one.words for one in leading_causes(traces))
    assert named >= 5


def test_all_tasks_are_compared_where_no_kinds_are_stated() -> None:
    rows = np.arange(60)
    side, task = (rows >= 30) * 1, np.where(rows < 33, rows, rows - 3)
    task[30:33] = [0, 1, 2]
    row = compare_metric("success", numbered((rows % 3 < 2 - side) * 1.0), side, task, None)
    assert row is not None and (row.paired, row.within, row.tasks, row.traces) == (False, 0, 57, (30, 30))
    assert row.of_all == " over all tasks, as 3 tasks of both are too few"


@pytest.mark.parametrize("kinds", [1, 3])
def test_of_sides_alike_one_of_twenty_differs_at_most_whatever_tickets_add(kinds: int) -> None:
    random, logs, found = np.random.default_rng(3), 300, 0
    for _ in range(logs):
        task = np.repeat(np.arange(80), random.integers(1, 5, 80))
        side = np.where(task < 10, random.integers(0, 2, len(task)), task % 2)
        chance = random.beta(0.7, 0.5, 80)[task]
        row = compare_metric("success", numbered((random.random(len(task)) < chance) * 1.0), side, task, task % kinds)
        assert row is not None and not row.paired
        found += row.stands_out
    assert found <= 0.05 * logs + 2 * (0.05 * 0.95 * logs) ** 0.5


def test_of_traits_of_tickets_one_of_twenty_is_told_at_most() -> None:
    """Runs of a ticket are alike: it is not as many tickets as it has runs."""
    random, logs, found = np.random.default_rng(4), 300, 0
    for _ in range(logs):
        task = np.repeat(np.arange(60), random.integers(1, 5, 60))
        failed = random.random(len(task)) < random.beta(0.3, 0.5, 60)[task]
        none, kind = np.zeros_like(task), task % 3
        kinds = ComparedKinds(
            failed, none == 0, kind, kind, none == 0, True, none, np.arange(len(task)), none, single=task
        )
        has = random.random(len(task)) < random.beta(0.3, 0.3, 60)[task]
        p = kinds.test(has * 1.0)[3]
        found += p < 0.05
    assert found <= 0.05 * logs + 2 * (0.05 * 0.95 * logs) ** 0.5
