"""How many of all traces failed, where some have an outcome and all a verdict, which may err.

People rate a run by how it went. They do not know what the judge said of it. So a verdict is assumed to err as often
on traces without an outcome as on those with one, and its verdicts on the former tell how many of them failed. Begg and
Greenes assume instead that outcomes are missing at random given the verdict. Where people rate failures more often,
that finds too many failures.

References: Rogan and Gladen 1978, Estimating prevalence from the results of a screening test; Begg and Greenes 1983,
Assessment of diagnostic tests when disease verification is subject to selection bias.
"""

from __future__ import annotations

import numpy as np

from credit.doctor.youden_interval import part_over_tasks
from graphs.task_means import LEAST_TASKS, LEVEL

__all__ = ["failure_rate"]

NODES, GRID = 24, 200
"""Quantiles of each error of a verdict, and rates, over which the posterior is summed."""


def failure_rate(
    failed: np.ndarray, known: np.ndarray, passes: np.ndarray, task: np.ndarray
) -> tuple[float, float, float] | None:
    """The part of these traces that failed, and its 95 % interval; None with few of either outcome.

    Of M traces without an outcome m have a verdict that passes them: a binomial of p a + (1 − p) b, with p the part of
    them that failed, a of failed traces that pass and b of succeeded ones. The prior of p is flat, and a and b have
    Jeffreys' posterior of the traces with an outcome. Given these, a trace without one failed with Bayes' chance. Their
    mean and variance are those of the beta distribution that gives the ends. All counts are those of independent traces
    that tell as much over tasks (`part_over_tasks`).

    Args:
      failed: whether a trace failed, where that is known: bool [n].
      known: whether it has an outcome: bool [n].
      passes: whether its verdict passes it: bool [n].
      task: of each: int [n].

    Examples:
      >>> at = np.arange(240)
      >>> found = failure_rate(at % 4 == 0, at < 120, at % 4 > 0, at)
      >>> [round(part, 2) for part in found]  # of a verdict that never errs
      [0.25, 0.24, 0.26]
    """
    from scipy.special import betaincinv  # comes with JAX; slow to import

    _, of = np.unique(task, return_inverse=True)
    chances, less = [], []
    for kind in (known & failed, known & ~failed):
        n = int(kind.sum())
        if n < LEAST_TASKS:
            return None
        _, part, many = part_over_tasks(np.bincount(of[kind], passes[kind]), np.bincount(of[kind]))
        places = (np.arange(NODES) + 0.5) / NODES
        chances.append(betaincinv(part * many + 0.5, (1 - part) * many + 0.5, places))
        less.append(many / n)
    bad, good = chances[0][:, None, None], chances[1][None, :, None]
    rate = ((np.arange(GRID) + 0.5) / GRID)[None, None, :]
    every, some = int((~known).sum()), int((passes & ~known).sum())
    passing = rate * bad + (1 - rate) * good
    weight = max(less) * (some * np.log(passing) + (every - some) * np.log1p(-passing))
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    of_passed, of_others = rate * bad / passing, rate * (1 - bad) / (1 - passing)
    mean = (some * of_passed + (every - some) * of_others) / every
    own = (some * of_passed * (1 - of_passed) + (every - some) * of_others * (1 - of_others)) / every**2
    middle = float((weight * mean).sum())
    variance = float((weight * (mean**2 + own)).sum()) - middle**2
    size = middle * (1 - middle) / variance - 1
    ends = (float(betaincinv(middle * size, (1 - middle) * size, at)) for at in (LEVEL / 2, 1 - LEVEL / 2))
    told, seen = len(known), int((failed & known).sum())
    found, low, high = ((seen + every * part) / told for part in (middle, *ends))
    return found, low, high
