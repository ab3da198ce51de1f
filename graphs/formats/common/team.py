"""Events of a log that shows model calls, and the edges of `docs/data-model.md` between them.

A reader goes through a trace with causes before effects and reports each item: a call, a tool call, a spawn, an answer.
`Team` appends the events; `finish` determines which are actions and adds the edges.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection
from typing import Any, Literal

from graphs.event_types import EdgeType, EventType
from graphs.reading.documents import Place
from graphs.traces.record import Agent, TraceRecord, is_cut

__all__ = ["Team"]


class _Part(enum.Enum):
    """The part of an event in relation to the others."""

    CALL = "call"
    TOOL = "tool"
    SPAWN = "spawn"
    WAKE = "wake"  # a message that hands over to an instance which is there already
    RESULT = "result"
    RETURN = "return"
    NEWS = "news"  # to an agent, from outside the team: a human's text; or a stated message to another agent
    INPUT = "input"  # a message to an agent from outside the team; its author is a separate instance
    NOTE = "note"  # without consequences: a guardrail that was triggered


_MOST_HEARD = 1_000_000  # steps of a thousand visits each: a log of a megabyte could state more, and fill the memory
_STATED = {
    EventType.SPAWN: _Part.SPAWN,
    EventType.TOOL_CALL: _Part.TOOL,
    EventType.TOOL_RESULT: _Part.RESULT,
    EventType.RETURN: _Part.RETURN,
}
_EFFECTS = (_Part.TOOL, _Part.SPAWN, _Part.WAKE)
_EMITTED = {_Part.TOOL: EdgeType.TOOL_DEPENDENCY, _Part.SPAWN: EdgeType.CAUSAL, _Part.WAKE: EdgeType.CAUSAL}


class Team:
    """Fills one record.

    The call that an effect came from is its agent's latest one, unless the reader names another. An agent instance that
    has no model call in the whole trace acts by its effects (`docs/data-model.md`, logs without calls).

    Args:
      record: the trace, without events yet.
      acts: "by instance" as above; "stated": the reader says which events are actions (`stated`).
      asks: names of tools by which an agent asks a person: their results are the person's.
      sorts: whether edges stand in the order of their effects, as `graphs.writers.otlp` expects of what is read again.
    """

    def __init__(
        self,
        record: TraceRecord,
        acts: Literal["by instance", "stated"] = "by instance",
        *,
        asks: Collection[str] = (),
        sorts: bool = False,
    ) -> None:
        self.record, self._acts, self._asks, self._sorts = record, acts, asks, sorts
        self._parts: list[_Part] = []
        self._links: list[int | None] = []  # the call of an effect, the tool call of a result
        self._fixed: set[int] = set()  # calls whose type the log states
        self._heard: dict[int, list[int]] = {}  # by event, what its agent learned of others
        self._heard_of = 0
        self._stopped: Any = None  # why the reply to the last call ended
        self._outside: set[str] = set()  # instances that are not of the team: nothing they do is an action

    def agent(self, instance: str, name: str, role: str = "", parent: str = "", *, outside: bool = False) -> None:
        """Declare an agent instance once; `outside`: a simulated user or another part of the environment."""
        if outside:
            self._outside.add(instance)
        self.record.instances.setdefault(instance, Agent(name=name, role=role or name, parent=parent))

    def call(
        self,
        agent: str,
        event_id: str,
        place: Place,
        *,
        event_type: EventType | None = None,
        stopped: Any = None,
        **columns: Any,
    ) -> int:
        """A model call. Without a type it is a decision if its agent spawns another in this trace, else a message.

        `stopped` is why its reply ended, as the log states it: a limit of tokens is its status, unless it failed, and
        any limit that of the run whose last call it is.
        """
        self._stopped = stopped
        if is_cut(stopped) and columns.get("status") is None:
            columns["status"] = stopped.lower()
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
        return self._append(_Part.SPAWN, agent, event_id, EventType.SPAWN, place, call, {"to": instance} | columns)

    def wake(self, agent: str, event_id: str, instance: str, place: Place, **columns: Any) -> int:
        """A hand-over to an instance that has been active before."""
        return self._append(_Part.WAKE, agent, event_id, EventType.MESSAGE, place, None, columns | {"to": instance})

    def result(self, agent: str, event_id: str, place: Place, *, answers: int | None, **columns: Any) -> int:
        """A tool's result, of the instance that called the tool; `answers` is the tool call's position."""
        by_person = columns.get("tool") in self._asks
        kind = EventType.HUMAN_INTERVENTION if by_person else EventType.TOOL_RESULT
        return self._append(_Part.RESULT, agent, event_id, kind, place, answers, columns)

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

    def stated(
        self,
        agent: str,
        event_id: str,
        event_type: EventType | None,
        place: Place,
        *,
        action: bool,
        is_call: bool,
        link: int | None = None,
        **columns: Any,
    ) -> int:
        """An event as the log states it; `link` is the call of an effect, or the tool call of a result.

        Only a model call may have no type; it gets the one that `call` would give it.
        """
        if is_call:
            position = self.call(agent, event_id, place, event_type=event_type, **columns)
            self.record.actions[position] = action
            return position
        assert event_type is not None
        to = columns.get("to")
        part = _STATED.get(event_type, _Part.NOTE)
        if part is _Part.NOTE and event_type is EventType.MESSAGE and not action and to and to != agent:
            part = _Part.NEWS
        position = self._append(part, agent, event_id, event_type, place, link, columns)
        self.record.actions[position] = action
        return position

    def hear(self, position: int, causes: list[int]) -> None:
        """State what the agent of an event learned before it of other agents: their calls and the results they got."""
        self._heard[position] = causes
        self._heard_of += len(causes)
        if self._heard_of > _MOST_HEARD:
            expected = f"at most {_MOST_HEARD} edges between visits to nodes"
            self.record.refuse("too-many", "edges", self._heard_of, expected, position)

    def emitter(self, position: int) -> int | None:
        """The position of the call that an effect came from, where the reader named it."""
        return self._links[position] if self._parts[position] in _EFFECTS else None

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
        record.ended_by(self._stopped)
        acting = self._acting()
        any_call = _Part.CALL in self._parts
        spawners = {record.agents[i] for i, part in enumerate(self._parts) if part in (_Part.SPAWN, _Part.WAKE)}
        ends = record.columns.get("to", [])
        last: dict[str, int] = {}  # the latest action of each instance
        news: dict[str, list[tuple[int, EdgeType]]] = {}  # what an instance learned since
        begun: dict[str, list[int]] = {}  # spawns of instances that have no event since
        for i, part in enumerate(self._parts):
            agent, link = record.agents[i], self._links[i]
            to = (ends[i] if i < len(ends) else None) or ""
            spawns, heard = begun.pop(agent, ()) if begun else (), self._heard.get(i)
            for spawn in spawns:
                record.edge(spawn, i, EdgeType.SPAWN)
            if heard:
                told = [*spawns, *(cause for cause, _ in news.get(agent, ()))]
                known = {agent, *(record.agents[cause] for cause in told)}  # who has an edge to this event
                news.setdefault(agent, []).extend(
                    (cause, EdgeType.CAUSAL if self._parts[cause] is _Part.RESULT else EdgeType.MESSAGE)
                    for cause in heard
                    if record.agents[cause] not in known
                )
            if acting[i]:
                for cause, edge_type in dict.fromkeys(news.pop(agent, ())) if news else ():
                    record.edge(cause, i, edge_type)
                if agent in last:
                    record.edge(last[agent], i, EdgeType.TEMPORAL)
                last[agent] = i
                if self._acts != "stated":
                    record.actions[i] = True
                if part is _Part.CALL and i not in self._fixed and agent in spawners:
                    record.types[i] = int(EventType.ORCHESTRATOR_DECISION)
            elif part in _EFFECTS and not record.actions[i]:
                emitter = last.get(agent) if link is None and any_call else link
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
                news.setdefault(to or agent, []).append((i, EdgeType.MESSAGE if to else EdgeType.CAUSAL))
        if self._sorts and record.senders:
            edges = sorted(zip(record.receivers, record.senders, record.edge_types, strict=True))
            record.receivers, record.senders, record.edge_types = ([edge[i] for edge in edges] for i in range(3))
        if record.files.count(record.file) == len(record.files):
            record.files = []
        record.sum_money(position for position, part in enumerate(self._parts) if part is _Part.CALL)
        return record

    def _acting(self) -> list[bool]:
        """Whether each event is an act of its agent, which the events that its agent learned of lead to."""
        parts, agents = self._parts, self.record.agents
        if self._acts == "by instance":
            with_calls = {agents[i] for i, part in enumerate(parts) if part is _Part.CALL} | self._outside
            return [
                part is _Part.CALL or (part in _EFFECTS and agent not in with_calls)
                for part, agent in zip(parts, agents, strict=True)
            ]
        return [part is _Part.CALL for part in parts] if _Part.CALL in parts else list(self.record.actions)
