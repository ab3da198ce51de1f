"""Uniform numbers for many seeds at once: each row depends on its own seed only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["seeded_uniforms"]

_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio, odd: states of one seed do not repeat


def seeded_uniforms(seeds: Sequence[int], count: int) -> np.ndarray:
    """`count` numbers in [0, 1) for each seed, float64 [S, count], from SplitMix64 (Steele, Lea, Flood 2014).

    Args:
      seeds: from 0 to 2⁶⁴ − 1.
      count: how many numbers for each.

    Examples:
      >>> import numpy as np
      >>> both = seeded_uniforms([3, 4], 2)
      >>> both.shape, bool((both[1] == seeded_uniforms([4], 2)[0]).all())
      ((2, 2), True)
    """
    start = _mixed(np.array(seeds, np.uint64))  # neighbouring seeds start far apart
    with np.errstate(over="ignore"):
        state = start[:, None] + _STEP * np.arange(1, count + 1, dtype=np.uint64)
    return np.asarray(_mixed(state) >> np.uint64(11), np.float64) * 2.0**-53  # the upper 53 bits, as a double holds


def _mixed(x: np.ndarray) -> np.ndarray:
    """SplitMix64's finaliser: a bijection of 64 bits in which each bit depends on all others; it wraps on purpose."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
