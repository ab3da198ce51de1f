"""The standard error of a mean over rows of which some belong to one sample, and what is beyond two errors."""

from __future__ import annotations

import math

import numpy as np

from graphs.task_means import mean_interval

__all__ = ["beyond_two_errors", "clustered_error"]

ROUNDING = 16 * float(np.finfo(np.float32).eps)


LEAST_SAMPLES, LEAST_OFF = 50.0, 5
"""Effective samples for an error, and samples above and below the mean. ± 1.96 errors of two samples held 54 to 89 % of
means, of ten 72 to 93 %; where few samples differ from the others, the next one may change mean and error."""


def clustered_error(values: np.ndarray, sample: np.ndarray) -> float:
    """The longer side of the 95 % interval of the mean, over 1.96; infinite where it is not known.

    With n_g of n rows in each of G samples, the interval is that of G numbers x̄ + G/n Σ_{i in g} (x_i − x̄), whose
    variance over G is the clustered one (`mean_interval`). It takes `LEAST_SAMPLES` effective samples, n² / Σ n_g², and
    `LEAST_OFF` samples on each side of the mean.

    Args:
      values: float [n].
      sample: [n], the sample of each row.

    Reference: Liang and Zeger 1986, Longitudinal data analysis using generalized linear models.

    Examples:
      >>> import numpy as np
      >>> values = np.tile([1.0, 3.0], 40)
      >>> clustered_error(values, np.arange(80)), clustered_error(values, np.arange(80) % 8)
      (0.1101..., inf)
    """
    _, number, size = np.unique(sample, return_inverse=True, return_counts=True)
    off, rounding = np.bincount(number, values - values.mean()), ROUNDING * float(np.abs(values).max())
    effective = len(values) ** 2 / float(size @ size)
    if effective < LEAST_SAMPLES or min(np.sum(off > rounding * size), np.sum(off < -rounding * size)) < LEAST_OFF:
        return math.inf
    mean = float(values.mean())
    low, high = mean_interval(mean + off * len(off) / len(values), mean)
    return max(mean - low, high - mean) / 1.959964


def beyond_two_errors(amount: np.ndarray, stderr: np.ndarray) -> np.ndarray:
    """Whether |amount| is above two standard errors by more than single precision rounds: bool [N].

    Groups of four with two successes have advantages of exactly two errors, 2/3 ± 1/3.

    Examples:
      >>> beyond_two_errors(np.array([2.0, 2.0000001, -2.1]), np.ones(3)).tolist()
      [False, False, True]
    """
    beyond: np.ndarray = np.abs(amount) > 2 * (1 + ROUNDING) * np.asarray(stderr)
    return beyond
