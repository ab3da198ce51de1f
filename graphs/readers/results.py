"""Tables of advantages that this library wrote: found in a folder of logs, they are results, not logs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from graphs.readers.source import Source

__all__ = ["COLUMNS", "is_result"]

COLUMNS = ("credit", "baseline", "scale", "advantage", "valid")
"""Columns of `credit.table` that together no log has."""


def is_result(source: Source, head: bytes) -> bool:
    """Whether a file that begins with `head` is a table that `credit assign` wrote: Parquet, CSV or JSON lines."""
    if head.startswith(b"PAR1") and source.path is not None:
        try:
            names = set(pq.read_schema(source.path).names)
        except (pa.ArrowException, OSError):  # damaged: its reader will say how
            return False
        return names.issuperset(COLUMNS)
    line = head.partition(b"\n")[0]
    if line.lstrip().startswith(b"{"):
        return all(f'"{name}":'.encode() in line for name in COLUMNS)
    return {cell.strip().strip(b'"').decode("utf-8", "replace") for cell in line.split(b",")}.issuperset(COLUMNS)
