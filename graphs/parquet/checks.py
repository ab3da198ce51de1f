"""Damaged Parquet files: what Arrow does not check, or not before it fails.

damage                               what Arrow does                      what refuses it here
metadata of a chunk of a column      ends the process                     `checked_metadata`, called first
several files joined end to end      reads bytes of the first file by     `checked_metadata`
                                     the metadata of the last
a name of a column                   takes it for another name            `checked_metadata`
a reference beyond a dictionary      lets it stand                        `checked_batches`
a page with a wrong checksum         refuses it if asked to               readers ask for it
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["checked_batches", "checked_metadata", "is_list"]

_MAGIC = 4  # bytes of the magic at both ends of a file
_TAIL = 8  # bytes of the length of the metadata and of the magic behind it
_BLOCK = 1 << 20  # bytes looked at together
_ROWS = 1024  # of a batch: Arrow's 65,536 are in memory before their texts can be counted
_SEAM = re.compile(b"PAR1(?=PAR1)")  # the end of a file and the begin of another
_ARROW_SCHEMA = b"ARROW:schema"  # key of the second copy of the schema, which Arrow's writers add


class _PageError(Exception):
    """A page was asked for."""


class _NoPages(io.RawIOBase):
    """A file that has a size, and raises when its content is read: by then all metadata were gone over."""

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
    """The metadata of a file, after a check that makes it safe to look at each part.

    `RowGroupMetaData.column` ends the process if the metadata of a chunk are damaged. A reader of rows goes over the
    same metadata and raises an error instead. With `pre_buffer` it does so for all chunks before it asks for a page. So
    a reader of a file without pages checks all metadata and decodes nothing.

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

    The offsets that the last file states count from its own beginning. So between the end of its last chunk, as stated,
    and its metadata there seems to be a gap as long as all files before it. In an intact file the gap holds indexes and
    filters alone. In a joined one it holds the seam: the "PAR1" that ends a file and the "PAR1" that begins the next.

    Raises:
      pa.ArrowInvalid: the file is several.
    """
    gap = file.size() - _TAIL - metadata.serialized_size - _chunks_end(metadata)
    if gap < _MAGIC + _TAIL:  # less than any file has
        return
    previous = _MAGIC
    for start_of_block in range(0, gap, _BLOCK):
        for seam in _SEAM.finditer(file.read_at(min(_BLOCK, gap - start_of_block) + 2 * _MAGIC - 1, start_of_block)):
            end = start_of_block + seam.end()
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
    """The names of columns, and of fields of structures, that differ from those in the copy: each with the copy's.

    Names of the entries of lists and maps are not compared, because they differ in intact files. Neither are structures
    with another number of fields: other programs drop columns and leave the copy as it was.
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
        elif is_list(kind) and is_list(copy):
            pending.append((kind.value_type, copy.value_type))


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list of any kind."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def checked_batches(file: pq.ParquetFile, columns: Collection[str]) -> Iterator[Any]:
    """Batches of rows in which no text and no list reaches beyond the data that it refers to.

    Raises:
      pa.ArrowException, OSError: the file is damaged.
    """
    for batch in file.iter_batches(_ROWS, columns=columns):
        batch.validate(full=True)
        yield batch
