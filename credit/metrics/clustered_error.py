"""The standard error of a mean over rows of which some belong to one sample."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["clustered_error"]


def clustered_error(values: np.ndarray, sample: np.ndarray) -> float:
    """√(G/(G − 1) Σ_g (Σ_{i in g} (x_i − x̄))²) / n for G samples of n rows; infinite for one sample.

    Args:
      values: float [n].
      sample: [n], the sample of each row.

    Reference: Liang and Zeger 1986, Longitudinal data analysis using generalized linear models.

    Examples:
      >>> import numpy as np
      >>> clustered_error(np.array([1.0, 3.0]), np.array([0, 1])), clustered_error(np.array([1.0, 3.0]), np.zeros(2))
      (1.0, inf)
    """
    _, number = np.unique(sample, return_inverse=True)
    off = np.bincount(number, values - values.mean())
    if len(off) < 2:
        return math.inf
    return math.sqrt(len(off) / (len(off) - 1) * float(off @ off)) / len(values)
