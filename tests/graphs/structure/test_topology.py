"""One small team for each topology, built by hand, and the borders between the rules."""

from __future__ import annotations

import pytest

from graphs.errors import CreditError
from graphs.event_graph import EdgeType, EventType
from graphs.structure.topology import TOPOLOGIES, topology
from graphs.traces.assembling import assemble
from graphs.traces.record import Agent, TraceRecord

CHOICES = (EventType.MESSAGE, EventType.ORCHESTRATOR_DECISION, EventType.SPAWN)


class Team:
    """A trace in the making: agents as "name/role<parent", then what happens."""

    def __init__(self, *agents: str) -> None:
        self.record = TraceRecord("t", "g", "f")
        self.last: dict[str, int] = {}
        for agent in agents:
            rest, _, parent = agent.partition("<")
            name, _, role = rest.partition("/")
            self.record.instances[name] = Agent(name, role or name, parent)

    def act(self, agent: str, kind: EventType = EventType.MESSAGE) -> Team:
        position = self.record.event(f"e{len(self.record.ids)}", kind, agent, action=kind in CHOICES)
        if agent in self.last:
            self.record.edge(self.last[agent], position, EdgeType.TEMPORAL)
        self.last[agent] = position
        return self

    def tell(self, speaker: str, *hearers: str) -> Team:
        """The speaker acts, then each hearer does, told so."""
        source = self.act(speaker).last[speaker]
        for hearer in hearers:
            self.record.edge(source, self.act(hearer).last[hearer], EdgeType.MESSAGE)
        return self

    def delegate(self, agent: str, *workers: str) -> Team:
        """The agent spawns the workers at once; each acts and returns; then the agent goes on."""
        spawns = {w: self.act(agent, EventType.SPAWN).last[agent] for w in workers}
        for worker in workers:
            self.record.edge(spawns[worker], self.act(worker).last[worker], EdgeType.SPAWN)
        ends = [self.act(worker, EventType.RETURN).last[worker] for worker in workers]
        self.act(agent)
        for end in ends:
            self.record.edge(end, self.last[agent], EdgeType.RETURN)
        return self

    def topology(self, *, names: bool = True) -> str:
        traces = assemble([self.record])
        roles = traces.agents["role"].to_pylist() if names else None
        return TOPOLOGIES[topology(traces.graph, roles)[0]]


def lead(*workers: str) -> Team:
    return Team("m/lead", *(f"{w}<m" for w in workers))


HUMAN, SAFETY = EventType.HUMAN_INTERVENTION, EventType.SAFETY_EVENT
TEAMS: dict[str, tuple[Team, str]] = {
    "nobody acts": (Team("a").act("a", EventType.TOOL_RESULT), "unknown"),
    "one agent with tools": (Team("a").act("a").act("a", EventType.TOOL_CALL).act("a"), "single"),
    "one agent and a simulated user": (Team("a", "u").act("u", EventType.RETURN).act("a"), "single"),
    "the task itself came from a human": (Team("a").act("a", HUMAN).act("a"), "single"),
    "one agent under a managed runtime": (Team("a").act("a").act("a", HUMAN).act("a"), "harness"),
    "one specialist after the other": (lead("s/search", "c/code").delegate("m", "s").delegate("m", "c"), "centralized"),
    "two specialists at once": (lead("s/search", "c/code").delegate("m", "s", "c"), "centralized"),
    "two of a kind, one after the other": (lead("x/w", "y/w").delegate("m", "x").delegate("m", "y"), "centralized"),
    "two of a kind at once": (lead("x/w", "y/w").delegate("m", "x", "y"), "swarm"),
    "hub of a log without spawns": (
        Team("m", "a", "b").tell("m", "a").tell("a", "m").tell("m", "b").tell("b", "m"),
        "centralized",
    ),
    "sub-agents under a managed runtime": (lead("x/w", "y/w").delegate("m", "x", "y").act("m", SAFETY), "harness"),
    "a sub-agent delegates": (Team("m", "a<m", "b<a").delegate("a", "b").delegate("m", "a"), "hierarchical"),
    "two agents argue": (Team("a", "b").tell("a", "b").tell("b", "a"), "debate"),
    "three agents argue": (
        Team("a", "b", "c").tell("a", "b", "c").tell("b", "a", "c").tell("c", "a", "b"),
        "debate",
    ),
    "spawned agents argue": (lead("x", "y").delegate("m", "x", "y").tell("x", "y").tell("y", "x"), "debate"),
    "two of three spawned agents argue": (
        lead("x/a", "y/b", "z/c").delegate("m", "x", "y", "z").tell("x", "y").tell("y", "x"),
        "debate",
    ),
    "two of four spawned agents talk": (
        lead("x/a", "y/b", "z/c", "w/d").delegate("m", "x", "y", "z", "w").tell("x", "y").tell("y", "x"),
        "centralized",
    ),
    "a swarm whose agents tell each other": (lead("x/w", "y/w").delegate("m", "x", "y").tell("x", "y"), "swarm"),
    "an agent talks with the one it spawned": (
        lead("x").delegate("m", "x").tell("m", "x").tell("x", "m"),
        "centralized",
    ),
    "sub-agents argue and delegate": (
        Team("m", "x<m", "y<m", "z<x").delegate("m", "x", "y").delegate("x", "z").tell("x", "y").tell("y", "x"),
        "mixed",
    ),
    "a pipeline": (Team("a", "b", "c").tell("a", "b").tell("b", "c"), "mixed"),
    "strangers": (Team("a", "b").act("a").act("b"), "mixed"),
    "plan, execute, criticise": (
        Team("p/Planner", "e/Executor", "c/Critic").tell("p", "e").tell("e", "c").tell("c", "p"),
        "planner_executor_critic",
    ),
    "plan, execute, criticise over two levels": (
        Team("p/planner", "e/executor<p", "c/critic<e").delegate("e", "c").delegate("p", "e"),
        "mixed",
    ),
}


@pytest.mark.parametrize("name", TEAMS)
def test_each_topology_by_hand(name: str) -> None:
    team, expected = TEAMS[name]
    assert team.topology() == expected


def test_every_class_has_an_example() -> None:
    assert {expected for _, expected in TEAMS.values()} == set(TOPOLOGIES)


def test_without_names_structure_alone_decides() -> None:
    team, _ = TEAMS["plan, execute, criticise"]
    assert team.topology(names=False) == "mixed"


def test_roles_must_be_those_of_the_batch() -> None:
    traces = assemble([TEAMS["two agents argue"][0].record])
    with pytest.raises(CreditError, match="roles has length 1; expected 2"):
        topology(traces.graph, ["planner"])
