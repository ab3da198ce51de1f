"""Why a method gave no number, in words: what every benchmark says of the decisions that have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from credit.bench.rounding import rounded
from credit.methods.own_results import NotFiniteError
from estimators.base import REASONS, Reason
from graphs.errors import CreditError

__all__ = ["LeftOut", "main_reason", "refused_line", "why_refused"]

T = TypeVar("T")


class LeftOut:
    """What a benchmark leaves out because a method gave numbers that are not finite; it measures the rest."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[list[str], str]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def try_one(self, name: str, place: str, measure: Callable[[], T]) -> T | None:
        """What `measure` gives; None where it is left out, with a line on the method and where that was."""
        try:
            return measure()
        except NotFiniteError as error:
            self._found.setdefault(name, ([], str(error)))[0].append(place)
            return None

    def lines(self) -> list[str]:
        """A sentence for each method: where it is left out, and the first reason."""
        return [f"{name} is left out in {', '.join(at)}: {why}" for name, (at, why) in self._found.items()]

    def check(self, measured: object) -> None:
        """Refuse where nothing was measured.

        Raises:
          CreditError: has the lines.
        """
        if self._found and not measured:
            raise CreditError("; ".join(self.lines()))


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
    share = rounded(100 * (1 - answered), ends=(0, 100))
    return f"{name} gave no number for {share} % of the decisions, most often: {why}"
