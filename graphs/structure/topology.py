"""Topology of the team in each trace: the survey's six topologies, a single agent, or a mixture.

Names are those of the trace schema. The rules use structure: spawns, messages and concurrent work. Structure does not
determine `planner_executor_critic`, which needs the names of roles. A topology that the log declares is a column of
`graphs.traces.batch.Traces.traces`; the rules ignore it.

Terms of the rules, for one trace:

    member       an agent instance with at least one action
    talk         an edge between two instances that is neither of type spawn, return nor temporal, and touches no event
                 of type spawn or return
    peers        two instances neither of which spawned the other, directly or over others
    conversation two peers, members, with talk both ways
    hub          the main agent (`graphs.structure.critical_path.main_agents`); without one, the first instance to act,
                 if it is at one end of every edge between two instances
    committee    more than half of the members other than the hub are in conversations without the hub; or the only two
                 members are in a conversation

The first rule that applies decides:

    unknown                   no action
    single, harness           one member; harness if the runtime steps in (below)
    mixed                     roles of a planner, an executor and a critic, and a spawn depth of 2 or more
    planner_executor_critic   members with roles of all three kinds
    hierarchical, mixed       a member at spawn depth 2 or more; mixed if there is also a committee
    debate                    a committee
    harness                   a hub, and the runtime steps in: a human intervention or a safety event after the first
                              action
    swarm                     a hub, and two other members of one role act in the same derived stage
    centralized               a hub
    mixed                     anything else, such as a pipeline without a hub
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import EdgeType, EventGraph, EventType
from graphs.event_types import STATED_TOPOLOGIES
from graphs.structure.critical_path import derived_stages, main_agents
from graphs.structure.forest import Forest, spawn_forest
from graphs.structure.host_ids import among, by_id, distinct

__all__ = ["ROLE_WORDS", "TOPOLOGIES", "TeamForms", "topology"]

TOPOLOGIES = ("unknown", "single", *(name for name in STATED_TOPOLOGIES if name != "unknown"))
"""Names of the topologies; the index is the code."""

ROLE_WORDS: dict[str, tuple[str, ...]] = {
    "planner": ("plan", "architect", "strateg"),
    "executor": ("execut", "solver", "worker", "coder", "actor", "generator", "developer", "programmer"),
    "critic": ("critic", "verif", "review", "judge", "evaluat", "refin"),
}
"""Kinds of roles, and the parts of lower-case role names that indicate them."""


class TeamForms:
    """The topology of each trace, and what it takes to tell. Each is worked out once, when it is first asked for.

    Args:
      graph: a batch.
      roles: role name of each real agent instance (the `role` column of `Traces.agents`). Without `roles`, no trace is
        `planner_executor_critic`.

    Raises:
      CreditError: the length of `roles` is not the number of real instances; from all but `forest` and `main`.
    """

    def __init__(self, graph: EventGraph, roles: Sequence[str] | None = None) -> None:
        self.graph, self._roles = graph, roles

    @functools.cached_property
    def forest(self) -> Forest:
        """The spawn forest."""
        return spawn_forest(self.graph)

    @functools.cached_property
    def main(self) -> np.ndarray:
        """The `main_agents`: int32 [T]."""
        return main_agents(self.graph, self.forest)

    @functools.cached_property
    def stage(self) -> np.ndarray:
        """The `derived_stages` by the hub of each trace, its main agent if it has one: int32 [E]."""
        return derived_stages(self.graph, self._rules.hub)

    @functools.cached_property
    def debates(self) -> np.ndarray:
        """The traces that are debates, which takes no stages: bool [T]."""
        first = np.select([holds for holds, _ in self._rules.rules], np.arange(len(self._rules.rules)), -1)
        place = [name for _, name in self._rules.rules].index("debate")
        found: np.ndarray = np.asarray(self.graph.trace_mask) & (first == place)
        return found

    @functools.cached_property
    def form(self) -> np.ndarray:
        """The topology of each trace as an index into `TOPOLOGIES`: int8 [T], 0 (unknown) in padding."""
        rules, member, hub, has_hub = self._rules
        left = has_hub & ~np.any([holds for holds, _ in rules], axis=0)
        if left.any():
            together = _same_role_in_one_stage(self.graph, member, hub, self.stage)
            rules = [*rules, (left & together, "swarm"), (left, "centralized")]
        codes = [TOPOLOGIES.index(name) for _, name in rules]
        codes_of_traces = np.select([holds for holds, _ in rules], codes, TOPOLOGIES.index("mixed"))
        return np.where(np.asarray(self.graph.trace_mask), codes_of_traces, 0).astype(np.int8)

    @functools.cached_property
    def _rules(self) -> _Rules:
        graph = self.graph
        member = np.zeros(graph.num_agents, bool)
        action = np.asarray(graph.event_mask) & np.asarray(graph.action_mask)
        member[np.asarray(graph.agent_ids)[np.flatnonzero(action)]] = True
        members = _per_trace(graph, member)
        links = _links(graph)
        hub, has_hub = _hubs(graph, links, self.main)
        all_roles = _has_all_roles(graph, member, self._roles)
        deep = _per_trace(graph, member & (self.forest.depth >= 2)) > 0
        committee = _committees(graph, links, self.forest, member, hub)
        runtime = _runtime_steps_in(graph, action)

        rules = [
            (members == 0, "unknown"),
            ((members == 1) & runtime, "harness"),
            (members == 1, "single"),
            (all_roles & deep, "mixed"),
            (all_roles, "planner_executor_critic"),
            (deep & committee, "mixed"),
            (deep, "hierarchical"),
            (committee, "debate"),
            (has_hub & runtime, "harness"),
        ]
        return _Rules(rules, member, hub, has_hub)


class _Rules(NamedTuple):
    """The rules that need no stages, of which the first that holds counts; members, hubs, and which traces have one."""

    rules: list[tuple[np.ndarray, str]]
    member: np.ndarray
    hub: np.ndarray
    has_hub: np.ndarray


def topology(graph: EventGraph, roles: Sequence[str] | None = None) -> np.ndarray:
    """`TeamForms.form`: the topology of each trace as an index into `TOPOLOGIES`, int8 [T].

    Args:
      graph, roles: as of `TeamForms`.

    Raises:
      CreditError: the length of `roles` is not the number of real instances.
    """
    return TeamForms(graph, roles).form


def _per_trace(graph: EventGraph, agents: np.ndarray) -> np.ndarray:
    """Number of instances in the mask for each trace: int64 [T]."""
    return np.bincount(np.asarray(graph.agent_trace)[agents], minlength=graph.num_traces)


class _Links(NamedTuple):
    """The edges between two instances: the instances at both ends, and whether it is talk."""

    speaker: np.ndarray
    hearer: np.ndarray
    talk: np.ndarray


def _links(graph: EventGraph) -> _Links:
    senders, receivers = np.asarray(graph.senders), np.asarray(graph.receivers)
    agents, kinds = np.asarray(graph.agent_ids), np.asarray(graph.event_type)
    links = np.flatnonzero(np.asarray(graph.edge_mask) & (agents[senders] != agents[receivers]))
    senders, receivers = senders[links], receivers[links]
    quiet = among(np.asarray(graph.edge_type)[links], (EdgeType.SPAWN, EdgeType.RETURN, EdgeType.TEMPORAL))
    for ends in (senders, receivers):
        quiet |= among(kinds[ends], (EventType.SPAWN, EventType.RETURN))
    return _Links(agents[senders], agents[receivers], ~quiet)


def _hubs(graph: EventGraph, links: _Links, main: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The main agent, or else the first to act, of each trace (-1 for none), and whether it is a hub."""
    trace, agents = np.asarray(graph.agent_trace), np.asarray(graph.agent_ids)
    chosen = np.flatnonzero(np.asarray(graph.event_mask) & np.asarray(graph.action_mask))
    hub = np.full(graph.num_traces, -1, np.int32)
    hub[np.asarray(graph.trace_ids)[chosen[::-1]]] = agents[chosen[::-1]]  # the last assignment is the first action
    hub = np.where(main >= 0, main, hub)
    speaker, hearer, _ = links
    speaker_trace = trace[speaker]
    edges = np.bincount(speaker_trace, minlength=graph.num_traces)
    touching = np.bincount(
        speaker_trace[(speaker == hub[speaker_trace]) | (hearer == hub[speaker_trace])], minlength=graph.num_traces
    )
    return hub, (main >= 0) | ((edges == touching) & (edges > 0))


def _committees(graph: EventGraph, links: _Links, forest: Forest, member: np.ndarray, hub: np.ndarray) -> np.ndarray:
    """Traces with a committee: bool [T]."""
    speaker, hearer, talk = links
    both = talk & member[speaker] & member[hearer]
    speaker, hearer = speaker[both].astype(np.int64), hearer[both].astype(np.int64)
    num, trace = graph.num_agents, np.asarray(graph.agent_trace)
    pairs = distinct(speaker * num + hearer)
    answered = pairs[np.isin(pairs, (pairs % num) * num + pairs // num)]
    first, second = answered // num, answered % num
    members = _per_trace(graph, member)
    pair = members[trace[first]] == 2
    counts = pair | ((first != hub[trace[first]]) & (second != hub[trace[first]]))
    counts &= ~(_spawned(graph, forest, first, second) | _spawned(graph, forest, second, first))
    talking = np.zeros(num, bool)
    talking[first[counts]] = True  # each conversation is listed both ways, so `first` has both instances
    others = members - np.bincount(trace[hub[hub >= 0]], weights=member[hub[hub >= 0]], minlength=graph.num_traces)
    talkers = _per_trace(graph, talking)
    return (talkers > 0) & (2 * talkers > others)


def _spawned(graph: EventGraph, forest: Forest, above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Whether `above` is an ancestor of `below` in the spawn forest, pair by pair."""
    jump, current = np.asarray(graph.agent_parent), below
    climb = np.maximum(forest.depth[below] - forest.depth[above], 0)
    while climb.any():  # pointers of 1, 2, 4, ... spawns: one spawn a round takes pairs times depth
        current = np.where(climb % 2, jump[current], current)
        jump, climb = jump[jump], climb // 2
    between: np.ndarray = (current == above) & (above != below)
    return between


def _runtime_steps_in(graph: EventGraph, action: np.ndarray) -> np.ndarray:
    """Traces with a human intervention or a safety event after their first action: bool [T]."""
    trace = np.asarray(graph.trace_ids)
    first = np.full(graph.num_traces, graph.num_events)
    chosen = np.flatnonzero(action)
    np.minimum.at(first, trace[chosen], chosen)
    outside = among(np.asarray(graph.event_type), (EventType.HUMAN_INTERVENTION, EventType.SAFETY_EVENT))
    events = np.flatnonzero(outside & np.asarray(graph.event_mask))
    result = np.zeros(graph.num_traces, bool)
    result[trace[events[events > first[trace[events]]]]] = True
    return result


def _same_role_in_one_stage(graph: EventGraph, member: np.ndarray, hub: np.ndarray, stage: np.ndarray) -> np.ndarray:
    """Traces where two members of one role, not the hub, act in one derived stage: bool [T]."""
    trace = np.asarray(graph.trace_ids)
    agent = np.asarray(graph.agent_ids)
    events = np.flatnonzero(
        np.asarray(graph.event_mask) & np.asarray(graph.action_mask) & member[agent] & (agent != hub[trace])
    )
    role = np.asarray(graph.agent_role_ids)[agent[events]]
    order = by_id(trace[events], stage[events], role, agent[events])
    columns = np.stack([trace[events], stage[events], role, agent[events]])[:, order]
    together = (columns[:3, 1:] == columns[:3, :-1]).all(axis=0) & (columns[3, 1:] != columns[3, :-1])
    result = np.zeros(graph.num_traces, bool)
    result[columns[0, 1:][together]] = True
    return result


def _has_all_roles(graph: EventGraph, member: np.ndarray, roles: Sequence[str] | None) -> np.ndarray:
    """Traces whose members have roles of all three kinds of `ROLE_WORDS`: bool [T]."""
    if roles is None:
        return np.zeros(graph.num_traces, bool)
    real = np.flatnonzero(np.asarray(graph.agent_mask))
    if len(roles) != len(real):
        raise CreditError(f"roles has length {len(roles)}; expected {len(real)}, one for each agent instance")
    words = {role: role.lower() for role in set(roles)}
    result = np.ones(graph.num_traces, bool)
    for kind in ROLE_WORDS.values():
        fits = {role for role, text in words.items() if any(word in text for word in kind)}
        of_kind = np.zeros(graph.num_agents, bool)
        of_kind[real] = [role in fits for role in roles]
        result &= _per_trace(graph, of_kind & member) > 0
    return result
