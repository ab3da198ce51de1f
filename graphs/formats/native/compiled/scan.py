"""Events and edges of native traces straight from their text, by the compiled loops of
`graphs.formats.native.compiled.kernels`.

The rest of a trace, what it has once, is left to the decoder, which checks it as on the other path. A trace that
the loops refuse has no events here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from graphs.formats.native.compiled.kernels import scan
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
    TEXT,
    TIME,
    Format,
    Links,
    Names,
    Rows,
)
from graphs.formats.native.compiled.text_columns import copy_texts, mark_texts
from graphs.formats.native.structs import Edges, Events
from graphs.formats.native.wire import EDGE_CODES, EVENT_CODES, EVENT_FIELDS
from graphs.reading.encodings import is_utf8
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT
from graphs.traces.schema import EVENT_EVIDENCE
from graphs.traces.tokens import TOKEN_COLUMNS

__all__ = ["MOST_TEXT", "NEVER_DEEPER", "Scanned", "scan_traces"]

MOST_TEXT = (1 << 31) - 1
"""Bytes of one batch: its positions are 32 bits wide."""

NEVER_DEEPER = 3
"""Objects and lists around what is scanned: the trace, its list of events or edges, and one of these."""

_KIND_OF_EVIDENCE = {"float": FLOAT, "count": COUNT, "id": NAME}
_KIND_OF = (
    dict.fromkeys(EVENT_FIELDS, TEXT)
    | {
        "id": NAME,
        "agent": NAME,
        "type": KIND,
        "t": TIME,
        "trusted": BOOL,
        "action": BOOL,
        "turn": LABEL,
    }
    | {name: _KIND_OF_EVIDENCE[key.kind] for name, key in EVENT_EVIDENCE.items()}
    | dict.fromkeys(TOKEN_COLUMNS, LIST)
)
_IN_TEXT = (TEXT, NAME, LABEL)
_TEXTS = [name for name in EVENT_FIELDS if _KIND_OF[name] in _IN_TEXT]
_NUMBERS = [name for name in EVENT_FIELDS if _KIND_OF[name] not in (*_IN_TEXT, KIND, LIST)]
_PLACE = {name: i for names in (_TEXTS, _NUMBERS) for i, name in enumerate(names)} | dict.fromkeys(
    ("type", *TOKEN_COLUMNS), 0
)
_BIT = {name: np.uint64(1 << i) for i, name in enumerate(EVENT_FIELDS)}
_OPEN = ord("{")
_SHORTEST = len('{"src":"","dst":"","type":"spawn"}')


class Scanned(NamedTuple):
    """Columns of a batch; `headers` are the texts of the traces with empty lists in place of their events and edges."""

    headers: list[bytes]
    events: Events
    edges: Edges


def scan_traces(records: Sequence[bytes]) -> Scanned | None:
    """The events and edges of traces, of which those that are refused have none; None if all are.

    The records together are at most `MOST_TEXT` bytes.
    """
    whole = records[0] if len(records) == 1 else b"".join(records)
    if not is_utf8(whole):
        return None
    text = np.frombuffer(whole, np.uint8)
    ends = np.cumsum([len(record) for record in records])
    bounds = np.stack([ends - [len(record) for record in records], ends], axis=1)
    objects = min(int(np.count_nonzero(text == _OPEN)), len(text) // _SHORTEST + 1)
    lists, counts = np.empty((len(records), 4), np.int64), np.empty((len(records), 2), np.int64)
    slots = np.empty(4 << objects.bit_length(), np.int32)
    starts, stops = np.empty((2, len(_TEXTS), objects), np.int32)
    numbers = np.empty((len(_NUMBERS), objects))
    rows = Rows(np.empty(objects, np.uint64), np.empty(objects, np.int8), starts, stops, numbers)
    links = Links(np.empty(objects, np.int8), *np.empty((3, 2, objects), np.int32))
    n, k = scan(text, bounds, _FORMAT, rows, links, slots, lists, counts)
    if not n:
        return None
    present = rows.present[:n]
    some = np.bitwise_or.reduce(present)
    fields: dict[str, pa.Array | np.ndarray] = {}
    for name, start, stop in zip(_TEXTS, starts, stops, strict=True):
        if some & _BIT[name]:
            fields[name] = _texts(text, start, stop, present, _BIT[name])
    for name, column in zip(_NUMBERS, numbers, strict=True):
        if some & _BIT[name]:
            where = (present & _BIT[name]) != 0
            values = np.where(where, column[:n], np.nan)
            is_bool = _KIND_OF[name] == BOOL
            fields[name] = pa.array(values == 1, mask=~where) if is_bool else values
    sound = np.ones(len(records), bool)
    senders, receivers = links.rows[:, :k].copy()
    return Scanned(
        [_header(record, *places) for record, places in zip(records, (lists - bounds[:, :1]).tolist(), strict=True)],
        Events(counts[:, 0], rows.codes[:n].astype(np.int32), fields, fields.pop("turn", None), sound),
        Edges(counts[:, 1], senders, receivers, links.codes[:k].astype(np.int32), sound),
    )


def _header(record: bytes, events: int, after_events: int, edges: int, after_edges: int) -> bytes:
    """A record without its events and edges; the bounds of a list that is not there are not positive."""
    lists = sorted([(events, after_events), (edges, after_edges)])
    pieces, at = [], 0
    for start, stop in lists:
        if stop > 0:
            pieces.append(record[at:start])
            at = stop
    return b"[]".join([*pieces, record[at:]])


def _texts(text: np.ndarray, starts: np.ndarray, stops: np.ndarray, present: np.ndarray, bit: np.uint64) -> pa.Array:
    n = len(present)
    offsets, valid = np.empty(n + 1, np.int32), np.empty((n + 7) // 8, np.uint8)
    mark_texts(starts, stops, present, bit, offsets, valid)
    content = np.empty(offsets[n], np.uint8)
    copy_texts(text, starts, offsets, content)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(content), pa.py_buffer(valid))


def _names(names: Iterable[str]) -> Names:
    """Names by number, in the table that the kernels search."""
    names = list(names)
    slots = np.full(SLOTS, ABSENT, np.int16)
    for number, name in enumerate(names):
        slot = (7 * len(name) + 31 * ord(name[0]) + 3 * ord(name[-1])) % SLOTS
        while slots[slot] != ABSENT:
            slot = (slot + 1) % SLOTS
        slots[slot] = number
    text = np.frombuffer("".join(names).encode(), np.uint8)
    return Names(slots, text, np.cumsum([len(name) for name in names]).astype(np.int32))


def _by_code(codes: Mapping[str, int]) -> list[str]:
    return sorted(codes, key=codes.__getitem__)


_FORMAT = Format(
    keys=_names(EVENT_FIELDS),
    kinds=np.array([_KIND_OF[name] for name in EVENT_FIELDS], np.int8),
    places=np.array([_PLACE[name] for name in EVENT_FIELDS], np.int64),
    required=_BIT["id"] | _BIT["type"] | _BIT["agent"],
    id_place=_PLACE["id"],
    types=_names(_by_code(EVENT_CODES)),
    edge_keys=_names(["src", "dst", "type"]),
    edge_types=_names(_by_code(EDGE_CODES)),
    largest=LARGEST_FLOAT,
    most=float(LARGEST_COUNT),
)
