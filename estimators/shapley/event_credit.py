"""Shapley credit of events: from shares that a log holds, or from the evaluated coalitions of a batch of traces."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.options import checked_options
from estimators.relative_mean import mean_from_first, stated_once
from estimators.shapley.plan import Plan
from estimators.shapley.solving import relative_values, solve
from estimators.shapley.unit_shares import spread, units_of
from graphs.event_graph import Array, EventGraph
from graphs.levels import Level
from graphs.segment import segment_count

__all__ = ["batch_shapley", "shapley"]


@checked_options
@jax.jit
def shapley(
    graph: EventGraph,
    reward: Array,
    *,
    share: Array,
    share_stderr: Array | None = None,
    event_reward: Array | None = None,
) -> Credit:
    """Each agent's Shapley share of v(N) − v(∅), as evaluated elsewhere and logged as `share`.

        φ_i = Σ_{S without i} |S|! (n − |S| − 1)! / n! (v(S + i) − v(S))

    v(S) is what the team earns with the agents S only. No ordinary log holds it: evaluate coalitions with
    `credit shapley plan`, your own runs, and `credit shapley solve`, or with `credit.shapley_plan` in Python. The
    number at an event is the whole share of its agent instance. It is not divided among the instance's events, so sums
    run over instances. The trace's own outcome does not enter it.

    Args:
      graph: uses the ids of agents and the masks.
      reward: float [T]; only where it is NaN matters: a trace without outcome gets no credit from any method.
      share: float [E], in units of reward, equal at all actions of an agent instance that have it; NaN where the log
        has none. If they differ, the instance has no answer.
      share_stderr: float [E], its standard error; NaN where unknown, as is a negative one.
      event_reward: not used.

    Returns:
      `Credit` [E] at level "agent", estimand "share"; NO_EVIDENCE where the instance has no share, CONTRADICTION where
      its actions have several. `stderr` is infinite where unknown.

    Raises:
      CreditError: wrong dtypes or shapes, at trace time.

    Reference: Shapley 1953, A value for n-person games.

    Examples:
      >>> import numpy as np
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(
      ...     group=["g"] * 8, trace=["t"] * 8, agent=list("abababab"), reward=[1.0] * 8, events=8
      ... )
      >>> result = shapley(graph, reward, share=np.array([0.7, 0.3] * 4, np.float32))
      >>> [round(float(x), 1) for x in result.credit[:2]]
      [0.7, 0.3]
    """
    del event_reward
    scored = check_reward(graph, reward)[1][graph.trace_ids]
    amount, has_share = check_event_array(graph, "share", share)
    n, agent = graph.num_agents, jnp.asarray(graph.agent_ids)
    where = has_share & jnp.asarray(graph.action_mask)
    own, known, differs = (x[agent] for x in stated_once(amount, agent, n, where))
    error = jnp.full_like(own, jnp.inf)
    if share_stderr is not None:
        spread_of, has_error = check_event_array(graph, "share_stderr", share_stderr)
        has_error = has_error & where & (spread_of >= 0)
        error = mean_from_first(spread_of.astype(own.dtype), agent, n, has_error)[agent]
        error = jnp.where(segment_count(agent, n, has_error)[agent] > 0, error, jnp.inf)
    reason = jnp.where(known, Reason.VALID, Reason.NO_EVIDENCE)
    reason = jnp.where(differs, Reason.CONTRADICTION, reason)
    return finish(
        graph,
        credit=own,
        baseline=jnp.zeros_like(own),
        scale=jnp.ones_like(own),
        stderr=error,
        reason=jnp.where(scored, reason, Reason.NO_REWARD),
        unit="agent",
        estimand="share",
        source="shapley",
        centred=False,
        own_outcome=False,
    )


def batch_shapley(
    graph: EventGraph,
    plan: Plan,
    values: Array,
    units: Array,
    *,
    empty: Array | None = None,
    full: Array | None = None,
    noise: Array | float = 0.0,
    above: Array | None = None,
    level: Level = "agent",
    degrees: tuple[int, ...] = (0,),
    interactions: bool = False,
) -> Credit:
    """Shares of the units of each trace from its evaluated coalitions, as credit of events.

    One compilation serves batches of the same padded sizes, whatever they hold. Scope: trace.

    Args:
      graph: uses the ids of `level` and the masks.
      plan: of `stack_plans`, with a leading axis [P], one plan for each trace that has one.
      values: float [P, C], as of `solve`; not finite where a row was not evaluated, which refuses the trace.
      units: int32 [P, N], the id at `level` of each unit of each plan (`graphs.level_ids`; for agents, the instance).
      empty, full: float [P], v(∅) and v(N) where known: with the realised reward shares are conditional on it.
      noise: standard error of the values of enumerations, one number or float [C].
      above: bool [P, N, N] or None: row i of a plan marks unit i and its ancestors in the spawn forest.
      level: the level of the units.
      degrees: which slopes in the size of the team a regression on pairs may use.
      interactions: whether a regression on pairs without noise fits interactions, as `Choice.interactions` says.

    Returns:
      `Credit` with estimand "share". Events of units without a plan, or of a refused one, have reason NO_EVIDENCE.

    Raises:
      CreditError: wrong dtypes or shapes, at trace time.
    """
    values, empty, full = relative_values(plan, values, empty, full)
    ends = {"empty": empty, "full": full}
    result: Credit = _batch_shapley(
        graph,
        plan,
        values,
        units,
        **ends,
        noise=noise,
        above=above,
        level=level,
        degrees=degrees,
        interactions=interactions,
    )
    return result


@functools.partial(jax.jit, static_argnames=("level", "degrees", "interactions"))
def _batch_shapley(
    graph: EventGraph,
    plan: Plan,
    values: Array,
    units: Array,
    *,
    empty: Array | None,
    full: Array | None,
    noise: Array | float,
    above: Array | None,
    level: Level,
    degrees: tuple[int, ...],
    interactions: bool,
) -> Credit:
    values = jnp.asarray(values)

    def one(p: Plan, v: Array, low: Array | None, high: Array | None, chains: Array | None) -> tuple[Array, Array]:
        ends = {"empty": low, "full": high}
        got = solve(p, v, **ends, noise=noise, above=chains, degrees=degrees, interactions=interactions)
        return got.share, got.stderr

    share, stderr = jax.vmap(one)(plan, values, empty, full, above)
    room = units_of(graph, level)
    mask = jnp.asarray(plan.unit_mask).ravel()
    ids = jnp.where(mask, jnp.asarray(units).ravel(), 0)
    count = jnp.zeros(room, jnp.int32).at[ids].add(mask.astype(jnp.int32))

    def by_id(x: Array, otherwise: float) -> Array:
        known = mask & jnp.isfinite(share.ravel())
        total = jnp.zeros(room, x.dtype).at[ids].add(jnp.where(known, x.ravel(), 0))
        plans = jnp.zeros(room, jnp.int32).at[ids].add(known.astype(jnp.int32))
        return jnp.where((plans == 1) & (count == 1), total, otherwise)

    return spread(graph, by_id(share, jnp.nan), by_id(stderr, jnp.inf), level=level)
