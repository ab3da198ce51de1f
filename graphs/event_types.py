"""What events and edges are: the types of the survey's trace schema, and which of them a policy chooses.

Apart from `graphs.event_graph` because it needs no JAX: processes that only read logs start without it.
"""

from __future__ import annotations

import enum

__all__ = ["ACTION_TYPES", "KINDS", "EdgeType", "EventType"]


class EventType(enum.IntEnum):
    """What an event is: the ten types of the survey's trace schema, and `stop`, which it lacks."""

    ORCHESTRATOR_DECISION = 0
    SPAWN = 1
    DESPAWN = 2
    MESSAGE = 3
    TOOL_CALL = 4
    TOOL_RESULT = 5
    RETURN = 6
    AGGREGATE = 7
    HUMAN_INTERVENTION = 8
    SAFETY_EVENT = 9
    STOP = 10


class EdgeType(enum.IntEnum):
    """Why one event led to another: the eight types of the survey's trace schema."""

    TEMPORAL = 0
    CAUSAL = 1
    SPAWN = 2
    MESSAGE = 3
    TOOL_DEPENDENCY = 4
    RETURN = 5
    AGGREGATE = 6
    SAFETY_FLOW = 7


ACTION_TYPES = frozenset(
    {
        EventType.ORCHESTRATOR_DECISION,
        EventType.SPAWN,
        EventType.DESPAWN,
        EventType.MESSAGE,
        EventType.TOOL_CALL,
        EventType.AGGREGATE,
        EventType.STOP,
    }
)
"""Types that a policy chooses, where a log does not say it event by event."""

KINDS: dict[str, frozenset[EventType]] = {
    "orchestrator": frozenset(
        {
            EventType.ORCHESTRATOR_DECISION,
            EventType.SPAWN,
            EventType.DESPAWN,
            EventType.AGGREGATE,
            EventType.STOP,
        }
    ),
    "message": frozenset({EventType.MESSAGE}),
    "tool": frozenset({EventType.TOOL_CALL}),
}
"""Selections of events by type; a unit of a kind is the event itself."""
