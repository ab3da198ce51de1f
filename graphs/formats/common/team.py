"""Events of a log that shows model calls, and the edges of `docs/data-model.md` between them.

A reader goes through a trace with causes before effects and reports each item: a call, a tool call, a spawn, an answer.
`Team` appends the events; `finish` determines which are actions and adds the edges.
"""

from __future__ import annotations

import enum
import math
from typing import Any

from graphs.event_types import EdgeType, EventType
from graphs.reading.documents import Place
from graphs.traces.record import Agent, TraceRecord

__all__ = ["Team"]


class _Part(enum.Enum):
    """The part of an event in relation to the others."""

    CALL = "call"
    TOOL = "tool"
    SPAWN = "spawn"
    WAKE = "wake"  # a message that hands over to an instance which is there already
    RESULT = "result"
    RETURN = "return"
    NEWS = "news"  # from outside the team, to an agent: a human's text
    INPUT = "input"  # a message to an agent from outside the team; its author is a separate instance
    NOTE = "note"  # without consequences: a guardrail that was triggered


_EFFECTS = (_Part.TOOL, _Part.SPAWN, _Part.WAKE)
_EMITTED = {_Part.TOOL: EdgeType.TOOL_DEPENDENCY, _Part.SPAWN: EdgeType.CAUSAL, _Part.WAKE: EdgeType.CAUSAL}


class Team:
    """Fills one record.

    The call that an effect came from is its agent's latest one, unless the reader names another. An agent instance that
    has no model call in the whole trace acts by its effects (`docs/data-model.md`, logs without calls).
    """

    def __init__(self, record: TraceRecord) -> None:
        self.record = record
        self._parts: list[_Part] = []
        self._links: list[int | None] = []  # the call of an effect, the tool call of a result
        self._fixed: set[int] = set()  # calls whose type the log states
        self._outside: set[str] = set()  # instances that are not of the team: nothing they do is an action

    def agent(self, instance: str, name: str, role: str = "", parent: str = "", *, outside: bool = False) -> None:
        """Declare an agent instance once; `outside`: a simulated user or another part of the environment."""
        if outside:
            self._outside.add(instance)
        self.record.instances.setdefault(instance, Agent(name=name, role=role or name, parent=parent))

    def call(
        self, agent: str, event_id: str, place: Place, *, event_type: EventType | None = None, **columns: Any
    ) -> int:
        """A model call. Without a type it is a decision if its agent spawns another in this trace, else a message."""
        position = self._append(_Part.CALL, agent, event_id, EventType.MESSAGE, place, None, columns)
        if event_type is not None:
            self.record.types[position] = int(event_type)
            self._fixed.add(position)
        return position

    def tool_call(self, agent: str, event_id: str, place: Place, *, call: int | None = None, **columns: Any) -> int:
        """A tool call that a model call asked for."""
        return self._append(_Part.TOOL, agent, event_id, EventType.TOOL_CALL, place, call, columns)

    def spawn(
        self, agent: str, event_id: str, instance: str, place: Place, *, call: int | None = None, **columns: Any
    ) -> int:
        """The start of another instance."""
        return self._append(_Part.SPAWN, agent, event_id, EventType.SPAWN, place, call, columns | {"to": instance})

    def wake(self, agent: str, event_id: str, instance: str, place: Place, **columns: Any) -> int:
        """A hand-over to an instance that has been active before."""
        return self._append(_Part.WAKE, agent, event_id, EventType.MESSAGE, place, None, columns | {"to": instance})

    def result(self, agent: str, event_id: str, place: Place, *, answers: int | None, **columns: Any) -> int:
        """A tool's result, of the instance that called the tool; `answers` is the tool call's position."""
        return self._append(_Part.RESULT, agent, event_id, EventType.TOOL_RESULT, place, answers, columns)

    def returned(self, agent: str, event_id: str, to: str, place: Place, **columns: Any) -> int:
        """The end of a spawned instance's work, handed to the one that waits for it."""
        return self._append(_Part.RETURN, agent, event_id, EventType.RETURN, place, None, columns | {"to": to})

    def human(self, agent: str, event_id: str, place: Place, **columns: Any) -> int:
        """What a human wrote to, or decided for, an agent."""
        return self._append(_Part.NEWS, agent, event_id, EventType.HUMAN_INTERVENTION, place, None, columns)

    def input(self, author: str, event_id: str, to: str, place: Place, **columns: Any) -> int:
        """A message to an agent from `author`, outside the team."""
        return self._append(_Part.INPUT, author, event_id, EventType.MESSAGE, place, None, columns | {"to": to})

    def fixed(self, agent: str, event_id: str, place: Place, **columns: Any) -> int:
        """Add a message in an agent's name that no model wrote. It is not an action and has no effects."""
        return self._append(_Part.NOTE, agent, event_id, EventType.MESSAGE, place, None, columns)

    def safety(self, agent: str, event_id: str, place: Place, **columns: Any) -> int:
        """A guardrail or policy that was triggered."""
        return self._append(_Part.NOTE, agent, event_id, EventType.SAFETY_EVENT, place, None, columns)

    def _append(
        self,
        part: _Part,
        agent: str,
        event_id: str,
        event_type: EventType,
        place: Place,
        link: int | None,
        columns: dict[str, Any],
    ) -> int:
        time = columns.pop("time", math.nan)
        position = self.record.event(
            event_id, event_type, agent, action=False, time=time, line=place.line, offset=place.offset, **columns
        )
        self.record.files.append(place.file)
        self._parts.append(part)
        self._links.append(link)
        return position

    def finish(self) -> TraceRecord:
        """The record, with actions, types of calls and edges; call it once."""
        record = self.record
        with_calls = {record.agents[i] for i, part in enumerate(self._parts) if part is _Part.CALL}
        spawners = {record.agents[i] for i, part in enumerate(self._parts) if part in (_Part.SPAWN, _Part.WAKE)}
        ends = record.columns.get("to", [])
        last: dict[str, int] = {}  # the latest action of each instance
        news: dict[str, list[tuple[int, EdgeType]]] = {}  # what an instance learned since
        begun: dict[str, list[int]] = {}  # spawns of instances that have no event since
        for i, part in enumerate(self._parts):
            agent, link = record.agents[i], self._links[i]
            to = (ends[i] if i < len(ends) else None) or ""
            for spawn in begun.pop(agent, ()):
                record.edge(spawn, i, EdgeType.SPAWN)
            acts_by_effects = agent not in with_calls and agent not in self._outside
            if part is _Part.CALL or (part in _EFFECTS and acts_by_effects):
                for cause, edge_type in news.pop(agent, ()):
                    record.edge(cause, i, edge_type)
                if agent in last:
                    record.edge(last[agent], i, EdgeType.TEMPORAL)
                last[agent] = i
                record.actions[i] = True
                if part is _Part.CALL and i not in self._fixed and agent in spawners:
                    record.types[i] = int(EventType.ORCHESTRATOR_DECISION)
            elif part in _EFFECTS:
                emitter = last.get(agent) if link is None else link
                if emitter is not None:
                    record.edge(emitter, i, _EMITTED[part])
            if part is _Part.SPAWN and to != agent:
                begun.setdefault(to, []).append(i)
            elif part is _Part.WAKE:
                news.setdefault(to, []).append((i, EdgeType.MESSAGE))
            elif part is _Part.RESULT:
                if link is not None:
                    record.edge(link, i, EdgeType.RETURN)
                news.setdefault(agent, []).append((i, EdgeType.CAUSAL))
            elif part is _Part.RETURN:
                if agent in last:
                    record.edge(last[agent], i, EdgeType.CAUSAL)
                news.setdefault(to, []).append((i, EdgeType.RETURN))
            elif part is _Part.INPUT:
                if to in last:
                    record.edge(last[to], i, EdgeType.MESSAGE)
                news.setdefault(to, []).append((i, EdgeType.MESSAGE))
            elif part is _Part.NEWS:
                news.setdefault(agent, []).append((i, EdgeType.CAUSAL))
        if set(record.files) <= {record.file}:
            record.files = []
        return record
