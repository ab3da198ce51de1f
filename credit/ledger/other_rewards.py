"""Claims that were computed from other rewards than a ledger's: what they add up to, beside the reward of the trace.

A ledger is given the total of each trace, outcome and rewards at events. Methods get the two apart, so a call can
leave one of them out on one side only. A result tells what it was computed from:

    total     its credit is the reward of the trace
    return    its value at the first action and its increments add up to it
"""

from __future__ import annotations

import numpy as np

from estimators.base import Credit
from graphs.event_graph import EventGraph

__all__ = ["OtherRewardsWarning", "from_other_rewards"]


class OtherRewardsWarning(UserWarning):
    """A ledger accounts for other rewards than those that a claim was computed from."""


RELATIVE = 1e-3
"""Of the largest number of a trace, up to which sums differ by rounding."""


def from_other_rewards(graph: EventGraph, total: np.ndarray, offered: Credit, claim: Credit | None = None) -> str:
    """Why a result cannot be of these rewards, with the first trace that shows it; "" where nothing does.

    Args:
      graph: the batch.
      total: float [T], the total of each trace; NaN where it has none.
      offered: a result of estimand "total" or "return"; others do not tell.
      claim: a return as increments.
    """
    trace, num = np.asarray(graph.trace_ids), graph.num_traces
    actions = np.flatnonzero(np.asarray(graph.event_mask) & np.asarray(graph.trained_mask))
    first = actions[np.diff(trace[actions], prepend=-1) != 0]
    claimed = np.full(num, np.nan)
    if offered.estimand == "total" and offered.unit == "trace":
        valid = np.flatnonzero(np.asarray(offered.valid))
        claimed[trace[valid]] = np.asarray(offered.credit, np.float64)[valid]
        size = np.abs(claimed)
    elif offered.estimand == "return" and claim is not None:
        values = None if offered.recursion is None else offered.recursion.values
        start = np.asarray(offered.baseline if values is None else values.value, np.float64)
        amount = np.where(np.asarray(claim.valid), np.asarray(claim.credit, np.float64) - np.asarray(claim.baseline), 0)
        claimed[trace[first]] = start[first] + np.bincount(trace, amount, num)[trace[first]]
        claimed[trace[actions[~np.asarray(claim.valid)[actions]]]] = np.nan  # a sum with gaps is no total
        size = np.bincount(trace, np.abs(amount), num)
    else:
        return ""
    off = np.abs(claimed - total) > RELATIVE * np.maximum(np.abs(total), size)
    if not off.any():
        return ""
    row = int(np.argmax(off))
    return (
        f"{offered.source!r} adds up to {claimed[row]:.6g} in trace {row}, whose return is {total[row]:.6g}: it is of "
        "other rewards (rewards at events are `compose(..., event_reward=)`), of some rows' rewards only, or of "
        "what no action earned, as a reward before the first action or a bootstrap"
    )
