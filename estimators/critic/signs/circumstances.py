"""Under which circumstances an event happened, as a critic sees them: numbers of the prefix before it.

An additive critic gives a message one worth, whatever came before. After a mistake that spoiled the rest, its true
worth is 0. The critic's own values of the prefix show such a mistake, as a loss of value or one large increment.
"""

from __future__ import annotations

import numpy as np

__all__ = ["CIRCUMSTANCES", "circumstances"]

CIRCUMSTANCES = (
    "change of value since the start",
    "least increment so far",
    "greatest increment so far",
    "actions so far",
)
"""What `circumstances` gives of each event, in words; increments of actions only, 0 before the first."""


def circumstances(before: np.ndarray, amount: np.ndarray, trace: np.ndarray, action_mask: np.ndarray) -> np.ndarray:
    """The numbers of `CIRCUMSTANCES` of each event, from the prefix before it.

    Args:
      before: float [E], V̂ before each event; before a trace's first, that of the empty prefix.
      amount: float [E], increments.
      trace: int [E]; events of a trace stand together, in order.
      action_mask: bool [E], events that a policy chose.

    Returns:
      float64 [4, E].
    """
    first = np.flatnonzero(np.concatenate([np.ones(min(len(trace), 1), bool), trace[1:] != trace[:-1]]))
    length = np.diff(np.append(first, len(trace)))
    begin = np.repeat(first, length)
    before, amount = before.astype(np.float64), np.where(action_mask, amount, 0.0)
    least, greatest = np.zeros(len(trace)), np.zeros(len(trace))
    for at, size in zip(first.tolist(), length.tolist(), strict=True):
        earlier = amount[at : at + size - 1]
        least[at + 1 : at + size] = np.minimum(np.minimum.accumulate(earlier), 0)
        greatest[at + 1 : at + size] = np.maximum(np.maximum.accumulate(earlier), 0)
    acted = np.cumsum(action_mask) - action_mask
    return np.stack([before - before[begin], least, greatest, (acted - acted[begin]).astype(np.float64)])
