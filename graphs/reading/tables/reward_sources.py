"""Where the outcomes of a batch come from, where a table of rewards has no row for some traces."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphs.text import counted

if TYPE_CHECKING:
    from graphs.traces.batch import Traces

__all__ = ["RewardSources"]


@dataclasses.dataclass
class RewardSources:
    """Traces counted by the source of their outcome; batches add up.

    Attributes:
      rewards: the rewards of the table, by trace.
      name: the table's name; "" where none was given.
      table, log, neither: how many traces have the table's outcome, the log's, or none.
    """

    rewards: Mapping[str, float]
    name: str
    table: int = 0
    log: int = 0
    neither: int = 0

    def add(self, traces: Traces) -> None:
        """Count the traces of a batch."""
        if not self.name:
            return
        listed = np.array([trace in self.rewards for trace in traces.traces["trace"].to_pylist()], bool)
        scored = np.isfinite(np.asarray(traces.reward)[: len(listed)])
        self.table += int((scored & listed).sum())
        self.log += int((scored & ~listed).sum())
        self.neither += int((~scored).sum())  # also where an unreadable row mentions a trace that has another row

    @property
    def counts(self) -> list[int]:
        """`table`, `log` and `neither`."""
        return [self.table, self.log, self.neither]

    def add_counts(self, counts: Sequence[int]) -> None:
        """Count traces that were counted elsewhere, in the order of `counts`."""
        self.table, self.log, self.neither = (count + other for count, other in zip(self.counts, counts, strict=True))

    def __str__(self) -> str:
        """The line about them; empty where no table was given, or every outcome is from the table."""
        rest = self.log + self.neither
        if not self.name or not rest:
            return ""
        parts = [f"{self.table} of {counted(self.table + rest, 'trace')} from {self.name}"]
        parts += [f"{self.log} from the log"] if self.log else []
        parts += [f"{self.neither} without an outcome"] if self.neither else []
        return f"rewards: {', '.join(parts)}"
