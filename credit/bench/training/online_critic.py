"""A critic that learns during training, from the rewards of the training runs.

    R ≈ w₀ + Σ_{d taken} w_d[choice_d]        for each kind, by ridge regression

Sums over earlier steps are multiplied by `MEMORY` at each step, so that the critic follows the policy. A step's claims
use earlier steps only. An additive critic is exact where choices add up; elsewhere it holds the part that does.

Legend: n traces, K kinds, D decisions, C choices, F = 1 + D C features, E events.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from credit.bench.training.learning_tasks import LearningTask
from credit.bench.training.rollouts import Rollout

__all__ = ["CriticEvidence", "CriticSums", "critic_evidence", "fresh_critic", "learn"]

MEMORY = 0.95
"""What is left of earlier sums after a step: the critic sees about twenty steps."""

RIDGE = 3.0
"""Traces that the prior, weights of 0, counts for."""


class CriticSums(NamedTuple):
    """Sums of products of features φ, and of φ R: float32 [K, F, F] and [K, F]."""

    gram: jax.Array
    moment: jax.Array


class CriticEvidence(NamedTuple):
    """Values of the critic at the events of a rollout.

    Attributes:
      value: float32 [E], V̂ before each event: later decisions count with their mean under the policy.
      q: float32 [E, C], Q̂ of each choice; its mean under the policy is `value`.
      policy: float32 [E, C], probabilities.
      chosen: int32 [E].
    """

    value: jax.Array
    q: jax.Array
    policy: jax.Array
    chosen: jax.Array


def fresh_critic(task: LearningTask) -> CriticSums:
    """The sums before the first step.

    Examples:
      >>> from credit.bench.training.learning_tasks import learning_task
      >>> fresh_critic(learning_task("pivotal")).moment.shape
      (1, 25)

    Args:
      task: what is learned.
    """
    features = 1 + task.decisions * task.choices
    return CriticSums(jnp.zeros((task.kinds, features, features)), jnp.zeros((task.kinds, features)))


def learn(critic: CriticSums, rollout: Rollout) -> CriticSums:
    """The sums after a step.

    Args:
      critic: sums before it.
      rollout: the traces of the step.
    """
    task, n = rollout.task, len(rollout.kind)
    chosen = jnp.where(rollout.taken[..., None], jax.nn.one_hot(rollout.choice, task.choices), 0)
    features = jnp.concatenate([jnp.ones((n, 1)), chosen.reshape(n, -1)], axis=1)
    by_kind = jnp.where((rollout.kind[None] == jnp.arange(task.kinds)[:, None])[..., None], features[None], 0)
    gram = jnp.einsum("knf,ng->kfg", by_kind, features)
    return CriticSums(
        MEMORY * critic.gram + gram, MEMORY * critic.moment + jnp.einsum("knf,n->kf", by_kind, rollout.reward)
    )


def critic_evidence(critic: CriticSums, rollout: Rollout) -> CriticEvidence:
    """Values of a rollout's events by a critic that has not seen it.

    Args:
      critic: sums over earlier steps.
      rollout: the traces of the step.
    """
    task = rollout.task
    ridge = jnp.full(critic.moment.shape[1], RIDGE).at[0].set(1e-3)
    weights = jnp.linalg.solve(critic.gram + jnp.diag(ridge)[None], critic.moment[..., None])[..., 0]
    table = weights[:, 1:].reshape(task.kinds, task.decisions, task.choices)
    policy = jax.nn.softmax(rollout.logits)
    mean = jnp.sum(policy * table, axis=2)  # [K, D]
    own = jnp.take_along_axis(table[rollout.kind], rollout.choice[..., None], axis=2)[..., 0]
    surprise = jnp.where(rollout.taken, own - mean[rollout.kind], 0)
    start = (weights[:, 0] + mean.sum(axis=1))[rollout.kind]
    value = start[:, None] + jnp.cumsum(surprise, axis=1) - surprise
    q = value[..., None] + (table - mean[..., None])[rollout.kind]
    return CriticEvidence(
        rollout.of_events(value),
        rollout.of_events(q),
        rollout.of_events(policy[rollout.kind]),
        rollout.of_events(rollout.choice),
    )
