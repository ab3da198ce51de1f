"""Success of tasks in which an agent acted on one side alone, and of the rest: a mean over all tasks may hide both.

Whether an agent acts may depend on how its run goes, as of one that is called when others fail. So of each run the
other runs of its task and side say whether the agent acts there: tasks chosen by the run itself would have one side at
its worst and differ from the other, whatever the sides do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from credit.metrics.trace_metrics import success_of_traces
from credit.reports.beyond_chance import beyond_chance
from credit.reports.taking_part import taking_part
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import ToolCalls
from credit.sides.chosen_sides import Sides
from credit.sides.side_words import first_to_second
from graphs.task_means import fact_of, holm, task_mean
from graphs.text import counted, printable
from graphs.traces.batch import Traces

__all__ = ["SomeTasks", "TeamChange", "team_changes", "teams_by_system", "told_team_changes"]

MOST = 2
"""Agents that are named."""
SETTLED = 0.7
"""Part of the pairs of runs of a task, on the mean over pairs, from which the task and the side settle who acts. Where
coins do, it is 0.56 with two runs of each side and less with more; there the test had 5 to 9 % of false findings."""


@dataclasses.dataclass(frozen=True)
class SomeTasks:
    """The outcome of some tasks on two sides.

    Attributes:
      tasks: how many.
      first, second: means over their pairs of runs of both sides, a task counting by how many of its pairs are meant.
      low, high: the 95 % interval of the difference; NaN without one.
      p: of the test that it is 0; NaN without one.
    """

    tasks: int
    first: float
    second: float
    low: float
    high: float
    p: float

    @property
    def stands_out(self) -> bool:
        """Whether they differ beyond chance."""
        return beyond_chance(self.p, self.low, self.high)

    def told(self) -> str:
        """Both means, and what the test says."""
        few, interval = math.isnan(self.p), f" ({self.low:+z.3g} to {self.high:+z.3g})"
        chance = "too few differ to tell" if few else "beyond chance" if self.stands_out else "within chance"
        return f"{first_to_second(self.first, self.second)}, {chance}{'' if math.isnan(self.low) else interval}"


@dataclasses.dataclass(frozen=True)
class TeamChange:
    """An agent that acts in runs of some tasks on one side alone.

    Attributes:
      agent: its name.
      stopped: whether that is the first side.
      changed: the tasks of which it acts in more than half of the runs of that side, and in fewer of the other one's.
        Its p is corrected by Holm's method for all agents.
      rest: the other tasks that have two runs or more of each side.
      single: how many more tasks have outcomes on both sides, but of one run of a side.
    """

    agent: str
    stopped: bool
    changed: SomeTasks
    rest: SomeTasks
    single: int

    @property
    def stands_out(self) -> bool:
        """Whether the outcome of these tasks differs beyond chance, and otherwise than that of the rest."""
        here, rest = self.changed, self.rest.second - self.rest.first
        low, high = (here.second - here.first,) * 2 if math.isnan(here.low) else (here.low, here.high)
        return here.stands_out and not low <= rest <= high


def team_changes(traces: Traces, value: np.ndarray, side: np.ndarray, calls: ToolCalls) -> list[TeamChange]:
    """The agents that act on one side alone in some tasks and not in others, those that differ most clearly first.

    Let A of a run of the first side say whether the agent acts in more than half of the other runs of its task and
    side, and B of one of the second side whether it acts in fewer, each ½ where it is half. A task adds the mean of
    A B (y' − y) over its pairs of runs with outcomes y and y', which is 0 on the mean where sides are alike, whatever
    makes the agent act in a run. Of 300 pairs of sides of 40, 80 and 150 tasks of 2 to 4 runs each 0 to 4 % were told
    where it was called more often in failing runs, on both sides or one, or moved in tasks without any harm.

    Args:
      traces: what was read.
      value: the outcome of each trace; NaN where it has none: float [traces].
      side: 0 or 1 of each trace, -1 for none: int [traces].
      calls: of these traces.

    Reference: Hoeffding 1948, A class of statistics with asymptotically normal distribution; Holm 1979.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 5 + ["r"] * 4, trace=["a", "b", "b", "c", "d", *"efgh"], agent=["x", "x", "y", *"xzxxxx"],
      ...     reward=[1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
      >>> team_changes(rows.traces, np.ones(8), np.array([0, 0, 1, 1, 0, 0, 1, 1]), ToolCalls(rows.traces))
      []
    """
    names, acts, tells = taking_part(traces, calls)
    task, known, found = task_ids(traces), np.isfinite(value) & (side >= 0), []
    reach = float(np.ptp(value[known])) if known.any() else 0.0
    for agent, name in enumerate(names):
        rows = np.flatnonzero(known & tells[agent])
        pairs = _Pairs.of(value[rows], side[rows], task[rows], acts[agent, rows])
        for stopped in (True, False):
            weight, first, second = pairs.where_acting_changed(stopped)
            if (weight**2).sum() >= SETTLED * weight.sum() > 0 and (weight < 0.5).any():
                changed, apart = _tasks(weight, first, second, int((weight >= 0.5).sum()), reach)
                others = len(weight) - changed.tasks
                rest, _ = _tasks(1 - weight, pairs.first - first, pairs.second - second, others, reach)
                found.append((apart, TeamChange(name, stopped, changed, rest, pairs.single)))
    facts = [fact_of(apart) if np.ptp(apart) > 0 else b"" for apart, _ in found]
    corrected = holm([one.changed.p for _, one in found], facts)
    changes = [
        dataclasses.replace(one, changed=dataclasses.replace(one.changed, p=p))
        for (_, one), p in zip(found, corrected, strict=True)
    ]
    return sorted(changes, key=lambda one: (1.0 if math.isnan(one.changed.p) else one.changed.p, not one.stopped))


@dataclasses.dataclass(frozen=True)
class _Pairs:
    """Of each task with two runs or more of each side, means over its pairs of runs: float [tasks] each.

    Attributes:
      first, second: of the outcomes of both sides.
      part: of whether the agent acts in more than half, and in fewer, of the other runs of a run of each side.
      gain: the same times the outcome of that run.
      single: how many more tasks have runs of both sides.
    """

    first: np.ndarray
    second: np.ndarray
    part: np.ndarray
    gain: np.ndarray
    single: int

    @classmethod
    def of(cls, value: np.ndarray, side: np.ndarray, task: np.ndarray, acts: np.ndarray) -> _Pairs:
        _, task = np.unique(task, return_inverse=True)
        cell, cells = 2 * task + side, 2 * (task.max(initial=-1) + 1)
        size, acting = np.bincount(cell, minlength=cells), np.bincount(cell, acts, cells)
        both, shared = ((size.reshape(-1, 2) > least).all(axis=1) for least in (1, 0))
        mostly = (1 + np.sign(2 * (acting[cell] - acts) - (size[cell] - 1))) / 2

        def mean(each: np.ndarray) -> np.ndarray:
            means: np.ndarray = (np.bincount(cell, each, cells) / np.maximum(size, 1)).reshape(-1, 2)[both]
            return means

        outcomes = mean(value)
        part, gain = (np.stack([mean(way * of) for way in (mostly, 1 - mostly)]) for of in (np.ones(len(value)), value))
        return cls(outcomes[:, 0], outcomes[:, 1], part, gain, int((shared & ~both).sum()))

    def where_acting_changed(self, stopped: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The part of pairs of which it acts on the first side alone, or on the second, and the outcomes of these."""
        one, other = (0, 1) if stopped else (1, 0)
        before, after = self.part[one, :, 0], self.part[other, :, 1]
        return before * after, self.gain[one, :, 0] * after, before * self.gain[other, :, 1]


def _tasks(
    weight: np.ndarray, first: np.ndarray, second: np.ndarray, tasks: int, reach: float
) -> tuple[SomeTasks, np.ndarray]:
    """So many tasks, those that have a weight, and the differences of all, which are no larger than `reach`."""
    some, whole = weight > 0, float(weight.sum())
    _, *ends, p = task_mean((second - first)[some] * some.sum() / whole)
    low, high = np.clip(ends, -reach, reach).tolist()
    return SomeTasks(tasks, float(first.sum()) / whole, float(second.sum()) / whole, low, high, p), second - first


def told_team_changes(
    changes: Sequence[TeamChange], heads: tuple[str, str], judged: str, *, certain: bool = False
) -> str:
    """Sentences on those that stand out, and on the first one where none does; of two with the same numbers on one.

    Args:
      changes: of `team_changes`.
      heads: what the sides are called.
      judged: what the outcome is called.
      certain: whether only those that stand out are told.
    """
    told: dict[tuple[float, float], str] = {}
    for i, one in enumerate(changes):
        if one.stands_out or not (i or certain):
            here, there = heads if one.stopped else heads[::-1]
            tasks = f"{counted(one.changed.tasks, 'task')} in which {printable(one.agent, 60)} acts in {here}"
            words = f"{judged} of {tasks} and mostly not in {there}: {one.changed.told()}"
            words += f"; of {counted(one.rest.tasks, 'other task')}: {one.rest.told()}"
            has = f"{counted(one.single, 'more task')} {'has' if one.single == 1 else 'have'}"
            words += f"; {has} one run of a side" if one.single else ""
            told.setdefault((one.changed.first, one.changed.second), words)
    return "; ".join([*told.values()][:MOST])


def teams_by_system(traces: Traces, success_at: float | None, calls: ToolCalls) -> str:
    """`told_team_changes` beyond chance, of the systems that the log states where these are two; "" without.

    Args:
      traces: what was read.
      success_at: the least outcome of a success; None where outcomes are 0 or 1.
      calls: of these traces.
    """
    if len({name or "" for name in traces.traces["system"].to_pylist()} - {""}) != 2:
        return ""
    _, sides = Sides.joined("system", traces)
    if sides is None:
        return ""
    changes = team_changes(traces, success_of_traces(traces, success_at).value, sides.side, calls)
    return told_team_changes(changes, sides.heads, "success", certain=True)
