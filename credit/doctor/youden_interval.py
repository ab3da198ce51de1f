"""The 95 % interval of how much more of the succeeded traces a verdict passes than of the failed ones: Youden's J.

References: Youden 1950, Index for rating diagnostic tests; Wilson 1927 (the interval of a part); Kish 1965, Survey
Sampling (traces that count as fewer, in clusters); Zou and Donner 2008, Construction of confidence limits about effect
measures (of a difference whose parts are not independent).
"""

from __future__ import annotations

import math

import numpy as np

from graphs.task_means import LEAST_TASKS, LEVEL, part_over_tasks

__all__ = ["youden_interval"]


def youden_interval(wrong: np.ndarray, good: np.ndarray, task: np.ndarray) -> tuple[float, float]:
    """Its ends; NaN where failed or succeeded traces are of fewer than `LEAST_TASKS` tasks.

    The variance of each part is that of ratios over tasks, and says as how many traces these count: n² / Σ n_g² at
    least, with n_g of task g. With the ends of Wilson's intervals of the parts, by Student's quantile, and the
    correlation r of the parts over tasks, the lower end is J − √(d² + e² + 2 r d e), d and e from each part to the end
    above it.

    Args:
      wrong, good: whether the verdict of a trace is wrong, and whether it succeeded: bool [n].
      task: of each: int [n].

    Examples:
      >>> task = np.repeat(np.arange(20), 2)
      >>> low, high = youden_interval(task % 4 == 0, np.arange(40) % 2 == 0, task)
      >>> round(low, 2), round(high, 2)
      (0.03, 0.79)
    """
    from scipy.special import stdtrit  # comes with JAX; slow to import

    of = np.unique(task, return_inverse=True)[1]
    tasks = int(of.max(initial=-1)) + 1
    quantile = float(stdtrit(max(tasks - 1, 1), 1 - LEVEL / 2))
    total, apart, ends = 0.0, [], []
    for kind in (~good, good):
        size, bad = (np.bincount(of[kind], weight, tasks) for weight in (None, wrong[kind]))
        if np.count_nonzero(size) < LEAST_TASKS:
            return math.nan, math.nan
        off, part, many = part_over_tasks(bad, size)
        apart.append(off)
        total += part
        ends.append([part - end for end in _wilson(part, many, quantile)])
    scale = math.sqrt(float(apart[0] @ apart[0]) * float(apart[1] @ apart[1]))
    r = float(apart[0] @ apart[1]) / scale if scale > 0 else 0.0
    below, above = (math.sqrt(max(d * d + e * e + 2 * r * d * e, 0.0)) for d, e in zip(*ends, strict=True))
    return 1 - total - above, 1 - total + below


def _wilson(part: float, traces: float, quantile: float) -> tuple[float, float]:
    square = quantile**2 / traces
    middle = (part + square / 2) / (1 + square)
    half = math.sqrt(square * part * (1 - part) + square**2 / 4) / (1 + square)
    return middle - half, middle + half
