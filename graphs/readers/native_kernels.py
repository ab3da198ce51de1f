"""Compiled loops over the text of native traces: where the values of each event stand, and which events edges join.

They take the plain case only: objects without objects within them but for the trace's own lists, strings without
escapes, numbers that `graphs.readers.number_kernel` is sure of. What they do not take, right or wrong, they refuse with
the whole trace, and `graphs.readers.native_structs` reads it or names its fault. So nothing here knows an error's
message, and what is accepted here would be accepted there with the same values.

A position is a byte of `text`; -1 says that something was refused.
"""

from __future__ import annotations

import numpy as np

from graphs.readers.loops import loop
from graphs.readers.number_kernel import number

__all__ = [
    "ABSENT",
    "BOOL",
    "COUNT",
    "FLOAT",
    "KIND",
    "LABEL",
    "NAME",
    "SLOTS",
    "TEXT",
    "TIME",
    "copy_texts",
    "mark_texts",
    "scan",
]

TEXT, NAME, LABEL, KIND, BOOL, FLOAT, COUNT, TIME = range(8)
"""What a key of an event holds: a text; one that is not empty; a text or an integer; the name of a type; true or false;
a number within `largest`; an integer from 0 to `most`; a number from 0."""

SLOTS = 128
"""Places of a table of names, a power of two."""

ABSENT = -1
"""Where a table of names has none; the end of an edge that is no event."""

_MOST_PROBES = 64  # of ids that share a slot: a log that makes them collide is read the other way
_QUOTE, _BACKSLASH, _BLANK, _COMMA, _COLON, _MINUS, _ZERO, _NINE = (np.uint8(ord(c)) for c in '"\\ ,:-09')
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = (np.uint8(ord(c)) for c in "{}[]")
_NEW_LINE, _RETURN, _TAB = np.uint8(10), np.uint8(13), np.uint8(9)
_TRUE, _FALSE, _NULL, _EVENTS, _EDGES = (
    np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null", b"events", b"edges")
)
_FIRST_HASH, _HASH_FACTOR = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a
_ONE = np.uint64(1)


@loop
def _skip_blanks(text, at, end):  # type: ignore[no-untyped-def]  # compiled for each type of array
    while at < end and (text[at] == _BLANK or text[at] == _NEW_LINE or text[at] == _RETURN or text[at] == _TAB):
        at += 1
    return at


@loop
def _is(text, at, end, word):  # type: ignore[no-untyped-def]
    if at + len(word) > end:
        return False
    for i in range(len(word)):  # noqa: SIM110 (Numba takes no generators)
        if text[at + i] != word[i]:
            return False
    return True


@loop
def _end_of_string(text, at, end):  # type: ignore[no-untyped-def]
    """Where the quote stands that closes the string whose content begins at `at`."""
    while at < end:
        c = text[at]
        if c == _QUOTE:
            return at
        if c == _BACKSLASH or c < _BLANK:
            return -1
        at += 1
    return -1


@loop
def _find(text, start, stop, slots, names, ends):  # type: ignore[no-untyped-def]
    """The number of a name in a table of names, or `ABSENT`; `names` holds them one after another up to `ends`."""
    length = stop - start
    if length == 0:
        return ABSENT
    slot = (7 * length + 31 * np.int64(text[start]) + 3 * np.int64(text[stop - 1])) & (SLOTS - 1)
    while slots[slot] != ABSENT:
        found = np.int64(slots[slot])
        begin = np.int64(ends[found - 1]) if found else 0
        if ends[found] - begin == length:
            same = True
            for i in range(length):
                if names[begin + i] != text[start + i]:
                    same = False
                    break
            if same:
                return found
        slot = (slot + 1) & (SLOTS - 1)
    return ABSENT


@loop
def _skip_scalar(text, at, end):  # type: ignore[no-untyped-def]
    """Behind a string, number or word that no column takes."""
    c = text[at]
    if c == _QUOTE:
        stop = _end_of_string(text, at + 1, end)
        return stop + 1 if stop >= 0 else -1
    if _is(text, at, end, _TRUE) or _is(text, at, end, _NULL):
        return at + 4
    if _is(text, at, end, _FALSE):
        return at + 5
    return number(text, at, end)[0]


@loop
def _skip_value(text, at, end):  # type: ignore[no-untyped-def]
    """Behind any value, of which nothing but its length is looked at: whoever decodes the rest checks it."""
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


@loop
def _scan_events(  # type: ignore[no-untyped-def]
    text, at, end, row, keys, kinds, places, required, types, largest, most, present, codes, starts, stops, numbers
):
    """The list of events that starts at `at`, into the rows from `row` on: the position behind it, and the next row."""
    at = _skip_blanks(text, at + 1, end)
    if at < end and text[at] == _CLOSE_LIST:
        return at + 1, row
    while True:
        if at >= end or text[at] != _OPEN:
            return -1, row
        at = _skip_blanks(text, at + 1, end)
        seen, given = np.uint64(0), np.uint64(0)
        while True:
            if at >= end or text[at] != _QUOTE:
                return -1, row
            stop = _end_of_string(text, at + 1, end)
            if stop < 0:
                return -1, row
            key = _find(text, at + 1, stop, keys[0], keys[1], keys[2])
            at = _skip_blanks(text, stop + 1, end)
            if at >= end or text[at] != _COLON:
                return -1, row
            at = _skip_blanks(text, at + 1, end)
            if at >= end:
                return -1, row
            if key == ABSENT:
                at = _skip_scalar(text, at, end)
                if at < 0:
                    return -1, row
            else:
                bit = _ONE << np.uint64(key)
                if seen & bit:
                    return -1, row
                seen |= bit
                kind, place = kinds[key], places[key]
                if text[at] == _NULL[0]:
                    if not _is(text, at, end, _NULL):
                        return -1, row
                    at += 4
                elif kind <= NAME or (kind == LABEL and text[at] == _QUOTE):
                    stop = _end_of_string(text, at + 1, end) if text[at] == _QUOTE else -1
                    if stop < 0 or (kind == NAME and stop == at + 1):
                        return -1, row
                    starts[place, row], stops[place, row] = at + 1, stop
                    at, given = stop + 1, given | bit
                elif kind == KIND:
                    stop = _end_of_string(text, at + 1, end) if text[at] == _QUOTE else -1
                    if stop < 0:
                        return -1, row
                    code = _find(text, at + 1, stop, types[0], types[1], types[2])
                    if code == ABSENT:
                        return -1, row
                    codes[row] = code
                    at, given = stop + 1, given | bit
                elif kind == BOOL:
                    if _is(text, at, end, _TRUE):
                        numbers[place, row], at = 1.0, at + 4
                    elif _is(text, at, end, _FALSE):
                        numbers[place, row], at = 0.0, at + 5
                    else:
                        return -1, row
                    given |= bit
                else:
                    stop, value, whole = number(text, at, end)
                    if stop < 0:
                        return -1, row
                    if kind == LABEL:
                        if not whole or stop - at > 18:
                            return -1, row
                        starts[place, row], stops[place, row] = at, stop
                    else:
                        least = -largest if kind == FLOAT else 0.0
                        if not least <= value or (kind == FLOAT and value > largest):
                            return -1, row
                        if kind == COUNT and (value > most or np.floor(value) < value):
                            return -1, row
                        numbers[place, row] = value
                    at, given = stop, given | bit
            at = _skip_blanks(text, at, end)
            if at >= end:
                return -1, row
            c = text[at]
            at += 1
            if c == _CLOSE:
                break
            if c != _COMMA:
                return -1, row
            at = _skip_blanks(text, at, end)
        if given & required != required:
            return -1, row
        present[row] = given
        row += 1
        at = _skip_blanks(text, at, end)
        if at >= end:
            return -1, row
        c = text[at]
        at += 1
        if c == _CLOSE_LIST:
            return at, row
        if c != _COMMA:
            return -1, row
        at = _skip_blanks(text, at, end)


@loop
def _scan_edges(text, at, end, row, keys, types, codes, starts, stops):  # type: ignore[no-untyped-def]
    """The list of edges that starts at `at`: as `_scan_events`; both ends and the type must be there."""
    at = _skip_blanks(text, at + 1, end)
    if at < end and text[at] == _CLOSE_LIST:
        return at + 1, row
    while True:
        if at >= end or text[at] != _OPEN:
            return -1, row
        at = _skip_blanks(text, at + 1, end)
        seen = 0
        while True:
            if at >= end or text[at] != _QUOTE:
                return -1, row
            stop = _end_of_string(text, at + 1, end)
            if stop < 0:
                return -1, row
            key = _find(text, at + 1, stop, keys[0], keys[1], keys[2])
            at = _skip_blanks(text, stop + 1, end)
            if at >= end or text[at] != _COLON:
                return -1, row
            at = _skip_blanks(text, at + 1, end)
            if at >= end:
                return -1, row
            if key == ABSENT:
                at = _skip_scalar(text, at, end)
                if at < 0:
                    return -1, row
            else:
                stop = _end_of_string(text, at + 1, end) if text[at] == _QUOTE else -1
                if stop < 0 or seen & (1 << key):
                    return -1, row
                seen |= 1 << key
                if key < 2:
                    starts[key, row], stops[key, row] = at + 1, stop
                else:
                    code = _find(text, at + 1, stop, types[0], types[1], types[2])
                    if code == ABSENT:
                        return -1, row
                    codes[row] = code
                at = stop + 1
            at = _skip_blanks(text, at, end)
            if at >= end:
                return -1, row
            c = text[at]
            at += 1
            if c == _CLOSE:
                break
            if c != _COMMA:
                return -1, row
            at = _skip_blanks(text, at, end)
        if seen != 7:
            return -1, row
        row += 1
        at = _skip_blanks(text, at, end)
        if at >= end:
            return -1, row
        c = text[at]
        at += 1
        if c == _CLOSE_LIST:
            return at, row
        if c != _COMMA:
            return -1, row
        at = _skip_blanks(text, at, end)


@loop
def _slot_of(text, start, stop, slots, mask, starts, stops):  # type: ignore[no-untyped-def]
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
def _join(text, events, edges, starts, stops, from_, to, slots, ends):  # type: ignore[no-untyped-def]
    """The rows of the events that edges join, into `ends`; whether no two events have one id."""
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
            slot = _slot_of(text, from_[side, row], to[side, row], slots, mask, starts, stops)
            if slot < 0:
                return False
            ends[side, row] = slots[slot]
    return True


@loop
def scan(  # type: ignore[no-untyped-def]
    text, bounds, keys, kinds, places, required, types, largest, most, present, codes, starts, stops, numbers,
    edge_keys, edge_types, edge_codes, edge_starts, edge_stops, ends, id_place, slots, lists, counts,
):  # fmt: skip
    """Every trace of a text: its events and edges into rows of columns, and where its two lists stand.

    Args:
      text: uint8; what stands in it is UTF-8.
      bounds: int64 [t, 2], where each trace begins and ends.
      keys, types, edge_keys, edge_types: tables of names; the number of a name is the code of a type, the number of an
        event's key, and of an edge's keys 0 for `src`, 1 for `dst`, 2 for `type`.
      kinds, places: by key, what it holds and in which row of `starts` and `stops` or `numbers`.
      required: uint64, the bits of the keys that an event must have; present: uint64 [e], of those that it has.
      largest, most: of a number and of a count.
      codes: int8 [e], starts, stops: int32 [texts, e], numbers: float64 [numbers, e].
      edge_codes: int8 [k], edge_starts, edge_stops: int32 [2, k], ends: int32 [2, k].
      id_place: the place of the events' ids; slots: int32, a power of two, at least 4 times the events of a trace.
      lists: int64 [t, 4], set to the bounds of the lists of events and of edges, 0 0 for one that is not there.
      counts: int64 [t, 2], set to the numbers of events and edges; 0 0 for a trace that is refused.
    """
    event, edge = 0, 0
    for i in range(len(bounds)):
        at, end = _skip_blanks(text, bounds[i, 0], bounds[i, 1]), bounds[i, 1]
        lists[i] = 0
        next_event, next_edge = event, edge
        taken = at < end and text[at] == _OPEN
        at += 1
        while taken:
            at = _skip_blanks(text, at, end)
            stop = _end_of_string(text, at + 1, end) if at < end and text[at] == _QUOTE else -1
            if stop < 0:
                taken = False
                break
            is_events = stop - at == 7 and _is(text, at + 1, end, _EVENTS)
            is_edges = stop - at == 6 and _is(text, at + 1, end, _EDGES)
            at = _skip_blanks(text, stop + 1, end)
            if at >= end or text[at] != _COLON:
                taken = False
                break
            at = _skip_blanks(text, at + 1, end)
            begin = at
            if is_events:
                if at >= end or text[at] != _OPEN_LIST or lists[i, 1] > 0:
                    taken = False
                    break
                at, next_event = _scan_events(
                    text, at, end, event, keys, kinds, places, required, types, largest, most,
                    present, codes, starts, stops, numbers,
                )  # fmt: skip
                lists[i, 0], lists[i, 1] = begin, at
            elif is_edges and at < end and text[at] == _OPEN_LIST:
                if lists[i, 3] > 0:
                    taken = False
                    break
                at, next_edge = _scan_edges(
                    text, at, end, edge, edge_keys, edge_types, edge_codes, edge_starts, edge_stops
                )
                lists[i, 2], lists[i, 3] = begin, at
            else:
                if is_edges and lists[i, 3] > 0:
                    taken = False
                    break
                at = _skip_value(text, at, end)
            if at < 0:
                taken = False
                break
            at = _skip_blanks(text, at, end)
            if at >= end or (text[at] != _COMMA and text[at] != _CLOSE):
                taken = False
                break
            at += 1
            if text[at - 1] == _CLOSE:
                break
        if taken and next_event > event:
            taken = _join(
                text, (event, next_event), (edge, next_edge), starts[id_place], stops[id_place],
                edge_starts, edge_stops, slots, ends,
            )  # fmt: skip
        if taken:
            counts[i, 0], counts[i, 1] = next_event - event, next_edge - edge
            event, edge = next_event, next_edge
        else:
            counts[i] = 0
    return event, edge


@loop
def mark_texts(starts, stops, present, bit, offsets, valid):  # type: ignore[no-untyped-def]
    """Where each text of a column ends among all of them, int32 [e + 1], and the bits of those that are there."""
    size = 0
    valid[:] = 0
    for row in range(len(present)):
        offsets[row] = size
        if present[row] & bit:
            size += stops[row] - starts[row]
            valid[row >> 3] |= np.uint8(1 << (row & 7))
    offsets[len(present)] = size


@loop
def copy_texts(text, starts, offsets, out):  # type: ignore[no-untyped-def]
    """The texts of a column one after another, each as long as `offsets` says."""
    for row in range(len(offsets) - 1):
        shift = np.int64(starts[row]) - offsets[row]
        for at in range(offsets[row], offsets[row + 1]):
            out[at] = text[at + shift]
