"""The JSON files inside an `.eval` archive, a zip that is not trusted.

Inspect deflates them, and since 2026 packs them with Zstandard (zip method 93), which Python's `zipfile` reads only
from 3.14 on. `graphs.traces.limits.Limits` bounds the number of members, the size of each, and what they unpack to
together. Peak memory is the archive and one unpacked member.
"""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

import zstandard

from graphs.errors import Problem, TraceError
from graphs.reading.decode import content
from graphs.reading.source import Source
from graphs.text import counted, excerpt
from graphs.traces.limits import SMALL_ARCHIVE

__all__ = ["Archive"]

_ZSTANDARD = 93
_MEMBER = b"PK\x03\x04"  # begins a local header
_LOCAL_HEADER = 30  # bytes of a member's local header before its name
_UTF8_NAME = 0x800  # flag of a member
# What zipfile raises for archives that it cannot read: NotImplementedError for an unknown compression, RuntimeError for
# a member under a password.
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    zlib.error,
    lzma.LZMAError,
)


class Archive:
    """The members of an `.eval` file by name; one whose name is there twice cannot be read."""

    def __init__(self, source: Source) -> None:
        """Open an archive.

        Raises:
          TraceError: kinds "unreadable", "bad-zip"; "zip-bomb", it has too many members or they are too large.
        """
        self.file = source.name
        self.data = content(source)
        try:
            self.zip = zipfile.ZipFile(io.BytesIO(self.data))
        except _ZIP_ERRORS as error:
            self._refuse("content", error)
        self.limits = source.limits
        members, most = self.zip.infolist(), source.limits.files
        # Of archives joined end to end, zipfile reads the directory of the last alone.
        first = min((member.header_offset for member in members), default=self.zip.start_dir)
        if first and self.data.startswith(_MEMBER):
            self._refuse("content", zipfile.BadZipFile(f"{first} bytes of another archive before the first member"))
        if len(members) > most:
            self._bomb("content", counted(len(members), "member"), f"at most {counted(most, 'member')}")
        total, most = sum(member.file_size for member in members), source.limits.ratio * len(self.data)
        if total > max(most, SMALL_ARCHIVE):
            expected = f"at most {source.limits.ratio} times the {len(self.data)} bytes of the archive"
            self._bomb("content", f"{total} bytes unpacked", expected)
        self.members = {member.filename: member for member in members}
        self.count = Counter(member.filename for member in members)

    def read(self, name: str) -> bytes:
        """A member's content.

        Raises:
          TraceError: kinds "bad-zip", "zip-bomb", "repeated-member".
        """
        if self.count[name] > 1:
            shown, expected = f"{self.count[name]} members of this name", "each name once: nothing says which counts"
            raise TraceError(Problem("repeated-member", self.file, 0, name, shown, expected))
        member = self.members[name]
        if member.file_size > self.limits.record_bytes:
            self._bomb(name, f"{member.file_size} bytes", f"at most {self.limits.record_bytes} bytes")
        try:
            unpacked = self._unpack(member)
            if len(unpacked) != member.file_size or zlib.crc32(unpacked) != member.CRC:
                raise zipfile.BadZipFile("size and checksum differ from those in its directory")
        except (*_ZIP_ERRORS, zstandard.ZstdError) as error:
            self._refuse(name, error)
        return unpacked

    def renamed(self) -> Iterator[tuple[str, str]]:
        """(name in the directory, name before the content) of each member for which these differ."""
        for member in self.zip.infolist():
            start = member.header_offset + _LOCAL_HEADER
            header = self.data[member.header_offset : start]
            if not header.startswith(_MEMBER):
                continue  # `read` refuses the member
            raw = self.data[start : start + int.from_bytes(header[26:28], "little")]
            is_utf8 = int.from_bytes(header[6:8], "little") & _UTF8_NAME
            local_name = raw.decode("utf-8" if is_utf8 else "cp437", "replace")
            if local_name != member.orig_filename:
                yield member.filename, local_name

    def _unpack(self, member: zipfile.ZipInfo) -> bytes:
        """The content, at most one byte more than the directory states: a longer one is refused by its size."""
        if member.compress_type != _ZSTANDARD:
            with self.zip.open(member) as stream:
                return stream.read(member.file_size + 1)
        if member.flag_bits & 1:
            raise zipfile.BadZipFile("it is encrypted")
        header = self.data[member.header_offset : member.header_offset + _LOCAL_HEADER]
        if not header.startswith(_MEMBER):
            raise zipfile.BadZipFile("its local header is missing")
        skip = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        start = member.header_offset + _LOCAL_HEADER + skip
        packed = memoryview(self.data)[start : start + member.compress_size]
        with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
            unpacked: bytes = stream.read(member.file_size + 1)
        return unpacked

    def _refuse(self, field: str, error: Exception) -> NoReturn:
        expected = "a zip archive as Inspect writes it"
        raise TraceError(Problem("bad-zip", self.file, 0, field, excerpt(str(error)), expected)) from error

    def _bomb(self, field: str, value_text: str, expected: str) -> NoReturn:
        raise TraceError(Problem("zip-bomb", self.file, 0, field, value_text, expected))
