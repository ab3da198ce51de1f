"""Types of events and edges in the survey's trace schema, and the event types that a policy chooses.

The module does not import JAX, so that processes that only read logs start without it.
"""

from __future__ import annotations

import enum

__all__ = ["ACTION_TYPES", "KINDS", "EdgeType", "EventType"]


class EventType(enum.IntEnum):
    """Type of an event: the ten types of the survey's trace schema, and `stop`, which the schema lacks."""

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
    """Type of an edge, the reason why one event led to another: the eight types of the survey's trace schema."""

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
"""Types that a policy chooses, for logs that do not mark each event."""

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
"""Event types by kind. A unit of a kind is one event."""
