"""Coefficients of control variates, fitted for each trace on other tasks whose rewards spread about as much.

One coefficient for all tasks is decided by those with the largest rewards: least squares adds up squares. If claims are
right on many tasks of small rewards and noise on a few of large ones, the small tasks get no use of their claims, or
the large ones get the noise. So for each trace the tasks are chosen by their spread:

    family      a group, with every group that replays connect to it (`independent_groups`)
    m_i, s_i²   how many other samples trace i has in its group, and the variance of their rewards
    s_g²        the variance of rewards within the groups of family g
    p²          the lower median of the s_g² > 0 of the other families
    s̃_i²        = ((m_i − 1) s_i² + ν p²) / (m_i − 1 + ν),  ν = PRIOR_TRACES; so too s̃_g² with the freedom of a family
    bucket      4 log₂(s̃² / p²), rounded: `PER_OCTAVE` buckets an octave of variance
    β_i         least squares over the other families whose bucket is at most `REACH` from that of i

So all families within a factor of 2 of the trace's spread count, and none beyond 2.2. Buckets meet at irrational
multiples of p², so rounding decides about no variance of rational rewards. All spreads above 2^64 p are in one bucket.

Families of unequal claims but equal spread are still pooled. Nothing of trace i enters β_i, not even by rounding: its
own family is left out, and s_i leaves the trace itself out, with its replays. Without one family, p has one of two
values, so that sums over families are made for two. Time is O(T log T).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.clusters import first_of_cluster, independent_groups
from estimators.composition.merged_others import merged_others
from estimators.relative_mean import mean_from_first
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, segment_count, segment_first, segment_sum

__all__ = ["ENOUGH_TRACES", "PER_OCTAVE", "PRIOR_TRACES", "REACH", "fitted_coefficients"]

ENOUGH_TRACES = 64
"""Below this many other traces a fitted β costs more variance than it saves, and is 0."""

PER_OCTAVE = 4
"""Buckets in which the variance of rewards doubles."""

REACH = 8
"""Families within this many buckets share a coefficient: a factor of 2 in the spread."""

BUCKETS = 1024
"""Of s̃² / p² from 2^-128 to 2^128. It is at least ν / (T + ν); what is larger is in the last."""

PRIOR_TRACES = 2.0
"""ν: how many traces the spread of other groups counts for in that of one group."""


def fitted_coefficients(graph: EventGraph, outcome: Array, rows: Array, target: Array, others: Array) -> jax.Array:
    """β of each trace and source: those that make Σ (target − Σ β others)² least over families like its own.

    0 where fewer than `ENOUGH_TRACES` traces of such families hold a claim, and for traces without actions in `rows`.
    Where no other family states a spread (one trace each), all are alike.

    Args:
      graph: uses trace, group and cluster ids.
      outcome: float [T], the rewards, 0 where there is none.
      rows: bool [E], the actions that have a baseline.
      target: float [E], R − b at the actions, 0 elsewhere.
      others: float [S, E], the claims of the other actions of the trace.

    Returns:
      float [S, T].

    Source: own; the reasons are in this module's docstring.
    """
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    sources, terms = others.shape[0], jnp.concatenate([others, target[None]])
    speaks = segment_count(trace, num, jnp.any(others != 0, axis=0)) > 0
    acted = segment_count(trace, num, jnp.asarray(rows)) > 0
    family = independent_groups(graph)
    products = [
        segment_sum(segment_sum(terms[i] * terms[j], trace, num), family, num)
        for i in range(sources)
        for j in range(sources + 1)
    ]
    sums = jnp.stack([*products, segment_count(family, num, speaks, target.dtype)], axis=1)

    freedom, variance, left, left_variance = _spreads(graph, jnp.asarray(outcome), acted, family)
    values_of_p, takes = _typical(variance)
    takes = takes[family]

    def buckets(p: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        theirs = _bucket(freedom, variance, p)
        without, total = merged_others(theirs, sums, jnp.add)
        return theirs, without, jnp.zeros((BUCKETS, *sums.shape[1:]), sums.dtype).at[theirs].set(total)

    theirs, without, totals = jax.lax.map(buckets, values_of_p)
    ours = _bucket(jnp.maximum(left - 1, 0), left_variance, values_of_p[takes])
    own, without = theirs[takes, family], without[takes, family]

    def add(step: jax.Array, found: jax.Array) -> jax.Array:
        bucket = ours + step - REACH
        here = totals[takes, jnp.clip(bucket, 0, BUCKETS - 1)]
        exists = (bucket >= 0) & (bucket < BUCKETS)
        return found + jnp.where(exists[:, None], jnp.where((bucket == own)[:, None], without, here), 0)

    found = jax.lax.fori_loop(0, 2 * REACH + 1, add, jnp.zeros_like(without))
    donors, found = found[:, -1], found[:, :-1].reshape(num, sources, sources + 1)
    gram, moment = found[..., :sources], found[..., sources:]
    # A little of each source's own size on the diagonal: equal sources share the coefficient.
    size = jnp.diagonal(gram, axis1=1, axis2=2) * 1e-6
    least = jnp.where(size > 0, size, 1)
    eye = jnp.eye(sources, dtype=gram.dtype)[None]
    solved = jnp.linalg.solve(gram + least[:, :, None] * eye, moment)[..., 0]
    return jnp.where((acted & (donors >= ENOUGH_TRACES))[None], solved.T, 0)


def _typical(variance: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The lower median of the variances above 0 of the other families: its two values [2], and whose is which [T].

    It is 0 where no other family states one. With n of them in order, families at or before the place (n − 2) // 2 find
    the next one, those behind it that one, and those that state none the middle one of all, which is one of the two.
    """
    states = variance > 0
    n = jnp.sum(states, dtype=jnp.int32)
    ordered, at = jnp.sort(jnp.where(states, variance, jnp.inf)), (n - 2) // 2
    low = jnp.where(at >= 0, ordered[jnp.maximum(at, 0)], 0)
    high = jnp.where(at + 1 < n, ordered[jnp.minimum(at + 1, len(ordered) - 1)], 0)
    return jnp.stack([low, high]), jnp.where(states, variance <= low, n % 2 == 1).astype(jnp.int32)


def _bucket(freedom: jax.Array, variance: jax.Array, p: jax.Array) -> jax.Array:
    """The bucket of s̃² / p², of which the middle one holds 1; `p` is p², and where it is 0, variances are not told."""
    ratio = jnp.where(p > 0, variance / jnp.where(p > 0, p, 1), 1)
    shrunk = (freedom * ratio + PRIOR_TRACES) / (freedom + PRIOR_TRACES)
    from_middle = jnp.clip(jnp.round(PER_OCTAVE * jnp.log2(shrunk)), -BUCKETS // 2, BUCKETS // 2 - 1)
    return from_middle.astype(jnp.int32) + BUCKETS // 2


def _spreads(
    graph: EventGraph, outcome: Array, member_mask: jax.Array, family: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Freedom and variance of each family, and number and variance of the other samples of each trace's group: [T].

    Nothing is subtracted for these: what is left of a sum after a reward 1,000 times the others' spread is
    rounding, which would let that reward decide about its own coefficient.
    """
    num, group = graph.num_traces, jnp.asarray(graph.group_ids)
    trace = jnp.arange(num, dtype=jnp.int32)
    sample = first_of_cluster(graph, trace, group, member_mask)
    value = mean_from_first(outcome, sample, num, member_mask)[sample]
    lead = member_mask & (sample == trace)
    first = segment_first(group, num, lead)[group]
    count = segment_count(group, num, lead, outcome.dtype)
    apart = value - value[first]
    mean = safe_divide(segment_sum(apart, group, num, lead), count)
    squares = segment_sum((apart - mean[group]) ** 2, family, num, lead)
    freedom = segment_count(family, num, lead & (trace != first), outcome.dtype)
    each = _Moments(lead.astype(value.dtype), jnp.where(lead, value, 0), jnp.zeros_like(value))
    left = jax.tree.map(lambda x: x[sample], merged_others(group, each, _merged)[0])
    return freedom, _variance(squares, freedom), left.size, _variance(left.squares, left.size - 1)


def _variance(squares: jax.Array, freedom: jax.Array) -> jax.Array:
    """Finite, as rewards above 1e19 have squares that are not."""
    variance = safe_divide(squares, freedom)
    return jnp.where(variance > 0, jnp.minimum(variance, np.finfo(variance.dtype).max), 0)


class _Moments(NamedTuple):
    """Of some samples of one group: their number, mean, and sum of squares about it."""

    size: jax.Array
    mean: jax.Array
    squares: jax.Array


def _merged(one: _Moments, other: _Moments) -> _Moments:
    """Of both together."""
    size = one.size + other.size
    apart, share = other.mean - one.mean, safe_divide(other.size, size)
    between = jnp.where((one.size > 0) & (other.size > 0), apart**2 * one.size * share, 0)
    return _Moments(size, one.mean + apart * share, one.squares + other.squares + between)
