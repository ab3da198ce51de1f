"""What became of claims that were offered to a ledger: the form in which each took part, or why it did not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from credit.ledger import Ledger
from credit.ledger.auditing import part_of
from estimators.base import REASONS, Credit, Reason
from estimators.composition.votes import Errors, believed_errors

__all__ = ["OfferedClaim", "offered_claims", "why"]


class _Amounts(NamedTuple):
    """A claim's numbers on the host."""

    credit: np.ndarray
    baseline: np.ndarray
    stderr: np.ndarray
    reason: np.ndarray
    estimand: str
    source: str
    unit: str

    @classmethod
    def of(cls, claim: Credit, errors: Errors) -> _Amounts:
        credit, baseline, reason = map(np.asarray, (claim.credit, claim.baseline, claim.reason))
        stderr = believed_errors(claim, errors)
        return cls(credit, baseline, stderr, reason, claim.estimand, claim.source, claim.unit)

    def at(self, at: int) -> float | None:
        """credit − baseline; None where it is invalid."""
        return float(self.credit[at]) - float(self.baseline[at]) if self.reason[at] == 0 else None


class OfferedClaim(NamedTuple):
    """A claim, the form in which it took part, and why it did not.

    Attributes:
      name: as given.
      offered: its numbers.
      form: those of the form that the ledger holds; None where it took no part.
      refusal: why the ledger refused it; "" where it did not.
    """

    name: str
    offered: _Amounts
    form: _Amounts | None
    refusal: str


def offered_claims(ledger: Ledger, claims: Mapping[str, Credit]) -> list[OfferedClaim]:
    """The claims, each with the form of it that the ledger holds: a ledger keeps those that took part in order.

    Args:
      ledger: of these claims.
      claims: results of methods by name.
    """
    waiting, offered = list(ledger.claims), []
    for name, claim in claims.items():
        refusal = part_of(ledger, claim)
        place = next((i for i, other in enumerate(waiting) if other.source == claim.source), None)
        form = None if place is None or refusal else _Amounts.of(waiting.pop(place), ledger.errors)
        offered.append(OfferedClaim(name, _Amounts.of(claim, ledger.errors), form, refusal))
    return offered


def why(rule: str, claimed: bool, claim: OfferedClaim, votes: int, sources: int, event: int) -> str:
    """Why a claim on an event was taken, reduced or refused, in words.

    Args:
      rule: of the ledger.
      claimed: whether the event has an entry.
      claim: as offered.
      votes: claims on this event of the claim's source.
      sources: sources of claims on this event.
      event: the row of the event.
    """
    offered, form = claim.offered, claim.form
    if offered.reason[event] != 0:
        return f"no number here: {REASONS[int(offered.reason[event])]}"
    if form is None:
        if offered.estimand == "total":
            return f"{claim.refusal}; its baseline may be the expected reward at the start"
        return claim.refusal or "it took no part"
    if form.reason[event] != 0:
        if form.reason[event] == Reason.NO_EVIDENCE:
            return "no increment follows from its number: a value before or after this event is not known"
        return f"no increment follows from its number: {REASONS[int(form.reason[event])]}"
    if not claimed:
        return "the trace has no reward to divide"
    words = []
    if form.unit != "event":
        words.append(f"a claim on all of its {form.unit} together")
    if offered.estimand == "return":
        words.append("as an increment: minus the part of the next action")
    elif offered.estimand == "effect":
        words.append("as an increment: times 1 − π, relative to the mean of the policy")
    elif offered.estimand != "increment":
        words.append(f"a {offered.estimand}, by rule {rule!r}")
    if votes > 1:
        words.append(f"one vote with {votes - 1} more of its source")
    if rule == "increments":
        words.append("averaged with other sources, not added" if sources > 1 else "the only source here")
    else:
        words.append(f"by rule {rule!r}")
    return "; ".join(words)
