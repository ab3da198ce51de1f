"""What a success is, and what a table of rewards states of traces that were refused: a result lacks these.

Who is not read is seldom a matter of chance, since broken runs leave broken logs.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from graphs.errors import Problem
from graphs.reading.tables.joins import REFUSED_ROW
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["NO_SIDE", "UnreadOutcomes", "least_success", "unread_outcomes"]


NO_SIDE = "an unknown side"


@dataclasses.dataclass(frozen=True)
class UnreadOutcomes:
    """Traces that were not read and have a row in the table of rewards.

    Attributes:
      side: the name of their side, `NO_SIDE` where nothing tells it, "" where no sides are compared.
      traces: how many they are.
      succeeded, failed: of these; a long list of problems (`graphs.problem_log`) counts others alone.
    """

    side: str
    traces: int
    succeeded: int
    failed: int

    def __str__(self) -> str:
        """The sentence that stands with each result over outcomes."""
        of = f" of {self.side}" if self.side else ""
        were = "were" if self.traces > 1 else "was"
        untold = self.traces - self.succeeded - self.failed
        more = f", {untold} more are not listed" if untold else ""
        told = f"by --rewards their outcomes: {self.succeeded} succeeded, {self.failed} failed{more}"
        return f"{counted(self.traces, 'trace')}{of} {were} not read; {told}"


def unread_outcomes(
    traces: Traces,
    success_at: float | None = None,
    sides: Mapping[str, int] | None = None,
    names: Sequence[str] = (),
) -> list[UnreadOutcomes]:
    """The traces that were not read, by side; none where no refused trace has a row in the table of rewards.

    Args:
      traces: what was read.
      success_at: the least outcome of a success; None for `least_success` of the traces that were read, or of all where
        these have one outcome.
      sides: of these traces, each a place in `names`; nothing tells those of others.
      names: of the sides.
    """
    rows = [row for row in traces.problems if row.kind == REFUSED_ROW and row.about == "reward"]
    if not rows:
        return []
    stated = np.array([float(row.value) for row in rows])
    read = np.asarray(traces.reward, np.float64)[: traces.sizes.traces]
    cut = least_success(read, success_at)
    cut = least_success(np.concatenate([read, stated])) if math.isnan(cut) else cut
    succeeded = stated > 0 if math.isnan(cut) else stated >= cut
    by_side: dict[int, list[tuple[Problem, bool]]] = collections.defaultdict(list)
    for row, good in zip(rows, succeeded.tolist(), strict=True):
        by_side[(sides or {}).get(row.trace, -1)].append((row, good))
    return [
        UnreadOutcomes(
            names[side] if side >= 0 else NO_SIDE if names else "",
            sum(row.count for row, _ in of_side),
            sum(good for row, good in of_side if row.count == 1),
            sum(not good for row, good in of_side if row.count == 1),
        )
        for side, of_side in sorted(by_side.items())
    ]


def least_success(outcome: np.ndarray, success_at: float | None = None) -> float:
    """The least outcome of a trace that succeeded; NaN where all outcomes are equal.

    Args:
      outcome: float [traces]; NaN where a trace has none.
      success_at: what a person calls a success, which is taken then; None for the median of the outcomes, or the next
        above it where the median is the least.

    Examples:
      >>> least_success(np.array([0.0, 1.0, np.nan]))
      1.0
    """
    if success_at is not None:
        return success_at
    known = outcome[np.isfinite(outcome)]
    if not len(known) or np.ptp(known) == 0:
        return float("nan")
    middle = float(np.median(known))
    return float(known[known > known.min()].min() if middle <= known.min() else known[known >= middle].min())
