"""The script of a team: all possible events of its log in order, with their agents and causes.

A script is fixed; what varies from trace to trace is the choice at each decision, good (1) or bad (0), and the events
that a choice calls into being: a decision that spawns has the events of those it spawned hang on it.

Legend: V events of the script, D decisions among them, A agents, K edges.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from graphs.event_graph import EdgeType, EventType

__all__ = ["Script", "Writer"]


@dataclasses.dataclass(frozen=True, eq=False)
class Script:
    """Columns of a script.

    Attributes:
      topology: the name of the team's form (`graphs.structure.topology.TOPOLOGIES`).
      names, roles: of each agent, A of them.
      parent: int32 [A], the agent that spawned this one; a root is its own parent.
      agent_on: int32 [A], the decision without which the agent does not exist; -1 for those who always do.
      types: int32 [V], event types.
      agents: int32 [V].
      decision: int32 [V], number of the decision, -1 for an event that no agent chose.
      on: int32 [V], the decision without which the event does not happen; -1 for events that always do.
      to: int32 [V], the agent that the event addresses, or -1.
      tools: tool name or None, V of them.
      senders, receivers, edge_types: int32 [K].
      events: int32 [D], the event of each decision.
      optional: bool [D], decisions that something hangs on.
    """

    topology: str
    names: tuple[str, ...]
    roles: tuple[str, ...]
    parent: np.ndarray
    agent_on: np.ndarray
    types: np.ndarray
    agents: np.ndarray
    decision: np.ndarray
    on: np.ndarray
    to: np.ndarray
    tools: tuple[str | None, ...]
    senders: np.ndarray
    receivers: np.ndarray
    edge_types: np.ndarray
    events: np.ndarray
    optional: np.ndarray

    def descendants(self, event: int) -> np.ndarray:
        """Events that something of this one has reached, over any edge: bool [V], itself included."""
        reached = np.zeros(len(self.types), bool)
        reached[event] = True
        for sender, receiver in sorted(zip(self.senders.tolist(), self.receivers.tolist(), strict=True)):
            reached[receiver] |= reached[sender]
        return reached


class Writer:
    """Writes a script event by event and remembers what later events refer to.

    Every agent's next call is caused by what reached the agent since its last one. Events of an agent hang on the
    decision that spawned it.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._roles: list[str] = []
        self._parent: list[int] = []
        self._agent_on: list[int] = []
        self._events: list[tuple[int, int, int, int, int, str | None]] = []
        self._edges: list[tuple[int, int, int]] = []
        self._calls: list[int] = []  # event of each decision
        self._last: dict[int, int] = {}  # an agent's last call
        self._causes: dict[int, list[tuple[int, EdgeType]]] = {}

    def __len__(self) -> int:
        return len(self._events)

    def agent(self, name: str, role: str, parent: int | None = None, on: int = -1) -> int:
        """A new agent and its number; `on` is the decision that it hangs on."""
        number = len(self._names)
        self._names.append(name)
        self._roles.append(role)
        self._parent.append(number if parent is None else parent)
        self._agent_on.append(on)
        return number

    def call(self, agent: int, kind: EventType = EventType.MESSAGE) -> int:
        """A decision of an agent; its number."""
        number = len(self._calls)
        position = self._add(kind, agent, decision=number)
        for cause, edge in self._causes.pop(agent, ()):
            self._edges.append((cause, position, int(edge)))
        if agent in self._last:
            self._edges.append((self._last[agent], position, int(EdgeType.TEMPORAL)))
        self._last[agent] = position
        self._calls.append(position)
        return number

    def spawn(self, parent: int, child: int) -> None:
        """The parent's last call spawns the child."""
        position = self._effect(EventType.SPAWN, parent, EdgeType.CAUSAL, to=child, on=self._agent_on[child])
        self._leads_to(child, position, EdgeType.SPAWN)

    def message(self, sender: int, receiver: int) -> None:
        """The sender's last call sends a message."""
        position = self._effect(EventType.MESSAGE, sender, EdgeType.CAUSAL, to=receiver)
        self._leads_to(receiver, position, EdgeType.MESSAGE)

    def tool(self, agent: int, name: str) -> None:
        """The agent's last call uses a tool and gets its result."""
        position = self._effect(EventType.TOOL_CALL, agent, EdgeType.TOOL_DEPENDENCY, tool=name)
        result = self._add(EventType.TOOL_RESULT, agent, tool=name)
        self._edges.append((position, result, int(EdgeType.RETURN)))
        self._leads_to(agent, result, EdgeType.CAUSAL)

    def hand_back(self, child: int, parent: int) -> None:
        """The child's last call is its answer."""
        position = self._effect(EventType.RETURN, child, EdgeType.CAUSAL, to=parent)
        self._leads_to(parent, position, EdgeType.RETURN)

    def step_in(self, runtime: int, agent: int) -> None:
        """The runtime reacts to the agent's last call, and the agent's next call depends on the reaction."""
        position = self._add(EventType.SAFETY_EVENT, runtime, to=agent)
        self._edges.append((self._last[agent], position, int(EdgeType.SAFETY_FLOW)))
        self._leads_to(agent, position, EdgeType.SAFETY_FLOW)

    def finish(self, topology: str) -> Script:
        """The script as arrays."""
        types, agents, decision, on, to, tools = zip(*self._events, strict=True)
        edges = np.array(self._edges, np.int32).reshape(-1, 3)
        calls = np.array(self._calls, np.int32)
        on_array = np.array(on, np.int32)
        return Script(
            topology=topology,
            names=tuple(self._names),
            roles=tuple(self._roles),
            parent=np.array(self._parent, np.int32),
            agent_on=np.array(self._agent_on, np.int32),
            types=np.array(types, np.int32),
            agents=np.array(agents, np.int32),
            decision=np.array(decision, np.int32),
            on=on_array,
            to=np.array(to, np.int32),
            tools=tools,
            senders=edges[:, 0],
            receivers=edges[:, 1],
            edge_types=edges[:, 2],
            events=calls,
            optional=np.isin(np.arange(len(calls)), on_array),
        )

    def _add(
        self,
        kind: EventType,
        agent: int,
        *,
        decision: int = -1,
        to: int = -1,
        tool: str | None = None,
        on: int | None = None,
    ) -> int:
        self._events.append((int(kind), agent, decision, self._agent_on[agent] if on is None else on, to, tool))
        return len(self._events) - 1

    def _effect(
        self,
        kind: EventType,
        agent: int,
        edge: EdgeType,
        *,
        to: int = -1,
        tool: str | None = None,
        on: int | None = None,
    ) -> int:
        position = self._add(kind, agent, to=to, tool=tool, on=on)
        self._edges.append((self._last[agent], position, int(edge)))
        return position

    def _leads_to(self, agent: int, position: int, edge: EdgeType) -> None:
        self._causes.setdefault(agent, []).append((position, edge))
