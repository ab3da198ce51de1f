"""From the results of several methods to one ledger."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.entries import Ledger
from estimators.base import Credit
from estimators.exact import exact_partition
from estimators.increments import NotComposableError, as_increment, combine
from estimators.shared import rloo
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import segment_count, segment_first

__all__ = ["RULES", "compose"]

RULES = ("increments", "reconcile", "shares")


def compose(
    graph: EventGraph,
    reward: Array,
    claims: Sequence[Credit],
    *,
    expected: Array | None = None,
    outcome: Array | None = None,
    propensity: Array | None = None,
    lambda_: float = 1.0,
    rule: str = "increments",
) -> Ledger:
    """Compose the results of several methods into one exact partition of the reward of each trace.

    Rule "increments": every claim is converted to increments (`estimators.increments.as_increment`); several claims on
    one event are averaged, one vote a source, never added; what they leave of the reward is `unexplained`, an entry of
    its own, and in nobody's credit. Claims that cannot be converted are refused by name.

    Args:
      graph, reward: the batch; traces without reward have empty entries.
      claims: results of methods on this graph. One of estimand "total" is no claim; its baseline is `expected`.
      expected: float [T], what each trace was worth at its start; by default the baseline of the first "total" among
        the claims, else the mean of the other traces of its group, and 0 where there are none.
      outcome: float [T], R − V at the end, where a critic states it; 0 by default.
      propensity, lambda_: for the conversions.

    Raises:
      CreditError: an unknown rule, or entries outside the range of exact arithmetic.

    Source: docs/data-model.md; composition is by increments because these are what adds up: a contrast, a removal or a
    share summed over a trace does not give the reward.
    """
    if rule != "increments":
        raise CreditError(f"rule is {rule!r}; expected 'increments'")
    refused: dict[str, str] = {}
    scales = {claim.source: claim for claim in claims if claim.estimand == "scale"}
    totals = [claim for claim in claims if claim.estimand == "total"]
    kept: list[Credit] = []
    for claim in claims:
        if claim.estimand == "total":
            continue
        try:
            kept.append(as_increment(graph, claim, lambda_=lambda_, propensity=propensity))
        except NotComposableError as error:
            refused[claim.source] = str(error)

    reward = jnp.asarray(reward)
    scored = jnp.asarray(graph.trace_mask) & jnp.isfinite(reward)
    total = jnp.where(scored, reward, 0)
    start = _at_start(graph, reward, totals) if expected is None else jnp.asarray(expected, total.dtype)
    start = jnp.where(scored, start, 0)
    end = jnp.zeros_like(total) if outcome is None else jnp.where(scored, jnp.asarray(outcome, total.dtype), 0)

    trace = jnp.asarray(graph.trace_ids)
    combined = combine(kept) if kept else None
    channels = () if combined is None else combined.sources
    if combined is None:
        cells, claimed = jnp.zeros((graph.num_events, 0), total.dtype), jnp.zeros(graph.num_events, bool)
        stderr, chi_squared = jnp.zeros(graph.num_events, total.dtype), {}
    else:
        claimed = combined.there & scored[trace]
        cells = jnp.where(claimed[:, None], combined.parts.T.astype(total.dtype), 0)
        stderr = jnp.where(claimed, combined.stderr, 0)
        chi_squared = {
            (a, b): float(combined.chi_squared[i, j])
            for i, a in enumerate(channels)
            for j, b in enumerate(channels)
            if i < j
        }
    width = max(len(channels), 1)
    partition = exact_partition(
        (cells if channels else jnp.zeros((graph.num_events, 1), total.dtype)).reshape(-1),
        jnp.repeat(trace, width),
        jnp.repeat(claimed, width),
        total,
        trace_cells=jnp.stack([start, end], axis=1),
    )
    if not bool(jnp.all(partition.exact)):
        worst = int(jnp.argmin(partition.exact))
        largest = float(jnp.max(jnp.abs(jnp.where((trace == worst)[:, None], cells, 0))))
        raise CreditError(
            f"trace {worst} has entries outside the range of exact arithmetic: reward {float(total[worst])!r}, "
            f"largest claim {largest!r}"
        )
    exact = partition.amounts(jnp.repeat(trace, width)).reshape(graph.num_events, width)
    entries = partition.trace_amounts
    return Ledger(
        graph=graph,
        rule=rule,
        channels=channels or ("nobody",),
        reward=total,
        scored=scored,
        expected=entries[:, 0],
        outcome=entries[:, 1],
        unexplained=partition.residual,
        remainder=partition.remainder,
        cells=exact,
        increments=jnp.sum(exact, axis=1),  # exact: sums on the grid do not round
        stderr=stderr,
        claimed=claimed,
        partition=partition,
        claims=tuple(kept),
        scales=scales,
        refused=refused,
        chi_squared=chi_squared,
        coverage=_coverage(np.asarray(partition.residual)[scored], np.asarray(total - start)[scored]),
    )


def _at_start(graph: EventGraph, reward: jax.Array, totals: list[Credit]) -> jax.Array:
    """The baseline of each trace, 0 where it has none: [T]."""
    credit = totals[0] if totals else rloo(graph, reward)
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    first = segment_first(trace, num, credit.valid)
    there = segment_count(trace, num, credit.valid) > 0
    return jnp.where(there, jnp.asarray(credit.baseline)[first], 0)


def _coverage(unexplained: np.ndarray, difference: np.ndarray) -> float:
    spread = float(np.var(difference))
    return 1 - float(np.var(unexplained)) / spread if spread > 0 else float("nan")
