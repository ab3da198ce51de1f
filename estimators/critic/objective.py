"""The training objective: the loss of every prefix against the λ-return of the outcome, for one member and for all."""

from __future__ import annotations

import estimators.critic.extra  # isort: skip  # noqa: F401

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from estimators.critic.data import Batch
from estimators.critic.network import Architecture, PrefixBatch, PrefixCritic
from estimators.sequence.chains import linked
from graphs.event_graph import Array

__all__ = ["ensemble_loss", "initial", "member_loss", "predict"]


def initial(sizes: Architecture, members: int, seed: int, mean: float) -> Any:
    """Parameters of each member, drawn independently, stacked; each gives every prefix the value `mean`."""
    keys = jax.random.split(jax.random.key(seed), members)
    drawn = jax.vmap(lambda key: nnx.split(PrefixCritic(sizes, nnx.Rngs(key)))[1])(keys)
    p = min(max(mean, 1e-3), 1 - 1e-3)
    drawn["start"][...] = jnp.full(members, jnp.log(p / (1 - p)) if sizes.head == "bernoulli" else mean)
    return drawn


@functools.cache
def _definition(sizes: Architecture) -> nnx.GraphDef[PrefixCritic]:
    return nnx.split(nnx.eval_shape(lambda: PrefixCritic(sizes, nnx.Rngs(0))))[0]


def predict(sizes: Architecture, parameters: Any, batch: PrefixBatch) -> tuple[jax.Array, jax.Array]:
    """V̂(G≤e) [M, E] and V̂(∅) [M] of each member, as probabilities or standardised values."""
    z, start = jax.vmap(lambda own: nnx.merge(_definition(sizes), own)(batch))(parameters)
    return (jax.nn.sigmoid(z), jax.nn.sigmoid(start)) if sizes.head == "bernoulli" else (z, start)


def member_loss(sizes: Architecture, own: Any, slow: Any, batch: Batch, weight: Array, lambda_: float) -> jax.Array:
    """One member's loss on a batch: sum over its traces, each with its weight; weight float [B].

    A prefix with n further runs of mean m stands for n + 1 outcomes: its target is (y + n m) / (n + 1), its weight
    n + 1 times that of a prefix without runs. This is the log-likelihood of all outcomes, up to a constant.
    """
    z, start = nnx.merge(_definition(sizes), own)(batch.prefix)
    trace, mask = batch.prefix.trace, batch.prefix.mask
    final = jnp.asarray(batch.reward)[trace]
    if lambda_ < 1:
        slow_value, _ = nnx.merge(_definition(sizes), slow)(batch.prefix)
        slow_value = jax.lax.stop_gradient(jax.nn.sigmoid(slow_value) if sizes.head == "bernoulli" else slow_value)
        chain = linked(jnp.asarray(trace), jnp.asarray(mask))
        ahead = (1 - lambda_) * chain.following(slow_value)
        target = chain.backward(jnp.full_like(slow_value, lambda_), jnp.where(batch.last, final, ahead))
        begins = mask & jnp.concatenate([jnp.ones(1, bool), trace[1:] != trace[:-1]])
        at_start = jax.ops.segment_sum(
            jnp.where(begins, (1 - lambda_) * slow_value + lambda_ * target, 0),
            trace,
            num_segments=batch.reward.shape[0],
        )
    else:
        target, at_start = final, jnp.asarray(batch.reward)
    target, counts = _with_runs(target, batch.runs, batch.run_mean)
    at_start, counts_at_start = _with_runs(at_start, batch.first_runs, batch.first_mean)
    each = jnp.where(mask, _loss(sizes, z, target) * counts * batch.weight * weight[trace], 0)
    share = jax.ops.segment_sum(jnp.where(batch.last, batch.weight, 0), trace, num_segments=batch.reward.shape[0])
    empty = (
        _loss(sizes, jnp.broadcast_to(start, at_start.shape), at_start) * counts_at_start * share * weight
    )  # 0 in padding
    result: jax.Array = each.sum() + empty.sum()
    return result


def _with_runs(target: Array, runs: Array, run_mean: Array) -> tuple[jax.Array, jax.Array]:
    """The mean of one outcome and n runs of a prefix, and n + 1."""
    runs = jnp.asarray(runs)
    return (target + runs * run_mean) / (1 + runs), 1 + runs


def _loss(sizes: Architecture, z: Array, target: Array) -> jax.Array:
    if sizes.head == "bernoulli":
        loss: jax.Array = optax.sigmoid_binary_cross_entropy(z, target)
    else:
        loss = 0.5 * (z - jnp.asarray(target)) ** 2
    return loss


@functools.cache
def ensemble_loss(sizes: Architecture) -> Callable[[Any, Batch], jax.Array]:
    """Summed loss of the ensemble's mean over the traces of a batch, without the empty prefix."""

    @jax.jit
    def judge(parameters: Any, batch: Batch) -> jax.Array:
        value = predict(sizes, parameters, batch.prefix)[0].mean(axis=0)
        target, counts = _with_runs(jnp.asarray(batch.reward)[batch.prefix.trace], batch.runs, batch.run_mean)
        if sizes.head == "bernoulli":
            p = jnp.clip(value, 1e-6, 1 - 1e-6)
            each = -(target * jnp.log(p) + (1 - target) * jnp.log1p(-p))
        else:
            each = 0.5 * (value - target) ** 2
        return jnp.sum(jnp.where(batch.prefix.mask, each * counts * batch.weight, 0))

    return judge
