"""Turn-level baselines: the k-th turn of a trace against the k-th turns of the other traces of its task.

A turn is one agent's, or that of all who act at once, and the k-th turn the team's: turns are counted in the order of
their first actions, over all agents. Where the policy decides how many turns there are, a comparison by number can be
biased. `turn_baseline` is unbiased; `mt_grpo`, the published form, is not, and
its docstring has the bias in closed form. Both need rewards only.
"""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, Recursion, StateValues, check_reward, finish
from estimators.baselines.turn_values import turn_values
from estimators.clusters import clusters_of
from estimators.group import group_relative
from estimators.members import Members, statistics
from estimators.options import checked_options
from estimators.relative_mean import relative_to_first
from estimators.sequence.chains import Chains, chains, rewards_of_turns
from estimators.sequence.running_count import running_count
from estimators.spread_of_others import squares_of_others
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import (
    safe_divide,
    safe_sqrt,
    segment_count,
    segment_first,
    segment_sum,
)
from graphs.turn_ends import ends_of_turns

__all__ = ["Turns", "mt_grpo", "turn_baseline", "turns"]


class Turns(NamedTuple):
    """The turns of a batch, each at its first action; arrays [E] unless said otherwise.

    Attributes:
      chain: the first actions of turns as chains along traces.
      row: bool, actions of traces that have an outcome.
      leads: bool, whether the event is the first action of its turn.
      lead_of: int32, for every event, the first action of its turn.
      key: int32 in [0, E), of each row, one id for each pair of a group and a number of turns that came before its own.
      earned: float, at first actions, what arrived at events from there to before the next turn began.
      ahead: float, at each row, what was earned from its turn on, and the outcome.
      reference: float, at each event, an `ahead` of its key or, without event rewards, of its group.
      relative: float, at each row, `ahead` minus `reference`; equal ones differ by exactly 0.
      rivals: float, at every event, how many traces its group has; replays of one trace are one.
      weight: float, at every event, one over the number of replays in its trace's cluster; 1 without replays.
      cluster: int32 in [0, E), of the turn of each row, one id for each pair of a key and a cluster; None without
        replays.
      shared_mask: bool, whether all other traces of the group share a choice with the event's.
    """

    chain: Chains
    row: jax.Array
    leads: jax.Array
    lead_of: jax.Array
    key: jax.Array
    earned: jax.Array
    ahead: jax.Array
    reference: jax.Array
    relative: jax.Array
    rivals: jax.Array
    weight: jax.Array
    cluster: jax.Array | None
    shared_mask: jax.Array

    def to_go(self, values: jax.Array) -> jax.Array:
        """At each row, the sum of `values`, at first actions, over its turn and the later ones of the trace."""
        return _to_go(self.chain, values)[self.lead_of]


def _to_go(chain: Chains, values: jax.Array) -> jax.Array:
    return chain.back(chain.backward(jnp.ones_like(values), chain.take(values)))


def turns(graph: EventGraph, reward: Array, event_reward: Array | None) -> Turns:
    """The turns of every trace, their places, and what each of them earned. Those that begin in a joint turn are one.

    A trace counts among the rivals of its group where it has an outcome and at least one action, be it that of a frozen
    agent. With replays, rivals are clusters of traces (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Returns:
      `Turns`.

    Raises:
      CreditError: wrong shapes or dtypes.

    Examples:
      >>> import credit
      >>> from estimators.baselines.turns import turns
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], turn=[0, 1], reward=[1.0, 1.0], event_reward=[0.25, 0.5])
      >>> result = turns(graph, reward, rows.event_reward)
      >>> rows.gather(result.key).tolist(), rows.gather(result.earned).tolist()
      ([0, 1], [0.25, 0.5])
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    n, trace = graph.num_events, jnp.asarray(graph.trace_ids)
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[trace]
    turn = jnp.asarray(graph.turn_ids)
    place = jnp.arange(n, dtype=jnp.int32)
    lead_of = segment_first(turn, n, row)[turn]
    if graph.joint_mask is not None:
        at_once = ends_of_turns(graph)
        lead_of = segment_first(at_once, n, row & (lead_of == place))[at_once[lead_of]]
    leads = row & (lead_of == place)
    group = jnp.asarray(graph.group_ids)
    played = segment_count(trace, graph.num_traces, leads, jnp.int32)
    earlier = jnp.cumsum(played, dtype=jnp.int32) - played  # trace ids do not decrease over events
    # The keys of a group lie side by side: as many as its longest trace has turns.
    room = jnp.maximum(jax.ops.segment_max(played, group, num_segments=graph.num_traces), 0)
    begin = (jnp.cumsum(room, dtype=jnp.int32) - room)[group]
    places = jnp.arange(graph.num_traces, dtype=jnp.int32)
    # What a scatter writes XLA computes once a trace; else it would anew at each event that looks it up.
    ahead_of_number = jnp.zeros_like(begin).at[places].set(begin - earlier - 1)
    key = jnp.where(row, running_count(leads)[lead_of] + ahead_of_number[trace], 0)

    chain = chains(graph, leads)
    earned = jnp.zeros_like(outcome[trace])
    acted = played > 0
    if event_reward is None:
        ahead = jnp.where(row, outcome[trace], jnp.zeros_like(outcome[trace]))
        first, apart = relative_to_first(outcome, group, graph.num_traces, acted)
        reference = jnp.zeros_like(first).at[places].set(first[group])[trace]
        relative = jnp.where(row, jnp.zeros_like(apart).at[places].set(apart)[trace], earned)
    else:
        step, real = rewards_of_turns(graph, event_reward), jnp.asarray(graph.event_mask)
        last = jnp.where(chain.last, outcome[trace], earned)
        earned = chain.gathered(step.astype(earned.dtype), real)
        ahead = jnp.where(row, _to_go(chain, last + earned)[lead_of], jnp.zeros_like(earned))
        reference = ahead[segment_first(key, n, leads)][key]
        relative = jnp.where(row, ahead - reference, jnp.zeros_like(ahead))
    if graph.trainable_mask is not None:  # a trace in which only frozen agents act has no turn, and counts as 0
        acts = jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask) & scored[trace]
        acted = segment_count(trace, graph.num_traces, acts) > 0
    shared = clusters_of(graph, places, group, acted, several=False, dtype=outcome.dtype)
    if shared is None:
        rivals = segment_count(group, graph.num_traces, acted, outcome.dtype)[group][trace]
        none_mask = jnp.zeros_like(row)
        weight = jnp.ones_like(rivals)
        return Turns(
            chain, row, leads, lead_of, key, earned, ahead, reference, relative, rivals, weight, None, none_mask
        )
    cluster = pair_ids(key, jnp.asarray(graph.cluster_ids)[trace], leads, n)[lead_of]
    rivals, weight, shared_mask = (x[trace] for x in (shared.independent, shared.weight, shared.shared_mask))
    return Turns(
        chain, row, leads, lead_of, key, earned, ahead, reference, relative, rivals, weight, cluster, shared_mask
    )


@checked_options
@jax.jit
def turn_baseline(graph: EventGraph, reward: Array, *, event_reward: Array | None = None) -> Credit:
    """The reward from a turn on, minus the mean of the other traces of the task from their turn of that number on.

    With G_ik what trace i earned from its k-th turn on, T_j the number of turns of trace j, and n traces in the group,

        b_ik = Σ_{j ≠ i, T_j > k} G_jk / (n − 1)        A_ik = G_ik − b_ik

    A turn is one agent's, or that of all who act at once. Turns are numbered from 0, over all agents of a trace, by the
    place of their first trainable action; one in which only frozen agents act is none. The k-th turn earns what
    arrives, at events of any agent, from its beginning to before the next turn of the trace begins.
    A trace that has stopped has nothing more to earn: it counts as 0 and stays in the divisor. So where lengths differ
    an offset of all rewards does not cancel: it enters the advantages of late turns. Subtract it first. Unbiased for
    the policy gradient whatever decides the number of turns: k is known before the turn is played, and the other traces
    do not depend on it. A mean over the traces that still play would be unbiased as well, but it does not exist for a
    turn that no other trace has, and leaving such turns out is biased: long traces would lose the end of their
    gradient. A baseline of each turn's own reward, summed over the turns that the trace went on to play, is biased,
    too: see `mt_grpo`. With replays, b_ik is the mean over the other clusters of the group, each weighing as much as
    one trace. Replays that stand under another task than their trace bias it (docs/bias.md).

    In a ledger the claim is D_ik = r_ik + V_i,k+1 − V_ik, r_ik what the turn earned and V_ik the mean of G_jk over the
    other traces that play a turn k, 0 after the last one: b is no value of a state where others have stopped. A turn
    that no other trace plays has no claim, nor has one of several agents at once.

    Args:
      graph: the batch; uses trace, turn and group ids and the masks.
      reward: float [T], outcome of each trace, earned in its last turn; NaN where it has none.
      event_reward: float [E], rewards at single events, or None; those before the first action belong to no turn.
        NaN counts as 0.

    Returns:
      `Credit` at level "turn", estimand "return". A group of one is refused. `stderr` is that of b_ik, from the spread
      of the others' numbers, stopped traces included; infinite where there are fewer than two others.

    Raises:
      CreditError: wrong shapes or dtypes.

    Reference: the leave-one-out baseline of Kool et al. 2019, at each turn.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "c"], turn=[0, 1, 0, 1, 0], reward=[1.0, 1.0, 0.0, 0.0, 0.5])
      >>> rows.gather(credit.turn_baseline(graph, reward).advantage).tolist()
      [0.75, 1.0, -0.75, -0.5, 0.0]
    """
    t = turns(graph, reward, event_reward)
    num = graph.num_events
    reference, relative = t.reference, t.relative
    own, sample_mask = relative, t.leads  # of each sample; with replays, of each cluster, at one of its turns
    if t.cluster is not None:
        place = jnp.arange(num, dtype=jnp.int32)
        sample_mask = t.leads & (segment_first(t.cluster, num, t.leads)[t.cluster] == place)
        # Traces of the cluster that have stopped are counted: three thirds that go on do not sum to 1 in floats.
        traces = jnp.round(safe_divide(jnp.ones_like(t.weight), t.weight))
        ended = traces - segment_count(t.cluster, num, t.leads, reference.dtype)[t.cluster]
        own = segment_sum(t.weight * relative, t.cluster, num, t.leads)[t.cluster] - t.weight * ended * reference
    stopped = t.rivals - segment_count(t.key, num, sample_mask, reference.dtype)[t.key]
    total = segment_sum(own, t.key, num, sample_mask)[t.key] - stopped * reference
    baseline = reference + safe_divide(total - own, t.rivals - 1)

    centre = safe_divide(total, t.rivals)
    apart, mean = own - centre, reference + centre
    squares = segment_sum(apart**2, t.key, num, sample_mask)[t.key] + stopped * mean**2
    size = segment_sum(jnp.abs(apart), t.key, num, sample_mask)[t.key] + stopped * jnp.abs(mean)
    others = squares_of_others(squares, apart, t.rivals, size > 0)
    error = safe_sqrt(safe_divide(others, (t.rivals - 1) * (t.rivals - 2)))
    stderr = jnp.where(t.rivals > 2, error, jnp.inf)
    alone = jnp.where(t.shared_mask, Reason.SHARED_PREFIX, Reason.SINGLETON)
    return finish(
        graph,
        credit=t.ahead,
        baseline=baseline,
        scale=jnp.ones_like(baseline),
        stderr=stderr,
        reason=jnp.where(t.row, jnp.where(t.rivals < 2, alone, Reason.VALID), Reason.NO_REWARD),
        unit="turn",
        estimand="return",
        source="turn_baseline",
        centred=False,
        own_outcome=True,
        recursion=Recursion(1.0, 1.0, values=_values(graph, t)),
    )


@checked_options
@functools.partial(jax.jit, static_argnames=("scale",))
def mt_grpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    scale: Literal["std", "none"] = "std",
    eps: float | Array = 1e-4,
    ddof: int | Array = 1,
) -> Credit:
    """The outcome normalised over the group, plus each turn's reward normalised among the turns of that number. Biased.

    With R_i the outcome, μ and s its mean and standard deviation over the group, r_jk what trace j earned at events
    from the beginning of its k-th turn to before its next turn begins, and m_k, s_k those of r_jk over the traces of
    the group that have a k-th turn, counted from 0, and T_i the number of turns of trace i,

        A_ik = (R_i − μ) / (s + eps) + Σ_{l ≥ k, l < T_i} (r_il − m_l) / (s_l + eps)      without scale nothing divides

    Without event rewards it is `grpo` with this eps, or `dr_grpo` without scale. As in `turn_baseline`, a turn is one
    agent's, or that of all who act at once, and k counts the turns of all agents. The paper has one agent.

    The trace itself determines how many m_l are subtracted: each further turn costs m_l. Let p_l be the probability
    that a trace has an l-th turn, ρ_l = E[r_l; has it], μ_l = ρ_l / p_l, and n traces be drawn independently. Without
    scale the expected policy gradient is wrong by

        bias = − ∇E[R] / n − Σ_l { c_l ∇ρ_l + (1 − c_l) μ_l ∇p_l }        c_l = (1 − (1 − p_l)^n) / (n p_l)

    since the score of the turns up to l has mean ∇p_l over traces that reach l, and ∇ρ_l when weighted with r_l; c_l is
    the mean of 1/(number of traces that reach l), the weight of r_il in its own m_l. The first two parts are the
    shrinkage of any mean that contains its member; by the third the policy is paid μ_l for not reaching turn l. Where
    the number of turns is fixed, ∇p_l = 0 and the bias is the factor (n − 1)/n. `turn_baseline` has none.

    With scale "std", n traces and ddof 1, no term exceeds (n − 1)/√n in size, however little the rewards differ; A is
    the sum of the outcome's term and of as many as the trace has turns from k on.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      scale: "std" (the paper's) or "none".
      eps: added to the standard deviation. A turn that no other trace of the group has is compared with itself: 0.
      ddof: 1 divides the squares by their number − 1, 0 by their number.

    Returns:
      `Credit` at level "turn", estimand "return" without scale and "score" with it; `stderr` infinite. A group of one
      is refused.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Zeng et al. 2025, arXiv:2505.11821 (MT-GRPO), here for any number of turns. The authors' code, read but
    not executed (Multi-Turn-RL-Agent, `mt_grpo_env_trainer.py` at 7860de6, `grpo_env_trainer.py` at 4eeca09), has ddof
    1, eps 1e-4 and, by default, the sum of the terms (estimator "aae", coefficient 1). It has two turns, up to a tool's
    answer and after it; the first gets its own and the outcome's normalised reward, the second the outcome's. There
    each statistic is over all traces of the group, and a trace that no tool answered gets its two rewards added before
    they are normalised; here each turn is compared with the traces that have it.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "c"], turn=[0, 1, 0, 1, 0], reward=[1.0, 1.0, 0.0, 0.0, 0.5],
      ...     event_reward=[0.0, 0.5, 0.0, 0.0, 0.0])
      >>> rows.gather(credit.mt_grpo(graph, reward, event_reward=rows.event_reward, scale="none").advantage).tolist()
      [0.75, 0.75, -0.75, -0.75, 0.0]
    """
    reward = jnp.where(check_reward(graph, reward, event_reward)[1], reward, jnp.nan)
    outcome = group_relative(graph, reward, scale=scale, eps=eps, ddof=ddof, source="mt_grpo")
    advantage, amount, baseline = outcome.advantage, outcome.credit, outcome.baseline
    infinite = jnp.full_like(advantage, jnp.inf)
    if event_reward is not None:
        t, trace = turns(graph, reward, event_reward), jnp.asarray(graph.trace_ids)
        shared = clusters_of(graph, trace, t.key, t.leads, several=False, dtype=t.earned.dtype)
        n, mean, squares = statistics(Members(t.earned, t.key, t.leads, t.lead_of, shared))
        # A turn that no independent trace has is compared with itself.
        expected = jnp.where(t.leads & (n[t.key] > 1), mean[t.key], t.earned)
        deviation = (safe_sqrt(safe_divide(squares, n - ddof)) + eps)[t.key]
        advantage = advantage + t.to_go(safe_divide(t.earned - expected, deviation))
        # Division by a spread whose squares overflow gives 0, and a part of the trace's sum would be missing.
        lost = segment_count(trace, graph.num_traces, t.leads & ~jnp.isfinite(deviation)) > 0
        advantage = jnp.where(lost[trace], infinite, advantage)
        amount, baseline = amount + t.to_go(t.earned), baseline + t.to_go(expected)
    divides = scale == "std"
    return finish(
        graph,
        credit=advantage if divides else amount,
        baseline=jnp.zeros_like(baseline) if divides else baseline,
        scale=jnp.ones_like(advantage),
        stderr=infinite,
        reason=outcome.reason,
        unit="turn",
        estimand="score" if divides else "return",
        source="mt_grpo",
        centred=False,
        own_outcome=True,
        # What a place was worth on average, whatever was chosen there: beside other claims it is refused for that.
        recursion=None if divides else Recursion(1.0, 1.0, values=StateValues(baseline, infinite, infinite)),
    )


def _values(graph: EventGraph, t: Turns) -> StateValues:
    """What each turn was worth before it was played, at every event."""
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    acts = segment_count(trace, num, t.leads, jnp.int32) > 0
    whole = jnp.where(acts, t.ahead[segment_first(trace, num, t.leads)], 0)
    # A trace has one turn of a number, and is a sample if it has no replays.
    values = turn_values(t.ahead, t.leads, t.key, t.cluster, trace, whole, jnp.asarray(graph.group_ids), acts)
    return StateValues(*(each[t.lead_of] for each in values))
