"""What went into failed traces, of what all cost: money, or tokens where the logs tell of no money."""

from __future__ import annotations

import dataclasses
from typing import Literal

from credit.metrics.event_costs import Prices, is_priced, price_gaps
from credit.metrics.part_costs import COST_WORDS, PAID_IN
from credit.metrics.success_costs import known_costs
from credit.reports.judged_traces import judged_traces
from credit.reports.missing_lines import lacking_traces
from credit.reports.unread_outcomes import leave_rate_open, refused_outcomes
from credit.reports.verdict_channels import of_one_source
from graphs.text import amount, apart, percent
from graphs.traces.batch import Traces

__all__ = ["FailedCost", "failed_cost"]


@dataclasses.dataclass(frozen=True)
class FailedCost:
    """What failed traces cost, as far as it is known.

    Attributes:
      metric: "money" by prices, "logged_money", or "tokens" generated.
      failed, total: what failed traces cost, and all with an outcome.
      some: whether other traces have none.
      failing: which outcomes are failures (`JudgedTraces`).
      unknown: why a part is not known; "" where all is.
    """

    metric: Literal["money", "logged_money", "tokens"]
    failed: float
    total: float
    some: bool
    failing: str
    unknown: str

    def told(self) -> str:
        """In a sentence, as in `26 % of the logged cost (4.1 of 15.7) went into failed traces`."""
        failed, total = apart((self.failed, self.total), amount, 4)
        of = "of traces with an outcome, " if self.some else ""
        said = f"{percent(self.failed / self.total)} of the {COST_WORDS[self.metric]} ({failed} of {total})"
        known = f", of what is known: {self.unknown}" if self.unknown else ""
        return f"{of}{said} went into failed {'ones' if self.some else 'traces'}{self.failing}{known}"


def failed_cost(traces: Traces, prices: Prices | None = None, success_at: float | None = None) -> FailedCost | None:
    """What failed traces cost; None where no trace is known to have failed or to cost anything.

    None, too, where many outcomes were refused, and where each task has its own cut (`JudgedTraces`): about half of the
    traces are the worse ones then.

    Args:
      traces: what was read.
      prices: of models and tools; without them, or unless `is_priced`, it is the logged cost.
      success_at: as of `judged_traces`.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> records = []
      >>> for name, reward, money in (("a", 0.0, 4.0), ("b", 1.0, 12.0)):
      ...     records.append(TraceRecord(name, "q", "log.jsonl", instances={"x": Agent()}, rewards={"team": reward}))
      ...     _ = records[-1].event("e", 3, "x", action=True)
      ...     records[-1].costs["money"] = money
      >>> failed_cost(assemble(records)).told()
      '25 % of the logged cost (4 of 16) went into failed traces'
    """
    judged = judged_traces(of_one_source(traces), success_at)
    scored, refused = judged.rows, len(refused_outcomes(traces))
    if judged.of_task or not judged.failed.any() or leave_rate_open(refused, len(scored)):
        return None
    for metric in PAID_IN:
        if metric == "money" and (prices is None or not is_priced(traces, prices)):
            continue
        amount, whole = known_costs(traces, metric, prices)
        failed, total = float(amount[judged.failed].sum()), float(amount[scored].sum())
        if total > 0:
            models = price_gaps(traces, prices).unpriced_names() if metric == "money" and prices else ""
            part = scored[~whole[scored]]
            unstated = (
                "some traces lack lines or spans"
                if lacking_traces(traces)[part].all()
                else "some calls do not state it"
            )
            unknown = (f"no price for {models}" if models else unstated) if not whole[scored].all() else ""
            return FailedCost(metric, failed, total, len(scored) < len(amount), judged.failing, unknown)
    return None
