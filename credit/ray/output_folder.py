"""The folder of the parts: nothing of another run is in it, what of this one is there, and none of it once refused."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from credit.ray.part_notes import PartNote, note_file, noted_numbers, part_file, read_note
from graphs.errors import CreditError
from graphs.readers.common.addresses import is_address, was_address
from graphs.readers.common.results import NOTES

__all__ = ["OutputFolder", "checked_folder"]

RUN = "run"
"""Beside the notes: which run the folder is of, so that a part whose note is not yet written is known as its own."""


def checked_folder(output: str | Path) -> Path:
    """The folder of an output, which may not exist yet.

    Raises:
      CreditError: an address, a file, or no name.
    """
    if not str(output):
        raise CreditError("output is ''; expected a folder")
    folder = Path(output)
    if is_address(output) or was_address(folder):
        raise CreditError(
            f"output {str(output)!r} is an address; expected a folder that every node sees under this path"
        )
    if folder.exists() and not folder.is_dir():
        raise CreditError(f"output {str(output)!r} is a file; expected a folder, one Parquet file for each part")
    return folder


class OutputFolder:
    """The folder of one run.

    Args:
      folder: its path, which every process understands.
      identities: for each part, what it is made from.
    """

    def __init__(self, folder: Path, identities: Sequence[str]) -> None:
        self._folder, self._identities = folder, identities
        self._mark = b'{"made_from":"%s"}' % hashlib.blake2b("".join(identities).encode()).hexdigest().encode()
        self._made: list[Path] = []

    def open(self) -> list[PartNote | None]:
        """Create the folder, or take what it holds: the notes of the parts that an earlier run finished.

        A part that is not as its note says, such as a file that was removed or cut, counts as none.

        Raises:
          CreditError: the folder holds something of another run.
        """
        self.refuse_others()
        above = (self._folder, *self._folder.parents)
        self._made = [folder for folder in above if not folder.exists()]
        (self._folder / NOTES).mkdir(parents=True, exist_ok=True)
        (self._folder / NOTES / RUN).write_bytes(self._mark)
        known = [self._kept(number) for number in range(len(self._identities))]
        for number, part in enumerate(known):
            if part is None:
                note_file(self._folder, number).unlink(missing_ok=True)
        return known

    def refuse_others(self) -> None:
        """Refuse parts of another run and Parquet files that are no parts: readers of the folder would take them.

        Raises:
          CreditError: with the part or the file, and what to do.
        """
        noted = noted_numbers(self._folder)
        for number in noted:
            if number >= len(self._identities) or read_note(self._folder, number).made_from != self._identities[number]:
                raise self._refusal(
                    f"part {number} of another run (other logs, method, options, limits, --chunk-events or version)"
                )
        mark = self._folder / NOTES / RUN
        begun = mark.exists() and mark.read_bytes() == self._mark
        own = range(len(self._identities)) if begun else noted
        parts = {part_file(self._folder, number) for number in own}
        for file in self._tables():
            if file not in parts:
                raise self._refusal(f"{str(file.relative_to(self._folder))!r}, which is not of this run")

    def remove(self) -> None:
        """Remove all of this run, and the folders that it made if they are empty then."""
        for number in range(len(self._identities)):
            part_file(self._folder, number).unlink(missing_ok=True)
            note_file(self._folder, number).unlink(missing_ok=True)
        (self._folder / NOTES / RUN).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or another run's by now
            for folder in (self._folder / NOTES, *self._made):
                folder.rmdir()

    def _kept(self, number: int) -> PartNote | None:
        if not note_file(self._folder, number).exists():
            return None
        part, file = read_note(self._folder, number), part_file(self._folder, number)
        if part.note is None:
            return None if file.exists() else part
        try:
            whole = file.stat().st_size == part.bytes and pq.read_metadata(file).num_rows == part.rows
        except (OSError, pa.ArrowException):
            return None
        return part if whole else None

    def _tables(self) -> Iterator[Path]:
        """What readers of a folder take: Parquet files to its depths, but for names that begin with _ or a dot."""
        for file in sorted(self._folder.rglob("*.parquet")):
            if not any(name.startswith(("_", ".")) for name in file.relative_to(self._folder).parts):
                yield file

    def _refusal(self, what: str) -> CreditError:
        return CreditError(
            f"output {str(self._folder)!r} holds {what}; expected an empty folder, or one with parts of the same run: "
            "name another folder, or remove this one's content"
        )
