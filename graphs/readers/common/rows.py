"""Rows of a table with their places: CSV, JSON lines or Parquet, told by content, compressed or not.

CSV cells are strings, whatever they look like (a trace named 007 is not the number 7), and an empty cell is None.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.errors import Problem, TraceError
from graphs.readers.common.encodings import wide_text
from graphs.readers.common.json_problems import JSON_ERRORS, json_problem
from graphs.readers.common.source import Source, unreadable
from graphs.text import counted, excerpt

__all__ = ["PARQUET", "Row", "column_names", "number", "read_rows"]

Row = dict[str, Any]
PARQUET = b"PAR1"
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+|(?=[ni]))(e[+-]?\d+|nan|inf|infinity)?\s*", re.ASCII | re.IGNORECASE)

_OBJECT = msgspec.json.Decoder(dict[str, Any])


def read_rows(
    table: str | Path | Source, columns: Collection[str] | None = None
) -> Iterator[tuple[int, Row | Problem]]:
    """(line, row) of each row of a table; a row that is malformed is a `Problem` in its place.

    The line is where the row ends in a CSV file, and the number of the row, from 1, in a Parquet file. `columns` names
    the ones that are wanted, which spares a Parquet file the others; rows may have more.

    Raises:
      TraceError: the table as a whole cannot be read: "unreadable", "empty-file", "not-utf-8", "bad-header",
        "bad-parquet".
    """
    source = table if isinstance(table, Source) else Source(str(table), Path(table))
    try:
        data = source.data
    except OSError as error:
        raise TraceError(unreadable(source, error)) from error
    if not data or data.isspace():
        raise TraceError(Problem("empty-file", source.name, 0, "content", "empty", "a table"))
    wide = wide_text(source.name, data)
    if wide is not None:
        raise TraceError(wide)
    if data.startswith(PARQUET):
        return _parquet(source, columns)
    return _json_lines(source) if data.lstrip().startswith(b"{") else _csv(source)


def column_names(table: Source) -> list[str]:
    """The names of a table's columns; of JSON lines, the keys of all lines in order of first appearance.

    Raises:
      TraceError: as `read_rows`; or the problem of the first row, where none can be read.
    """
    if table.data.startswith(PARQUET):
        return list(_open_parquet(table).schema_arrow.names)
    names: dict[str, None] = {}
    first: Problem | None = None
    for _, row in read_rows(table):
        if isinstance(row, Problem):
            first = first or row
        else:
            names |= dict.fromkeys(row)
            if not table.data.lstrip().startswith(b"{"):
                break
    if first is not None and not names:
        raise TraceError(first)  # no row can be read: why the first cannot says more than that columns are missing
    return list(names)


def _json_lines(source: Source) -> Iterator[tuple[int, Row | Problem]]:
    for line, _, text in source.unchecked_lines():
        refused = source.limits.refuse_record(text, source.name, line)
        if refused is not None:
            yield line, refused
            continue
        try:
            yield line, _OBJECT.decode(text)
        except JSON_ERRORS as error:
            yield line, json_problem(error, text, source.name, line)


def _csv(source: Source) -> Iterator[tuple[int, Row | Problem]]:
    try:
        text = source.data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = 1 + source.data.count(b"\n", 0, error.start)
        value = excerpt(source.data[error.start : error.start + 20])
        raise TraceError(Problem("not-utf-8", source.name, line, "content", value, "text in UTF-8")) from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if header is None:
                raise TraceError(_bad_header(source.name, reader.line_num, str(error))) from error
            yield (
                reader.line_num,
                Problem("bad-row", source.name, reader.line_num, "row", excerpt(str(error)), "a row of CSV"),
            )
            continue
        if not cells:
            continue
        if header is None:
            header = cells
            if len(set(header)) < len(header):
                raise TraceError(_bad_header(source.name, reader.line_num, header))
        elif len(cells) != len(header):
            expected = f"{counted(len(header), 'cell')}, as in the header"
            yield reader.line_num, Problem("bad-row", source.name, reader.line_num, "row", excerpt(cells), expected)
        else:
            yield (
                reader.line_num,
                {name: cell if cell != "" else None for name, cell in zip(header, cells, strict=True)},
            )


def _bad_header(file: str, line: int, value: object) -> Problem:
    return Problem("bad-header", file, line, "header", excerpt(value), "a name for each column, none twice")


def _open_parquet(source: Source) -> Any:
    try:
        return pq.ParquetFile(pa.BufferReader(source.data))
    except (pa.ArrowException, OSError) as error:
        problem = Problem("bad-parquet", source.name, 0, "content", excerpt(str(error)), "a Parquet file")
        raise TraceError(problem) from error


def _parquet(source: Source, columns: Collection[str] | None) -> Iterator[tuple[int, Row | Problem]]:
    file = _open_parquet(source)
    names = file.schema_arrow.names
    wanted = names if columns is None else [name for name in names if name in columns]
    number = 0
    try:
        for batch in file.iter_batches(columns=wanted):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (pa.ArrowException, OSError, ValueError) as error:  # a ValueError for a value that Python has no type for
        problem = Problem("bad-parquet", source.name, number + 1, "row", excerpt(str(error)), "a readable row")
        raise TraceError(problem) from error


def number(value: Any) -> float | None:
    """A number, or a text that writes one as tables do; None for anything else, true and false among it. May be NaN.

    Python reads more: "1_000" and digits of other scripts, which in a table are likelier to mean something else.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer that no float can hold
        return None
