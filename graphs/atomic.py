"""Files and folders that appear whole or not at all, and locks that keep two writers of one file apart."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from graphs.errors import CreditError

__all__ = ["append", "atomic_folder", "atomic_write", "locked", "made_folder", "remove_unfinished"]

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
                _publish(name, path, 0o666)
        if sys.platform == "win32":
            _publish(name, path, 0o666)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            error.filename = str(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    finally:
        _unfinished.discard(name)


@contextlib.contextmanager
def atomic_folder(folder: str | Path) -> Iterator[Path]:
    """Fill a temporary folder, which becomes `folder` when all of it is written, and is removed on failure.

    The folders above are made. If `folder` exists, each entry of the temporary folder replaces the entry of the same
    name, in the order of their names, and other entries stay. The next write of the same folder removes what a killed
    process left behind.

    Raises:
      OSError: the folder cannot be written to, or is a file. The error names the place in `folder`.
    """
    folder = Path(os.path.abspath(folder))  # "." has no name
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    is_new = not folder.exists()
    home = folder.parent if is_new else folder  # the parent of a folder that exists may be another disk, or read-only
    with made_folder(home):
        _remove_abandoned(home / folder.name)
        with _named(folder):
            name = tempfile.mkdtemp(dir=home, prefix=f".{_stem(folder)}.", suffix=".part")
        _unfinished.add(name)
        descriptor = -1 if sys.platform == "win32" else os.open(name, os.O_RDONLY)
        try:
            _lock(descriptor)
            yield Path(name)
            if is_new:
                _publish(name, folder, 0o777)
            else:
                for entry in sorted(os.listdir(name)):
                    if Path(name, entry).is_dir():
                        _remove(folder / entry)  # only an empty folder can be replaced
                    with _named(folder / entry):
                        os.replace(Path(name, entry), folder / entry)
        except OSError as error:
            if isinstance(error.filename, str):
                error.filename = error.filename.replace(name, str(folder))
            raise
        finally:
            if descriptor >= 0:
                os.close(descriptor)
            shutil.rmtree(name, ignore_errors=True)
            _unfinished.discard(name)


def append(path: Path, lines: bytes) -> None:
    """Append whole lines to a file, all or none, and wait until they are on the disk.

    A torn line at the end of the file, from a process that was killed, is cut off first. Several processes that append
    to one file need `locked`.

    Raises:
      OSError: the file cannot be written. It is then as before.
    """
    with path.open("ab+", buffering=0) as file:  # a buffer would be written again when the file is closed
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":
                file.seek(0)
                end = file.readall().rfind(b"\n") + 1
                file.truncate(end)
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError as error:
            file.truncate(end)
            error.filename = str(path)
            raise


@contextlib.contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; where the block fails, remove those that were made and are empty.

    Raises:
      OSError: the folder cannot be made, or is a file.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # not empty
            for path in missing:
                path.rmdir()
        raise


@contextlib.contextmanager
def locked(path: Path, *, wait: float = 0) -> Iterator[None]:
    """Keep other processes and threads that ask for the same lock from `path`.

    The lock is a file beside `path`, which the system frees when its process ends. Windows has no such locks.

    Args:
      path: a file, which need not be there; its folder is.
      wait: seconds to wait for another process.

    Raises:
      CreditError: another process has the lock.
      OSError: the folder takes no files.
    """
    name, end = path.parent / f".{_stem(path)}.lock", time.monotonic() + wait
    while True:
        with _named(path):
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        has_lock = _lock(descriptor)
        # The process that had the lock removed its file: a third one may have made and locked another by now.
        if has_lock and _is_file_of(descriptor, name):
            break
        os.close(descriptor)
        if not has_lock and time.monotonic() >= end:
            raise CreditError(f"another process writes {path}; expected one at a time")
        time.sleep(0.005)
    _unfinished.add(str(name))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)
        os.close(descriptor)
        _unfinished.discard(str(name))


def remove_unfinished() -> None:
    """Remove the temporary files and locks of this process, before an exit that runs no `finally` block."""
    for name in list(_unfinished):
        _remove(name)


def _remove(name: str | Path) -> None:
    """Remove a file or a folder; one that is gone or belongs to another user stays as it is."""
    if os.path.isdir(name) and not os.path.islink(name):
        shutil.rmtree(name, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(name)


_unfinished: set[str] = set()


def _publish(name: str, path: Path, mode: int) -> None:
    """Rename a finished file or folder to `path`, with the permissions that `open` or `mkdir` would give it."""
    mask = os.umask(0)  # it can only be read by setting it
    os.umask(mask)
    os.chmod(name, mode & ~mask)
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
            descriptor = os.open(left, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(descriptor):
                    _remove(left)
            finally:
                os.close(descriptor)


def _is_file_of(descriptor: int, name: Path) -> bool:
    """Whether a name still belongs to an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), name.stat())
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    """Take the lock of an open file; False where another process holds it. Closing the file releases the lock."""
    if sys.platform == "win32":
        return True  # no lock is needed: an open file cannot be removed there
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # the file system has no locks
    return True
