"""Outcomes of tasks in which an agent mostly acts on one side alone, and of the rest: a mean of all may hide both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from credit.metrics.trace_metrics import success_of_traces
from credit.reports.taking_part import taking_part
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import ToolCalls
from credit.sides.chosen_sides import Sides
from credit.sides.side_words import first_to_second
from graphs.text import counted, printable
from graphs.traces.batch import Traces

__all__ = ["SomeTasks", "TeamChange", "team_changes", "teams_by_system", "told_team_changes"]

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
    """

    agent: str
    stopped: bool
    changed: SomeTasks
    rest: SomeTasks


def team_changes(traces: Traces, value: np.ndarray, side: np.ndarray, calls: ToolCalls) -> list[TeamChange]:
    """The agents that mostly act on one side alone in some tasks whose outcomes changed otherwise than those of others.

    At most `MOST`, the largest difference first, and one of those that do so in mostly the same tasks. None is tested:
    an agent may be called where runs fail, and its tasks then differ whatever the sides do.

    Args:
      traces: what was read.
      value: the outcome of each trace; NaN where it has none: float [traces].
      side: 0 or 1 of each trace, -1 for none: int [traces].
      calls: of these traces.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 5 + ["r"] * 4, trace=["a", "b", "b", "c", "d", *"efgh"], agent=["x", "x", "y", *"xzxxxx"],
      ...     reward=[1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
      >>> team_changes(rows.traces, np.ones(8), np.array([0, 0, 1, 1, 0, 0, 1, 1]), ToolCalls(rows.traces))
      []
    """
    names, acts, tells = taking_part(traces, calls)
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
    both, least, found = np.isfinite(outcome).all(axis=0), APART * np.ptp(value[known]), []
    for agent, name in enumerate(names):
        part = means(acts[agent], known & tells[agent])
        for stopped, (here, there) in ((True, part), (False, part[::-1])):
            tasks = both & (here > 0.5) & (there < 0.5)
            if min(tasks.sum(), (both & ~tasks).sum()) >= LEAST:
                one = TeamChange(name, stopped, some(tasks), some(both & ~tasks))
                apart = abs(one.changed.second - one.changed.first - one.rest.second + one.rest.first)
                if 0 < least <= apart:
                    found.append((apart, tasks, one))
    kept: list[tuple[float, np.ndarray, TeamChange]] = []
    for row in sorted(found, key=lambda row: (-row[0], not row[2].stopped)):
        if not any(2 * (row[1] & tasks).sum() > (row[1] | tasks).sum() for _, tasks, _ in kept):
            kept.append(row)
    return [one for *_, one in kept[:MOST]]


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
    why = "not tested: whether a run reaches an agent may follow from how it goes"
    return "; ".join([*told, why]) if told else ""


def teams_by_system(traces: Traces, success_at: float | None, calls: ToolCalls) -> str:
    """`told_team_changes` of the systems that the log states where these are two; "" without.

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
    return told_team_changes(changes, sides.heads, "success")
