"""Rows of a table with their places: CSV, JSON lines or Parquet, detected by content, compressed or not.

CSV cells are always strings (a trace named 007 is not the number 7), and an empty cell is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.errors import Problem, TraceError
from graphs.parquet.checks import checked_batches, checked_metadata
from graphs.parquet.unpacked import PackedError, dictionary_columns, refuse_spelt_out, unpacked_bytes
from graphs.reading.encodings import wide_text
from graphs.reading.json_problems import JSON_ERRORS, json_problem, repeated_key
from graphs.reading.source import Source, unreadable
from graphs.reading.tables.csv_rows import csv_header, csv_rows
from graphs.reading.tables.glued_lines import pieces
from graphs.reading.tables.ids import id_text
from graphs.text import counted, excerpt

__all__ = [
    "PARQUET", "LostRow", "Row", "column_names", "is_csv", "nested_names", "number", "open_parquet", "read_rows",
    "refuse_long_lists", "to_values",
]  # fmt: skip

Row = dict[str, Any]
PARQUET = b"PAR1"
_NUMBER = re.compile(
    r"\s*+[+-]?(\d++(?:\.\d*+)?|\.\d++|(?=[ni]))(e[+-]?\d++|nan|infinity|inf)?\s*+", re.ASCII | re.IGNORECASE
)

_OBJECT = msgspec.json.Decoder(dict[str, Any])
_TOKEN = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"?|([-+.\w]++)', re.DOTALL)
_LONGEST_ID = 1000  # bytes of a text of a lost row that are compared with ids
_LONGEST_ESCAPE = 13  # bytes of an escaped pair, which may be cut off anywhere
_SURE_DIGITS = 19  # a number with fewer digits is an integer, whose text is the id


class LostRow(NamedTuple):
    """A row that cannot be read, and its texts, one of which may be the id of its trace.

    A trace without one of its rows is incomplete, so readers of tables refuse the traces that `mentions` names. Of a
    text that is cut off, or too long to be kept, `begins` has the beginning. A row of CSV has `cells`, a line `text`.
    """

    problem: Problem
    mentions: frozenset[str]
    begins: frozenset[str] = frozenset()
    cells: tuple[str, ...] = ()
    text: bytes = b""


def read_rows(
    table: str | Path | Source, columns: Collection[str] | None = None, lists: Collection[str] = ()
) -> Iterator[tuple[int, Row | LostRow]]:
    """(line, row) of each row of a table; a row that is malformed is a `LostRow` in its place.

    The line is where the row begins in a CSV file, and the number of the row, from 1, in a Parquet file. `columns`
    names the ones that are wanted, which spares a Parquet file the others; rows may have more. In a Parquet file, the
    columns of `lists` may hold lists.

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
    return _csv(source) if is_csv(source) else _json_lines(source)


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
        if isinstance(row, LostRow):
            first = first or row.problem
        else:
            names |= dict.fromkeys(row)
    if first is not None and not names:
        raise TraceError(first)  # no row can be read: why the first cannot says more than that columns are missing
    return list(names)


def nested_names(table: Source) -> set[str]:
    """The names of the columns of a Parquet file and of the members of columns, however deep.

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


def _json_lines(source: Source) -> Iterator[tuple[int, Row | LostRow]]:
    for line, _, text in source.unchecked_lines():
        refused = source.limits.refuse_record(text, source.name, line)
        row: Row = {}
        if refused is None:
            try:
                row = _OBJECT.decode(text)
            except JSON_ERRORS as error:
                refused = json_problem(error, text, source.name, line)
            else:
                refused = repeated_key(text, row, source.name, line)
        yield line, row if refused is None else _lost_json(refused, text)


def _lost_json(problem: Problem, text: bytes) -> LostRow:
    """A line that is no row, with its strings and numbers as they are read elsewhere: escapes and exponents, too."""
    mentions: set[str] = set()
    begins: set[str] = set()
    for piece in pieces(text):
        _take_texts(piece, mentions, begins)
    return LostRow(problem, frozenset(mentions), frozenset(begins - {""}), text=text)


def _take_texts(text: bytes, mentions: set[str], begins: set[str]) -> None:
    """Add the strings and numbers of a line, and the beginnings of those that are cut, or too long."""
    for match in _TOKEN.finditer(text):
        token = match.group(1) if match.group(1) is not None else match.group(2)
        short = token[:_LONGEST_ID]
        texts = {short.decode("utf-8", "replace")}
        if match.group(1) is None:
            amount = None if short.isdigit() and len(short) < _SURE_DIGITS else number(next(iter(texts)))
            texts |= set() if amount is None else {id_text(amount), str(amount)}
        elif b"\\" in short:
            texts.add(_unescaped(short))
        mentions |= texts if len(short) == len(token) else set()
        cut = match.end() == (len(text) if match.group(1) is None else match.end(1))  # with no quote behind it
        begins |= texts if cut or len(short) < len(token) else set()


def _unescaped(token: bytes) -> str:
    """The text of a JSON string up to where it is cut."""
    for end in range(len(token), max(-1, len(token) - _LONGEST_ESCAPE), -1):
        try:
            return str(json.loads(b'"' + token[:end] + b'"', strict=False))
        except ValueError:
            continue
    return ""


def _csv(source: Source) -> Iterator[tuple[int, Row | LostRow]]:
    for line, row, cells in csv_rows(source):
        if not isinstance(row, Problem):
            yield line, row
            continue
        cut = bool(cells[-1]) and source.data.endswith(cells[-1].encode())  # else a line break is behind it
        yield line, LostRow(row, frozenset(cells), frozenset(cells[-1:] if cut else ()), cells)


def open_parquet(source: Source) -> pq.ParquetFile:
    """A Parquet file whose texts are read as dictionaries where it has such.

    Raises:
      TraceError: "bad-parquet"; "too-large" for more than the limit once unpacked; "bad-header".
    """
    most = f"at most {counted(source.limits.file_bytes, 'byte')}"
    try:
        metadata = checked_metadata(pa.BufferReader(source.data))
        unpacked = unpacked_bytes(metadata)
        if unpacked > source.limits.file_bytes:
            raise TraceError(Problem("too-large", source.name, 0, "file", counted(unpacked, "byte"), most))
        file = pq.ParquetFile(
            pa.BufferReader(source.data),
            read_dictionary=dictionary_columns(metadata),
            page_checksum_verification=True,
        )
        names = file.schema_arrow.names
    except PackedError as error:
        raise TraceError(Problem("too-large", source.name, 0, "file", excerpt(str(error)), most)) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError) as error:  # the last two for names of columns
        problem = Problem("bad-parquet", source.name, 0, "content", excerpt(str(error)), "a Parquet file")
        raise TraceError(problem) from error
    if len(set(names)) < len(names):
        expected = "a name for each column, none twice"
        raise TraceError(Problem("bad-header", source.name, 0, "columns", excerpt(names), expected))
    return file


def refuse_long_lists(source: Source, file: pq.ParquetFile, columns: Collection[str]) -> None:
    """Refuse a file whose lists and structures would take more than the limit on a file as Python values.

    Raises:
      TraceError: kind "too-large".
      pa.ArrowException, OSError: the file cannot be read.
    """
    try:
        refuse_spelt_out(file, columns, source.limits.file_bytes)
    except PackedError as error:
        most = f"at most {counted(source.limits.file_bytes, 'byte')}"
        raise TraceError(Problem("too-large", source.name, 0, "file", excerpt(str(error)), most)) from error


def _parquet(source: Source, columns: Collection[str] | None, lists: Collection[str] = ()) -> Iterator[tuple[int, Row]]:
    file = open_parquet(source)
    names = file.schema_arrow.names
    wanted = names if columns is None else [name for name in names if name in columns]
    for name in wanted:
        kind = file.schema_arrow.field(name).type
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
        if pa.types.is_nested(kind.value_type if is_list and name in lists else kind):
            problem = Problem("bad-type", source.name, 0, name, str(kind), "a column of texts or numbers")
            raise TraceError(problem)
    row_number = 0
    shared: dict[Any, Any] = {}
    try:
        refuse_long_lists(source, file, wanted)
    except (pa.ArrowException, OSError) as error:
        raise TraceError(Problem("bad-parquet", source.name, 0, "row", excerpt(str(error)), "readable rows")) from error
    try:
        for batch in checked_batches(file, wanted):
            values = [_texts(to_values(column, shared)) for column in batch.columns]
            for cells in zip(*values, strict=True):
                row_number += 1
                yield row_number, dict(zip(batch.schema.names, cells, strict=True))
    except (pa.ArrowException, OSError, ValueError) as error:  # a ValueError for a value that Python has no type for
        problem = Problem("bad-parquet", source.name, row_number + 1, "row", excerpt(str(error)), "a readable row")
        raise TraceError(problem) from error


def to_values(column: pa.Array, shared: dict[Any, Any]) -> list[Any]:
    """Python values; rows that share an entry of a dictionary share its text, in all batches (`shared`)."""
    if not pa.types.is_dictionary(column.type):
        values: list[Any] = column.to_pylist()
        return values
    entries = [shared.setdefault(entry, entry) for entry in column.dictionary.to_pylist()]
    return [None if index is None else entries[index] for index in column.indices.to_pylist()]


def _texts(values: list[Any]) -> list[Any]:
    """Values with texts in place of bytes: a file may not say that a column of bytes holds texts.

    Raises:
      UnicodeDecodeError: the bytes are no UTF-8.
    """
    if not any(isinstance(value, bytes) for value in values):
        return values
    return [value.decode() if isinstance(value, bytes) else value for value in values]


def number(value: Any) -> float | None:
    """A number, or a text that writes one as tables do; None for anything else, true and false among it. May be NaN.

    Python's `float` also accepts "1_000" and digits of other scripts; these are refused here.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer that no float can hold
        return None
