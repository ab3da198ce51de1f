"""Observations as Langfuse's user interface exports them: CSV, or JSON lines with a column for each score.

    id,type,name,startTime,endTime,traceId,parentObservationId,usageDetails,metadata,level,model,traceName,…,SCORE,…

A row is an observation of the public API. Cells of CSV with objects or lists are JSON, and dates are ISO 8601. A
score's column has the score's name, which any project chooses, and holds a list of numbers or of categories.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

import msgspec

from graphs.reading.documents import Document, Place
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Source
from graphs.reading.tables.rows import log_rows

__all__ = ["begins_as_csv", "is_csv", "rows_as_json", "scores_of_row"]

_NEEDED = frozenset({"id", "traceId", "type", "startTime", "parentObservationId"})
_HEAD = 1 << 16  # bytes that hold the header
_CONTENT = frozenset({"input", "output", "metadata", "modelParameters"})  # may hold any JSON, also lists of numbers
_TEXTS = frozenset({
    "id", "traceId", "parentObservationId", "type", "name", "traceName", "statusMessage", "level", "version",
    "release", "environment", "userId", "sessionId", "model", "modelId", "promptId", "promptName",
})  # fmt: skip
"""Columns that are texts, whatever these begin with: a tool's failure may be "[5]"."""
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NUMBERS = msgspec.json.Decoder(list[float])
_RAW = msgspec.json.Decoder(msgspec.Raw)


def begins_as_csv(head: bytes) -> bool:
    """Whether the first line is the header of an export of observations."""
    first = head.partition(b"\n")[0]
    if first.lstrip()[:1] in (b"{", b"[", b"") or not all(name.encode() in first for name in _NEEDED):
        return False
    names = next(csv.reader([first.decode("utf-8", "replace").strip()]), [])
    return set(names) >= _NEEDED


def is_csv(source: Source) -> bool:
    """Whether a file is an export as CSV; False where it cannot be read, which its reader reports."""
    try:
        return begins_as_csv(source.head(_HEAD))
    except OSError:
        return False


def rows_as_json(source: Source) -> Iterator[Document]:
    """The rows of a CSV file as the JSON objects that an export as JSON lines has."""
    for line, row in log_rows(source, ids=("traceId",)):
        values = {name: cell if name in _TEXTS else _value(cell) for name, cell in row.items() if cell is not None}
        yield Document(msgspec.json.encode(values), Place(source.name, line, -1))


def _value(cell: str) -> str | msgspec.Raw:
    """A cell: JSON if it is a list, as scores are; else text, even where the text is an object."""
    if cell.startswith("["):
        try:
            return _RAW.decode(cell)
        except JSON_ERRORS:  # a text that begins like JSON
            return cell
    return cell


def scores_of_row(raw: bytes) -> list[tuple[str, float]]:
    """Name and number of each score in the columns of a row, which has a `traceName`, as no observation of the API."""
    scores: list[tuple[str, float]] = []
    for name, value in _OBJECT.decode(raw).items():
        if name in _CONTENT or bytes(memoryview(value)[:1]) != b"[":
            continue
        try:
            scores += [(name, number) for number in _NUMBERS.decode(value)]
        except JSON_ERRORS:  # tags, comments, categories
            continue
    return scores
