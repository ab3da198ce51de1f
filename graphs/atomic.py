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

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # these errors of a write do not name the file


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Write `path` through a temporary file beside it, which is renamed on success and removed on failure.

    The content is on disk before the rename, so a crash leaves the old file or the new one. The next write of the same
    file removes what a killed process left behind: a temporary file that no process has locked. Permissions are those
    that a plain `open` gives.

    Raises:
      OSError: the folder does not exist, cannot be written to, or takes no files, as /proc.
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
    """Remove the temporary files of this process, before an exit that runs no `finally` block."""
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
    """System errors name `path` in place of the temporary file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _create(path: Path) -> tuple[int, str]:
    """A new temporary file, locked."""
    while True:
        with _named(path):
            try:
                descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{_stem(path)}.", suffix=".part")
            except FileNotFoundError as error:
                if not path.parent.is_dir():
                    raise
                raise OSError(error.errno, f"folder {str(path.parent)!r} takes no files") from error
        if _lock(descriptor) and os.path.exists(name):
            return descriptor, name
        os.close(descriptor)  # another writer removed it as abandoned before it was locked


def _stem(path: Path) -> str:
    """The stem of a path's temporary files: the file's name, or a digest of a name that is too long to extend."""
    if len(os.fsencode(path.name)) <= LONGEST:
        return path.name
    return hashlib.sha256(os.fsencode(path.name)).hexdigest()


def _remove_abandoned(path: Path) -> None:
    temporary = re.compile(rf"\.{re.escape(_stem(path))}\.[a-z0-9_]{{8}}\.part")
    try:
        names = [name for name in os.listdir(path.parent) if temporary.fullmatch(name)]
    except OSError:
        return  # the folder does not exist or cannot be listed; creating the file raises the right error
    for name in names:
        left = path.parent / name
        with contextlib.suppress(OSError):  # the file is gone, or belongs to another user
            descriptor = os.open(left, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(descriptor):
                    os.unlink(left)
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Take the lock of an open file; False where another process holds it. Closing the file releases the lock."""
    if sys.platform == "win32":
        return True  # an open file cannot be removed there
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # the file system has no locks
    return True
