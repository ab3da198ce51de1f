"""What is an address of storage, and what a path of a file system: the one place that decides."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from graphs.errors import CreditError

__all__ = ["is_address", "is_remote", "links_of", "local_path", "was_address"]

_SCHEME = r"[A-Za-z][A-Za-z0-9+._-]+"  # of two letters at least: "C:" is a drive of Windows
_ADDRESS = re.compile(rf"(?:{_SCHEME}::)*{_SCHEME}://")
_CUT = re.compile(rf"{_SCHEME}:/")


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
    """The path of what is no remote address; of `file://` what stands behind it, with one slash more or less.

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
    host = "" if parts.netloc == "localhost" else parts.netloc
    return Path(url2pathname(host + parts.path))
