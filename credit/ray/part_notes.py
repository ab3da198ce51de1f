"""The files of parts, and the note beside each, by which a repeated run knows what is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from graphs.atomic import atomic_write
from graphs.errors import CreditError, Problem

__all__ = ["NOTES", "PartNote", "known_parts", "note_file", "part_file", "read_note", "write_note"]

NOTES = "_parts"  # programs that read a folder of Parquet files pass over names that begin with _


class PartNote(msgspec.Struct):
    """The note beside a part: what it was made from, and what the driver needs of it."""

    made_from: str
    rows: int
    problems: list[Problem]
    unread: list[int]
    note: dict[str, Any] | None
    """What `Job.compute` noted; None where no trace of the part is usable."""


def known_parts(folder: Path, made_from: Sequence[str]) -> list[PartNote | None]:
    """The notes of the parts that an earlier run finished.

    Raises:
      CreditError: the folder holds a part of another run.
    """
    known: list[PartNote | None] = []
    for number, wanted in enumerate(made_from):
        part = read_note(folder, number) if note_file(folder, number).exists() else None
        if part is not None and part.made_from != wanted:
            raise _of_another_run(folder, number)
        known.append(part)
    if note_file(folder, len(made_from)).exists():
        raise _of_another_run(folder, len(made_from))
    return known


def _of_another_run(folder: Path, number: int) -> CreditError:
    return CreditError(
        f"output {str(folder)!r} holds part {number} of another run (other logs, method or version); "
        "expected an empty folder, or one with parts of the same run"
    )


def read_note(folder: Path, number: int) -> PartNote:
    """The note of a part.

    Raises:
      CreditError: the file is something else.
    """
    path = note_file(folder, number)
    try:
        return msgspec.json.decode(path.read_bytes(), type=PartNote)
    except msgspec.DecodeError as error:
        raise CreditError(f"{path}: {error}; expected the note of a part, which credit.ray writes") from error


def part_file(folder: Path, number: int) -> Path:
    """Where the table of a part is."""
    return folder / f"part-{number:05d}.parquet"


def note_file(folder: Path, number: int) -> Path:
    """Where the note of a part is."""
    return folder / NOTES / f"{number:05d}.json"


def write_note(folder: Path, number: int, part: PartNote) -> None:
    """Write the note of a part, whole or not at all."""
    with atomic_write(note_file(folder, number)) as file:
        file.write(msgspec.json.encode(part))
