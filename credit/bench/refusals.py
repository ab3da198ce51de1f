"""Why a method gave no number, in words: what every benchmark says of the decisions that have none."""

from __future__ import annotations

import numpy as np

from estimators.base import REASONS, Reason

__all__ = ["main_reason", "refused_line", "why_refused"]


def why_refused(reason: np.ndarray) -> str:
    """The most frequent reason among these decisions, in words; "" where all have a number.

    Args:
      reason: codes of `estimators.base.Reason`, integers of any shape.

    Examples:
      >>> why_refused(np.array([0, 4, 4, 3]))
      'nothing to compare with: the group has one member'
      >>> why_refused(np.array([0]))
      ''
    """
    codes = np.asarray(reason).ravel()
    return main_reason(np.bincount(codes, minlength=len(REASONS)))


def main_reason(counts: np.ndarray) -> str:
    """As `why_refused`, from how many decisions have each reason: [len(REASONS)].

    Examples:
      >>> main_reason(np.array([3, 0, 0, 1]))
      'no outcome is known'
    """
    refused = np.where(np.arange(len(counts)) == Reason.VALID, 0, counts)
    return REASONS[int(refused.argmax())] if refused.any() else ""


def refused_line(name: str, answered: float, why: str) -> str:
    """The line on a method that gave only some decisions a number.

    Examples:
      >>> refused_line("rloo", 0.25, "no outcome")
      'rloo gave no number for 75 % of the decisions, most often: no outcome'
    """
    return f"{name} gave no number for {100 * (1 - answered):.3g} % of the decisions, most often: {why}"
