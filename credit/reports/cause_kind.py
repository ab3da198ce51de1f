"""The kind of task in which a cause holds alone, or mostly: it is named with that kind."""

from __future__ import annotations

import numpy as np

from credit.reports.cause_candidates import ALMOST, Candidate
from credit.reports.compared_kinds import ComparedKinds
from graphs.task_means import LEAST_TASKS, LEVEL

__all__ = ["of_one_kind", "where_others_act", "within_kinds"]

MOSTLY = 0.75
"""The part of what failed traces have more than others of their kind from which a cause is one of a kind."""
PART = 0.25
"""The part of the runs of a kind that have an agent from which others leave it out: half may go to wrong ones. So an
agent that more others than this lack acts instead of one; in most others of its kind it is the right one."""


def of_one_kind(kinds: ComparedKinds, has: np.ndarray) -> int:
    """The place in `every_kind` of the kind in which a cause that is beyond chance holds, and in others taken together
    not so; -1 without one.

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
    return -1 if its[3] >= LEVEL or (others[0] > 0.5 and others[3] < LEVEL) else kind  # NaN of too few tasks


def where_others_act(kinds: ComparedKinds, has: np.ndarray) -> np.ndarray:
    """Whether traces have an agent, NaN in kinds of which less than `PART` of the runs lack it: it acts rightly there.

    Args:
      kinds: which traces are compared, within kinds of task.
      has: as of `ComparedKinds.counts`.
    """
    _, of = np.unique(kinds.task, return_inverse=True)
    lacking, size = np.bincount(of, has == 0), np.bincount(of, np.isfinite(has))
    return np.where((lacking >= PART * size)[of], has, np.nan)


def within_kinds(kinds: ComparedKinds, every: list[Candidate], values: list[np.ndarray]) -> list[np.ndarray]:
    """Whether traces have each candidate, NaN in tasks, or kinds of task, where that says nothing of it.

    An agent is left out of a task, or kind, of which `PART` of the runs or more have it, or with few runs.
    It may be called where a task is hard. So within a kind that it acts tells only where it does so in the place of
    another: that one is in most runs of the kind without it and in almost none with it.

    Args:
      kinds: which traces are compared, within tasks or kinds of task.
      every: the candidates.
      values: whether each trace has each of them, 0 or 1; NaN where its log does not tell.
    """
    names, of = np.unique(kinds.task, return_inverse=True)

    def sums(some: np.ndarray) -> np.ndarray:
        return np.bincount(of, some, len(names))

    acting = [i for i, one in enumerate(every) if one.of_agent and one.quotes]
    found = []
    for i, (one, has) in enumerate(zip(every, values, strict=True)):
        having, lacking = has > 0, has == 0
        tells = np.ones(len(names), bool)
        if one.of_agent and not one.quotes:
            size = sums(having | lacking)
            tells = (sums(lacking) >= PART * size) | (size < LEAST_TASKS)
        elif one.of_agent and kinds.single is not None:
            others = [values[j] > 0 for j in acting if j != i]
            each = [(sums(having & acts), sums(lacking & acts)) for acts in others]
            instead = [(both <= (1 - ALMOST) * sums(having)) & (2 * other > sums(lacking)) for both, other in each]
            tells = np.any(instead, axis=0) if instead else ~tells
        found.append(np.where(tells[of], has, np.nan))
    return found
