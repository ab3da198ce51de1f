"""Evidence: one optional key of a log as an array, with NaN or -1 where the log lacks the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

__all__ = ["Evidence", "numbers_of_traces"]


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
        """The entries from `start` up to but not including `stop`, None where the log has no value."""
        part = self.array[start:stop]
        absent = np.isnan(part) if part.dtype.kind == "f" else part < 0
        return [None if no else number for no, number in zip(absent.tolist(), part.tolist(), strict=True)]

    def of_row(self, row: int) -> float | None:
        """The value at one position, None where the log has none."""
        if self._array is not None:
            number = float(self._array[row])
            return None if number != number or (self._array.dtype.kind != "f" and number < 0) else number
        at = int(np.searchsorted(self._rows, row))
        return float(self._amounts[at]) if at < len(self._rows) and self._rows[at] == row else None

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


def numbers_of_traces(evidence: Mapping[str, Evidence], names: Iterable[str], traces: int) -> list[dict[str, float]]:
    """Values of per-trace evidence as one dictionary by name for each real trace.

    Time and memory are linear in the number of values.
    """
    stated: list[dict[str, float]] = [{} for _ in range(traces)]
    for name in names:
        one = evidence[name]
        for row, amount in zip(one.rows.tolist(), one.amounts.tolist(), strict=True):
            if row < traces:
                stated[row][name] = amount
    return stated
