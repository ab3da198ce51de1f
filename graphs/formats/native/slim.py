"""Decoding with only the fields that a log uses: a struct of eight fields is faster than one of forty.

A decoder knows the keys that the events of earlier traces had, and refuses every other key. Where it refuses, the full
decoder reads the trace, so nothing is lost, and the keys of that trace are learned for the next one. Keys that the
format does not know are learned too, and their values are passed over: otherwise each log with a key of its own would
be read by the full decoder, at half the speed.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from graphs.formats.native.wire import DECODER, Event, EventBase, Trace
from graphs.reading.json_problems import JSON_ERRORS
from graphs.traces.limits import brackets

__all__ = ["SlimDecoder", "columns", "shallow_brackets"]

_REQUIRED = EventBase.__struct_fields__[:3]
_KINDS = {field.encode_name: field for field in msgspec.structs.fields(Event)}
_UNKNOWN = "unknown_"  # begins the names of fields for keys that the format does not know
_TRIES = 8  # traces that may each bring further keys, as where teams of several kinds write one log
_MOST_UNKNOWN = 64  # a log with more keys of its own makes them up: ids as keys, perhaps
_ASKED = 1000  # events of a trace that show which keys a log uses


_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class SlimDecoder:
    """Decodes traces one after another, and remembers which keys they and their events have.

    Attributes:
      unknown: keys that the format does not know, those of the last trace among them; None where only the full decoder
        took it.
    """

    def __init__(self) -> None:
        self.unknown: frozenset[str] | None = None
        self._slim: msgspec.json.Decoder[Trace] | None = None
        self._keys: frozenset[str] = frozenset()
        self._top: frozenset[str] = frozenset()
        self._failures = 0

    def decode(self, data: bytes) -> Trace:
        """A trace whose events have at least the fields that `data` uses.

        Raises:
          one of `graphs.reading.json_problems.JSON_ERRORS`, as `graphs.formats.native.wire.DECODER` does.
        """
        if self._slim is not None:
            try:
                return self._slim.decode(data)
            except msgspec.ValidationError:  # another key, or a fault that the full decoder will name
                self._slim = None
                self._failures += 1
        if self._failures < _TRIES:
            # A fault, which the full decoder names below, or a key that the events asked do not show.
            with contextlib.suppress(*JSON_ERRORS):
                self._learn(data)
                if len(self._top) + len(self._keys - _KINDS.keys()) <= _MOST_UNKNOWN:
                    self._slim = _decoder(self._keys, self._top)
                    trace = self._slim.decode(data)
                    self.unknown = self._top | self._keys - _KINDS.keys()
                    return trace
        self.unknown = None
        return DECODER.decode(data)

    def _learn(self, data: bytes) -> None:
        """Note the unknown keys of a trace, and the keys of its events, or of as many as show them."""
        top = _OBJECT.decode(data)
        events = _LIST.decode(top.get("events", b"[]"))
        self._top |= top.keys() - set(Trace.__struct_encode_fields__)
        self._keys |= {key for event in events[:: 1 + len(events) // _ASKED] for key in _OBJECT.decode(event)}


def shallow_brackets(trace: Trace, most: int) -> int:
    """Opening brackets in the values of unknown keys of a trace's events, without values that have more than `most`."""
    unknown = [name for name in trace.events[0].__struct_fields__ if name.startswith(_UNKNOWN)] if trace.events else []
    values = list(itertools.chain.from_iterable(map(attrgetter(name), trace.events) for name in unknown))
    long = (brackets(bytes(value)) for value in values if len(value) > most)  # a shorter one has no more than bytes
    return brackets(b"".join(values)) - sum(count for count in long if count > most)


def columns(events: Sequence[Any]) -> dict[str, list[Any]]:
    """Every field of the events' struct that the format knows as one list, named as in a file."""
    struct = type(events[0]) if events else Event
    return {
        name: list(map(attrgetter(field), events))
        for name, field in zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True)
        if name in _KINDS
    }


@functools.lru_cache(maxsize=64)
def _decoder(keys: frozenset[str], top: frozenset[str]) -> msgspec.json.Decoder[Any]:
    """The decoder for keys of events and unknown keys of a trace."""
    fields: list[Any] = [(name, _KINDS[name].type) for name in _REQUIRED]
    for name in sorted(keys.intersection(_KINDS).difference(_REQUIRED)):
        fields.append((_KINDS[name].name, _KINDS[name].type, msgspec.field(default=None, name=name)))
    slim = msgspec.defstruct(
        "SlimEvent", [*fields, *_passed_over(keys.difference(_KINDS))], forbid_unknown_fields=True, gc=False
    )
    whole: list[Any] = [
        (f.name, list[slim] if f.name == "events" else f.type)  # type: ignore[valid-type]
        if f.required
        else (f.name, f.type, f.default)
        for f in msgspec.structs.fields(Trace)
    ]
    return msgspec.json.Decoder(
        msgspec.defstruct("SlimTrace", [*whole, *_passed_over(top)], forbid_unknown_fields=True)
    )


def _passed_over(unknown: Iterable[str]) -> list[Any]:
    """Fields for keys that the format does not know.

    `Raw` stands for any value: it is checked and passed over, and no object is made of what is in it.
    """
    return [
        (f"{_UNKNOWN}{number}", msgspec.Raw, msgspec.field(default=msgspec.Raw(), name=name))
        for number, name in enumerate(sorted(unknown))
    ]
