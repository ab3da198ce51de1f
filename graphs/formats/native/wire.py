"""The native format as it stands in a file: typed structs for decoding, and the names that it knows.

These structs live for the length of one trace; readers turn them into columns. The evidence keys of an event come from
`graphs.traces.schema.EVENT_EVIDENCE`, so that a key is named once.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec

from graphs.event_types import EdgeType, EventType
from graphs.reading.times import seconds
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, FLOAT_RANGE, ROUNDING, SCHEMA_VERSION
from graphs.traces.tokens import TOKEN_COLUMNS

__all__ = [
    "COUNTS",
    "DECODER",
    "EDGE_CODES",
    "EVENT_CODES",
    "EVENT_FIELDS",
    "EXTENSION_KEYS",
    "FLAT_FIELDS",
    "NARROW",
    "TOP_LEVEL_EXTENSION",
    "AgentEntry",
    "Edge",
    "Event",
    "EventBase",
    "LogProb",
    "SumOfSquares",
    "TokenId",
    "Trace",
    "clocks_apart",
    "state_numbers",
    "version_known",
]

EVENT_CODES: dict[str, int] = {kind.name.lower(): int(kind) for kind in EventType}
EDGE_CODES: dict[str, int] = {kind.name.lower(): int(kind) for kind in EdgeType}
TOP_LEVEL_EXTENSION = ("schema_version", "group", "model", "agents", "evidence")

TokenId = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
LogProb = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=ROUNDING)]
"""Of a token: at most 0, but for rounding."""
SumOfSquares = Annotated[float, msgspec.Meta(ge=0, le=1 + ROUNDING)]
"""Of probabilities: at most 1, but for rounding."""
NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
NonNegative = Annotated[float, msgspec.Meta(ge=0)]
EventName = Literal[
    "orchestrator_decision",
    "spawn",
    "despawn",
    "message",
    "tool_call",
    "tool_result",
    "return",
    "aggregate",
    "human_intervention",
    "safety_event",
    "stop",
]
EdgeName = Literal["temporal", "causal", "spawn", "message", "tool_dependency", "return", "aggregate", "safety_flow"]
Topology = Literal[
    "centralized", "planner_executor_critic", "debate", "swarm", "hierarchical", "harness", "mixed", "unknown"
]


class EventBase(msgspec.Struct, gc=False):
    """An event: the survey's keys, then this library's own except evidence."""

    id: NonEmpty
    type: EventName
    agent: NonEmpty
    t: NonNegative | datetime.datetime | None = None
    role: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    tool: str | None = None
    content_ref: str | None = None
    trusted: bool | None = None
    action: bool | None = None
    stop: bool | None = None  # of the survey's form, whose types have no stop
    turn: str | int | float | None = None  # 5.0 is an integer in JSON
    agent_name: str | None = None
    status: str | None = None
    model: str | None = None
    requested_model: str | None = None
    token_ids: list[TokenId] | None = None
    token_mask: list[bool] | None = None
    token_log_probs: list[LogProb] | None = None
    token_sums_of_squares: list[SumOfSquares] | None = None


_KINDS: dict[str, Any] = {
    "float": Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)] | None,
    "count": Annotated[float, msgspec.Meta(ge=0, le=LARGEST_COUNT)] | None,
    "id": NonEmpty | None,
    "flag": bool | Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)] | None,
}
Event: Any = msgspec.defstruct(
    "Event",
    [(name, _KINDS["flag" if name in FLAGS else key.kind], None) for name, key in EVENT_EVIDENCE.items()],
    bases=(EventBase,),
    namespace={"__doc__": "An event with every evidence key of `graphs.traces.schema.EVENT_EVIDENCE`."},
    gc=False,
)

EVENT_FIELDS: tuple[str, ...] = Event.__struct_encode_fields__
"""Keys of an event, as they stand in a file."""

IDS = frozenset(name for name, key in EVENT_EVIDENCE.items() if key.kind == "id")
COUNTS = tuple(name for name, key in EVENT_EVIDENCE.items() if key.kind == "count")
_WIDE = (FLOAT_RANGE, EVENT_EVIDENCE["tokens"].within.words)
NARROW = {name: key.within for name, key in EVENT_EVIDENCE.items() if key.within.words not in _WIDE}
"""Of evidence that is not any number, the range."""
_TEXTS = ("agent_name", "status", "model", "requested_model")
EXTENSION_KEYS = frozenset({"action", "stop", "turn", *_TEXTS, *TOKEN_COLUMNS, *EVENT_EVIDENCE})
"""Keys of an event that the survey's schema does not know: in its form they may hold anything."""


class Edge(msgspec.Struct, gc=False):
    """Cause and effect, by event id."""

    src: str
    dst: str
    type: EdgeName


class AgentEntry(msgspec.Struct, gc=False):
    """The fields of an agent instance."""

    id: NonEmpty
    name: str | None = None
    role: str | None = None
    parent: str | None = None


_Numbers: Any = dict[str, float | None]
_Scores: Any = dict[str, float | bool | None]


class Trace(msgspec.Struct):
    """One trace; keys that are not here are ignored."""

    trace_id: NonEmpty
    task_id: NonEmpty
    events: list[Event]
    edges: list[Edge] | None = None
    rewards: _Scores | None = None
    costs: _Numbers | None = None
    metrics: _Scores | None = None
    system: str | None = None
    topology: Topology | None = None
    schema_version: str | None = None
    group: NonEmpty | None = None
    model: str | None = None
    agents: list[AgentEntry] | None = None
    evidence: _Numbers | None = None
    task_kind: str | None = None
    told_order: bool | None = None


DECODER = msgspec.json.Decoder(Trace)
FLAT_FIELDS = ("trace_id", "task_id", "group", "system", "topology", "task_kind")
"""Keys of a trace whose value is one text that no event has under the same name."""


def state_numbers(trace: Trace) -> None:
    """Leave of a decoded trace's numbers by name those that it states: null is none, and a truth is 1 or 0."""
    for family in ("rewards", "costs", "metrics", "evidence"):
        amounts = getattr(trace, family)
        if amounts and {*map(type, amounts.values())} != {float}:
            stated = {name: float(amount) for name, amount in amounts.items() if amount is not None}
            setattr(trace, family, stated)


def clocks_apart(events: Sequence[Any]) -> int | None:
    """Set dates of decoded events to seconds since 1970, unless a time is of another clock than the first: which."""
    if not events or not hasattr(events[0], "t"):  # of a log without times
        return None
    times: list[Any] = list(map(attrgetter("t"), events))
    if datetime.datetime not in set(map(type, times)):
        return None
    clocks = [(i, isinstance(time, datetime.datetime) and ("zone", "none")[time.tzinfo is None])
              for i, time in enumerate(times) if time is not None]  # fmt: skip
    if (stray := next((i for i, clock in clocks if clock != clocks[0][1]), None)) is None:
        for i, _ in clocks:
            events[i].t = float(seconds(times[i]))
    return stray


def version_known(version: str | None) -> bool:
    """Whether a file's `schema_version` is one that this library reads; None is the survey's own form."""
    return version is None or version.partition(".")[0] == SCHEMA_VERSION.partition(".")[0]
