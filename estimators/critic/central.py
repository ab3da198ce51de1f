"""Advantages from centralised critics: CoLLM-MAAC's, and a Q critic centred by the policy for control variates.

Pure functions of given values, so that they run on this library's critic, a trainer's or a logged one alike.
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_reward, finish
from estimators.options import checked_options
from estimators.relative_mean import relative_to_first
from estimators.sequence.chains import chains
from estimators.sequence.multistep import gae
from estimators.short_rows import at_column, every_column, sum_of_columns
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import safe_sqrt, segment_count, segment_mean, segment_sum_squares

__all__ = ["centred_increments", "maac"]


@checked_options
@functools.partial(jax.jit, static_argnames=("kind", "normalise"))
def maac(
    graph: EventGraph,
    reward: Array,
    *,
    value: Array,
    q_value: Array | None = None,
    event_reward: Array | None = None,
    kind: Literal["v", "q"] = "v",
    discount: float | Array = 1.0,
    normalise: bool = False,
    eps: float | Array = 1e-6,
) -> Credit:
    """CoLLM-MAAC's advantage from a centralised critic, the outcome on the last turn.

        A = r + γ X(next turn) − X(this turn)

    Turns are an agent instance's own actions, in order; r is what arrived at its events, those of a joint turn where
    the log states them, and at its last turn the outcome, the same for all agents. X is
    V of the joint prompt ("v": `value`, V before the action) or Q of prompt and answer ("q": `q_value`; of a prefix
    critic that is V after the action, given all earlier events of other agents).

    With `normalise`, which the released trainer uses, A is brought to mean 0 and spread 1 among the actions of one
    agent name and turn number in the batch, (A − mean) / max(sd, eps) with ddof 0, where there are two or more; a
    single one stays as it is. Equal A of one slice become exactly 0.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      value: float [E], V of the state before each action; NaN where there is none.
      q_value: float [E], Q of the state and the action; NaN where there is none. Needed by `kind` "q" alone.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      kind: "v" or "q": which of the two is X.
      discount: γ, applied once for each action of the agent instance.
      normalise: whether A is standardised, as above.
      eps: the least spread that A is divided by.

    Returns:
      `Credit` at level "event"; estimand "return", or "scale" with `normalise`; `stderr` infinite.

    Raises:
      CreditError: `kind` is "q" and there is no `q_value`.
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: CoMLRL `comlrl/trainers/actor_critic/maac.py` at 1665784, from its text, not executed.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], reward=[1.0, 1.0], evidence={"value": [0.25, 0.5]})
      >>> rows.gather(credit.maac(graph, reward, value=rows.evidence["value"]).advantage).tolist()
      [0.25, 0.5]
    """
    if kind == "q" and q_value is None:
        raise CreditError("kind is 'q'; expected q_value, the value of the prefix with the action")
    step = gae(
        graph,
        reward,
        value=q_value if kind == "q" and q_value is not None else value,
        event_reward=event_reward,
        discount=discount,
        lambda_=0.0,
        along="agent",
    )
    baseline, scale = step.baseline, step.scale
    if normalise:
        rows = step.valid
        agent = jnp.asarray(graph.agent_ids)
        own_chain = chains(graph, rows, "agent")
        count = own_chain.back(jnp.cumsum(own_chain.row, dtype=jnp.int32))
        first = jax.ops.segment_min(jnp.where(rows, count, rows.shape[0] + 1), agent, num_segments=graph.num_agents)
        turn = jnp.where(rows, count - first[agent], 0)
        slice_ = pair_ids(jnp.asarray(graph.agent_name_ids)[agent], turn, rows, graph.num_agents)
        num, advantage = rows.shape[0], step.credit - step.baseline
        size = segment_count(slice_, num, rows, advantage.dtype)
        _, apart = relative_to_first(advantage, slice_, num, rows)
        mean = segment_mean(apart, slice_, num, rows)
        spread = safe_sqrt(segment_sum_squares(apart, mean, slice_, num, rows) / jnp.maximum(size, 1))
        several = (size > 1)[slice_]
        # Taken from the amount: a sum of V and the mean would be rounded, and `eps` would enlarge that.
        baseline = jnp.where(several, step.credit - (apart - mean[slice_]), baseline)
        scale = jnp.where(several, jnp.maximum(spread, eps)[slice_], scale)
    return finish(
        graph,
        credit=step.credit,
        baseline=baseline,
        scale=scale,
        stderr=step.stderr,
        reason=step.reason,
        unit="event",
        estimand="scale" if normalise else "return",
        source="maac",
        centred=False,
        own_outcome=True,
        recursion=None if normalise else step.recursion,
    )


@jax.jit
def centred_increments(graph: EventGraph, reward: Array, *, q: Array, policy: Array, chosen: Array) -> Credit:
    """Q̂ of the action minus the policy's mean of Q̂: increments whose mean under the policy is zero whatever Q̂ is.

        credit_e = Q̂(h, a),   baseline_e = Σ_j π_j Q̂(h, j)

    The claim that `estimators.control_advantage` may take out of the returns of other actions without bias, provided
    that Q̂ was fitted on other traces. Raw increments of V̂ are not centred where V̂(h) is not the policy's mean of Q̂.

    Args:
      graph: of the batch.
      q: float [E, J], Q̂ of each alternative of the decision at an event; NaN where there is no such alternative.
      policy: float [E, J], the probability of each; NaN or 0 where there is none.
      chosen: int [E], the alternative that was taken; −1 where the event has none to compare with.
      reward: float [T]; a trace without one gets no credit.

    Returns:
      `Credit` at level "event", estimand "increment", centred. An event is invalid where the probabilities do not add
      up to 1, where a possible alternative has no Q̂ (NO_EVIDENCE), or where only one was possible (NO_OVERLAP).

    Source: COMA's advantage (Foerster et al. 2018) with given alternatives; docs/data-model.md on control variates.
    """
    outcome, scored = check_reward(graph, reward)
    q, policy = (jnp.asarray(x).astype(outcome.dtype) for x in (q, policy))
    chosen = jnp.asarray(chosen)
    pi = jnp.where(jnp.isfinite(policy), policy, 0)
    known = every_column(jnp.isfinite(q) | (pi <= 0)) & (jnp.abs(sum_of_columns(pi) - 1) < 1e-3) & (chosen >= 0)
    values = jnp.where(jnp.isfinite(q), q, 0)
    own = jnp.clip(chosen, 0, q.shape[1] - 1)
    share = at_column(pi, own)
    overlap = (share > 0) & (share < 1)
    amount = at_column(values, own)
    reason = jnp.where(known, jnp.where(overlap, Reason.VALID, Reason.NO_OVERLAP), Reason.NO_EVIDENCE)
    return finish(
        graph,
        credit=amount,
        baseline=sum_of_columns(pi * values),
        scale=jnp.ones_like(amount),
        stderr=jnp.full_like(amount, jnp.inf),
        reason=jnp.where(scored[jnp.asarray(graph.trace_ids)], reason, Reason.NO_REWARD),
        unit="event",
        estimand="increment",
        source="critic",
        centred=True,
        own_outcome=False,
    )
