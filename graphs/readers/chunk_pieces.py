"""The second pass of `graphs.readers.chunks` over its files: the records that the first pass met, or a named error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphs.errors import CreditError, Problem
from graphs.readers.chunk_index import GLANCE, ChunkIndex, hash_of, identity_of
from graphs.readers.common.json_problems import JSON_ERRORS
from graphs.readers.common.remote import RewrittenError
from graphs.readers.common.source import Source
from graphs.readers.file_state import FileState, digest_of, state_of
from graphs.readers.native import Piece, pieces

__all__ = ["ChangedError", "UnreadableError", "check_state", "chosen_pieces"]


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


def check_state(source: Source, before: FileState | None) -> None:
    """Check that a file is not shorter than in the first pass, and was not rewritten.

    Raises:
      ChangedError: it is, or was.
    """
    if before is None or source.path is None:
        return
    try:
        now = state_of(source.path)
        content = digest_of(source) if before.content else b""
    except RewrittenError as error:
        raise ChangedError(source.name, str(error)) from error
    except OSError as error:
        raise UnreadableError(source.name) from error
    if now.size < before.size:
        raise ChangedError(source.name, f"has {now.size} bytes; it had {before.size}")
    if content != before.content:
        raise ChangedError(source.name, "has another content")
    if now.size == before.size and now._replace(content=before.content) != before:
        raise ChangedError(source.name, "was written to, renamed or linked, and is as long as before")


def chosen_pieces(source: Source, index: ChunkIndex, rows: np.ndarray) -> Iterator[Piece]:
    """The records of some traces of a file, by their rows in the index.

    Raises:
      ChangedError: another trace is there, or none.
    """
    lines, offsets, lengths = (column[rows].tolist() for column in (index.line, index.offset, index.length))
    identities = index.identity[rows].tolist()
    if not all(lengths) or source.path is None:
        wanted = dict(zip(offsets, identities, strict=True))
        for piece in pieces(source):
            if not isinstance(piece, Problem) and piece[1] in wanted:
                yield _known(source, piece, wanted.pop(piece[1]))
        if wanted:
            raise ChangedError(source.name, "has fewer traces than before")
        return
    with source.path.open("rb") as file:
        for line, offset, length, identity in zip(lines, offsets, lengths, identities, strict=True):
            file.seek(offset)
            yield _known(source, (line, offset, file.read(length).strip()), identity)


def _known(source: Source, piece: Piece, identity: int) -> Piece:
    """The piece, if it is the trace that the first pass met there."""
    try:
        seen = GLANCE.decode(piece[2])
    except JSON_ERRORS as error:
        raise ChangedError(source.name, f"has no trace at byte {piece[1]} any more") from error
    if hash_of(identity_of(seen)) != identity:
        raise ChangedError(source.name, f"has another trace or task at byte {piece[1]}")
    return piece
