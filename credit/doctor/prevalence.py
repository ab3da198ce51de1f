"""How many of all traces failed, where some have an outcome and others, or all, a verdict that may err.

People rate a run by how it went and do not know the judge's verdict. So `failure_rate` assumes that a verdict errs as
often on traces without an outcome as on those with one; its verdicts on the former then tell how many of them failed.
`corrected_rate` assumes, as Begg and Greenes do, that outcomes are missing at random given the verdict. Where people
rate failures more often, that finds too many failures.

References: Rogan and Gladen 1978, Estimating prevalence from the results of a screening test; Begg and Greenes 1983,
Assessment of diagnostic tests when disease verification is subject to selection bias; Tenenbein 1970, A double sampling
scheme for estimating from binomial data with misclassifications; Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023,
Prediction-powered inference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphs.task_means import LEAST_TASKS, LEVEL, part_over_tasks, trials_over_tasks

__all__ = ["Corrected", "corrected_rate", "failure_rate"]

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


class Corrected(NamedTuple):
    """The part of traces that failed, corrected by what a reference says of some.

    Attributes:
      rate, low, high: the part, and its 95 % interval.
      traces: of how many it is.
      whole: whether those without a verdict are among these.
    """

    rate: float
    low: float
    high: float
    traces: int
    whole: bool


def corrected_rate(failed: np.ndarray, known: np.ndarray, passes: np.ndarray, task: np.ndarray) -> Corrected | None:
    """The part of traces that failed, by a verdict on most and a reference, as people are, on some; None with too few.

    With s_v the part of traces with verdict v, and r_v the part of those that failed by the reference, it is Σ s_v r_v.
    That is the mean of a prediction over all traces and of what the reference adds to it over those with both
    (prediction-powered inference), whose prediction is r_v: it holds where the reference looked at more traces of one
    verdict, too. Traces without a verdict are a v of their own, or left out where the reference knows fewer than
    `LEAST_TASKS` tasks of them.

    r_v has Jeffreys' posterior, s that of Dirichlet, of as many traces as tell as much over tasks
    (`trials_over_tasks`). The interval is that of the beta distribution with the mean and the variance of Σ s_v r_v.
    Of rates of 5 to 60 %, it held 95 to 96 %.

    Args:
      failed: whether a trace failed by the reference, where that is known: bool [n].
      known: whether it is: bool [n].
      passes: whether the verdict passes a trace: float [n], NaN without one.
      task: of each: int [n].

    Examples:
      >>> at = np.arange(200)
      >>> found = corrected_rate(at % 3 == 0, at < 60, (at % 6 > 0) * 1.0, at)  # it passes half of the failed
      >>> [round(part, 2) for part in found[:3]]
      [0.34, 0.24, 0.44]
    """
    from scipy.special import betaincinv  # comes with JAX; slow to import

    verdict = np.where(np.isnan(passes), 2, passes).astype(np.int64)
    whole = len(np.unique(task[known & (verdict == 2)])) >= LEAST_TASKS
    used = (verdict < 2) | whole
    strata = [verdict[used] == v for v in np.unique(verdict[used])]
    failed, known, (_, of) = failed[used], known[used], np.unique(task[used], return_inverse=True)
    if len(np.unique(of[known])) < LEAST_TASKS or not all((known & one).any() for one in strata):
        return None
    counted = [trials_over_tasks(one, of) for one in strata]
    told = [trials_over_tasks(failed[one & known], of[one & known]) for one in strata]
    n = min(many for _, many in counted)
    part, mean = np.array([part for part, _ in counted]), np.array([(p * k + 0.5) / (k + 1) for p, k in told])
    all_, own = n + len(part) / 2, mean * (1 - mean) / (np.array([k for _, k in told]) + 2)
    share = (part * n + 0.5) / all_
    middle = float(share @ mean)
    variance = float(share @ (mean - middle) ** 2 + (share * (1 - share)) @ own) / (all_ + 1) + float(share**2 @ own)
    size = middle * (1 - middle) / variance - 1
    low, high = (float(betaincinv(middle * size, (1 - middle) * size, at)) for at in (LEVEL / 2, 1 - LEVEL / 2))
    rate = float(part @ np.array([p for p, _ in told]))  # without a prior, so it may lie beyond an end
    return Corrected(rate, min(low, rate), max(high, rate), len(failed), whole or bool((verdict < 2).all()))
