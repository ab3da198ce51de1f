"""Coefficients of control variates, fitted for each trace on other tasks whose rewards spread about as much.

One coefficient for all tasks is decided by those with the largest rewards: least squares adds up squares. If claims are
right on many tasks of small rewards and noise on a few of large ones, the small tasks get no use of their claims, or
the large ones get the noise. So for each trace the tasks are chosen by their spread:

    m_i, s_i²   how many other samples trace i has in its group, and the variance of their rewards
    p           the geometric mean of the spreads of the other groups
    s̃_i²        = ((m_i − 1) s_i² + ν p²) / (m_i − 1 + ν),  ν = PRIOR_TRACES; so too s̃_g² of a whole group g
    β_i         least squares over the other groups g with s̃_i / FACTOR <= s̃_g <= FACTOR s̃_i

Groups of unequal claims but equal spread are still pooled. Nothing of trace i enters β_i: its own group is left out,
with every group that holds a replay of it, and s_i leaves the trace itself out, with its replays.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, segment_count, segment_first, segment_sum

__all__ = ["ENOUGH_TRACES", "FACTOR", "PRIOR_TRACES", "fitted_coefficients"]

ENOUGH_TRACES = 64
"""Below this many other traces a fitted β costs more variance than it saves, and is 0."""

FACTOR = 2.0
"""Groups whose rewards spread within this factor of each other share a coefficient."""

PRIOR_TRACES = 2.0
"""ν: how many traces the spread of other groups counts for in that of one group."""

ROWS = 256
"""How many traces are fitted at a time: a row for each holds a number for every group."""


def fitted_coefficients(graph: EventGraph, outcome: Array, rows: Array, target: Array, others: Array) -> jax.Array:
    """β of each trace and source: those that make Σ (target − Σ β others)² least over groups like its own.

    0 where fewer than `ENOUGH_TRACES` traces of such groups hold a claim. Where no other group states a spread (one
    trace each), all are alike.

    Args:
      graph: uses trace, group and cluster ids.
      outcome: float [T], the rewards, 0 where there is none.
      rows: bool [E], the actions that have a baseline.
      target: float [E], R − b at the actions, 0 elsewhere.
      others: float [S, E], the claims of the other actions of the trace.

    Returns:
      float [S, T]; O(T²) time, in rows of `ROWS`.

    Source: own; the reasons are in this module's docstring.
    """
    trace, group, num = jnp.asarray(graph.trace_ids), jnp.asarray(graph.group_ids), graph.num_traces
    sources, terms = others.shape[0], jnp.concatenate([others, target[None]])
    speaks = segment_count(trace, num, jnp.any(others != 0, axis=0)) > 0
    traces = segment_count(group, num, speaks, target.dtype)
    sums = jnp.stack(
        [
            jnp.stack(
                [segment_sum(segment_sum(terms[i] * terms[j], trace, num), group, num) for j in range(sources + 1)]
            )
            for i in range(sources)
        ]
    ).reshape(sources * (sources + 1), num)

    acted = segment_count(trace, num, jnp.asarray(rows)) > 0
    count, variance, left_count, left_variance = _spreads(graph, jnp.asarray(outcome), acted)
    log_spread = jnp.where(variance > 0, jnp.log(jnp.where(variance > 0, variance, 1)), 0)
    groups = jnp.arange(num, dtype=group.dtype)

    def one(row: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        own_group, own_count, own_variance, own_cluster = row
        other = groups != own_group
        if graph.cluster_ids is not None:  # replays under another task, or another version of the policy
            kin = acted & (jnp.asarray(graph.cluster_ids) == own_cluster)
            other = other & (segment_count(group, num, kin) == 0)
        spreads = other & (variance > 0)
        some = jnp.sum(spreads, dtype=target.dtype)
        p, stated = jnp.exp(safe_divide(jnp.sum(jnp.where(spreads, log_spread, 0)), some)), some > 0  # p²
        theirs = _shrunk(count, jnp.where(stated, variance / p, 1))
        ours = _shrunk(own_count, jnp.where(stated, own_variance / p, 1))
        alike = (theirs <= FACTOR**2 * ours) & (theirs * FACTOR**2 >= ours) & other
        weight = jnp.where(alike, 1, 0).astype(sums.dtype)
        return jnp.matmul(sums, weight, precision="highest"), jnp.sum(jnp.where(alike, traces, 0))

    cluster = groups if graph.cluster_ids is None else jnp.asarray(graph.cluster_ids)
    products, donors = jax.lax.map(one, (group, left_count, left_variance, cluster), batch_size=min(ROWS, num))
    products = products.reshape(num, sources, sources + 1)
    gram, moment = products[..., :sources], products[..., sources:]
    # A little of each source's own size on the diagonal: equal sources share the coefficient.
    size = jnp.diagonal(gram, axis1=1, axis2=2) * 1e-6
    least = jnp.where(size > 0, size, 1)
    eye = jnp.eye(sources, dtype=gram.dtype)[None]
    solved = jnp.linalg.solve(gram + least[:, :, None] * eye, moment)[..., 0]
    return jnp.where((donors >= ENOUGH_TRACES)[None], solved.T, 0)


def _shrunk(count: jax.Array, variance: jax.Array) -> jax.Array:
    """s̃² in units of p²; at least ν / (count − 1 + ν)."""
    freedom = jnp.maximum(count - 1, 0)
    return (freedom * variance + PRIOR_TRACES) / (freedom + PRIOR_TRACES)


def _spreads(
    graph: EventGraph, outcome: Array, member_mask: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Number of samples and variance of rewards of each group, and of each trace's group without its sample: [T]."""
    num, group = graph.num_traces, jnp.asarray(graph.group_ids)
    trace = jnp.arange(num, dtype=jnp.int32)
    sample = trace if graph.cluster_ids is None else jnp.asarray(graph.cluster_ids)
    lead_of = segment_first(sample, num, member_mask)[sample]
    size = segment_count(sample, num, member_mask, outcome.dtype)
    value = outcome[lead_of]
    value = value + safe_divide(segment_sum(outcome - value, sample, num, member_mask), size)[sample]
    lead = member_mask & (lead_of == trace)
    count = segment_count(group, num, lead, outcome.dtype)
    apart = value - value[segment_first(group, num, lead)][group]
    mean = safe_divide(segment_sum(apart, group, num, lead), count)
    squares = segment_sum((apart - mean[group]) ** 2, group, num, lead)
    n = count[group]
    left = _without_each(group, value, lead)[lead_of]
    return count, safe_divide(squares, count - 1), n - 1, safe_divide(left, n - 2)


class _Moments(NamedTuple):
    """Of some samples of one group: the group, their number, mean, and sum of squares about it."""

    group: jax.Array
    size: jax.Array
    mean: jax.Array
    squares: jax.Array


def _merged(one: _Moments, other: _Moments) -> _Moments:
    """Of both together; of the other alone where the groups differ, as a scan over sorted groups needs it."""
    same, size = one.group == other.group, one.size + other.size
    apart, share = other.mean - one.mean, safe_divide(other.size, size)
    between = jnp.where((one.size > 0) & (other.size > 0), apart**2 * one.size * share, 0)
    return _Moments(
        other.group,
        jnp.where(same, size, other.size),
        jnp.where(same, one.mean + apart * share, other.mean),
        jnp.where(same, one.squares + other.squares + between, other.squares),
    )


def _without_each(group: jax.Array, value: jax.Array, where: jax.Array) -> jax.Array:
    """Σ of squares about the mean of the other samples of the group, from those before and those after: [T].

    Nothing is subtracted: what is left of a sum after a reward 1,000 times the others' spread is rounding, which would
    let that reward decide about its own coefficient.
    """
    num = group.shape[0]
    order = jnp.argsort(jnp.where(where, group, num))
    at = jnp.where(where, group, num)[order]
    each = _Moments(at, where[order].astype(value.dtype), jnp.where(where, value, 0)[order], jnp.zeros_like(value))
    before, after = (jax.lax.associative_scan(_merged, each, reverse=reverse) for reverse in (False, True))

    def moved(values: _Moments, by: int) -> _Moments:
        near = jax.tree.map(lambda x: jnp.roll(x, by), values)
        edge = jnp.arange(num) == (0 if by > 0 else num - 1)
        here = (near.group == at) & ~edge
        return _Moments(at, *(jnp.where(here, x, 0) for x in near[1:]))

    left = _merged(moved(before, 1), moved(after, -1)).squares
    return jnp.zeros_like(left).at[order].set(left)
