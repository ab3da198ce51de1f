"""Ids of the nested levels, and of the keys by which statistics are grouped.

An id is less than the length of the array that it is computed on, so it serves as a segment id with `num_segments`
equal to that length. Pairs are formed over agent instances [A], not over events [E]: a pair of (group, name) or
(trace, role) is a property of the instance, and there are far fewer instances than events.
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.event_types import DECISION_KIND
from graphs.stable_order import stable_order

__all__ = [
    "LEVELS",
    "TABLE_LEVELS",
    "Level",
    "Name",
    "TableLevel",
    "ids_on_host",
    "key_ids",
    "level_ids",
    "pair_ids",
    "unit_ids",
]

Level = Literal["trace", "role", "agent", "turn", "event"]
TableLevel = Literal[Level, "decision"]
Name = Literal["agent_name", "role_name"]
LEVELS: tuple[Level, ...] = ("trace", "role", "agent", "turn", "event")
TABLE_LEVELS: tuple[TableLevel, ...] = (*LEVELS, "decision")
"""The nested levels, and the kinds of decision in a trace (`graphs.event_types.DECISION_KINDS`), which cut across."""


def pair_ids(first: Array, second: Array, mask: Array, num_first: int | None = None) -> jax.Array:
    """One id for each distinct pair (first[i], second[i]) where `mask` is True, int32 [M] in [0, M); 0 elsewhere.

    Ids follow the lexicographic order of the pairs. Without `num_first` they are consecutive. The pairs are sorted,
    because the product `first * M + second` overflows int32 at a few thousand traces.

    Args:
      first, second: int [M].
      mask: bool [M].
      num_first: number of values of `first`, if all lie in [0, num_first). The pairs are then not sorted where the
        ranges of `second` for each value of `first` fit into [0, M) side by side, which is faster. Examples are turn
        numbers within groups, and observations that occur in one group each. Ids may then skip numbers.

    Examples:
      >>> import numpy as np
      >>> from graphs.levels import pair_ids
      >>> pair_ids(np.array([1, 0, 1]), np.array([5, 5, 5]), np.ones(3, bool)).tolist()
      [1, 0, 1]
    """
    first, second, mask = jnp.asarray(first), jnp.asarray(second), jnp.asarray(mask)
    if num_first is None:
        consecutive: jax.Array = _sorted_pairs(first, second, mask)
        return consecutive
    ids: jax.Array = _placed_pairs(first, second, mask, num_first=num_first)
    return ids


@functools.partial(jax.jit, static_argnames="num_first", inline=True)  # by itself, `cond` is compiled at each call
def _placed_pairs(first: jax.Array, second: jax.Array, mask: jax.Array, *, num_first: int) -> jax.Array:
    """`pair_ids` without a sort where ranges fit side by side."""
    size = first.shape[0]
    bounds = np.iinfo(np.int32)
    least = jax.ops.segment_min(jnp.where(mask, second, bounds.max), first, num_segments=num_first)
    most = jax.ops.segment_max(jnp.where(mask, second, bounds.min), first, num_segments=num_first)
    room = jnp.where(most >= least, most - least + 1, 0)
    # Ranges and their sum may exceed int32. Floats show that, but are too coarse for the numbers themselves.
    widest = jnp.max(jnp.where(most >= least, most.astype(jnp.float32) - least.astype(jnp.float32), 0), initial=0)
    fits = (jnp.sum(room.astype(jnp.float32)) <= size * (1 - 1e-5)) & (widest < 2.0**30)
    begin = jnp.cumsum(room, dtype=jnp.int32) - room

    def side_by_side() -> jax.Array:
        return jnp.where(mask, begin[first] + second - least[first], 0).astype(jnp.int32)

    ids: jax.Array = jax.lax.cond(fits, side_by_side, lambda: _sorted_pairs(first, second, mask))
    return ids


@functools.partial(jax.jit, inline=True)
def _sorted_pairs(first: Array, second: Array, mask: Array) -> jax.Array:
    # What is no member stands last: behind the greatest `first` where integers have room, else by a key more.
    most = np.iinfo(first.dtype).max
    last = jnp.max(jnp.where(mask, first, -1), initial=-1)
    first = jnp.where(mask, first, jnp.where(last < most, last + 1, most))
    second = jnp.where(mask, second, 0)
    order = stable_order(second, first, ~mask & (last == most))
    a, b = first[order], second[order]
    is_new = jnp.concatenate([jnp.zeros(1, bool), (a[1:] != a[:-1]) | (b[1:] != b[:-1])])
    run = jnp.cumsum(is_new.astype(jnp.int32), dtype=jnp.int32)
    ids = jnp.zeros(first.shape[0], jnp.int32).at[order].set(run)
    return jnp.where(mask, ids, 0)


def level_ids(graph: EventGraph, level: TableLevel) -> jax.Array:
    """Id of the unit of each event at `level`: int32 [E]. Units never span traces.

    Args:
      graph: the batch.
      level: "trace", "role", "agent", "turn", "event", or "decision" for the events of one kind of decision.

    Raises:
      CreditError: `level` is none of `TABLE_LEVELS`.

    Examples:
      >>> import credit
      >>> from graphs.levels import level_ids
      >>> graph, _, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "a", "b"], agent=["x", "y", "x"], reward=[1.0] * 3)
      >>> rows.gather(level_ids(graph, "agent")).tolist()
      [0, 1, 2]
    """
    if level == "trace":
        return jnp.asarray(graph.trace_ids)
    if level == "role":
        return pair_ids(
            jnp.asarray(graph.agent_trace), jnp.asarray(graph.agent_role_ids), jnp.asarray(graph.agent_mask)
        )[graph.agent_ids]
    if level == "agent":
        return jnp.asarray(graph.agent_ids)
    if level == "turn":
        return jnp.asarray(graph.turn_ids)
    if level == "event":
        return jnp.arange(graph.num_events, dtype=jnp.int32)
    if level == "decision":
        kind = jnp.asarray(DECISION_KIND, jnp.int32)[jnp.asarray(graph.event_type)]
        return pair_ids(jnp.asarray(graph.trace_ids), kind, jnp.asarray(graph.event_mask))
    raise CreditError(f"level is {level!r}; expected one of {', '.join(TABLE_LEVELS)}")


def ids_on_host(graph: EventGraph, level: TableLevel) -> np.ndarray:
    """`level_ids` of a batch at hand, in NumPy: int32 [E]. To compile a sort takes 1 s.

    Args:
      graph: of the batch.
      level: of `level_ids`.

    Raises:
      CreditError: as of `level_ids`.

    Examples:
      >>> import credit
      >>> from graphs.levels import ids_on_host
      >>> graph, _, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "a", "b"], agent=["x", "y", "x"], role=["r", "r", "r"], reward=[1.0] * 3)
      >>> rows.gather(ids_on_host(graph, "role")).tolist()
      [0, 0, 1]
    """
    if level == "role":
        ids = _numbered(graph.agent_trace, graph.agent_role_ids, graph.agent_mask)
        of_event: np.ndarray = ids[np.asarray(graph.agent_ids)]
        return of_event
    if level == "decision":
        kind = np.asarray(DECISION_KIND, np.int32)[np.asarray(graph.event_type)]
        return _numbered(graph.trace_ids, kind, graph.event_mask)
    return np.asarray(level_ids(graph, level))


def _numbered(first: Array, second: Array, mask: Array) -> np.ndarray:
    """`pair_ids` in NumPy."""
    real = np.asarray(mask)
    pairs = np.asarray(first)[real].astype(np.int64) << 32 | np.asarray(second)[real].astype(np.int64) + 2**31
    ids = np.zeros(len(real), np.int32)
    ids[real] = np.unique(pairs, return_inverse=True)[1]
    return ids


def _names(graph: EventGraph, by: Name) -> Array:
    if by == "agent_name":
        return jnp.asarray(graph.agent_name_ids)
    if by == "role_name":
        return jnp.asarray(graph.agent_role_ids)
    raise CreditError(f"by is {by!r}; expected 'agent_name' or 'role_name'")


def unit_ids(graph: EventGraph, by: Name) -> jax.Array:
    """Id of the unit (trace, name) of each agent instance: int32 [A]. Two instances of one name are one unit.

    Args:
      graph: of the batch.
      by: whose names tell units apart.

    Examples:
      >>> import credit
      >>> from graphs.levels import unit_ids
      >>> graph, _, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "a", "b"], agent=["x", "y", "x"], reward=[1.0] * 3)
      >>> unit_ids(graph, "agent_name")[:3].tolist()
      [0, 1, 2]
    """
    return pair_ids(jnp.asarray(graph.agent_trace), _names(graph, by), jnp.asarray(graph.agent_mask))


def key_ids(graph: EventGraph, by: Name, *, dense: bool = True) -> jax.Array:
    """Id of the key (group, name) of each agent instance: int32 [A]. Instances of one key are compared.

    With `dense=False` ids may skip numbers, and sorting is avoided where possible.

    Args:
      graph: of the batch.
      by: whose names tell keys apart.
      dense: whether no number is skipped.

    Examples:
      >>> import credit
      >>> from graphs.levels import key_ids
      >>> graph, _, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "a", "b"], agent=["x", "y", "x"], reward=[1.0] * 3)
      >>> key_ids(graph, "agent_name")[:3].tolist()
      [0, 1, 0]
    """
    groups = jnp.asarray(graph.group_ids)[graph.agent_trace]
    num_first = None if dense else graph.num_traces
    return pair_ids(groups, _names(graph, by), jnp.asarray(graph.agent_mask), num_first)
