"""Samples in `formats`: a text file each, with why it is there, the log as its project writes it, and what it means.

Words for people.
=== format NAME
=== file PATH
The content of the file; of a `.parquet` file, its rows as JSON lines.
=== means
What `meaning` gives for it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["SAMPLES", "Sample"]


class Sample(NamedTuple):
    """A log: its format, the content of its files by path, and what it means."""

    format: str
    files: dict[str, str]
    meaning: str

    def write(self, folder: Path) -> Path:
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".parquet":
                pq.write_table(pa.Table.from_pylist([json.loads(line) for line in text.splitlines()]), path)
            else:
                path.write_text(text, encoding="utf-8")
        return folder


def _sample(path: Path) -> Sample:
    _words, *sections = path.read_text(encoding="utf-8").split("=== ")
    parts = [section.partition("\n") for section in sections]
    (kind,) = (head.removeprefix("format ") for head, _, _ in parts if head.startswith("format "))
    (means,) = (body for head, _, body in parts if head == "means")
    files = {head.removeprefix("file "): body for head, _, body in parts if head.startswith("file ")}
    assert len(files) == len(parts) - 2, path
    return Sample(kind, files, means.rstrip("\n"))


SAMPLES = {path.stem: _sample(path) for path in sorted(Path(__file__).with_name("formats").glob("*.txt"))}
