"""Outcomes of tasks in which an agent mostly acts on one side alone, and of the rest: a mean of all may hide both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from credit.reports.taking_part import taking_part
from credit.reports.tasks import task_ids
from credit.sides.side_words import first_to_second
from graphs.dealing import Dealt, dealt
from graphs.task_means import LEVEL, holm
from graphs.text import counted, printable
from graphs.traces.batch import Traces

__all__ = ["SomeTasks", "TeamChange", "team_changes", "told_team_changes"]

MOST = 2
"""Agents that are named."""
LEAST = 3
"""Tasks of either part."""
APART = 0.2
"""By how much of the range of all outcomes the changes of both parts differ."""


@dataclasses.dataclass(frozen=True)
class SomeTasks:
    """The outcome of some tasks on two sides.

    Attributes:
      tasks: how many.
      first, second: means over these tasks of both sides.
    """

    tasks: int
    first: float
    second: float

    def told(self) -> str:
        """Both means."""
        return first_to_second(self.first, self.second)


@dataclasses.dataclass(frozen=True)
class TeamChange:
    """An agent that mostly acts on one side alone in some tasks.

    Attributes:
      agent: its name.
      stopped: whether that is the first side.
      changed: the tasks of which it acts in most runs of that side, and in fewer than half of the other one's.
      rest: the other tasks with outcomes on both sides.
      p: of the test that the outcomes of these tasks changed as those of the others did, corrected for the agents that
        act less often on one side.
    """

    agent: str
    stopped: bool
    changed: SomeTasks
    rest: SomeTasks
    p: float = dataclasses.field(default=0.0, compare=False)

    @property
    def apart(self) -> float:
        """By how much more the outcome of these tasks changed than that of the others."""
        return abs(self.changed.second - self.changed.first - self.rest.second + self.rest.first)


def team_changes(traces: Traces, value: np.ndarray, side: np.ndarray) -> list[TeamChange]:
    """The agents that mostly act on one side alone in some tasks whose outcomes changed otherwise than those of others.

    At most `MOST`, the largest difference first, and one of those that do so in mostly the same tasks, beyond chance
    (`TeamChange.p`). On that side it acts less often beyond chance, too, both among runs of a task and among runs that
    end alike: an agent that acts at random in 60 % of runs mostly acts on one side in some tasks of any log, and one
    that is called where runs go well acts less often on a side that fails.
    Of 400 logs of 33 tasks, one version of which fails more often in a third, 0 to 3 % named an agent that made no run
    fail. Where it skips one in a third of the tasks, of which 0.5 or 0.7 more then fail, 70 and 92 % named that.

    Args:
      traces: what was read.
      value: the outcome of each trace; NaN where it has none: float [traces].
      side: 0 or 1 of each trace, -1 for none: int [traces].

    Reference: Fisher 1935, The Design of Experiments; Holm 1979.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 5 + ["r"] * 4, trace=["a", "b", "b", "c", "d", *"efgh"], agent=["x", "x", "y", *"xzxxxx"],
      ...     reward=[1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
      >>> team_changes(rows.traces, np.ones(8), np.array([0, 0, 1, 1, 0, 0, 1, 1]))
      []
    """
    names, acts, tells = taking_part(traces)
    _, task = np.unique(task_ids(traces), return_inverse=True)
    known = np.isfinite(value) & (side >= 0)
    if not known.any():
        return []

    def means(each: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Of each task and side; NaN without a row: float [2, tasks]."""
        size, total = np.zeros((2, 2, task.max() + 1))
        np.add.at(size, (side[rows], task[rows]), 1)
        np.add.at(total, (side[rows], task[rows]), each[rows])
        return np.where(size > 0, total / np.maximum(size, 1), np.nan)

    def some(tasks: np.ndarray) -> SomeTasks:
        return SomeTasks(int(tasks.sum()), *outcome[:, tasks].mean(axis=1).tolist())

    outcome = means(value, known)
    change, better = outcome[1] - outcome[0], value > value[known].mean()
    both = np.isfinite(change)
    rows = [known & of for of in tells]
    of_task = [_acts_less(its[of], side[of], task[of]) for its, of in zip(acts, rows, strict=True)]
    p = holm([one.p for _, one in of_task], least=[one.least for _, one in of_task])
    found: list[tuple[np.ndarray, TeamChange]] = []
    for agent in np.flatnonzero(np.array(p) < LEVEL).tolist():
        its, of = acts[agent], rows[agent]
        less, other = (_acts_less(its[of], side[of], stratum[of]) for stratum in (task, better))
        here, there = means(its, of) if less[0] > 0 else means(its, of)[::-1]
        tasks = both & (here > 0.5) & (there < 0.5)
        rest = both & ~tasks
        if min(tasks.sum(), rest.sum()) >= LEAST and less[0] * other[0] > 0 and other[1].p < LEVEL:
            alike = dealt(change[both], tasks[both], np.zeros(both.sum())).p
            found.append((tasks, TeamChange(names[agent], less[0] > 0, some(tasks), some(rest), alike)))
    corrected = holm([one.p for _, one in found])
    sure = [
        (tasks, dataclasses.replace(one, p=alike))
        for (tasks, one), alike in zip(found, corrected, strict=True)
        if alike < LEVEL
    ]
    kept: list[tuple[np.ndarray, TeamChange]] = []
    for tasks, one in sorted(sure, key=lambda row: -row[1].apart):
        again = any(2 * (of & tasks).sum() > (of | tasks).sum() for of, _ in kept)
        if one.apart >= APART * np.ptp(value[known]) and not again:
            kept.append((tasks, one))
    return [one for _, one in kept[:MOST]]


def _acts_less(acts: np.ndarray, side: np.ndarray, stratum: np.ndarray) -> tuple[float, Dealt]:
    """In how many fewer runs of the second side an agent acts than in others of their stratum, and the test of it."""
    _, of = np.unique(stratum, return_inverse=True)
    expected = (np.bincount(of, acts) / np.bincount(of))[of]
    return float((expected - acts)[side == 1].sum()), dealt(acts.astype(np.float64), side == 1, of)


def told_team_changes(changes: Sequence[TeamChange], heads: tuple[str, str], judged: str) -> str:
    """Sentences on each.

    Args:
      changes: of `team_changes`.
      heads: what the sides are called.
      judged: what the outcome is called.
    """
    told = []
    for one in changes:
        here, there = heads if one.stopped else heads[::-1]
        tasks = f"{counted(one.changed.tasks, 'task')} in which {printable(one.agent, 60)} mostly acts in {here}"
        told.append(
            f"{judged} of {tasks} and mostly not in {there}: {one.changed.told()}; "
            f"of {counted(one.rest.tasks, 'other task')}: {one.rest.told()}"
        )
    return "; ".join([*told, "beyond chance; what went wrong before may be why"]) if told else ""
