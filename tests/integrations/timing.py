"""Two ways to the same numbers, timed one after the other so that both meet the same machine."""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["compare"]

ROWS = 1024
CALLS = 30
MOST = 10.0  # times the yardstick's processor time, so that only a change of kind fails


def compare(
    path: str,
    batch: Callable[[int], Any],
    ours: Callable[[Any], Any],
    theirs: Callable[[Any], Any],
    compilations: Callable[[], int],
) -> None:
    """Time both on batches of 1,024 rows, and fail if a batch of another size compiles anything.

    Also fails if ours takes more than `MOST` times the processor time of a yardstick of plain Python that is timed
    beside it. Processor time counts all threads of the process; other work stretches it less than it does the clock.
    With the environment variable TIMINGS the median and the least of each, in milliseconds, are kept in that file.

    Args:
      path: what is timed, for the table of docs/trainers.md.
      batch: a fresh batch of a number of rows, a multiple of 8.
      ours, theirs: both take a batch and return when the advantages are there.
      compilations: how often anything was compiled so far.
    """
    draw = random.Random(5)
    ours(batch(ROWS))
    compiled = compilations()
    for _ in range(6):
        ours(batch(8 * draw.randrange(2, ROWS // 8)))
    assert compilations() == compiled, "a batch of another size compiled"
    spent: dict[str, list[float]] = {"ours": [], "own": [], "yardstick": []}
    for _ in range(CALLS):
        for name, call in (("ours", ours), ("own", theirs), ("yardstick", _yardstick)):
            data = None if call is _yardstick else batch(ROWS)
            begin = time.process_time()
            call(data)
            spent[name].append(1e3 * (time.process_time() - begin))
    figures = {name: [round(statistics.median(all_), 2), round(min(all_), 2)] for name, all_ in spent.items()}
    print(f"\n{path} at 1,024 rows, milliseconds of processor time, median and least: {figures}")
    _keep(path, figures)
    assert min(spent["ours"]) <= MOST * min(spent["yardstick"]), figures


def _yardstick(data: Any) -> int:
    """Group 1,024 ids, four times: about a millisecond on a quiet machine of 2024."""
    total = 0
    for shift in range(4):
        groups: dict[str, list[int]] = {}
        for row in range(ROWS):
            groups.setdefault(f"{(row + shift) // 8:08x}-uid", []).append(row)
        total += sum(len(rows) for rows in groups.values())
    return total


def _keep(path: str, figures: dict[str, list[float]]) -> None:
    if "TIMINGS" not in os.environ:
        return
    file = Path(os.environ["TIMINGS"])
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**known, path: figures}, indent=1, sort_keys=True) + "\n")
