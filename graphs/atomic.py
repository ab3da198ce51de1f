"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

__all__ = ["atomic_write", "remove_unfinished"]

LONGEST = 200  # bytes of a name; systems allow 255, and the temporary name adds 15

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # writing fails so, and does not say which file


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` that takes its name when the block ends well, and vanishes when it does not.

    The content is on disk before the name changes, so that a crash leaves the old file or the new one. What a killed
    process left behind is removed when the same file is written again: a temporary file whose lock nobody holds has
    no writer any more. Permissions are those that a plain `open` would give.

    Raises:
      OSError: the folder does not exist or cannot be written to.
    """
    path = Path(path)
    _remove_abandoned(path)
    descriptor, name = _create(path)
    _unfinished.add(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":  # else an open file cannot be renamed
                _publish(name, path)
        if sys.platform == "win32":
            _publish(name, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            error.filename = str(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    finally:
        _unfinished.discard(name)


def remove_unfinished() -> None:
    """Remove the temporary files of this process, which is about to die without unwinding."""
    for name in list(_unfinished):
        with contextlib.suppress(OSError):
            os.unlink(name)


_unfinished: set[str] = set()


def _publish(name: str, path: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(name, 0o666 & ~mask)
    with _named(path):
        os.replace(name, path)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of the system name the file that was asked for, the one that people know, not the temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _create(path: Path) -> tuple[int, str]:
    """A new temporary file, locked."""
    while True:
        with _named(path):
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{_stem(path)}.", suffix=".part")
        if _lock(descriptor) and os.path.exists(name):
            return descriptor, name
        os.close(descriptor)  # another writer took it for abandoned, between its creation and its lock


def _stem(path: Path) -> str:
    """What temporary files of a path are called by: its name, or a digest of a name that leaves no room for more."""
    if len(os.fsencode(path.name)) <= LONGEST:
        return path.name
    return hashlib.sha256(os.fsencode(path.name)).hexdigest()


def _remove_abandoned(path: Path) -> None:
    temporary = re.compile(rf"\.{re.escape(_stem(path))}\.[a-z0-9_]{{8}}\.part")
    try:
        names = [name for name in os.listdir(path.parent) if temporary.fullmatch(name)]
    except OSError:
        return  # the folder is not there or may not be listed: creating the file tells which
    for name in names:
        left = path.parent / name
        with contextlib.suppress(OSError):  # gone meanwhile, or another user's: not ours to remove
            descriptor = os.open(left, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(descriptor):
                    os.unlink(left)
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Whether nobody else holds the lock of an open file; then this process does, until it closes the file or dies."""
    if sys.platform == "win32":
        return True  # an open file cannot be removed there
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: the file's own name is all there is
    return True
