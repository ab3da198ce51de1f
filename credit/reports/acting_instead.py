"""Agents that act in the place of one that is left out: one cause, however many take its place."""

from __future__ import annotations

import numpy as np

from credit.reports.cause_candidates import ALMOST, Candidate
from credit.reports.cause_tests import CauseTest
from credit.reports.compared_kinds import ComparedKinds
from credit.reports.handoffs import of_any_instead
from graphs.task_means import LEVEL

__all__ = ["acting_instead"]


def acting_instead(
    kinds: ComparedKinds, every: list[Candidate], values: list[np.ndarray], tests: list[CauseTest], trace: np.ndarray
) -> tuple[dict[int, Candidate], set[int]]:
    """Which candidates become causes of several agents in the place of one, and which ones another cause tells.

    In tasks that have runs with an agent and runs without it, others take its place if almost all of their runs lack
    it. Then that it is left out is the cause. Where one of the others is a surer cause, and the rest of the runs
    without the agent are not surely worse, that other one is the cause. The words name all others if all runs
    without the agent have one of them. The event to look at is the one that handed a run to one of them.

    Args:
      kinds: which traces are compared, within tasks.
      every: the candidates.
      values: whether each compared trace has each of them.
      tests: of each.
      trace: of each event.
    """
    found, told = dict[int, Candidate](), set[int]()
    acting = [i for i, one in enumerate(every) if one.of_agent and one.quotes]
    inside, varied = np.zeros((2, len(every), len(kinds.rows)), bool)
    for i in [*acting, *(i for i, one in enumerate(every) if one.of_agent and not one.quotes)]:
        varied[i] = kinds.of_traces(values[i], kinds.counts(values[i]).varied)
    for i, one in enumerate(every):
        if not one.of_agent or one.quotes or not (tests[i].sure or tests[i].near):
            continue
        lacks = (values[i] > 0) & varied[i]
        runs = {j: (values[j] > 0) & varied[i] for j in acting if every[j].of_agent != one.of_agent}
        runs = {j: its for j, its in runs.items() if its.any() and (its & lacks).sum() >= ALMOST * its.sum()}
        if len(runs) < 2 or max(its.sum() for its in runs.values()) > (~lacks & varied[i]).sum():
            continue  # who acts more often than it is in nobody's place
        surer = [j for j in runs if tests[j].sure and (tests[j].p < tests[i].p or not tests[i].sure)]
        if surer:
            best = min(surer, key=lambda j: tests[j].p)
            chance, _, _, p, *_ = kinds.test(np.where(values[best] > 0, np.nan, values[i]))
            if not (chance > 0.5 and p < LEVEL):
                told.add(i)
                continue
        for j, its in runs.items():
            inside[j] |= its & lacks
        of_any = np.any([*runs.values()], axis=0)
        apart = of_any.sum() >= ALMOST * sum(int(its.sum()) for its in runs.values())
        if apart and not (lacks & ~of_any).any():  # all runs that are counted
            each = [every[j] for j in sorted(runs, key=lambda j: -int(runs[j].sum()))]
            rows, whose = np.concatenate([of.rows for of in each]), {of.agent for of in each}
            found[i] = one._replace(
                words=of_any_instead([(of.words, of.of_agent) for of in each], one.of_agent),
                rows=np.sort(rows[np.isin(trace[rows], trace[one.rows])]),
                agent=whose.pop() if len(whose) == 1 else "", of_agent="", quotes=True,
            )  # fmt: skip
    for j in acting:
        its = (values[j] > 0) & (varied[j] | inside[j])
        if 2 * inside[j].sum() > its.sum():
            told.add(j)
    return found, told
