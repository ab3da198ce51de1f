"""Which event of a cause is shown: one choice for every table and sentence of every command."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from graphs.traces.batch import Traces

__all__ = ["example_kinds", "shown_example", "surely_above"]


def shown_example(rows: Sequence[int], trace: np.ndarray, failed: np.ndarray, kind: np.ndarray | None) -> int:
    """The place of the first of a failed trace where there is one, of the kind of traces that surely have it more.

    Args:
      rows: events of the cause, the most serious first.
      trace: of each event: int [events].
      failed: whether each trace failed: bool [traces].
      kind: of `example_kinds`.

    Examples:
      >>> shown_example([7, 5, 6], np.array([0, 0, 0, 0, 0, 0, 1, 2]), np.array([False, True, False]), None)
      2
      >>> side = np.arange(40) % 2
      >>> shown_example([0, *range(1, 20, 2)], np.arange(40), np.ones(40, bool), side)
      1
      >>> shown_example([0, 1, 3], np.arange(40), np.ones(40, bool), side)  # 1 of 20 against 2 of 20
      0
    """
    of, more = trace[list(rows)], np.zeros(len(rows), bool)
    if kind is not None:
        every, some = (np.bincount(kind[one] + 1, minlength=kind.max() + 2)[1:] for one in (slice(None), np.unique(of)))
        most = int(np.argmax(some / every.clip(1)))
        others = every.sum() - every[most]
        more = (kind[of] == most) & bool(
            others and surely_above(some[most], every[most], some.sum() - some[most], others) > 0
        )
    return int(np.lexsort((~more, ~failed[of]))[0])


def example_kinds(traces: Traces, side: np.ndarray | None = None) -> np.ndarray | None:
    """The kind of each trace, -1 for none: its side where sides are compared, else its system, or its model, where the
    log has several; None without. So that two systems have the examples that they have as sides.

    Args:
      traces: what was read.
      side: of each trace, where sides are compared: int [traces].

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> example_kinds(rows.traces) is None
      True
    """
    if side is not None:
        return side
    for name in ("system", "model"):
        coded = traces.traces[name].combine_chunks().dictionary_encode()
        if len(coded.dictionary) > 1:
            return np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False))
    return None


def surely_above(bad: float, failed: float, good: float, succeeded: float) -> float:
    """The lower end of the one-sided 95 % interval of bad / failed - good / succeeded, of Wilson's for each share.

    Args:
      bad, failed: how many of the one kind have something, of how many.
      good, succeeded: the same of the other kind.

    Reference: Newcombe 1998, Interval estimation for the difference between independent proportions, method 10.

    Examples:
      >>> round(surely_above(9, 10, 1, 10), 2), round(surely_above(5, 10, 5, 10), 2)
      (0.45, -0.33)
    """
    z = 1.645  # the normal quantile of 95 %

    def to_end(count: float, n: float, side: int) -> float:
        """The distance of a share from an end of its interval."""
        share = count / n
        middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
        return abs((middle + side * half) / (1 + z * z / n) - share)

    return bad / failed - good / succeeded - math.hypot(to_end(bad, failed, -1), to_end(good, succeeded, 1))
