"""The folder of the parts: nothing of another run is in it, what of this one is there, and none of it once refused."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from credit.ray.jobs import Job
from credit.ray.part_notes import PartNote, note_file, noted_numbers, part_file, read_note
from credit.ray.run_mark import RunMark, claim, mark_file, read_mark
from graphs.errors import CreditError
from graphs.reading.addresses import is_address, was_address
from graphs.reading.results import NOTES

__all__ = ["OutputFolder", "checked_folder"]

OTHERS = "other logs, method, options, limits, --chunk-events or version"


def checked_folder(output: str | Path, job: Job) -> Path:
    """The folder of an output, which may not exist yet. No log needs to be read before.

    Raises:
      CreditError: an address, a file, or no name; the folder is of a run that computes something else.
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
    mark = read_mark(folder)
    if mark is not None and mark.asked != _hash(job.key):
        raise _refusal(folder, f"another run, {mark.words!r}")
    return folder


class OutputFolder:
    """The folder of one run.

    Args:
      folder: its path, which every process understands.
      identities: for each part, what it is made from.
      job: the computation.
    """

    def __init__(self, folder: Path, identities: Sequence[str], job: Job) -> None:
        self._folder, self._identities = folder, identities
        self._mark = RunMark(_hash("".join(identities)), _hash(job.key), job.words)
        self._made: list[Path] = []
        self._new = False  # whether this process wrote the mark

    def open(self) -> list[PartNote | None]:
        """Create the folder, or take what it holds: the notes of the parts that an earlier run finished.

        A part that is not as its note says, such as a file that was removed or cut, counts as none.

        Raises:
          CreditError: the folder holds something of another run.
        """
        above = (self._folder / NOTES, self._folder, *self._folder.parents)
        self._made = [folder for folder in above if not folder.exists()]
        (self._folder / NOTES).mkdir(parents=True, exist_ok=True)
        self._new = claim(self._folder, self._mark)
        try:
            self.refuse_others()
        except CreditError:
            if self._new:
                self._give_up()
            raise
        known = [self._kept(number) for number in range(len(self._identities))]
        for number, part in enumerate(known):
            if part is None:
                note_file(self._folder, number).unlink(missing_ok=True)
        return known

    def refuse_others(self) -> None:
        """Refuse a folder of another run, and Parquet files that are no parts: readers of the folder would take them.

        Raises:
          CreditError: with the part, the file or the run, and what to do.
        """
        noted = noted_numbers(self._folder)
        for number in noted:
            if number >= len(self._identities) or read_note(self._folder, number).made_from != self._identities[number]:
                raise _refusal(self._folder, f"part {number} of another run ({OTHERS})")
        mark = read_mark(self._folder)
        begun = mark == self._mark and not self._new
        expected = range(len(self._identities)) if begun else noted
        parts = {part_file(self._folder, number) for number in expected}
        for file in self._tables():
            if file not in parts:
                raise _refusal(self._folder, f"{str(file.relative_to(self._folder))!r}, which is not of this run")
        if mark != self._mark:
            what = (
                "no run any more: its files were removed" if mark is None else f"another run, {mark.words!r} ({OTHERS})"
            )
            raise _refusal(self._folder, what)

    def remove(self) -> None:
        """Remove all of this run, and the folders that it made if they are empty then; nothing of another run."""
        if read_mark(self._folder) != self._mark:
            return
        for number, identity in enumerate(self._identities):
            if not note_file(self._folder, number).exists() or read_note(self._folder, number).made_from == identity:
                part_file(self._folder, number).unlink(missing_ok=True)
                note_file(self._folder, number).unlink(missing_ok=True)
        self._give_up()

    def _give_up(self) -> None:
        mark_file(self._folder).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or another run's by now
            (self._folder / NOTES).rmdir()
        with contextlib.suppress(OSError):
            for folder in self._made:
                if folder.exists():
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


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _refusal(folder: Path, what: str) -> CreditError:
    return CreditError(
        f"output {str(folder)!r} holds {what}; expected an empty folder, or one with parts of the same run: "
        "name another folder, or remove this one's content"
    )
