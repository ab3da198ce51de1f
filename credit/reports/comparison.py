"""Methods on the same logs: their agreement, the part of each role, and the actions on which they differ most.

both = credit.compare(traces, {"rloo": credit.rloo(graph, reward), "dr_mas": credit.dr_mas(graph, reward)})
both.correlation, both.by_role, both.by_kind, both.disagreements
figure = credit.plot.draw_comparison(both)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from credit.reports.ranks import correlation, mean_ranks
from credit.reports.trace_returns import distinguishable, returns
from credit.tables.advantages import event_columns
from credit.tables.batch_rows import Rows, as_traces, warn_of_direct_call
from estimators.base import Credit, check_batch
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.structure.decision_kinds import KIND_NAMES, decision_kind
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["Comparison", "compare"]

DIGITS = 5
"""Advantages that agree in so many digits, of the largest of the method, are ties: rounding must not order them."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Several methods on one batch; M methods, in the order given.

    Attributes:
      methods: their names.
      events: Arrow table, a row for each action in the order of the log: the columns of `credit.table` to action,
        its kind, and a column of advantages for each method, null where the method refuses.
      answered: how many actions have an advantage by each method: [M].
      correlation: Spearman's rank correlation of advantages over the actions that both answer, ties at their mean rank:
        [M, M]; NaN where one of them gives all those actions one number.
      within: the same within traces: ranks among the actions of a trace, pooled over the traces in which both differ
        from action to action. It compares methods on the parts within a trace, apart from its outcome; NaN where there
        is no such trace.
      roles, kinds: names, in the order of the columns of what follows.
      by_role: each role's part of Σ |credit − baseline| over the actions that a method answers: [M, roles]. Signs are
        left out, since what a method gives over a batch often sums to 0. NaN for a method that is 0 everywhere.
      by_kind: the same by kind of decision, those of `graphs.structure.decision_kinds.KIND_NAMES`: [M, kinds].
      actions_by_role, actions_by_kind: the part of each in the actions, for comparison.
      disagreements: rows of `events` on which methods differ most, at most one a trace, worst first. Groups whose
        traces all have the same outcome are left out: what differs there is not about the outcome.
      spread: for these rows, the greatest minus the least rank that methods give it, ranks from 0 to 1.
    """

    methods: tuple[str, ...]
    events: pa.Table
    answered: np.ndarray
    correlation: np.ndarray
    within: np.ndarray
    roles: tuple[str, ...]
    kinds: tuple[str, ...]
    by_role: np.ndarray
    by_kind: np.ndarray
    actions_by_role: np.ndarray
    actions_by_kind: np.ndarray
    disagreements: np.ndarray
    spread: np.ndarray

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs, without the table of all actions; NaN becomes None."""

        def plain(values: np.ndarray) -> Any:
            boxed = values.astype(object)
            boxed[~np.isfinite(values)] = None
            return boxed.tolist()

        worst = self.events.take(pa.array(self.disagreements)).to_pylist()
        return {
            "methods": self.methods,
            "actions": self.events.num_rows,
            "answered": dict(zip(self.methods, self.answered.tolist(), strict=True)),
            "rank_correlation": plain(self.correlation),
            "rank_correlation_within_traces": plain(self.within),
            "roles": self.roles,
            "share_by_role": dict(zip(self.methods, plain(self.by_role), strict=True)),
            "actions_by_role": plain(self.actions_by_role),
            "kinds": self.kinds,
            "share_by_kind": dict(zip(self.methods, plain(self.by_kind), strict=True)),
            "actions_by_kind": plain(self.actions_by_kind),
            "disagreements": [
                row | {"spread": spread} for row, spread in zip(worst, self.spread.tolist(), strict=True)
            ],
        }


@checked_kinds()
def compare(traces: Traces | Rows, credits: Mapping[str, Credit], *, worst: int = 10) -> Comparison:
    """Compare the results of several methods on one batch: rank correlations, parts of roles, disagreements.

    Args:
      traces: what was read, or the `Rows` of `credit.from_columns`.
      credits: results of methods on `traces.graph`, by the names to show.
      worst: how many disagreements to name.

    Returns:
      `Comparison`: rank correlations between methods over all actions and within traces, the parts of credit by role
      and by kind of decision, and the actions on which methods disagree most.

    Raises:
      CreditError: fewer than two methods, or one whose arrays are not of this batch.

    Warns:
      UnusedRewardsWarning, MissingColumnWarning: as of `Rows.gather`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> both = credit.compare(rows, {"rloo": credit.rloo(graph, reward), "grpo": credit.grpo(graph, reward)})
      >>> both.methods
      ('rloo', 'grpo')
    """
    if len(credits) < 2:
        raise CreditError(
            f"compare has {counted(len(credits), 'method')} ({', '.join(credits) or 'none'}); expected two or more"
        )
    source, traces = traces, as_traces(traces)
    graph, n = traces.graph, traces.sizes
    for name, credit in credits.items():
        check_batch(graph, f"credit of {name!r}", credit)
        warn_of_direct_call(source, credit, stacklevel=4)  # the caller, past the check of arguments
    action = np.flatnonzero(np.asarray(graph.action_mask)[: n.events])
    trace = np.asarray(graph.trace_ids)[action]
    valid = np.stack([np.asarray(c.valid)[action] for c in credits.values()])
    advantage = np.stack([np.asarray(c.advantage, np.float64)[action] for c in credits.values()])
    moved = np.stack([np.abs(np.asarray(c.credit - c.baseline, np.float64))[action] for c in credits.values()])
    advantage, moved = np.where(valid, _rounded(advantage), np.nan), np.where(valid, moved, 0)

    roles, role = np.unique(_names(traces, "role")[np.asarray(graph.agent_ids)[action]], return_inverse=True)
    kinds, kind = KIND_NAMES, decision_kind(graph)[action]
    columns = pa.table(event_columns(traces)).take(pa.array(action))
    columns = columns.append_column("kind", pa.array([kinds[i] for i in kind], pa.string()))
    for name, credit, known in zip(credits, credits.values(), valid, strict=True):
        numbers = pa.array(np.asarray(credit.advantage)[action] + 0, mask=~known)
        columns = columns.append_column(name if name not in columns.column_names else f"advantage.{name}", numbers)

    overall, within = _agreement(advantage, valid, trace)
    rows, spread = _disagreements(advantage, valid, trace, ~_equal_mask(traces)[trace], worst)
    return Comparison(
        methods=tuple(credits),
        events=columns,
        answered=valid.sum(axis=1),
        correlation=overall,
        within=within,
        roles=tuple(map(str, roles)),
        kinds=kinds,
        by_role=_shares(moved, role, len(roles)),
        by_kind=_shares(moved, kind, len(kinds)),
        actions_by_role=_shares(np.ones((1, len(action))), role, len(roles))[0],
        actions_by_kind=_shares(np.ones((1, len(action))), kind, len(kinds))[0],
        disagreements=rows,
        spread=spread,
    )


def _equal_mask(traces: Traces) -> np.ndarray:
    """Traces of groups of several outcomes that are all the same: bool [traces]."""
    group, earned = np.asarray(traces.graph.group_ids)[: traces.sizes.traces], returns(traces)
    scored = np.isfinite(earned)
    size = int(group.max(initial=-1)) + 1
    _, apart = distinguishable(earned[scored], group[scored], size)
    equal: np.ndarray = ((np.bincount(group[scored], minlength=size) > 1) & ~apart)[group]
    return equal


def _names(traces: Traces, column: str) -> np.ndarray:
    return np.array(traces.agents[column].to_pylist(), object).astype(str)


def _rounded(x: np.ndarray) -> np.ndarray:
    """Each row in steps of 10**-DIGITS of its largest magnitude."""
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    step = finite.max(axis=1, keepdims=True, initial=0) * 10.0**-DIGITS
    return np.where(step > 0, np.rint(x / np.where(step > 0, step, 1)) * step, x)


def _agreement(advantage: np.ndarray, valid: np.ndarray, trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rank correlations of all pairs, over all actions and within traces: [M, M] each."""
    m = len(advantage)
    overall, within = np.full((m, m), np.nan), np.full((m, m), np.nan)
    whole: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # of a method alone: most pairs answer the same actions

    def ranked(i: int, both: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not np.array_equal(both, valid[i]):
            return _ranked(advantage[i, both], trace[both])
        if i not in whole:
            whole[i] = _ranked(advantage[i, both], trace[both])
        return whole[i]

    for i in range(m):
        for j in range(i, m):
            both = valid[i] & valid[j]
            if both.any():
                (x, inside_x), (y, inside_y) = ranked(i, both), ranked(j, both)
                overall[i, j] = overall[j, i] = correlation(x, y)
                varies = (np.bincount(trace[both], inside_x**2) > 0) & (np.bincount(trace[both], inside_y**2) > 0)
                keep = varies[trace[both]]
                within[i, j] = within[j, i] = correlation(inside_x[keep], inside_y[keep])
    return overall, within


def _ranked(values: np.ndarray, trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranks over all, and ranks within traces less their mean there."""
    ranks = mean_ranks(values, trace)
    mean = np.bincount(trace, ranks) / np.maximum(np.bincount(trace), 1)
    return mean_ranks(values), ranks - mean[trace]


def _shares(amounts: np.ndarray, key: np.ndarray, num: int) -> np.ndarray:
    """Each key's part of the sum of each row: [M, num]; NaN for rows whose sum is 0."""
    sums = np.stack([np.bincount(key, row, num) for row in amounts])
    total = sums.sum(axis=1, keepdims=True)
    return np.where(total > 0, sums / np.where(total > 0, total, 1), np.nan)


def _disagreements(
    advantage: np.ndarray, valid: np.ndarray, trace: np.ndarray, telling: np.ndarray, worst: int
) -> tuple[np.ndarray, np.ndarray]:
    """Telling actions that two methods or more answer, by the spread of their ranks among all; the first of each trace,
    worst first.
    """
    scaled = np.full(advantage.shape, np.nan)
    for row, (values, known) in enumerate(zip(advantage, valid, strict=True)):
        if known.any():
            scaled[row, known] = mean_ranks(values[known]) / max(1, int(known.sum()) - 1)
    several = np.flatnonzero(telling & (valid.sum(axis=0) > 1))
    if not len(several):
        return several, np.zeros(0)
    spread = np.nanmax(scaled[:, several], axis=0) - np.nanmin(scaled[:, several], axis=0)
    order = np.argsort(-spread, kind="stable")
    _, first = np.unique(trace[several][order], return_index=True)
    chosen = order[np.sort(first)][:worst]
    chosen = chosen[spread[chosen] > 0]
    return several[chosen], spread[chosen]
