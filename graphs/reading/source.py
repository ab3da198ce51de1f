"""Sources of readers: a name, decompressed bytes, and lines with numbers and offsets."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import io
import os
import sys
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import zstandard

from graphs.errors import Problem
from graphs.reading.addresses import FetchedPath
from graphs.text import counted, excerpt
from graphs.traces.limits import DEFAULT, SMALL_ARCHIVE, Limits

__all__ = [
    "Lost",
    "Source",
    "TooLargeError",
    "TooPackedError",
    "is_packed",
    "repeated_lines",
    "unreadable",
    "without_compression",
]

COMPRESSIONS = (".gz", ".zst")

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_SKIPPED, _SKIPPED_REST = [bytes([first]) for first in range(0x50, 0x60)], b"\x2a\x4d\x18"
_CHUNK = 1 << 20
_FIRST = 1 << 12  # bytes of the first lines, which are often looked at alone
_REASON = 200  # characters of why a file cannot be read: a sentence
_UNLIKE = 4  # lines that follow in one order again
_FRAME_CHUNK = 1 << 9  # of compressed Zstandard: 512 bytes unpack to 16 MiB at most


class TooLargeError(OSError):
    """A file whose content is longer than `Limits.file_bytes`."""


class TooPackedError(OSError):
    """A compressed file of `size` bytes whose content is longer than `Limits.ratio` allows, as that of equal rows."""

    def __init__(self, size: int) -> None:
        super().__init__(f"a compressed file of {counted(size, 'byte')} holds too much")
        self.size = size


class Lost(NamedTuple):
    """A record that cannot be read.

    Attributes:
      problem: why.
      text: its bytes, which may state its trace.
      trace: the id that it states in the column of a table; "" where the text may state one.
      is_unfinished: whether it is a last line without its newline.
    """

    problem: Problem
    text: bytes = b""
    trace: str = ""
    is_unfinished: bool = False


class Losses(dict[int, Lost]):
    """The records of a file that cannot be read, by offset.

    Attributes:
      noted: a list that gets each of them, too. The files of a log share one, so that nobody asks each file.
    """

    noted: list[Lost] | None = None

    def __setitem__(self, offset: int, lost: Lost) -> None:
        super().__setitem__(offset, lost)
        if self.noted is not None:
            self.noted.append(lost)


@dataclasses.dataclass(frozen=True)
class Source:
    """One input: its decompressed bytes, and its lines. Offsets count from behind a byte order mark of UTF-8.

    Attributes:
      name: what errors print.
      path: the file; None for standard input.
      limits: bounds on its content.
      is_named: whether the user named the file itself, and not a folder.
      lost: by offset, the records that cannot be read or that pass the limits. Iteration over records fills it.
        `graphs.reading.damage` reports them and refuses the traces that they may belong to.
      beside: further files, which were found by the place of this one.
      again: what `repeated_lines` found in its content, once a reader has released it.
    """

    name: str
    path: Path | None
    limits: Limits = DEFAULT
    is_named: bool = False
    lost: Losses = dataclasses.field(default_factory=Losses, compare=False, repr=False)
    beside: list[Source] = dataclasses.field(default_factory=list, compare=False, repr=False)
    again: list[tuple[int, int]] = dataclasses.field(default_factory=list, compare=False, repr=False)

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
            size, magic = os.fstat(file.fileno()).st_size, file.read(4)
            file.seek(0)
            packed = max(self.limits.ratio * size, SMALL_ARCHIVE)
            if packed >= most or not is_packed(magic):
                return _unpack(file, None, most).removeprefix(BYTE_ORDER_MARK)
            try:
                return _unpack(file, None, packed).removeprefix(BYTE_ORDER_MARK)
            except TooLargeError:
                raise TooPackedError(size) from None

    def head(self, size: int) -> bytes:
        """The first `size` bytes of the content, decompressed, without reading the rest of a file.

        Raises:
          OSError: as for `data`, as far as the first bytes tell.
        """
        if self.path is None or "data" in self.__dict__:
            return self.data[:size]
        if isinstance(self.path, FetchedPath):
            first = self.path.first_bytes(max(size, 4))
            if not (is_packed(first) or first.startswith(b"PAR1")):
                return first[:size].removeprefix(BYTE_ORDER_MARK)
        with self.path.open("rb") as file:
            return _unpack(file, size, self.limits.file_bytes).removeprefix(BYTE_ORDER_MARK)

    def beginning(self) -> bytes:
        """What a compressed file holds up to the place where it is damaged; nothing of any other file.

        Raises:
          OSError: it cannot be opened.
        """
        unpacked, packed = io.BytesIO(), b"" if self.path is None else self.path.read_bytes()
        stream: Any = None
        try:
            for start in range(0, len(packed) if is_packed(packed[:4]) else 0, _FRAME_CHUNK):
                chunk = packed[start : start + _FRAME_CHUNK]
                while chunk and unpacked.tell() <= self.limits.file_bytes:
                    if stream is None or stream.eof:
                        is_gzip = packed.startswith(_GZIP)
                        stream = zlib.decompressobj(31) if is_gzip else zstandard.ZstdDecompressor().decompressobj()
                    unpacked.write(stream.decompress(chunk))
                    chunk = stream.unused_data
        except (zlib.error, zstandard.ZstdError):
            pass  # what stands before is whole
        return unpacked.getvalue().removeprefix(BYTE_ORDER_MARK)

    @property
    def file_name(self) -> str:
        """The file's own name, without folders and without the suffix of a compression."""
        return without_compression(self.name)

    def release(self) -> None:
        """Forget the content, so that a folder's files are not all in memory at once.

        Standard input is kept: nothing could bring it back.
        """
        if "data" in self.__dict__:
            self.again[:] = repeated_lines(self.data)
        if self.path is not None:
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
                    self.lost[start] = Lost(problem, record)
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
        """Lines of at most `most` bytes together, fewer at first, or one longer line: their byte offset and content."""
        data, start, size = self.data, 0, min(_FIRST, most)
        while start < len(data):
            end = data.rfind(b"\n", start, start + size) if start + size < len(data) else len(data)
            if end < 0:  # a window of one line is not copied when it is split
                end = data.find(b"\n", start + size)
            end = len(data) if end < 0 else end
            size = min(4 * size, most)
            yield start, data[start:end]
            start = end + 1


def repeated_lines(data: bytes) -> list[tuple[int, int]]:
    """Where the lines that a file begins with follow on themselves, as of a file that was appended to itself.

    Runs may be equal, and few of them in one order again by chance: so lines count from `_UNLIKE` different ones on.

    Returns:
      The line at which they begin again and how many they are, or nothing.

    Examples:
      >>> repeated_lines(b"a\\nb\\nc\\nd\\n" * 2), repeated_lines(b"a\\na\\n" * 9)
      ([(5, 4)], [])
    """
    begin, unlike = 0, set[bytes]()
    while len(unlike) < _UNLIKE:
        end = data.find(b"\n", begin)
        if end < 0:
            return []
        unlike.add(data[begin:end].strip())
        begin = end + 1
    first, at = data[: begin - 1], begin
    while (at := data.find(first, at)) > 0:
        size = at
        while data[size - 1 : size].isspace():
            size -= 1
        if (
            size < at
            and data.startswith(memoryview(data)[:size], at)
            and data[at + size : at + size + 1].strip() == b""
        ):
            return [(data.count(b"\n", 0, at) + 1, data.count(b"\n", 0, size) + 1)]
        at += 1
    return []


def without_compression(file: str) -> str:
    """The name of a file without its folder and without the suffix of a compression."""
    path = PurePath(file)
    return path.stem if path.suffix in COMPRESSIONS else path.name


def is_packed(head: bytes) -> bool:
    """Whether a file that begins with so many bytes, four or more, is compressed by gzip or Zstandard.

    Zstandard files of several threads begin with a frame to skip, whose number may end in any digit.
    """
    return head.startswith((_GZIP, _ZSTANDARD)) or (head[:1] in _SKIPPED and head[1:4] == _SKIPPED_REST)


def unreadable(source: Source, error: OSError) -> Problem:
    """The problem of a source that cannot be read."""
    if isinstance(error, TooLargeError):
        return source.limits.refuse_file(source.name)
    if isinstance(error, TooPackedError):
        allowed = f"{source.limits.ratio} times the {counted(error.size, 'byte')} of the file"
        expected = f"at most {allowed}, or --limit ratio=N"
        return Problem("too-large", source.name, 0, "file", "more", expected)
    reason = excerpt(error.strerror or str(error), _REASON)
    return Problem("unreadable", source.name, 0, "file", reason, "a readable file")


def _unpack(file: BinaryIO, size: int | None, most: int) -> bytes:
    """The content, or its first `size` bytes, decompressed if its first bytes say that it is compressed.

    Never holds much more than `most` bytes, whatever a compressed file claims or unpacks to.
    """
    magic = file.read(4)
    file.seek(0)
    try:
        if magic.startswith(_GZIP):
            with gzip.GzipFile(fileobj=file) as unpacked:
                return _read(unpacked, most) if size is None else unpacked.read(size)
        if is_packed(magic):
            if size is not None:
                with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False) as stream:
                    head: bytes = stream.read(size)
                if len(head) == size:
                    return head
                file.seek(0)  # the whole file, or one that ends within a frame, which the stream does not tell
            return _unpack_zstandard(file, most)
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
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
