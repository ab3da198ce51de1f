"""Evidence: one optional key of a log as an array, with NaN or -1 where the log lacks the key."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from graphs.floats import shortest
from graphs.padding import pad_array
from graphs.traces.part import Heading, present
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["Evidence", "evidence_of_events", "evidence_of_traces", "numbers_of_traces"]


class Evidence:
    """One evidence key of a batch; methods take its `array`.

    A log may state a key for only some events or traces. An entry of `array` without a value is NaN (floats) or -1 (ids
    and counts). Padding has no values.

    Args:
      array: [E] or [T], NaN (floats) or -1 (ids and counts) where the log has no value.

    Examples:
      >>> import numpy as np
      >>> from graphs.traces.evidence import Evidence
      >>> value = Evidence.of(np.array([0.5, 0.0, 0.25], np.float32), np.array([True, False, True]))
      >>> value.array.tolist()
      [0.5, nan, 0.25]
      >>> value.mask.tolist()
      [True, False, True]
    """

    __slots__ = ("_amounts", "_array", "_length", "_rows")

    def __init__(self, array: np.ndarray) -> None:
        self._array: np.ndarray | None = array
        self._rows = self._amounts = np.zeros(0, np.int64)
        self._length = len(array)

    @classmethod
    def of(cls, values: np.ndarray, mask: np.ndarray) -> Evidence:
        """Evidence from numbers and a mask, [E] or [T]; the mask is True where the log has a value.

        Floats keep their dtype; integers become int32.
        """
        values = np.asarray(values)
        if values.dtype.kind == "f":
            return cls(np.where(mask, values, np.asarray(np.nan, values.dtype)))
        return cls(np.where(mask, values, -1).astype(np.int32))

    @classmethod
    def at(cls, rows: np.ndarray, amounts: np.ndarray, length: int) -> Evidence:
        """Float64 evidence of `length` entries with values only at `rows`; memory is proportional to their number."""
        new = cls(np.zeros(0))
        new._array, new._rows, new._amounts, new._length = None, rows, amounts, length
        return new

    @property
    def array(self) -> np.ndarray:
        """The numbers, padded: [E] or [T]; NaN (floats) or -1 (ids and counts) where the log has none.

        Evidence of events is float32 or int32, evidence of traces float64.
        """
        if self._array is not None:
            return self._array
        array = np.full(self._length, np.nan)
        array[self._rows] = self._amounts
        return array

    @property
    def mask(self) -> np.ndarray:
        """True where the log states the key: bool [E] or [T]."""
        array = self.array
        return ~np.isnan(array) if array.dtype.kind == "f" else array >= 0

    @property
    def rows(self) -> np.ndarray:
        """Positions with a value, ascending: int64 [N]."""
        return np.flatnonzero(self.mask) if self._array is not None else self._rows

    @property
    def amounts(self) -> np.ndarray:
        """The values at `rows`: [N]."""
        return self._array[self.rows] if self._array is not None else self._amounts

    def listed(self, start: int, stop: int) -> list[float | int | None]:
        """The entries from `start` up to but not including `stop`, None where the log has none; `shortest` floats."""
        part = shortest(self.array[start:stop])
        absent = np.isnan(part) if part.dtype.kind == "f" else part < 0
        return [None if no else number for no, number in zip(absent.tolist(), part.tolist(), strict=True)]

    def of_row(self, row: int) -> float | None:
        """The value at one position, None where the log has none."""
        if self._array is not None:
            number = float(self._array[row])
            return None if number != number or (self._array.dtype.kind != "f" and number < 0) else number
        place = int(np.searchsorted(self._rows, row))
        return float(self._amounts[place]) if place < len(self._rows) and self._rows[place] == row else None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._rows.nbytes + self._amounts.nbytes if self._array is None else self._array.nbytes

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"Evidence({len(self.rows)} of {self._length} stated)"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._array is not None:
            return Evidence, (self._array,)
        return Evidence.at, (self._rows, self._amounts, self._length)


def evidence_of_events(
    parts: list[dict[str, np.ndarray | pa.Array]], lengths: list[int], events: int
) -> dict[str, Evidence]:
    """Evidence of events by name, from the columns of parts, which are emptied.

    Args:
      parts: by part, the columns that it has.
      lengths: how many events each part has.
      events: E, padding included.
    """
    evidence: dict[str, Evidence] = {}
    texts: dict[str, list[pa.Array]] = {}
    for name, kind in ((name, key.kind) for name, key in EVENT_EVIDENCE.items()):
        columns = [part.pop(name, None) for part in parts]
        if all(column is None for column in columns):
            continue
        if kind == "id":
            nulls = (pa.nulls(n, pa.string()) for n in lengths)
            texts[name] = [none if column is None else column for column, none in zip(columns, nulls, strict=True)]
            # The ids of the key that it shares them with go first, and are numbered as without it.
            shared = texts.get(EVENT_EVIDENCE[name].ids_of, [])
            codes = pa.chunked_array([*shared, *texts[name]]).combine_chunks().dictionary_encode().indices
            own = codes.fill_null(-1).to_numpy()[sum(map(len, shared)) :]
            evidence[name] = Evidence(pad_array(own, events, -1))
            continue
        values = np.full(events, np.nan, np.float32) if kind == "float" else np.full(events, -1, np.int32)
        start = 0
        for column, n in zip(columns, lengths, strict=True):
            if column is not None:
                np.copyto(values[start : start + n], column, where=present(column))
            start += n
        evidence[name] = Evidence(values)
    return evidence


def evidence_of_traces(headings: list[Heading], traces: int) -> dict[str, Evidence]:
    """Evidence of traces by name, in the order of the log.

    Each takes memory only for the traces that state it, because a log may have any number of names.

    Args:
      headings: of all real traces.
      traces: T, padding included.
    """
    families = (
        ("rewards.", [heading.rewards for heading in headings]),
        ("costs.", [heading.costs for heading in headings]),
        ("metrics.", [heading.metrics for heading in headings]),
        ("", [heading.evidence for heading in headings]),
    )
    stated: dict[str, tuple[list[int], list[float]]] = {}
    first: dict[str, tuple[int, int]] = {}  # row and family in which a name comes first
    for number, (family, amounts) in enumerate(families):
        for names, rows in _by_names(amounts).items():
            for name in names:
                if family or name in TRACE_EVIDENCE:
                    first.setdefault(family + name, (rows[0], number))
                    known = stated.setdefault(family + name, ([], []))
                    known[0].extend(rows)
                    known[1].extend([amounts[row][name] for row in rows])
    evidence = {}
    for name in sorted(first, key=lambda name: first[name]):
        places, numbers = np.array(stated[name][0], np.int32), np.array(stated[name][1], np.float64)
        order = np.argsort(places, kind="stable")
        evidence[name] = Evidence.at(places[order], numbers[order], traces)
    return evidence


def numbers_of_traces(evidence: Mapping[str, Evidence], names: Iterable[str], traces: int) -> list[dict[str, float]]:
    """Values of per-trace evidence as one dictionary by name for each real trace.

    Time and memory are linear in the number of values.
    """
    stated: list[dict[str, float]] = [{} for _ in range(traces)]
    for name in names:
        stated_numbers = evidence[name]
        for row, amount in zip(stated_numbers.rows.tolist(), stated_numbers.amounts.tolist(), strict=True):
            if row < traces:
                stated[row][name] = amount
    return stated


def _by_names(amounts: list[dict[str, float]]) -> dict[tuple[str, ...], list[int]]:
    """Rows by the names that they state; most logs state the same in all."""
    rows = collections.defaultdict[tuple[str, ...], list[int]](list)
    for row, names in enumerate(amounts):
        if names:
            rows[tuple(names)].append(row)
    return rows
