"""Whether the signs of the events of one place hold, tested on tasks that the critic was not fitted on.

A critic's estimates of the events at a place share their error: the same agent's third message has one weight in all
traces. A false sign is then in every trace, and a test of all messages together does not show it, because the others
do matter. Each place is therefore tested on its own, with what the other events explain taken off the outcome:

    y_e = sign(D̂_e) (R − V̂(whole trace) + D̂_e − m)

with m the mean of the bracket over the place's events of the other tasks. If V̂ is right about the other events, or its
errors there are as likely up as down whatever the sign of D̂_e, y has the mean of sign(D̂_e) D_e.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphs.task_means import holm

__all__ = ["LEAST_TASKS", "LEVEL", "HeldOutMean", "PlaceTest", "held_out_mean", "mean_of_signs", "place_tests"]

LEAST_TASKS = 4
"""Held-out tasks with decided events for a test."""
LEVEL = 0.025


class HeldOutMean(NamedTuple):
    """The mean of a number of events over held-out tasks.

    Attributes:
      tasks, events: how many there are.
      mean: mean over tasks of the means of their events; NaN where there are none.
      stderr: its standard error over tasks; infinite for fewer than two.
      p_value: of a one-sided t-test that it is above 0; 1 where there are fewer than `LEAST_TASKS` tasks, or where no
        other task has an event to compare with.
    """

    tasks: int
    events: int
    mean: float
    stderr: float
    p_value: float


class PlaceTest(NamedTuple):
    """The test of the events of one place in a region.

    Attributes:
      place: the key of the place of an agent, as `estimators.critic.additive.additive_columns.place_keys` gives it.
      result: of y over held-out tasks.
      validated: whether its p-value is below 2.5 %.
    """

    place: int
    result: HeldOutMean
    validated: bool


def held_out_mean(y: np.ndarray, task: np.ndarray) -> HeldOutMean:
    """Test that the mean of y over tasks is above 0.

    Args:
      y: float [n], a number of each event.
      task: int [n], the task of each.

    Examples:
      >>> import numpy as np
      >>> held_out_mean(np.array([1.0, 3.0, 2.0, 2.0]), np.array([0, 0, 1, 2]))._replace(stderr=0.0)
      HeldOutMean(tasks=3, events=4, mean=2.0, stderr=0.0, p_value=1.0)
    """
    from scipy.special import stdtr

    if len(y) == 0:
        return HeldOutMean(0, 0, float("nan"), float("inf"), 1.0)
    _, task = np.unique(task, return_inverse=True)
    counts = np.bincount(task)
    tasks = np.bincount(task, y) / counts
    mean, stderr, p = float(tasks.mean()), float("inf"), 1.0
    if len(counts) > 1:
        stderr = float(tasks.std(ddof=1) / np.sqrt(len(counts)))
    if len(counts) >= LEAST_TASKS:
        p = float(stdtr(len(counts) - 1, -mean / stderr)) if stderr > 0 else float(mean <= 0)
    return HeldOutMean(len(counts), len(y), mean, stderr, p)


def mean_of_signs(
    sign: np.ndarray, left: np.ndarray, task: np.ndarray, held_out: np.ndarray, fold: np.ndarray | None = None
) -> HeldOutMean:
    """Test that sign(D̂) (left − m) is above 0 on held-out tasks, with m the mean of `left` on the others.

    Where the others have no event, m is unknown and the p-value is 1.

    Args:
      sign: float [n], sign(D̂) of each event.
      left: float [n], what is left of the outcome.
      task: int [n], the task of each event's trace.
      held_out: bool [n], events of tasks that the critic was not fitted on.
      fold: int [n], which of several critics says so; each has tasks of its own held out. The test is then two-sided:
        critics of other folds have seen the tasks of this one, so in noise their common sign follows the mean of all.

    Examples:
      >>> import numpy as np
      >>> sign, left, task = np.ones(6), np.array([0.5, 0.5, 0.7, 0.8, 0.7, 0.8]), np.arange(6)
      >>> mean_of_signs(sign, left, task, task > 1).mean
      0.25
    """
    at, others = np.flatnonzero(held_out), np.flatnonzero(~held_out)
    if fold is None:
        off: float | np.ndarray = float(left[others].mean()) if len(others) else 0.0
        unknown = len(others) == 0
    else:
        size = int(fold.max(initial=0)) + 1
        count = np.bincount(fold[others], minlength=size)
        off = (np.bincount(fold[others], left[others], size) / np.maximum(count, 1))[fold[at]]
        unknown = bool(np.any(count[fold[at]] == 0))
    result = held_out_mean(sign[at] * (left[at] - off), task[at])
    if unknown:
        return result._replace(p_value=1.0)
    return result if fold is None else result._replace(p_value=min(1.0, 2 * result.p_value))


def place_tests(
    place: np.ndarray,
    sign: np.ndarray,
    alone: np.ndarray,
    task: np.ndarray,
    held_out: np.ndarray,
    fold: np.ndarray | None = None,
) -> tuple[PlaceTest, ...]:
    """Test each place among the decided events of a region.

    Args:
      place: int [n], the place of each event.
      sign: float [n], sign(D̂).
      alone: float [n], R − V̂(whole trace) + D̂.
      task: int [n], the task of each event's trace.
      held_out: bool [n], events of tasks that the critic was not fitted on; the others give m.
      fold: int [n], which of several critics says so, as in `mean_of_signs`. The tests are then corrected for the
        number of places by Holm's method.

    Returns:
      A `PlaceTest` for each place that occurs in held-out tasks, in order of keys.
    """
    # One stable sort: a log has up to 78,400 places a role, and a pass over all events for each is too much.
    order = np.argsort(place, kind="stable")
    keys, starts, counts = np.unique(place[order], return_index=True, return_counts=True)
    found = []
    for key, start, count in zip(keys.tolist(), starts, counts, strict=True):
        here = order[start : start + count]
        if held_out[here].any():
            part = None if fold is None else fold[here]
            found.append((key, mean_of_signs(sign[here], alone[here], task[here], held_out[here], part)))
    p = [result.p_value for _, result in found]
    p = p if fold is None else holm(p)
    return tuple(PlaceTest(key, result, each < LEVEL) for (key, result), each in zip(found, p, strict=True))
