"""Credit read out of given value functions: COMA's advantage, and the shares of agents in a mixed team value.

A critic or a mixer comes from elsewhere; nothing here is learned. These need the values of actions that were not taken,
which no ordinary log holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.options import checked_options
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph

__all__ = ["agent_qmix_reward", "coma", "coma_advantage", "mixer_credit", "qmix", "vdn"]


@checked_options
@jax.jit
def coma(
    graph: EventGraph, reward: Array, *, q_value: Array, target_value: Array, event_reward: Array | None = None
) -> Credit:
    """COMA on a log: the critic's value of the chosen action minus its mean over what could have been chosen there.

        A = Q(h, a) − Σ_a' π(a' | h) Q(h, a')

    Both are from one critic. With an exact critic it is the increment of the
    decision, unbiased and without the noise of outcomes. An error of Q biases it by that error. Its mean under π is 0
    only if `target_value` is the policy's mean of `q_value`. No outcome enters it.

    Args:
      graph: uses the masks.
      reward: float [T]; only where it is NaN matters: a trace without outcome gets no credit from any method.
      q_value: float [E], Q of the chosen action; NaN where the log has none.
      target_value: float [E], the same critic's mean over all alternatives under the policy that is trained; where that
        is the policy that acted, its own: the baseline that `coma_advantage` returns. NaN where the log has none.
      event_reward: not used; Q is of everything that is still to come.

    Returns:
      `Credit` at level "event", estimand "increment"; `stderr` infinite, since a critic's error is not in the log.

    Raises:
      CreditError: wrong shapes or dtypes.

    Reference: Foerster et al. 2018, arXiv:1705.08926; pymarl `coma_learner.py` at c971afd, read and not executed:
    `coma_adv_by_hand` is worked by hand.

    Examples:
      >>> import numpy as np
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(group=["g"] * 8, trace=["t"] * 8, reward=[1.0] * 8, events=8)
      >>> q, mean = np.full(8, 0.75, np.float32), np.full(8, 0.5, np.float32)
      >>> float(credit.coma(graph, reward, q_value=q, target_value=mean).advantage[0])
      0.25
    """
    del event_reward
    scored = check_reward(graph, reward)[1][graph.trace_ids]
    q, has_q = check_event_array(graph, "q_value", q_value)
    mean, has_mean = check_event_array(graph, "target_value", target_value)
    known = jnp.where(has_q & has_mean, Reason.VALID, Reason.NO_EVIDENCE)
    return finish(
        graph,
        credit=q,
        baseline=mean.astype(q.dtype),
        scale=jnp.ones_like(q),
        stderr=jnp.full_like(q, jnp.inf),
        reason=jnp.where(scored, known, Reason.NO_REWARD),
        unit="event",
        estimand="increment",
        source="coma",
        centred=True,
        own_outcome=False,
    )


@jax.jit
def coma_advantage(
    q_values: Array, policy: Array, action: Array, available: Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """COMA: the value of the chosen action minus the policy's mean over what the agent could have done instead.

    A = Q(s, u) − Σ_a π(a) Q(s, (u without the agent's own, a)), the others' actions held fixed. Its mean under π is 0.

    Args:
      q_values, policy: float [..., N], over the N alternatives of one agent.
      action: int [...], the alternative taken.
      available: bool [..., N]; π is renormalised over the available. None: all are. Where none is, A is 0.

    Returns:
      The advantage and the baseline, float [...] each.

    Reference: Foerster et al. 2018, arXiv:1705.08926; pymarl `coma_learner.py` at c971afd, read and not executed:
    `coma_adv_by_hand` is worked by hand.

    Examples:
      >>> import jax.numpy as jnp
      >>> q, policy = jnp.array([1.0, 0.0]), jnp.array([0.25, 0.75])
      >>> advantage, baseline = coma_advantage(q, policy, jnp.array(0))
      >>> float(advantage), float(baseline)
      (0.75, 0.25)
    """
    q, pi = jnp.asarray(q_values), jnp.asarray(policy)
    if q.shape != pi.shape or q.ndim == 0:
        raise CreditError(f"q_values has shape {q.shape}, policy {pi.shape}; expected one shape [..., N]")
    if available is not None:
        q, pi = jnp.where(available, q, 0), jnp.where(available, pi, 0)
    total = jnp.sum(pi, -1, keepdims=True)
    pi = jnp.where(total > 0, pi / jnp.where(total > 0, total, 1), 0)
    taken = jnp.take_along_axis(q, jnp.asarray(action)[..., None], axis=-1)[..., 0]
    # Relative to the chosen one, so that equal alternatives differ by exactly 0.
    advantage = -jnp.sum(pi * (q - taken[..., None]), -1)
    return advantage, taken - advantage


def vdn(agent_values: Array) -> jax.Array:
    """VDN's team value: the sum over agents, float [..., A] to [...]. Sunehag et al. 2017, arXiv:1706.05296."""
    return jnp.sum(jnp.asarray(agent_values), -1)


def qmix(agent_values: Array, state: Array, parameters: Mapping[str, Array]) -> jax.Array:
    """QMIX's team value: float [A] and float [S] to a number; `vmap` for more.

    Q_tot = |W_2(s)| · elu(|W_1(s)|ᵀ q + b_1(s)) + V(s), with W_1 [A, M], W_2 [M] and b_1 [M] linear in the state and V
    of two layers. Absolute values make it increase in every agent's value.

    Args:
      parameters: arrays by pymarl's names: `hyper_w_1`, `hyper_w_final`, `hyper_b_1`, `V.0`, `V.2`, each with `.weight`
        [out, in] and `.bias` [out]; one-layer hypernetworks.

    Reference: Rashid et al. 2018, arXiv:1803.11485; pymarl `QMixer` at c971afd, executed, golden `pymarl_qmix`.

    Examples:
      >>> import jax.numpy as jnp
      >>> names = {"hyper_w_1": (2, 1), "hyper_w_final": (1, 1), "hyper_b_1": (1, 1), "V.0": (1, 1), "V.2": (1, 1)}
      >>> weights = {f"{name}.weight": jnp.ones(shape) for name, shape in names.items()}
      >>> biases = {f"{name}.bias": jnp.zeros(shape[0]) for name, shape in names.items()}
      >>> float(qmix(jnp.array([0.5, 0.25]), jnp.array([1.0]), weights | biases))
      2.75
    """
    q, s = jnp.asarray(agent_values), jnp.asarray(state)

    def linear(name: str, x: jax.Array) -> jax.Array:
        return jnp.asarray(parameters[f"{name}.weight"]) @ x + jnp.asarray(parameters[f"{name}.bias"])

    first = jnp.abs(linear("hyper_w_1", s)).reshape(q.shape[0], -1)
    hidden = jax.nn.elu(q @ first + linear("hyper_b_1", s))
    bias = linear("V.2", jax.nn.relu(linear("V.0", s)))[0]
    return hidden @ jnp.abs(linear("hyper_w_final", s)) + bias


def mixer_credit(mixer: Callable[..., Any], agent_values: Array, *rest: Any) -> tuple[jax.Array, jax.Array]:
    """The team value, and how much it moves with each agent's: Q_tot and ∂Q_tot/∂q_i, of the shape of `agent_values`.

    At VDN every slope is 1; at a monotone mixer none is negative. A slope is a sensitivity, not a share: slopes times
    values do not add up to Q_tot unless the mixer is linear.

    Args:
      mixer: `mixer(agent_values, *rest)`, a number for float [A]; such as `vdn`, or `qmix` with a state and parameters.

    Examples:
      >>> import jax.numpy as jnp
      >>> total, slopes = mixer_credit(vdn, jnp.array([0.5, 0.25]))
      >>> float(total), slopes.tolist()
      (0.75, [1.0, 1.0])
    """
    return jax.value_and_grad(mixer)(jnp.asarray(agent_values), *rest)


@jax.jit
def agent_qmix_reward(
    accuracy: Array,
    tokens: Array,
    *,
    accuracy_weight: float | Array = 1.0,
    token_weight: float | Array = 0.1,
    max_tokens: float | Array = 10000,
) -> jax.Array:
    """Agent Q-Mix's team reward: w_acc · accuracy − w_tok · min(tokens / max_tokens, 1), of the inputs' shape.

    Reference: Agent Q-Mix `QMIXTrainer.compute_reward` at c115476, executed, golden `agent_qmix_reward`. Its trainer
    repeats this reward at every step and never regresses on the last one.

    Examples:
      >>> import jax.numpy as jnp
      >>> round(float(agent_qmix_reward(jnp.array(1.0), jnp.array(5000.0))), 3)
      0.95
    """
    spent = jnp.minimum(jnp.asarray(tokens) / max_tokens, 1)
    return accuracy_weight * jnp.asarray(accuracy) - token_weight * spent
