"""A tool failed in 38 of 72 runs of one kind of task and 10 of 213 others, and no line named the kind."""

from __future__ import annotations

import numpy as np

from credit.reports.leading_causes import leading_causes
from credit.reports.mostly_of import MostlyOf, mostly_of
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

KINDS = ("migration", "report", "feature", "bugfix")


def runs(random: np.random.Generator, rates: dict[str, float], *, tasks: int = 48, judged: bool = True) -> Traces:
    """Six runs of each task. A tool fails at the rate of their kind, and a run fails with it mostly."""
    records = []
    for number in range(6 * tasks):
        task = number % tasks
        kind = KINDS[task % len(KINDS)]
        one = TraceRecord(f"t{number}", f"q{task}", "log.jsonl", task_kind=kind, instances={"coder": Agent("coder")})
        fails = random.random() < rates.get(kind, 0.05)
        one.event("act", EventType.MESSAGE, "coder", action=True)
        one.event("call", EventType.TOOL_CALL, "coder", action=False, tool="lookup", status="error" if fails else "ok")
        if judged:
            one.rewards["team"] = float(random.random() < (0.1 if fails else 0.7))
        records.append(one)
    return assemble(records)


def test_a_cause_within_tasks_names_the_kind_that_mostly_has_it() -> None:
    (cause,) = leading_causes(runs(np.random.default_rng(1), {"migration": 0.5}))
    most = cause.mostly_of
    assert most is not None and most.kind == "migration" and most.of == 72 and most.of_others == 216
    assert cause.told().endswith(
        f", mostly of kind migration ({most.having} of its 72 traces, {most.others} of 216 others)"
    )


def test_a_cause_of_runs_without_outcomes_names_it_too() -> None:
    (cause,) = leading_causes(runs(np.random.default_rng(2), {"migration": 0.5}, judged=False))
    assert cause.mostly_of is not None and "mostly of kind migration" in cause.told()


def test_a_cause_of_all_kinds_names_none() -> None:
    (cause,) = leading_causes(runs(np.random.default_rng(3), dict.fromkeys(KINDS, 0.3)))
    assert cause.mostly_of is None and "mostly of kind" not in cause.told()


def test_chance_names_a_kind_in_few_logs_also_where_tasks_differ() -> None:
    random, found = np.random.default_rng(4), list[MostlyOf | None]()
    traces = runs(random, {}, tasks=12)
    task = np.arange(72) % 12
    for _ in range(400):
        having = random.random(72) < random.beta(0.3, 1.5, 12)[task]
        found.append(mostly_of(traces, having, np.ones(72, bool), 1))
    assert sum(one is not None for one in found) <= 0.05 * len(found)
