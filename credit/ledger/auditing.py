"""The audit: the sum of claims compared with the ledger of the same claims.

Adding the numbers of several methods pays the same decision several times: a broadcast gives the whole return to every
action, a contrast counts what comes after it again, and two estimates of one increment are two payments. An audit adds
everything up in that way and compares the sum with the reward.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from credit.ledger import Ledger
from credit.ledger.composition import check_claim, ledger_of
from credit.tables.advantages import event_columns
from estimators.base import Credit
from estimators.composition.increments import NotComposableError, as_increment
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.traces.batch import Traces

__all__ = ["Audit", "audit", "part_of"]


@dataclasses.dataclass(frozen=True)
class Audit:
    """The sum of claims, in units of reward, over E events, T traces and C claims.

    A claim's payment at an action is credit − baseline, before any division: a number divided by a spread has no unit
    of reward.

    Attributes:
      claims: C names, as given.
      payments: float64 [C, E]; 0 where a claim is invalid or the trace has no reward.
      naive: float64 [E], their sum over claims: what addition would have paid.
      times: int [E], how many claims pay an event something.
      claimed: float64 [T], Σ |payments| over the claims and events of a trace.
      overcount: float64 [T], `claimed` over |R|: infinite where R is 0 and something was paid, NaN where the trace has
        no reward, or R is 0 and nothing was paid.
      ratio: Σ `claimed` over Σ |R|, over the traces that have a reward.
      refused: claims that are none on increments, or not everywhere, by name, and why.
      ledger: what the same claims come to when nothing is paid twice.
    """

    claims: tuple[str, ...]
    payments: np.ndarray
    naive: np.ndarray
    times: np.ndarray
    claimed: np.ndarray
    overcount: np.ndarray
    ratio: float
    refused: Mapping[str, str]
    ledger: Ledger

    @property
    def twice(self) -> np.ndarray:
        """Events that more than one claim pays: bool [E]."""
        return self.times > 1

    def table(self, traces: Traces) -> pa.Table:
        """One row an event: its place and type, the payment by each claim, their sum and number, and its entry."""
        n = traces.sizes.events
        payments = {f"pays:{name}": row[:n] for name, row in zip(self.claims, self.payments, strict=True)}
        sums = {"naive": self.naive[:n], "times": self.times[:n]}
        entry = {"ledger": np.asarray(self.ledger.increments)[:n]}
        return pa.table(event_columns(traces) | payments | sums | entry)

    def trace_table(self, traces: Traces) -> pa.Table:
        """One row a trace: its reward, what addition would have paid, and the entries of its ledger."""
        n, ledger = traces.sizes, self.ledger
        trace = np.asarray(traces.graph.trace_ids)[: n.events]

        def by_trace(values: Array) -> np.ndarray:
            return np.bincount(trace, np.asarray(values, np.float64)[: n.events], n.traces)

        reward = np.where(np.asarray(ledger.scored), np.asarray(ledger.reward), np.nan)[: n.traces]
        return pa.table(
            {
                "trace": traces.traces["trace"],
                "group": traces.traces["group"],
                "reward": pa.array(reward, from_pandas=True),
                "naive": by_trace(self.naive),
                "claimed": self.claimed[: n.traces],
                "overcount": pa.array(self.overcount[: n.traces], from_pandas=True),
                "events_paid_twice": by_trace(self.twice).astype(np.int64),
                "expected": np.asarray(ledger.expected)[: n.traces],
                "increments": by_trace(ledger.increments),
                "outcome": np.asarray(ledger.outcome)[: n.traces],
                "unexplained": np.asarray(ledger.unexplained)[: n.traces],
                "remainder": np.asarray(ledger.remainder)[: n.traces],
            }
        )

    def as_json(self, traces: Traces) -> dict[str, Any]:
        """Plain data for programs: sums, refusals and every trace."""
        n = traces.sizes.events
        return {
            "claims": {
                name: {"paid": float(np.abs(row).sum()), "refused": self.refused.get(name, "")}
                for name, row in zip(self.claims, self.payments, strict=True)
            },
            "overcount": self.ratio if math.isfinite(self.ratio) else None,
            "events_paid": int(np.sum(self.times[:n] > 0)),
            "events_paid_twice": int(np.sum(self.twice[:n])),
            "coverage": self.ledger.coverage if math.isfinite(self.ledger.coverage) else None,
            "explained": self.ledger.explained if math.isfinite(self.ledger.explained) else None,
            "holding_luck": self.ledger.holding_luck,
            "traces": self.trace_table(traces).to_pylist(),
        }


@checked_kinds()
def audit(graph: EventGraph, reward: Array, claims: Mapping[str, Credit], *, ledger: Ledger | None = None) -> Audit:
    """Compare the sum of claims with the ledger of the same claims, in units of reward.

    Args:
      graph: the batch.
      reward: float [T]; traces without reward (NaN) pay nothing. For claims that were given rewards at events, the
        reward here holds their sum too.
      claims: results of methods on it, by the names to show, whatever they estimate.
      ledger: of the same claims; by default `compose(graph, reward, claims)` by rule "increments".

    Returns:
      `Audit`; `ratio` is Σ |claims| over Σ |R|.

    Raises:
      CreditError: there are no claims, or one is not of this batch.

    Examples:
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(group=[0] * 4, trace=[0, 0, 1, 1], reward=[1.0, 1.0, 0.0, 0.0])
      >>> report = audit(graph, reward, {"rloo": credit.rloo(graph, reward), "grpo": credit.grpo(graph, reward)})
      >>> print(report.ratio, report.times[:4], report.twice[:4])
      6.0 [2 2 2 2] [ True  True  True  True]
    """
    if not claims:
        raise CreditError("audit has no claims; expected one or more")
    for name, claim in claims.items():
        check_claim(graph, f"claim {name!r}", claim)
    if ledger is None:
        ledger = ledger_of(graph, reward, list(claims.values()))
    trace, total = np.asarray(graph.trace_ids), np.asarray(reward, np.float64)
    scored = np.asarray(graph.trace_mask) & np.isfinite(total)
    total = np.where(scored, total, 0)
    pays = scored[trace] & np.asarray(graph.event_mask)
    payments = np.stack(
        [
            np.where(pays & np.asarray(c.valid), np.asarray(c.credit, np.float64) - np.asarray(c.baseline), 0)
            for c in claims.values()
        ]
    )
    claimed = np.bincount(trace, np.abs(payments).sum(axis=0), graph.num_traces)
    size = np.abs(total)
    over = np.where(claimed > 0, np.inf, np.nan)
    over = np.where(size > 0, claimed / np.where(size > 0, size, 1), over)
    return Audit(
        claims=tuple(claims),
        payments=payments,
        naive=payments.sum(axis=0),
        times=np.sum(np.abs(payments) > 0, axis=0),
        claimed=claimed,
        overcount=np.where(scored, over, np.nan),
        ratio=float(claimed.sum() / size.sum()) if size.sum() > 0 else float("inf" if claimed.sum() > 0 else "nan"),
        refused={name: why for name, claim in claims.items() if (why := part_of(ledger, claim))},
        ledger=ledger,
    )


def part_of(ledger: Ledger, claim: Credit) -> str:
    """Why a claim has no part in a ledger's increments, or not everywhere; "" where it has."""
    if claim.source in ledger.refused:
        return ledger.refused[claim.source]
    if any(other.source == claim.source for other in ledger.claims):
        return ""
    try:
        as_increment(ledger.graph, claim)
    except NotComposableError as error:
        return str(error)
    return ""
