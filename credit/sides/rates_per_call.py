"""Rates per call over all traces of two sides, where too few of their tasks are shared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from credit.sides.side_rows import SideDifference
from credit.sides.side_weights import compared_in
from graphs.dealing import Dealt, dealt, flipped
from graphs.kind_means import stratum_shares
from graphs.task_means import LEVEL

__all__ = ["CallRates", "compare_rates"]


class CallRates(NamedTuple):
    """The rates of two sides.

    Attributes:
      row: their means over the kinds of tasks, each weighing as much on both sides, and the test that they are alike.
      kept: which traces are compared: bool [traces].
    """

    row: SideDifference
    kept: np.ndarray


def compare_rates(
    wrong: np.ndarray, made: np.ndarray, side: np.ndarray, task: np.ndarray, kind: np.ndarray
) -> CallRates:
    """The rates of calls that went wrong, within the kinds of tasks that both sides have, else of all.

    A trace's score is what went wrong beyond the rate of its kind. Tasks of one side are dealt between the sides as a
    whole, within their kind, and traces of the others within their task. The larger p of that and of tasks' sums with
    either sign counts: the first is too small where tasks of the sides differ in spread, the second where one side has
    few failures.

    Args:
      wrong: how many calls of each trace went wrong: int [traces].
      made: the calls of each trace: int [traces].
      side: 0 or 1 of each trace, -1 for one that is not compared: int [traces].
      task: of each trace: int [traces].
      kind: of each trace, one of a task: int [traces].

    Reference: Cochran 1954, Some methods for strengthening the common χ² tests; Kline and Santos 2012, A score based
    approach to wild bootstrap inference.

    Examples:
      >>> side, task = np.repeat([0, 1], 10), np.arange(20)
      >>> found = compare_rates(side, np.ones(20, int), side, task, np.zeros(20, int))
      >>> found.row.first, found.row.second, found.row.stands_out
      (0.0, 1.0, True)
    """
    asked = np.where(made > 0, side, -1)
    kept, stratum = compared_in(asked, np.arange(len(side)), kind)
    rows = np.flatnonzero(kept)
    second = side[rows] == 1
    _, of = np.unique(stratum[rows], return_inverse=True)
    tasks, its = np.unique(task[rows], return_inverse=True)
    calls, failed = (np.stack([np.bincount(of, by[rows] * one) for one in (~second, second)]) for by in (made, wrong))
    first, other = (failed / calls) @ stratum_shares(calls)
    score = wrong[rows] - (failed.sum(axis=0) / calls.sum(axis=0))[of] * made[rows]
    runs = np.bincount(its, second), np.bincount(its, ~second)
    both = np.minimum(*runs) > 0
    lean = np.bincount(its, (second - (calls[1] / calls.sum(axis=0))[of]) * score)
    alone = np.flatnonzero(~both)
    kind_of = np.zeros(len(tasks), int)
    kind_of[its] = of
    within = both[its]
    as_dealt = dealt(
        np.concatenate([score[within], np.bincount(its, score)[alone]]),
        np.concatenate([second[within], runs[0][alone] > 0]),
        np.concatenate([its[within], len(tasks) + kind_of[alone]]),
    )
    as_flipped = flipped(lean.round(12))  # sums that are alike but for rounding are ties
    test = Dealt(max(as_dealt.p, as_flipped.p), max(as_dealt.least, as_flipped.least))
    of_side = int((~second).sum()), int(second.sum())
    row = SideDifference(
        "",
        float(first),
        float(other),
        float(other - first),
        low=None,
        high=None,
        p=test.p if test.least < LEVEL else None,
        least=test.least if test.least < 1 else None,
        seen=None,
        tasks=len(tasks),
        traces=of_side,
        paired=False,
        differing=None,
        refused={},
        asked=of_side,
        within=0 if np.ptp(of) == 0 else int(of.max()) + 1,
        no_interval="of all calls",
    )
    return CallRates(row, kept)
