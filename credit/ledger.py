"""The ledger: the team reward of each trace as a sum of entries, exactly, with nothing paid twice.

    R = expected + Σ increments of events + outcome + unexplained + remainder

`expected` is what the trace was worth before anybody acted, each increment what one action changed, `outcome` the luck
after the last action where a claim states it, `unexplained` what no claim accounts for, and `remainder` what the grid
of exact arithmetic cannot hold (mostly 0). Entries add up to the reward bit for bit, in any order: `estimators.exact`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit
from estimators.exact import Partition, exact_partition
from estimators.increments import Combined, NotComposableError, as_increment, combine
from estimators.shared import rloo
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import segment_count, segment_first

__all__ = ["Ledger", "compose"]


@dataclasses.dataclass(frozen=True)
class Ledger:
    """Entries of a batch. Integers are canonical (`partition`); the floats here derive from them.

    Attributes:
      reward: float [T], the total of each trace; 0 where it has none.
      expected, outcome, unexplained, remainder: float [T].
      increments: float [E], exactly 0 on events without a claim.
      stderr: float [E], of the increments; infinite where no source stated an error.
      claimed: bool [E], events with a valid claim.
      partition: the integers and the grid.
      combined: how claims were averaged: weights, and χ² between sources.
      refused: claims that took no part, by source, and why.
      coverage: 1 − Var(unexplained) / Var(R − expected) over traces; NaN where the latter does not vary.
    """

    reward: jax.Array
    expected: jax.Array
    outcome: jax.Array
    unexplained: jax.Array
    remainder: jax.Array
    increments: jax.Array
    stderr: jax.Array
    claimed: jax.Array
    partition: Partition
    combined: Combined | None
    refused: Mapping[str, str]
    coverage: float


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
    increments: list[Credit] = []
    totals = [claim for claim in claims if claim.estimand == "total"]
    for claim in claims:
        if claim.estimand == "total":
            continue
        try:
            increments.append(as_increment(graph, claim, lambda_=lambda_, propensity=propensity))
        except NotComposableError as error:
            refused[claim.source] = str(error)
    combined = combine(increments) if increments else None

    reward = jnp.asarray(reward)
    scored = jnp.asarray(graph.trace_mask) & jnp.isfinite(reward)
    total = jnp.where(scored, reward, 0)
    zero = jnp.zeros_like(total)
    if expected is None:
        expected = _baseline(graph, totals[0] if totals else rloo(graph, reward))
    start = jnp.where(scored, jnp.asarray(expected, total.dtype), 0)
    end = zero if outcome is None else jnp.where(scored, jnp.asarray(outcome, total.dtype), 0)

    trace = jnp.asarray(graph.trace_ids)
    claimed = jnp.zeros(graph.num_events, bool) if combined is None else combined.there & scored[trace]
    amount = jnp.zeros(graph.num_events, total.dtype) if combined is None else combined.amount.astype(total.dtype)
    cells = jnp.where(claimed, amount, 0)
    partition = exact_partition(cells, trace, claimed, total, trace_cells=jnp.stack([start, end], axis=1))
    if not bool(jnp.all(partition.exact)):
        worst = int(jnp.argmin(partition.exact))
        raise CreditError(
            f"trace {worst} has entries outside the range of exact arithmetic: reward {float(total[worst])!r}, "
            f"largest claim {float(jnp.max(jnp.abs(jnp.where(trace == worst, cells, 0))))!r}"
        )
    entries = partition.trace_amounts
    return Ledger(
        reward=total,
        expected=entries[:, 0],
        outcome=entries[:, 1],
        unexplained=partition.residual,
        remainder=partition.remainder,
        increments=partition.amounts(trace),
        stderr=jnp.zeros_like(cells) if combined is None else jnp.where(claimed, combined.stderr, 0),
        claimed=claimed,
        partition=partition,
        combined=combined,
        refused=refused,
        coverage=_coverage(np.asarray(partition.residual)[scored], np.asarray(total - start)[scored]),
    )


def _baseline(graph: EventGraph, credit: Credit) -> jax.Array:
    """The baseline of each trace, 0 where it has none: [T]."""
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    first = segment_first(trace, num, credit.valid)
    there = segment_count(trace, num, credit.valid) > 0
    return jnp.where(there, jnp.asarray(credit.baseline)[first], 0)


def _coverage(unexplained: np.ndarray, difference: np.ndarray) -> float:
    spread = float(np.var(difference))
    return 1 - float(np.var(unexplained)) / spread if spread > 0 else float("nan")
