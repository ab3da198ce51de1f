"""Group baselines with another weight or another divisor: MaxRL, OPO, GPG, prime-rl's penalty of length, rLLM's batch.

Who is compared, and how replays count, is that of `estimators.members`; what differs is the weight of a sample in the
mean, and what the difference is divided by.
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Reason, check_event_array, finish
from estimators.clusters import clusters_of
from estimators.group import Singleton, settle_alone
from estimators.members import Members, members, relative_scores, statistics
from estimators.options import checked_options
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import Name
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first, segment_sum

__all__ = ["gpg", "max_rl", "opo", "prime_rl_grpo", "rllm_reinforce_pp"]


@checked_options
@functools.partial(jax.jit, static_argnames=("singleton",))
def max_rl(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    eps: float | Array = 0.0,
    singleton: Singleton = "zero",
) -> Credit:
    """MaxRL: the return against the group's mean, divided by that mean.

        A_i = (R_i − μ) / (μ + eps)

    R_i = reward + Σ event_reward; μ is over the n traces of the group. For outcomes 0 and 1 its gradient is the mean
    score of the successful traces less that of all, which makes rare successes count. It is meant for returns that are
    not negative: no |A| exceeds n − 1 for them. A negative return can make μ small or turn its sign, so that worse
    traces would be praised. A larger |A| is refused (NO_DIVISOR): at eps 0, that of a trace whose others' returns add
    up to less than 0, or whose own is below −(n − 2) μ; and so is every trace that differs from a mean of 0 or less.
    The refusal selects answers by their returns; in the worlds of docs/bias.md it refuses nothing. Biased for the
    policy gradient of the mean return. Replays of one trace count as one sample, and traces without an independent one
    are refused (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      eps: added to the mean; 0 in prime-rl, 1e-6 in SkyRL.
      singleton: what a group of one gets; prime-rl's form is "zero", SkyRL's "raw".

    Returns:
      `Credit` at level "trace", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: arXiv:2602.02710; prime-rl `algo/max_rl.py` at 559b447 (Apache-2.0), SkyRL `compute_maxrl_advantage` at
    a956457 (Apache-2.0), executed, golden `max_rl`. prime-rl gives 0 to a group whose mean is not positive; SkyRL
    divides by 1e-6 at a mean of 0.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> rows.gather(credit.max_rl(graph, reward).advantage).tolist()
      [0.5, -1.0, 0.5]
    """
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    n, mean, _ = statistics(m)
    # Of returns that add up to 0 the mean is what their rounding leaves, which is no divisor.
    rounding = 4 * np.finfo(mean.dtype).eps * segment_sum(jnp.abs(m.score), m.key, m.score.shape[0], m.member_mask)
    mean = jnp.where(jnp.abs(mean) > rounding, mean, 0)
    x, alone = m.score[m.of_event], (n[m.key] < 2)[m.of_event]
    n, mean = n[m.key][m.of_event], mean[m.key][m.of_event]
    subtracted, reason = settle_alone(m, m.member_mask[m.of_event], alone, x, mean, singleton)
    divisor = jnp.where(alone, jnp.ones_like(x), jnp.maximum(mean + eps, 0))
    weight = jnp.ones_like(m.score) if m.clusters is None else m.clusters.weight.astype(m.score.dtype)
    most = safe_divide(n, weight[m.of_event]) - 1
    # A single success of n attains the bound; rounding may not refuse it.
    beyond = ~alone & (jnp.abs(x - mean) > (1 + 1e-4) * most * divisor)
    return finish(
        graph,
        credit=x,
        baseline=subtracted,
        scale=jnp.where(divisor > 0, divisor, jnp.ones_like(x)),
        stderr=jnp.full_like(x, jnp.inf),
        reason=jnp.where((reason == Reason.VALID) & beyond, Reason.NO_DIVISOR, reason),
        unit="trace",
        estimand="total",
        source="max_rl",
        centred=False,
        own_outcome=True,
    )


@checked_options
@jax.jit
def opo(graph: EventGraph, reward: Array, *, tokens: Array, event_reward: Array | None = None) -> Credit:
    """OPO: the return against the mean return of the group in which a trace weighs as many tokens as it generated.

        A_i = R_i − Σ_j L_j R_j / Σ_j L_j

    R_i = reward + Σ event_reward, L_i the tokens of the trace's actions. The trace itself is in its baseline: biased
    for the policy gradient, and so is the weight by a length that the policy chose. A group of one keeps its raw
    reward. Replays of one trace weigh as one trace together, and traces without an independent one are refused
    (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      tokens: int or float [E], generated tokens of each action. A trace with an action whose count is missing (negative
        or NaN) is left out. A group that generated no token is refused.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Returns:
      `Credit` at level "trace", estimand "total".

    Raises:
      CreditError: wrong shapes or dtypes.

    Reference: verl `compute_opo_outcome_advantage` at 1dda039 (Apache-2.0), executed, golden `verl_opo`, where each row
    is a trace.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0], evidence={"tokens": [2, 3, 1]})
      >>> rows.gather(credit.opo(graph, reward, tokens=rows.evidence["tokens"]).advantage).tolist()
      [0.5, -0.5, 0.5]
    """
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    length, known = _per_trace(graph, "tokens", tokens)
    stated = m.member_mask & known
    shared = clusters_of(graph, jnp.arange(len(stated), dtype=jnp.int32), m.key, stated, several=False)
    m = m._replace(member_mask=stated, clusters=shared)
    n, num = statistics(m)[0][m.key], len(stated)
    reference, relative = relative_scores(m)
    weight = jnp.where(stated, length.astype(m.score.dtype), jnp.zeros_like(m.score))
    if shared is not None:
        weight = weight * shared.weight.astype(weight.dtype)
    total = segment_sum(weight, m.key, num)
    mean = (reference + safe_divide(segment_sum(weight * relative, m.key, num), total))[m.key]
    x, alone = m.score[m.of_event], (n < 2)[m.of_event]
    subtracted, reason = settle_alone(m, m.member_mask[m.of_event], alone, x, mean[m.of_event], "raw")
    missing = (~known)[m.of_event] & ~jnp.isnan(jnp.asarray(reward))[m.of_event]
    empty = (total[m.key] <= 0)[m.of_event] & ~alone
    reason = jnp.where(
        (reason == Reason.VALID) & empty, Reason.NO_DIVISOR, jnp.where(missing, Reason.NO_EVIDENCE, reason)
    )
    return _of_traces(graph, x, subtracted, jnp.ones_like(x), reason, "opo")


@checked_options
@jax.jit
def gpg(graph: EventGraph, reward: Array, *, event_reward: Array | None = None, divisor: float | Array = 1.0) -> Credit:
    """GPG: the return against the group's mean, times the share of traces of the batch that earned something, inverted.

        A_i = α (R_i − μ) / divisor,  α = B / max(1, traces with R ≠ 0),  B the traces of the batch

    R_i = reward + Σ event_reward; μ is over the traces of the group. A group of one keeps α R. α is of the batch, the
    trace itself included: biased for the policy gradient, and no |A| exceeds B times the range of the returns. Replays
    of one trace count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      divisor: positive, `f_norm` of the code.

    Returns:
      `Credit` at level "trace", estimand "total". Its scope is the batch.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: verl `compute_gpg_outcome_advantage` at 1dda039 (Apache-2.0), executed, golden `verl_gpg`. The code
    computes a standard deviation and does not use it. The paper's α counts the traces of groups whose rewards differ.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> rows.gather(credit.gpg(graph, reward).advantage).tolist()
      [0.5, -1.0, 0.5]
    """
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    n, mean, _ = statistics(m)
    x, alone = m.score[m.of_event], (n[m.key] < 2)[m.of_event]
    subtracted, reason = settle_alone(m, m.member_mask[m.of_event], alone, x, mean[m.key][m.of_event], "raw")
    weight = m.member_mask.astype(x.dtype) if m.clusters is None else m.clusters.weight.astype(x.dtype)
    earning = jnp.sum(jnp.where(jnp.abs(m.score) > 0, weight, jnp.zeros_like(weight)))
    share = safe_divide(jnp.maximum(earning, 1), jnp.sum(weight))
    return _of_traces(graph, x, subtracted, divisor * share * jnp.ones_like(x), reason, "gpg")


@checked_options
def prime_rl_grpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    tokens: Array | None = None,
    input_tokens: Array | None = None,
    output_weight: float = 0.0,
    input_weight: float = 0.0,
    turn_weight: float = 0.0,
) -> Credit:
    """prime-rl's GRPO with its penalty of length: the group's mean subtracted, nothing divided; a group of one gets 0.

        R'_i = R_i − μ (w_o out_i / max out + w_i in_i / max in + w_t turns_i / max turns)        A_i = R'_i − mean R'

    R_i = reward + Σ event_reward and μ its mean over the traces of the group; out, in and turns are the trace's
    generated tokens, read tokens and actions, and each maximum, at least 1, is over the group. The penalty grows with
    μ: a task that is mostly solved presses for short traces. With all weights 0 it is `dr_grpo`. Biased for the policy
    gradient. Replays of one trace count as one sample, and traces without an independent one are refused
    (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      tokens, input_tokens: int or float [E], tokens that each action generated and read; a trace with an action whose
        count is missing (negative or NaN) is left out where its weight is not 0.
      output_weight, input_weight, turn_weight: w_o, w_i, w_t.

    Returns:
      `Credit` at level "trace", estimand "total" without weights and "score" with one.

    Raises:
      CreditError: wrong shapes or dtypes, an option outside its bounds, or a weight without its counts.

    Reference: prime-rl `algo/grpo.py` at 559b447 (Apache-2.0), executed, golden `prime_rl_grpo`. Later versions have
    another penalty, a bonus for short correct traces.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0], evidence={"tokens": [2, 4, 1]})
      >>> result = credit.prime_rl_grpo(graph, reward, tokens=rows.evidence["tokens"], output_weight=0.3)
      >>> rows.gather(result.advantage).tolist()
      [0.35, -0.75, 0.4]
    """
    for name, weight, counts in (
        ("output_weight", output_weight, tokens),
        ("input_weight", input_weight, input_tokens),
    ):
        if weight > 0 and counts is None:
            evidence = "tokens" if name == "output_weight" else "input_tokens"
            raise CreditError(f"{name} is {weight}, and {evidence} is None; expected the counts of every action")
    weights = {"tokens": output_weight, "input_tokens": input_weight, "turns": turn_weight}
    counts = {"tokens": tokens, "input_tokens": input_tokens}
    counts = {name: values for name, values in counts.items() if weights[name] > 0}
    result: Credit = _penalised(graph, reward, event_reward, counts, weights, any(w > 0 for w in weights.values()))
    return result


@functools.partial(jax.jit, static_argnames=("penalised",))
def _penalised(
    graph: EventGraph,
    reward: Array,
    event_reward: Array | None,
    counts: dict[str, Array],
    weights: dict[str, float],
    penalised: bool,
) -> Credit:
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    num, places = len(m.score), jnp.arange(len(m.score), dtype=jnp.int32)
    penalty, known = jnp.zeros_like(m.score), jnp.ones_like(m.member_mask)
    rows = jnp.asarray(graph.event_mask) & graph.trained_mask
    amounts = {"turns": segment_count(m.of_event, num, rows, m.score.dtype)}
    for name, values in counts.items():
        amounts[name], stated = _per_trace(graph, name, values)
        known = known & stated
    stated_mask = m.member_mask & known
    shared = clusters_of(graph, places, m.key, stated_mask, several=False)
    m = m._replace(member_mask=stated_mask, clusters=shared)
    for name, amount in amounts.items():
        amount = jnp.where(stated_mask, amount, jnp.zeros_like(amount)).astype(m.score.dtype)
        most = jnp.maximum(jax.ops.segment_max(amount, m.key, num_segments=num), 1)
        penalty = penalty + weights[name] * amount / most[m.key]
    n, mean, _ = statistics(m)
    shaped = m.score - mean[m.key] * penalty if penalised else m.score
    subtracted = statistics(m._replace(score=shaped))[1][m.key][m.of_event]
    x, alone = shaped[m.of_event], (n[m.key] < 2)[m.of_event]
    subtracted, reason = settle_alone(m, m.member_mask[m.of_event], alone, x, subtracted, "zero")
    missing = (~known)[m.of_event] & ~jnp.isnan(jnp.asarray(reward))[m.of_event]
    reason = jnp.where(missing, Reason.NO_EVIDENCE, reason)
    ones = jnp.ones_like(x)
    return _of_traces(graph, x, subtracted, ones, reason, "prime_rl_grpo", "score" if penalised else "total")


@checked_options
@functools.partial(jax.jit, static_argnames=("baseline", "by"))
def rllm_reinforce_pp(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    baseline: Literal["group", "batch"] = "group",
    by: Name | None = "role_name",
    eps: float | Array = 1e-6,
) -> Credit:
    """rLLM's REINFORCE++ with a baseline, and its PRPO: trajectories of a role over that role's spread in the batch.

        "group"   A_i = (x_i − μ_g) / (s + eps), s over all x − μ of the role in the batch (REINFORCE++-baseline)
        "batch"   A_i = (x_i − m) / (s + eps), m and s over all x of the role in the batch (PRPO)

    x_i is the mean over the rows of one role of a trace of outcome + event_reward; μ_g is over the trajectories of the
    role on the task; s has ddof 0. Biased for the policy gradient. Replays of one trace count as one sample, and
    traces without an independent one are refused (`estimators.clusters`).

    With n trajectories of the role in the batch, no |A| exceeds √(n − 1), however little the rewards differ.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      baseline: "group" or "batch", as above.
      by: what names a trajectory: "role_name" (the code's), "agent_name", or None for whole traces.
      eps: added to the standard deviation.

    Returns:
      `Credit` at the level of the names, estimand "scale" ("total" for `by=None`). Its scope is the batch.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: rLLM `rllm/trainer/algorithms/advantage.py` at 9beb6e0 (Apache-2.0), executed, golden
    `rllm_reinforce_pp`. Its GRPO is `dr_mas` with `by="role_name", population="trace", ddof=0`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> rows.gather(credit.rllm_reinforce_pp(graph, reward).advantage).tolist()
      [0.7071, -1.4142, 0.7071]
    """
    m = members(graph, reward, event_reward, by=by, population="trace", aggregate="mean")
    _, mean, _ = statistics(m)
    num = len(m.score)
    zeros = jnp.zeros(num, jnp.int32)
    first = segment_first(m.of_event, num, jnp.asarray(graph.event_mask))
    names = {"agent_name": graph.agent_name_ids, "role_name": graph.agent_role_ids}
    pool = zeros if by is None else jnp.asarray(names[by])[jnp.asarray(graph.agent_ids)[first]]
    pool = jnp.where(m.member_mask, pool, zeros)
    trace = jnp.asarray(graph.trace_ids)[first]
    shared = clusters_of(graph, trace, pool, m.member_mask, several=False, dtype=m.score.dtype)
    centre = mean[m.key] if baseline == "group" else jnp.zeros_like(m.score)
    centred = Members(m.score - centre, pool, m.member_mask, m.of_event, shared)
    count, middle, squares = statistics(centred)
    spread = safe_sqrt(safe_divide(squares, count))[pool][m.of_event]
    if baseline == "batch":
        centre = middle[pool]
    shared_mask = centred.shared_mask[m.of_event] if baseline == "batch" else m.shared_mask[m.of_event]
    x = m.score[m.of_event]
    reason = jnp.where(m.member_mask[m.of_event], Reason.VALID, Reason.NO_REWARD)
    return finish(
        graph,
        credit=x,
        baseline=centre[m.of_event],
        scale=jnp.where(spread + eps > 0, spread + eps, jnp.ones_like(x)),
        stderr=jnp.full_like(x, jnp.inf),
        reason=jnp.where(shared_mask & (reason == Reason.VALID), Reason.SHARED_PREFIX, reason),
        unit="trace" if by is None else "role" if by == "role_name" else "agent",
        estimand="total" if by is None else "scale",
        source="rllm_reinforce_pp",
        centred=False,
        own_outcome=True,
    )


def _per_trace(graph: EventGraph, name: str, counts: Array) -> tuple[jax.Array, jax.Array]:
    """The sum of a count over the actions of each trace, float [T], and whether all of them state it, bool [T]."""
    values = jnp.asarray(counts)
    if jnp.issubdtype(values.dtype, jnp.integer):
        values = jnp.where(values < 0, jnp.nan, values.astype(jnp.float32))
    values, stated = check_event_array(graph, name, values)
    actions = jnp.asarray(graph.event_mask) & graph.trained_mask
    stated = stated & (values >= 0)
    lacking = segment_count(graph.trace_ids, graph.num_traces, actions & ~stated)
    return segment_sum(values, graph.trace_ids, graph.num_traces, actions & stated), lacking <= 0


def _of_traces(
    graph: EventGraph,
    credit: jax.Array,
    baseline: jax.Array,
    scale: jax.Array,
    reason: jax.Array,
    source: str,
    estimand: Literal["total", "score"] = "total",
) -> Credit:
    return finish(
        graph,
        credit=credit,
        baseline=baseline,
        scale=scale,
        stderr=jnp.full_like(credit, jnp.inf),
        reason=reason,
        unit="trace",
        estimand=estimand,
        source=source,
        centred=False,
        own_outcome=True,
    )
