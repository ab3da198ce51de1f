"""Tables to files: Parquet, CSV, JSON lines and Arrow, each whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from graphs.errors import CreditError
from graphs.writers.atomic import atomic_write

__all__ = ["TABLE_SUFFIXES", "table_writer", "write_csv", "write_table"]

BATCH = 1 << 14  # rows that become Python objects at once when JSON is written

FORMULA = r"^[=+\-@＝＋－＠'\t\r\n]"


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write a table to `path` in the format of its suffix: .parquet, .csv, .jsonl or .arrow.

    The file appears whole or not at all. Parquet and Arrow keep every type and every string. JSON lines write one
    object a row; numbers that are not finite become null. CSV: see `write_csv`.

    Raises:
      CreditError: another suffix.
      OSError: the folder does not exist or cannot be written to.
    """
    write = table_writer(path)
    with atomic_write(path) as file:
        write(table, file)


def table_writer(path: str | Path) -> Callable[[pa.Table, BinaryIO], None]:
    """The function that writes the format of a path's suffix.

    Raises:
      CreditError: the suffix is none of `TABLE_SUFFIXES`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise CreditError(f"output {str(path)!r} ends in {suffix!r}; expected one of {', '.join(TABLE_SUFFIXES)}")
    return TABLE_SUFFIXES[suffix]


def write_csv(table: pa.Table, file: BinaryIO) -> None:
    """Write a table as CSV with a header line; null is an empty field.

    Spreadsheets run a field that begins with = + - or @ as a formula, and the text comes from logs that nobody vouches
    for. So a text that begins with one of these, with a tab or line break, or with an apostrophe, gets an apostrophe in
    front. Reading programs undo it by removing one leading apostrophe from text; the other formats need no such care.
    """
    plain = {name: _disarmed(table[name]) for name in table.column_names}
    pyarrow.csv.write_csv(pa.table(plain), file)


def _disarmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text with an apostrophe before whatever a spreadsheet could run; other columns as they are."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    text = column.cast(kind)
    armed = pc.match_substring_regex(text, FORMULA)
    return pc.if_else(armed, pc.binary_join_element_wise(pa.scalar("'", kind), text, pa.scalar("", kind)), text)


def _write_parquet(table: pa.Table, file: BinaryIO) -> None:
    pyarrow.parquet.write_table(table, file, compression="zstd")


def _write_jsonl(table: pa.Table, file: BinaryIO) -> None:
    encoder = msgspec.json.Encoder()
    for batch in table.to_batches(max_chunksize=BATCH):
        file.write(encoder.encode_lines(batch.to_pylist()))


def _write_arrow(table: pa.Table, file: BinaryIO) -> None:
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


TABLE_SUFFIXES: dict[str, Callable[[pa.Table, BinaryIO], None]] = {
    ".parquet": _write_parquet,
    ".csv": write_csv,
    ".jsonl": _write_jsonl,
    ".arrow": _write_arrow,
}
"""Writers of tables by suffix."""
