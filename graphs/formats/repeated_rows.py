"""Tables and rollout dumps whose rows stand there twice over, as in a file appended to itself: each counts twice."""

from __future__ import annotations

from collections.abc import Iterator

from graphs.errors import Problem
from graphs.reading.source import Source
from graphs.reading.tables.rows import PARQUET, is_csv
from graphs.text import counted

__all__ = ["repeated_rows"]


def repeated_rows(source: Source, *, rows_are_runs: bool = False) -> Iterator[Problem]:
    """Information where the second half of a table's text repeats the first, of two rows or more.

    It is no fault: steps that are all alike, one after another for all traces, look the same. Nothing in a row tells
    the two apart where it has no time, turn or id.

    Args:
      source: the table.
      rows_are_runs: whether a row is a run: a file of one row again and again may have as many runs of one text.
    """
    data = source.data
    if data.startswith(PARQUET):
        return
    header = data.find(b"\n") + 1 if is_csv(source) else 0
    end = len(data)
    while end > header and data[end - 1 : end] in (b"\n", b"\r"):
        end -= 1
    for start in (header, 0) if header else (0,):  # of a table joined to itself, both halves have the header
        for line_break in (b"\n", b"\r\n"):
            half = (end - start - len(line_break)) // 2
            middle = start + half
            if half <= 0 or data[middle : end - half] != line_break or data[start:middle] != data[end - half : end]:
                continue
            rows = data.count(b"\n", start, middle) + (start == header)
            if rows > 1 and not (rows_are_runs and _is_one_row(data[start:middle], line_break)):
                shown = f"{counted(rows, 'row')}, and the same again"
                expected = (
                    "each row once, for its rewards count as often as it stands; nothing is wrong if steps are alike"
                )
                yield Problem("repeated-rows", source.name, 0, "content", shown, expected)
            return


def _is_one_row(half: bytes, line_break: bytes) -> bool:
    first, _, others = half.partition(line_break)
    return others == line_break.join([first] * (half.count(line_break)))
