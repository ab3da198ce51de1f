"""Nested levels of a batch: which unit lies in which, the spawn forest as levels, priors that splitting cannot raise.

The levels trace > role > agent > turn > event nest by construction. The spawn forest nests too: an agent's own events
lie in the subtree of the agent, and that in the subtree of its parent. As levels: one for each depth d, in which
the unit of an agent at depth d or less is its own subtree, of a deeper one that of its ancestor at depth d. A role does
not nest with subtrees: a subtree holds several roles, and a role is found in several subtrees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import EventGraph
from graphs.levels import ids_on_host
from graphs.structure.forest import spawn_forest

__all__ = [
    "COARSE_TO_FINE",
    "NestingError",
    "level_size",
    "numbers_of_units",
    "parents",
    "prior_variance",
    "subtree_levels",
    "unit_of_event",
]

COARSE_TO_FINE = ("trace", "role", "subtree", "agent", "turn", "event")
"""Levels that a claim can be about; "subtree" is an agent and everything it spawned, directly or not."""


class NestingError(CreditError):
    """Two levels of which the finer has a unit in two units of the coarser."""

    def __init__(self, fine: str, coarse: str, detail: str) -> None:
        super().__init__(f"levels {fine!r} and {coarse!r} do not nest: {detail}; compose claims on one of them")
        self.fine, self.coarse = fine, coarse


def unit_of_event(graph: EventGraph, level: str) -> np.ndarray:
    """The unit of each event at a level of `COARSE_TO_FINE`, int [E]; of "subtree" the event's own agent instance.

    Raises:
      CreditError: no such level.
    """
    if level not in COARSE_TO_FINE:
        raise CreditError(f"unit is {level!r}; expected one of {', '.join(COARSE_TO_FINE)}")
    return ids_on_host(graph, "agent" if level == "subtree" else level)  # type: ignore[arg-type]


def level_size(graph: EventGraph, level: str) -> int:
    """The size of a level's arrays: ids of its units are below that."""
    sizes = {
        "trace": graph.num_traces,
        "role": graph.num_agents,
        "subtree": graph.num_agents,
        "agent": graph.num_agents,
    }
    return sizes.get(level, graph.num_events)


def numbers_of_units(source: str, level: str, units: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """Write a claim's numbers [N], on events of the given units [N], to the places of the units in `out`.

    Raises:
      CreditError: they differ within a unit: which of them is the claim, nothing says.
    """
    out[units] = values
    differs = np.flatnonzero(out[units] != values)
    if len(differs):
        raise CreditError(
            f"{source!r} claims {level} {int(units[differs[0]])} with different numbers on its events; expected one "
            f"number, that of the whole {level}"
        )


def parents(
    graph: EventGraph, names: Sequence[str], ids: Sequence[np.ndarray], sizes: Sequence[int]
) -> list[np.ndarray]:
    """For each level but the last, the unit of the next that each of its units lies in; finest level first.

    Args:
      names, ids, sizes: of the levels: a name for errors, the unit of each event, int [E], and how many units.

    Raises:
      NestingError: a unit lies in two; it names the pair.
    """
    real = np.flatnonzero(np.asarray(graph.event_mask))
    above = []
    for i in range(len(ids) - 1):
        fine, coarse = ids[i][real], ids[i + 1][real]
        parent = np.zeros(sizes[i], np.int32)
        parent[fine] = coarse
        astray = np.flatnonzero(parent[fine] != coarse)
        if len(astray):
            unit = int(fine[astray[0]])
            both = sorted({int(u) for u in coarse[fine == unit]})
            raise NestingError(names[i], names[i + 1], f"{names[i]} {unit} has events in {names[i + 1]}s {both[:3]}")
        above.append(parent)
    return above


def subtree_levels(graph: EventGraph) -> tuple[np.ndarray, list[np.ndarray]]:
    """The depth of each agent instance in the spawn forest and its unit at each depth, deepest first: each [A]."""
    above, real = np.asarray(graph.agent_parent), np.asarray(graph.agent_mask)
    depth, at = np.zeros(len(above), np.int32), np.arange(len(above))
    while True:  # as often as the forest is deep
        climbed = above[at]
        moves = real & (climbed != at)
        if not moves.any():
            break
        depth[moves] += 1
        at = np.where(moves, climbed, at)
    units = [np.arange(len(above), dtype=np.int32)]
    for d in range(int(depth.max(initial=0)) - 1, -1, -1):
        last = units[-1]
        units.append(np.where(depth[last] > d, above[last], last).astype(np.int32))
    return depth, units


def prior_variance(graph: EventGraph, unclaimed: np.ndarray, scale: float) -> np.ndarray:
    """Prior variance of each unclaimed event: scale² of each trace, divided equally among siblings on the way down.

    From a trace to its root agents, from an agent to its own work and each subtree that it spawned, from own work to
    its turns, from a turn to its events; only what holds unclaimed events has a part. An agent that splits its work
    into more events, turns or spawned agents divides its own part only.

    Args:
      unclaimed: bool [E], the events among which to divide.
      scale: prior standard deviation of the unclaimed increments of a trace together, in units of reward.
    """
    agent, turn = np.asarray(graph.agent_ids), np.asarray(graph.turn_ids)
    above, num = np.asarray(graph.agent_parent), graph.num_agents
    own = np.bincount(agent[unclaimed], minlength=num) > 0
    alive = own.copy()  # subtrees that hold unclaimed events
    by_depth = spawn_forest(graph).levels()
    for members in by_depth[:0:-1]:
        np.logical_or.at(alive, above[members], alive[members])
    roots = by_depth[0][alive[by_depth[0]]]
    trace = np.asarray(graph.agent_trace)
    count = np.bincount(trace[roots], minlength=graph.num_traces)
    variance = np.zeros(num)
    variance[roots] = scale**2 / count[trace[roots]]
    parts = own.astype(np.int64)
    for members in by_depth[1:]:
        np.add.at(parts, above[members], alive[members].astype(np.int64))
    each = variance / np.maximum(parts, 1)
    for members in by_depth[1:]:
        variance[members] = np.where(alive[members], each[above[members]], 0)
        each[members] = variance[members] / np.maximum(parts[members], 1)
    in_turn = np.bincount(turn[unclaimed], minlength=graph.num_events)
    owner = np.zeros(graph.num_events, np.int64)
    owner[turn[unclaimed]] = agent[unclaimed]
    turns = np.bincount(owner[in_turn > 0], minlength=num)
    out = np.zeros(graph.num_events)
    here = agent[unclaimed]
    out[unclaimed] = each[here] / np.maximum(turns[here], 1) / in_turn[turn[unclaimed]]
    return out
