"""Tables to files: Parquet, CSV, JSON lines and Arrow, each whole or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from graphs.argument_kinds import checked_kinds
from graphs.atomic import atomic_write
from graphs.errors import CreditError
from graphs.reading.results import STAMP
from graphs.text import printable

__all__ = ["TABLE_SUFFIXES", "printable_table", "table_writer", "write_csv", "write_table", "write_tables"]

BATCH = 1 << 14  # rows that become Python objects at once when JSON is written

FORMULA = r"^[=+\-@＝＋－＠'\t\r\n]"


@checked_kinds()
def write_table(table: pa.Table, path: str | Path) -> None:
    """Write a table to `path` in the format of its suffix: .parquet, .csv, .jsonl or .arrow.

    The file appears whole or not at all. Parquet and Arrow keep every type and every string. Their metadata mark them
    as results, so `credit.read` skips them in a folder of logs. JSON lines write one object a row; numbers that are
    not finite become null. CSV: see `write_csv`.

    Args:
      table: an Arrow table, such as `credit.table` returns.
      path: where to write; an existing file is replaced.

    Raises:
      CreditError: another suffix, or something else than a table.
      OSError: the folder does not exist or cannot be written to.

    Examples:
      >>> import pathlib, pyarrow, tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     file = pathlib.Path(folder, "credit.csv")
      ...     write_table(pyarrow.table({"advantage": [0.5]}), file)
      ...     file.read_text().split()
      ['"advantage"', '0.5']
    """
    write = table_writer(path)
    with atomic_write(path) as file:
        write(table, file)


def write_tables(tables: Iterable[pa.Table], path: str | Path) -> int:
    """Write tables of the same columns, one after another, as one file, and return how many rows it has.

    No more than one table is held at a time, and the file appears whole, once the last is written, or not at all. As
    `write_table`, but for how rows are grouped in the file; in .arrow files, strings are stored as they are.

    Args:
      tables: of the same columns.
      path: of the file.

    Raises:
      CreditError: another suffix, or no table.
      OSError: the folder does not exist or cannot be written to.
    """
    table_writer(path)
    write = _STREAMS[Path(path).suffix.lower()]
    rows = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal rows
        for table in tables:
            rows += table.num_rows
            yield table

    with atomic_write(path) as file:
        write(counted(), file)
    return rows


def table_writer(path: str | Path) -> Callable[[pa.Table, BinaryIO], None]:
    """The function that writes the format of a path's suffix.

    Raises:
      CreditError: the suffix is none of `TABLE_SUFFIXES`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise CreditError(f"output {str(path)!r} ends in {suffix!r}; expected one of {', '.join(TABLE_SUFFIXES)}")
    return TABLE_SUFFIXES[suffix]


def write_csv(table: pa.Table, file: BinaryIO, *, header: bool = True) -> None:
    """Write a table as CSV with a header line, unless that is there already; null is an empty field.

    Spreadsheets run a field that begins with = + - or @ as a formula, and text from logs is not trusted. A text
    that begins with one of these, with a tab or line break, or with an apostrophe, gets an apostrophe in front. Reading
    programs undo it by removing one leading apostrophe from text; the other formats need no such care.

    Examples:
      >>> import io
      >>> file = io.BytesIO()
      >>> write_csv(pa.table({"agent": ["=1+1"]}), file)
      >>> print(file.getvalue().decode().strip())
      "agent"
      "'=1+1"
    """
    plain = {name: _disarmed(table[name]) for name in table.column_names}
    options = pyarrow.csv.WriteOptions(include_header=header)
    pyarrow.csv.write_csv(pa.table(plain), file, options)


def _disarmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text with an apostrophe before whatever a spreadsheet could run; other columns as they are."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    text = column.cast(kind)
    armed = pc.match_substring_regex(text, FORMULA)
    return pc.if_else(armed, pc.binary_join_element_wise(pa.scalar("'", kind), text, pa.scalar("", kind)), text)


def printable_table(table: pa.Table) -> pa.Table:
    """A table whose text has no control characters, for a terminal: see `graphs.text.printable`.

    Examples:
      >>> printable_table(pa.table({"agent": ["a\\x1b[2J"], "credit": [0.5]})).to_pydict()
      {'agent': ['a\ufffd[2J'], 'credit': [0.5]}
    """
    return pa.table([_printable(column) for column in table.columns], names=[printable(n) for n in table.column_names])


def _printable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    words = column.cast(kind).combine_chunks().dictionary_encode()
    shown = pa.array([printable(word) for word in words.dictionary.to_pylist()], kind)
    return shown.take(words.indices)


def _write_parquet(table: pa.Table, file: BinaryIO) -> None:
    pyarrow.parquet.write_table(_stamped(table), file, compression="zstd", write_page_checksum=True)


def _stream_parquet(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    first = _stamped(_first(tables))
    with pyarrow.parquet.ParquetWriter(file, first.schema, compression="zstd", write_page_checksum=True) as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table)


def _stream_csv(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    write_csv(_first(tables), file)
    for table in tables:
        write_csv(table, file, header=False)


def _stream_jsonl(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    for table in itertools.chain([_first(tables)], tables):
        _write_jsonl(table, file)


def _stream_arrow(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    first = _stamped(_spelt_out(_first(tables)))
    with pa.ipc.new_file(file, first.schema) as writer:
        for table in itertools.chain([first], map(_spelt_out, tables)):
            writer.write_table(table)


def _first(tables: Iterator[pa.Table]) -> pa.Table:
    first = next(tables, None)
    if first is None:
        raise CreditError("no table to write; expected at least one")
    return first


def _spelt_out(table: pa.Table) -> pa.Table:
    """Without dictionaries, of which an Arrow file has one for all of it."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _write_jsonl(table: pa.Table, file: BinaryIO) -> None:
    encoder = msgspec.json.Encoder()
    for batch in table.to_batches(max_chunksize=BATCH):
        file.write(encoder.encode_lines(batch.to_pylist()))


def _write_arrow(table: pa.Table, file: BinaryIO) -> None:
    table = _stamped(table)
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _stamped(table: pa.Table) -> pa.Table:
    """The table with the metadata that marks it as a result."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **STAMP})


TABLE_SUFFIXES: dict[str, Callable[[pa.Table, BinaryIO], None]] = {
    ".parquet": _write_parquet,
    ".csv": write_csv,
    ".jsonl": _write_jsonl,
    ".arrow": _write_arrow,
}
"""Writers of tables by suffix."""

_STREAMS: dict[str, Callable[[Iterator[pa.Table], BinaryIO], None]] = {
    ".parquet": _stream_parquet,
    ".csv": _stream_csv,
    ".jsonl": _stream_jsonl,
    ".arrow": _stream_arrow,
}
