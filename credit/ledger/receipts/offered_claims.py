"""What became of each claim that was offered to a ledger: how it took part, or why it did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    by_values: bool  # increments are differences of other values than the baselines (`Recursion.values`)

    @classmethod
    def of(cls, claim: Credit, errors: Errors) -> _Amounts:
        credit, baseline, reason = map(np.asarray, (claim.credit, claim.baseline, claim.reason))
        stderr = believed_errors(claim, errors)
        by_values = claim.recursion is not None and claim.recursion.values is not None
        return cls(credit, baseline, stderr, reason, claim.estimand, claim.source, claim.unit, by_values)

    def amounts(self, rows: np.ndarray) -> np.ndarray:
        """credit − baseline of events: float64 [rows], NaN where it is invalid."""
        amounts, valid = np.full(len(rows), np.nan), self.reason[rows] == 0
        amounts[valid] = self.credit[rows[valid]].astype(np.float64) - self.baseline[rows[valid]].astype(np.float64)
        return amounts


class OfferedClaim(NamedTuple):
    """A claim before and after a ledger took it.

    Attributes:
      name: as the caller wrote it.
      offered: its numbers.
      form: its numbers as the ledger holds them, converted to increments where they were not; None if it took no part.
      refusal: why the ledger refused it; "" if it did not.
    """

    name: str
    offered: _Amounts
    form: _Amounts | None
    refusal: str


def offered_claims(ledger: Ledger, claims: Mapping[str, Credit]) -> list[OfferedClaim]:
    """The claims, each with its numbers as the ledger holds them.

    Args:
      ledger: what `credit.compose` made of these claims.
      claims: results of methods by name.
    """
    # The ledger keeps the claims that took part in the order in which they were offered, so the first one with the
    # source of this claim is its own.
    waiting, offered = list(ledger.claims), []
    for name, claim in claims.items():
        refusal = part_of(ledger, claim)
        place = next((i for i, other in enumerate(waiting) if other.source == claim.source), None)
        form = None if place is None or refusal else _Amounts.of(waiting.pop(place), ledger.errors)
        offered.append(OfferedClaim(name, _Amounts.of(claim, ledger.errors), form, refusal))
    return offered


def why(
    rule: str, claimed: bool, claim: OfferedClaim, votes: int, sources: int, event: int, silent: Sequence[str]
) -> str:
    """Why a claim on an event was taken, reduced or refused, in words.

    Args:
      rule: by which the ledger was composed.
      claimed: whether the ledger has an entry for the event.
      claim: what is explained.
      votes: how many claims on this event have the source of this claim.
      sources: how many sources have claims on this event.
      event: the row of the event.
      silent: the sources that state no error there.
    """
    offered, form = claim.offered, claim.form
    if offered.reason[event] != 0:
        return f"no number here: {REASONS[int(offered.reason[event])]}"
    if form is None:
        if offered.estimand == "total":
            return f"{claim.refusal}; its baseline may be the expected return at the start"
        return claim.refusal or "it took no part"
    if form.reason[event] != 0:
        if form.reason[event] == Reason.NO_EVIDENCE:
            return "no increment follows from its number: a value before or after this event is not known"
        return f"no increment follows from its number: {REASONS[int(form.reason[event])]}"
    if not claimed:
        return "the trace has no outcome, so no return to divide"
    words = []
    if form.unit != "event":
        words.append(f"a claim on all of its {form.unit} together")
    if offered.estimand == "return":
        against = ", against what other traces that still play earned from there on" if offered.by_values else ""
        words.append(f"as an increment: minus the part of the next action, if there is one{against}")
    elif offered.estimand == "contrast":
        words.append("as an increment: times 1 − π, relative to the mean of the policy")
    elif offered.estimand != "increment":
        words.append(f"a {offered.estimand}, by rule {rule!r}")
    if votes > 1:
        words.append(f"one vote with {votes - 1} more of its source")
    if rule == "increments":
        alike = f", all with one weight: no stated error of {', '.join(silent)}" if silent else ""
        words.append(f"averaged with other sources, not added{alike}" if sources > 1 else "the only source here")
    else:
        words.append(f"by rule {rule!r}")
    return "; ".join(words)
