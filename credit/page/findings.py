"""`Findings`: traces with the results of several methods and the ledger of these, computed once for a page."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credit.ledger.from_methods import compose_claims
from credit.ledger.receipt import Receipts
from estimators.base import Credit
from graphs.errors import expect
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    from credit.ledger.account import Ledger

__all__ = ["Findings", "noise_mask"]


def noise_mask(claim: Credit) -> np.ndarray:
    """Events whose credit − baseline is no more than two standard errors from 0: bool [E].

    An event without a finite standard error is not called noise.
    """
    amount = np.asarray(claim.credit, np.float64) - np.asarray(claim.baseline, np.float64)
    stderr = np.asarray(claim.stderr, np.float64)
    return np.asarray(claim.valid) & np.isfinite(stderr) & (np.abs(amount) <= 2 * stderr)


@dataclasses.dataclass(frozen=True)
class Findings:
    """What a page shows.

    Attributes:
      traces: what was read.
      claims: results of methods on `traces.graph`, by the names to show; empty for logs without outcomes.
      ledger: their composition; None without claims.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> findings = Findings.of(rows.traces, {"rloo": credit.rloo(graph, reward)})
      >>> findings.ledger.rule
      'increments'
    """

    traces: Traces
    claims: Mapping[str, Credit]
    ledger: Ledger | None

    @classmethod
    def of(cls, traces: Traces, claims: Mapping[str, Credit], **composing: object) -> Findings:
        """Compose the claims.

        Args:
          traces: what was read.
          claims: results of methods on `traces.graph`, by name.
          **composing: settings of `credit.ledger.from_methods.compose_claims`.

        Raises:
          CreditError: a claim is of another batch, or cannot be composed by the rule.
        """
        expect("traces", traces, Traces, "what credit.read returns")
        expect("claims", claims, Mapping, "results of methods by name")
        ledger = compose_claims(traces, claims, **composing) if claims else None  # type: ignore[arg-type]
        return cls(traces, dict(claims), ledger)

    @functools.cached_property
    def receipts(self) -> Receipts | None:
        """Receipts of events; None without claims."""
        return None if self.ledger is None else Receipts(self.traces, self.claims, ledger=self.ledger)

    @functools.cached_property
    def first_events(self) -> np.ndarray:
        """The row of the first event of each trace, and the number of events at the end: int [traces + 1]."""
        n = self.traces.sizes
        return np.searchsorted(np.asarray(self.traces.graph.trace_ids)[: n.events], np.arange(n.traces + 1))
