"""Which event of a cause is shown: one choice for every table and sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["shown_example"]


def shown_example(rows: Sequence[int], trace: np.ndarray, failed: np.ndarray, side: np.ndarray | None) -> int:
    """The place of the first of a failed trace where there is one, of the side of whose traces more have the cause.

    Args:
      rows: events of the cause, the most serious first.
      trace: of each event: int [events].
      failed: whether each trace failed: bool [traces].
      side: of each trace, where sides are compared: int [traces].

    Examples:
      >>> shown_example([7, 5, 6], np.array([0, 0, 0, 0, 0, 0, 1, 2]), np.array([False, True, False]), None)
      2
      >>> shown_example([0, 1, 2], np.arange(3), np.ones(4, bool), np.array([0, 1, 1, 0]))
      1
    """
    of, part = trace[list(rows)], np.zeros(len(rows))
    if side is not None and len(rows) > 1:
        part = (np.bincount(side[np.unique(of)] + 1, minlength=3) / np.bincount(side + 1, minlength=3).clip(1))[
            side[of] + 1
        ]
    return int(np.lexsort((-part, ~failed[of]))[0])
