"""`Signal`: advantages to train on, with the conditions under which they are unbiased."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal, NamedTuple

import jax
import numpy as np

from estimators.base import REASONS, Credit
from estimators.composition.gradient import Gradient, policy_gradient
from graphs.event_graph import Array, EventGraph
from graphs.text import counted

__all__ = ["LIMIT", "Condition", "Kind", "Signal", "Spread"]

Kind = Literal["control", "entry", "even"]


class Condition(NamedTuple):
    """A condition under which the advantages are unbiased.

    Attributes:
      name: what it is about.
      holds: whether it holds; None where the batch cannot tell.
      why: the reason, in words.
      stated: True where nothing was checked because the caller, a claim or the log declares it.
    """

    name: str
    holds: bool | None
    why: str
    stated: bool = False

    def __str__(self) -> str:
        unknown = "as stated" if self.stated else "not checked"
        return f"{self.name}: {({True: 'holds', False: 'BROKEN', None: unknown})[self.holds]}: {self.why}"


LIMIT = 10.0
"""The largest advantage that is given without a scale, in spreads of the rewards of its group."""


class Spread(NamedTuple):
    """Standard deviations over actions of R − b and of the advantages before any scale, and what R − b is called.

    `none_fitted` says why no coefficient was fitted, if none was.
    """

    before: float
    after: float
    plain: str
    none_fitted: str = ""


@dataclasses.dataclass(frozen=True)
class Signal:
    """Advantages to train on, and the conditions under which they hold; `str` states them in words.

    Attributes:
      graph: the batch.
      credit: the numbers; `credit.advantage` [E] multiplies the policy gradient, `valid` says where there is one.
      kind: "control", "entry" or "even".
      conditions: those under which the advantages are unbiased.
      used: the sources whose claims entered.
      refused: the other sources, each with the condition that it would have broken.
      beta: float [S, T], the coefficients of `used`; empty for other kinds.
      coverage: of the ledger: 1 − Var(unexplained) / Var(R − expected).
      claimed: the share of actions that carry a claim.
      scale: what divided the advantages last, in words; empty if nothing did.
      largest: the largest advantage before any scale, in spreads of its group's rewards (`credit.ledger.scales`).
      spread: what claims change in the spread of "control"; None for other kinds.
    """

    graph: EventGraph
    credit: Credit
    kind: Kind
    conditions: tuple[Condition, ...]
    used: tuple[str, ...]
    refused: Mapping[str, str]
    beta: jax.Array
    coverage: float
    claimed: float
    scale: str
    largest: float
    spread: Spread | None

    @property
    def effect(self) -> str:
        """What the claims change in the spread of "control", in words; "" for other kinds."""
        if self.spread is None:
            return ""
        before, after, plain, none_fitted = self.spread
        count = counted(int(np.asarray(self.credit.valid).sum()), "action")
        words = f"standard deviation over {count}: {plain} {before:.3g}, control {after:.3g}"
        if self.used and not self._takes:
            words += f"; β = 0{none_fitted and f', as {none_fitted}'}: this is {plain}"
        elif self.used and not self.narrows:
            words += f"; nothing gained: not below {plain}"
        return words

    @property
    def narrows(self) -> bool:
        """Whether claims take part in "control" and make its standard deviation less than without them."""
        return self._takes and self.spread is not None and self.spread.after < self.spread.before

    @property
    def _takes(self) -> bool:
        """Whether a claim takes part with another coefficient than 0."""
        return bool(self.used) and bool(np.any(np.abs(np.asarray(self.beta)) > 0))

    @property
    def unbiased(self) -> bool | None:
        """True if every condition holds, False if one is broken, None if one could not be checked."""
        states = [condition.holds for condition in self.conditions]
        return False if False in states else None if None in states else True

    def gradient(self, score: Array) -> Gradient:
        """The policy gradient by these advantages with its standard error; `score` [E, D] is ∇ log π of each action.

        See `estimators.composition.gradient.policy_gradient`.
        """
        gradient: Gradient = policy_gradient(self.graph, self.credit, score)
        return gradient

    def __str__(self) -> str:
        verdict = {True: "unbiased", False: "biased", None: "unbiased if what could not be checked holds"}
        reason = np.asarray(self.credit.reason)[np.asarray(self.graph.event_mask) & np.asarray(self.graph.action_mask)]
        without = {REASONS[code]: int((reason == code).sum()) for code in np.unique(reason[reason != 0])}
        conclusion = "refused for every action" if len(reason) and reason.all() else verdict[self.unbiased]
        lines = [f"advantage {self.kind!r}: {conclusion}"]
        lines += [f"  {condition}" for condition in self.conditions]
        lines += [f"  {counted(count, 'action')} of {len(reason)} without: {why}" for why, count in without.items()]
        lines += [f"  left out {source}: {why}" for source, why in self.refused.items()]
        if self.largest > LIMIT and not self.scale:
            times = f"the largest advantage is {self.largest:.4g} times the spread of its group's rewards"
            none = "no group's rewards differ, so that nothing says whether these advantages are large"
            lines.append(f"  look: {times if np.isfinite(self.largest) else none}")
        if self.kind == "control" and not self.used:
            lines.append("  no claim takes part: each is the reward minus the baseline; the next line is of the ledger")
        if self.used and self.effect:
            lines.append(f"  {self.effect}")
        lines.append(f"  coverage {self.coverage:.3f}, {self.claimed:.1%} of actions claimed")
        return "\n".join(lines)
