"""Parquet files that are not trusted: bounds on the unpacked size, computed before it is unpacked, and damage.

A few kilobytes can encode a billion rows: a run of one value is a value and a count, and repeated texts are one entry
of a dictionary. The bound is therefore the number of values times their width, and a limit on texts by their encoding.

Arrow checks less than a damaged file needs. It ends the process on some metadata, so `checked_metadata` comes first. It
lets an entry of a dictionary be one that is not there, so `checked_batches` looks. It verifies checksums if asked to.
It applies the metadata of the last of files joined end to end to the bytes of the first. It takes a damaged name of a
column for another name.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphs.errors import CreditError

__all__ = [
    "PackedError", "checked_batches", "checked_metadata", "dictionary_columns", "read_decoded", "refuse_spelt_out",
    "unpacked_bytes",
]  # fmt: skip

_WIDEST = 16  # bytes of a number, a date or the reference to a text
_HONEST = frozenset({"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BINARY_PACKED"})
_DICTIONARY = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})
_MAGIC = 4  # bytes of the magic at both ends of a file
_TAIL = 8  # bytes of the length of the metadata and of the magic behind it
_BLOCK = 1 << 20  # bytes looked at together
_SEAM = re.compile(b"PAR1(?=PAR1)")  # the end of a file and the begin of another
_ARROW_SCHEMA = b"ARROW:schema"  # key of the second copy of the schema, which Arrow's writers add


class PackedError(CreditError):
    """The unpacked size of a Parquet file is unknown or exceeds the limit."""


class _PageError(Exception):
    """A page was asked for."""


class _NoPages(io.RawIOBase):
    """A file of a size whose content cannot be read."""

    def __init__(self, size: int) -> None:
        self.size, self.at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def tell(self) -> int:
        return self.at

    def read(self, size: int = -1) -> bytes:
        raise _PageError


def checked_metadata(file: pa.NativeFile) -> pq.FileMetaData:
    """The metadata of a file, of which every part can be looked at.

    `RowGroupMetaData.column` ends the process where a chunk's metadata are damaged. Readers go over the same metadata,
    but raise an error. One that reads ahead goes over those of all chunks before it asks for the first page.

    Raises:
      pa.ArrowException, OSError: the metadata are damaged, or the file is several, joined.
      UnicodeDecodeError: the name of a column is no text.
    """
    metadata = pq.read_metadata(file)
    for i in range(metadata.num_row_groups):
        columns = metadata.row_group(i).num_columns
        if columns != metadata.num_columns:
            raise pa.ArrowInvalid(f"row group {i} has {columns} columns; expected {metadata.num_columns}")
    pages = pa.PythonFile(_NoPages(file.size()), "r")
    try:
        reader = pq.ParquetFile(pages, metadata=metadata, pre_buffer=True)
        reader.read_row_groups(range(metadata.num_row_groups), use_threads=False)
    except _PageError:
        pass  # all metadata were gone over
    _refuse_joined(file, metadata)
    _refuse_renamed(metadata)
    return metadata


def _refuse_joined(file: pa.NativeFile, metadata: pq.FileMetaData) -> None:
    """Refuse files joined end to end: the metadata of the last would be applied to the bytes of the first.

    The offsets of the last file count from its own begin. So its chunks seem to end as far ahead of its metadata as the
    files before it are long, and those fit into this gap. In an intact file only indexes and filters are there.

    Raises:
      pa.ArrowInvalid: the file is several.
    """
    gap = file.size() - _TAIL - metadata.serialized_size - _chunks_end(metadata)
    if gap < _MAGIC + _TAIL:  # less than any file has
        return
    previous = _MAGIC
    for at in range(0, gap, _BLOCK):
        for seam in _SEAM.finditer(file.read_at(min(_BLOCK, gap - at) + 2 * _MAGIC - 1, at)):
            end = at + seam.end()
            length = int.from_bytes(file.read_at(_MAGIC, end - _TAIL), "little")
            start = end - _TAIL - length
            if start < previous:  # metadata of several files do not overlap: no byte is decoded twice
                continue
            previous = end
            try:
                pq.read_metadata(pa.BufferReader(file.read_at(end - start, start)))
            except (pa.ArrowException, OSError):  # such a text is in a column
                continue
            raise pa.ArrowInvalid(f"another Parquet file begins at byte {end}")


def _chunks_end(metadata: pq.FileMetaData) -> int:
    """Where the last of all chunks ends."""
    end = _MAGIC
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            chunk = group.column(j)
            # Some writers state 0 where there is no dictionary.
            start = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
            end = max(end, start + chunk.total_compressed_size)
    return end


def _refuse_renamed(metadata: pq.FileMetaData) -> None:
    """Refuse columns whose names differ from those in Arrow's copy of the schema: one of the two is damaged.

    Raises:
      pa.ArrowInvalid: they differ, or the copy is damaged.
      UnicodeDecodeError: a name is no text.
    """
    copy = (metadata.metadata or {}).get(_ARROW_SCHEMA)
    if copy is None:
        return
    try:
        named = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(copy, validate=True)))
    except ValueError as error:  # also that of base64
        raise pa.ArrowInvalid(f"the schema of {_ARROW_SCHEMA.decode()} cannot be read: {error}") from error
    for name, other in _unlike_names(pa.struct(metadata.schema.to_arrow_schema()), pa.struct(named)):
        raise pa.ArrowInvalid(f"column {name!r} is named {other!r} in {_ARROW_SCHEMA.decode()}")


def _unlike_names(kind: pa.DataType, copy: pa.DataType) -> Iterator[tuple[str, str]]:
    """The names of columns, and of those in structures, that differ from the copy's.

    Those of the entries of lists and maps differ in intact files. Other programs drop columns and leave the copy.
    """
    pending = [(kind, copy)]  # no recursion: a file may nest as deep as it likes
    while pending:
        kind, copy = pending.pop()
        while isinstance(copy, pa.BaseExtensionType | pa.DictionaryType):  # Parquet's schema knows neither
            copy = copy.storage_type if isinstance(copy, pa.BaseExtensionType) else copy.value_type
        if pa.types.is_struct(kind) and pa.types.is_struct(copy) and kind.num_fields == copy.num_fields:
            fields = [(kind.field(i), copy.field(i)) for i in range(kind.num_fields)]
            yield from ((field.name, other.name) for field, other in fields if field.name != other.name)
            pending += [(field.type, other.type) for field, other in fields]
        elif pa.types.is_map(kind) and pa.types.is_map(copy):
            pending += [(kind.key_type, copy.key_type), (kind.item_type, copy.item_type)]
        elif _is_list(kind) and _is_list(copy):
            pending.append((kind.value_type, copy.value_type))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def checked_batches(file: pq.ParquetFile, columns: Collection[str] | None = None, rows: int = 65536) -> Iterator[Any]:
    """Batches of at most `rows` rows whose texts and lists are inside of what they refer to.

    Raises:
      pa.ArrowException, OSError: the file is damaged.
    """
    for batch in file.iter_batches(batch_size=rows, columns=columns):
        batch.validate(full=True)
        yield batch


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


def refuse_spelt_out(file: pq.ParquetFile, columns: Collection[str], most: int) -> None:
    """Refuse columns of lists or structures whose texts, once each is spelt out, have more than `most` bytes.

    Python values share the texts of a plain column, so there each counts once.

    Raises:
      PackedError: the texts have more.
      pa.ArrowException, OSError: the file cannot be read.
    """
    nested = [field.name for field in file.schema_arrow if field.name in columns and pa.types.is_nested(field.type)]
    left = most
    for batch in checked_batches(file, nested) if nested else ():
        left -= sum(map(_spelt_out, batch.columns))
        if left < 0:
            raise PackedError(f"texts of more than {most} bytes, each spelt out; expected at most {most}")


def _spelt_out(array: pa.Array) -> int:
    """Bytes of the texts in dictionaries, each counted as often as it occurs."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if not len(array.dictionary):
            return 0
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        return pc.sum(lengths.take(array.indices)).as_py() or 0
    if pa.types.is_struct(kind):
        return sum(map(_spelt_out, array.flatten()))
    if pa.types.is_map(kind):
        return _spelt_out(array.keys) + _spelt_out(array.items)
    if _is_list(kind):
        return _spelt_out(array.flatten())
    return 0


def read_decoded(path: str | Path, metadata: pq.FileMetaData, most: int) -> pa.Table:
    """The content of a file with dictionaries decoded; the size of each row group is checked before decoding.

    Raises:
      PackedError: the texts have more than `most` bytes.
      pa.ArrowException, OSError: the file cannot be read.
    """
    dictionaries = dictionary_columns(metadata)
    with pq.ParquetFile(path, read_dictionary=dictionaries, page_checksum_verification=True) as file:
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
