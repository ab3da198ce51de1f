"""Influence: an answer is worth what the team makes of it in the rounds that follow."""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, finish
from estimators.chains import chains
from estimators.group import row_scores
from estimators.replays import event_ids
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import safe_divide, segment_first, segment_mean

__all__ = ["maporl"]


@functools.partial(jax.jit, static_argnames=("horizon", "share"))
def maporl(
    graph: EventGraph,
    reward: Array,
    *,
    stage: Array,
    event_reward: Array | None = None,
    discount: float | Array = 0.3,
    horizon: Literal["discounted_sum", "last", "current"] = "discounted_sum",
    share: Literal["all", "individual"] = "all",
) -> Credit:
    """MAPoRL's score of an answer in a debate: its own verdict, and those of the whole team in later rounds.

    With s_ta the score of agent a's answer in round t, x the last round of the trace and s̄_t the mean over the answers
    of round t,

        discounted_sum   S_ta = [ s_ta + Σ_{t < t' ≤ x} d^(t'−t) s̄_t' ] / Σ_{t ≤ t' ≤ x} d^(t'−t)
        last             S_ta = s̄_x
        current          S_ta = s̄_t

    and with share "individual" the agent's own scores in place of every s̄. Weights run over the rounds played.
    PPO then takes S at the last token of the answer; there is no baseline here.

    Args:
      stage: int [E], the round of each answer; -1 where the log has none, and the answer is invalid. The rounds of an
        agent stand in the log in their order.
      reward, event_reward: s is the outcome plus the answer's own event reward. A verifier's verdicts on single answers
        are event rewards, with outcome 0.
      discount: d.
      horizon, share: as above.

    Returns:
      `Credit` at level "event", estimand "score"; `stderr` infinite.

    Reference: MAPoRL `score_rule` at c204c2c, executed, golden `maporl_score_rule`. The code fails where a task ended
    before the last round and is asked for its last one, and gives -1 for rounds that were not played; here those are
    simply not in the log. Its bonus for changed answers, which is 0 only where all its four weights are, is not here.
    """
    score, row = row_scores(graph, reward, event_reward)
    n, trace = graph.num_events, jnp.asarray(graph.trace_ids)
    number = event_ids(graph, "stage", stage)
    known = row & (number >= 0)
    of_round = pair_ids(trace, number, known, graph.num_traces)
    lead_of = segment_first(of_round, n, known)[of_round]
    mean = score[lead_of] + segment_mean(score - score[lead_of], of_round, n, known)[of_round]
    if share == "all":
        chain = chains(graph, known & (lead_of == jnp.arange(n, dtype=jnp.int32)))
        shared = chain.take(mean)
    elif share == "individual":
        chain = chains(graph, known, "agent")
        shared, lead_of = chain.take(score), jnp.arange(n, dtype=jnp.int32)
    else:
        raise ValueError(f"share is {share!r}; expected 'all' or 'individual'")
    ones = jnp.ones_like(shared)
    if horizon == "discounted_sum":
        total, weight = chain.backward(ones * discount, shared), chain.backward(ones * discount, ones)
        ahead = chain.back(total - jnp.where(chain.row, shared, 0))[lead_of]
        amount = safe_divide(score + ahead, chain.back(weight)[lead_of])
    elif horizon == "last":
        amount = chain.back(chain.backward(ones, jnp.where(chain.last, shared, jnp.zeros_like(shared))))[lead_of]
    elif horizon == "current":
        amount = chain.back(shared)[lead_of]
    else:
        raise ValueError(f"horizon is {horizon!r}; expected 'discounted_sum', 'last' or 'current'")
    zero = jnp.zeros_like(amount)
    return finish(
        graph,
        credit=amount,
        baseline=zero,
        scale=jnp.ones_like(amount),
        stderr=jnp.full_like(amount, jnp.inf),
        reason=jnp.where(row, jnp.where(known, Reason.VALID, Reason.NO_EVIDENCE), Reason.NO_REWARD),
        unit="event",
        estimand="score",
        source="maporl",
        centred=False,
        own_outcome=True,
    )
