"""Compiled loops over the text of native traces: where the values of each event stand, and which events edges join.

They take the plain case only: objects without objects within them but for the trace's own lists, strings without
escapes, numbers that `graphs.formats.native.compiled.numbers` is sure of. What they do not take, right or wrong, they
refuse with the whole trace, and `graphs.formats.native.structs` reads it or names its fault. So nothing here knows an
error's message, and what is accepted here would be accepted there with the same values.

A position is a byte of `text`; -1 says that something was refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs.formats.native.compiled.compiling import loop, step
from graphs.formats.native.compiled.numbers import number
from graphs.formats.native.compiled.scan_tables import (
    ABSENT,
    BOOL,
    COUNT,
    FLOAT,
    KIND,
    LABEL,
    LIST,
    NAME,
    SLOTS,
    Format,
    Links,
    Names,
    Rows,
)

__all__ = ["scan"]

_MOST_PROBES = 64  # of ids that share a slot: a log that makes them collide is read the other way
_QUOTE, _BACKSLASH, _BLANK, _COMMA, _COLON = (np.uint8(ord(c)) for c in '"\\ ,:')
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = (np.uint8(ord(c)) for c in "{}[]")
_NEW_LINE, _RETURN, _TAB = np.uint8(10), np.uint8(13), np.uint8(9)
_TRUE, _FALSE, _NULL, _EVENTS, _EDGES = (
    np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null", b"events", b"edges")
)
_FIRST_HASH, _HASH_FACTOR = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a
_ONE = np.uint64(1)


@step
def _skip_blanks(text: Any, at: int, end: int) -> Any:
    while at < end and (text[at] == _BLANK or text[at] == _NEW_LINE or text[at] == _RETURN or text[at] == _TAB):
        at += 1
    return at


@step
def _is(text: Any, at: int, end: int, word: Any) -> Any:
    if at + len(word) > end:
        return False
    for i in range(len(word)):  # noqa: SIM110 (Numba takes no generators)
        if text[at + i] != word[i]:
            return False
    return True


@step
def _end_of_string(text: Any, at: int, end: int) -> Any:
    """Where the quote stands that closes the string whose quote stands at `at`."""
    if at >= end or text[at] != _QUOTE:
        return -1
    at += 1
    while at < end:
        c = text[at]
        if c == _QUOTE:
            return at
        if c == _BACKSLASH or c < _BLANK:
            return -1
        at += 1
    return -1


@step
def _find(text: Any, start: int, stop: int, names: Names) -> Any:
    """The number of the name that stands from `start` to before `stop`, or `ABSENT`."""
    length = stop - start
    if length == 0:
        return ABSENT
    slot = (7 * length + 31 * np.int64(text[start]) + 3 * np.int64(text[stop - 1])) & (SLOTS - 1)
    while names.slots[slot] != ABSENT:
        name = np.int64(names.slots[slot])
        begin = np.int64(names.ends[name - 1]) if name else 0
        if names.ends[name] - begin == length:
            same = True
            for i in range(length):
                if names.text[begin + i] != text[start + i]:
                    same = False
                    break
            if same:
                return name
        slot = (slot + 1) & (SLOTS - 1)
    return ABSENT


@loop
def _skip_scalar(text: Any, at: int, end: int) -> Any:
    """Behind a string, number or word that no column takes."""
    if text[at] == _QUOTE:
        stop = _end_of_string(text, at, end)
        return stop + 1 if stop >= 0 else -1
    if _is(text, at, end, _TRUE) or _is(text, at, end, _NULL):
        return at + 4
    if _is(text, at, end, _FALSE):
        return at + 5
    return number(text, at, end)[0]


@loop
def _skip_value(text: Any, at: int, end: int) -> Any:
    """The position after any value. Only its length is determined here; a later decoder checks its content."""
    depth = 0
    while at < end:
        c = text[at]
        if c == _QUOTE:
            at += 1
            while at < end and text[at] != _QUOTE:
                at += 2 if text[at] == _BACKSLASH else 1
            if depth == 0:
                return min(at + 1, end)
        elif c in (_OPEN, _OPEN_LIST):
            depth += 1
        elif c in (_CLOSE, _CLOSE_LIST):
            if depth < 2:
                return at + depth
            depth -= 1
        elif c == _COMMA and depth == 0:
            return at
        at += 1
    return end


@step
def _into(text: Any, at: int, end: int, opening: Any) -> Any:
    """Behind the bracket or brace that opens at `at`, and behind blanks."""
    return _skip_blanks(text, at + 1, end) if at < end and text[at] == opening else -1


@step
def _key(text: Any, at: int, end: int, names: Names) -> Any:
    """The number of the key that stands at `at`, and where its value begins."""
    stop = _end_of_string(text, at, end)
    if stop < 0:
        return ABSENT, -1
    key = _find(text, at + 1, stop, names)
    at = _skip_blanks(text, stop + 1, end)
    if at >= end or text[at] != _COLON:
        return ABSENT, -1
    at = _skip_blanks(text, at + 1, end)
    return key, at if at < end else -1


@step
def _next(text: Any, at: int, end: int, closing: Any) -> Any:
    """Behind the comma or the closing bracket or brace that follows a value, and whether it was closing."""
    at = _skip_blanks(text, at, end)
    if at >= end:
        return -1, True
    if text[at] == closing:
        return at + 1, True
    return _skip_blanks(text, at + 1, end) if text[at] == _COMMA else -1, False


@step
def _scan_value(text: Any, at: int, end: int, key: int, row: int, form: Format, rows: Rows) -> Any:
    """The value of a key, into its row: the position behind it, and whether it is one and not null."""
    kind, place = form.kinds[key], form.places[key]
    if text[at] == _NULL[0]:
        return at + 4 if _is(text, at, end, _NULL) else -1, False
    if kind == LIST:
        return -1, False
    if kind <= NAME or kind == KIND or (kind == LABEL and text[at] == _QUOTE):
        stop = _end_of_string(text, at, end)
        if stop < 0 or (kind == NAME and stop == at + 1):
            return -1, False
        if kind == KIND:
            code = _find(text, at + 1, stop, form.types)
            rows.codes[row] = code
            return stop + 1 if code != ABSENT else -1, True
        rows.starts[place, row], rows.stops[place, row] = at + 1, stop
        return stop + 1, True
    if kind == BOOL:
        true = _is(text, at, end, _TRUE)
        rows.numbers[place, row] = 1.0 if true else 0.0
        if true:
            return at + 4, True
        return at + 5 if _is(text, at, end, _FALSE) else -1, True
    stop, value, whole = number(text, at, end)
    if stop < 0:
        return -1, False
    if kind == LABEL:
        if not whole or stop - at > 18:
            return -1, False
        rows.starts[place, row], rows.stops[place, row] = at, stop
        return stop, True
    if kind == FLOAT:
        within = -form.largest <= value <= form.largest
    elif kind == COUNT:
        within = 0.0 <= value <= form.most and not np.floor(value) < value
    else:
        within = value >= 0.0
    rows.numbers[place, row] = value
    return stop if within else -1, True


@loop
def _scan_events(text: Any, at: int, end: int, row: int, form: Format, rows: Rows) -> Any:
    """The list of events that stands at `at`, into the rows from `row` on: the position behind it, and the next row."""
    at = _into(text, at, end, _OPEN_LIST)
    if 0 <= at < end and text[at] == _CLOSE_LIST:
        return at + 1, row
    closed = False
    while not closed:
        at = _into(text, at, end, _OPEN)
        if at < 0:
            return -1, row
        seen, given = np.uint64(0), np.uint64(0)
        whole = False
        while not whole:
            key, at = _key(text, at, end, form.keys)
            if at < 0:
                return -1, row
            if key == ABSENT:
                at = _skip_scalar(text, at, end)
            else:
                bit = _ONE << np.uint64(key)
                at, some = _scan_value(text, at, end, key, row, form, rows)
                if seen & bit:  # of a key that stands twice the decoder takes the last
                    return -1, row
                seen |= bit
                if some:
                    given |= bit
            if at < 0:
                return -1, row
            at, whole = _next(text, at, end, _CLOSE)
            if at < 0:
                return -1, row
        if given & form.required != form.required:
            return -1, row
        rows.present[row] = given
        row += 1
        at, closed = _next(text, at, end, _CLOSE_LIST)
        if at < 0:
            return -1, row
    return at, row


@loop
def _scan_edges(text: Any, at: int, end: int, row: int, form: Format, links: Links) -> Any:
    """Scan the list of edges at `at`; an edge must have both ends and a type."""
    at = _into(text, at, end, _OPEN_LIST)
    if 0 <= at < end and text[at] == _CLOSE_LIST:
        return at + 1, row
    closed = False
    while not closed:
        at = _into(text, at, end, _OPEN)
        if at < 0:
            return -1, row
        seen = 0
        whole = False
        while not whole:
            key, at = _key(text, at, end, form.edge_keys)
            if at < 0:
                return -1, row
            if key == ABSENT:
                at = _skip_scalar(text, at, end)
            else:
                stop = _end_of_string(text, at, end)
                if stop < 0 or seen & (1 << key):
                    return -1, row
                seen |= 1 << key
                if key < 2:
                    links.starts[key, row], links.stops[key, row] = at + 1, stop
                else:
                    links.codes[row] = code = _find(text, at + 1, stop, form.edge_types)
                    if code == ABSENT:
                        return -1, row
                at = stop + 1
            if at < 0:
                return -1, row
            at, whole = _next(text, at, end, _CLOSE)
            if at < 0:
                return -1, row
        if seen != 7:
            return -1, row
        row += 1
        at, closed = _next(text, at, end, _CLOSE_LIST)
        if at < 0:
            return -1, row
    return at, row


@step
def _slot_of(text: Any, start: int, stop: int, slots: Any, mask: int, starts: Any, stops: Any) -> Any:
    """The slot of `slots` that holds the row of this id, or the free one in which it belongs; -1 after many others."""
    value = _FIRST_HASH
    for i in range(start, stop):
        value = (value ^ np.uint64(text[i])) * _HASH_FACTOR
    slot = np.int64(value ^ (value >> np.uint64(32))) & mask
    length = stop - start
    for _ in range(_MOST_PROBES):
        row = slots[slot]
        if row == ABSENT:
            return slot
        begin = starts[row]
        if stops[row] - begin == length:
            same = True
            for i in range(length):
                if text[begin + i] != text[start + i]:
                    same = False
                    break
            if same:
                return slot
        slot = (slot + 1) & mask
    return -1


@loop
def _join(text: Any, events: Any, edges: Any, id_place: int, rows: Rows, links: Links, slots: Any) -> Any:
    """The rows of the events that edges join, into `links.rows`; whether no two events have one id."""
    starts, stops = rows.starts[id_place], rows.stops[id_place]
    mask = 1
    while mask < 2 * (events[1] - events[0]):
        mask *= 2
    mask -= 1
    slots[: mask + 1] = ABSENT
    for row in range(events[0], events[1]):
        slot = _slot_of(text, starts[row], stops[row], slots, mask, starts, stops)
        if slot < 0 or slots[slot] != ABSENT:
            return False
        slots[slot] = row
    for row in range(edges[0], edges[1]):
        for side in range(2):
            slot = _slot_of(text, links.starts[side, row], links.stops[side, row], slots, mask, starts, stops)
            if slot < 0:
                return False
            links.rows[side, row] = slots[slot]
    return True


@loop
def _scan_trace(
    text: Any, at: int, end: int, event: int, edge: int, form: Format, rows: Rows, links: Links, lists: Any
) -> Any:
    """A trace's events and edges, into the rows from `event` and `edge` on: whether it is taken, and the next rows."""
    at = _into(text, _skip_blanks(text, at, end), end, _OPEN)
    whole = False
    while not whole:
        stop = _end_of_string(text, at, end) if at >= 0 else -1
        if stop < 0:
            return False, event, edge
        is_events = stop - at == 7 and _is(text, at + 1, end, _EVENTS)
        is_edges = stop - at == 6 and _is(text, at + 1, end, _EDGES)
        _, at = _key(text, at, end, form.edge_keys)
        if at < 0 or (is_events and lists[1] > 0) or (is_edges and lists[3] > 0):
            return False, event, edge
        begin = at
        if is_events:
            at, event = _scan_events(text, at, end, event, form, rows)
            lists[0], lists[1] = begin, at
        elif is_edges and text[at] == _OPEN_LIST:
            at, edge = _scan_edges(text, at, end, edge, form, links)
            lists[2], lists[3] = begin, at
        else:
            at = _skip_value(text, at, end)
        if at < 0:
            return False, event, edge
        at, whole = _next(text, at, end, _CLOSE)
    return at >= 0, event, edge


@loop
def scan(
    text: Any, bounds: Any, form: Format, rows: Rows, links: Links, slots: Any, lists: Any, counts: Any
) -> tuple[int, int]:
    """Every trace of a text: its events and edges into rows, and where its two lists stand.

    Args:
      text: uint8; what stands in it is UTF-8.
      bounds: int64 [t, 2], where each trace begins and ends.
      slots: int32, a power of two, at least 4 times the events of a trace.
      lists: int64 [t, 4], set to the bounds of the lists of events and of edges, 0 0 for one that is not there.
      counts: int64 [t, 2], set to the numbers of events and edges; 0 0 for a trace that is refused.

    Returns:
      The numbers of all events and edges.
    """
    event, edge = 0, 0
    lists[:], counts[:] = 0, 0
    for i in range(len(bounds)):
        taken, next_event, next_edge = _scan_trace(
            text, bounds[i, 0], bounds[i, 1], event, edge, form, rows, links, lists[i]
        )
        if taken and next_event > event:
            taken = _join(text, (event, next_event), (edge, next_edge), form.id_place, rows, links, slots)
        if taken:
            counts[i, 0], counts[i, 1] = next_event - event, next_edge - edge
            event, edge = next_event, next_edge
    return event, edge
