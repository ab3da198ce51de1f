"""Claims of a batch as a ladder of nested levels, for `estimators.composition.least_squares`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.composition.least_squares import Claims
from estimators.composition.nesting import (
    COARSE_TO_FINE,
    NestingError,
    level_size,
    numbers_of_units,
    parents,
    subtree_levels,
    unit_of_event,
)
from estimators.composition.votes import Votes
from graphs.event_graph import EventGraph

__all__ = ["Ladder", "ladder"]


class Ladder(NamedTuple):
    """Levels, finest first: events, ..., traces; `parents` leads from each to the next."""

    names: tuple[str, ...]
    claims: tuple[Claims, ...]
    sources: tuple[tuple[str, ...], ...]
    parents: tuple[np.ndarray, ...]


class _Rung(NamedTuple):
    """One level of a ladder: its name, the unit of each event, how many units, and what sources claim of them."""

    name: str
    ids: np.ndarray
    size: int
    claims: Claims
    sources: tuple[str, ...]


def ladder(graph: EventGraph, by_level: Mapping[str, Votes], dtype: jax.typing.DTypeLike) -> Ladder:
    """The levels with claims, between events and traces.

    Raises:
      NestingError: two of them do not nest.
      CreditError: a claim differs within a unit.
    """
    if "role" in by_level and "subtree" in by_level:
        raise NestingError("subtree", "role", "a subtree holds several roles, and a role is in several subtrees")
    rungs = []
    for level in reversed(COARSE_TO_FINE):
        if level == "subtree" and level in by_level:
            rungs += _subtrees(graph, by_level[level], dtype)
        elif level in by_level or level in ("event", "trace"):
            rungs.append(_rung(graph, level, by_level.get(level), dtype))
    names, ids, sizes, claims, sources = zip(*rungs, strict=True)
    return Ladder(names, claims, sources, tuple(parents(graph, names, ids, sizes)))


def _rung(graph: EventGraph, level: str, votes: Votes | None, dtype: jax.typing.DTypeLike) -> _Rung:
    size = level_size(graph, level)
    if votes is None:
        none = jnp.zeros((0, size), dtype)
        claims = Claims(none, none)
    elif level == "event":
        claims = _usable(votes, dtype)
    else:
        claims = _by_unit(graph, level, votes, dtype)
    return _Rung(level, unit_of_event(graph, level), size, claims, () if votes is None else votes.sources)


def _subtrees(graph: EventGraph, votes: Votes, dtype: jax.typing.DTypeLike) -> list[_Rung]:
    """A rung for each depth of the spawn forest, deepest first: it has the claims on subtrees with a root there."""
    agent, (depth, units) = np.asarray(graph.agent_ids), subtree_levels(graph)
    whole = _by_unit(graph, "subtree", votes, dtype)
    rungs = []
    for d, unit in zip(range(len(units) - 1, -1, -1), units, strict=True):
        variance = jnp.where(jnp.asarray(depth == d)[None], whole.variance, jnp.inf)
        claims = Claims(whole.amount, variance)
        rungs.append(_Rung(f"subtree at depth {d}", unit[agent], graph.num_agents, claims, votes.sources))
    return rungs


def _usable(votes: Votes, dtype: jax.typing.DTypeLike) -> Claims:
    """Votes on events as claims; where there is no vote, the variance is infinite."""
    variance = jnp.where(votes.claim_mask, votes.variance, jnp.inf)
    return Claims(votes.amount.astype(dtype), variance.astype(dtype))


def _by_unit(graph: EventGraph, level: str, votes: Votes, dtype: jax.typing.DTypeLike) -> Claims:
    """Claims on units, [S, N], from votes in which each event has the number of its unit."""
    ids, size = unit_of_event(graph, level), level_size(graph, level)
    amount, variance = np.zeros((2, len(votes.sources), size))
    variance[:] = np.inf
    for s, source in enumerate(votes.sources):
        use = np.flatnonzero(np.asarray(votes.claim_mask[s]))
        for out, values in ((amount, votes.amount), (variance, votes.variance)):
            numbers_of_units(source, level, ids[use], np.asarray(values[s], np.float64)[use], out[s])
    return Claims(jnp.asarray(amount, dtype), jnp.asarray(variance, dtype))
