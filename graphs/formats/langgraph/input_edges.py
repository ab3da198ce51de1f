"""Edges to model calls from the messages that their agents were given: to the first call of an agent that was given it.

Tasks of one checkpoint have one input. Its messages times its tasks may be far more than the log is long, so nothing
here is kept for each pair: edges are planned by shared lists, and drawn when the log has ended if there are not too
many for its length (`EdgeBudget`).
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Iterable

from graphs.event_types import EdgeType, EventType
from graphs.traces.limits import Limits
from graphs.traces.record import TraceRecord

__all__ = ["SHARED", "USER", "Causes", "EdgeBudget", "InputEdges", "StepCalls"]

USER = "user"
"""The agent of messages that people put into the state."""

SHARED = 64
"""Of the messages of people that an earlier call was given, too, how many have an edge to a call: the latest."""

_ANY = 1_000_000  # edges that the threads of any file may have, however short: two steps of a thousand tasks
_PART = 10  # a limit on edges of more than ten times that allows a tenth of itself
_BYTES = 4  # of a thread that allow a further edge; a message that an input states has 26 or more


class EdgeBudget:
    """How many edges the threads of one file may have.

    A log that states the input of each task states a message for each edge, and is long enough for all of them. Where
    tasks share an input, edges grow with messages times tasks: a megabyte gave 10 million of them, in 6 seconds and
    500 MB. So a thread may have one for every few bytes, and all threads of a file together `_ANY` more.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.left = limits, max(_ANY, limits.edges // _PART)

    def most(self, size: int) -> int:
        """How many a thread of `size` bytes may have."""
        return min(self.limits.edges, self.left + size // _BYTES)

    def take(self, count: int, size: int) -> None:
        """Note that a thread of `size` bytes has so many."""
        self.left -= max(0, count - size // _BYTES)


class _New:
    """Events of an input that are new to an agent; agents that knew the same before share this object.

    Attributes:
      events: all of them.
      linked: those with an edge to the agent's call.
      extends: whether the input holds all that the agent knew before.
      is_settled: whether calls have been given all of them, so that `linked` will not change any more.
    """

    def __init__(self, events: list[int], *, extends: bool) -> None:
        self.events = self.linked = events
        self.extends, self.is_settled = extends, False


class Causes:
    """Events that a call may answer to: those among the messages of an input, which tasks may share."""

    def __init__(self, events: Iterable[int]) -> None:
        self.events = list(dict.fromkeys(events))
        self._all = _New(self.events, extends=True)

    @functools.cached_property
    def members(self) -> frozenset[int]:
        """The events as a set."""
        return frozenset(self.events)

    @functools.cached_property
    def _since(self) -> weakref.WeakKeyDictionary[Causes, _New]:
        return weakref.WeakKeyDictionary()

    def is_compared(self, before: Causes | None) -> bool:
        """Whether `since` needs no comparison."""
        return before is None or before in self._since

    def since(self, before: Causes | None) -> _New:
        """The events that an earlier input did not have; everyone with the same earlier input gets the same object."""
        if before is None:
            return self._all
        new = self._since.get(before)
        if new is None:
            events = [event for event in self.events if event not in before.members]
            new = _New(events, extends=len(self.events) - len(events) == len(before.events))
            self._since[before] = new
        return new


class StepCalls:
    """The calls of a super-step. Of each agent the last one stands for those before it, which lead there."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._causes: Causes | None = None

    def add(self, agent: str, position: int) -> None:
        """Note a call."""
        self._last[agent] = position
        self._causes = None

    @property
    def causes(self) -> Causes:
        """The calls so far; the same object until another is noted."""
        if self._causes is None:
            self._causes = Causes(self._last.values())
        return self._causes


class InputEdges:
    """Which messages the agents of one trace know, and the edges that follow."""

    def __init__(self, record: TraceRecord, budget: EdgeBudget) -> None:
        self.record, self.budget = record, budget
        self.size = 0  # bytes of the thread so far
        self.known: dict[str, Causes] = {}  # by agent, an input of which it knows all
        self.latest: dict[str, Causes] = {}  # by agent, the input of its last call
        self.known_besides: dict[str, set[int]] = {}  # by agent
        self.given_to_a_call: set[int] = set()  # messages of people that a call was given
        self.chained: set[tuple[int, int]] = set()
        self.planned: list[tuple[list[int], int]] = []  # causes and the call that answers to them
        self.count = 0
        self.compared = 0  # messages of inputs, with what agents knew before
        self.is_too_much = False

    def add_call(self, agent: str, position: int, causes: Causes, results: Iterable[int]) -> None:
        """Plan the edges to a call from what its agent did not know before, and from the results of its tools."""
        besides = self.known_besides.setdefault(agent, set())
        before = self.known.get(agent)
        if causes is not before:
            is_again = causes is self.latest.get(agent)
            self.latest[agent] = causes
            if not causes.is_compared(before):
                self.compared += len(causes.events)
            if self._is_beyond(self.budget.most(self.size)):
                self.is_too_much = True
                return  # `draw` refuses the thread, however long it becomes: what this agent knows is not kept
            new = causes.since(before)
            events = self._linked(new)
            if is_again:  # all of them are in `besides`
                events = []
            elif besides or not new.extends:
                self.compared += len(new.events)
                events = [event for event in events if event not in besides]
            self._plan(events, position)
            # An input that extends the known one replaces it, and needs no memory; of another the new events are kept.
            if new.extends:
                self.known[agent] = causes
            elif not is_again:
                besides.update(new.events)
        for result in results:
            if result not in besides and (before is causes or result not in causes.members):
                self._plan([result], position)
            besides.add(result)

    def _is_beyond(self, most: int) -> bool:
        return max(self.count - len(self.record.ids), self.compared) > most

    def _linked(self, new: _New) -> list[int]:
        """The events that get an edge: of messages of people that calls were given before, the latest only.

        The earlier ones lead there, each to the next.
        """
        if new.is_settled:
            return new.linked
        people = sorted(event for event in new.events if self._is_of_people(event))
        given_before = [event for event in people if event in self.given_to_a_call]
        new.is_settled = len(given_before) == len(people)
        self.given_to_a_call.update(people)
        if len(given_before) <= SHARED:
            return new.events
        earlier = given_before[:-SHARED]
        for pair in itertools.pairwise(earlier):
            if pair not in self.chained:
                self.chained.add(pair)
                self.record.edge(*pair, EdgeType.TEMPORAL)
        left_out = set(earlier[:-1])
        new.linked = [event for event in new.events if event not in left_out]
        return new.linked

    def _is_of_people(self, event: int) -> bool:
        return self.record.agents[event] == USER and not self.record.actions[event]

    def _plan(self, events: list[int], position: int) -> None:
        self.count += len(events)  # among them an agent's own messages, each once, which have no edge
        if events:
            self.planned.append((events, position))

    def draw(self) -> None:
        """Draw the planned edges.

        Raises:
          TraceError: kind "too-many", before more edges are drawn than the limits and the length of the log allow.
        """
        record, most, limit = self.record, self.budget.most(self.size), self.budget.limits.edges
        if self.is_too_much or self._is_beyond(most):
            why = "" if most == limit else " whose log is so short; a higher --limit edges allows more"
            record.refuse("too-many", "edges", f"more than {most}", f"at most {most} edges in a trace{why}")
        self.budget.take(max(self.count - len(record.ids), self.compared), self.size)
        for events, position in self.planned:
            agent = record.agents[position]
            for cause in events:
                is_result = record.types[cause] == EventType.TOOL_RESULT
                if is_result or record.agents[cause] != agent:
                    record.edge(cause, position, EdgeType.CAUSAL if is_result else EdgeType.MESSAGE)
