"""The kind of task of most traces that have something, where that is beyond chance."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.reports.task_kinds import SEVERAL, every_kind
from credit.reports.tasks import task_ids
from graphs.dealing import dealt
from graphs.task_means import LEVEL
from graphs.text import counted, printable
from graphs.traces.batch import Traces

__all__ = ["MostlyOf", "mostly_of"]


@dataclasses.dataclass(frozen=True)
class MostlyOf:
    """The kind of task of more than half of the traces that have something.

    Attributes:
      kind: its name.
      having, of: how many of its traces have it, of how many whose log tells.
      others, of_others: the same of the traces of all other tasks.
    """

    kind: str
    having: int
    of: int
    others: int
    of_others: int

    def told(self) -> str:
        """The kind with these counts."""
        counts = f"{self.having} of its {counted(self.of, 'trace')}, {self.others} of {self.of_others} others"
        return f"mostly of kind {printable(self.kind, 40)} ({counts})"


def mostly_of(traces: Traces, having: np.ndarray, tells: np.ndarray, looked: int) -> MostlyOf | None:
    """The kind of task that has more than half of something, and it more often than other tasks beyond chance.

    Kinds are dealt among tasks, and p is corrected for all kinds. None without such a kind.

    Args:
      traces: what was read.
      having: whether each has it: bool [traces].
      tells: whether its log tells: bool [traces].
      looked: of how many such things the kind is asked, by which p is corrected, too.
    """
    names, kind = every_kind(traces)
    count = np.bincount(kind[having & tells & (kind >= 0)], minlength=len(names) + 1)
    most = int(count.argmax())
    its, others = tells & (kind == most), tells & (kind != most)
    counts = [int(of.sum()) for of in (its & having, its, others & having, others)]
    if counts[0] <= counts[2] or not counts[3] or counts[0] * counts[3] <= counts[2] * counts[1]:
        return None
    tasks, first, of = np.unique(task_ids(traces)[tells], return_index=True, return_inverse=True)
    part = np.bincount(of, having[tells]) / np.bincount(of)
    p = dealt(part, its[tells][first], np.zeros(len(tasks), np.int64)).p * len(names) * looked
    return MostlyOf(names[most], *counts) if p < LEVEL and names[most] != SEVERAL else None
