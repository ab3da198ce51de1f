"""Who an event of the native format belongs to, and what is known of the agents: names, roles, parents.

The survey's schema names agents only in events. Two of its habits need reading: a tool result may bear its tool's name
as its agent, and the `role` of a spawn is the role of the agent that is spawned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

import numpy as np

from graphs.event_types import EdgeType, EventType
from graphs.traces.record import Agent, TraceRecord

__all__ = ["find_agents", "owners"]


def owners(
    listed: Set[str],
    record: TraceRecord,
    stated: Sequence[str],
    tools: Sequence[str | None],
    targets: Sequence[str | None],
) -> tuple[list[str], set[int]]:
    """The agent instance of each event, and the positions of tool results that were logged under a tool's name.

    A tool result whose agent is its own tool, or nobody who does or is anything else in the trace, belongs to the
    instance that called the tool: the sender of an edge from a tool call, else the latest call of that tool before it.
    Where the log shows no call, and where the name is `listed` as an agent, the result keeps the agent it states.
    """
    agents, types = list(stated), record.types
    results = positions(types, EventType.TOOL_RESULT)
    if not results:
        return agents, set()
    known = {*listed} | {agent for agent, code in set(zip(agents, types, strict=True)) if code != EventType.TOOL_RESULT}
    known |= {to for to in map(targets.__getitem__, positions(types, EventType.SPAWN)) if to}
    suspects = {i for i in results if agents[i] not in listed and (agents[i] == tools[i] or agents[i] not in known)}
    if not suspects:
        return agents, set()
    called_by = {
        receiver: sender
        for sender, receiver in zip(reversed(record.senders), reversed(record.receivers), strict=True)
        if receiver in suspects and types[sender] == EventType.TOOL_CALL  # of several edges the first wins
    }
    latest: dict[str | None, int] = {}
    moved: set[int] = set()
    for i in sorted([*positions(types, EventType.TOOL_CALL), *suspects]):
        if i not in suspects:
            latest[tools[i]] = i
            continue
        by_name = latest.get(tools[i] or agents[i], latest.get(agents[i]))
        call = called_by.get(i, by_name)
        if call is not None:
            agents[i] = agents[call]
            moved.add(i)
    return agents, moved


def positions(values: list[int], wanted: int) -> list[int]:
    """Where `wanted` stands in a list."""
    return np.flatnonzero(np.array(values, np.int32) == wanted).tolist()


def find_agents(
    instances: dict[str, Agent],
    record: TraceRecord,
    roles: Sequence[str | None],
    targets: Sequence[str | None],
    names: Sequence[str | None],
) -> dict[str, Agent]:
    """Every agent instance of the trace, those of `instances` first, then in order of appearance.

    Each value is the first of these that the log has:

        parent    as given; the agent of the first spawn `to` it; the sender of a spawn edge to its first event; none
        role      as given; of its first event with a role, spawns left out; of the spawn that made it
        name      as given; the first `agent_name` of its events; its id
    """
    spawned_role: dict[str, str | None] = {}
    first = dict(zip(reversed(record.agents), range(len(record.agents) - 1, -1, -1), strict=True))
    spawns = positions(record.types, EventType.SPAWN)
    spawning = frozenset(spawns)
    for i in sorted({*first.values(), *spawns}):  # nothing new about agents happens elsewhere
        agent, child = record.agents[i], targets[i]
        instances.setdefault(agent, Agent())
        if i in spawning and child:
            spawned = instances.setdefault(child, Agent())
            spawned.parent = spawned.parent or agent
            spawned_role.setdefault(child, roles[i])
    if EdgeType.SPAWN in record.edge_types:
        for edge in positions(record.edge_types, EdgeType.SPAWN):
            sender, receiver = record.senders[edge], record.receivers[edge]
            parent, child = record.agents[sender], record.agents[receiver]
            # Only an edge to an agent's first event spawns it.
            if parent != child and first[child] == receiver and sender < receiver:
                instances[child].parent = instances[child].parent or parent
                if record.types[sender] == EventType.SPAWN and not targets[sender]:
                    spawned_role.setdefault(child, roles[sender])
    own_role = _first_of(record.agents, roles, spawning)
    own_name = _first_of(record.agents, names, frozenset())
    for agent_id, instance in instances.items():
        instance.role = instance.role or own_role.get(agent_id) or spawned_role.get(agent_id) or ""
        instance.name = instance.name or own_name.get(agent_id) or ""
    return instances


def _first_of(agents: Sequence[str], values: Sequence[str | None], without: frozenset[int]) -> dict[str, str]:
    """The first non-empty value of each agent, except at the events `without`."""
    first: dict[str, str] = {}
    if values.count(None) == len(values):
        return first
    pairs: Iterable[tuple[str, str | None]] = zip(agents, values, strict=True)
    if without:
        pairs = (pair for i, pair in enumerate(pairs) if i not in without)
    for agent, value in dict.fromkeys(pairs):
        if value and agent not in first:
            first[agent] = value
    return first
