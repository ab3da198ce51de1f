"""Structure above the action: leaves of sampling trees, hindsight over a trace, and segments with values."""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish_score
from estimators.clusters import clusters_of
from estimators.compared_ids import before_compiling, numbered
from estimators.counterfactual.replays import event_ids
from estimators.members import Members, members, statistics
from estimators.options import checked_options
from estimators.sequence.chains import Chains, chains, rewards_of_turns
from graphs.errors import ArrayTypeError
from graphs.event_graph import Array, EventGraph
from graphs.levels import pair_ids
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_mean
from graphs.traces.schema import ROUNDING

__all__ = ["hae", "hcapo", "tree_grpo"]


@checked_options
@functools.partial(jax.jit, static_argnames=("mode", "singleton"))
def tree_grpo(
    graph: EventGraph,
    reward: Array,
    *,
    tree: Array,
    event_reward: Array | None = None,
    mode: Literal["tree", "tree_2norm", "tree_inner"] = "tree",
    singleton: Literal["zero", "raw"] = "zero",
    eps: float | Array = 1e-6,
) -> Credit:
    """Tree-GRPO: a leaf against the leaves of its task, and against those of its sampling tree.

        tree         z_task(x) + z_tree(x)
        tree_2norm   z_tree(z_task(x))
        tree_inner   z_tree(x)

    x is the return of the trace, z the difference to the mean over the standard deviation (ddof 1) + eps. Leaves of one
    tree share a prefix, whose actions get the number of the leaf that they are logged with. Biased for the policy
    gradient. Leaves that share ids of choices in the log count as one sample (`estimators.clusters`): a tree whose
    leaves all do is refused.

    With n leaves in the task and m in the tree, no |A| exceeds (n − 1)/√n + (m − 1)/√m, however little they differ.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      tree: int [T], the tree that the trace is a leaf of; -1 where the log has none, and the trace is left out.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      mode: as above.
      singleton: what z gives a leaf alone; the code keeps its number ("raw").
      eps: added to the standard deviations.

    Returns:
      `Credit` at level "trace", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Tree-GRPO (AMAP-ML) `verl/trainer/ppo/core_algos.py`, `ray_trainer_ts.py` at 90b1709 (Apache-2.0),
    executed, golden `tree_grpo`.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(group=[0] * 4, trace=list("abcd"), reward=[1.0, 0.0, 1.0, 1.0])
      >>> tree = np.full(graph.num_traces, -1)
      >>> tree[:4] = [0, 0, 1, 1]
      >>> rows.gather(credit.tree_grpo(graph, reward, tree=tree).advantage).tolist()
      [1.2071, -2.2071, 0.5, 0.5]
    """
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    ids = jnp.asarray(tree)
    if not jnp.issubdtype(ids.dtype, jnp.integer) or ids.shape != (graph.num_traces,):
        raise ArrayTypeError(
            f"tree is {ids.dtype} {ids.shape}; expected integers ({graph.num_traces},), -1 where missing"
        )
    known = m.member_mask & (ids >= 0)
    inner = pair_ids(m.key, ids.astype(jnp.int32), known, graph.num_traces)

    def z(values: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        places = jnp.arange(len(key), dtype=jnp.int32)
        shared = clusters_of(graph, places, key, known, several=False, dtype=values.dtype)
        sample = Members(jnp.where(known, values, 0), key, known, places, shared)
        n, mean, squares = (each[key] for each in statistics(sample))
        spread = safe_sqrt(safe_divide(squares, n - 1)) + eps
        alone = values if singleton == "raw" else jnp.zeros_like(values)
        return jnp.where(n < 2, alone, safe_divide(values - mean, spread)), sample.shared_mask, jnp.isfinite(spread)

    whole, shared_task, finite_task = z(m.score, m.key)
    within, shared_tree, finite_tree = z(whole if mode == "tree_2norm" else m.score, inner)
    amount = whole + within if mode == "tree" else within
    shared = shared_tree if mode == "tree_inner" else shared_tree | shared_task
    reason = jnp.where(finite_task & finite_tree, Reason.VALID, Reason.OUT_OF_RANGE)
    reason = jnp.where(shared, Reason.SHARED_PREFIX, reason)
    reason = jnp.where(m.member_mask & ~known, Reason.NO_EVIDENCE, jnp.where(known, reason, Reason.NO_REWARD))
    return finish_score(graph, amount[m.of_event], reason[m.of_event], "trace", "tree_grpo")


@checked_options
@jax.jit
def hcapo(
    graph: EventGraph,
    reward: Array,
    *,
    hindsight_log_prob: Array,
    event_reward: Array | None = None,
    discount: float | Array = 0.95,
    weight: float | Array = 1.0,
) -> Credit:
    """HCAPO: the outcome against the task's, plus the outcome weighted by how likely hindsight makes each action.

        π_t = exp(h_t / 5)        ρ_t = clip(π_t / mean of π over the trace, 0.8, 1.2)
        Q_t = ρ_t γ^(T − 1 − t) R        Q'_t = (Q_t + mean of Q at the actions beside it) / 2
        A_t = clip(z(R) + w z(Q'), −5, 5)

    h is the mean log-probability of the action's tokens under the policy that is shown how the trace ended; z is the
    difference to the mean over the actions of the task, over their standard deviation (ddof 0) + 1e-3, and undivided
    where that is 1e-3 or less. Failed traces with outcome 0 carry no hindsight. Biased for the policy gradient. Replays
    of one trace count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    No |A| exceeds 5.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      hindsight_log_prob: float [E], h; a trace with an action that has none, or one above 0, is left out.
      event_reward: not used.
      discount, weight: γ and w.

    Returns:
      `Credit` at level "event", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its bounds.

    Reference: arXiv:2603.08754, from an independent re-implementation; the authors' code was not found.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a", "a", "b", "b"], reward=[1.0, 1.0, 0.0, 0.0],
      ...     evidence={"hindsight_log_prob": [-0.4, -0.6, -0.9, -0.7]})
      >>> hindsight = rows.evidence["hindsight_log_prob"]
      >>> rows.gather(credit.hcapo(graph, reward, hindsight_log_prob=hindsight).advantage).tolist()
      [1.996, 1.996, -1.996, -1.996]
    """
    del event_reward
    outcome, scored = check_reward(graph, reward)
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    hindsight, stated = check_event_array(graph, "hindsight_log_prob", hindsight_log_prob)
    stated &= hindsight <= ROUNDING
    acts = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[trace]
    row = acts & (segment_count(trace, num, acts & ~stated) < 1)[trace]
    path, ones = chains(graph, row), jnp.ones_like(outcome[trace])
    likely = jnp.exp(jnp.where(row, hindsight.astype(ones.dtype), 0) / 5)
    typical = segment_mean(likely, trace, num, row)[trace]
    ratio = jnp.clip(safe_divide(likely, typical), 0.8, 1.2)
    left = path.backward_alike(ones, ones) - 1
    q = ratio * jnp.power(jnp.asarray(discount, ones.dtype), left) * outcome[trace]
    places = jnp.arange(len(q), dtype=jnp.int32)
    q = jnp.zeros_like(q).at[places].set(jnp.where(row, q, 0))  # once: equal numbers must be equal bit for bit
    latest = jax.lax.cummax(jnp.where(row, places, -1))
    before = jnp.concatenate([jnp.full(1, -1, jnp.int32), latest[:-1]])
    has_before = row & (before >= 0) & (trace[before] == trace)
    beside = jnp.where(has_before, q[before], 0) + path.following(q)
    count = has_before.astype(q.dtype) + jnp.where(row & ~path.last, 1, 0).astype(q.dtype)
    smooth = jnp.where(count > 0, 0.5 * q + 0.5 * safe_divide(beside, count), q)
    group = jnp.asarray(graph.group_ids)[trace]
    key = pair_ids(jnp.zeros_like(group), group, row, 1)
    shared = clusters_of(graph, trace, key, row, several=True, dtype=q.dtype)

    def z(values: jax.Array) -> tuple[jax.Array, Members, jax.Array]:
        m = Members(jnp.where(row, values, 0), key, row, places, shared)
        n, mean, squares = (each[key] for each in statistics(m))
        deviation = safe_sqrt(safe_divide(squares, n))
        return safe_divide(values - mean, jnp.where(deviation > 1e-3, deviation + 1e-3, 1)), m, jnp.isfinite(deviation)

    (whole, m, finite), (weighted, _, also) = z(outcome[trace]), z(smooth)
    amount = jnp.clip(whole + weight * weighted, -5, 5)
    reason = jnp.where(finite & also, Reason.VALID, Reason.OUT_OF_RANGE)
    reason = jnp.where(m.shared_mask, Reason.SHARED_PREFIX, reason)
    reason = jnp.where(row, reason, jnp.where(acts, Reason.NO_EVIDENCE, Reason.NO_REWARD))
    return finish_score(graph, amount, reason, "event", "hcapo")


@checked_options
@before_compiling(segment=numbered)
@functools.partial(jax.jit, static_argnames=("level",))
def hae(
    graph: EventGraph,
    reward: Array,
    *,
    value: Array,
    value_high: Array,
    segment: Array,
    event_reward: Array | None = None,
    discount: float | Array = 0.95,
    lambda_: float | Array = 0.95,
    lambda_high: float | Array = 0.95,
    level: Literal["low", "high", "both"] = "both",
) -> Credit:
    """HAE: GAE inside each segment of a trace, and GAE over segments for the decisions that begin them.

        low    δ_t = r_t + γ V_next − V_t,  A_t = δ_t + γ λ A_{t+1} within the segment
               V_next: V of the next action, V_high of the next segment's first one, or 0 at the end
        high   δ_k = Σ_j γ^j r_{k+j} + γ^d V_high(next segment) − V_high(k),  A_k = δ_k + γ^d λ_high A_{k+1}
               at first actions; d is the number of actions of the segment

    In a team a segment is a delegation and V_high the orchestrator's value. "both" adds the two, as the code does over
    the tokens of an action that begins a segment; the high part is 0 at the other actions. Right where both values are.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace, earned at its last action; NaN where it has none.
      value: float [E], V before each action, of what is still to come within the trace.
      value_high: float [E], V_high before the first action of each segment.
      segment: int [E], the segment of each action; it ends where the next action has another.
      event_reward: float [E], rewards at single events, or None. NaN counts as 0.
      discount, lambda_, lambda_high: γ, λ and that of segments.
      level: as above.

    Returns:
      `Credit` at level "event", estimand "score". An action that reads a missing value or segment is invalid, as of
      `gae`: of its own segment, of the beginnings of later ones, or of the next one alone.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: HiPER `hiper_hae/core_hae.py` `compute_hae_advantage` at 9d3c118 (Apache-2.0), executed, golden `hae`,
    without its termination head and without its normalisation over the batch.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 2, trace=["a"] * 2, reward=[1.0] * 2,
      ...     evidence={"value": [0.5, 0.5], "value_high": [0.5, None], "segment": ["x", "x"]})
      >>> rows.gather(credit.hae(graph, reward, **rows.evidence, discount=1.0, lambda_=1.0).advantage).tolist()
      [1.0, 0.5]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    trace = jnp.asarray(graph.trace_ids)
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[trace]
    path = chains(graph, row)
    v, has_v = check_event_array(graph, "value", value)
    high, has_high = check_event_array(graph, "value_high", value_high)
    part = event_ids(graph, "segment", segment)
    v, high = v.astype(outcome.dtype), high.astype(outcome.dtype)
    places = jnp.arange(len(part), dtype=jnp.int32)
    latest = jax.lax.cummax(jnp.where(row, places, -1))
    before = jnp.concatenate([jnp.full(1, -1, jnp.int32), latest[:-1]])
    goes_on = row & (before >= 0) & (trace[before] == trace) & (part[before] == part)
    first = row & ~goes_on
    same = path.following(goes_on.astype(jnp.int32)) > 0
    earned = jnp.where(path.last, outcome[trace], jnp.zeros_like(v))
    if event_reward is not None:
        step, real = rewards_of_turns(graph, event_reward), jnp.asarray(graph.event_mask)
        earned = earned + path.gathered(step.astype(v.dtype), real)
    ahead = jnp.where(path.last, 0, jnp.where(same, path.following(v), path.following(high)))
    within = jnp.where(same, discount * jnp.ones_like(v), 0)
    low = path.backward(within * lambda_, earned + discount * ahead - v)
    gathered, length = (
        path.backward(within, earned),
        path.backward(jnp.where(same, jnp.ones_like(v), 0), jnp.ones_like(v)),
    )
    begins = chains(graph, first)
    shrunk = jnp.power(jnp.asarray(discount, v.dtype), length)
    delta = gathered + shrunk * begins.following(high) - high
    top = begins.backward(shrunk * lambda_high, jnp.where(first, delta, 0))
    amount = low if level == "low" else top if level == "high" else low + top

    def follows(by: Chains, flagged: jax.Array) -> jax.Array:
        return by.following(jnp.where(flagged, jnp.ones_like(v), jnp.zeros_like(v))) > 0

    # A return holds the next value with γ (1 − λ), what follows with γ λ, and a segment's end in whole.
    unlabelled, counts = part < 0, jnp.asarray(discount) > 0
    ahead = follows(path, unlabelled) | (counts & ~same & follows(path, ~has_high))
    ahead |= counts & same & (jnp.asarray(lambda_) < 1) & follows(path, ~has_v)
    carried = jnp.where(same & (discount * jnp.asarray(lambda_) > 0), jnp.ones_like(v), jnp.zeros_like(v))
    lost = ~has_v | (path.backward(carried, ahead.astype(v.dtype)) > 0)
    begun = (before >= 0) & (trace[before] == trace) & unlabelled[before]  # or it goes on
    further = follows(begins, unlabelled) | (counts & (jnp.asarray(lambda_high) < 1) & follows(begins, ~has_high))
    further = jnp.where(discount * jnp.asarray(lambda_high) > 0, begins.reaches(further), further)
    lost_high = first & (~has_high | begun | further)
    lost = unlabelled | (lost if level == "low" else lost_high if level == "high" else lost | lost_high)
    reason = jnp.where(row, jnp.where(lost, Reason.NO_EVIDENCE, Reason.VALID), Reason.NO_REWARD)
    return finish_score(graph, amount, reason, "event", "hae")
