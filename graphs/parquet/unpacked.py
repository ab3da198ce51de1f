"""Bounds on the unpacked size of Parquet files that are not trusted, computed before they are unpacked.

A few kilobytes can encode a billion rows: a run of one value is a value and a count, and repeated texts are one entry
of a dictionary. The bound is therefore the number of values times their width, and a limit on texts by their encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphs.errors import CreditError
from graphs.parquet.checks import checked_batches, is_list

__all__ = ["PackedError", "bounded_batches", "dictionary_columns", "read_decoded", "refuse_spelt_out", "unpacked_bytes"]

_WIDEST = 16  # bytes of a number, a date or the reference to a text
_WAITING = 64  # batches, so that a file of few rows is refused before any of them is read
_HONEST = frozenset({"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BINARY_PACKED"})
_DICTIONARY = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})


class PackedError(CreditError):
    """The unpacked size of a Parquet file is unknown or exceeds the limit."""


def unpacked_bytes(metadata: pq.FileMetaData) -> int:
    """An upper bound on the unpacked bytes of a file, with texts in dictionaries counted once.

    Raises:
      PackedError: a text column has an encoding other than plain or dictionary.
    """
    stated = values = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        stated += group.total_byte_size
        for j in range(group.num_columns):
            column = group.column(j)
            width = _WIDEST
            if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
                width = max(width, metadata.schema.column(j).length)
            elif column.physical_type == "BYTE_ARRAY" and not set(column.encodings) <= _HONEST | _DICTIONARY:
                others = ", ".join(sorted(set(column.encodings) - _HONEST - _DICTIONARY))
                where = f"column {column.path_in_schema!r}"
                raise PackedError(f"{where} is encoded as {others}; expected plain or by dictionary")
            values += width * column.num_values
    return max(stated, values)


def dictionary_columns(metadata: pq.FileMetaData) -> list[str]:
    """Paths of the text columns that have a dictionary in some part of the file."""
    paths: dict[str, None] = {}
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            column = group.column(j)
            if column.physical_type == "BYTE_ARRAY" and not _DICTIONARY.isdisjoint(column.encodings):
                paths[column.path_in_schema] = None
    return list(paths)


def bounded_batches(file: pq.ParquetFile, columns: Collection[str], most: int) -> Iterator[Any]:
    """Batches of rows, until their plain texts have more than `most` bytes: a file may state less than it holds.

    Raises:
      PackedError: the texts have more.
      pa.ArrowException, OSError: the file is damaged.
    """
    left, waiting = most, list[Any]()
    for batch in checked_batches(file, columns):
        left -= sum(_summed(_plain, column) for column in batch.columns)
        if left < 0:
            raise PackedError(f"more texts than the file states; expected at most {most} bytes")
        waiting.append(batch)
        if len(waiting) == _WAITING:
            yield from waiting
            waiting.clear()
    yield from waiting


def _summed(leaf: Callable[[pa.Array], int | None], array: pa.Array) -> int:
    """The sum over the parts of an array for which `leaf` has a number; where it has None, what is inside counts."""
    number, kind = leaf(array), array.type
    if number is not None:
        return number
    inside: list[pa.Array] = []
    if pa.types.is_struct(kind):
        inside = array.flatten()
    elif pa.types.is_map(kind):
        inside = [array.keys, array.items]
    elif is_list(kind):
        inside = [array.flatten()]
    return sum(_summed(leaf, part) for part in inside)


def _plain(array: pa.Array) -> int | None:
    """Bytes of texts that are in no dictionary."""
    kind = array.type
    is_text = pa.types.is_binary(kind) or pa.types.is_string(kind)
    if is_text or pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        return pc.sum(pc.binary_length(array).cast(pa.int64())).as_py() or 0
    return None


def refuse_spelt_out(file: pq.ParquetFile, columns: Collection[str], most: int) -> None:
    """Refuse columns of lists or structures whose texts, once each is spelt out, have more than `most` bytes.

    Python values share the texts of a plain column, so there each counts once.

    Raises:
      PackedError: the texts have more.
      pa.ArrowException, OSError: the file cannot be read.
    """
    nested = [field.name for field in file.schema_arrow if field.name in columns and pa.types.is_nested(field.type)]
    left = most
    for batch in bounded_batches(file, nested, most) if nested else ():
        left -= sum(_summed(_spelt_out, column) for column in batch.columns)
        if left < 0:
            raise PackedError(f"texts of more than {most} bytes, each spelt out; expected at most {most}")


def _spelt_out(array: pa.Array) -> int | None:
    """Bytes of texts in a dictionary, each counted as often as it occurs."""
    if not pa.types.is_dictionary(array.type):
        return None
    if not len(array.dictionary):
        return 0
    lengths = pc.binary_length(array.dictionary).cast(pa.int64())
    return pc.sum(lengths.take(array.indices)).as_py() or 0


def read_decoded(opened: pa.NativeFile, metadata: pq.FileMetaData, most: int) -> pa.Table:
    """The content of a file with dictionaries decoded; the size of each row group is checked before decoding.

    Raises:
      PackedError: the texts have more than `most` bytes.
      pa.ArrowException, OSError: the file cannot be read.
    """
    dictionaries = dictionary_columns(metadata)
    with pq.ParquetFile(opened, read_dictionary=dictionaries, page_checksum_verification=True) as file:
        if file.num_row_groups == 0:
            return file.read()
        parts = []
        for i in range(file.num_row_groups):
            group = file.read_row_group(i)
            group.validate(full=True)
            part, size = _decoded(group, most)
            parts.append(part)
            most -= size
    return pa.concat_tables(parts).replace_schema_metadata(parts[0].schema.metadata)


def _decoded(table: pa.Table, most: int) -> tuple[pa.Table, int]:
    """The table without dictionaries, and the decoded bytes of its texts."""
    total = 0
    columns: dict[str, pa.ChunkedArray] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        chunks = []
        for chunk in column.chunks:
            inner = chunk.flatten() if pa.types.is_list(chunk.type) else chunk
            if pa.types.is_dictionary(inner.type):
                if len(inner.dictionary):
                    lengths = pc.binary_length(inner.dictionary)
                    total += pc.sum(lengths.cast(pa.int64()).take(inner.indices)).as_py() or 0
                if total > most:
                    raise PackedError(f"texts of more than {most} bytes; expected at most {most}")
                inner = inner.dictionary_decode()
                if pa.types.is_list(chunk.type):
                    offsets = pc.subtract(chunk.offsets, chunk.offsets[0])
                    inner = pa.ListArray.from_arrays(offsets, inner)
            else:
                inner = chunk
            chunks.append(inner)
        columns[name] = pa.chunked_array(chunks) if chunks else column
    return pa.table(columns).replace_schema_metadata(table.schema.metadata), total
