"""The basis of a ledger: accepted and rejected claims, what they explain, and how much of it is noise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from estimators.clusters import independent_groups
from graphs.text import counted

if TYPE_CHECKING:
    from credit.ledger.account import Ledger
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["LEAST_GROUPS", "LedgerSummary", "ledger_summary"]

LEAST_GROUPS = 30
"""Effective groups for an error of what is explained. From there on ± 1.96 errors held the truth in 94 to 95 % where
tasks are alike. Where their spreads are log-normal they held it in 92.7 % with groups of 4 and in 94.3 % with groups of
8, and in 85 and 89 % where that spread has a σ of 0.8: groups that decide are then not in the log. With 5 and 10 groups
they held it in 40 to 92 %."""

TINY = float(np.finfo(np.float64).tiny)


@dataclasses.dataclass(frozen=True)
class LedgerSummary:
    """A ledger in numbers.

    Attributes:
      rule: by which claims became entries.
      traces, with_reward: traces that were read, and those with a return to divide.
      actions, with_entry: actions, and those with an entry of their own.
      without_share: how many have none since several agents act at once, in words (`Ledger.without_share`).
      took_part: sources of claims that made entries.
      totals: methods that declare the total of a trace. They make no entries.
      expected_by: the method of `totals` whose baseline is what was expected at the start; None where none is.
      refused: sources of claims that made no entries, each with why.
      explained, explained_stderr: part of the variance of the reward within groups that the entries explain out of
        sample, and its standard error; None where it is not defined, as where no action has an entry, and the error
        with fewer than `LEAST_GROUPS` effective groups.
      explained_doubt: whether it may be 0: within two standard errors, however few the groups.
      accounted_for: the same with each trace's own outcome included; None likewise.
      stated, noise: entries with a standard error, and those of them within two standard errors of 0.
      holding_luck: which entries hold the luck after the last action, in words (`Ledger.holding_luck`).
      chi_squared: χ² of pairs of sources, by "one, other".
      warnings: what to look at before the entries are believed.
    """

    rule: str
    traces: int
    with_reward: int
    actions: int
    with_entry: int
    without_share: str
    took_part: tuple[str, ...]
    totals: tuple[str, ...]
    expected_by: str | None
    refused: dict[str, str]
    explained: float | None
    explained_stderr: float | None
    explained_doubt: bool
    accounted_for: float | None
    stated: int
    noise: int
    holding_luck: str
    chi_squared: dict[str, float]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        return dataclasses.asdict(self)

    def lines(self) -> list[str]:
        """The same for people."""
        lines = [
            f"ledger by rule {self.rule!r}: {self.with_reward} of {counted(self.traces, 'trace')} with an outcome, "
            f"{self.with_entry} of {counted(self.actions, 'action')} with an entry"
        ]
        if self.took_part:
            lines.append(f"  took part: {', '.join(self.took_part)}")
        lines += [f"  no entries of {self.without_share}"] if self.without_share else []
        for name in self.totals:
            use = "its baseline is taken for what was expected at the start" if name == self.expected_by else "not used"
            lines.append(f"  no entries of {name}, which declares the total of a trace: {use}")
        for source, why in self.refused.items():
            lines.append(f"  refused: {why}" if repr(source) in why else f"  refused: {source!r}: {why}")
        if self.rule == "shares":
            lines.append("  explained: not measured, since a split from the top down always comes to the whole reward")
        elif not self.with_entry:
            lines.append("  explained: nothing, since no action has an entry")
        elif self.accounted_for is not None:
            if self.explained is not None:
                error = "" if self.explained_stderr is None else f" ± {self.explained_stderr:.3f} (one standard error)"
                share = f"{self.explained:.3f}{error} of the variance of returns within groups"
                share += ", not significantly above 0" if self.explained_doubt else ""
                lines.append(f"  explained in traces that were left out: {share}")
            lines.append(f"  explained where each trace's own outcome is known, too: {self.accounted_for:.3f}")
        if self.stated:
            counts = f"{self.noise} of the {self.stated} entries with a stated error"
            lines.append(f"  noise: {counts} are within two standard errors of 0")
        elif self.with_entry:
            lines.append("  noise: unknown, since no claim states an error")
        lines += [f"  outcome: {self.holding_luck}"] if self.holding_luck else []
        lines += [f"  chi squared of {pair}: {chi:.2f}" for pair, chi in self.chi_squared.items()]
        words = ("out of sample the entries explain", f"{self.noise} of {self.with_entry} entries are within")
        return [*lines, *(f"  look: {warning}" for warning in self.warnings if not warning.startswith(words))]


def ledger_summary(traces: Traces, ledger: Ledger, claims: Mapping[str, Credit] | None = None) -> LedgerSummary:
    """Count the claims, entries and noise of a ledger.

    Args:
      traces: what was read.
      ledger: of these traces.
      claims: the results that were composed, by name; they tell which methods gave the totals.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.5])
      >>> claims = {"rloo": credit.rloo(graph, reward)}
      >>> summary = ledger_summary(rows.traces, credit.compose(graph, reward, list(claims.values())), claims)
      >>> summary.with_entry, summary.totals
      (0, ('rloo',))
    """
    n = traces.sizes
    action = np.asarray(traces.graph.action_mask)[: n.events]
    claimed = np.asarray(ledger.claimed)[: n.events]
    totals = tuple(name for name, claim in (claims or {}).items() if claim.estimand == "total")
    shown = claimed.any() and ledger.rule != "shares"
    start = np.asarray(ledger.expected, np.float64)
    return LedgerSummary(
        rule=ledger.rule,
        traces=n.traces,
        with_reward=int(np.asarray(ledger.scored)[: n.traces].sum()),
        actions=int(action.sum()),
        with_entry=int(claimed.sum()),
        without_share=ledger.without_share,
        took_part=ledger.took_part,
        totals=totals,
        expected_by=_whose_baseline(traces, start, (claims or {}), totals),
        refused=dict(ledger.refused),
        explained=_finite(ledger.explained) if shown else None,
        explained_stderr=_finite(ledger.explained_stderr) if shown and _groups(ledger) >= LEAST_GROUPS else None,
        explained_doubt=bool(shown and ledger.explained - 2 * ledger.explained_stderr <= 0),
        accounted_for=_finite(ledger.coverage) if shown else None,
        stated=int((np.isfinite(np.asarray(ledger.stderr)[: n.events]) & claimed).sum()),
        noise=int(ledger.noise.sum()),
        holding_luck=ledger.holding_luck,
        chi_squared={f"{a} and {b}": chi for (a, b), chi in ledger.chi_squared.items() if np.isfinite(chi)},
        warnings=tuple(ledger.warnings),
    )


def _groups(ledger: Ledger) -> float:
    """(Σ d)² / Σ d², with d a group's sum of squares of rewards about their mean: as many alike groups."""
    scored = np.asarray(ledger.scored)
    reward = np.asarray(ledger.reward, np.float64)[scored]
    if not len(reward):
        return 0.0
    group = np.unique(np.asarray(independent_groups(ledger.graph))[scored], return_inverse=True)[1]
    mean = np.bincount(group, reward) / np.bincount(group)
    squares = np.bincount(group, ((reward - mean[group]) / max(float(np.abs(reward).max()), TINY)) ** 2)
    return float(squares.sum() ** 2 / max(float((squares**2).sum()), TINY))


def _whose_baseline(
    traces: Traces, start: np.ndarray, claims: Mapping[str, Credit], totals: tuple[str, ...]
) -> str | None:
    """The first total, if what the ledger expected at the start is its baseline and not another number."""
    if not totals:
        return None
    claim = claims[totals[0]]
    valid = np.flatnonzero(np.asarray(claim.valid))
    trace = np.asarray(traces.graph.trace_ids)[valid]
    baseline = np.asarray(claim.baseline, np.float64)[valid]
    # The exact grid moves numbers by no more than a rounding of single precision.
    same = len(valid) > 0 and np.allclose(
        start[trace], baseline, rtol=1e-5, atol=1e-5 * np.abs(baseline).max(initial=1)
    )
    return totals[0] if same else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
