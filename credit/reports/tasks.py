"""Which task each trace is of, whatever model or system acted."""

from __future__ import annotations

import collections

import numpy as np

from graphs.traces.batch import Traces

__all__ = ["runs_without_task", "task_ids"]


def task_ids(traces: Traces) -> np.ndarray:
    """The task of each trace, as a number: int64 [traces].

    Groups are finer: traces of one task by two models are two groups. Statistics that take tasks for independent would
    count such a task twice.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "r", "q"], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.5])
      >>> task_ids(rows.traces).tolist()
      [0, 1, 0]
    """
    names = np.asarray(traces.traces["task"].to_pylist(), object).astype(str)
    return np.unique(names, return_inverse=True)[1]


def runs_without_task(traces: Traces) -> int:
    """How many runs name no task: each is one by itself, under its own id.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q", "c"], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.5])
      >>> runs_without_task(rows.traces)
      1
    """
    runs, tasks = (traces.traces[name].to_pylist() for name in ("trace", "task"))
    sizes = collections.Counter(tasks)
    return sum(run == task and sizes[task] == 1 for run, task in zip(runs, tasks, strict=True))
