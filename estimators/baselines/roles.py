"""Main agents and the sub-agents they spawn: who is normalised with whom, and how a trace's loss is shared among them.

An agent instance that no other spawned is a main agent, every other a sub-agent (`agent_parent`). Tables of rows that
do not record who spawned whom make every instance a main agent.
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.clusters import clusters_of
from estimators.group import Singleton, group_relative, settle_alone
from estimators.members import Members, statistics
from estimators.options import checked_options
from estimators.relative_mean import mean_from_first, stated_once
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_sum

__all__ = ["instances_normalised", "matpo", "matpo_reward", "mgrpo", "sub_agents", "wideseek_r1", "wideseek_r1_weights"]


def sub_agents(graph: EventGraph) -> jax.Array:
    """Whether another instance spawned an agent instance: bool [A], False in padding.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["main", "sub", "main", "sub", "sub"],
      ...     parent=[None, "main", None, "main", "main"], reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> from estimators.baselines.roles import sub_agents
      >>> sub_agents(graph)[:4].tolist()
      [False, True, False, True]
    """
    return jnp.asarray(graph.agent_mask) & (
        jnp.asarray(graph.agent_parent) != jnp.arange(graph.num_agents, dtype=jnp.int32)
    )


def instances_normalised(
    graph: EventGraph,
    reward: Array,
    score: Array,
    key: Array,
    *,
    eps: float | Array,
    ddof: int | Array,
    singleton: Singleton,
    source: str,
    known: Array | None = None,
) -> Credit:
    """(x − μ) / (sd + eps) over agent instances that share a key, for the actions of each instance.

    Replays of one trace count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      score: float [A], the score x of each instance. An instance counts where it acted in a trace that has an outcome.
      key: int [A] in [0, A), who is compared.
      eps: added to the standard deviation.
      ddof: 1 divides the squares by their number − 1, 0 by their number.
      singleton: what a key with one instance gets: "refuse" makes it invalid, "zero" gives 0, "raw" divides by 1 + eps.
      source: name of the method, for `Credit.source`.
      known: bool [A], which instances have the evidence; the others count nowhere and are invalid.

    Returns:
      `Credit` at level "agent", estimand "scale".

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["main", "sub", "main", "sub", "sub"],
      ...     parent=[None, "main", None, "main", "main"], reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> from estimators.baselines.roles import instances_normalised, sub_agents
      >>> score, key = reward[graph.agent_trace], sub_agents(graph).astype(int)
      >>> credit_of = instances_normalised(graph, reward, score, key, eps=0.0, ddof=1, singleton="zero", source="own")
      >>> rows.gather(credit_of.advantage).tolist()
      [0.7071, 0.7071, -0.7071, -0.7071, -0.7071]
    """
    scored = check_reward(graph, reward)[1]
    agent = jnp.asarray(graph.agent_ids)
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[graph.trace_ids]
    acted_mask = segment_count(agent, graph.num_agents, row) > 0
    if known is not None:
        acted_mask = acted_mask & known
    key = jnp.where(acted_mask, key, 0)
    shared = clusters_of(graph, jnp.asarray(graph.agent_trace), key, acted_mask, several=True, dtype=score.dtype)
    m = Members(jnp.where(acted_mask, score, jnp.zeros_like(score)), key, acted_mask, agent, shared)
    n, mean, squares = statistics(m)
    deviation = safe_sqrt(safe_divide(squares, n - ddof)) + eps
    k, x = m.key[agent], m.score[agent]
    alone = n[k] < 2
    subtracted, reason = settle_alone(m, row, alone, x, mean[k], singleton)
    if known is not None:
        reason = jnp.where(row & ~jnp.asarray(known)[agent], Reason.NO_EVIDENCE, reason)
    divisor = jnp.where(alone, jnp.ones_like(x) + eps, deviation[k])
    error = safe_sqrt(safe_divide(squares, n * (n - 1)))[k]
    return finish(
        graph,
        credit=x,
        baseline=subtracted,
        scale=jnp.where(divisor > 0, divisor, jnp.ones_like(x)),
        stderr=jnp.where(alone, jnp.inf, error),
        reason=reason,
        unit="agent",
        estimand="scale",
        source=source,
        centred=False,
        own_outcome=True,
    )


@checked_options
@functools.partial(jax.jit, static_argnames=("singleton",))
def mgrpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    main_weight: float | Array = 1.0,
    eps: float | Array = 1e-6,
    ddof: int | Array = 1,
    singleton: Singleton = "refuse",
) -> Credit:
    """M-GRPO after a review: main agents against the task's main agents, sub-agents against its sub-agents.

        main agent   x = R + its own event rewards
        sub-agent    x = main_weight · R + its own event rewards      (format, an expert's or a judge's score)
        A = (x − μ) / (sd + eps)      μ and sd over all instances of the same kind on the same task

    Every instance counts once, however often it acted. A task whose traces spawn more sub-agents has more of them in
    one pool. The paper also draws sub-trajectories at random up to a fixed number, or drops some, so that batches have
    one shape; padding does that here and changes no statistic. Biased for the policy gradient. Replays of one trace
    count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    With n instances in the pool, no |A| exceeds (n − 1)/√n at ddof 1, or √(n − 1) at ddof 0, however little the scores
    differ.

    Args:
      graph: the batch; `agent_parent` distinguishes main agents and sub-agents.
      reward: float [T], the outcome R; NaN where a trace has none.
      event_reward: float [E] or None; those of an instance's events are its own. NaN counts as 0.
      main_weight: how much of the outcome a sub-agent's score contains.
      eps: added to the standard deviation.
      ddof: 1 divides the squares by their number − 1, 0 by their number.
      singleton: what a pool of one gets: "refuse" makes it invalid, "zero" gives 0, "raw" divides by 1 + eps.

    Returns:
      `Credit` at level "agent", estimand "scale".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: M-GRPO (MrlX), from second-hand descriptions, which state neither eps, ddof nor singleton. The released
    code is `estimators.baselines.released.mrlx`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["main", "sub", "main", "sub", "sub"],
      ...     parent=[None, "main", None, "main", "main"], reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> rows.gather(credit.mgrpo(graph, reward).advantage).tolist()
      [0.7071, 0.7071, -0.7071, -0.7071, -0.7071]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    reward = jnp.where(scored, outcome, jnp.nan)
    trace = jnp.asarray(graph.agent_trace)
    sub = sub_agents(graph)
    score = jnp.where(sub, main_weight * outcome[trace], outcome[trace])
    if event_reward is not None:
        step, real = check_event_array(graph, "event_reward", event_reward)
        score = score + segment_sum(step.astype(score.dtype), graph.agent_ids, graph.num_agents, real)
    key = pair_ids(jnp.asarray(graph.group_ids)[trace], sub.astype(jnp.int32), jnp.asarray(graph.agent_mask))
    return instances_normalised(graph, reward, score, key, eps=eps, ddof=ddof, singleton=singleton, source="mgrpo")


@checked_options
@functools.partial(jax.jit, static_argnames=("gate",))
def matpo_reward(
    graph: EventGraph,
    reward: Array,
    *,
    format_score: Array,
    accuracy_weight: float | Array = 1.0,
    format_weight: float | Array = 0.1,
    gate: bool = False,
) -> jax.Array:
    """MATPO's outcome of a trace from its accuracy and the format of its planner and workers: float [T].

    R = w_acc · accuracy + ½ w_fmt (f_main + mean over workers of f_worker); without workers the planner's half stays a
    half. The main agents of a trace are the planner, their scores averaged where there are several.

    Args:
      graph: the batch.
      reward: float [T], the accuracy; NaN where a trace has none.
      format_score: float [E], one number for each agent instance, at one of its events or more. A trace in which an
        instance acted and has none, or several, gets no reward (NaN).
      accuracy_weight, format_weight: w_acc and w_fmt.
      gate: format counts only where the accuracy is 1.

    Reference: MATPO `SubagentToolRewardManager` at 3c41d62, executed, golden `matpo_reward`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["main", "sub", "main", "sub", "sub"],
      ...     parent=[None, "main", None, "main", "main"], reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> from estimators.baselines.roles import matpo_reward
      >>> form = (0 * graph.time + 1).astype("float32")
      >>> form[:5] = [1.0, 0.5, 1.0, 0.0, 0.0]
      >>> matpo_reward(graph, reward, format_score=form)[:2].tolist()
      [1.075, 0.05]
    """
    accuracy, scored = check_reward(graph, reward)
    score, known = check_event_array(graph, "format_score", format_score)
    agent, trace, num = jnp.asarray(graph.agent_ids), jnp.asarray(graph.agent_trace), graph.num_traces
    acted = segment_count(agent, graph.num_agents, jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask)) > 0
    own, has, several = stated_once(score.astype(accuracy.dtype), agent, graph.num_agents, known)
    has = has & ~several
    sub = sub_agents(graph)
    planner = mean_from_first(own, trace, num, acted & has & ~sub)
    workers = mean_from_first(own, trace, num, acted & has & sub)
    form = format_weight * (planner + workers) / 2
    if gate:
        form = jnp.where(accuracy >= 1, form, jnp.zeros_like(form))
    complete = scored & (segment_count(trace, num, acted & ~has) == 0)
    return jnp.where(complete, accuracy_weight * accuracy + form, jnp.nan)


@checked_options
def matpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    format_score: Array | None = None,
    accuracy_weight: float | Array = 1.0,
    format_weight: float | Array = 0.1,
) -> Credit:
    """MATPO: one number for the planner's rollout, normalised among the task's rollouts and copied to its workers.

        A_i = (R_i − μ) / (sd + 1e-6)      ddof 1, each rollout once

    A task with one rollout keeps its raw R. Planner and workers get the same advantage: their roles differ by prompt
    only. On tokens this is the intended rule, A times the worker's own mask;
    `estimators.baselines.released.matpo_worker_tokens` is what the released code does. Biased for the policy gradient.
    Replays of one trace count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    With n rollouts of the task, no |A| exceeds (n − 1)/√n, however little the rewards differ; a task of one has no
    bound but its reward.

    Args:
      graph: the batch.
      reward: float [T], R itself, or with `format_score` the accuracy, from which `matpo_reward` makes R.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      format_score: float [E] or None, as of `matpo_reward`.
      accuracy_weight, format_weight: w_acc and w_fmt of `matpo_reward`.

    Returns:
      `Credit` at level "trace", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: MATPO `ray_trainer.py` and `protocol.py` at 3c41d62, executed, goldens `matpo_broadcast`, `matpo_reward`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["main", "sub", "main", "sub", "sub"],
      ...     parent=[None, "main", None, "main", "main"], reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> rows.gather(credit.matpo(graph, reward).advantage).tolist()
      [0.7071, 0.7071, -0.7071, -0.7071, -0.7071]
    """
    if format_score is not None:
        reward = matpo_reward(
            graph,
            reward,
            format_score=format_score,
            accuracy_weight=accuracy_weight,
            format_weight=format_weight,
        )
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        scale="std",
        eps=1e-6,
        ddof=1,
        singleton="raw",
        source="matpo",
    )


@checked_options
def wideseek_r1(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    population: Literal["trace", "row"] = "trace",
) -> Credit:
    """WideSeek-R1: the mean of a trace's row scores against its group's, for the lead agent and all sub-agents alike.

        A_i = (R_i − μ) / (sd + 1e-6)      ddof 1, R_i the mean over the rows of reward + event_reward

    Its credit for roles is not here but in the loss: `wideseek_r1_weights`. The released code groups by arithmetic on
    indices, and gives NaN in a group of one, which is refused here. Biased for the policy gradient. Replays of one
    trace count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    With n samples in the group, no |A| exceeds (n − 1)/√n, however little the rewards differ.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      population: "trace" (the one used), or "row": every row is a sample with its own score (`advantage_mode="turn"`).

    Returns:
      `Credit` at level "trace" (or "event"), estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: RLinf `compute_grpo_dynamic_advantages` at a3816b5, executed, golden `rlinf_wideseek`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["main", "sub", "main", "sub", "sub"],
      ...     parent=[None, "main", None, "main", "main"], reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> rows.gather(credit.wideseek_r1(graph, reward).advantage).tolist()
      [0.7071, 0.7071, -0.7071, -0.7071, -0.7071]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        scale="std",
        population=population,
        aggregate="mean",
        eps=1e-6,
        ddof=1,
        singleton="refuse",
        source="wideseek_r1",
    )


@jax.jit
def wideseek_r1_weights(graph: EventGraph, *, tokens: Array | None = None) -> jax.Array:
    """The weight of each action's token-mean loss: float [E], summing to 1 over a trace, 0 at what is no action.

    With N_i instances that acted in trace i and o_t the tokens of the t-th action of an instance,

        w = 1/N_i · |o_t| / Σ_t |o_t|        without `tokens`: 1/N_i · 1/T for the T actions of the instance

    so that each instance weighs the same, and within it each token. Multiply by the number of rows over the global
    batch for the released loss.

    Args:
      graph: the batch.
      tokens: int or float [E], tokens of each action; a missing count (negative or NaN) is 0.

    Reference: RLinf `loss_scales.py` at a3816b5, executed, golden `rlinf_wideseek`, outputs `agent_scale` (without
    tokens) and `turn_scale`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["main", "sub", "main", "sub", "sub"],
      ...     parent=[None, "main", None, "main", "main"], reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> from estimators.baselines.roles import wideseek_r1_weights
      >>> rows.gather(wideseek_r1_weights(graph)).tolist()
      [0.5, 0.5, 0.5, 0.25, 0.25]
    """
    agent, num = jnp.asarray(graph.agent_ids), graph.num_agents
    row = jnp.asarray(graph.event_mask) & graph.trained_mask
    size = jnp.ones(graph.num_events, jnp.float32) if tokens is None else jnp.asarray(tokens).astype(jnp.float32)
    size = jnp.where(row & (size >= 0), size, 0)
    acted = segment_count(agent, num, row) > 0
    instances = segment_count(jnp.asarray(graph.agent_trace), graph.num_traces, acted)
    share = safe_divide(size, segment_sum(size, agent, num, row)[agent])
    return jnp.where(row, safe_divide(share, instances[graph.trace_ids]), 0)
