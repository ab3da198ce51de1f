"""Event rewards that are the outcome again, so that methods, which add them to it, count it twice."""

from __future__ import annotations

import numpy as np

from graphs.traces.real_numbers import are_real

__all__ = ["SEVERAL", "may_be_outcome", "outcome_again"]

NEARLY = 0.9
"""The part of the traces from which on a last reward that is the outcome is called a copy."""

SEVERAL = 4
"""From how many numbers on it is no chance that all are outcomes: a bonus of 1 beside outcomes of 0 and 1 often is."""

_HALF = 0.5  # of the traces with an outcome: real numbers that are equal in as many are no chance


def outcome_again(event_reward: np.ndarray, outcome: np.ndarray, trace: np.ndarray) -> str:
    """Where event rewards are the outcomes, in words, else "": of each row [N] in order, the trace from 0.

    Trainers copy the outcome to every row, or to the last one after rewards of steps, or add it to that one's;
    environments pay it in steps, often on the last one, and log their sum as the outcome. Copies are not called so
    where all outcomes are equal: each step may have earned as much. A sum of one row is a copy, and that of a trace
    alone says nothing, nor do sums of rewards that cancel, where their rounding is not small beside the outcomes.

    Examples:
      >>> score, trace = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1, 1])
      >>> outcome_again(score, score, trace), outcome_again(np.array([0.0, 1.0, 0.0, 0.0]), score, trace)
      ('in every row', 'in the sum of each trace')
    """
    return _compared(event_reward, outcome, trace)[0]


def may_be_outcome(event_reward: np.ndarray, outcome: np.ndarray, trace: np.ndarray) -> bool:
    """Whether last rewards of half of the traces are their outcomes, more than by chance, or some are to each digit.

    Args:
      event_reward, outcome, trace: as of `outcome_again`.

    Examples:
      >>> trace, score = np.repeat(np.arange(80), 2), np.repeat(np.arange(80) % 2.0, 2)
      >>> last, often = np.tile([0, 1], 80), np.repeat(np.arange(80) % 8 < 6, 2)
      >>> may_be_outcome(last * score * often, score, trace), may_be_outcome(last * often, score, trace)
      (True, False)
    """
    return _compared(event_reward, outcome, trace)[1]


def _compared(event_reward: np.ndarray, outcome: np.ndarray, trace: np.ndarray) -> tuple[str, bool]:
    known = np.isfinite(outcome)
    step, of_row, trace = np.nan_to_num(event_reward[known]), outcome[known], trace[known]
    if not of_row.any():
        return "", False
    if of_row.min() < of_row.max() and np.array_equal(
        event_reward[known].astype(np.float32), of_row.astype(np.float32)
    ):
        return "in every row", True
    traces, first = np.unique(trace, return_index=True)
    sums = np.bincount(trace, step)[traces]
    rounding = 1e-6 * np.bincount(trace, np.abs(step))[traces]
    told_apart = 1 < len(traces) < len(trace) and rounding.max() < 0.01 * np.abs(of_row).max()
    if told_apart and (np.abs(sums - of_row[first]) <= rounding).all():
        return "in the sum of each trace", True
    stated = np.flatnonzero(np.isfinite(event_reward[known]))
    last = stated[np.diff(trace[stated], append=-1) != 0]
    paid, due = step[last], of_row[last]
    told = due != 0  # a last step that earned nothing, of a trace that did not either, is no copy
    if len(np.unique(due)) < 2 or not told.any():
        return "", False
    copied = np.abs(paid - due) <= 1e-6 * np.abs(due)
    exact = len(np.unique(due[copied & are_real(due)])) >= SEVERAL
    share, several = copied[told].mean(), len(last) < len(stated)
    added = _added(paid, due, np.delete(step, last))
    if (several and (added or min(copied.mean(), share) >= NEARLY)) or (exact and share >= _HALF):
        return "in the last row of " + (
            "each trace" if added or copied.all() else f"{copied.sum()} of {len(last)} traces"
        ), True
    by_chance = np.mean([np.mean(paid == value) for value in due[told]])
    more = share - by_chance > 3 * np.sqrt(by_chance * (1 - by_chance) / np.count_nonzero(told))
    return "", bool(exact or (several and share >= _HALF and more))


def _added(paid: np.ndarray, due: np.ndarray, others: np.ndarray) -> bool:
    """Whether last rewards less the outcomes are among those of other rows, and several are not before.

    Args:
      paid, due: of the last row of each trace, its reward and the outcome.
      others: rewards of the other rows.
    """
    unit = 1e-5 * np.abs(due).max()
    before, less, earlier = (np.round(of / unit) for of in (paid, paid - due, others))
    fresh = np.count_nonzero(~np.isin(before, earlier))
    return bool(fresh >= SEVERAL and np.isin(less, earlier).all())
