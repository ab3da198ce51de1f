"""Tables that this library wrote: found in a folder of logs, they are results, not logs."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.readers.common.json_problems import JSON_ERRORS
from graphs.readers.common.source import Source

__all__ = ["RESULTS", "is_result"]

RESULTS: tuple[tuple[str, ...], ...] = (
    ("credit", "baseline", "scale", "advantage", "valid"),
    ("file", "line", "trace", "group", "event", "agent", "role", "turn", "type", "action"),
    ("entry", "amount", "units", "exponent"),
    ("naive", "claimed", "overcount", "unexplained"),
)
"""Columns that no log has together: of advantages, of what is said of events, of a ledger, of an audit by trace."""


def is_result(source: Source, head: bytes) -> bool:
    """Whether a file that begins with `head` is a table that a command wrote: Parquet, CSV or JSON lines."""
    if head.startswith(b"PAR1") and source.path is not None:
        try:
            names = set(pq.read_schema(source.path).names)
        except (pa.ArrowException, OSError):  # damaged: its reader will say how
            return False
        return any(names.issuperset(columns) for columns in RESULTS)
    line = head.partition(b"\n")[0]
    if line.startswith(b"{"):
        names = _keys(line) if line.startswith((b'{"file":', b'{"trace":')) else set()
    else:
        names = {cell.strip().strip(b'"').decode("utf-8", "replace") for cell in line.split(b",")}
    return any(names.issuperset(columns) for columns in RESULTS)


def _keys(line: bytes) -> set[str]:
    """The keys of a row."""
    try:
        return set(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except JSON_ERRORS:
        return set()
