"""Rows that are cut before the id of their trace: each may be of any trace."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection

from graphs.readers.common.source import Source
from graphs.readers.common.tables.csv_rows import csv_header
from graphs.readers.common.tables.glued_lines import are_early, pieces
from graphs.readers.common.tables.rows import LostRow, Row
from graphs.readers.common.torn_lines import is_torn

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
    def _place(self) -> int | None:
        header = csv_header(self._source)
        return next((header.index(column) for column in self._columns if column in header), None)

    def has(self, row: LostRow) -> bool:
        """Whether a row ends before the id of its trace, or has lost it."""
        if row.cells:
            return self._place is not None and not any(row.cells[self._place :])
        if is_torn(row.text):
            return row.text.startswith(b"{") or not self._is_stated(row.text)
        return row.text.startswith(b"{") and are_early(list(pieces(row.text)), self._is_stated)

    def is_glued(self, row: LostRow) -> bool:
        """Whether another row of JSON begins within this one."""
        return len(list(pieces(row.text))) > 1

    def _is_stated(self, text: bytes) -> bool:
        return self._states.search(text) is not None

    def ends_in(self, row: Row) -> bool:
        """Whether this row has no id because the file breaks off where it would begin, as `3,` does."""
        return next(reversed(row), "") in self._columns and self._source.data.endswith(b",")
