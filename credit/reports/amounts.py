"""Evidence that lies far from the outcomes it is compared with, as numbers in another unit do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from graphs.traces.batch import Traces
from graphs.traces.schema import LIKE_OUTCOMES

__all__ = ["Amounts", "amounts_of", "far_from_outcomes"]

FAR = 1.5
"""Widths of the range of outcomes, above which a root mean square distance from its middle is far. Numbers that are
spread evenly over three such widths, the range in their middle, are not."""

SMALL, SURE = 10.0, 4.0
"""How many times the largest of a key's numbers the mean return is where it is far, too, and how many of its standard
errors they are apart: right values have the mean of returns."""

FEW = 10
"""Equal outcomes, below which the rewards at events beside them tell no unit."""

OUTCOMES = "outcome"
"""The name of the outcomes alone, whose range tells their unit."""


class Amounts(NamedTuple):
    """Numbers that were met: how many, their sum, that of their squares, the least and the greatest."""

    number: int
    total: float
    squares: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: np.ndarray) -> Amounts:
        """Of float64 [N], at least one."""
        total, squares = float(numbers.sum()), float(np.sum(numbers**2))
        return cls(len(numbers), total, squares, float(numbers.min()), float(numbers.max()))

    def joined(self, other: Amounts) -> Amounts:
        """Of these and of others."""
        number, total, squares = self.number + other.number, self.total + other.total, self.squares + other.squares
        return Amounts(number, total, squares, min(self.least, other.least), max(self.most, other.most))


def amounts_of(traces: Traces) -> dict[str, Amounts]:
    """Outcomes under the name "", with all that rewards at events may add or take, and alone; and evidence."""
    n = traces.sizes
    outcome = np.asarray(traces.reward[: n.traces], np.float64)
    room = np.zeros_like(outcome)
    step = traces.evidence.get("event_reward")
    if step is not None:
        sizes = np.abs(np.where(step.mask, step.array, 0)[: n.events])
        room += np.bincount(np.asarray(traces.graph.trace_ids[: n.events]), sizes, n.traces)
    ends = np.concatenate([outcome - room, outcome + room])
    stated = {"": ends[np.isfinite(ends)], OUTCOMES: outcome[np.isfinite(outcome)]} | {
        name: traces.evidence[name].amounts.astype(np.float64)
        for name in sorted(LIKE_OUTCOMES - {"agent_reward"})
        if name in traces.evidence
    }
    return {name: Amounts.of(numbers) for name, numbers in stated.items() if len(numbers)}


def far_from_outcomes(amounts: Mapping[str, Amounts]) -> dict[str, str]:
    """The keys of evidence whose numbers lie far from the outcomes, with both ranges in words.

    Examples:
      >>> percent, outcomes = Amounts.of(np.array([20.0, 90.0])), Amounts.of(np.array([0.0, 1.0]))
      >>> far_from_outcomes({"": outcomes, "value": percent})
      {'value': '20 to 90 beside outcomes of 0 to 1'}
    """
    returns = amounts.get("")
    if returns is None or returns.most <= returns.least:
        return {}
    outcomes = amounts.get(OUTCOMES, returns)
    if outcomes.most <= outcomes.least and outcomes.number < FEW:
        return {}
    middle, width = (returns.least + returns.most) / 2, returns.most - returns.least
    mean = returns.total / returns.number
    error = math.sqrt(max(returns.squares / returns.number - mean**2, 0) / outcomes.number)
    kind = "outcomes" if (returns.least, returns.most) == (outcomes.least, outcomes.most) else "returns"
    found = {}
    for name, a in amounts.items():
        apart = math.sqrt(max(a.squares / a.number - 2 * middle * a.total / a.number + middle**2, 0))
        size = max(-a.least, a.most)
        small = name.endswith("value") and 0 < SMALL * size < abs(mean) and abs(mean) - size > SURE * error
        if name not in ("", OUTCOMES) and (apart > FAR * width or small):
            found[name] = f"{a.least:g} to {a.most:g} beside {kind} of {returns.least:g} to {returns.most:g}"
    return found
