"""Samples of a key in order, and their medians: one extreme outcome moves them little, where it moves a mean at will.

With replays, the samples of a cluster count as one, with their mean (`estimators.clusters`).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.members import Members
from estimators.relative_mean import mean_from_first
from graphs.errors import CreditError
from graphs.segment import segment_count, segment_first
from graphs.text import excerpt

__all__ = ["Ordered", "in_order", "median", "median_of_others", "nth_of_others"]


def median(m: Members, value: jax.Array | None = None) -> tuple[jax.Array, jax.Array]:
    """The median of each member's key, and the number of samples of that key: float [M] and int32 [M].

    The median of an even number of values is the mean of the middle two.

    Args:
      m: the members.
      value: float [M], of each member; None for its score. With replays, a cluster has the mean of its members' values.

    Examples:
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[9.0, 1.0, 0.0])
      >>> from estimators.members import members
      >>> from estimators.medians import median
      >>> middle, n = median(members(graph, reward, None, by=None, population="trace", aggregate="sum"))
      >>> float(middle[0]), int(n[0])
      (1.0, 3)
    """
    ordered = in_order(m, m.score if value is None else value)
    return _middle(ordered, ordered.n, skip=None), ordered.n


def median_of_others(m: Members) -> tuple[jax.Array, jax.Array]:
    """At each event, the median of the other samples of its key, and their number: float [E] and int32 [E].

    Other samples share no choice with the event's own, so the median does not depend on what was chosen there.

    Args:
      m: the members.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[9.0, 1.0, 0.0])
      >>> from estimators.members import members
      >>> from estimators.medians import median_of_others
      >>> middle, others = median_of_others(members(graph, reward, None, by=None, population="trace", aggregate="sum"))
      >>> rows.gather(middle).tolist(), rows.gather(others).tolist()
      ([0.5, 4.5, 5.0], [2, 2, 2])
    """
    ordered = in_order(m, m.score)
    others = ordered.n - 1
    middle = _middle(ordered, others, skip=ordered.rank)
    return middle[ordered.sample_of][m.of_event], others[m.of_event]


def nth_of_others(m: Members, place: int | jax.Array) -> tuple[jax.Array, jax.Array]:
    """At each event, one of the other samples of its key in order, and their number: float [E] and int32 [E].

    Other samples share no choice with the event's own. Where there are too few, the value is NaN: refuse such
    events, with `few` of `estimators.group.settle_alone`.

    Args:
      m: the members.
      place: 0 for the least of the others, 1 for the next; -1 for the largest, -2 for the second largest; or int32 [M],
        of each member, such as one that grows with the number of others.

    Raises:
      CreditError: `place` is no integer.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[9.0, 1.0, 0.0])
      >>> from estimators.members import members
      >>> from estimators.medians import in_order, nth_of_others
      >>> best, others = nth_of_others(members(graph, reward, None, by=None, population="trace", aggregate="sum"), -1)
      >>> rows.gather(best).tolist(), rows.gather(others).tolist()
      ([1.0, 9.0, 9.0], [2, 2, 2])

      The lower quartile of the others, as `numpy.quantile` has it:

      >>> import jax.numpy as jnp
      >>> m = members(graph, reward, None, by=None, population="trace", aggregate="sum")
      >>> place = 0.25 * (in_order(m, m.score).n - 2).astype(m.score.dtype)  # of others that are 0 to n - 2
      >>> low, high = (nth_of_others(m, end(place).astype(jnp.int32))[0] for end in (jnp.floor, jnp.ceil))
      >>> quartile = low + (place - jnp.floor(place))[m.of_event] * (high - low)
      >>> rows.gather(quartile).tolist()
      [0.25, 2.25, 3.0]
    """
    dtype = place.dtype if isinstance(place, jax.Array) else np.asarray(place).dtype
    if not np.issubdtype(dtype, np.integer):
        got = excerpt(place) if np.ndim(place) == 0 else f"an array of {dtype}"
        raise CreditError(f"place is {got}; expected an integer, as 0 for the least (the median: median_of_others)")
    ordered = in_order(m, m.score)
    others = ordered.n - 1
    wanted = jnp.where(jnp.asarray(place) < 0, others + place, place)
    there = (wanted >= 0) & (wanted < others)
    value = jnp.where(there, _at(ordered, jnp.where(there, wanted, 0), ordered.rank), jnp.nan)
    return value[ordered.sample_of][m.of_event], others[m.of_event]


class Ordered(NamedTuple):
    """The samples of each key side by side, the least first; [M] each.

    Attributes:
      value: of the samples, in order.
      start: the place of the first sample of a member's key.
      rank: the place of a sample among those of its key.
      n: the number of samples of a member's key.
      sample_of: the member that stands for a member's sample.
    """

    value: jax.Array
    start: jax.Array
    rank: jax.Array
    n: jax.Array
    sample_of: jax.Array


def in_order(m: Members, value: jax.Array) -> Ordered:
    """The samples of each key in the order of their values.

    Args:
      m: the members.
      value: float [M], of each member. With replays, a cluster has the mean of its members' values.

    Examples:
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[9.0, 1.0, 0.0])
      >>> from estimators.members import members
      >>> from estimators.medians import in_order
      >>> m = members(graph, reward, None, by=None, population="trace", aggregate="sum")
      >>> in_order(m, m.score).rank[:3].tolist()
      [2, 1, 0]
    """
    num = len(m.score)
    place = jnp.arange(num, dtype=jnp.int32)
    sample_mask, sample_of = m.member_mask, place
    if m.clusters is not None:
        pair, sample_mask = m.clusters.pair, m.clusters.lead_mask
        value = mean_from_first(value, pair, num, m.member_mask)[pair]
        sample_of = segment_first(pair, num, sample_mask)[pair]
    order = jnp.lexsort((value, m.key, ~sample_mask))
    start = segment_first(m.key[order], num, sample_mask[order])[m.key]
    rank = jnp.zeros_like(place).at[order].set(place) - start
    return Ordered(value[order], start, rank, segment_count(m.key, num, sample_mask, place.dtype)[m.key], sample_of)


def _at(ordered: Ordered, k: jax.Array, skip: jax.Array | None) -> jax.Array:
    """The sample of rank `k`, counted without the one of rank `skip`: [M]."""
    past = k if skip is None else k + (k >= skip).astype(k.dtype)
    return ordered.value[jnp.clip(ordered.start + past, 0, len(ordered.value) - 1)]


def _middle(ordered: Ordered, n: jax.Array, skip: jax.Array | None) -> jax.Array:
    """The middle one of `n` samples, or the mean of the middle two, without the sample of rank `skip`: [M]."""
    low, high = _at(ordered, (n - 1) // 2, skip), _at(ordered, n // 2, skip)
    return low + (high - low) / 2
