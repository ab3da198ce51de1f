"""What a scan is given and what it fills: tables of names, the keys of an object, rows of events and of edges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = [
    "ABSENT", "BOOL", "COUNT", "FLOAT", "KIND", "LABEL", "LIST", "NAME", "SLOTS", "TEXT", "TIME", "Format", "Links",
    "Names", "Rows",
]  # fmt: skip

TEXT, NAME, LABEL, KIND, BOOL, FLOAT, COUNT, TIME, LIST = range(9)
"""What a key of an event holds: a text; one that is not empty; a text or an integer; the name of a type; true or false;
a number within `largest`; an integer from 0 to `most`; a number from 0; a list, which is refused."""

SLOTS = 128
"""Places of a table of names, a power of two."""

ABSENT = -1
"""Where a table of names has none; the end of an edge that is no event."""


class Names(NamedTuple):
    """Names with their numbers.

    Attributes:
      slots: int16 [SLOTS], the number of a name, or `ABSENT`; a name whose slot is taken stands in the next free one.
      text: uint8, the names one after another, by their numbers.
      ends: int32 [k], where each ends.
    """

    slots: np.ndarray
    text: np.ndarray
    ends: np.ndarray


class Format(NamedTuple):
    """The keys that events and edges may have.

    Attributes:
      keys: of an event; kinds, places: int [k], by key, what it holds and in which row of `Rows.starts` or `numbers`.
      required: uint64, bits of the keys that an event must have.
      id_place: the place of the events' ids.
      types, edge_types: whose numbers are the codes; edge_keys: `src`, `dst` and `type`, in this order.
      largest, most: of a number, and of a count.
    """

    keys: Names
    kinds: np.ndarray
    places: np.ndarray
    required: np.uint64
    id_place: int
    types: Names
    edge_keys: Names
    edge_types: Names
    largest: float
    most: float


class Rows(NamedTuple):
    """Events as they are found, e of them at most.

    Attributes:
      present: uint64 [e], bits of the keys that an event has.
      codes: int8 [e], types.
      starts, stops: int32 [texts, e], where texts stand.
      numbers: float64 [numbers, e]; 1 is true.
    """

    present: np.ndarray
    codes: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    numbers: np.ndarray


class Links(NamedTuple):
    """Edges as they are found, k of them at most: codes int8 [k]; int32 [2, k] of both ends, where their ids stand and
    the rows of their events, `ABSENT` for an id that none has."""

    codes: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    rows: np.ndarray
