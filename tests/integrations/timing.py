"""Two ways to the same numbers, timed one after the other so that both meet the same machine."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["compare"]

LIMIT = 3.0  # milliseconds a step, at 1,024 rows


def compare(trainer: str, batch: Callable[[], Any], ours: Callable[[Any], Any], theirs: Callable[[Any], Any]) -> None:
    """Print the medians of both, and fail unless ours takes at most `LIMIT` at its quickest.

    A machine with more to do than it has cores says nothing about that, and the test is skipped with the figure.
    """
    mine, own = [], []
    while len(mine) < 15 or (min(mine) > LIMIT and len(mine) < 60):
        data = batch()
        begin = time.perf_counter()
        ours(data)
        middle = time.perf_counter()
        theirs(data)
        end = time.perf_counter()
        mine.append(1e3 * (middle - begin))
        own.append(1e3 * (end - middle))
    figures = f"ours {statistics.median(mine):.2f} ms, {trainer}'s own {statistics.median(own):.2f} ms"
    print(f"\n{trainer} at 1,024 rows: {figures}")
    busy = os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)
    if min(mine) > LIMIT and busy:
        pytest.skip(f"the machine is busy: {figures}")
    assert min(mine) <= LIMIT, figures
