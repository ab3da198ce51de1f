"""Logs in object storage: addresses such as `s3://bucket/runs/`, listed and fetched through fsspec.

A file is fetched when it is first opened, into a temporary folder of the process, which is removed when the process
ends. Errors name the address. A path that is sent to another process is fetched there again.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

from graphs.errors import CreditError, MissingExtraError

__all__ = ["FetchedPath", "file_size", "is_remote", "list_remote"]

EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
"""The extra that installs what a scheme needs; `remote` for all others."""

VERSION = ("size", "mtime", "LastModified", "ETag", "etag", "md5Hash", "created")
"""What file systems state that differs between two contents of one address."""


def is_remote(path: object) -> bool:
    """Whether a path is an address with a scheme, such as `s3://bucket/runs`."""
    scheme, sign, _ = str(path).partition("://")
    return isinstance(path, str) and bool(sign) and scheme.isalnum()


def list_remote(address: str) -> list[tuple[str, FetchedPath, bool]]:
    """The files under an address in the order of their names: address, path, and whether `address` names it outright.

    Raises:
      MissingExtraError: fsspec, or what it needs for the scheme, is not installed.
      CreditError: no such scheme.
      OSError: nothing is there, or access is denied.
    """
    files, root = _file_system(address)
    files.invalidate_cache()  # a listing may be kept from an earlier call
    infos = {name: info for name, info in sorted(files.find(root, detail=True).items()) if not name.endswith("/")}
    if not infos:
        raise FileNotFoundError(2, "No such file or directory", address)
    versions = {name: {key: info[key] for key in VERSION if key in info} for name, info in infos.items()}
    key = hashlib.blake2b(repr((address, versions)).encode(), digest_size=12).hexdigest()
    listed = []
    for name, version in versions.items():
        below = name.removeprefix(root).strip("/") or name.rpartition("/")[2]
        if any(part in ("", ".", "..") for part in below.split("/")):  # a key of object storage may hold any text
            below = hashlib.blake2b(name.encode(), digest_size=12).hexdigest() + "".join(Path(name).suffixes)
        path = _fetched(files.unstrip_protocol(name), version.get("size"), f"{key}/{below}")
        listed.append((path.address, path, name == root))
    return listed


def file_size(path: Path) -> int:
    """Bytes of a file; a remote one is not fetched.

    Raises:
      OSError: it cannot be read.
    """
    size = path.size if isinstance(path, FetchedPath) else None
    return os.stat(path).st_size if size is None else size


class FetchedPath(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """The local copy of a remote file, which is fetched when the path is first used; pickled as its address."""

    address: str = ""
    size: int | None = None
    below: str = ""

    def __fspath__(self) -> str:
        if self.address:
            _fetch(self.address, self.size, str(self))
        return str(self)

    def __reduce__(self) -> Any:
        return (_fetched, (self.address, self.size, self.below)) if self.address else super().__reduce__()

    def first_bytes(self, size: int) -> bytes:
        """The first bytes of the content, without fetching the rest."""
        files, path = _file_system(self.address)
        first: bytes = files.read_block(path, 0, size)
        return first


def _fetched(address: str, size: int | None, below: str) -> FetchedPath:
    path = FetchedPath(_folder(), below)
    path.address, path.size, path.below = address, size, below
    return path


def _fetch(address: str, size: int | None, place: str) -> None:
    """Copy a file, whole or not at all."""
    if os.path.exists(place):
        return
    files, path = _file_system(address)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    part = f"{place}.{threading.get_ident()}.part"
    try:
        with files.open(path, "rb") as source, open(part, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        if size is not None and os.path.getsize(part) != size:
            raise OSError(f"has another length than when it was listed, {size} bytes")
        os.utime(part, ns=(0, 0))  # one time in every process: a copy is no file that was rewritten
        os.replace(part, place)
    finally:
        if os.path.exists(part):
            os.unlink(part)


@functools.cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="orchestration-credit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _file_system(address: str) -> tuple[Any, str]:
    scheme = address.partition("://")[0]
    extra = EXTRAS.get(scheme, "remote")
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtraError("fsspec", extra) from error
    try:
        files, path = url_to_fs(address)
    except ImportError as error:  # of the library behind the scheme
        raise MissingExtraError(f"what {scheme}:// needs ({error})", extra) from error
    except ValueError as error:
        raise CreditError(f"{address!r}: {error}; expected a scheme that fsspec knows, such as s3://") from error
    return files, path
