"""Shapley credit of a batch of traces: solve each trace's plan and give each event its unit's share."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from estimators.base import Credit
from estimators.shapley.plan import Plan
from estimators.shapley.solving import solve
from estimators.shapley.unit_shares import spread, units_of
from graphs.event_graph import Array, EventGraph
from graphs.levels import Level

__all__ = ["shapley"]


@functools.partial(jax.jit, static_argnames=("level", "degrees"))
def shapley(
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
) -> Credit:
    """Shares of the units of each trace from its evaluated coalitions, as credit of events.

    One compilation serves batches of the same padded sizes, whatever they hold. Scope: trace.

    Args:
      graph: uses the ids of `level` and the masks.
      plan: of `stack_plans`, with a leading axis [P], one plan for each trace that has one.
      values: float [P, C]; not finite where a row was not evaluated, which refuses the trace.
      units: int32 [P, N], the id at `level` of each unit of each plan (`graphs.level_ids`; for agents, the instance).
      empty, full: float [P], v(∅) and v(N) where known: with the realised reward shares are conditional on it.
      noise: for enumerations, as in `solve`.
      above: bool [P, N, N] or None, as in `solve`.
      level: the level of the units.
      degrees: as in `solve`.

    Returns:
      `Credit` with estimand "share". Events of units without a plan, or of a refused one, have reason NO_EVIDENCE.

    Raises:
      TypeError, ValueError: wrong dtypes or shapes, at trace time.
    """
    values = jnp.asarray(values)

    def one(p: Plan, v: Array, low: Array | None, high: Array | None, chains: Array | None) -> tuple[Array, Array]:
        got = solve(p, v, empty=low, full=high, noise=noise, above=chains, degrees=degrees)
        return got.share, got.stderr

    share, stderr = jax.vmap(one)(plan, values, empty, full, above)
    room = units_of(graph, level)
    mask = jnp.asarray(plan.unit_mask).ravel()
    ids = jnp.where(mask, jnp.asarray(units).ravel(), 0)
    count = jnp.zeros(room, jnp.int32).at[ids].add(mask.astype(jnp.int32))

    def by_id(x: Array, otherwise: float) -> Array:
        known = mask & jnp.isfinite(share.ravel())
        total = jnp.zeros(room, x.dtype).at[ids].add(jnp.where(known, x.ravel(), 0))
        there = jnp.zeros(room, jnp.int32).at[ids].add(known.astype(jnp.int32))
        return jnp.where((there == 1) & (count == 1), total, otherwise)

    return spread(graph, by_id(share, jnp.nan), by_id(stderr, jnp.inf), level=level)
