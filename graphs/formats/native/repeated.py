"""Keys that are written twice in one JSON object of a native trace: decoders keep the last value and drop the others.

A decoder's result shows how many keys it took. A text with more keys may repeat one. Counting is cheap, so that reading
takes a few percent longer; only a text with more keys than were taken is parsed again, with Python's parser, which
shows every key. Keys that the format does not know are ignored here as they are in reading, and so is a repeated key
that was null before: null and absent are the same.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from graphs.errors import Problem
from graphs.formats.native.structs import Events
from graphs.formats.native.wire import EVENT_FIELDS, AgentEntry, Edge, Trace
from graphs.text import printable

__all__ = ["may_repeat", "repeated_in_heading", "repeated_key"]

# Every text is matched whole, key or not: a search for keys only would begin again at each quote within a text.
_TEXT = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*+:)?', re.DOTALL)
_COLON, _QUOTE, _LARGEST_BLANK = ord(":"), ord('"'), ord(" ")
_EDGE_KEYS = len(Edge.__struct_fields__)
_MAPS = ("rewards", "costs", "metrics", "evidence")
_LISTS = {"events": EVENT_FIELDS, "edges": Edge.__struct_fields__, "agents": AgentEntry.__struct_fields__}


class _Lists(msgspec.Struct, gc=False):
    events: msgspec.Raw = msgspec.Raw()
    edges: msgspec.Raw = msgspec.Raw()


_LISTS_OF = msgspec.json.Decoder(_Lists)


class _Object(list[tuple[str, Any]]):
    """The keys and values of an object, repeated keys included."""


def may_repeat(traces: Sequence[Trace], texts: Sequence[bytes], events: Events | None) -> list[int]:
    """Numbers of the traces whose texts may repeat a key; `events` are those that a decoder made of all texts.

    A key has a colon, and each value that a decoder keeps has a key. Where a text has as many colons as values, no key
    is left that could be a second one.
    """
    taken = np.array([_taken(trace) + _EDGE_KEYS * len(trace.edges or ()) for trace in traces])
    of_events = np.zeros(len(traces), np.int64) if events is None else _taken_in_events(events)
    colons = np.array([text.count(b":") for text in texts])
    more = np.flatnonzero(colons > taken + of_events)
    return [i for i in more.tolist() if _has_more_keys(traces[i], texts[i], int(of_events[i]))]


def _taken(trace: Trace) -> int:
    """Keys of a trace, its agents and its maps that a decoder took, events and edges aside."""
    fields = msgspec.structs.astuple(trace)
    count = len(fields) - fields.count(None)
    count += sum(map(len, filter(None, (trace.rewards, trace.costs, trace.metrics, trace.evidence))))
    for agent in trace.agents or ():
        stated = msgspec.structs.astuple(agent)
        count += len(stated) - stated.count(None)
    return count


def _taken_in_events(events: Events) -> np.ndarray:
    """int64 [t], keys of the events of each trace whose values are not null."""
    keys = np.ones(len(events.types), np.int64)  # the type, which every event has
    for column in (*events.fields.values(), *([] if events.turns is None else [events.turns])):
        keys += column.is_valid().to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else ~np.isnan(column)
    ends = np.cumsum(events.counts)
    total = np.concatenate([[0], np.cumsum(keys)])
    of_traces: np.ndarray = total[ends] - total[ends - events.counts]
    return of_traces


def _has_more_keys(trace: Trace, text: bytes, of_events: int) -> bool:
    """Whether a text has more keys than a decoder took; colons within texts are not counted where that is cheap."""
    most_in_edges = _EDGE_KEYS * len(trace.edges or ())
    if not _has_more(text, _taken(trace) + of_events + most_in_edges):
        return False
    lists = _LISTS_OF.decode(text)
    events, edges = bytes(lists.events), bytes(lists.edges)
    if _has_more(events, of_events) or _has_more(edges, most_in_edges):
        return True
    return repeated_in_heading(trace, _without(_without(text, events), edges))


def _has_more(text: bytes, taken: int) -> bool:
    """Whether a text may have more than `taken` keys whose values are not null; texts that hold `":` add to them."""
    letters = np.frombuffer(text, np.uint8)
    colon, before = letters[1:] == _COLON, letters[:-1]
    if np.count_nonzero(colon & (before <= _LARGEST_BLANK)):
        return text.count(b":") > taken
    keys = int(np.count_nonzero(colon & (before == _QUOTE)))
    return keys > taken and keys - text.count(b'":null') - text.count(b'": null') > taken


def _without(text: bytes, part: bytes) -> bytes:
    """The text with an empty list in place of a part; where an equal part stands before it, in place of that one."""
    return text.replace(part, b"[]", 1) if part else text


def repeated_in_heading(trace: Trace, heading: bytes) -> bool:
    """Whether a trace may repeat a key in `heading`, its text with empty lists of events and edges."""
    if heading.count(b":") <= _taken(trace):
        return False
    keys = [text for text, colon in _TEXT.findall(heading) if colon]
    return len(set(keys)) < len(keys) or b"\\u" in heading


def repeated_key(text: bytes, file: str, line: int) -> Problem | None:
    """The problem of a trace that repeats a key with a value other than null; `text` is one that a decoder took."""
    try:
        document = json.loads(text, object_pairs_hook=_Object, parse_int=str, parse_float=str, strict=False)
    except ValueError:  # the decoder names what is wrong
        return None
    if not isinstance(document, _Object):
        return None
    trace = next((str(value) for key, value in reversed(document) if key == "trace_id"), "")
    problem = functools.partial(_problem, file=file, line=line, trace=trace)
    twice = _hidden(document, Trace.__struct_fields__)
    if twice is not None:
        return problem(twice)
    for name, value in document:
        if name in _MAPS and isinstance(value, _Object):
            twice = _hidden(value, None)
            if twice is not None:
                return problem(f"{name}.{twice}")
        elif name in _LISTS and isinstance(value, list):
            for i, element in enumerate(value):
                twice = _hidden(element, _LISTS[name]) if isinstance(element, _Object) else None
                if twice is not None:
                    return problem(f"{name}[{i}].{twice}")
    return None


def _hidden(pairs: _Object, known: Sequence[str] | None) -> str | None:
    """A key, one of `known` where stated, whose value is not null and hidden by a later one of the same key."""
    if len(dict(pairs)) == len(pairs):
        return None
    seen: set[str] = set()
    for key, value in reversed(pairs):
        if key in seen and value is not None and (known is None or key in known):
            return key
        seen.add(key)
    return None


def _problem(field: str, file: str, line: int, trace: str) -> Problem:
    return Problem(
        "repeated-key", file, line, printable(field, 200), "stated twice", "each key once in an object", trace
    )
