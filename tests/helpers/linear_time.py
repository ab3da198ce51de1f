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


def assert_linear(
    prepare: Callable[[int], Callable[[], object]],
    large: int,
    *,
    runs: int = 3,
    factor: int = FACTOR,
    most: float = MOST,
) -> None:
    """Fail where each run on `large` takes over `most` times `factor` as long as one `factor` times smaller does.

    Args:
      prepare: makes the input of a size, and returns the work on it.
      large: a size at which what is quadratic would show.
      runs: on the small input, of which the least time counts, and at most as many on the large one; thrice.
      factor, most: compiled loops run on several threads only where arrays are large, and these wait for each other
        on a busy machine; inputs further apart still tell such work from what is quadratic.
    """
    small_work, large_work = prepare(large // factor), prepare(large)
    small_work()  # imports, and fills caches
    ratios = []
    for _ in range(3):
        small_seconds = max(seconds(small_work, runs), 1e-5)
        for _ in range(runs):  # mostly one: a single run within the bound is enough, and the large input is what costs
            ratios.append(seconds(large_work, 1) / small_seconds)
            if ratios[-1] < most * factor:
                return
    expected = f"expected at most {most * factor:.0f}"
    raise AssertionError(f"{factor} times the input took {min(ratios):.0f} times as long; {expected}")
