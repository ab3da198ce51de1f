"""The weighted sum of ledgers: what several reward channels come to together, exactly."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from credit.ledger.account import Ledger
from estimators.base import Credit
from estimators.composition.exact import exact_partition
from graphs.errors import CreditError, expect

__all__ = ["weighted_sum"]


def weighted_sum(ledgers: Mapping[str, Ledger], weights: Mapping[str, float]) -> Ledger:
    """The ledger of Σ w R from the ledgers of the R: entries are weighted sums, and add up to it exactly.

    Its columns are the reward channels; its claims are theirs, scaled, with the channel before their source. A trace
    has an entry where every channel of non-zero weight has a reward. Standard errors add as if channels' errors were
    independent.

    Raises:
      CreditError: no ledgers, ledgers of different batches, a weight missing or too many, entries outside the range of
        exact arithmetic.
    """
    expect("ledgers", ledgers, Mapping, "ledgers by the names of their channels")
    expect("weights", weights, Mapping, "numbers by the names of the channels")
    if not ledgers or set(ledgers) != set(weights):
        raise CreditError(f"weights are of {sorted(weights)}; expected those of the ledgers, {sorted(ledgers)}")
    first = next(iter(ledgers.values()))
    graph = first.graph
    for name, ledger in ledgers.items():
        if ledger.graph is not graph:
            raise CreditError(f"the ledger of {name!r} is of another batch; expected one graph for all")
    used = {name: ledger for name, ledger in ledgers.items() if abs(weights[name]) > 0} or dict(ledgers)
    scored = jnp.all(jnp.stack([ledger.scored for ledger in used.values()]), axis=0)
    trace = jnp.asarray(graph.trace_ids)

    def summed(field: str) -> jnp.ndarray:
        parts = [weights[name] * jnp.asarray(getattr(ledger, field)) for name, ledger in ledgers.items()]
        return jnp.where(scored, sum(parts), 0).astype(first.reward.dtype)

    total, start, end = summed("reward"), summed("expected"), summed("outcome")
    claimed = scored[trace] & jnp.any(jnp.stack([ledger.claimed for ledger in ledgers.values()]), axis=0)
    cells = jnp.stack([weights[name] * ledger.increments for name, ledger in ledgers.items()], axis=1)
    cells = jnp.where(claimed[:, None], cells, 0).astype(total.dtype)
    width = len(ledgers)
    partition = exact_partition(
        cells.reshape(-1),
        jnp.repeat(trace, width),
        jnp.repeat(claimed, width),
        total,
        trace_cells=jnp.stack([start, end], axis=1),
    )
    if not bool(jnp.all(partition.exact)):
        worst = int(jnp.argmin(partition.exact))
        raise CreditError(f"trace {worst} has weighted entries outside the range of exact arithmetic")
    on_grid = partition.amounts(jnp.repeat(trace, width)).reshape(graph.num_events, width)
    variance = sum(
        (weights[name] * jnp.where(ledger.claimed, ledger.stderr, 0)) ** 2
        for name, ledger in ledgers.items()
        if abs(weights[name]) > 0
    )
    left, spread = np.asarray(partition.residual)[scored], float(np.var(np.asarray(total - start)[scored]))
    return dataclasses.replace(
        first,
        channels=tuple(ledgers),
        reward=total,
        scored=scored,
        expected=partition.trace_amounts[:, 0],
        outcome=partition.trace_amounts[:, 1],
        unexplained=partition.residual,
        remainder=partition.remainder,
        cells=on_grid,
        increments=jnp.sum(on_grid, axis=1),
        stderr=jnp.where(claimed, jnp.sqrt(jnp.asarray(variance, total.dtype)), 0),
        claimed=claimed,
        partition=partition,
        claims=tuple(
            _scaled(claim, name, weights[name])
            for name, ledger in used.items()
            for claim in ledger.claims
            if abs(weights[name]) > 0
        ),
        scales={},
        refused={f"{name}/{source}": why for name, ledger in ledgers.items() for source, why in ledger.refused.items()},
        chi_squared={},
        coverage=1 - float(np.var(left)) / spread if spread > 0 else float("nan"),
        unexplained_variance=float("nan"),
    )


def _scaled(claim: Credit, channel: str, weight: float) -> Credit:
    return dataclasses.replace(
        claim,
        credit=weight * jnp.asarray(claim.credit),
        baseline=weight * jnp.asarray(claim.baseline),
        stderr=jnp.where(claim.valid, abs(weight) * jnp.asarray(claim.stderr), 0),
        source=f"{channel}/{claim.source}",
    )
