"""One more step or stop, one more agent or not: what the second side of such a decision is worth.

A point is an action at which the policy could have taken either of two sides. "More" is to go on, or to spawn. The log
states the probability of a stop, or of a spawn, and the type of the event says which side was taken. One trace shows
one side only. So the value of more comes from the other traces of a key, from a critic, or from a re-run with the other
side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.counterfactual.contrast import effective_size
from estimators.counterfactual.replays import leaf_returns
from estimators.options import checked_options
from estimators.sequence.chains import chains, rewards_of_turns
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph, EventType
from graphs.keys import event_keys, number_before
from graphs.levels import pair_ids
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first, segment_mean, segment_sum
from graphs.stable_order import stable_order

__all__ = ["Points", "ValueOfMore", "points", "spawn_credit", "stop_credit", "value_of_more"]

Amount = Literal["increment", "value"]
Basis = Literal["logs", "critic", "replays"]
Over = Literal["task", "batch"]

KEYS: dict[Over, tuple[str, ...]] = {"task": ("task", "agent"), "batch": ("agent",)}
"""With which points one is compared, beside its number among the points of its agent instance."""

LEAST_PART = 0.1
"""Smallest effective size of a side as a part of the decisions that fall on it on average."""

ERROR_ESS = 50.0
"""With fewer effective decisions on a side than this no standard error is stated, as in `doubly_robust_contrast`."""


class Points(NamedTuple):
    """The decisions with two sides, of which one is "more": to go on, to spawn. Arrays [E], by event.

    Attributes:
      where: bool, the points.
      more: bool, more was chosen; False elsewhere.
      chance: float, the probability of more, NaN where unknown.
      ahead: float, what was earned from the point on, outcome included.
      total: float, the return of the trace.
      key: int32 in [0, E), equal at points that are compared: the k-th of an instance, of agents of one name.
      cluster: int32 in [0, E), equal at points of one key whose traces share choices.
    """

    where: jax.Array
    more: jax.Array
    chance: jax.Array
    ahead: jax.Array
    total: jax.Array
    key: jax.Array
    cluster: jax.Array


@functools.partial(jax.jit, static_argnames=("name", "over"))
def points(
    graph: EventGraph, reward: Array, event_reward: Array | None, name: str, propensity: Array, over: Over = "task"
) -> Points:
    """The points of a batch: actions of trained agents that have an outcome, and a propensity or the type itself.

    Args:
      graph: the batch.
      reward: float [T], the outcome of each trace; NaN where unknown.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      name: "stop_propensity" or "spawn_propensity".
      propensity: float [E], the probability of an event of type `stop`, or `spawn`, whatever was chosen; NaN elsewhere.
      over: with which points one is compared: those of the task, or of the batch.

    Examples:
      >>> import credit
      >>> import numpy as np
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "b"], event_type=["stop", "message"], reward=[1.0, 0.0], events=2)
      >>> points(graph, reward, None, "stop_propensity", np.full(2, 0.25, np.float32)).more.tolist()
      [False, True]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    trace, real = jnp.asarray(graph.trace_ids), jnp.asarray(graph.event_mask)
    chance, stated = check_event_array(graph, name, propensity)
    impossible = real & jnp.isinf(jnp.asarray(propensity))  # it is stated, so that the key is refused, as with 1.5
    stops = name == "stop_propensity"
    typed = jnp.asarray(graph.event_type) == int(EventType.STOP if stops else EventType.SPAWN)
    acts = real & graph.trained_mask & scored[trace]
    where = acts & (stated | impossible | typed)
    # The last point of a trace gets the outcome, and each point the rewards until the next; sums from behind follow.
    chain = chains(graph, where)
    ahead = jnp.where(chain.last, outcome[trace], jnp.zeros_like(outcome[trace]))
    if event_reward is not None:
        step = rewards_of_turns(graph, event_reward)
        ahead = ahead + chain.gathered(step.astype(ahead.dtype), real)
    ahead = chain.back(chain.backward(jnp.ones_like(ahead), chain.take(ahead)))
    agent = jnp.asarray(graph.agent_ids)
    # The number of a point among those of its agent instance: events of an instance are not contiguous in a trace.
    by_agent = stable_order(agent)
    number = number_before(where[by_agent], agent[by_agent], graph.num_agents)
    number = jnp.zeros_like(number).at[by_agent].set(number)
    key = jnp.where(where, event_keys(graph, (*KEYS[over], number)), 0)
    cluster = trace if graph.cluster_ids is None else jnp.asarray(graph.cluster_ids)[trace]
    chance = jnp.where(stated, 1 - chance if stops else chance, jnp.nan).astype(ahead.dtype)
    more = where & (~typed if stops else typed)
    total = jnp.where(where, leaf_returns(graph, reward, event_reward)[trace], jnp.zeros_like(ahead))
    return Points(where, more, chance, ahead, total, key, pair_ids(key, cluster, where, graph.num_events))


@checked_options
@functools.partial(jax.jit, static_argnames=("amount", "basis", "own_outcome", "over"))
def stop_credit(
    graph: EventGraph,
    reward: Array,
    *,
    stop_propensity: Array,
    q_value: Array | None = None,
    target_value: Array | None = None,
    counterfactual_reward: Array | None = None,
    event_reward: Array | None = None,
    amount: Amount = "increment",
    basis: Basis = "logs",
    own_outcome: bool = False,
    over: Over = "task",
) -> Credit:
    """The value of one more step, E[R | go on] − E[R | stop], as the increment of the choice that was made.

    A point is an action with `stop_propensity`, and every action of type `stop`. It stopped if it is of that type, and
    went on if not; what it then does is up to the policy. R is what is earned from the point on, so event rewards that
    charge for steps are the price of going on. With a the choice, s = 1 for going on and −1 for stopping:

        Δ = E[R | go on] − E[R | stop]        D = s (1 − π(a)) Δ = Q(h, a) − V(h)

        logs      Δ = m_on − m_stop + covariance of R − m(a) and s / π(a) over the other traces of the key
        critic    Δ = m_on − m_stop
        replays   Δ = s (R − R')

    m is a critic: `q_value` is m(a), and m of the other side is (V − π(a) q) / (1 − π(a)) with V the `target_value`;
    "logs" does without, as m = 0. The mean of s / π(a) is 0, so that its covariance with R, over N − 1, has the mean Δ
    whatever m is: the doubly robust estimate, centred at the other traces' mean. R' is `counterfactual_reward`, the
    return of a re-run with the other side, as `credit plan --for stop` makes it.

    A key is the k-th point of agents of one name. "logs" is unbiased for the mean over the prefixes of a key, before
    refusals, which go by propensities and choices. Where π or Δ differ between prefixes of a key, and no critic tells
    them apart, the increment of a single prefix is biased. "replays" is unbiased for each prefix, "critic" as biased as
    the critic.

    Args:
      graph: types, agents and groups.
      reward: float [T], the outcome of each trace; NaN where unknown.
      stop_propensity: float [E], the probability of stopping at this point, whatever was chosen; NaN elsewhere.
      q_value, target_value: float [E], a critic's value of the choice, and its mean over both under the policy that
        acted. The critic must not have been fitted on the trace.
      counterfactual_reward: float [E], needed for "replays".
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      amount: "increment" for D, which the policy gradient takes; "value" for Δ, the same for both choices.
      basis: what Δ comes from. Nothing else takes its place where it is missing.
      own_outcome: with "logs", Δ = s (R − the mean of the other side, from the other traces), as unbiased as without. A
        rarely chosen side then learns from its own outcome, so that training needs it. Its error is unknown.
      over: whether points are compared within the task, or over the batch.

    Returns:
      `Credit` at level "event", estimand "increment", or "effect" for "value". `stderr` is over traces; infinite with
      fewer than 50 effective decisions on a side, and for "critic" and "replays". Reasons: NO_EVIDENCE at other
      actions and where evidence is missing; NO_OVERLAP where a point of the key has a propensity of 0, 1 or none;
      LOW_ESS where fewer than a tenth of a side's decisions are effective; CONTRADICTION where a side was taken more or
      less often than its propensities say, by four standard deviations and two decisions more; TOO_FEW with less than
      two other traces.

    Raises:
      CreditError: wrong shapes or dtypes, an option outside its choices, or evidence that the option needs is missing.

    Reference: Robins, Rotnitzky and Zhao 1994, at stopping decisions; the survey's cell O5 has no published method.

    Examples:
      >>> import numpy as np
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=list("abcd"), event_type=["stop", "message"] * 2, reward=[0.25, 0.75] * 2)
      >>> half = np.full(graph.num_events, 0.5, np.float32)
      >>> rows.gather(credit.stop_credit(graph, reward, stop_propensity=half).credit).round(2).tolist()
      [-0.33, 0.33, -0.33, 0.33]
    """
    p = points(graph, reward, event_reward, "stop_propensity", stop_propensity, over)
    evidence = (q_value, target_value, counterfactual_reward)
    return _credit(graph, p, "stop", *evidence, amount=amount, basis=basis, own_outcome=own_outcome)


@checked_options
@functools.partial(jax.jit, static_argnames=("amount", "basis", "own_outcome", "over"))
def spawn_credit(
    graph: EventGraph,
    reward: Array,
    *,
    spawn_propensity: Array,
    q_value: Array | None = None,
    target_value: Array | None = None,
    counterfactual_reward: Array | None = None,
    event_reward: Array | None = None,
    amount: Amount = "increment",
    basis: Basis = "logs",
    own_outcome: bool = False,
    over: Over = "task",
) -> Credit:
    """The value of spawning over not spawning, as the increment of the choice that was made.

    With a the choice, and s = 1 for spawning and −1 for another action with `spawn_propensity`, whose credit is that of
    *not* spawning:

        Δ = E[R | spawn] − E[R | not]        D = s (1 − π(a)) Δ

    Δ is estimated as in `stop_credit`.

    Args:
      spawn_propensity: float [E], the probability of spawning at this point, whatever was chosen; NaN elsewhere.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      graph, reward, q_value, target_value, counterfactual_reward, amount, basis, own_outcome, over: as of
        `stop_credit`.

    Returns:
      `Credit`, as `stop_credit`.

    Raises:
      CreditError: as `stop_credit`.

    Reference: Robins, Rotnitzky and Zhao 1994, at spawning decisions.

    Examples:
      >>> import numpy as np
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=list("abcd"), event_type=["message", "spawn"] * 2, reward=[0.25, 0.75] * 2)
      >>> half = np.full(graph.num_events, 0.5, np.float32)
      >>> rows.gather(credit.spawn_credit(graph, reward, spawn_propensity=half).credit).round(2).tolist()
      [-0.33, 0.33, -0.33, 0.33]
    """
    p = points(graph, reward, event_reward, "spawn_propensity", spawn_propensity, over)
    evidence = (q_value, target_value, counterfactual_reward)
    return _credit(graph, p, "spawn", *evidence, amount=amount, basis=basis, own_outcome=own_outcome)


def _credit(
    graph: EventGraph,
    p: Points,
    name: str,
    q_value: Array | None,
    target_value: Array | None,
    counterfactual_reward: Array | None,
    *,
    amount: Amount,
    basis: Basis,
    own_outcome: bool,
) -> Credit:
    n, chance, more = graph.num_events, p.chance, p.more
    overlap = (chance > 0) & (chance < 1)
    own = jnp.where(overlap, jnp.where(more, chance, 1 - chance), jnp.full_like(chance, 0.5))
    sign = jnp.where(more, jnp.ones_like(own), -jnp.ones_like(own))
    zero, known = jnp.zeros_like(p.ahead), p.where
    model, gap = zero, zero
    if (q_value is None) != (target_value is None):
        raise CreditError(f"{name}: q_value and target_value come together: a critic, and its mean under the policy")
    if q_value is not None and target_value is not None:
        q, has_q = check_event_array(graph, "q_value", q_value)
        mean, has_mean = check_event_array(graph, "target_value", target_value)
        known, model = known & has_q & has_mean, q.astype(own.dtype)
        gap = jnp.where(known, sign * (model - mean.astype(own.dtype)) / (1 - own), zero)
    stderr, reason = jnp.full_like(zero, jnp.inf), jnp.where(overlap, Reason.VALID, Reason.NO_OVERLAP)
    if basis == "replays":
        if counterfactual_reward is None:
            raise CreditError(
                f"{name}: basis='replays' needs counterfactual_reward: `credit plan --for {name}` makes it, and "
                "`--evidence counterfactual_reward` takes it from the log"
            )
        other, has_other = check_event_array(graph, "counterfactual_reward", counterfactual_reward)
        value, known = sign * (p.total - other.astype(own.dtype)), p.where & has_other
    elif basis == "critic":
        if q_value is None:
            raise CreditError(
                f"{name}: basis='critic' needs q_value and target_value; `--evidence` takes each of them from the log"
            )
        value = gap
    else:
        lacks = segment_count(p.key, n, p.where & ~known)[p.key] > 0  # a key of other prefixes would answer otherwise
        known = known & ~lacks
        others = value_of_more(p, p.ahead - model, others=True)
        value, stderr, reason = gap + others.value, others.stderr, others.reason
        if own_outcome:
            value, stderr = gap + sign * _against_other_side(p, p.ahead - model), jnp.full_like(zero, jnp.inf)
    reason = jnp.where(known, reason, Reason.NO_EVIDENCE)
    # An unknown error times a share has no finite slope.
    share = sign * (1 - own) if amount == "increment" else jnp.ones_like(own)
    return finish(
        graph,
        credit=share * value,
        baseline=zero,
        scale=jnp.ones_like(zero),
        stderr=jnp.where(jnp.isfinite(stderr), jnp.abs(share) * jnp.where(jnp.isfinite(stderr), stderr, 0), jnp.inf),
        reason=reason,
        unit="event",
        estimand="increment" if amount == "increment" else "effect",
        source=f"{name}_credit",
        centred=amount == "increment",
        own_outcome=own_outcome or basis == "replays",
    )


class ValueOfMore(NamedTuple):
    """The covariance of what was earned and s / π, at each point; arrays [E].

    Attributes:
      value: float.
      stderr: float, infinite with fewer than `ERROR_ESS` effective decisions on a side, or one side only.
      samples: float, independent traces that it rests on.
      reason: int, a `Reason`.
    """

    value: jax.Array
    stderr: jax.Array
    samples: jax.Array
    reason: jax.Array


def value_of_more(p: Points, earned: jax.Array, *, gap: jax.Array | None = None, others: bool = False) -> ValueOfMore:
    """Δ of each point's key from its logged decisions.

        Δ = Σ_i g_i / N + Σ_{i ≠ j} t_i (R_i − R_j) / (N (N − 1))        t = s / π(a), whose mean is 0

    A sum over pairs of different clusters, so that no decision meets its own outcome in what it is centred at. A
    cluster with several points counts with their means.

    Args:
      p: of `points`.
      earned: float [E], R at the points, or what a critic leaves of it, R − m(a).
      gap: float [E], g, the critic's own value of more; None for 0.
      others: leave out the point's own cluster.

    Examples:
      >>> import credit
      >>> import numpy as np
      >>> graph, reward, _ = credit.from_columns(
      ...     group=[0] * 4, trace=list("abcd"), event_type=["stop", "message"] * 2, reward=[0.0, 1.0] * 2, events=4)
      >>> p = points(graph, reward, None, "stop_propensity", np.full(4, 0.5, np.float32))
      >>> value_of_more(p, p.ahead).value.round(2).tolist()
      [1.33, 1.33, 1.33, 1.33]
    """
    n, where = p.where.shape[0], p.where
    chance, overlap = _chance(p)
    t = jnp.where(p.more, 1 / chance, -1 / (1 - chance))
    y = _relative(p, earned)
    leads, of_clusters = _clusters(p)
    both, t, y = of_clusters(t * y), of_clusters(t), of_clusters(y)
    extra = jnp.zeros_like(y) if gap is None else of_clusters(gap)

    def over(x: jax.Array) -> jax.Array:
        total = segment_sum(x, p.key, n, leads)[p.key]
        return total - x if others else total

    samples = over(jnp.ones_like(y))
    pairs = samples * (samples - 1)
    value = safe_divide((samples - 1) * (over(both) + over(extra)) - over(t) * over(y) + over(t * y), pairs)
    # What each cluster adds to it, with the mean of t known to be 0.
    centre = safe_divide(segment_sum(y, p.key, n, leads), segment_count(p.key, n, leads, y.dtype))[p.key]
    influence = both - t * centre + extra
    mean = safe_divide(over(influence), samples)
    squares = over(influence**2) - samples * mean**2
    stderr = safe_sqrt(safe_divide(jnp.maximum(squares, 0), pairs))

    sizes, enough = [], jnp.ones_like(where)
    for side in (chance, 1 - chance):
        mean_size, effective = effective_size(side, overlap, p.key, n)
        sizes.append(effective)
        enough = enough & (effective >= LEAST_PART * mean_size)[p.key]
    sides = [segment_count(p.key, n, where & took) > 0 for took in (p.more, ~p.more)]
    stated = (jnp.minimum(*sizes) >= ERROR_ESS) & sides[0] & sides[1]
    reason = jnp.where(enough, Reason.VALID, Reason.LOW_ESS)
    reason = jnp.where(_contradicted(p, leads, of_clusters), Reason.CONTRADICTION, reason)
    reason = jnp.where(samples < 2, Reason.TOO_FEW, reason)
    reason = jnp.where(segment_count(p.key, n, where & ~overlap)[p.key] > 0, Reason.NO_OVERLAP, reason)
    return ValueOfMore(value, jnp.where(stated[p.key], stderr, jnp.inf), samples, reason)


def _contradicted(p: Points, leads: jax.Array, of_clusters: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Where the decisions of a key contradict their probabilities, bool [E].

    That is where the number of one side is more than four standard deviations, and two, from what is expected: counts
    of rare events have long tails. Points of a cluster may share a choice, and count as one.
    """
    n, (chance, _) = p.where.shape[0], _chance(p)
    off = segment_sum(of_clusters(p.more.astype(chance.dtype) - chance), p.key, n, leads)
    spread = segment_sum(of_clusters(chance * (1 - chance)), p.key, n, leads)
    contradicted: jax.Array = (jnp.abs(off) > 4 * safe_sqrt(spread) + 2)[p.key]
    return contradicted


def _against_other_side(p: Points, earned: jax.Array) -> jax.Array:
    """R − R̄ − (E[R | the side not chosen] − R̄) at each point, float [E], both from other clusters.

    The second part is the covariance over their pairs of R and u = 1[other side] / π, whose mean is 1. So a side that
    is rarely chosen is compared with one that often is, and its weight 1 / π meets the small share of the other.
    """
    n, (chance, _) = p.where.shape[0], _chance(p)
    y = _relative(p, earned)
    leads, of_clusters = _clusters(p)

    def others(x: jax.Array) -> jax.Array:
        return segment_sum(x, p.key, n, leads)[p.key] - x

    mean_y = of_clusters(y)
    samples = others(jnp.ones_like(y))

    def side(weight: jax.Array) -> jax.Array:
        both, u = of_clusters(weight * y), of_clusters(weight)
        product = (samples - 1) * others(both) - others(u) * others(mean_y) + others(u * mean_y)
        return safe_divide(product, samples * (samples - 1))

    zero = jnp.zeros_like(y)
    on, off = side(jnp.where(p.more, 1 / chance, zero)), side(jnp.where(p.more, zero, 1 / (1 - chance)))
    return y - safe_divide(others(mean_y), samples) - jnp.where(p.more, off, on)


def _chance(p: Points) -> tuple[jax.Array, jax.Array]:
    """The probability of more, one half where there is no overlap, and where there is."""
    overlap = p.where & (p.chance > 0) & (p.chance < 1)
    return jnp.where(overlap, p.chance, jnp.full_like(p.chance, 0.5)), overlap


def _relative(p: Points, earned: jax.Array) -> jax.Array:
    """Relative to one outcome of the key, so that equal outcomes have a covariance of exactly 0."""
    first = segment_first(p.key, p.where.shape[0], p.where)[p.key]
    return jnp.where(p.where, earned - earned[first], jnp.zeros_like(earned))


def _clusters(p: Points) -> tuple[jax.Array, Callable[[jax.Array], jax.Array]]:
    """One point of each cluster, and the mean over a point's cluster."""
    n = p.where.shape[0]
    first = segment_first(p.cluster, n, p.where)
    leads = p.where & (first[p.cluster] == jnp.arange(n, dtype=first.dtype))

    def mean(x: jax.Array) -> jax.Array:
        return segment_mean(x, p.cluster, n, p.where)[p.cluster]

    return leads, mean
