"""Whether a difference between sides that share no task may be the mix of kinds of tasks, as in Simpson's paradox."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.sides.side_rows import SideDifference
from credit.sides.side_tests import means_by_task
from graphs.dealing import dealt
from graphs.task_means import LEVEL
from graphs.text import printable, signed

__all__ = ["held_to_kinds"]


def held_to_kinds(
    row: SideDifference, value: np.ndarray, kinds: tuple[list[str], np.ndarray], side: np.ndarray, task: np.ndarray
) -> SideDifference:
    """The row, with why it is not surely a change where the kinds of tasks that tell its numbers changed beyond chance,
    and the difference within kinds does not go the same way beyond chance.

    Within kinds the difference has weights n m / (n + m), with n and m tasks of a kind on the sides. Tasks without a
    kind are one, too. Where no kind is on both sides, nothing is changed.

    Args:
      row: of one metric.
      value: of each trace, NaN without a number.
      kinds: of `task_kinds`: their names, and that of each trace.
      side: 0 or 1 of each trace, -1 for none: int [traces].
      task: of each trace: int [traces].

    Reference: Simpson 1951, The interpretation of interaction in contingency tables; Cochran 1954, Some methods for
    strengthening the common χ² tests.
    """
    names, of_trace = kinds
    if row.paired or not row.stands_out or not names:
        return row
    kept = np.isfinite(value) & (side >= 0)
    tasks, mean = means_by_task(value, np.flatnonzero(kept), task)
    second = np.isin(tasks, task[kept & (side == 1)])
    kind = of_trace[kept][np.unique(task[kept], return_index=True)[1]]
    told, of = np.unique(kind, return_inverse=True)
    count = np.stack([np.bincount(of, some, len(told)) for some in (~second, second)])
    usual = (np.bincount(of, mean) / count.sum(axis=0))[of]
    both = count.all(axis=0)
    if not both.any() or dealt(usual.round(12), second, np.zeros(len(of))).p >= LEVEL:
        return row
    before, after = (np.bincount(of, mean * some, len(told))[both] / n[both]
                     for some, n in zip((~second, second), count, strict=True))  # fmt: skip
    within = float(np.average(after - before, weights=count[:, both].prod(axis=0) / count[:, both].sum(axis=0)))
    sure = dealt(mean, second, of).p < LEVEL
    if sure and within * row.difference > 0:
        return row
    parts = count / count.sum(axis=1, keepdims=True)
    most = int(np.abs(parts[1] - parts[0]).argmax())
    name = printable(names[told[most]], 40) if told[most] >= 0 else "without a kind"
    sizes = " to ".join(f"{int(n[most])} of {int(n.sum())}" for n in count)
    chance = "beyond chance" if sure else "undecided"
    why = f"but the mix of kinds changed ({name} {sizes} tasks): within kinds {signed(within)}, {chance}"
    return dataclasses.replace(row, mix=why)
