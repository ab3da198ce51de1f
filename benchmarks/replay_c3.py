"""C3's advantages and stated errors from the runs of a plan, by its formula on each trace: much faster than by files.

`replay.py` compares the first set with the numbers that the command line gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

import credit
from credit.replay.replay_plan import Job, ReplayPlan
from credit.replay.run_results import Results
from credit.reports.trace_returns import returns

__all__ = ["c3_numbers"]


def c3_numbers(traces: credit.Traces, plan: ReplayPlan, results: Results, truth: Callable[[Job], float]) -> np.ndarray:
    """Advantage, stated standard error and true increment of each decision that another one follows: float64 [N, 3]."""
    outcome = dict(zip(traces.traces["trace"].to_pylist(), returns(traces).tolist(), strict=True))
    runs = results.outcomes()
    by_trace: dict[str, list[int]] = {}
    for number, job in enumerate(plan.jobs):
        by_trace.setdefault(job.prefix.trace, []).append(number)
    rows = []
    for trace, numbers in by_trace.items():
        leaf, weight = np.array([outcome[trace]]), np.ones(1)  # below the logged choice of the last decision
        of_trace = []
        for number, after in reversed(list(itertools.pairwise(numbers))):
            later, own = runs[after], runs[number]
            share = 1 / (len(later) + 1)  # each run is a child of the logged choice, and so is the next logged choice
            leaf = np.concatenate([later, leaf])
            weight = np.concatenate([np.full(len(later), share), share * weight])
            value = float(weight @ leaf)
            spread = float((weight**2) @ (leaf - value) ** 2) / (1 - float(weight @ weight))
            siblings = np.append(own, value)
            among = float(((siblings - siblings.mean()) ** 2).sum()) / len(own) ** 2
            true = truth(plan.jobs[after]) - truth(plan.jobs[number])
            of_trace.append((value - own.mean(), np.sqrt(spread + among), true))
        rows += reversed(of_trace)
    return np.array(rows)
