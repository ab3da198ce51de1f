"""Claims of a batch as the ladder of nested levels that the solver climbs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.composition.least_squares import Claims
from estimators.composition.nesting import COARSE_TO_FINE, NestingError, parents, subtree_levels, unit_of_event
from estimators.composition.votes import Votes
from graphs.errors import CreditError
from graphs.event_graph import EventGraph

__all__ = ["Ladder", "ladder"]


class Ladder(NamedTuple):
    """Levels, finest first: events, ..., traces; `parents` leads from each to the next."""

    names: tuple[str, ...]
    claims: tuple[Claims, ...]
    sources: tuple[tuple[str, ...], ...]
    parents: tuple[np.ndarray, ...]

    @staticmethod
    def size(graph: EventGraph, level: str) -> int:
        """How many units a level has room for."""
        sizes = {"trace": graph.num_traces, "role": graph.num_agents, "agent": graph.num_agents}
        return sizes.get(level, graph.num_agents if level == "subtree" else graph.num_events)


def ladder(graph: EventGraph, said: Mapping[str, Votes], dtype: jax.typing.DTypeLike) -> Ladder:
    """The levels that somebody claims, between events and traces.

    Raises:
      NestingError: two of them do not nest.
      CreditError: a claim differs within a unit.
    """
    if "role" in said and "subtree" in said:
        raise NestingError("subtree", "role", "a subtree holds several roles, and a role is found in several subtrees")
    nobody = Claims(jnp.zeros((0, graph.num_events), dtype), jnp.zeros((0, graph.num_events), dtype))
    names, ids, sizes, claims = ["event"], [unit_of_event(graph, "event")], [graph.num_events], [nobody]
    sources: list[tuple[str, ...]] = [()]
    if "event" in said:
        claims, sources = [_usable(said["event"], dtype)], [said["event"].sources]
    for level in COARSE_TO_FINE[-2::-1]:
        if level == "trace" or level not in said:
            continue
        if level == "subtree":
            agent = np.asarray(graph.agent_ids)
            depth, units = subtree_levels(graph)
            whole = _by_unit(graph, level, said[level], dtype)
            for d, unit in zip(range(len(units) - 1, -1, -1), units, strict=True):
                here = jnp.asarray(depth == d)[None]
                names.append(f"subtree at depth {d}")
                ids.append(unit[agent])
                sizes.append(graph.num_agents)
                claims.append(Claims(whole.amount, jnp.where(here, whole.variance, jnp.inf)))
                sources.append(said[level].sources)
        else:
            names.append(level)
            ids.append(unit_of_event(graph, level))
            sizes.append(Ladder.size(graph, level))
            claims.append(_by_unit(graph, level, said[level], dtype))
            sources.append(said[level].sources)
    names.append("trace")
    ids.append(np.asarray(graph.trace_ids))
    sizes.append(graph.num_traces)
    none = jnp.zeros((0, graph.num_traces), dtype)
    claims.append(_by_unit(graph, "trace", said["trace"], dtype) if "trace" in said else Claims(none, none))
    sources.append(said["trace"].sources if "trace" in said else ())
    return Ladder(tuple(names), tuple(claims), tuple(sources), tuple(parents(graph, names, ids, sizes)))


def _usable(found: Votes, dtype: jax.typing.DTypeLike) -> Claims:
    variance = jnp.where(found.there, found.variance, jnp.inf)
    return Claims(found.amount.astype(dtype), variance.astype(dtype))


def _by_unit(graph: EventGraph, level: str, found: Votes, dtype: jax.typing.DTypeLike) -> Claims:
    """Claims on events that hold the number of their unit, as claims on units: [S, N]."""
    ids, size = unit_of_event(graph, level), Ladder.size(graph, level)
    amount, variance = np.zeros((2, len(found.sources), size))
    variance[:] = np.inf
    for s, source in enumerate(found.sources):
        use = np.flatnonzero(np.asarray(found.there[s]))
        for out, values in ((amount, found.amount), (variance, found.variance)):
            mine = np.asarray(values[s], np.float64)[use]
            out[s, ids[use]] = mine
            differs = np.flatnonzero(out[s, ids[use]] != mine)
            if len(differs):
                unit = int(ids[use[differs[0]]])
                raise CreditError(
                    f"{source!r} claims {level} {unit} with different numbers on its events; expected one number, the "
                    f"sum of the increments of the {level}"
                )
    return Claims(jnp.asarray(amount, dtype), jnp.asarray(variance, dtype))
