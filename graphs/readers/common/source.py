"""Sources of readers: a name, decompressed bytes, and lines with numbers and offsets."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import io
import os
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import zstandard

from graphs.errors import Problem, expect
from graphs.readers.common.remote import FetchedPath, is_remote, list_remote
from graphs.text import counted, excerpt
from graphs.traces.limits import DEFAULT, Limits

__all__ = ["SUFFIXES", "Source", "TooLargeError", "find_sources", "unreadable"]

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".parquet", ".eval", ".traj")
"""Names of logs in a folder, also with .gz or .zst behind; other files are passed over and listed."""

COMPRESSIONS = (".gz", ".zst")

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_CHUNK = 1 << 20
_FIRST = 1 << 12  # bytes of the first lines, which are often looked at alone
_FRAME_CHUNK = 1 << 9  # of compressed Zstandard: 512 bytes unpack to 16 MiB at most


class TooLargeError(OSError):
    """A file whose content is longer than `Limits.file_bytes`."""


@dataclasses.dataclass(frozen=True)
class Source:
    """One input: `name` is what errors print, `path` is None for standard input.

    A byte order mark of UTF-8 is dropped, and offsets count from behind it. `refused` holds, by line, what `lines` left
    out because it passes the limits; `graphs.readers.read_records` yields it after the reader is done.
    """

    name: str
    path: Path | None
    limits: Limits = DEFAULT
    refused: dict[int, Problem] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    @functools.cached_property
    def data(self) -> bytes:
        """The whole content, decompressed.

        Raises:
          OSError: it cannot be read or decompressed, is longer than the limit, or ends in the middle of compressed
            data; `unreadable` makes a `Problem` of it.
        """
        most = self.limits.file_bytes
        if self.path is None:
            if sys.stdin is None:
                raise OSError("standard input is closed")
            return _unpack(io.BytesIO(_read(sys.stdin.buffer, most)), None, most).removeprefix(BYTE_ORDER_MARK)
        with self.path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > most:
                raise TooLargeError(f"more than {counted(most, 'byte')}")
            return _unpack(file, None, most).removeprefix(BYTE_ORDER_MARK)

    def head(self, size: int) -> bytes:
        """The first `size` bytes of the content, decompressed, without reading the rest of a file.

        Raises:
          OSError: as for `data`, as far as the first bytes tell.
        """
        if self.path is None or "data" in self.__dict__:
            return self.data[:size]
        if isinstance(self.path, FetchedPath):
            first = self.path.first_bytes(max(size, 4))
            if not first.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1")):
                return first[:size].removeprefix(BYTE_ORDER_MARK)
        with self.path.open("rb") as file:
            return _unpack(file, size, self.limits.file_bytes).removeprefix(BYTE_ORDER_MARK)

    def release(self) -> None:
        """Forget the content, so that a folder's files are not all in memory at once."""
        self.__dict__.pop("data", None)

    def lines(self) -> Iterator[tuple[int, int, bytes]]:
        """(line number from 1, byte offset, content) of each line that is not blank and within the limits."""
        number = 0
        for start, text in self.windows():
            number = yield from self.lines_within(text, number, start)

    def lines_within(self, text: bytes, number: int, start: int) -> Generator[tuple[int, int, bytes], None, int]:
        """`lines` of a window at an offset, behind a number of lines; returns the number of lines behind it."""
        limits, lines = self.limits, text.split(b"\n")
        checked = limits.may_refuse(text, np.cumsum([len(line) + 1 for line in lines]))
        for line in lines:
            number += 1
            record = line.strip()
            if record:
                problem = limits.refuse_record(record, self.name, number) if checked else None
                if problem is None:
                    yield number, start, record
                else:
                    self.refused[number] = problem
            start += len(line) + 1
        return number

    def unchecked_lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Like `lines`, for a reader that checks the limits of records itself."""
        number = 0
        for start, text in self.windows():
            for line in text.split(b"\n"):
                number += 1
                record = line.strip()
                if record:
                    yield number, start, record
                start += len(line) + 1

    def windows(self, most: int = _CHUNK) -> Iterator[tuple[int, bytes]]:
        """Lines of about `most` bytes together, fewer at first: their byte offset and content."""
        data, start, size = self.data, 0, min(_FIRST, most)
        while start < len(data):
            end = data.find(b"\n", start + size)
            size = min(4 * size, most)
            end = len(data) if end < 0 else end
            yield start, data[start:end]
            start = end + 1


def unreadable(source: Source, error: OSError) -> Problem:
    """The problem of a source that cannot be read."""
    if isinstance(error, TooLargeError):
        return source.limits.refuse_file(source.name)
    return Problem("unreadable", source.name, 0, "file", excerpt(error.strerror or str(error)), "a readable file")


def _unpack(file: BinaryIO, size: int | None, most: int) -> bytes:
    """The content, or its first `size` bytes, decompressed if its first bytes say that it is compressed.

    Never holds much more than `most` bytes, whatever a compressed file claims or unpacks to.
    """
    magic = file.read(4)
    file.seek(0)
    try:
        if magic.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=file) as unpacked:
                return _read(unpacked, most) if size is None else unpacked.read(size)
        if magic == b"\x28\xb5\x2f\xfd":
            if size is not None:
                with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False) as stream:
                    head: bytes = stream.read(size)
                if len(head) == size:
                    return head
                file.seek(0)  # the whole file, or one that ends within a frame, which the stream does not tell
            return _unpack_zstandard(file, most)
    except (EOFError, zlib.error, zstandard.ZstdError) as error:
        raise OSError(f"damaged compressed data: {error}") from error
    if size is not None:
        return file.read(size)
    content = file.read(os.fstat(file.fileno()).st_size) if isinstance(file, io.BufferedReader) else b""
    more = file.read(_CHUNK)  # of a file that grew, or that says no size
    return content + more + _read(file, most - len(content) - len(more)) if more else content


def _read(file: BinaryIO | gzip.GzipFile, most: int) -> bytes:
    """The rest of a file, piece by piece.

    Raises:
      TooLargeError: that is more than `most` bytes.
    """
    content = io.BytesIO()
    while chunk := file.read(_CHUNK):
        content.write(chunk)
        if content.tell() > most:
            raise TooLargeError(f"more than {counted(most, 'byte')}")
    return content.getvalue()


def _unpack_zstandard(file: BinaryIO, most: int) -> bytes:
    """Frame after frame; the library's stream reader would take a file that ends within a frame for a whole one."""
    content = io.BytesIO()
    frame = zstandard.ZstdDecompressor().decompressobj()
    fed = False  # whether the frame has begun
    while chunk := file.read(_FRAME_CHUNK):
        while chunk:
            content.write(frame.decompress(chunk))
            if content.tell() > most:
                raise TooLargeError(f"more than {counted(most, 'byte')}")
            fed, chunk = not frame.eof, frame.unused_data
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
    if fed:
        raise EOFError("the file ends within a frame")
    return content.getvalue()


def find_sources(
    paths: Iterable[str | Path], limits: Limits = DEFAULT
) -> tuple[list[Source], list[str], list[Problem]]:
    """The logs under `paths`: sources in sorted order, names that were passed over, and paths that cannot be opened.

    A folder is searched to its depths, without following links to folders; a file that is named outright is always a
    source, whatever its suffix; "-" is standard input. An address such as "s3://bucket/runs" is listed through fsspec.
    Problems: "no-such-file", "not-a-file", "broken-link",
    "outside-link", "empty-folder", "unreadable", and "too-many" for more files than the limit, of which none is a
    source then.

    Raises:
      CreditError: a path is not a text or a `Path`.
    """
    sources: list[Source] = []
    ignored: list[str] = []
    problems: list[Problem] = []
    paths = list(paths)
    check_paths(paths)
    for given in paths:
        if not str(given):
            problems.append(Problem("no-such-file", "", 0, "path", excerpt(""), "the name of a file or folder"))
            continue
        if str(given) == "-":
            sources.append(Source("<stdin>", None, limits))
            continue
        if is_remote(given) and not str(given).startswith("file://"):
            _list(str(given), limits, sources, ignored, problems)
            continue
        path = Path(url2pathname(urlsplit(str(given)).path) if is_remote(given) else given)
        if os.path.isdir(path):  # unlike pathlib's, never an error: a name may be too long
            before = len(sources) + len(ignored) + len(problems)
            _search(path, limits, sources, ignored, problems)
            if len(sources) + len(ignored) + len(problems) == before:
                problems.append(Problem("empty-folder", printable(path), 0, "folder", "empty", "at least one log file"))
        else:
            problem = _why_not_a_file(path)
            (sources.append(Source(printable(path), path, limits)) if problem is None else problems.append(problem))
    if len(sources) > limits.files:  # part of the files would be another batch than was asked for
        expected = f"at most {counted(limits.files, 'file')}"
        problems.append(Problem("too-many", printable(paths[0]), 0, "paths", counted(len(sources), "file"), expected))
        sources = []
    return sources, ignored, problems


def check_paths(paths: Iterable[object]) -> None:
    """Check that paths are texts or `Path`s.

    Raises:
      CreditError: one is something else, such as a list of paths or an open file.
    """
    for path in paths:
        expect("a path", path, (str, os.PathLike), "the name of a file or folder; several are arguments of their own")


def _search(folder: Path, limits: Limits, sources: list[Source], ignored: list[str], problems: list[Problem]) -> None:
    def refused(error: OSError) -> None:
        name = printable(error.filename or folder)
        problems.append(Problem("unreadable", name, 0, "folder", excerpt(error.strerror), "a readable folder"))

    files: list[Path] = []
    waiting = [str(folder)]
    while waiting:  # not os.walk, which before Python 3.12 goes no deeper than its stack
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if not _is_folder(entry):
                        files.append(Path(entry.path))
                    elif not entry.is_symlink():
                        waiting.append(entry.path)
        except OSError as error:
            refused(error)
    for file in sorted(files):
        if not is_log(file):
            ignored.append(printable(file))
            continue
        problem = _why_not_a_file(file) or _leads_outside(file, folder)
        (sources.append(Source(printable(file), file, limits)) if problem is None else problems.append(problem))


def _list(address: str, limits: Limits, sources: list[Source], ignored: list[str], problems: list[Problem]) -> None:
    """The logs under an address of object storage; nothing is fetched."""
    try:
        listed = list_remote(address)
    except OSError as error:
        kind = "no-such-file" if isinstance(error, FileNotFoundError) else "unreadable"
        reason = excerpt(error.strerror or str(error))
        problems.append(Problem(kind, printable(address), 0, "path", reason, "an address that can be listed"))
        return
    for name, path, outright in listed:
        if not (outright or is_log(path)):
            ignored.append(printable(name))
        elif path.size is not None and path.size > limits.file_bytes:
            problems.append(limits.refuse_file(printable(name)))
        else:
            sources.append(Source(printable(name), path, limits))


def _leads_outside(file: Path, folder: Path) -> Problem | None:
    """A problem for a link to a file outside the searched folder, because the author of the logs chose its target."""
    if not os.path.islink(file) or Path(os.path.realpath(folder)) in Path(os.path.realpath(file)).parents:
        return None
    expected = "a file of the folder itself; name the linked file to read it"
    return Problem("outside-link", printable(file), 0, "path", "a link out of the folder", expected)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _why_not_a_file(path: Path) -> Problem | None:
    """None for a file that can be opened, otherwise the reason why it cannot."""
    try:
        path.stat()
    except (OSError, ValueError) as error:  # a ValueError for a name with a zero byte
        kind, expected = "no-such-file", "an existing file or folder"
        if os.path.islink(path):
            kind, expected = "broken-link", "a link to an existing file"
        elif isinstance(error, PermissionError):
            kind, expected = "unreadable", "a path that may be searched"
        reason = getattr(error, "strerror", None) or str(error)
        return Problem(kind, printable(path), 0, "path", excerpt(reason), expected)
    if not path.is_file():
        return Problem("not-a-file", printable(path), 0, "path", excerpt(str(path)), "a regular file or a folder")
    return None


def printable(path: str | Path) -> str:
    """A path as text that UTF-8 can hold: bytes of a name that are none are spelt out, as in "\\xff.json"."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_log(path: Path) -> bool:
    """Whether a file in a folder has a log's name."""
    suffixes = [s for s in path.suffixes if s not in COMPRESSIONS]
    return bool(suffixes) and suffixes[-1] in SUFFIXES and not path.name.startswith(".")
