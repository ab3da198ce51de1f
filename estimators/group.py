"""Group-relative credit: each trace, or each row, against the others of its task. One kernel; methods are its settings.

The published variants differ in four choices, each an argument here:

    who is compared     `by`          all of the trace, or each agent name, or each role name, on its own
    what is a sample    `population`  a trace counts once, or each row (action) counts
    what is its score   `aggregate`   how rewards at single events enter the score of a trace
    against what        `baseline`, `scale`, `eps`, `ddof`, and what becomes of a group of one: `singleton`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, ParamSpec, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.clusters import Clusters, clusters_of
from estimators.options import checked_options
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import By, key_ids, unit_ids
from graphs.segment import (
    safe_divide,
    safe_sqrt,
    segment_count,
    segment_first,
    segment_mean,
    segment_sum,
    segment_sum_squares,
)

__all__ = [
    "Aggregate",
    "Members",
    "Population",
    "Singleton",
    "group_relative",
    "members",
    "row_scores",
    "settle_alone",
    "statistics",
]

P = ParamSpec("P")
R = TypeVar("R")

Population = Literal["trace", "row"]
Aggregate = Literal["sum", "mean", "first"]
Singleton = Literal["refuse", "raw", "zero"]
Over = Literal["group", "batch"]


class Members(NamedTuple):
    """The M samples of a statistic, and the sample of each event.

    Attributes:
      score: float [M].
      key: int32 [M] in [0, M): members with one key are compared with each other.
      member_mask: bool [M].
      of_event: int32 [E] in [0, M): the member that an event belongs to.
      clusters: which members share choices; None where the batch has no replays.
      times: float [M], how many equal samples a member stands for, in a batch without replays; None for one each.
    """

    score: jax.Array
    key: jax.Array
    member_mask: jax.Array
    of_event: jax.Array
    clusters: Clusters | None = None
    times: jax.Array | None = None

    @property
    def shared_mask(self) -> jax.Array:
        """bool [M]: members that are compared with replays of their own trace only."""
        return jnp.zeros_like(self.member_mask) if self.clusters is None else self.clusters.shared_mask


def row_scores(graph: EventGraph, reward: Array, event_reward: Array | None) -> tuple[jax.Array, jax.Array]:
    """What each row earned, outcome and its own event reward, and the mask of rows that count: float [E], bool [E].

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators.group import row_scores
      >>> rows.gather(row_scores(graph, reward, None)[0]).tolist()
      [1.0, 0.0, 0.0]
    """
    outcome, scored = check_reward(graph, reward)
    rows = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[graph.trace_ids]
    score = outcome[graph.trace_ids]
    if event_reward is not None:
        score = score + check_event_array(graph, "event_reward", event_reward)[0]
    return jnp.where(rows, score, jnp.zeros_like(score)), rows


def members(
    graph: EventGraph,
    reward: Array,
    event_reward: Array | None,
    *,
    by: By,
    population: Population,
    aggregate: Aggregate,
    over: Over = "group",
) -> Members:
    """Form the samples: rows, traces, or the rows of one agent or role name of a trace taken together.

    A sample has at least one row: a trace with an outcome in which the team chose nothing enters no baseline.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      by: None for whole traces, "agent_name" or "role_name" for the rows of one name.
      population: "trace" or "row".
      aggregate: how several rows make one score, below.
      over: "group", members of one task are compared; "batch", all are.

    Score of a sample of several rows, with u its trace and E(u) its events:
      "sum"    reward[u] + Σ event_reward over all its events, chosen or not: its return
      "mean"   the mean over its rows of reward[u] + event_reward  (Dr. MAS)
      "first"  reward[u] + event_reward of its first row  (Dr. MAS' RLOO; Agent Lightning)

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators.group import members
      >>> members(graph, reward, None, by=None, population="trace", aggregate="sum").score[:3].tolist()
      [1.0, 0.0, 0.0]
    """
    outcome, _ = check_reward(graph, reward)
    score, rows = row_scores(graph, reward, event_reward)
    trace_ids = jnp.asarray(graph.trace_ids)
    place = jnp.arange(graph.num_events, dtype=jnp.int32)
    if population == "row" and by is not None and over == "group":
        # Keys lie below the number of agents; a fixed-size array of rows must not be shorter than that.
        key_of_agent = key_ids(graph, by, dense=False)
        row_key = _fit(key_of_agent[jnp.asarray(graph.agent_ids)], graph.num_events, graph.num_agents)
        shared = clusters_of(graph, trace_ids, row_key, rows, several=True, dtype=score.dtype)
        return Members(score, row_key, rows, place, shared)
    if by is None:
        unit, num = trace_ids, graph.num_traces
        key, unit_reward = jnp.asarray(graph.group_ids), outcome
        unit_trace = jnp.arange(num, dtype=jnp.int32)
    else:
        agents = jnp.asarray(graph.agent_ids)
        unit_of_agent, num = unit_ids(graph, by), graph.num_agents
        unit = unit_of_agent[agents]
        first = segment_first(unit_of_agent, num, jnp.asarray(graph.agent_mask))
        key = key_ids(graph, by)[first]
        unit_trace = jnp.asarray(graph.agent_trace)[first]
        unit_reward = outcome[unit_trace]
    if over == "batch":
        key = jnp.zeros_like(key)
    if population == "row":
        # Keys lie below the number of agents or traces; a fixed-size array of rows must not be shorter than that.
        row_key = _fit(key[unit], graph.num_events, num)
        shared = clusters_of(graph, trace_ids, row_key, rows, several=True, dtype=score.dtype)
        return Members(score, row_key, rows, place, shared)
    if population != "trace":
        raise CreditError(f"population is {population!r}; expected 'trace' or 'row'")
    member_mask = segment_count(unit, num, rows) > 0
    unit_score = _unit_scores(graph, unit_reward, score, event_reward, unit, rows, aggregate)
    # Over the batch, one trace has several samples where it has several names.
    several = by is not None and over == "batch"
    shared = clusters_of(graph, unit_trace, key, member_mask, several=several, dtype=unit_score.dtype)
    return Members(jnp.where(member_mask, unit_score, jnp.zeros_like(unit_score)), key, member_mask, unit, shared)


def _equal_rows(graph: EventGraph, reward: Array, *, by: By, over: Over) -> Members:
    """The samples of population "row" where no event has a reward of its own, in a batch without replays.

    All rows of a trace have its outcome, so that one member stands for those of a trace, or of an agent instance.
    """
    outcome, _ = check_reward(graph, reward)
    _, rows = row_scores(graph, reward, None)
    if by is None:
        unit, unit_reward, key = jnp.asarray(graph.trace_ids), outcome, jnp.asarray(graph.group_ids)
    else:
        unit, unit_reward = jnp.asarray(graph.agent_ids), outcome[jnp.asarray(graph.agent_trace)]
        key = key_ids(graph, by, dense=False)
    if over == "batch":
        key = jnp.zeros_like(key)
    times = segment_count(unit, len(key), rows, outcome.dtype)
    return Members(jnp.where(times > 0, unit_reward, 0), key, times > 0, unit, times=times)


def _unit_scores(
    graph: EventGraph,
    unit_reward: jax.Array,
    score: jax.Array,
    event_reward: Array | None,
    unit: jax.Array,
    rows: jax.Array,
    aggregate: Aggregate,
) -> jax.Array:
    """The score of each unit of several rows, float [M]: see `members`."""
    num = unit_reward.shape[0]
    if aggregate not in ("sum", "mean", "first"):
        raise CreditError(f"aggregate is {aggregate!r}; expected 'sum', 'mean' or 'first'")
    if event_reward is None:
        return unit_reward
    if aggregate == "sum":
        step, real = check_event_array(graph, "event_reward", event_reward)
        return unit_reward + segment_sum(step, unit, num, real)
    first_score = score[segment_first(unit, num, rows)]
    if aggregate == "first":
        return first_score
    # Relative to the first, so that equal rows average to themselves.
    return first_score + segment_mean(score - first_score[unit], unit, num, rows)


def statistics(m: Members) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Number n of members of each key, their mean, and the sum of squared deviations from it: float [M] each.

    Scores are taken relative to the key's first member, so that members with equal scores deviate by exactly 0. A plain
    float mean of three rewards of 0.1 is not 0.1, and dividing that rounding by a spread of its own size would give
    advantages to traces with equal rewards.

    With replays, members are weighted so that the traces of a cluster count as one, and n is the sum of the weights. A
    member that stands for several samples weighs as many.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators.group import members, statistics
      >>> n, mean, squares = statistics(members(graph, reward, None, by=None, population="trace", aggregate="sum"))
      >>> float(n[0]), float(mean[0]), float(squares[0])
      (3.0, 0.333, 0.667)
    """
    num = m.score.shape[0]
    reference, relative = _relative(m)
    weight = m.times if m.clusters is None else m.clusters.weight.astype(m.score.dtype)
    if weight is None:
        n = segment_count(m.key, num, m.member_mask, m.score.dtype)
        mean = segment_mean(relative, m.key, num, m.member_mask)
        return n, reference + mean, segment_sum_squares(relative, mean, m.key, num, m.member_mask)
    n = segment_sum(weight, m.key, num)
    whole = jnp.round(n)  # thirds do not sum to 1 in floats
    n = jnp.where(jnp.abs(n - whole) < 1e-3, whole, n)
    mean = safe_divide(segment_sum(weight * relative, m.key, num), n)
    deviation = jnp.where(m.member_mask, relative - mean[m.key], jnp.zeros_like(relative))
    return n, reference + mean, segment_sum(weight * deviation**2, m.key, num)


def _relative(m: Members) -> tuple[jax.Array, jax.Array]:
    """The score of the first member of each key, and each member's score less that of its key's: float [M] each."""
    reference = m.score[segment_first(m.key, m.score.shape[0], m.member_mask)]
    return reference, jnp.where(m.member_mask, m.score - reference[m.key], jnp.zeros_like(m.score))


def _mean_of_independent(m: Members, shared: Clusters, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mean over the samples that an event's own may be compared with, and its squared error: float [E] each.

    Left out are the other traces of the event's cluster and, of its own trace, the sample itself, with score `x` [E].
    """
    num, weight = m.score.shape[0], shared.weight.astype(m.score.dtype)
    reference, relative = _relative(m)

    def left(values: jax.Array) -> jax.Array:
        """Sums over the key without those left out, at events: [E]."""
        total = segment_sum(values, m.key, num)[m.key] - segment_sum(values, shared.pair, num)[shared.pair]
        if shared.own is not None:
            total = total + segment_sum(values, shared.own, num)[shared.own] - values
        return total[m.of_event]

    # What leaves is the event's own score, which may be another than its sample's.
    correction = (weight * m.score)[m.of_event] - weight[m.of_event] * x
    mean = safe_divide(left(weight * relative) + correction, left(weight))
    own_mean = segment_mean(relative, shared.pair, num, m.member_mask)
    clusters = shared.independent[m.of_event].astype(m.score.dtype)
    centre = segment_mean(own_mean[shared.pair], m.key, num, shared.lead_mask)
    squares = segment_sum_squares(own_mean[shared.pair], centre, m.key, num, shared.lead_mask)[m.key][m.of_event]
    apart = (own_mean[shared.pair] - centre[m.key])[m.of_event]
    others = squares - safe_divide(apart**2 * clusters, clusters - 1)
    rounding = 8 * np.finfo(m.score.dtype).eps * squares
    others = jnp.where(others > rounding, others, 0)
    error = jnp.where(clusters > 2, safe_divide(others, (clusters - 1) * (clusters - 2)), jnp.inf)
    return reference[m.key][m.of_event] + mean, error


def _fit(ids: jax.Array, room: int, num: int) -> jax.Array:
    """Ids of rows as segment ids in [0, room): as they are, or renumbered where they could exceed it."""
    if num <= room:
        return ids
    order = jnp.argsort(ids, stable=True)
    ranked = ids[order]
    new = jnp.concatenate([jnp.zeros(1, bool), ranked[1:] != ranked[:-1]])
    return jnp.zeros_like(ids).at[order].set(jnp.cumsum(new.astype(ids.dtype), dtype=ids.dtype))


def _compiled(method: Callable[P, R]) -> Callable[P, R]:
    """`jax.jit` with the options static, which keeps the signature for type checkers."""
    static = ("baseline", "scale", "by", "population", "aggregate", "own_score", "over", "singleton", "source")
    return cast("Callable[P, R]", jax.jit(method, static_argnames=static))


@_compiled
@checked_options
def group_relative(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
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
    group: easy and hard tasks weigh more. A group whose members have equal scores gets exactly 0.

    Args:
      graph: uses trace, agent and group ids and the masks.
      reward: float [T]; NaN means that the trace has none (it is left out).
      event_reward: float [E], rewards at events; never the outcome again. NaN counts as 0.
      baseline, scale: as above.
      by: None compares traces; "agent_name" or "role_name" compares the rows of one name only with rows of that name.
      population: "trace", each trace (or name within a trace) is one sample; "row", each action is one.
      aggregate: how `event_reward` enters the score of a sample of several rows: see `members`.
      own_score: the events of a sample keep their own row score x_e, compared with the same baseline (Dr. MAS' RLOO).
      over: "group", samples of one task are compared; "batch", all are.
      eps: added to the standard deviation.
      ddof: 1 divides SS by n − 1, 0 by n.
      singleton: a key with one member: "refuse" marks its events invalid; "zero" gives 0; "raw" subtracts nothing and
        divides by 1 + eps where there is a scale (verl).
      source: name of the method, for `Credit.source`.

    Returns:
      `Credit`, not a partition; its estimand is "total" (one amount to divide in each trace), or
      "scale" where `by` names agents or roles (a normaliser: factors, not claims). `stderr` is that of the baseline,
      from the spread of the members it averages, as if they were independent; infinite where fewer than two are.

    Raises:
      CreditError: wrong dtypes, shapes or options, at trace time.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators import group_relative
      >>> rows.gather(group_relative(graph, reward, baseline="leave_one_out").advantage).tolist()
      [1.0, -0.5, -0.5]
    """
    if population == "row" and event_reward is None and graph.cluster_ids is None:
        m = _equal_rows(graph, reward, by=by, over=over)
    else:
        m = members(graph, reward, event_reward, by=by, population=population, aggregate=aggregate, over=over)
    n, mean, squares = statistics(m)

    score, rows = row_scores(graph, reward, event_reward)
    # Where all events of a member get one number, it is computed once for each member and then looked up.
    by_sample = (population == "trace" or m.times is not None) and not own_score
    own = m._replace(of_event=jnp.arange(m.score.shape[0], dtype=jnp.int32)) if by_sample else m
    key = m.key[own.of_event]
    x = score if own_score else m.score[own.of_event]
    n_e = n[key]

    if scale == "std":
        one = jnp.ones_like(x)
        spread = safe_sqrt(safe_divide(squares, n - ddof))[key]
        divisor = jnp.where(spread + jnp.abs(eps) <= 0, one, spread + eps)  # eps = 0 and equal scores: 0 / 1, not 0 / 0
    elif scale == "none":
        divisor = jnp.ones_like(x)
    else:
        raise CreditError(f"scale is {scale!r}; expected 'std' or 'none'")
    subtracted, stderr = _compared_with(own, x, n_e, mean[key], squares[key], baseline)
    if by_sample:
        x, n_e, divisor, subtracted, stderr = (y[m.of_event] for y in (x, n_e, divisor, subtracted, stderr))
    alone = n_e < 2
    subtracted, reason = settle_alone(m, rows, alone, x, subtracted, singleton)
    if scale == "std":
        too_few = (reason == Reason.VALID) & ~alone & (n_e - ddof <= 0)
        if own_score:
            beyond = beyond_members(m, n_e, x - subtracted, divisor, times=10)
            too_few = too_few | ((reason == Reason.VALID) & ~alone & beyond)
        reason = jnp.where(too_few, Reason.TOO_FEW, reason)
        divisor = jnp.where(alone, jnp.ones_like(x) + eps, divisor)
    return finish(
        graph,
        credit=x,
        baseline=subtracted,
        scale=divisor,
        stderr=stderr,
        reason=reason,
        unit="event" if own_score else _unit(by, population),
        estimand="total" if by is None else "scale",
        source=source,
        centred=False,
        own_outcome=True,
    )


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
    m: Members, row_mask: jax.Array, alone: jax.Array, x: jax.Array, subtracted: jax.Array, singleton: Singleton
) -> tuple[jax.Array, jax.Array]:
    """What is subtracted from each event's score, and its reason, where there is nothing to compare with: [E] each.

    Args:
      m: the members.
      row_mask: bool [E], events whose trace has a reward.
      alone: bool [E], events whose key has one member.
      x, subtracted: float [E], the score, and what is subtracted where the key has several members.
      singleton: "refuse", "zero" or "raw". A key of replays of one trace is refused under each of them.

    Raises:
      CreditError: an unknown `singleton`.
    """
    reason = jnp.where(row_mask, Reason.VALID, Reason.NO_REWARD)
    if singleton == "refuse":
        reason = jnp.where(row_mask & alone, Reason.SINGLETON, reason)
    elif singleton == "zero":
        subtracted = jnp.where(alone, x, subtracted)
    elif singleton == "raw":
        subtracted = jnp.where(alone, jnp.zeros_like(x), subtracted)
    else:
        raise CreditError(f"singleton is {singleton!r}; expected 'refuse', 'zero' or 'raw'")
    return subtracted, jnp.where(row_mask & m.shared_mask[m.of_event], Reason.SHARED_PREFIX, reason)


def _compared_with(
    m: Members, x: jax.Array, n: jax.Array, mean: jax.Array, squares: jax.Array, baseline: str
) -> tuple[jax.Array, jax.Array]:
    """The baseline of each event with score `x`, from the statistics of its key, and its standard error: [E] each."""
    if baseline == "mean":
        error = safe_divide(squares, n * (n - 1))
        return mean, jnp.where(n >= 2, safe_sqrt(error), jnp.inf)
    if baseline != "leave_one_out":
        raise CreditError(f"baseline is {baseline!r}; expected 'mean' or 'leave_one_out'")
    if m.clusters is not None:
        others, error = _mean_of_independent(m, m.clusters, x)
        return others, jnp.where(jnp.isfinite(error), safe_sqrt(error), jnp.inf)
    spread = squares - safe_divide((m.score[m.of_event] - mean) ** 2 * n, n - 1)
    rounding = 8 * np.finfo(x.dtype).eps * squares  # of that difference: what is below it is 0, or less
    spread = jnp.where(spread > rounding, spread, 0)
    error = safe_divide(spread, (n - 1) * (n - 2))
    return mean - safe_divide(x - mean, n - 1), jnp.where(n >= 3, safe_sqrt(error), jnp.inf)


def _unit(by: By, population: Population) -> str:
    if population == "row":
        return "event"
    return "trace" if by is None else "role" if by == "role_name" else "agent"
