"""What tells two contents of one file apart without reading it: size, times, and what object storage states."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from graphs.readers.common.remote import FetchedPath
from graphs.readers.common.source import Source

__all__ = ["FileState", "digest_of", "state_of"]


class FileState(NamedTuple):
    """A file as the first pass read it.

    The times of a fetched copy say nothing and are 0. There `version` has what the storage stated.
    """

    size: int
    modified: int
    changed: int
    """Time of the last change in nanoseconds, which no program can set back, as `rsync -t` does with `modified`."""
    version: str
    """ETag, times and hashes of an object in storage; empty for a file of a folder."""
    content: bytes = b""
    """A hash of the whole content, for files that are unpacked as a whole; empty for others."""


def state_of(path: Path) -> FileState:
    """The state of a file, without a hash of its content.

    Raises:
      OSError: it cannot be read.
    """
    now = path.stat()
    if isinstance(path, FetchedPath):
        return FileState(now.st_size, 0, 0, path.version)
    return FileState(now.st_size, now.st_mtime_ns, now.st_ctime_ns, "")


def digest_of(source: Source) -> bytes:
    """A hash of the whole content of a file."""
    return hashlib.blake2b(source.data, digest_size=16).digest()
