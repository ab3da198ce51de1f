"""`Findings`: traces with the results of several methods and the ledger of these, computed once for a page."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credit.ledger.from_methods import compose_claims
from credit.ledger.receipts.explaining import Receipts
from credit.metrics.clustered_error import beyond_two_errors
from credit.reports.endings import WITHHELD
from credit.reports.event_texts import event_texts
from credit.reports.task_and_result import task_and_result
from estimators.base import Credit
from estimators.composition.votes import NO_ERRORS, Errors, believed_errors
from graphs.errors import UNREAD_OUTCOME, expect
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    from credit.ledger.account import Ledger
    from credit.metrics.event_costs import Prices
    from credit.sides.chosen_sides import Sides

__all__ = ["NOISE", "UNKNOWN", "Findings", "doubts"]

NOISE, UNKNOWN = 1, 2
"""Codes of doubt: within two standard errors of 0; a standard error that is not known."""


def doubts(claim: Credit, errors: Errors) -> np.ndarray:
    """For each event the doubt about credit − baseline, int [E]: 0, `NOISE` or `UNKNOWN`; 0 where it is invalid.

    Errors of 0 count as the ledger takes them (`believed_errors`).

    Args:
      claim: a method's result.
      errors: what a ledger believes of standard errors.
    """
    amount = np.asarray(claim.credit, np.float64) - np.asarray(claim.baseline, np.float64)
    stderr = believed_errors(claim, errors)
    doubt = np.where(np.isfinite(stderr), np.where(beyond_two_errors(amount, stderr), 0, NOISE), UNKNOWN)
    return np.where(np.asarray(claim.valid), doubt, 0)


@dataclasses.dataclass(frozen=True)
class Findings:
    """The results that a page shows.

    Attributes:
      traces: what was read.
      claims: results of methods on `traces.graph`, by the names to show; empty for logs without outcomes.
      ledger: their composition; None without claims.
      text: whether the page may quote the logs: what events said, and values that were not as expected. Names of
        traces, groups, agents, tools, models and files are shown either way.
      success_at: the outcome from which a trace succeeded; None for `least_success`.
      prices: of models and tools, for money; None for costs without it.
      sides: of a change, which the page compares; None for none.

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
    text: bool = True
    success_at: float | None = None
    prices: Prices | None = None
    sides: Sides | None = None

    @classmethod
    def of(
        cls,
        traces: Traces,
        claims: Mapping[str, Credit],
        *,
        text: bool = True,
        success_at: float | None = None,
        prices: Prices | None = None,
        sides: Sides | None = None,
        **composing: object,
    ) -> Findings:
        """Compose the claims.

        Args:
          traces: what was read.
          claims: results of methods on `traces.graph`, by name.
          text: whether the page may quote the logs.
          success_at: the outcome from which a trace succeeded; None for `least_success`.
          prices: of models and tools, for money.
          sides: of a change.
          **composing: settings of `credit.ledger.from_methods.compose_claims`.

        Raises:
          CreditError: a claim is of another batch, or cannot be composed by the rule.
        """
        expect("traces", traces, Traces, "what credit.read returns")
        expect("claims", claims, Mapping, "results of methods by name")
        ledger = compose_claims(traces, claims, **composing) if claims else None  # type: ignore[arg-type]
        if not text:
            quoting = (
                one if one.kind == UNREAD_OUTCOME else dataclasses.replace(one, value=WITHHELD)
                for one in traces.problems
            )  # an outcome is a number, which results count
            traces = dataclasses.replace(traces, problems=tuple(quoting))
        return cls(traces, dict(claims), ledger, text, success_at, prices, sides)

    def texts(self, rows: np.ndarray, limit: int) -> list[str]:
        """Excerpts of what events said, by their rows: with `task`, the only way of a log's content into a page."""
        return event_texts(self.traces, rows, limit) if self.text else [""] * len(rows)

    def task(self, row: int, limit: int) -> tuple[str, str]:
        """Excerpts of what a trace was asked, and what it came to."""
        return task_and_result(self.traces, row, limit) if self.text and limit else ("", "")

    @property
    def errors(self) -> Errors:
        """What standard errors of 0 mean, as the ledger takes them."""
        return NO_ERRORS if self.ledger is None else self.ledger.errors

    @functools.cached_property
    def receipts(self) -> Receipts | None:
        """Receipts of events; None without claims."""
        return None if self.ledger is None else Receipts(self.traces, self.claims, ledger=self.ledger)

    @functools.cached_property
    def first_events(self) -> np.ndarray:
        """The row of the first event of each trace, and the number of events at the end: int [traces + 1]."""
        n = self.traces.sizes
        return np.searchsorted(np.asarray(self.traces.graph.trace_ids)[: n.events], np.arange(n.traces + 1))
