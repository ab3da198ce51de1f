"""Tables that this library wrote: in a folder of logs they are results, not logs.

Parquet and Arrow files carry a stamp in their metadata (`STAMP`), which `credit.tables.files` writes. CSV and JSON
lines have no metadata. There a table is a result if its first columns are those of `BEGINNINGS`. The notes that
`credit.ray` writes beside its parts are results, too.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Source

__all__ = ["BEGINNINGS", "NOTES", "STAMP", "is_result"]

STAMP: dict[bytes, bytes] = {b"orchestration-credit": b"result"}
"""Metadata of the schema of a Parquet or Arrow file with a result."""

BEGINNINGS: tuple[tuple[str, ...], ...] = (
    ("file", "line", "trace", "group", "event"),
    ("trace", "group", "entry"),
    ("trace", "group", "reward", "naive"),
    ("trace", "reward", "rater", "note"),
)
"""First columns of a CSV or JSON lines file that mark it as a result: of events, a ledger's entries, traces, labels."""


NOTES = "_parts"
"""The folder of notes beside parts; programs that read a folder of Parquet files pass over names that begin with _."""


def is_result(source: Source, head: bytes) -> bool:
    """Whether a file that begins with `head` is a result: stamped, or, without metadata, by its first columns."""
    if head.startswith(b"PAR1") and source.path is not None:
        try:
            metadata = pq.read_schema(source.path).metadata or {}
        except (pa.ArrowException, OSError, UnicodeDecodeError):  # damaged: its reader reports how
            return False
        return STAMP.items() <= metadata.items()
    if source.path is not None and source.path.parent.name == NOTES and head.startswith(b'{"made_from":'):
        return True
    line = head.partition(b"\n")[0]
    if line.startswith(b"{"):
        names = _keys(line) if line.startswith((b'{"file":', b'{"trace":')) else []
    else:
        names = [cell.strip().strip(b'"').decode("utf-8", "replace") for cell in line.split(b",", 5)]
    return any(tuple(names[: len(columns)]) == columns for columns in BEGINNINGS)


def _keys(line: bytes) -> list[str]:
    """The keys of a row, in order."""
    try:
        return list(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except JSON_ERRORS:
        return []
