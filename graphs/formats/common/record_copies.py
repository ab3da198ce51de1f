"""Records without ids of their own that a copied file states again."""

from __future__ import annotations

import hashlib

__all__ = ["RecordCopies"]


class RecordCopies:
    """Where each record of a kind was first met, for records that no id tells apart.

    Two equal records of one file are two events, since a program writes each event once. The same bytes in another file
    are a copy of that file, or of a part of it. Only a format knows which of its records have no id: the copies of
    others are found by their ids, and those of whole traces by `graphs.traces.copies`.
    """

    def __init__(self) -> None:
        self._files: dict[bytes, str] = {}  # by digest of a record

    def is_copy(self, record: bytes, file: str) -> bool:
        """Whether a record of the same bytes was met in another file before."""
        return self._files.setdefault(hashlib.blake2b(record, digest_size=16).digest(), file) != file
