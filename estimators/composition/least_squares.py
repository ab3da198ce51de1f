"""Claims on sums of increments at nested levels, made to agree: least squares on a tree, in one pass up and one down.

A claim states c = Σ_{e in u} x_e + noise of variance s² about the increments x of a unit u: an event, a turn, an agent,
everything an agent spawned. The reward is such a claim on the whole trace, with the unexplained as its noise:

    R − expected − outcome = Σ_e x_e + u,  u ~ N(0, τ²)      x_e flat where claimed, N(0, p_e) elsewhere, p_e mostly 0

Units nest, so the posterior is that of a tree. Upwards, each unit sums its parts and takes in its claim; downwards,
what a unit has learnt is divided among its parts in proportion to their variances V:

    up      m_u = Σ m_i, V_u = Σ V_i;   m'_u = (s² m_u + V_u c)/(V_u + s²), V'_u = V_u s²/(V_u + s²)
    down    M_i = m'_i + (V'_i / V_u) (M_u − m_u),   W_i = V'_i (V_u − V'_i)/V_u + (V'_i / V_u)² W_u

Both passes are sums of terms of one sign but for M_u − m_u and V_u − V'_i, which cancel where one part holds nearly all
of a unit's variance. For such a part the sum over the *other* parts is kept: digits survive any spread of errors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from graphs.event_graph import Array
from graphs.segment import safe_divide, segment_sum

__all__ = ["Claims", "Reconciled", "reconcile"]

T = TypeVar("T")
_barrier: Callable[[T], T] = jax.lax.optimization_barrier

DOMINANT = 0.6
"""A part with more than this share of its unit's variance; above one half, so that a unit has at most one."""


class Claims(NamedTuple):
    """The claims of S sources about the N units of one level.

    Attributes:
      amount: float [S, N], the claimed sum of increments; finite.
      variance: float [S, N], of its error; infinite where the source claims nothing, 0 where it is exact.
    """

    amount: Array
    variance: Array


class Reconciled(NamedTuple):
    """The increments that agree best with all claims.

    Attributes:
      amount: float [E, C], what each channel brought to each event; rows sum to the increment.
      variance: float [E], of the increment.
      unit_amount, unit_variance: of the sums over the units of each level but the first: float [N] each.
      conflict: float [N] for each level: how far an exact claim is from what exact claims below it, or the absence of
        any event that could take it, leave no freedom to change; 0 elsewhere.
      unexplained_variance: τ², as given or fitted.
    """

    amount: jax.Array
    variance: jax.Array
    unit_amount: tuple[jax.Array, ...]
    unit_variance: tuple[jax.Array, ...]
    conflict: tuple[jax.Array, ...]
    unexplained_variance: jax.Array


Columns = tuple[jax.Array | None, ...]
"""One array [N] for each channel, None where no claim so far is of that channel, and nothing is computed for it."""


class _Unit(NamedTuple):
    """State of one level between the passes; `rest` is the sum over parts that do not dominate."""

    sum: Columns
    sum_variance: jax.Array
    rest: Columns
    rest_variance: jax.Array
    mean: Columns
    variance: jax.Array


@functools.partial(jax.jit, static_argnames=("channels", "fit"))
def reconcile(
    claims: tuple[Claims, ...],
    parents: tuple[Array, ...],
    total: Array,
    scored: Array,
    *,
    unexplained_variance: float | Array = jnp.inf,
    prior: Array | None = None,
    channels: tuple[tuple[int, ...], ...] | None = None,
    fit: bool = False,
) -> Reconciled:
    """The least-squares increments under claims on nested units and the exact total.

    O(E) time and memory: per level two segment sums and two gathers. Adding events without a claim changes no bit of
    the others (on CPU, where segment sums add in order of position).

    Args:
      claims: for each level, finest first: events, ..., traces. A level without sources has arrays [0, N].
      parents: for each level but the last, int [N]: the unit of the next level that a unit lies in.
      total: float [T], what the increments and the unexplained sum to.
      scored: bool [T], traces whose total is known.
      unexplained_variance: τ²: infinite, the total moves no claim; 0, it is met exactly wherever an event may move; a
        number in between.
      prior: float [E], p_e, the prior variance of events without a claim; 0 by default, and they stay exactly 0.
      channels: for each level and source the column of `amount`, 0 to C − 2; column C − 1 is the total's. By default
        there is one column for all.
      fit: replace τ² by its moment estimate, max(0, mean((total − m)² − V)) over scored traces with claims, m and V
        before the total is seen; infinite where there is no such trace.

    Returns:
      `Reconciled`.

    Source: Gaussian elimination in the order of the tree; Panagiotelis et al. 2021 discuss what such projections
    guarantee. Tested against rational least squares.
    """
    total = jnp.asarray(total)
    if channels is None:
        width, channels = 1, tuple((0,) * level.amount.shape[0] for level in claims)
    else:
        width = 2 + max((c for level in channels for c in level), default=-1)

    mean, variance = _claimed(claims[0], channels[0], width)
    free = jnp.zeros_like(variance) if prior is None else jnp.asarray(prior, variance.dtype)
    spread = jnp.where(jnp.isfinite(variance), variance, free)
    ladder, conflict = [_Unit(mean, spread, mean, spread, mean, spread)], [jnp.zeros_like(variance)]
    for level, parent, columns in zip(claims[1:], parents, channels[1:], strict=True):
        unit = _gather_up(ladder[-1], parent, level.amount.shape[1])
        claimed, error = _claimed(level, columns, width)
        stuck = (unit.sum_variance <= 0) & (error <= 0)
        conflict.append(jnp.where(stuck, _total(claimed, error) - _total(unit.sum, error), 0))
        mean, spread = _weigh(unit.sum, unit.sum_variance, claimed, error)
        ladder.append(unit._replace(mean=mean, variance=spread))

    top = ladder[-1]
    gap = total - _total(top.mean, total)
    tau2 = jnp.broadcast_to(jnp.asarray(unexplained_variance, total.dtype), total.shape)
    if fit:
        use = scored & (top.variance > 0)
        count = jnp.sum(jnp.where(use, 1, 0)).astype(total.dtype)
        excess = jnp.sum(jnp.where(use, gap**2 - top.variance, 0)) / jnp.where(count > 0, count, 1)
        tau2 = jnp.where(count > 0, jnp.maximum(excess, 0), jnp.inf) * jnp.ones_like(total)
    outcome = (*(None,) * (width - 1), jnp.where(scored, total, 0))
    mean, spread = _weigh(top.mean, top.variance, outcome, jnp.where(scored, tau2, jnp.inf))

    unit_amount, unit_variance = [_total(mean, spread)], [spread]
    amount = _rows(mean, spread)
    for unit, below, parent in zip(ladder[:0:-1], ladder[-2::-1], reversed(parents), strict=True):
        above = mean
        mean, share, spread = _hand_down(unit, above, spread, below, parent)
        if below is ladder[0]:
            heard = tuple(None if own is None else column for own, column in zip(below.mean, mean, strict=True))
            amount = _rows(heard, share, _rows(above, unit.sum_variance), parent)
        unit_amount.append(_total(mean, spread))
        unit_variance.append(spread)
    return Reconciled(
        amount=amount,
        variance=spread,
        unit_amount=tuple(unit_amount[-2::-1]),
        unit_variance=tuple(unit_variance[-2::-1]),
        conflict=tuple(conflict),
        unexplained_variance=tau2,
    )


def _claimed(claims: Claims, columns: tuple[int, ...], width: int) -> tuple[Columns, jax.Array]:
    """The sources of one level as one claim: its mean by channel, its variance [N], infinite where there is none."""
    amount, variance = jnp.asarray(claims.amount), jnp.asarray(claims.variance)
    claim_mask, exact = jnp.isfinite(variance), variance <= 0
    exactly = jnp.any(exact, axis=0)
    # Relative to the least variance: 1 / 1e38 is no normal number, and the claim would weigh 0.
    weighed = claim_mask & ~exact
    least = jnp.min(jnp.where(weighed, variance, jnp.inf), axis=0, initial=jnp.inf)
    least = jnp.where(jnp.isfinite(least), least, 1)
    weight = jnp.where(weighed, least[None] / jnp.where(weighed, variance, 1), 0)
    weight = jnp.where(exactly[None], jnp.where(exact, 1, 0).astype(variance.dtype), weight)
    whole = jnp.sum(weight, axis=0)
    some = whole > 0
    parts = jnp.where(claim_mask, amount, 0) * weight / jnp.where(some, whole, 1)[None]
    spread = jnp.where(some, least / jnp.where(some, whole, 1), jnp.inf)
    of = [[parts[s] for s, c in enumerate(columns) if c == column] for column in range(width)]
    return tuple(_total(tuple(each), whole) if each else None for each in of), jnp.where(exactly, 0, spread)


def _total(columns: Columns, like: jax.Array) -> jax.Array:
    """The sum over channels; zeros as `like` where there are none."""
    return sum((column for column in columns if column is not None), jnp.zeros_like(like))


def _gather_up(below: _Unit, parent: Array, num: int) -> _Unit:
    """Sums over the parts of each unit; mean and variance are still those sums."""
    whole = segment_sum(below.variance, parent, num)
    dominates = below.variance > DOMINANT * whole[parent]

    def add(values: jax.Array | None) -> tuple[jax.Array | None, jax.Array | None]:
        if values is None:
            return None, None
        return segment_sum(values, parent, num), segment_sum(jnp.where(dominates, 0, values), parent, num)

    sums, rests = zip(*map(add, below.mean), strict=True)
    rest = segment_sum(jnp.where(dominates, 0, below.variance), parent, num)
    return _Unit(sums, whole, rests, rest, sums, whole)


def _weigh(mean: Columns, variance: jax.Array, claimed: Columns, error: jax.Array) -> tuple[Columns, jax.Array]:
    """The precision-weighted mean of two numbers and its variance; the first where the other's error is infinite."""
    weighed_mask = jnp.isfinite(error) & (variance > 0)
    unit = _unit_of(jnp.maximum(variance, error))
    known, heard = jnp.where(weighed_mask, variance, 1) * unit, jnp.where(weighed_mask, error, 0) * unit
    keep = jnp.where(weighed_mask, heard / (known + heard), 1)
    take = jnp.where(weighed_mask, known / (known + heard), 0)

    def between(a: jax.Array | None, b: jax.Array | None) -> jax.Array | None:
        if a is None or b is None:
            return take * b if b is not None else None if a is None else keep * a
        return keep * a + take * b

    return tuple(map(between, mean, claimed)), variance * keep


def _unit_of(variance: jax.Array) -> jax.Array:
    """What to multiply variances by before one is divided by another: a power of two, 1 unless they are beyond 1e30.

    The sum of two squared errors of 1e19 is no finite number. One over such a square, by which compilers replace a
    division, is no normal number: it would be 0, and no part of a unit would hear of a claim on it.
    """
    return jnp.where(variance > 1e30, 2.0**-32, 1).astype(variance.dtype)


def _hand_down(
    unit: _Unit, mean: Columns, spread: jax.Array, below: _Unit, parent: Array
) -> tuple[Columns, jax.Array, jax.Array]:
    """What the parts of each unit come to be, their shares of what it learnt, and their variances."""
    whole = unit.sum_variance[parent]
    dominates = below.variance > DOMINANT * whole
    small = _unit_of(whole)
    others = safe_divide(
        jnp.where(dominates, unit.rest_variance[parent], whole - below.variance) * small, whole * small
    )
    share = safe_divide(below.variance * small, whole * small)
    fixed = whole <= 0
    keep = jnp.where(dominates, others, 1)
    moved: list[jax.Array | None] = []
    for column, now, before, rest in zip(below.mean, mean, unit.sum, unit.rest, strict=True):
        if now is None:
            moved.append(None)
        elif column is None or before is None or rest is None:
            moved.append(share * now[parent])
        else:
            learnt = jnp.where(dominates, (now - rest)[parent], (now - before)[parent])
            moved.append(jnp.where(fixed, column, keep * column + share * learnt))
    return tuple(moved), share, jnp.where(fixed, 0, below.variance * others + share**2 * spread[parent])


def _rows(columns: Columns, share: jax.Array, above: jax.Array | None = None, parent: Array | None = None) -> jax.Array:
    """Columns as rows [N, C]; one that is None is `share` times that of `above` [M, C] at `parent`, or else 0.

    Row by row, since the events' columns are the largest arrays there are: nothing but the result is as large.
    """
    if above is None or parent is None:
        return jnp.stack([jnp.zeros_like(share) if column is None else column for column in columns]).T
    columns, share, above = _barrier((columns, share, above))
    rows = share[:, None] * above[parent]
    number = jax.lax.broadcasted_iota(jnp.int32, rows.shape, 1)
    for i, column in enumerate(columns):
        rows = rows if column is None else jnp.where(number == i, column[:, None], rows)
    return rows
