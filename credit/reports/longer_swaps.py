"""An agent that acts instead of another in failed runs that are longer, too: either may be why they failed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from credit.reports.compared_kinds import ComparedKinds
from graphs.text import amount, apart, counted, printable

__all__ = ["LongerSwap", "longer_swap"]

MOST = 0.8
"""Part of the runs in which just one of two agents acts from which one acts instead of the other."""


class LongerSwap(NamedTuple):
    """Such runs, in words; and a failed one, by its place among the traces compared."""

    told: str = ""
    example: int = -1


def longer_swap(
    compared: ComparedKinds, acting: Mapping[str, tuple[bool, np.ndarray]], length: np.ndarray, good: str
) -> LongerSwap:
    """The first agent of those that more failed runs have which acts instead of one of those that fewer have.

    Args:
      compared: the traces that are compared.
      acting: agents that more failed traces have beyond chance, or fewer: whether it is more, and whether each of these
        has it, NaN where the log does not tell: float [n].
      length: events of each of these traces: float [n].
      good: what traces did that did not fail.
    """
    for agent, other in itertools.permutations(acting, 2):
        (more, has), (as_often, lacks) = acting[agent], acting[other]
        if not more or as_often:
            continue
        tells = compared.of_traces(has, compared.counts(has).varied) & np.isfinite(lacks) & np.isfinite(length)
        runs, others = tells & (has > 0), tells & (has == 0)
        swapped = (has + lacks == 1)[tells].sum() >= MOST * tells.sum()
        if not (runs.any() and swapped and length[runs].mean() > length[others].mean()):
            continue
        won, some, rest, every, tasks = compared.counts(np.where(tells, has, np.nan)).where_varied()
        longer, shorter = apart((length[runs].mean(), length[others].mean()), amount, 3)
        told = (
            f"within {counted(tasks, 'task')} with such runs and others, {won} of {some} runs with "
            f"{printable(agent, 40)} instead of {printable(other, 40)} {good} and {rest} of {every} others. The former "
            f"are longer, too ({longer} against {shorter} events): the log cannot tell whether the agent, the length "
            "or what went wrong before is why"
        )
        return LongerSwap(told, int(np.argmax(runs & compared.failed)))
    return LongerSwap()
