"""Addresses such as `s3://bucket/runs/`: how they are told from paths, and their files, listed and fetched by fsspec.

A file is fetched when it is first opened, into a temporary folder of the process, which is removed when the process
ends. Errors name the address. A path that is sent to another process is fetched there again.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import functools
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from graphs.errors import CreditError, MissingExtraError

__all__ = [
    "FetchedPath",
    "RewrittenError",
    "file_size",
    "is_address",
    "is_remote",
    "links_of",
    "list_remote",
    "local_path",
    "normal_address",
    "real_folder",
    "was_address",
]

_SCHEME = r"[A-Za-z][A-Za-z0-9+._-]+"  # of two letters at least: "C:" is a drive of Windows
_ADDRESS = re.compile(rf"(?:{_SCHEME}::)*{_SCHEME}://")
_CUT = re.compile(rf"{_SCHEME}:/")

EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
"""The extra that installs what a scheme needs; `remote` for all others."""

VERSION = (
    "size", "mtime", "LastModified", "last_modified", "modify", "ETag", "etag", "md5Hash", "blob_id", "created", "CRC"
)  # fmt: skip
"""Keys of a listing whose values change when the content of a file does."""

EXACT = ("mtime", "ETag", "etag", "md5Hash", "blob_id", "created", "CRC")
"""Those of `VERSION` that are equal in a listing and in the answer for one file; other times may be rounded."""

CACHES = frozenset({"blockcache", "cached", "filecache", "simplecache"})
"""Links of a chain that only keep copies: names below them are those of the next link."""


def is_address(path: object) -> bool:
    """Whether a text is an address with a scheme. A path may have colons, and a `Path` is a path.

    Examples:
      >>> from pathlib import Path
      >>> [is_address(text) for text in ("s3://bucket/runs", "file:///runs", "zip://a.jsonl::s3://b/runs.zip")]
      [True, True, True]
      >>> is_address("simplecache::s3://bucket/runs")
      True
      >>> [is_address(text) for text in ("run:3/out", "runs::old/out", "C:/runs", "C://runs", Path("s3://bucket"))]
      [False, False, False, False, False]
    """
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def is_remote(path: object) -> bool:
    """Whether a text is an address of storage behind fsspec: one that is not of this machine's files.

    Examples:
      >>> [is_remote(text) for text in ("s3://bucket/runs", "file:///runs", "runs")]
      [True, False, False]
    """
    return is_address(path) and not str(path).startswith("file://")


def was_address(path: Path) -> bool:
    """Whether a `Path` was made of an address: `pathlib` leaves one slash of two.

    Examples:
      >>> from pathlib import Path
      >>> was_address(Path("s3://bucket/out")), was_address(Path("run:3/out")), was_address(Path("C:/out"))
      (True, False, False)
    """
    return _CUT.match(path.as_posix()) is not None


def links_of(address: str) -> list[str]:
    """The addresses of a chain, as fsspec calls it.

    Examples:
      >>> links_of("simplecache::s3://bucket/runs")
      ['simplecache', 's3://bucket/runs']
    """
    return address.split("::")


def local_path(path: str | Path) -> Path:
    """A path as it is, and the path in an address `file://`; for anything but a remote address.

    Examples:
      >>> [local_path(text).as_posix() for text in ("file:///runs/a%20b", "file://runs/a", "run:3")]
      ['/runs/a b', 'runs/a', 'run:3']

    Raises:
      CreditError: an address of a file has a "?" or a "#", which end its path; in a name they are %3F and %23.
    """
    if not is_address(path):
        return Path(path)
    parts = urlsplit(str(path))
    if "?" in str(path) or "#" in str(path):
        raise CreditError(f"{str(path)!r} has a '?' or '#'; expected %3F or %23 in the address of a file")
    from urllib.request import url2pathname  # slow to import

    host = "" if parts.netloc == "localhost" else parts.netloc
    return Path(url2pathname(host + parts.path))


@functools.lru_cache(maxsize=1024)  # asked for each row of a file; `open_logs` forgets what was so in earlier readings
def real_folder(file: str) -> str:
    """The folder of a file, by one name however the file's is spelled: joined with links, "..", or from the root."""
    folder = os.path.dirname(file)
    return folder if is_remote(file) else os.path.realpath(folder)


class RewrittenError(OSError):
    """A file has another content than when it was listed."""


def list_remote(address: str) -> list[tuple[str, FetchedPath, bool]]:
    """The files under an address in the order of their names: address, path, and whether `address` names it outright.

    Raises:
      MissingExtraError: fsspec, or what it needs for the scheme, is not installed.
      CreditError: no such scheme.
      OSError: nothing is there, access is denied, or the storage cannot be reached.
    """
    files, root = _file_system(address)
    with _as_oserror():
        files.invalidate_cache()  # a listing may be kept from an earlier call
        listing = files.find(root, detail=True)
    infos = {name: info for name, info in sorted(listing.items()) if not name.endswith("/")}
    if not infos:
        raise FileNotFoundError(2, "No such file or directory", address)
    versions = {name: {key: info[key] for key in VERSION if key in info} for name, info in infos.items()}
    key = hashlib.blake2b(repr((address, versions)).encode(), digest_size=12).hexdigest()
    listed = []
    for name, version in versions.items():
        below = name.removeprefix(root).strip("/") or name.rpartition("/")[2]
        if any(part in ("", ".", "..") for part in below.split("/")):  # a key of object storage may hold any text
            below = hashlib.blake2b(name.encode(), digest_size=12).hexdigest() + "".join(Path(name).suffixes)
        path = _fetched(_address_of(files, name, address), version.get("size"), f"{key}/{below}", _exact(version))
        listed.append((path.address, path, name == root))
    return listed


def _address_of(files: Any, name: str, listed: str) -> str:
    """The address of a file that was found under an address; of a chain with all its links."""
    links = links_of(listed)
    if len(links) == 1:
        return str(files.unstrip_protocol(name))
    schemes = [link.partition("://")[0] for link in links]
    place = next(number for number, scheme in enumerate(schemes) if scheme not in CACHES)
    links[place] = name if "://" in name else f"{schemes[place]}://{name}"
    return "::".join(links)


def normal_address(address: str) -> str:
    """What all addresses of a file share: the address without caches, a web server's name in small letters.

    Examples:
      >>> normal_address("simplecache::https://Logs.Example/A.jsonl")
      'https://logs.example/A.jsonl'
    """
    *links, last = [link for link in links_of(address) if link.partition("://")[0] not in CACHES] or [address]
    scheme, mark, rest = last.partition("://")
    if scheme in ("http", "https"):
        host, slash, path = rest.partition("/")
        last = f"{scheme}{mark}{host.lower()}{slash}{path}"
    return "::".join([*links, last])


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
    exact: Mapping[str, str] = {}
    """What the listing stated that differs between two contents."""

    def __fspath__(self) -> str:
        if self.address:
            _fetch(self, str(self))
        return str(self)

    def __reduce__(self) -> Any:
        if not self.address:
            return super().__reduce__()
        return _fetched, (self.address, self.size, self.below, self.exact)

    def first_bytes(self, size: int) -> bytes:
        """The first bytes of the content, without fetching the rest."""
        files, path = _file_system(self.address)
        first: bytes
        with _as_oserror():
            if len(links_of(self.address)) == 1:
                first = files.read_block(path, 0, size)
            else:  # the file of a cache is a plain one, which `read_block` does not take
                with files.open(path, "rb") as file:
                    first = file.read(size)
        return first


def _fetched(address: str, size: int | None, below: str, exact: Mapping[str, str]) -> FetchedPath:
    path = FetchedPath(_folder(), below)
    path.address, path.size, path.below = address, size, below
    path.exact = exact
    return path


def _fetch(listed: FetchedPath, place: str) -> None:
    """Copy a file, whole or not at all.

    Raises:
      RewrittenError: it is not the file that was listed.
      OSError: it cannot be read.
    """
    if os.path.exists(place):
        return
    files, path = _file_system(listed.address)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    part = f"{place}.{threading.get_ident()}.part"
    try:
        with _as_oserror(), files.open(path, "rb") as source, open(part, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        if listed.size is not None and os.path.getsize(part) != listed.size:
            raise RewrittenError(f"has another length than when it was listed, {listed.size} bytes")
        with _as_oserror():
            files.invalidate_cache()  # else the answer may be that of the listing
            now = _exact(files.info(path))
        for name in listed.exact.keys() & now.keys():
            if now[name] != listed.exact[name]:
                raise RewrittenError(f"has another {name} than when it was listed")
        os.replace(part, place)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def _exact(info: Mapping[str, Any]) -> dict[str, str]:
    """The entries of `EXACT` in an answer."""
    return {name: _text(info[name]) for name in EXACT if name in info}


def _text(value: Any) -> str:
    """A value of an answer. In some answers ETags have quotes, and times are objects of some zone."""
    return str(value.timestamp() if isinstance(value, datetime.datetime) else value).strip('"')


@functools.cache
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="orchestration-credit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _as_oserror(*kept: type[Exception]) -> Iterator[None]:
    """Errors of the libraries behind fsspec as system errors: of credentials that are missing, or of the network.

    Each library has classes of its own, such as those of botocore and google.auth, which have no base in common.

    Args:
      kept: classes that stay as they are.
    """
    as_they_are: tuple[type[Exception], ...] = (OSError, CreditError, MemoryError, *kept)
    try:
        yield
    except as_they_are:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def _file_system(address: str) -> tuple[Any, str]:
    scheme = links_of(address)[-1].partition("://")[0]
    extra = EXTRAS.get(scheme, "remote")
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtraError("fsspec", extra) from error
    try:
        with _as_oserror(ImportError, ValueError):  # an archive is opened here, and a server asked
            files, path = url_to_fs(address)
    except ImportError as error:  # of the library behind the scheme
        if scheme not in EXTRAS:  # fsspec's words name the package
            raise CreditError(f"{address!r}: {error}; install the package that reads {scheme}://") from error
        raise MissingExtraError(f"the package that reads {scheme}:// ({error})", extra) from error
    except ValueError as error:
        raise CreditError(f"{address!r}: {error}; expected a scheme that fsspec knows, such as s3://") from error
    return files, path
