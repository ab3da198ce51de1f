"""Kinds of tasks, as the log or a table of groups states them, and how many traces of each failed."""

from __future__ import annotations

import collections

import numpy as np

from credit.reports.judged_traces import JudgedTraces
from credit.reports.tasks import task_ids
from graphs.text import percent, printable
from graphs.traces.batch import Traces

__all__ = ["MOST_KINDS", "failed_by_kind", "task_kinds"]

MOST_KINDS = 8
"""Kinds that are shown, those of most tasks."""
OTHERS, SEVERAL = "other kinds", "several kinds"


def task_kinds(traces: Traces) -> tuple[list[str], np.ndarray]:
    """The kinds of tasks, those of most tasks first, and that of each trace, -1 for none: int [traces].

    A kind is one of a task: a trace without one has that of its task. Tasks of which traces state several are a kind of
    their own. No kind is told where all tasks are of one.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> task_kinds(rows.traces)
      ([], array([-1, -1]))
    """
    stated: dict[int, set[str]] = {}
    tasks = task_ids(traces).tolist()
    for task, kind in zip(tasks, traces.traces["task_kind"].to_pylist(), strict=True):
        stated.setdefault(task, set()).update([kind] if kind else [])
    of_task = {task: SEVERAL if len(kinds) > 1 else next(iter(kinds)) for task, kinds in stated.items() if kinds}
    count = collections.Counter(of_task.values())
    names = sorted(count, key=lambda kind: (-count[kind], kind))
    if len(names) == 1 and len(of_task) == len(stated):
        names, of_task = [], {}
    place = {kind: i for i, kind in enumerate(names)}
    if len(names) > MOST_KINDS + 1:
        place = {kind: min(i, MOST_KINDS) for kind, i in place.items()}
        names = [*names[:MOST_KINDS], OTHERS]
    return names, np.array([place.get(of_task.get(task, ""), -1) for task in tasks], int)


def failed_by_kind(traces: Traces, judged: JudgedTraces) -> str:
    """How many traces of each kind of task failed, of those with an outcome; "" without kinds.

    Args:
      traces: what was read.
      judged: which of these failed.
    """
    names, kind = task_kinds(traces)
    told = []
    for i, name in [*enumerate(names), *[(-1, "no kind stated")] * bool(names)]:
        of_kind = judged.failed[judged.rows][kind[judged.rows] == i]
        if len(of_kind):
            told.append(f"{printable(name, 60)} {of_kind.sum()} of {len(of_kind)} ({percent(of_kind.mean())})")
    return f"{judged.kinds[0].capitalize()} by kind of task: {', '.join(told)}." if told else ""
