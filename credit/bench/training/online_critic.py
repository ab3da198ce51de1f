"""A critic that learns during training, from the rewards of the training runs.

    R ≈ w₀ + Σ_{d taken} w_d[choice_d]        for each kind, by ridge regression

Where all decisions are always taken, the mean of w_d over choices only adds to w₀, so that C − 1 contrasts of choices
take the place of C weights: w_d = H v_d with HᵀH = I and Σ_c H[c] = 0. The values are the same.

Sums over earlier steps are multiplied by `MEMORY` at each step, so that the critic follows the policy. A step's claims
use earlier steps only. An additive critic is exact where choices add up; elsewhere it holds the part that does.

Legend: n traces, K kinds, D decisions, C choices, B columns of a choice (C, or C − 1 contrasts), F = 1 + D B features,
E events.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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
      surprise: float32 [E], Q̂ of the choice minus its mean under the policy: a centred increment.
    """

    value: jax.Array
    q: jax.Array
    policy: jax.Array
    chosen: jax.Array
    surprise: jax.Array


def fresh_critic(task: LearningTask) -> CriticSums:
    """The sums before the first step.

    Examples:
      >>> from credit.bench.training.learning_tasks import learning_task
      >>> fresh_critic(learning_task("pivotal")).moment.shape
      (1, 25)
      >>> fresh_critic(learning_task("planner")).moment.shape
      (1, 53)

    Args:
      task: what is learned.
    """
    features = 1 + task.decisions * _columns(task).shape[1]
    return CriticSums(jnp.zeros((task.kinds, features, features)), jnp.zeros((task.kinds, features)))


def learn(critic: CriticSums, rollout: Rollout) -> CriticSums:
    """The sums after a step.

    Args:
      critic: sums before it.
      rollout: the traces of the step.
    """
    task, n = rollout.task, len(rollout.kind)
    chosen = jnp.where(rollout.taken[..., None], jnp.asarray(_columns(task))[rollout.choice], 0)
    features = jnp.concatenate([jnp.ones((n, 1)), chosen.reshape(n, -1)], axis=1)
    by_kind = jnp.where((rollout.kind[None] == jnp.arange(task.kinds)[:, None])[..., None], features[None], 0)
    gram = jnp.einsum("knf,ng->kfg", by_kind, features)
    return CriticSums(
        MEMORY * critic.gram + gram, MEMORY * critic.moment + jnp.einsum("knf,n->kf", by_kind, rollout.reward)
    )


def critic_evidence(critic: CriticSums, rollout: Rollout, ridge: float = RIDGE) -> CriticEvidence:
    """Values of a rollout's events by a critic. Claims of one that has not seen the rollout depend on no own outcome.

    Args:
      critic: sums over earlier steps.
      rollout: the traces of the step.
      ridge: traces that the prior, weights of 0, counts for.
    """
    task = rollout.task
    columns = _columns(task)
    first = 1e-3
    if columns.shape[1] < task.choices:  # w₀ has taken up D means with a prior of their own
        first = 1 / (1 / first + task.decisions / (task.choices * ridge))
    prior = jnp.full(critic.moment.shape[1], ridge).at[0].set(first)
    factor = jnp.linalg.cholesky(critic.gram + jnp.diag(prior)[None])
    weights = jax.scipy.linalg.cho_solve((factor, True), critic.moment[..., None])[..., 0]
    table = weights[:, 1:].reshape(task.kinds, task.decisions, -1) @ columns.T
    policy = jax.nn.softmax(rollout.logits)
    mean = jnp.sum(policy * table, axis=2)  # [K, D]
    of_kind = (table - mean[..., None])[rollout.kind]
    of_choice = of_kind[..., 0]
    for c in range(1, task.choices):  # XLA reduces and gathers short last axes slowly on a CPU
        of_choice = jnp.where(rollout.choice == c, of_kind[..., c], of_choice)
    surprise = jnp.where(rollout.taken, of_choice, 0)
    start = (weights[:, 0] + mean.sum(axis=1))[rollout.kind]
    earlier = np.triu(np.ones((task.decisions, task.decisions), np.float32), 1)
    # A product, since XLA computes running sums slowly on a CPU, and anew wherever they are used.
    value = start[:, None] + jnp.matmul(surprise, earlier, precision="highest")
    q = value[..., None] + of_kind
    return CriticEvidence(
        rollout.of_events(value),
        rollout.of_events(q),
        rollout.of_events(policy[rollout.kind]),
        rollout.of_events(rollout.choice),
        rollout.of_events(surprise),
    )


def _columns(task: LearningTask) -> np.ndarray:
    """What stands for each choice in the regression: float32 [C, B]."""
    c = task.choices
    if task.taken is not None:
        return np.eye(c, dtype=np.float32)
    contrasts = np.zeros((c, c - 1))
    for j in range(c - 1):  # Helmert's: choice j + 1 against the mean of those before it
        contrasts[: j + 1, j], contrasts[j + 1, j] = 1, -(j + 1)
        contrasts[:, j] /= np.sqrt((j + 1) * (j + 2))
    return contrasts.astype(np.float32)
