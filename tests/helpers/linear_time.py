"""Growth of work with its input, by ratios of times within one process: no test asserts an absolute time."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["assert_linear", "seconds"]

FACTOR = 8
"""How much larger the large input is. What is quadratic takes 64 times as long."""

MOST = 3.0
"""How often the time of linear work may be exceeded, for caches, the collector and a busy machine."""


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    """The least processor time of some runs."""
    spent = []
    for _ in range(runs):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def assert_linear(prepare: Callable[[int], Callable[[], object]], large: int, *, runs: int = 3) -> None:
    """Fail where an input of `large` takes over 24 times as long as one of an eighth of it, in each of three attempts.

    Args:
      prepare: makes the input of a size, and returns the work on it.
      large: a size at which what is quadratic would show.
      runs: of which the least time counts.
    """
    small_work, large_work = prepare(large // FACTOR), prepare(large)
    small_work()  # imports, and fills caches
    ratios = []
    for _ in range(3):
        ratios.append(seconds(large_work, runs) / max(seconds(small_work, runs), 1e-5))
        if ratios[-1] < MOST * FACTOR:
            return
    raise AssertionError(f"{FACTOR} times the input took {min(ratios):.0f} times as long; expected at most 24")
