"""Whether a batch tells agents, spawns and turns apart, without which some methods are other methods."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from graphs.event_graph import EventGraph
from graphs.structure.host_ids import distinct
from graphs.traces.batch import Traces

__all__ = ["NO_TURNS", "acting_units", "alike_in_log", "alike_in_rows", "alike_units", "lacks_turns"]

NO_TURNS = "every agent has one turn, though some act several times: state a column 'turn'"


def acting_units(graph: EventGraph) -> dict[str, int]:
    """How many traces, agent instances, their names and turns act in a batch.

    Examples:
      >>> import credit
      >>> graph, _, _ = credit.from_columns(group=[0, 0], trace=["a", "b"], agent=["x", "x"], reward=[1.0, 0.0])
      >>> acting_units(graph)
      {'traces': 2, 'agents': 2, 'names': 1, 'turns': 2}
    """
    acts = np.asarray(graph.action_mask) & np.asarray(graph.event_mask)
    instances = distinct(np.asarray(graph.agent_ids)[acts])
    names, turns = np.asarray(graph.agent_name_ids)[instances], np.asarray(graph.turn_ids)[acts]
    found = {"traces": np.asarray(graph.trace_ids)[acts], "agents": instances, "names": names, "turns": turns}
    return {unit: len(distinct(ids)) for unit, ids in found.items()}


def alike_units(graph: EventGraph, columns: Collection[str], *, of_log: bool = True) -> dict[str, str]:
    """Of `Method.columns`, those that tell nothing apart in a batch, and what each leaves alike.

    A log shows where an agent's turn ends, and so do rows with turns. In other rows one turn for each agent is a column
    that was forgotten.

    Examples:
      >>> import credit
      >>> graph, _, _ = credit.from_columns(group=[0, 0], trace=["a", "b"], agent=["x", "y"], reward=[1.0, 0.0])
      >>> alike_units(graph, ("agent", "parent"))
      {'parent': 'no agent is spawned by another'}
    """
    parent, units = np.asarray(graph.agent_parent), acting_units(graph)
    whole = "trace" if of_log else "agent"
    spawned = (parent != np.arange(len(parent))) & np.asarray(graph.agent_mask)
    alike = {
        "agent": (units["names"] == 1, "all actions are one agent's"),
        "parent": (not spawned.any(), "no agent is spawned by another"),
        "turn": (units["turns"] == units[f"{whole}s"], f"every {whole} has one turn"),
    }
    return {name: alike[name][1] for name in columns if alike[name][0]}


def alike_in_log(traces: Traces, columns: Collection[str]) -> dict[str, str]:
    """As `alike_in_rows` of a table or of columns. Other logs show where a turn ends, by what an agent got between."""
    return (alike_in_rows if _of_rows(traces) else alike_units)(traces.graph, columns)


def alike_in_rows(graph: EventGraph, columns: Collection[str]) -> dict[str, str]:
    """As `alike_units`, of rows that may state no turns: all rows of an agent are then one turn."""
    alike = alike_units(graph, columns)
    if "turn" in columns and "turn" not in alike and _have_one_turn(graph):
        alike["turn"] = NO_TURNS
    return alike


def lacks_turns(traces: Traces) -> bool:
    """Whether these are of tables or columns that state no turns, though an agent acts several times."""
    return _of_rows(traces) and _have_one_turn(traces.graph)


def _of_rows(traces: Traces) -> bool:
    return traces.traces["format"].unique().to_pylist() in (["table"], ["columns"])


def _have_one_turn(graph: EventGraph) -> bool:
    units, acts = acting_units(graph), np.asarray(graph.action_mask) & np.asarray(graph.event_mask)
    return units["turns"] == units["agents"] < int(np.count_nonzero(acts))
