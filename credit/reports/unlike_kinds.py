"""Which kinds of task fail more often than the others, or less, beyond chance.

Reference: Fisher 1935, The Design of Experiments; Holm 1979; Tarone 1990.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from credit.reports.deciding_verdict import stands_for
from credit.reports.judged_traces import JudgedTraces
from credit.reports.tasks import task_ids
from graphs.dealing import dealt
from graphs.task_means import LEVEL, fact_of, holm
from graphs.text import part_of, printable
from graphs.traces.batch import Traces

__all__ = ["UnlikeKind", "UnlikeKinds", "unlike_kinds"]


class UnlikeKind(NamedTuple):
    """A kind that differs beyond chance from the others, but for those that were found before it.

    Attributes:
      kind: its place.
      more: whether it fails more often.
      own, others: how many of its traces, and of those of the others, failed, of how many with an outcome.
    """

    kind: int
    more: bool
    own: tuple[int, int]
    others: tuple[int, int]


class UnlikeKinds(NamedTuple):
    """The kinds that differ, as they were found, whether any could have, and in words which do."""

    found: tuple[UnlikeKind, ...] = ()
    tested: bool = False
    told: str = ""


def unlike_kinds(traces: Traces, judged: JudgedTraces, names: list[str], kind: np.ndarray) -> UnlikeKinds:
    """Test each kind of task against all others and, once one is told, each of the rest: first the surest of those that
    fail more, then of those that fail less.

    By chance it would be the kind of other tasks with as many runs, since runs of a task may fail alike
    (`graphs.dealing.dealt`). None is tested where a verdict decides which traces have an outcome.

    Args:
      traces: what was read.
      judged: `judged_traces` of these.
      names, kind: of `every_kind`.

    Examples:
      >>> import credit
      >>> from credit.reports.judged_traces import judged_traces
      >>> task = np.arange(40)
      >>> _, _, rows = credit.from_columns(group=task.tolist(), trace=task.tolist(), reward=(task % 4 == 0) * 1.0)
      >>> unlike_kinds(rows.traces, judged_traces(rows.traces), ["bug", "docs"], (task % 4 == 0) * 1).told
      'Beyond chance, bug fails more often than the other kinds: 30 of 30 (100 %) against 0 of 10.'
    """
    rows = judged.rows[kind[judged.rows] >= 0]
    if judged.of_task or not names or stands_for(traces) is not None:
        return UnlikeKinds()
    _, first, of = np.unique(task_ids(traces)[rows], return_index=True, return_inverse=True)
    bad, size, its = np.bincount(of, judged.failed[rows]), np.bincount(of), kind[rows][first]
    found, tested, worst = list[UnlikeKind](), False, 0.0
    while len(left := np.unique(its)) > 1:
        tests = [dealt(bad, its == one, size) for one in left]
        facts = [fact_of((its == one) * 1.0) for one in left]
        sure = holm([test.p for test in tests], facts, [test.least for test in tests])
        above = bad - (np.bincount(size, bad) / np.maximum(np.bincount(size), 1))[size]  # tasks with as many runs
        more = [float(above[its == one].sum()) for one in left]
        # What fails more than it should comes first: behind a better kind it would be held against the rest alone.
        place = min(range(len(left)), key=lambda i: (sure[i] >= LEVEL, sure[i] < LEVEL and more[i] <= 0, sure[i]))
        tested, worst = tested or any(test.least < LEVEL for test in tests), max(worst, sure[place])
        if worst >= LEVEL:
            break
        mine = its == left[place]
        own, others = ((int(bad[part].sum()), int(size[part].sum())) for part in (mine, ~mine))
        found.append(UnlikeKind(int(left[place]), more[place] > 0, own, others))
        bad, size, its = bad[~mine], size[~mine], its[~mine]
    said = [f"{printable(names[one.kind], 60)} fails {'more' if one.more else 'less'} often than "
            f"{'the rest' if place else 'the other kinds'}: {part_of(*one.own)} against {part_of(*one.others)}"
            for place, one in enumerate(found)]  # fmt: skip
    return UnlikeKinds(tuple(found), tested, f"Beyond chance, {'; '.join(said)}." if said else "")
