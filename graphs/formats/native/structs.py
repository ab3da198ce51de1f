"""Events and edges of decoded native traces as columns: every log that the format allows, at the speed of structs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphs.event_types import EventType
from graphs.formats.native.wire import EDGE_CODES, EVENT_CODES, EVENT_FIELDS, Trace
from graphs.traces.part import EVENT_TEXT
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS
from graphs.traces.token_lists import TOKEN_TYPES

__all__ = ["Edges", "Events", "edges_of", "events_of"]

_ID, _SENDER, _RECEIVER = map(attrgetter, ("id", "src", "dst"))
_EVENT_NAMES = pa.array(sorted(EVENT_CODES, key=EVENT_CODES.__getitem__))
_TYPES: dict[str, pa.DataType] = (
    {name: pa.string() for name in ("id", "type", "agent", "role", "agent_name")}
    | EVENT_TEXT
    | TOKEN_TYPES
    | {"t": pa.float64(), "action": pa.bool_(), "stop": pa.bool_()}
    | {name: pa.string() if key.kind == "id" else pa.float64() for name, key in EVENT_EVIDENCE.items()}
)
"""Arrow's types of the keys of an event; `turn` has none, since it may be a text or a number."""


class Events(NamedTuple):
    """The events of t traces, one after another.

    Attributes:
      counts: int64 [t].
      types: int32 [e], `EventType`.
      fields: by key of an event, if any has it: Arrow texts and truth values, null where absent, and float64 numbers,
        NaN where absent; all but `type` and `turn`.
      turns: Arrow texts [e], the labels, null where absent; None if no event has one.
      sound: bool [t], whether the labels are texts and integers.
    """

    counts: np.ndarray
    types: np.ndarray
    fields: dict[str, pa.Array | np.ndarray]
    turns: pa.Array | None
    sound: np.ndarray


class Edges(NamedTuple):
    """The edges of t traces, one after another.

    Attributes:
      counts: int64 [t].
      senders, receivers: int32 [k], rows of events of the same trace; -1 for an id that no event has.
      types: int32 [k], `EdgeType`.
      sound: bool [t], whether no two events have one id.
    """

    counts: np.ndarray
    senders: np.ndarray
    receivers: np.ndarray
    types: np.ndarray
    sound: np.ndarray


def events_of(traces: Sequence[Trace]) -> Events:
    """The events of decoded traces, which are of one struct, at least one of them."""
    events = list(itertools.chain.from_iterable(trace.events for trace in traces))
    counts = np.array([len(trace.events) for trace in traces])
    kind: Any = type(events[0])
    names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    names = {name: field for name, field in names.items() if name in EVENT_FIELDS}
    sound, turns = np.ones(len(traces), bool), None
    if names.pop("turn", None) is not None:
        turns, whole = _labels(events)
        sound[np.repeat(np.arange(len(traces)), counts)[~whole]] = False
    flags = {name: names.pop(name) for name in FLAGS.intersection(names)}
    if len(names) == len(kind.__struct_fields__):  # the faster way to the same
        rows = list(map(msgspec.structs.astuple, events))
    else:
        rows = list(map(attrgetter(*names.values()), events))
    table = pa.array(rows, pa.struct([(name, _TYPES[name]) for name in names]))
    fields = {name: table.field(i) for i, name in enumerate(names)}
    for name, field in flags.items():  # Arrow makes no number of True
        stated = (getattr(event, field) for event in events)
        amounts = [None if amount is None else float(amount) for amount in stated]
        fields[name] = pa.array(amounts, pa.float64())
        if not set(amounts) <= {None, 0.0, 1.0}:  # which `graphs.traces.record.check` names
            sound[np.repeat(np.arange(len(traces)), counts)[[amount not in (None, 0, 1) for amount in amounts]]] = False
    types = pc.index_in(fields.pop("type"), _EVENT_NAMES).to_numpy().astype(np.int32)
    if (stops := fields.pop("stop", None)) is not None:
        stopped = stops.fill_null(False).to_numpy(zero_copy_only=False)
        types[stopped & (types == EventType.ORCHESTRATOR_DECISION)] = EventType.STOP
    numbers = {name: column.to_numpy(zero_copy_only=False) for name, column in fields.items() if _is_number(column)}
    return Events(counts, types, fields | numbers, turns, sound)


def _is_number(column: pa.Array) -> bool:
    return bool(pa.types.is_floating(column.type))


def _labels(events: Sequence[msgspec.Struct]) -> tuple[pa.Array | None, np.ndarray]:
    """Labels of turns as texts, and bool [e], which are no fractions."""
    labels = [event.turn for event in events]  # type: ignore[attr-defined]
    whole = np.array([not isinstance(label, float) or label.is_integer() for label in labels])
    texts = pa.array(list(map(_label, labels)), pa.string())
    return (None if texts.null_count == len(texts) else texts), whole


def _label(turn: str | float | None) -> str | None:
    if isinstance(turn, float) and turn.is_integer():
        turn = int(turn)  # 5.0 is an integer in JSON
    return None if turn is None else str(turn)


def edges_of(traces: Sequence[Trace]) -> Edges:
    """The edges of decoded traces, whose events are numbered through."""
    counts = np.array([len(trace.edges or ()) for trace in traces])
    edges = list(itertools.chain.from_iterable(trace.edges for trace in traces if trace.edges))
    senders: list[int] = []
    receivers: list[int] = []
    sound = np.ones(len(traces), bool)
    start = 0
    for number, trace in enumerate(traces):
        rows = dict(zip(map(_ID, trace.events), itertools.count(start)))
        sound[number] = len(rows) == len(trace.events)
        start += len(trace.events)
        if trace.edges:
            senders += map(rows.get, map(_SENDER, trace.edges), itertools.repeat(-1))
            receivers += map(rows.get, map(_RECEIVER, trace.edges), itertools.repeat(-1))
    codes = bytes(map(EDGE_CODES.__getitem__, map(attrgetter("type"), edges)))
    types = np.frombuffer(codes, np.uint8).astype(np.int32)
    return Edges(counts, np.array(senders, np.int32), np.array(receivers, np.int32), types, sound)
