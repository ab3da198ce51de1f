"""How often `credit doctor` finds a planted fault, and how often it finds one that is not there."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from credit.bench.planted_faults import FAULTS, OF_REWARDS, Records, drawn_team, healthy_team, plant
from credit.doctor.team_checks import BEHAVIOUR, CHECKS, LEVEL, Finding, examine
from credit.methods.running import run
from graphs.errors import CreditError
from graphs.traces.assembling import assemble

__all__ = ["Trial", "doctor_trials"]


@dataclasses.dataclass(frozen=True)
class Trial:
    """One check over all worlds.

    Attributes:
      check: a name of `credit.doctor.team_checks.CHECKS`.
      planted: worlds with its fault.
      found: how many of them it found.
      answered: worlds without a fault in which it had an answer.
      false_alarms: how many of these it called faulty.
      above: the part of their tasks above its limit; NaN for checks that are not of tasks.
    """

    check: str
    planted: int
    found: int
    answered: int
    false_alarms: int
    above: float


def doctor_trials(
    seed: int,
    worlds: int = 20,
    *,
    agents: tuple[int, int] = (3, 16),
    events: tuple[int, int] = (60, 200),
    tasks: tuple[int, int] = (8, 16),
    level: float = LEVEL,
) -> Iterator[tuple[int, list[Trial]]]:
    """Draw worlds, plant each fault, and count; yields the number of worlds so far with the counts.

    A world is two logs: one of a team with what it does, of four traces a task, and one of a small team of two models
    with three times as many tasks, for faults of outcomes, verdicts and groups. Each is examined without a fault, and
    with each fault that its form can have.

    Args:
      seed: of the draws, by `numpy.random.default_rng`.
      worlds: how many.
      agents, events, tasks: least and greatest number of agents, of events of a trace, and of tasks.
      level: as in `examine`.

    Raises:
      CreditError: a range is empty, or begins below 3 agents, 20 events or 2 tasks.
    """
    for name, (low, high), least in (("agents", agents, 3), ("events", events, 20), ("tasks", tasks, 2)):
        if not least <= low <= high:
            raise CreditError(f"{name} are {low} to {high}; expected a range from {least} on")
    rng = np.random.default_rng(seed)
    counts = {check: {"planted": 0, "found": 0, "answered": 0, "false_alarms": 0} for check in CHECKS}
    above = {check: np.zeros(2, np.int64) for check in CHECKS}
    for number in range(worlds):
        many = int(rng.integers(tasks[0], tasks[1] + 1))
        team, small = drawn_team(rng, agents, events), drawn_team(rng, (3, 3), (20, 20))
        for records, faults in (
            (healthy_team(rng, team, many), FAULTS.keys() - OF_REWARDS),
            (healthy_team(rng, small, 3 * many, models=2), OF_REWARDS),
        ):
            for finding in _examined(records, level):
                counts[finding.check]["answered"] += finding.found is not None
                counts[finding.check]["false_alarms"] += finding.found is True
                above[finding.check] += finding.shown, finding.tasks
            for fault in sorted(faults):
                planted = plant(fault, rng, records)
                if planted is not None:
                    finding = next(candidate for candidate in _examined(planted, level) if candidate.check == fault)
                    counts[fault]["planted"] += 1
                    counts[fault]["found"] += finding.found is True
        yield number + 1, [Trial(check, **counts[check], above=_part(check, above[check])) for check in CHECKS]


def _examined(records: Records, level: float) -> list[Finding]:
    traces = assemble(records)
    return examine(traces, run(traces, "rloo"), level=level)


def _part(check: str, counts: np.ndarray) -> float:
    limited = check in BEHAVIOUR and counts[1] > 0
    return float(counts[0] / counts[1]) if limited else float("nan")
