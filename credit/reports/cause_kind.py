"""The kind of task in which a cause holds alone, or mostly: it is named with that kind."""

from __future__ import annotations

import numpy as np

from credit.reports.compared_kinds import ComparedKinds
from graphs.task_means import LEVEL

__all__ = ["of_one_kind", "where_usual"]

MOSTLY = 0.75
"""The part of what failed traces have more than others of their kind from which a cause is one of a kind."""


def of_one_kind(kinds: ComparedKinds, has: np.ndarray) -> int:
    """The place in `every_kind` of the kind in which a cause holds, beyond chance, and in others taken together not so;
    -1 without one.

    Args:
      kinds: which traces are compared, within kinds of task.
      has: as of `ComparedKinds.counts`.

    Reference: Mantel and Haenszel 1959, for what each kind adds.
    """
    found = kinds.counts(has)
    part = found.failed / np.maximum(found.failed + found.succeeded, 1)
    names, of = np.unique(found.task, return_inverse=True)
    adds = np.bincount(of, found.failed_with - part * (found.failed_with + found.succeeded_with))
    if not len(adds) or adds.max() <= 0 or adds.max() < MOSTLY * adds[adds > 0].sum():
        return -1
    kind = int(names[int(np.argmax(adds))])
    its, others = (kinds.test(np.where((kinds.task == kind) == of, has, np.nan)) for of in (True, False))
    return kind if its[3] < LEVEL and not (others[0] > 0.5 and others[3] < LEVEL) else -1


def where_usual(kinds: ComparedKinds, lacks: np.ndarray) -> np.ndarray:
    """Whether an agent is left out, in kinds of task of which half of the traces or more have it; NaN in others, of
    which it is no part: float [n].

    Args:
      kinds: which traces are compared, within kinds of task.
      lacks: whether each trace lacks it, 0 or 1; NaN where its log does not tell.
    """
    known = np.isfinite(lacks)
    _, of = np.unique(kinds.task, return_inverse=True)
    size, some = np.bincount(of, known), np.bincount(of[known], lacks[known], of.max(initial=0) + 1)
    return np.where((2 * some <= size)[of], lacks, np.nan)
