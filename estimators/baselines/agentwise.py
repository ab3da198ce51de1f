"""Agent-wise normalisation: the rows of an agent are compared only with rows of the same agent.

Dr. MAS changes two things at once against the shared baseline; they are two arguments here, so that the four
combinations are possible: the key (`by`: who is compared) and the population (`population`: what is a sample).
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Estimand, Reason, finish
from estimators.clusters import clusters_of
from estimators.group import AllFilters, Singleton, group_relative
from estimators.members import Population, members, row_scores, statistics
from estimators.options import checked_options
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.keys import By, key_of, turn_numbers
from graphs.segment import safe_sqrt

__all__ = ["at_grpo", "dr_mas", "dr_mas_rloo", "reinforce_pp", "reinforce_pp_baseline"]


@checked_options
def at_grpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    proposal: Array | None = None,
    stage: Array | None = None,
    mode: Literal["turn", "design", "question", "last"] = "turn",
    filters: AllFilters = "none",
    filter_ratio: float | Array = 0.5,
) -> Credit:
    """AT-GRPO: each row against the rows of the same agent at the same turn of the same task.

        A_i = (R_i − μ_k) / (sd_k + 1e-6)        ddof 1
        mode "turn"        k = (task, turn, agent)
             "design"      k = (task, agent, proposal) of rows that state `proposal`, (task, agent) of the others
             "question"    k = (task, agent)
             "last"        k = (trace), of the rows of its last turn only

    R_i = reward + event_reward of row i. "design" is for trees: rows that make a design are compared within the task,
    rows that execute one with the other executions of the same design. The released code takes "question" where a
    design has at most two executions, and "last" where there is no tree. Turns are counted over the agent's own
    actions. The code counts rounds of the environment, which differ where an agent sits a round out: pass rounds as
    `stage`. A key of one row keeps its reward. Biased for the policy gradient: the row is in its own mean, actions
    decide which turn is the last, and the division weighs keys by their spread. Where only the best of several
    candidates was continued, rows of later turns share a prefix that reward selected, and their mean is not that of the
    policy. Replays of one trace count as one sample, and traces without an independent one are refused
    (`estimators.clusters`).

    With n rows of the key, no |A| exceeds (n − 1)/√n, however little the rewards differ; a key of one has no bound but
    its reward.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      proposal: int [E], for mode "design": the design that a row executes; -1 where there is none, as at the row that
        makes it.
      stage: int [E], the round of each row, taken as its turn; -1 where the log has none, which makes the row invalid.
      mode: as above.
      filters: "equal" leaves out keys whose rows all have one score (the code's "dapo"); "spread" leaves out a share of
        the keys of the batch, those with the least variance (ddof 0) over the square of their range (the code's "std").
        Under both a key of one row is left out. "none" keeps all.
      filter_ratio: the share that "spread" leaves out, rounded down. Keys that tie with the last of these go, too.

    Returns:
      `Credit` at level "event", estimand "scale".

    Raises:
      CreditError: wrong shapes or dtypes, an option outside its choices or bounds, or mode "design" without `proposal`.

    Reference: PettingLLMs `multi_agents_ppo_trainer.py` `_assign_consistent_uids` at a054fb1 (MIT), executed in all
    modes, golden `at_grpo`. Its filters were executed, too: of keys that tie it leaves out the first.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=list("aabb"), agent=list("xyxy"), row_reward=[1.0, 0.5, 0.0, 0.5])
      >>> rows.gather(credit.at_grpo(graph, reward, event_reward=rows.event_reward).advantage).tolist()
      [0.7071, 0.0, -0.7071, 0.0]
    """
    by: By = ("task", "agent")
    if mode == "turn":
        by = ("task", "turn" if stage is None else jnp.asarray(stage), "agent")
    elif mode == "design":
        if proposal is None:
            raise CreditError(
                "at_grpo: mode is 'design', and proposal is missing; expected it at executing rows: of a log, "
                "evidence=['proposal'] (--evidence proposal)"
            )
        # Rows without a proposal are a class of their own, not without a key.
        by = ("task", "agent", jnp.maximum(jnp.asarray(proposal), -1) + 1)
    elif mode == "last":
        trace = jnp.asarray(graph.trace_ids)
        acts = jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask)
        turn = jnp.where(acts, turn_numbers(graph, acts) if stage is None else jnp.asarray(stage), -1)
        last = jax.ops.segment_max(turn, trace, num_segments=graph.num_traces)[trace]
        by = ("episode", jnp.where(acts & (turn >= 0) & (turn == last), 0, -1))
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        scale="std",
        by=by,
        population="row",
        eps=1e-6,
        singleton="raw" if filters == "none" else "refuse",
        filters=filters,
        filter_ratio=filter_ratio,
        source="at_grpo",
    )


@checked_options
def dr_mas(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    by: By = "agent_name",
    population: Population = "row",
    scale: Literal["std", "none"] = "std",
    eps: float | Array = 1e-6,
    ddof: int | Array = 1,
    singleton: Singleton = "raw",
) -> Credit:
    """Dr. MAS: each row against the rows of the same agent name on the same task.

        A_i = (R_i − μ_k) / (sd_k + eps)

    R_i = reward + event_reward of row i; k is the key (task, agent name); μ_k and sd_k are over all rows of the key,
    every turn of every trace. The authors' `reward` is the run's return, and their `event_reward` a penalty of the row:
    rewards of steps are summed into `reward` there, and as `event_reward` here each stays with its row. An agent that
    acts more often weighs more in its own key. Equal to the shared baseline where each agent acts once per trace and
    rows have no rewards of their own. Biased for the policy gradient. Replays of one trace count as one sample, and
    traces without an independent one are refused (`estimators.clusters`).

    With n samples of the key and scale "std", no |A| exceeds (n − 1)/√n at ddof 1, or √(n − 1) at ddof 0, however
    little the rewards differ; a key of one has no bound but its reward.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      by: the key, as of `grpo`: "agent_name", task and agent name (the paper's), or None for the task alone.
      population: "row" (the paper's): each row is a sample. "trace": the rows that a trace has of one key are a sample,
        whose R_i is the mean of theirs, and all get its number.
      scale: "none" leaves out the division (`norm_adv_by_std_in_grpo=False`).
      eps: added to the standard deviation.
      ddof: 1 divides the squares by n − 1, 0 by n.
      singleton: what a key with one member gets; the released code keeps the raw reward ("raw"). A member is a row, so
        that rows of one trace alone are compared with each other under each choice, unless `population` is "trace".

    Returns:
      `Credit` at level "event", or of population "trace" at that of the key; estimand "scale", "total" for `by=None`.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Dr. MAS `compute_grpo_outcome_advantage` at 19c632b, executed, goldens `drmas_grpo` (all four
    combinations) and `drmas_grpo_full_tensor`. `by=None, population="trace"` is that code's vanilla GRPO. The code
    joins task and agent into one string, which can collide; ids cannot.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["plan", "solve", "plan", "solve", "solve"],
      ...     reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> rows.gather(credit.dr_mas(graph, reward).advantage).tolist()
      [0.7071, 1.1547, -0.7071, -0.5773, -0.5773]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        baseline="mean",
        scale=scale,
        by=by,
        population=population,
        aggregate="mean",
        eps=eps,
        ddof=ddof,
        singleton=singleton,
        source="dr_mas",
    )


@checked_options
def dr_mas_rloo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    by: By = "agent_name",
    population: Population = "row",
    singleton: Singleton = "raw",
) -> Credit:
    """RLOO in Dr. MAS: each row against the other rows of the same agent name on the same task.

        A_i = (R_i − μ_k) n_k / (n_k − 1)

    R_i = reward + event_reward of row i; μ_k is the mean over the n_k rows of key k. Unbiased where each agent acts at
    most once in a trace and rows have no rewards of their own; otherwise a trace's other rows enter its own baseline,
    or R_i lacks the rewards that they earn. With replays, the other traces of the row's cluster leave the mean, too
    (`estimators.clusters`), and an agent that acts in one cluster only is refused: a bias where the policy decides who
    acts (docs/bias.md).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      by: the key, as of `grpo`: "agent_name", task and agent name (the paper's), or None for the task alone.
      population: "row" (the paper's): each row is a sample. "trace": the first row that a trace has of a key is its
        sample, and every row subtracts the mean of the other traces' samples from its own score, as the released code
        does.
      singleton: what a key with one member gets; the released code keeps the raw reward ("raw"). A member is a row, so
        that rows of one trace alone are compared with each other under each choice, unless `population` is "trace".

    Returns:
      `Credit` at level "event", estimand "scale" ("total" for `by=None`).

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Dr. MAS `compute_rloo_outcome_advantage` at 19c632b, executed, golden `drmas_rloo` (its vanilla form is
    `by=None, population="trace"`).

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["plan", "solve", "plan", "solve", "solve"],
      ...     reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> rows.gather(credit.dr_mas_rloo(graph, reward).advantage).tolist()
      [1.0, 1.0, -1.0, -0.5, -0.5]
    """
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        baseline="leave_one_out",
        by=by,
        population=population,
        aggregate="first",
        own_score=True,
        singleton=singleton,
        source="dr_mas_rloo",
    )


@checked_options
@jax.jit
def reinforce_pp(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    tokens: Array | None = None,
    eps: float | Array = 1e-8,
) -> Credit:
    """REINFORCE++ at discount 1: every row's score, whitened over the batch.

        A_i = (R_i − m) / sqrt(v + eps)

    R_i = reward + event_reward of row i; m and v are the mean and the variance (ddof 1) over all tokens of all rows.
    There are no groups, so the traces of a hard task get negative numbers for being of a hard task. Biased for the
    policy gradient. Replays of one trace count as one sample, and traces without an independent one are refused
    (`estimators.clusters`).

    With n tokens (n rows without `tokens`), no |A| exceeds (n − 1)/√n, however little the rewards differ. A row of 0
    tokens, which enters neither m nor v, has no bound; it trains nothing.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      tokens: int or float [E], tokens of each row, its weight in m and v; None counts each row once. A row whose count
        is missing (negative or NaN) is invalid and has no weight.
      eps: added to the variance.

    Returns:
      `Credit` at level "event", estimand "total". Its scope is the batch.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Hu 2025, arXiv:2501.03262; verl `compute_reinforce_plus_plus_outcome_advantage`. The form over tokens
    with a discount is `estimators.tokens.rows.reinforce_pp` (golden `drmas_rfpp`).

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.reinforce_pp(graph, reward).advantage).tolist()
      [1.1547, -0.5774, -0.5774]
    """
    score, rows = row_scores(graph, reward, event_reward)
    return _whiten(graph, score, jnp.zeros_like(score), rows, tokens, eps, estimand="total", source="reinforce_pp")


@checked_options
@functools.partial(jax.jit, static_argnames=("population",))
def reinforce_pp_baseline(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    tokens: Array | None = None,
    by: By = None,
    population: Population = "trace",
    eps: float | Array = 1e-8,
) -> Credit:
    """REINFORCE++ with a group baseline: the row's score minus its group's mean, whitened over the batch.

        A_i = (R_i − μ_k − m) / sqrt(v + eps)

    R_i = reward + event_reward of row i; μ_k is the mean of its key, 0 for a key of one; m and v are the mean and the
    variance (ddof 1) over all tokens of the batch after that subtraction, so that long rows dominate them. Biased for
    the policy gradient. Replays of one trace count as one sample, and traces without an independent one are refused
    (`estimators.clusters`).

    With n tokens (n rows without `tokens`), no |A| exceeds (n − 1)/√n, however little the rewards differ. A row of 0
    tokens, which enters neither m nor v, has no bound; it trains nothing.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      tokens: int or float [E], tokens of each row, its weight in m and v; None counts each row once. A row whose count
        is missing (negative or NaN) is invalid and has no weight.
      by: the key, as of `grpo`: None for the task alone.
      population: "trace", the first row of each trace enters μ_k (verl's form); "row", every row does (Dr. MAS' form,
        with `by="agent_name"`).
      eps: added to the variance.

    Returns:
      `Credit` at level "event", estimand "total" ("scale" with a name in the key). Its scope is the batch.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Dr. MAS `compute_reinforce_plus_plus_baseline_outcome_advantage`, executed, golden `drmas_rfpp_baseline`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> rows.gather(credit.reinforce_pp_baseline(graph, reward).advantage).tolist()
      [1.1547, -0.5774, -0.5774]
    """
    m = members(graph, reward, event_reward, by=by, population=population, aggregate="first")
    n, mean, _ = statistics(m)
    score, rows = row_scores(graph, reward, event_reward)
    key = m.key[m.of_event]
    subtracted = jnp.where(n[key] > 1, mean[key], jnp.zeros_like(score))
    return _whiten(
        graph,
        score,
        subtracted,
        rows,
        tokens,
        eps,
        estimand="total" if key_of(by).level == "trace" else "scale",
        source="reinforce_pp_baseline",
        shared=m.shared_mask[m.of_event],
        absent=m.absent_mask,
    )


def _whiten(
    graph: EventGraph,
    score: jax.Array,
    subtracted: jax.Array,
    rows: jax.Array,
    tokens: Array | None,
    eps: float | Array,
    *,
    estimand: Estimand,
    source: str,
    shared: jax.Array | None = None,
    absent: jax.Array | None = None,
) -> Credit:
    """Shift and scale `score - subtracted` to mean 0 and variance 1 over the batch, rows weighted by their tokens."""
    ones = jnp.ones_like(score)
    weight = ones if tokens is None else jnp.asarray(tokens).astype(score.dtype)
    known = jnp.isfinite(weight) & (weight >= 0)
    known = known if absent is None else known & ~absent
    weight = jnp.where(rows & known, weight, jnp.zeros_like(score))
    key = jnp.zeros(graph.num_events, jnp.int32)
    together = clusters_of(graph, jnp.asarray(graph.trace_ids), key, rows & known, several=True, dtype=score.dtype)
    if together is not None:
        weight = weight * together.weight
        shared = together.shared_mask if shared is None else shared | together.shared_mask
    total = jnp.sum(weight)
    x = score - subtracted
    # Relative to one of them: a float mean of equal values is not that value, and 1 / sqrt(eps) would enlarge the rest.
    reference = x[jnp.argmax(rows)]
    x = jnp.where(rows, x - reference, jnp.zeros_like(score))
    mean = jnp.sum(x * weight) / jnp.where(total > 0, total, 1)
    squares = jnp.sum(weight * jnp.where(rows, x - mean, jnp.zeros_like(x)) ** 2)
    enough = total > 1
    variance = squares / jnp.where(enough, total - 1, 1)
    reason = jnp.where(known, jnp.where(enough, Reason.VALID, Reason.TOO_FEW), Reason.NO_EVIDENCE)
    if shared is not None:
        reason = jnp.where(known & shared, Reason.SHARED_PREFIX, reason)
    return finish(
        graph,
        credit=score,
        baseline=subtracted + (reference + mean),
        scale=jnp.sqrt(variance + eps) * ones,
        stderr=safe_sqrt(variance / jnp.where(total > 0, total, 1)) * ones,
        reason=jnp.where(rows, reason, Reason.NO_REWARD),
        unit="event",
        estimand=estimand,
        source=source,
        centred=False,
        own_outcome=True,
    )
