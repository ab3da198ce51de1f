"""Two ways to the same numbers: how far they are apart, and timed one after the other so that both meet one machine."""

from __future__ import annotations

import itertools
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["TOLERANCE", "compare"]

ROWS = 1024
CALLS = {ROWS: 30, 8 * ROWS: 5}  # by the number of rows
TOLERANCE = 2e-6


def compare(
    path: str,
    batch: Callable[[int], Any],
    ours: Callable[[Any], Any],
    theirs: Callable[[Any], Any],
    credit_of: Any,
    *,
    ran: str,
    trainer: str = "",
    hooks: Mapping[Any, Any] | None = None,
    numbers: Callable[[Any, Any], Any] = lambda data, answer: answer,
    tolerance: float = TOLERANCE,
) -> None:
    """Compare both on 1,000 rows, and fail if they differ or if a batch of another size compiles; time both.

    The times are of 1,024 and of 8,192 rows, and of a yardstick of plain Python beside them. They fail nothing, since
    they say as much about the machine: with the environment variable TIMINGS they are kept in that file, and `table.py`
    names what takes more than ten yardsticks. "own inside" says whether ours runs the trainer's own step, whose time is
    then no time of ours. Processor time counts all threads of the process; other work stretches it less than the clock.

    Args:
      path: what is compared, for the table of docs/trainers.md.
      batch: a fresh batch of a number of rows, a multiple of 8.
      ours, theirs: both take a batch and return when the advantages are there.
      credit_of: the `TrainerCredit` that ours calls, or another with `compilations`.
      ran: what of the trainer these tests run, beside this comparison.
      trainer, hooks: the trainer and its version, and the hooks, where `credit_of` is no `TrainerCredit`.
      numbers: the advantages, from a batch and what a call on it returned.
      tolerance: the largest difference that passes.
    """
    some = batch(1000)
    got = np.array(numbers(some, ours(some)), np.float64)
    want = np.array(numbers(some, theirs(some)), np.float64)
    difference = float(np.abs(got - want).max())
    assert difference <= tolerance and np.abs(want).max() > 0.1, (difference, want)
    rows, hooks = getattr(credit_of, "rows", credit_of), getattr(credit_of, "hooks", hooks or {})
    names = [name for some_names in hooks.values() for name in some_names]
    facts: dict[str, Any] = {"trainer": getattr(credit_of, "trainer", trainer), "ran": ran, "rows": 1000}
    facts |= {"difference": difference, "hooks": names}
    ours(batch(ROWS))
    compiled, draw = rows.compilations, random.Random(5)
    for _ in range(6):
        ours(batch(8 * draw.randrange(2, ROWS // 8)))
    facts["compilations"] = rows.compilations - compiled
    assert facts["compilations"] == 0, "a batch of another size compiled"
    owners = [owner for owner in hooks if isinstance(owner, type)]
    packages = {owner.__module__.partition(".")[0] for owner in owners}
    steps = {getattr(getattr(owner, name), "__code__", None) for owner in owners for name in hooks[owner]}
    of_theirs = _codes_of(theirs, batch(ROWS), packages)
    facts["own inside"] = not steps.isdisjoint(of_theirs) and of_theirs <= _codes_of(ours, batch(ROWS), packages)
    ways = (("ours", ours), ("own", theirs), ("yardstick", _yardstick))
    for size, calls in CALLS.items():
        ours(batch(size))
        spent: dict[str, list[float]] = {name: [] for name, _ in ways}
        for _, (name, call) in itertools.product(range(calls), ways):
            data = None if call is _yardstick else batch(size)
            begin = time.process_time()
            call(data)
            spent[name].append(1e3 * (time.process_time() - begin))
        facts[str(size)] = {name: [round(statistics.median(ms), 2), round(min(ms), 2)] for name, ms in spent.items()}
    print(f"\n{path}, milliseconds of processor time, median and least: {facts}")
    if "TIMINGS" in os.environ:
        file = Path(os.environ["TIMINGS"])
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**known, path: facts}, indent=1, sort_keys=True) + "\n")


def _codes_of(call: Callable[[Any], Any], data: Any, packages: set[str]) -> set[Any]:
    """Code of packages that a call runs in this thread; copies of a function with other globals share theirs."""
    codes = set()
    sys.setprofile(lambda frame, event, _: codes.add(frame.f_code))
    try:
        call(data)
    finally:
        sys.setprofile(None)
    return {code for code in codes if not packages.isdisjoint(Path(code.co_filename).parts)}


def _yardstick(data: Any) -> int:
    """Group 1,024 ids, four times: about a millisecond on a quiet machine of 2024."""
    total = 0
    for shift in range(4):
        groups: dict[str, list[int]] = {}
        for row in range(ROWS):
            groups.setdefault(f"{(row + shift) // 8:08x}-uid", []).append(row)
        total += sum(len(rows) for rows in groups.values())
    return total
