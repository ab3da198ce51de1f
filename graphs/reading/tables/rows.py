"""Rows of a table with their places: CSV, JSON lines or Parquet, detected by content, compressed or not.

CSV cells are always strings (a trace named 007 is not the number 7), and an empty cell is None.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.errors import Problem, TraceError
from graphs.parquet.checks import checked_metadata, is_list
from graphs.parquet.unpacked import PackedError, bounded_batches, dictionary_columns, refuse_spelt_out, unpacked_bytes
from graphs.reading.encodings import wide_text
from graphs.reading.json_problems import JSON_ERRORS, is_one_record, json_problem, untyped
from graphs.reading.source import Lost, Source, unreadable
from graphs.reading.tables.csv_rows import csv_header, csv_rows
from graphs.reading.tables.ids import id_text
from graphs.text import counted, excerpt
from graphs.traces.limits import SMALL_ARCHIVE

__all__ = [
    "PARQUET", "Row", "column_names", "flat_columns", "is_csv", "is_parquet", "log_rows", "nested_names", "number",
    "open_parquet", "parquet_rows", "read_rows",
]  # fmt: skip

Row = dict[str, Any]
PARQUET = b"PAR1"
_NUMBER = re.compile(
    r"\s*+[+-]?(\d++(?:\.\d*+)?|\.\d++|(?=[ni]))(e[+-]?\d++|nan|infinity|inf)?\s*+", re.ASCII | re.IGNORECASE
)

_ROWS = 1024  # rows of Parquet converted to Python values at a time
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def log_rows(
    source: Source,
    columns: Collection[str] | None = None,
    lists: Collection[str] | None = (),
    ids: Collection[str] = (),
    reward: str = "",
) -> Iterator[tuple[int, Row]]:
    """The rows of a table that is a log. Rows that cannot be read, or the table, go into `source.lost`.

    Args:
      columns, lists, ids: as of `read_rows`.
      reward: the column of outcomes.
    """
    try:
        for line, row in read_rows(source, columns, lists, ids):
            if isinstance(row, Lost):
                about = "reward" if reward and row.problem.field == reward else row.problem.about
                source.lost[line] = row._replace(problem=dataclasses.replace(row.problem, about=about))
            else:
                yield line, row
    except TraceError as error:  # the table cannot be read, or not from here on
        source.lost[0] = Lost(error.problem)


def read_rows(
    table: str | Path | Source,
    columns: Collection[str] | None = None,
    lists: Collection[str] | None = (),
    ids: Collection[str] = (),
) -> Iterator[tuple[int, Row | Lost]]:
    """(line, row) of each row of a table; a row that is malformed is a `Lost` in its place.

    The line is where the row begins in a CSV file, and the number of the row, from 1, in a Parquet file.

    Args:
      table: the file.
      columns: those that are wanted; None for all. Of Parquet only these are read, of other tables all.
      lists: columns of Parquet that may hold lists; None allows any values in all columns.
      ids: the names that the column of traces may have. A malformed row whose trace is certain has it as its `trace`.

    Raises:
      TraceError: the table as a whole cannot be read: "unreadable", "empty-file", "not-utf-8", "bad-header",
        "bad-csv", "bad-parquet", "too-large".
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
        return _parquet(source, columns, lists)
    return _csv(source, ids) if is_csv(source) else _json_lines(source, ids)


def is_parquet(table: Source) -> bool:
    """Whether a table is Parquet; False where it cannot be read, which its reader reports."""
    try:
        return table.head(len(PARQUET)) == PARQUET
    except OSError:
        return False


def is_csv(table: Source) -> bool:
    """Whether a table is CSV, whose cells are all texts, and neither JSON lines nor Parquet."""
    return not table.data.startswith(PARQUET) and not table.data.lstrip().startswith(b"{")


def column_names(table: Source) -> list[str]:
    """The names of a table's columns; of JSON lines, the keys of all lines in order of first appearance.

    Raises:
      TraceError: as `read_rows`; or the problem of the first row, where none can be read.
    """
    if table.data.startswith(PARQUET):
        return list(open_parquet(table).schema_arrow.names)
    if table.data.strip() and not table.data.lstrip().startswith(b"{") and wide_text(table.name, table.data) is None:
        return csv_header(table)
    names: dict[str, None] = {}
    first: Problem | None = None
    for _, row in read_rows(table):
        if isinstance(row, Lost):
            first = first or row.problem
        else:
            names |= dict.fromkeys(row)
    if first is not None and not names:
        raise TraceError(first)  # the reason why no row can be read says more than "missing column"
    return list(names)


def flat_columns(table: Source, names: Collection[str]) -> list[str]:
    """Those of some columns of a table whose cells are no lists or structures, as far as its file says it."""
    if not names or not is_parquet(table):
        return list(names)
    schema = open_parquet(table).schema_arrow
    return [name for name in names if not pa.types.is_nested(schema.field(name).type)]


def nested_names(table: Source) -> set[str]:
    """The names of the columns of a Parquet file, nested ones included.

    Raises:
      TraceError: as `open_parquet`.
    """
    waiting: list[pa.Field] = list(open_parquet(table).schema_arrow)
    names = set()
    while waiting:
        field = waiting.pop()
        names.add(field.name)
        waiting += [field.type.field(i) for i in range(field.type.num_fields)]
    return names


def _json_lines(source: Source, ids: Collection[str]) -> Iterator[tuple[int, Row | Lost]]:
    names = b"|".join(re.escape(name.encode()) for name in ids)
    # A comma or the end of the object must follow: an id that was cut is another id.
    pair = re.compile(rb'"(?:' + names + rb')"\s*:\s*("(?:[^"\\]|\\.)*"|[-+.\deE]+)\s*[,}]') if ids else None
    for line, _, text in source.unchecked_lines():
        refused = source.limits.refuse_record(text, source.name, line)
        row: Row = {}
        if refused is None:
            try:
                row = _OBJECT.decode(text)
            except JSON_ERRORS as error:
                refused = json_problem(error, text, source.name, line)
                stated = untyped(text) if refused.value == "NaN" else None
                if isinstance(stated, dict) and math.inf not in map(_size, stated.values()):
                    row, refused = stated, None  # NaN is a fault of its cell, or none, as in Parquet
        if refused is None:
            yield line, row
        else:
            found = pair.findall(text) if pair is not None and is_one_record(text) else []
            trace = _id_of(found[0]) if len(found) == 1 else ""
            if refused.field != "content":  # of one cell: the row is whole
                refused = dataclasses.replace(refused, trace=refused.trace or trace)
            yield line, Lost(refused, text, trace)


def _size(cell: Any) -> float:
    return abs(cell) if isinstance(cell, float) else 0.0


def _id_of(value: bytes) -> str:
    try:
        return id_text(msgspec.json.decode(value))
    except JSON_ERRORS:
        return ""


def _csv(source: Source, ids: Collection[str]) -> Iterator[tuple[int, Row | Lost]]:
    """The rows of CSV. The id of a malformed row is certain if a cell follows it, and the row has no cells too many."""
    header = csv_header(source)
    id_column = next((header.index(name) for name in ids if name in header), len(header))
    for line, row, cells in csv_rows(source):
        if isinstance(row, Problem):
            is_certain = id_column + 1 < len(cells) <= len(header) and "\0" not in cells[id_column]
            yield line, Lost(row, trace=cells[id_column] if is_certain else "")
        else:
            yield line, row


def _most(source: Source) -> int:
    """Bytes that a Parquet file may unpack to."""
    return min(source.limits.file_bytes, max(source.limits.ratio * len(source.data), SMALL_ARCHIVE))


def open_parquet(source: Source) -> pq.ParquetFile:
    """A Parquet file; columns with dictionaries keep them.

    Raises:
      TraceError: "bad-parquet"; "too-large" for more than the limit once unpacked; "bad-header".
    """
    most = f"at most {counted(source.limits.file_bytes, 'byte')}"
    try:
        metadata = checked_metadata(pa.BufferReader(source.data))
        unpacked = unpacked_bytes(metadata)
        if unpacked > source.limits.file_bytes:
            raise TraceError(Problem("too-large", source.name, 0, "file", counted(unpacked, "byte"), most))
        size, ratio = len(source.data), source.limits.ratio
        if unpacked > _most(source):  # equal rows are small in the file and slow to read
            expected = f"at most {ratio} times the {counted(size, 'byte')} of the file, or --limit ratio=N"
            raise TraceError(Problem("too-large", source.name, 0, "file", counted(unpacked, "byte"), expected))
        file = pq.ParquetFile(
            pa.BufferReader(source.data),
            read_dictionary=dictionary_columns(metadata),
            page_checksum_verification=True,
        )
        names = file.schema_arrow.names
    except PackedError as error:
        raise TraceError(Problem("too-large", source.name, 0, "file", excerpt(str(error)), most)) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as error:  # the last two: column names
        problem = Problem("bad-parquet", source.name, 0, "content", excerpt(str(error)), "a Parquet file")
        raise TraceError(problem) from error
    if len(set(names)) < len(names):
        expected = "a name for each column, none twice"
        raise TraceError(Problem("bad-header", source.name, 0, "columns", excerpt(names), expected))
    return file


def _parquet(
    source: Source, columns: Collection[str] | None, lists: Collection[str] | None
) -> Iterator[tuple[int, Row]]:
    file = open_parquet(source)
    names = file.schema_arrow.names
    wanted = names if columns is None else [name for name in names if name in columns]
    for name in wanted if lists is not None else ():
        kind = file.schema_arrow.field(name).type
        if pa.types.is_nested(kind.value_type if is_list(kind) and name in (lists or ()) else kind):
            problem = Problem("bad-type", source.name, 0, name, str(kind), "a column of texts or numbers")
            raise TraceError(problem)
    yield from parquet_rows(source, file, wanted)


def parquet_rows(source: Source, file: pq.ParquetFile, columns: Collection[str]) -> Iterator[tuple[int, Row]]:
    """(number from 1, row) of each row of an open Parquet file.

    Raises:
      TraceError: "bad-parquet"; "too-large", lists and structures take more than the limit on a file as Python values.
    """
    row_number = 0
    shared: dict[Any, Any] = {}
    try:
        refuse_spelt_out(file, columns, source.limits.file_bytes)
        for batch in bounded_batches(file, columns, _most(source)):
            values = [_to_values(column, shared) for column in batch.columns]
            for cells in zip(*values, strict=True):
                row_number += 1
                yield row_number, dict(zip(batch.schema.names, cells, strict=True))
    except PackedError as error:
        most = f"at most {counted(source.limits.file_bytes, 'byte')}"
        raise TraceError(Problem("too-large", source.name, 0, "file", excerpt(str(error)), most)) from error
    except (pa.ArrowException, OSError, ValueError) as error:  # a ValueError for a value that Python has no type for
        problem = Problem("bad-parquet", source.name, row_number + 1, "row", excerpt(str(error)), "a readable row")
        raise TraceError(problem) from error


def _to_values(column: pa.Array, shared: dict[Any, Any]) -> Iterator[Any]:
    """Python values; rows that share an entry of a dictionary share its text, in all batches (`shared`).

    Bytes are taken for texts: some writers do not declare them as such.

    Raises:
      UnicodeDecodeError: the bytes are no UTF-8.
    """
    if pa.types.is_dictionary(column.type):
        entries = [shared.setdefault(entry, entry) for entry in _texts(column.dictionary)]
        for index in column.indices.to_pylist():
            yield None if index is None else entries[index]
    else:
        for start in range(0, len(column), _ROWS):
            yield from _texts(column.slice(start, _ROWS))


def _texts(values: pa.Array) -> list[Any]:
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return [None if value is None else value.decode() for value in values.to_pylist()]
    listed: list[Any] = values.to_pylist()
    return listed


def number(value: Any) -> float | None:
    """A number, or a text that writes one as tables do; None for anything else, true and false among it. May be NaN.

    Python's `float` also accepts "1_000" and digits of other scripts; these are refused here.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer that no float can hold
        return None
