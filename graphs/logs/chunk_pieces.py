"""The second pass of `graphs.logs.chunks` over its files: the records that the first pass met, or a named error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphs.errors import CreditError, Problem
from graphs.formats.native import Piece, pieces
from graphs.logs.chunk_index import ChunkIndex, content_of
from graphs.reading.remote import RewrittenError
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
    """The records of some traces of a file, by their rows in the index: the bytes that the first pass met there.

    Sizes and times of a file say less: they stay where a program sets them back, and change where nobody wrote.

    Raises:
      ChangedError: other bytes are there, or none.
      UnreadableError: the file cannot be read.
    """
    try:
        yield from _pieces(source, index, rows)
    except RewrittenError as error:
        raise ChangedError(source.name, str(error)) from error
    except OSError as error:
        raise UnreadableError(source.name) from error


def _pieces(source: Source, index: ChunkIndex, rows: np.ndarray) -> Iterator[Piece]:
    lines, offsets, lengths = (column[rows].tolist() for column in (index.line, index.offset, index.length))
    contents = index.content[rows].tolist()
    if not all(lengths) or source.path is None:
        wanted = dict(zip(offsets, contents, strict=True))
        for piece in pieces(source):
            if not isinstance(piece, Problem) and piece[1] in wanted:
                yield _known(source, piece, wanted.pop(piece[1]))
        if wanted:
            raise ChangedError(source.name, "has fewer traces than before")
        return
    with source.path.open("rb") as file:
        for line, offset, length, content in zip(lines, offsets, lengths, contents, strict=True):
            file.seek(offset)
            yield _known(source, (line, offset, file.read(length).strip()), content)


def _known(source: Source, piece: Piece, content: int) -> Piece:
    """The piece, if it is the one that the first pass met there."""
    if content_of(piece[2]) != content:
        raise ChangedError(source.name, f"has another content at byte {piece[1]}")
    return piece
