"""The second pass of `graphs.logs.chunks` over its files: the records that the first pass met, or a named error."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from graphs.errors import CreditError
from graphs.formats.native import Piece
from graphs.logs.chunk_index import ChunkIndex, content_of, is_plain
from graphs.reading.addresses import RewrittenError
from graphs.reading.source import Source

__all__ = ["ChangedError", "UnreadableError", "chosen_pieces"]


class ChangedError(CreditError):
    """A file changed between the two passes over a folder, so its groups are unknown."""

    def __init__(self, file: str, how: str) -> None:
        self.file, self.how = file, how
        super().__init__(f"{file} {how}: it changed while it was read in chunks; read it again when it is complete")

    def __reduce__(self) -> tuple[type[ChangedError], tuple[str, str]]:  # raised in another process, perhaps
        return type(self), (self.file, self.how)


class UnreadableError(ChangedError):
    """A file could not be read in the second pass: it is gone, or its storage gave no answer, which it may do again."""

    def __init__(self, file: str, how: str = "cannot be read any more") -> None:
        super().__init__(file, how)


def chosen_pieces(source: Source, index: ChunkIndex, rows: np.ndarray) -> Iterator[Piece]:
    """The records of some traces of a file, by their rows in the index, if they are still those of the first pass.

    The bytes are compared, because sizes and times of a file say less: a program may set a time back after it wrote,
    and a time may change although nobody wrote.

    Raises:
      ChangedError: other bytes are there, or none.
      UnreadableError: the file cannot be read.
    """
    columns = (index.line, index.offset, index.length, index.content)
    wanted = zip(*(column[rows].tolist() for column in columns), strict=True)
    try:
        with _content(source) as content:
            for line, offset, length, known in wanted:
                content.seek(offset)
                record = content.read(length).strip()
                if content_of(record) != known:
                    raise ChangedError(source.name, f"has another content at byte {offset}")
                yield line, offset, record
    except RewrittenError as error:
        raise ChangedError(source.name, str(error)) from error
    except OSError as error:
        raise UnreadableError(source.name) from error


def _content(source: Source) -> BinaryIO:
    """The content that offsets count in: the file itself, or what is packed in it."""
    if source.path is not None and is_plain(source.path):
        return source.path.open("rb")
    return io.BytesIO(source.data)
