"""Rows that are cut before the id of their trace, or have lost it: each may be of any trace."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence

from graphs.reading.source import Source
from graphs.reading.tables.csv_rows import csv_header
from graphs.reading.tables.glued_lines import are_early, pieces
from graphs.reading.tables.rows import LostRow, Row
from graphs.reading.tables.torn_lines import is_torn

__all__ = ["EarlyCuts"]

_VALUE = rb'"\s*+:\s*+"?(?!\\(?:u[0-9a-fA-F]{0,3})?\Z)[^\s"]'  # of an escape that is cut nothing is known


class EarlyCuts:
    """Tells which unreadable rows of one table have no id.

    Args:
      source: the table.
      columns: the names of its column of traces; the first that the table has counts.
    """

    def __init__(self, source: Source, columns: Collection[str]) -> None:
        self._source, self._columns = source, columns
        names = b"|".join(re.escape(column.encode()) for column in columns)
        self._states = re.compile(b'"(?:' + names + b")" + _VALUE)

    @functools.cached_property
    def _header(self) -> list[str]:
        return csv_header(self._source)

    @functools.cached_property
    def _place(self) -> int | None:
        header = self._header
        return next((header.index(column) for column in self._columns if column in header), None)

    def has(self, row: LostRow) -> bool:
        """Whether a row ends before the id of its trace, or has lost it."""
        if row.cells:
            from_id = row.cells[self._place :] if self._place is not None else ()
            return self._place is not None and (not any(from_id) or "\0" in from_id[0] or self._hides_rows(row.cells))
        if is_torn(row.text):
            return row.text.startswith(b"{") or not self._is_stated(row.text)
        return row.text.startswith(b"{") and are_early(list(pieces(row.text)), self._is_stated)

    def _hides_rows(self, cells: Sequence[str]) -> bool:
        """Whether zeros stand in place of so much that another row may have stood there whole."""
        shortest = len(self._header) + 1  # an id of one character, commas, a line break
        return any("\0" * shortest in cell for cell in cells)

    def is_glued(self, row: LostRow) -> bool:
        """Whether another row of JSON begins within this one."""
        return len(list(pieces(row.text))) > 1

    def _is_stated(self, text: bytes) -> bool:
        return self._states.search(text) is not None

    def ends_in(self, row: Row) -> bool:
        """Whether this row has no id because the file breaks off where it would begin, as `3,` does."""
        return next(reversed(row), "") in self._columns and self._source.data.endswith(b",")
