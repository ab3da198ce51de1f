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

import jax
import jax.numpy as jnp
import numpy as np

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
    size = segment_count(sample, num, member_mask, outcome.dtype)
    reference = outcome[segment_first(group, num, member_mask)][group]
    value = safe_divide(segment_sum(outcome - reference, sample, num, member_mask), size)[sample]
    lead = member_mask & (segment_first(sample, num, member_mask)[sample] == trace)
    count = segment_count(group, num, lead, outcome.dtype)
    mean = safe_divide(segment_sum(value, group, num, lead), count)
    squares = segment_sum((value - mean[group]) ** 2, group, num, lead)
    apart = (value - mean[group]) ** 2
    n = count[group]
    left = squares[group] - safe_divide(apart * n, n - 1)
    rounding = 8 * np.finfo(outcome.dtype).eps * squares[group]  # of that difference: what is below it is 0
    left = jnp.where(left > rounding, left, 0)
    return count, safe_divide(squares, count - 1), n - 1, safe_divide(left, n - 2)
