"""Influence: the credit of an answer includes the team's verdicts in later rounds."""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, finish
from estimators.counterfactual.replays import event_ids
from estimators.members import row_scores
from estimators.options import checked_options
from estimators.sequence.chains import chains
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import safe_divide, segment_count, segment_first, segment_mean, segment_sum

__all__ = ["maporl"]


@checked_options
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
    bonus: Array | None = None,
    correct: Array | None = None,
    threshold: float | Array = 0.5,
) -> Credit:
    """MAPoRL's score of an answer in a debate: its own verdict, and those of the whole team in later rounds.

    With s_ta the score of agent a's answer in round t, x the last round of the trace and s̄_t the mean over the answers
    of round t,

        discounted_sum   S_ta = [ s_ta + Σ_{t < t' ≤ x} d^(t'−t) s̄_t' ] / Σ_{t ≤ t' ≤ x} d^(t'−t)
        last             S_ta = s̄_x
        current          S_ta = s̄_t

    and with share "individual" the agent's own scores in place of every s̄. Weights run over the rounds played.
    PPO then takes S at the last token of the answer; there is no baseline here.

    With `bonus`, α_0 to α_3, an answer also earns for changes between it and the rounds beside it. An answer is right
    (+1) above the threshold and wrong (−1) below it, the others of a round are so by the mean of their answers, and v
    is the answer's own sign:

        it turned, from −v in the round before to v     + v α_0 if the others stood at v then (it was persuaded)
                                                        + v α_1 if they stood at −v, or there were none
        the others turn, from −n now to n in the next   − n α_2 if v = −n,   − n α_3 if v = n

    The signs are the code's: with positive α_2, α_3 an answer loses where the others then turn right, and gains where
    they turn wrong.

    Args:
      graph: the batch.
      stage: int [E], the round of each answer; -1 where the log has none, and the answer is invalid. The rounds of an
        agent stand in the log in their order.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E] or None. s is the outcome plus the answer's own event reward: a verifier's verdicts on
        single answers are event rewards, with outcome 0. NaN counts as 0.
      discount: d.
      horizon, share: as above.
      bonus: float [4], α; None is no bonus.
      correct: float [E], the number compared with the threshold; NaN is neither right nor wrong. Default: s. In the
        code, s may be a learned verifier's verdict, while the bonus compares with the true answer.
      threshold: as above; exactly at it, an answer is neither.

    Returns:
      `Credit` at level "event", estimand "score"; `stderr` infinite.

    Reference: MAPoRL `score_rule` at c204c2c, executed, golden `maporl_score_rule`. The code fails where a task ended
    before the last round and is asked for its last one, and gives -1 for rounds that were not played; here those are
    simply not in the log. Its `bonus_rule` was read at 765ad1f, not executed; it is added whatever its flag `incentive`
    says, so that without it S is the code's only where α is 0. Left out of it: 0.001 where a bonus is exactly −1, its
    mark of unplayed rounds, and that these marks count as wrong answers where a task ended before the last round.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.
      CreditError: `bonus` has not four entries.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a"] * 4, agent=["x", "y"] * 2, row_reward=[0, 1, 1, 1],
      ...     evidence={"stage": [0, 0, 1, 1]})
      >>> given = {"stage": rows.evidence["stage"], "event_reward": rows.event_reward}
      >>> rows.gather(credit.maporl(graph, reward, **given).advantage).tolist()
      [0.2308, 1.0, 1.0, 1.0]
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
        raise CreditError(f"share is {share!r}; expected 'all' or 'individual'")
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
        raise CreditError(f"horizon is {horizon!r}; expected 'discounted_sum', 'last' or 'current'")
    if bonus is not None:
        judged = (score, known) if correct is None else check_event_array(graph, "correct", correct)
        amount = amount + _changes(graph, known, of_round, *judged, bonus, threshold)
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


def _sign(score: jax.Array, score_mask: jax.Array, threshold: float | Array) -> jax.Array:
    """+1 above the threshold, -1 below it, 0 at it or without a score: int32."""
    return jnp.where(score_mask & (score > threshold), 1, jnp.where(score_mask & (score < threshold), -1, 0))


def _changes(
    graph: EventGraph,
    known: jax.Array,
    of_round: jax.Array,
    score: jax.Array,
    score_mask: jax.Array,
    bonus: Array,
    threshold: float | Array,
) -> jax.Array:
    """MAPoRL's bonus of each answer, float [E]; `of_round` are ids [E] of the rounds of traces."""
    alpha = jnp.asarray(bonus)
    if alpha.shape != (4,):
        raise CreditError(f"bonus has shape {alpha.shape}; expected (4,), the weights alpha_0 to alpha_3")
    n, place, score_mask = graph.num_events, jnp.arange(graph.num_events, dtype=jnp.int32), score_mask & known
    sign = _sign(score, score_mask, threshold)
    of_agent = pair_ids(of_round, jnp.asarray(graph.agent_ids), known, n)  # an agent's answers of one round
    round_at, agent_at = segment_first(of_round, n, known)[of_round], segment_first(of_agent, n, known)[of_agent]

    # Each round and each agent's part of it is known by its first answer; -1 is none.
    rounds = chains(graph, known & (round_at == place))
    parts = chains(graph, known & (agent_at == place), "agent")
    next_round = rounds.back(rounds.following(rounds.take(place), end=-1))
    next_part = parts.back(parts.following(parts.take(place), end=-1))
    here, own_part = round_at, agent_at
    ahead, part_ahead = next_round[here], next_part[own_part]
    behind = _reverse(next_round, known & (round_at == place))[here]
    part_behind = _reverse(next_part, known & (agent_at == place))[own_part]
    part_ahead = jnp.where((part_ahead >= 0) & (round_at[part_ahead] == ahead), part_ahead, -1)
    part_behind = jnp.where((part_behind >= 0) & (round_at[part_behind] == behind), part_behind, -1)

    whole, whole_n = _totals(score, of_round, score_mask)
    part, part_n = _totals(score, of_agent, score_mask)

    def others(at: jax.Array, own: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The sign of the others' mean in the round of answer `at`, and whether there are others than `own`'s agent."""
        count = jnp.where(at >= 0, whole_n[at] - jnp.where(own >= 0, part_n[own], 0), 0)
        total = whole[at] - jnp.where(own >= 0, part[own], 0)
        return _sign(safe_divide(total, count), count > 0, threshold), count > 0

    before = jnp.where(part_behind >= 0, _sign(safe_divide(part, part_n), part_n > 0, threshold)[part_behind], 0)
    others_before, accompanied = others(behind, part_behind)
    (now, _), (later, _) = others(here, own_part), others(ahead, part_ahead)
    alone = ~accompanied | (others_before == -sign)
    why = jnp.where(alone, alpha[1], jnp.where(others_before == sign, alpha[0], 0))
    turned = jnp.where(sign * before == -1, sign * why, 0)
    led = jnp.where(sign == later, alpha[3], jnp.where(sign == -later, alpha[2], 0))
    return turned - jnp.where(now * later == -1, later * led, 0)


def _totals(score: jax.Array, ids: jax.Array, score_mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Sum and number of the scores of each event's segment: float [E] each."""
    n = ids.shape[0]
    return segment_sum(score, ids, n, score_mask)[ids], segment_count(ids, n, score_mask, score.dtype)[ids]


def _reverse(following: jax.Array, where: jax.Array) -> jax.Array:
    """The place that each place follows, -1 at the first, from the place that follows it: int32 [E]."""
    n = following.shape[0]
    at = jnp.where(where & (following >= 0), following, n)
    return jnp.full(n, -1, jnp.int32).at[at].set(jnp.arange(n, dtype=jnp.int32), mode="drop")
