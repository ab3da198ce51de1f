"""Which task each trace is of, whatever model or system acted, and of which runs the log does not tell it."""

from __future__ import annotations

import collections

import numpy as np

from credit.reports.of_batch import kept
from graphs.traces.batch import Traces

__all__ = ["UNTOLD", "mean_over_tasks", "runs_without_task", "task_ids", "untold_tasks"]

UNTOLD = "the run was cut short, and its task is not known"
"""Why a trace of `untold_tasks` is in no comparison of tasks."""


@kept
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


def runs_without_task(traces: Traces) -> np.ndarray:
    """Whether a run names no task: it is one by itself, under its own id; bool [traces].

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q", "c"], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.5])
      >>> runs_without_task(rows.traces).tolist()
      [False, False, True]
    """
    tasks, ids = (traces.traces[name].to_pylist() for name in ("task", "trace"))
    many = collections.Counter(tasks)
    return np.array([task == name and many[task] == 1 for task, name in zip(tasks, ids, strict=True)], bool)


def untold_tasks(traces: Traces, early: np.ndarray) -> np.ndarray:
    """Whether a run was cut short before its log told of which task it is: bool [traces].

    Such a run has its own id for a task, and no outcome, while others of its format tell their tasks.

    Args:
      traces: what was read.
      early: whether a trace ends early (`credit.reports.endings.ended_early`): bool [traces].

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "b"], trace=["a", "b"], reward=[1.0, np.nan])
      >>> untold_tasks(rows.traces, np.array([False, True])).tolist()
      [False, True]
    """
    formats, own = traces.traces["format"].to_pylist(), runs_without_task(traces)
    telling = {of for of, alone in zip(formats, own.tolist(), strict=True) if not alone}
    bare = np.isnan(np.asarray(traces.reward)[: len(own)])
    found: np.ndarray = own & bare & early & np.array([of in telling for of in formats], bool)
    return found


def mean_over_tasks(value: np.ndarray, rows: np.ndarray, task: np.ndarray, untold: np.ndarray) -> float:
    """The mean over tasks of the means over their traces; runs of `untold_tasks` may be of any of these.

    So these weigh as they would if they were spread over the tasks as the other traces are.

    Args:
      value: of each trace: float [traces].
      rows: the traces that count: bool [traces].
      task: of each trace: int [traces].
      untold: whether its task is not known: bool [traces].

    Examples:
      >>> rows, task, untold = np.ones(4, bool), np.array([0, 0, 1, 2]), np.array([False] * 3 + [True])
      >>> mean_over_tasks(np.array([0.0, 1.0, 1.0, 1.0]), rows, task, untold)
      0.8125
    """
    told, rest = np.flatnonzero(rows & ~untold), np.flatnonzero(rows & untold)
    if not len(told):
        return float(value[rest].mean())
    _, of = np.unique(task[told], return_inverse=True)
    mean = float((np.bincount(of, value[told]) / np.bincount(of)).mean())
    return mean if not len(rest) else (len(told) * mean + float(value[rest].sum())) / (len(told) + len(rest))
