"""The sign of numbers that were computed: one rule for `credit demo` and the benchmarks beside true increments."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["residue", "root_mean_square", "signs"]


def signs(x: np.ndarray, size: float, dtype: type[np.floating]) -> np.ndarray:
    """−1, 0 or 1 of each number; 0 where `residue` of its size may be all that it is.

    Examples:
      >>> signs(np.array([0.1, -1e-5, 1e-8]), 1.0, np.float32).tolist()
      [1.0, -1.0, 0.0]
    """
    return np.where(np.abs(x) > residue(size, dtype), np.sign(x), 0)


def residue(size: float, dtype: type[np.floating]) -> float:
    """What rounding may leave of a 0 that was computed from numbers of a size: a quarter of the digits is left to sums.

    6e-6 of the size in single precision and 2e-12 in double. A coarser tolerance would call small numbers 0 because
    others, such as rare large outcomes, are large.
    """
    return size * float(np.finfo(dtype).eps) ** 0.75


def root_mean_square(x: np.ndarray, weight: np.ndarray | None = None) -> float:
    """By weight, if any is given; NaN where it sums to 0."""
    weight = np.ones_like(x) if weight is None else weight
    total = float(weight.sum())
    return math.sqrt(float(weight @ x**2) / total) if total > 1e-18 else math.nan
