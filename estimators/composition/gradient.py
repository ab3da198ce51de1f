"""The policy gradient that advantages give, with its standard error: a batch's estimate of the direction to step in.

    ĝ = (1 / T) Σ_t Σ_{e in t} A_e ∇ log π(e)

Traces of a group are coupled by their baselines, and replays by the choices that they share
(`EventGraph.cluster_ids`). So the independent samples are groups, those joined that hold replays of one trace. With K
samples, T_k traces in sample k and g_k the sum over them, the error of the ratio Σ g_k / Σ T_k is

    stderr² = K / (K − 1) · Σ_k (g_k − T_k ĝ)² / T²
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import Credit
from estimators.clusters import independent_groups
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_sqrt, segment_count, segment_sum

__all__ = ["Gradient", "policy_gradient"]


class Gradient(NamedTuple):
    """An estimate of the policy gradient over D parameters.

    Attributes:
      mean: float [D], ĝ, per trace.
      stderr: float [D], its standard error over groups; infinite where there are fewer than two.
      groups: int, how many groups it rests on; groups that hold replays of one trace count as one.
    """

    mean: jax.Array
    stderr: jax.Array
    groups: jax.Array


@jax.jit
def policy_gradient(graph: EventGraph, credit: Credit, score: Array) -> Gradient:
    """The policy gradient of a batch and its standard error, from advantages and the scores of actions.

    ĝ and its error are in the docstring of this module. Tasks count as a sample: the error holds how much gradients
    differ between them. Actions without a valid advantage push nothing; traces without one are not counted. Each other
    trace counts as one, replays too: with replays the mean is right only if every trace has as many, whatever it chose.

    Args:
      graph: uses trace, group and cluster ids.
      credit: [E], whose `advantage` multiplies the scores.
      score: float [E, D], ∇ log π of each action by D parameters: all of them, or some, or a random projection.

    Returns:
      `Gradient`, in units of reward per unit of the parameters.

    Raises:
      CreditError: `score` has not one row for each event.

    Source: the delta method for a ratio of sums over clusters, as in any survey sampling text.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0, 1, 1], trace=[0, 1, 2, 3], reward=[1.0, 0.0, 1.0, 0.0])
      >>> score = np.zeros((graph.num_events, 1), np.float32)
      >>> score[rows.event, 0] = [0.5, -0.5, 0.5, 0.5]
      >>> gradient = policy_gradient(graph, credit.rloo(graph, reward), score)
      >>> print(gradient.mean, gradient.stderr, gradient.groups)
      [0.25] [0.25] 2
    """
    score = jnp.asarray(score)
    if score.ndim != 2 or score.shape[0] != graph.num_events:
        raise CreditError(f"score has shape {score.shape}; expected ({graph.num_events}, D), one row for each event")
    trace, group, num = jnp.asarray(graph.trace_ids), independent_groups(graph), graph.num_traces
    pushed = jnp.where(credit.valid[:, None], jnp.asarray(credit.advantage)[:, None] * score, 0)
    by_group = segment_sum(segment_sum(pushed, trace, num), group, num)
    used = segment_count(trace, num, credit.valid, pushed.dtype) > 0
    traces = segment_count(group, num, used, pushed.dtype)
    total, groups = jnp.sum(traces), jnp.sum(jnp.where(traces > 0, 1, 0))
    mean = jnp.sum(by_group, axis=0) / jnp.where(total > 0, total, 1)
    count = groups.astype(pushed.dtype)
    # Groups are independent, traces of a group are not: the error is that of a ratio of sums over groups.
    squares = jnp.sum((by_group - traces[:, None] * mean[None]) ** 2, axis=0)
    error = safe_sqrt(squares * count / jnp.where(count > 1, count - 1, 1)) / jnp.where(total > 0, total, 1)
    return Gradient(mean, jnp.where(groups > 1, error, jnp.inf), groups)
