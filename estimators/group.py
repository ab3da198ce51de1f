"""Group-relative credit: each trace, or each row, against the others of its task. One kernel; methods are its settings.

The published variants differ in four choices, each an argument here:

    who is compared     `by`          with the same task, agent, turn, observation, … (`graphs.keys.PARTS`)
    what is a sample    `population`  a trace counts once, or each agent instance, or each row (action)
    what is its score   `aggregate`   how rewards at single events enter the score of a trace
    against what        `baseline`, `scale`, `eps`, `ddof`, and what becomes of a group of one: `singleton`
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Reason, finish
from estimators.clusters import Clusters
from estimators.kept_functions import kept_compiled
from estimators.members import (
    Aggregate,
    Members,
    Over,
    Population,
    equal_rows,
    members,
    relative_scores,
    row_scores,
    statistics,
)
from estimators.options import checked_options
from estimators.spread_of_others import infinite_if_lost, squares_of_others
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.keys import By, Key, key_of
from graphs.segment import (
    computed_once,
    safe_divide,
    safe_sqrt,
    segment_count,
    segment_mean,
    segment_sum,
    segment_sum_squares,
)

__all__ = ["AllFilters", "Filters", "Singleton", "beyond_members", "group_relative", "settle_alone"]

P = ParamSpec("P")
R = TypeVar("R")
At = Callable[[jax.Array], jax.Array]

Singleton = Literal["refuse", "raw", "zero"]
Filters = Literal["none", "equal"]
AllFilters = Literal["none", "equal", "spread"]


def _mean_of_independent(m: Members, at: At, shared: Clusters, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mean over the samples that an event's own may be compared with, and its squared error: float [E] each.

    Left out are the other traces of the event's cluster and, of its own trace, the sample itself, with score `x` [E].
    """
    num, weight = m.score.shape[0], shared.weight.astype(m.score.dtype)
    reference, relative = relative_scores(m)

    def left(values: jax.Array) -> jax.Array:
        """Sums over the key without those left out, at events: [E]."""
        total = segment_sum(values, m.key, num)[m.key] - segment_sum(values, shared.pair, num)[shared.pair]
        if shared.own is not None:
            total = total + segment_sum(values, shared.own, num)[shared.own] - values
        return at(total)

    # What leaves is the event's own score, which may be another than its sample's.
    correction = at(weight * m.score) - at(weight) * x
    mean = safe_divide(left(weight * relative) + correction, left(weight))
    clusters, squares, apart = _of_clusters(m, at, shared)
    others = squares_of_others(squares, apart, clusters, at(_differ(m)))
    error = jnp.where(clusters > 2, safe_divide(others, (clusters - 1) * (clusters - 2)), jnp.inf)
    return at(reference[m.key]) + mean, error


def _of_clusters(m: Members, at: At, shared: Clusters) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Of each event's key, the number of clusters and Σ (x̄_c − x̄)² of their means; x̄_c − x̄ of its own: float [E] each.

    Traces of a cluster share a part of their luck, so that a mean over them is no more certain than its clusters make
    it: deviations within a cluster say nothing about that.
    """
    num = m.score.shape[0]
    own_mean = segment_mean(relative_scores(m)[1], shared.pair, num, m.member_mask)[shared.pair]
    centre = segment_mean(own_mean, m.key, num, shared.lead_mask)
    squares = segment_sum_squares(own_mean, centre, m.key, num, shared.lead_mask)[m.key]
    clusters = shared.independent.astype(m.score.dtype)
    return at(clusters), at(squares), at(own_mean - centre[m.key])


def _differ(m: Members) -> jax.Array:
    """Whether the members of each member's key have different scores: bool [M]."""
    size = jnp.abs(relative_scores(m)[1])
    return segment_sum(size, m.key, m.score.shape[0])[m.key] > 0


def _compiled(method: Callable[P, R]) -> Callable[P, R]:
    """`jax.jit` with the options static, which keeps the signature for type checkers."""
    static = ("baseline", "scale", "population", "aggregate", "own_score", "over", "singleton", "filters", "source")
    return kept_compiled(cast("Callable[P, R]", jax.jit(method, static_argnames=static)))


def group_relative(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    agent_reward: Array | None = None,
    baseline: Literal["mean", "leave_one_out"] = "mean",
    scale: Literal["std", "none"] = "none",
    by: By = None,
    population: Population = "trace",
    aggregate: Aggregate = "sum",
    own_score: bool = False,
    over: Over = "group",
    eps: float | Array = 0.0,
    ddof: int | Array = 1,
    singleton: Singleton = "refuse",
    filters: AllFilters = "none",
    filter_ratio: float | Array = 0.5,
    source: str = "group_relative",
) -> Credit:
    """Compare each sample with the samples that share its key.

    With the n members x_j of a key, μ their mean and SS = Σ (x_j − μ)²:

        baseline "mean"            b_i = μ
        baseline "leave_one_out"   b_i = μ − (x_i − μ) / (n − 1), the mean of the others
        scale "std"                s   = sqrt(SS / (n − ddof)) + eps
        A_i = (x_i − b_i) / s

    The leave-one-out form without scale is an unbiased policy-gradient signal, since b_i does not depend on sample i;
    with the mean it is (n − 1)/n times that. A standard deviation makes the gradient's mean depend on the spread of a
    group: easy and hard tasks weigh more. A group whose members have equal scores gets exactly 0. The squares of scores
    that differ by less than 1e-19 are 0 in single precision: their standard deviation is that of equal ones.

    Args:
      graph: uses trace, agent and group ids and the masks.
      reward: float [T]; NaN means that the trace has none (it is left out).
      event_reward: float [E], rewards at events; never the outcome again. NaN counts as 0.
      agent_reward: float [E], the outcome of each agent instance's own trace, besides `reward`, at one of its events or
        more, NaN elsewhere; or None (`estimators.members.agent_outcomes`). For populations "agent" and "row". With it,
        `aggregate` "return" counts the event rewards of the instance's own events alone.
      baseline, scale: as above.
      by: whose samples are compared: names of `graphs.keys.PARTS` by commas or in a tuple, int arrays [E] among them
        with -1 where an event has no key. None compares the traces of a task. "agent_name" and "role_name" are short
        for ("task", "agent") and ("task", "role"). An event without a key is invalid. A caller's `jit` keeps 32 bits of
        an integer: wider ids, such as hashes, go through `graphs.keys.key_of` before.
      population: "trace", what a trace has of one key is one sample; "agent", what an agent instance has of it; "row",
        each action is one.
      aggregate: how `event_reward` enters the score of a sample of several rows: see `members`.
      own_score: the events of a sample keep their own row score x_e, compared with the same baseline (Dr. MAS' RLOO).
      over: "group", samples of one key are compared; "batch", all are, of whatever key.
      eps: added to the standard deviation.
      ddof: 1 divides SS by n − 1, 0 by n.
      singleton: a key with one member: "refuse" marks its events invalid; "zero" gives 0; "raw" subtracts nothing and
        divides by 1 + eps where there is a scale (verl).
      filters: "equal" leaves out the samples of a key whose members all have one score, as DAPO does: their number is
        0, but a mean over the batch's actions has them in its divisor. "spread" leaves out the keys of the batch whose
        variance (ddof 0) over the square of their range is least. "none" keeps all.
      filter_ratio: the share of keys that "spread" leaves out, rounded down. Keys that tie with the last of these go,
        too.
      source: name of the method, for `Credit.source`.

    Returns:
      `Credit`, not a partition; its estimand is "total" (one amount to divide in each trace), or "scale" where `by`
      names more than properties of the trace (a normaliser: factors, not claims). `stderr` is that of the baseline,
      from the spread of the members it averages, as if they were independent, or with replays from that of the means of
      clusters; infinite where fewer than two are.

    Raises:
      CreditError: wrong dtypes, shapes or options, at trace time.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators import group_relative
      >>> rows.gather(group_relative(graph, reward, baseline="leave_one_out").advantage).tolist()
      [1.0, -0.5, -0.5]
    """
    # A number that is passed is copied to the device at every call; one that is left out is a constant of the kernel.
    stated = {"eps": eps, "ddof": ddof, "filter_ratio": filter_ratio}
    numbers: dict[str, Any] = {name: number for name, number in stated.items() if number is not _USUAL[name]}
    return _compared(
        graph,
        reward,
        event_reward=event_reward,
        agent_reward=agent_reward,
        baseline=baseline,
        scale=scale,
        by=key_of(by),
        population=population,
        aggregate=aggregate,
        own_score=own_score,
        over=over,
        singleton=singleton,
        filters=filters,
        source=source,
        **numbers,
    )


@_compiled
@checked_options
def _compared(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None,
    agent_reward: Array | None,
    baseline: Literal["mean", "leave_one_out"],
    scale: Literal["std", "none"],
    by: Key,
    population: Population,
    aggregate: Aggregate,
    own_score: bool,
    over: Over,
    singleton: Singleton,
    filters: AllFilters,
    source: str,
    eps: float | Array = 0.0,
    ddof: int | Array = 1,
    filter_ratio: float | Array = 0.5,
) -> Credit:
    """The kernel: see `group_relative`."""
    if population == "row" and event_reward is None and graph.cluster_ids is None and by.level != "event":
        m = equal_rows(graph, reward, by=by, over=over, agent_reward=agent_reward)
    else:
        m = members(
            graph,
            reward,
            event_reward,
            by=by,
            population=population,
            aggregate=aggregate,
            over=over,
            agent_reward=agent_reward,
        )
    n, mean, squares = statistics(m)

    score, rows = row_scores(graph, reward, event_reward, agent_reward)
    # Where all events of a member get one number, it is computed once for each member and then looked up.
    by_sample = (population != "row" or m.times is not None) and not own_score

    def at(values: jax.Array) -> jax.Array:
        """Numbers of members, where they are asked for: at members or at events."""
        return values if by_sample else values[m.of_event]

    key = at(m.key)
    x = score if own_score else at(m.score)
    n_e = n[key]

    if scale == "std":
        one = jnp.ones_like(x)
        spread = safe_sqrt(safe_divide(squares, n - ddof))[key]
        divisor = jnp.where(spread + jnp.abs(eps) <= 0, one, spread + eps)  # eps = 0 and equal scores: 0 / 1, not 0 / 0
    elif scale == "none":
        divisor = jnp.ones_like(x)
    else:
        raise CreditError(f"scale is {scale!r}; expected 'std' or 'none'")
    subtracted, stderr = _compared_with(m, at, x, n_e, mean[key], squares[key], baseline)
    if by_sample:
        subtracted = computed_once(subtracted)
        x, n_e, divisor, subtracted, stderr = (y[m.of_event] for y in (x, n_e, divisor, subtracted, stderr))
    alone = n_e < 2
    subtracted, reason = settle_alone(m, rows, alone, x, subtracted, singleton)
    if scale == "std":
        too_few = (reason == Reason.VALID) & ~alone & (n_e - ddof <= 0)
        if own_score:
            beyond = beyond_members(m, n_e, x - subtracted, divisor, times=10)
            reason = jnp.where((reason == Reason.VALID) & ~alone & beyond, Reason.NO_DIVISOR, reason)
        reason = jnp.where(too_few, Reason.TOO_FEW, reason)
        divisor = jnp.where(alone, jnp.ones_like(x) + eps, divisor)
    if filters == "equal":
        reason = jnp.where((reason == Reason.VALID) & ~alone & ~_differ(m)[m.of_event], Reason.NO_SPREAD, reason)
    elif filters == "spread":
        least = _of_least_spread(m, safe_divide(squares, n), filter_ratio)[m.of_event]
        reason = jnp.where((reason == Reason.VALID) & least, Reason.NO_SPREAD, reason)
    elif filters != "none":
        raise CreditError(f"filters is {filters!r}; expected 'none', 'equal' or 'spread'")
    return finish(
        graph,
        credit=x,
        baseline=subtracted,
        scale=divisor,
        stderr=stderr,
        reason=reason,
        unit="event" if own_score or population == "row" else "agent" if _by_agent(by, population) else by.unit,
        estimand="total" if by.level == "trace" and agent_reward is None else "scale",
        source=source,
        centred=False,
        own_outcome=True,
    )


_USUAL = {name: inspect.signature(group_relative).parameters[name].default for name in ("eps", "ddof", "filter_ratio")}


def _of_least_spread(m: Members, variance: jax.Array, ratio: float | Array) -> jax.Array:
    """Whether each member's key is in the share of keys with the least variance over the square of the range: bool [M].

    A key of equal scores has 0 there. Nothing has more than 1/4.
    """
    num = m.score.shape[0]
    present = segment_count(m.key, num, m.member_mask) > 0
    high = jax.ops.segment_max(jnp.where(m.member_mask, m.score, -jnp.inf), m.key, num)
    low = jax.ops.segment_min(jnp.where(m.member_mask, m.score, jnp.inf), m.key, num)
    span = jnp.where(present, high - low, 0)
    # Twice a quotient: the square of a small range is 0 in single precision, that of a large one infinite. In whole
    # numbers, keys whose scores differ by a shift or a factor are equal, and stay or go together.
    steps = jnp.round(safe_divide(safe_divide(variance, span), span) * 2**20).astype(jnp.int32)
    rank = jnp.where(present, steps, np.iinfo(np.int32).max)
    fewer = jnp.searchsorted(jnp.sort(rank), rank)
    # A product such as 0.29 · 100 is just below 29 in floats.
    left_out = jnp.floor(jnp.sum(present, dtype=m.score.dtype) * ratio * (1 + 1e-6)).astype(fewer.dtype)
    return (fewer < left_out)[m.key]


def _by_agent(by: Key, population: Population) -> bool:
    """Whether the instances of a trace have numbers of their own, and their events share them."""
    return population == "agent" and by.level != "event"


def beyond_members(m: Members, n: jax.Array, apart: jax.Array, divisor: jax.Array, *, times: float = 1.0) -> jax.Array:
    """Whether a number is further from its key's mean than `times` what a member of the key can be: bool [E].

    No member is further than sqrt(n / w) standard deviations, at ddof 0 and 1, with n the weight of the key's members
    and w its own (1 without replays). A number of which the standard deviation knows nothing, such as a row's own
    reward where only the first rows are members, can be any multiple of it: 0.3 / 1e-6 where the members are equal.

    Args:
      m: the members.
      n: [E], how many members the key of each event has.
      apart: float [E], the number minus the mean.
      divisor: float [E], what it is to be divided by.
      times: 1, or more for released code, whose numbers are kept unless the divisor is nearly 0.
    """
    weight = jnp.ones_like(m.score) if m.clusters is None else m.clusters.weight.astype(m.score.dtype)
    own = weight[m.of_event]
    return jnp.abs(apart) > times * safe_sqrt(safe_divide(n.astype(own.dtype), own)) * divisor


def settle_alone(
    m: Members,
    row_mask: jax.Array,
    alone: jax.Array,
    x: jax.Array,
    subtracted: jax.Array,
    singleton: Singleton,
    *,
    few: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """What is subtracted from each event's score, and its reason, where there is nothing to compare with: [E] each.

    An event without a key is refused with NO_EVIDENCE.

    Args:
      m: the members.
      row_mask: bool [E], events whose trace has a reward.
      alone: bool [E], events whose key has one member.
      x, subtracted: float [E], the score, and what is subtracted where the key has several members.
      singleton: "refuse", "zero" or "raw". A key of replays of one trace is refused under each of them.
      few: bool [E], events whose key has several members, and fewer than what is subtracted takes, as the second
        largest of the others takes three. They are refused under each `singleton`, with TOO_FEW.

    Raises:
      CreditError: an unknown `singleton`.

    Examples:
      >>> import credit  # the return minus the mean of the role's others without the least and the largest
      >>> import jax.numpy as jnp
      >>> from estimators import rloo
      >>> from estimators.base import finish
      >>> from estimators.group import settle_alone
      >>> from estimators.medians import nth_of_others
      >>> from estimators.members import members
      >>> def trimmed(graph, reward, *, event_reward=None, by="task,role"):
      ...     m = members(graph, reward, event_reward, by=by, population="trace", aggregate="return")
      ...     (least, others), (most, _) = nth_of_others(m, 0), nth_of_others(m, -1)
      ...     mean = rloo(graph, reward, event_reward=event_reward, by=by).baseline
      ...     n = others.astype(mean.dtype)
      ...     x, known = m.score[m.of_event], m.member_mask[m.of_event]
      ...     middle = x + ((mean - x) * n - (least - x) - (most - x)) / jnp.maximum(n - 2, 1)  # exact if all are equal
      ...     middle, reason = settle_alone(m, known, others < 1, x, middle, "refuse", few=others < 3)
      ...     return finish(graph, credit=x, baseline=middle, scale=jnp.ones_like(x), stderr=jnp.full_like(x, jnp.inf),
      ...                   reason=reason, unit="role", estimand="total", source="trimmed", centred=False,
      ...                   own_outcome=True)
      >>> graph, reward, rows = credit.from_columns(group=[0] * 4, trace=list("abcd"), reward=[9.0, 5.0, 1.0, 0.0])
      >>> rows.gather(trimmed(graph, reward).advantage).tolist()
      [8.0, 4.0, -4.0, -5.0]
    """
    reason = jnp.where(row_mask, Reason.VALID, Reason.NO_REWARD)
    if few is not None:
        reason = jnp.where(row_mask & few & ~alone, Reason.TOO_FEW, reason)
    if singleton == "refuse":
        reason = jnp.where(row_mask & alone, Reason.SINGLETON, reason)
    elif singleton == "zero":
        subtracted = jnp.where(alone, x, subtracted)
    elif singleton == "raw":
        subtracted = jnp.where(alone, jnp.zeros_like(x), subtracted)
    else:
        raise CreditError(f"singleton is {singleton!r}; expected 'refuse', 'zero' or 'raw'")
    reason = jnp.where(row_mask & m.shared_mask[m.of_event], Reason.SHARED_PREFIX, reason)
    if m.absent_mask is not None:
        reason = jnp.where(row_mask & m.absent_mask, Reason.NO_EVIDENCE, reason)
    return subtracted, reason


def _compared_with(
    m: Members, at: At, x: jax.Array, n: jax.Array, mean: jax.Array, squares: jax.Array, baseline: str
) -> tuple[jax.Array, jax.Array]:
    """The baseline of each event with score `x`, from the statistics of its key, and its standard error: [E] each.

    Under `at` that keeps the members, of each member, as all that follows.
    """
    if baseline == "mean":
        samples, spread = n, squares
        if m.clusters is not None:
            samples, spread, _ = _of_clusters(m, at, m.clusters)
        error = safe_divide(infinite_if_lost(spread, at(_differ(m))), samples * (samples - 1))
        return mean, jnp.where(samples >= 2, safe_sqrt(error), jnp.inf)
    if baseline != "leave_one_out":
        raise CreditError(f"baseline is {baseline!r}; expected 'mean' or 'leave_one_out'")
    if m.clusters is not None:
        others, error = _mean_of_independent(m, at, m.clusters, x)
        return others, jnp.where(jnp.isfinite(error), safe_sqrt(error), jnp.inf)
    others = squares_of_others(squares, at(m.score) - mean, n, at(_differ(m)))
    error = safe_divide(others, (n - 1) * (n - 2))
    # From the sum less its own, each relative to the key's first. From n times the mean, which is rounded, the
    # others of 1, 0 and 0 had a mean of -3e-8; and of 6e-9 where a processor fuses that product with the difference.
    first, relative = relative_scores(m)
    first = at(first[m.key])
    weighted = relative if m.times is None else m.times * relative
    total = segment_sum(weighted, m.key, m.score.shape[0], m.member_mask)
    subtracted = first + safe_divide(at(total[m.key]) - (x - first), n - 1)
    return subtracted, jnp.where(n >= 3, safe_sqrt(error), jnp.inf)
