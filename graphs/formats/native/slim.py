"""Decoding with only the fields that a log uses: a struct of eight fields is faster than one of thirty.

A decoder of the fields that the trace before had refuses every other key. Where it refuses, the full decoder reads the
trace, so nothing is ever lost, and the next trace is tried with the fields found then.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from graphs.formats.native.wire import DECODER, Event, EventBase, Trace

__all__ = ["SlimDecoder", "columns"]

_REQUIRED = EventBase.__struct_fields__[:3]
_TRIES = 3
_ASKED = 1000  # events of a trace that show which fields a log uses


class SlimDecoder:
    """Decodes traces one after another; remembers which fields its events have."""

    def __init__(self) -> None:
        self._slim: msgspec.json.Decoder[Trace] | None = None
        self._fields: frozenset[str] = frozenset()
        self._failures = 0

    def decode(self, data: bytes) -> Trace:
        """A trace whose events have at least the fields that `data` uses.

        Raises:
          one of `graphs.reading.json_problems.JSON_ERRORS`, as `native_wire.DECODER` does.
        """
        if self._slim is not None:
            try:
                return self._slim.decode(data)
            except msgspec.ValidationError:  # another field, or a fault that the full decoder will name
                self._slim = None
                self._failures += 1
        trace = DECODER.decode(data)
        if self._failures < _TRIES:
            some = trace.events[:: 1 + len(trace.events) // _ASKED]
            self._fields |= {name for name, column in columns(some).items() if column.count(None) < len(column)}
            self._slim = _decoder(tuple(sorted(self._fields)))
        return trace


def columns(events: Sequence[Any]) -> dict[str, list[Any]]:
    """Every field of the events' struct as one list, named as in a file."""
    struct = type(events[0]) if events else Event
    return {
        name: list(map(attrgetter(field), events))
        for name, field in zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True)
    }


@functools.lru_cache(maxsize=64)
def _decoder(fields: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    kinds = {field.encode_name: field for field in msgspec.structs.fields(Event)}
    optional = [name for name in fields if name not in _REQUIRED]
    slim = msgspec.defstruct(
        "SlimEvent",
        [(name, kinds[name].type) for name in _REQUIRED]
        + [
            (kinds[name].name, kinds[name].type, msgspec.field(default=None, name=kinds[name].encode_name))
            for name in optional
        ],
        forbid_unknown_fields=True,
        gc=False,
    )
    whole = msgspec.defstruct(
        "SlimTrace",
        [
            (f.name, list[slim] if f.name == "events" else f.type)  # type: ignore[valid-type]
            if f.required
            else (f.name, f.type, f.default)
            for f in msgspec.structs.fields(Trace)
        ],
    )
    return msgspec.json.Decoder(whole)
