"""Why a method gave no number, in words: what every benchmark says of the decisions that have none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from credit.bench.rounding import rounded
from credit.methods.own_results import UnmeasuredError
from estimators.base import REASONS, Reason
from graphs.errors import CreditError
from graphs.text import counted, printable

__all__ = [
    "COUNTED",
    "Absent",
    "LeftOut",
    "absent_caption",
    "absent_lines",
    "main_reason",
    "refused_beside",
    "refused_caption",
    "refused_lines",
    "refused_share",
    "why_refused",
]

T = TypeVar("T")


class Absent(NamedTuple):
    """A method that a benchmark leaves out, which its tables and figures name.

    Attributes:
      method, place: names; the place is a world or a task, "every world" or "every task".
      why: the reason, in words; "" where it is not known.
      size: of the groups; None where it is left out in groups of all sizes.
    """

    method: str
    place: str
    why: str
    size: int | None = None


class LeftOut:
    """What a benchmark leaves out, such as a method that raises; it measures the rest."""

    def __init__(self) -> None:
        self.absent: list[Absent] = []

    def __contains__(self, name: str) -> bool:
        return any(name == one.method for one in self.absent)

    def try_one(self, name: str, place: str, measure: Callable[[], T], size: int | None = None) -> T | None:
        """What `measure` gives; None where it is left out, which `absent` then names with where that was."""
        try:
            return measure()
        except UnmeasuredError as error:
            self.absent.append(Absent(name, place, str(error), size))
            return None

    def keep(self, names: Sequence[str], place: str, find: Callable[[str], object]) -> tuple[str, ...]:
        """The names that `find` takes; one that it cannot take does not keep the others from being measured.

        Raises:
          CreditError: it takes none; has the lines.
        """
        for name in names:
            self.try_one(name, place, functools.partial(find, name))
        kept = tuple(name for name in names if name not in self)
        self.check(kept)
        return kept

    def check(self, measured: object) -> None:
        """Refuse where nothing was measured.

        Raises:
          CreditError: has the lines.
        """
        if self.absent and not measured:
            raise CreditError("; ".join(absent_lines(self.absent)))


def absent_lines(absent: Iterable[Absent]) -> list[str]:
    """A sentence for each method and size of groups: where it is left out, and the first reason.

    Examples:
      >>> absent_lines([Absent("a", "relay-and", "no", 2), Absent("a", "spawn-and", "no", 2)])
      ['a, size 2, is left out in relay-and, spawn-and: no']
    """
    found: dict[tuple[str, int | None], list[Absent]] = {}
    for one in absent:
        found.setdefault((one.method, one.size), []).append(one)
    return [
        f"{name}{f', size {size},' if size else ''} is left out in {', '.join(dict.fromkeys(o.place for o in of))}: "
        f"{of[0].why}"
        for (name, size), of in found.items()
    ]


MOST_TOLD, LONGEST = 4, 160
"""Reasons that a caption gives where each method has had one, and the characters of each."""


def absent_caption(absent: Iterable[Absent], name: Callable[[str], str] = str) -> str:
    """What a caption says of them: who, where, and in brackets why, each reason once; "" without any.

    The first reason of a method always stands there; further ones do up to `MOST_TOLD`.

    Args:
      name: how a method is shown.

    Examples:
      >>> absent_caption([Absent("a", "relay-and", "no"), Absent("b", "relay-and", "no"), Absent("c", "", "why"),
      ...                 Absent("a", "spawn-and", "no")])
      'left out: a in relay-and, spawn-and and b in relay-and (no); c (why)'
    """
    found: dict[str, dict[str, dict[str, None]]] = {}  # by reason and method the places
    for one in absent:
        found.setdefault(one.why, {}).setdefault(name(one.method), {})[one.place] = None
    firsts = {method: why for why, of in reversed(found.items()) for method in of}
    needed = set(firsts.values())
    further = [why for why in found if why not in needed][: max(0, MOST_TOLD - len(needed))]
    told = []
    for why, of in found.items():
        if why not in needed and why not in further:
            continue
        by_places: dict[str, list[str]] = {}
        for method, places in of.items():
            by_places.setdefault(", ".join(filter(None, places)), []).append(method)
        who = [
            (", ".join(few) if len(few) < 4 else f"{len(few)} methods") + (f" in {where}" if where else "")
            for where, few in by_places.items()
        ]
        told.append(" and ".join(who) + (f" ({printable(why, LONGEST)})" if why else ""))
    more = len(found) - len(told)
    told += [f"and {counted(more, 'more reason')}"] * bool(more)
    return f"left out: {'; '.join(told)}" if told else ""


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


COUNTED = {
    "bias": "count as 0 in bias, cosine, variance and relative, and not in other scores",
    "truth": "stand in no score",
    "robustness": "count as 0",
    "snr": "count as 0",
    "train": "count as 0",
}
"""By the command of `credit bench`, what becomes of the decisions that have no number."""


def refused_lines(rows: Iterable[tuple[str, float, str]], counted: str = "") -> list[str]:
    """A line for each method and reason of decisions that have no number.

    Args:
      rows: who, the share that was answered, and the main reason of the others; of all answered none is told.
      counted: what becomes of the others, one of `COUNTED`.

    Examples:
      >>> refused_lines([("rloo", 0.25, "no outcome"), ("rloo", 0.5, "no outcome"), ("grpo", 1.0, "")], "count as 0")
      ['rloo gave no number for 50 to 75 % of the decisions, which count as 0; most often: no outcome']
    """
    shares: dict[tuple[str, str], list[float]] = {}
    for name, answered, why in rows:
        if answered < 1:
            shares.setdefault((name, why), []).append(100 * (1 - answered))
    lines = []
    for (name, why), of in shares.items():
        share = " to ".join(dict.fromkeys(rounded(one, ends=(0, 100)) for one in (min(of), max(of))))
        told = f"{share} % of the decisions{f', which {counted}' if counted else ''}"
        lines.append(f"{name} gave no number for {told}; most often: {why}")
    return lines


def refused_caption(answered: Iterable[tuple[str, float]]) -> str:
    """What a figure says of methods that refused decisions, from the share that each answered; the least one counts.

    Examples:
      >>> refused_caption([("max_rl", 0.5), ("rloo", 1.0), ("max_rl", 0.25)])
      'refused: up to 75 % of max_rl'
    """
    least: dict[str, float] = {}
    for name, share in answered:
        least[name] = min(share, least.get(name, 1.0))
    told = ", ".join(f"{refused_share(share)} of {name}" for name, share in least.items() if share < 1)
    return f"refused: up to {told}" if told else ""


def refused_beside(answered: float) -> str:
    """What stands behind a number that not all decisions have, in whole percent; "" where all were answered.

    Examples:
      >>> refused_beside(0.341), refused_beside(0.997), refused_beside(1.0)
      (', 66 % refused', ', 0.3 % refused', '')
    """
    return f", {rounded(100 * (1 - answered), '.0f', ends=(0, 100))} % refused" if answered < 1 else ""


def refused_share(answered: float) -> str:
    """How many decisions have no number.

    Examples:
      >>> refused_share(0.25)
      '75 %'
    """
    return f"{rounded(100 * (1 - answered), ends=(0, 100))} %"
