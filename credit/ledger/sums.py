"""The weighted sum of the ledgers of several reward channels, exact."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.account import Ledger
from credit.ledger.composition import Balance, partitioned
from credit.ledger.rules import Composed
from estimators.base import Credit
from estimators.composition.votes import Errors
from graphs.errors import CreditError, expect

__all__ = ["weighted_claim", "weighted_sum"]


def weighted_sum(ledgers: Mapping[str, Ledger], weights: Mapping[str, float]) -> Ledger:
    """The ledger of Σ w R from the ledgers of the R: entries are weighted sums, and add up to it exactly.

    Its columns are the reward channels; its claims are theirs, scaled, with the channel before their source. A trace
    has an entry where every channel of non-zero weight has a reward and does not refuse it. Standard errors add as if
    channels' errors were independent. `explained` is NaN: a sum of channels says nothing about it.

    Args:
      ledgers: of one batch, by the names of their channels.
      weights: one finite number for each of them.

    Raises:
      CreditError: no ledgers, ledgers of different batches, a weight missing, too many or not finite.

    Examples:
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[1.0, 0.0])
      >>> one, two = credit.compose(graph, reward, []), credit.compose(graph, 3 * reward, [])
      >>> print(credit.ledger.weighted_sum({"team": one, "bonus": two}, {"team": 1.0, "bonus": 0.5}).reward[:2])
      [2.5 0. ]
    """
    expect("ledgers", ledgers, Mapping, "ledgers by the names of their channels")
    expect("weights", weights, Mapping, "numbers by the names of the channels")
    if not ledgers or set(ledgers) != set(weights):
        raise CreditError(f"weights are for {sorted(weights)}; expected one for each ledger, {sorted(ledgers)}")
    first = next(iter(ledgers.values()))
    graph = first.graph
    for name, ledger in ledgers.items():
        if ledger.graph is not graph:
            raise CreditError(f"the ledger of {name!r} is of another batch; expected one graph for all")
        if not np.isfinite(weights[name]):
            raise CreditError(f"the weight of {name!r} is {weights[name]}; expected a finite number")
    used = {name: ledger for name, ledger in ledgers.items() if abs(weights[name]) > 0} or dict(ledgers)
    scored = jnp.all(jnp.stack([ledger.scored for ledger in used.values()]), axis=0)

    def summed(field: str) -> jax.Array:
        parts = [weights[name] * jnp.asarray(getattr(ledger, field)) for name, ledger in ledgers.items()]
        return jnp.where(scored, sum(parts), 0).astype(first.reward.dtype)

    refused = {f"{name}/{source}": why for name, ledger in ledgers.items() for source, why in ledger.refused.items()}
    ledger = partitioned(
        graph,
        first.rule,
        Balance(summed("reward"), scored, summed("expected"), summed("outcome")),
        _composed(ledgers, used, weights, scored[jnp.asarray(graph.trace_ids)], refused),
        scales={},
        refused=refused,
        errors=Errors(),
    )
    other = {f"{name}/{source}": why for name, part in used.items() for source, why in part.other_rewards.items()}
    left_out = {row: f"{name}: {why}" for name, part in used.items() for row, why in part.refused_traces.items()}
    return dataclasses.replace(ledger, other_rewards=other, refused_traces={**left_out, **ledger.refused_traces})


def _composed(
    ledgers: Mapping[str, Ledger],
    used: Mapping[str, Ledger],
    weights: Mapping[str, float],
    in_scored: jax.Array,
    refused: dict[str, str],
) -> Composed:
    """The increments of each ledger as cells, times its weight."""
    claimed = in_scored & jnp.any(jnp.stack([ledger.claimed for ledger in used.values()]), axis=0)
    cells = jnp.stack([weights[name] * ledger.increments for name, ledger in ledgers.items()], axis=1)
    variance = sum(
        (weights[name] * jnp.where(ledger.claimed, ledger.stderr, 0)) ** 2
        for name, ledger in used.items()
        if abs(weights[name]) > 0
    )
    stderr = jnp.sqrt(jnp.asarray(variance, cells.dtype)) * jnp.ones(claimed.shape, cells.dtype)
    return Composed(
        channels=tuple(ledgers),
        cells=jnp.where(claimed[:, None], cells, 0),
        stderr=stderr,
        claimed=claimed,
        claims=tuple(
            weighted_claim(claim, name, weights[name])
            for name, ledger in used.items()
            for claim in ledger.claims
            if abs(weights[name]) > 0
        ),
        refused=refused,
        chi_squared={},
    )


def weighted_claim(claim: Credit, channel: str, weight: float) -> Credit:
    """A claim on a channel's reward times the channel's weight, with the channel before its source."""
    return dataclasses.replace(
        claim,
        credit=weight * jnp.asarray(claim.credit),
        baseline=weight * jnp.asarray(claim.baseline),
        stderr=jnp.where(claim.valid, abs(weight) * jnp.asarray(claim.stderr), 0),
        source=f"{channel}/{claim.source}",
    )
