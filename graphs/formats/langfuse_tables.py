"""Observations as Langfuse's user interface exports them: CSV, or JSON with a column for each score.

    id,type,name,startTime,endTime,traceId,parentObservationId,usageDetails,metadata,level,model,traceName,…,SCORE,…

A row is an observation of the public API. Objects and lists of a CSV cell are JSON, and dates are ISO 8601. A score's
column has its name, which any project chooses, and holds a list of numbers or of categories.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.documents import Document, Place
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Lost, Source
from graphs.reading.tables.csv_rows import csv_header, csv_rows

__all__ = ["begins_as_csv", "csv_observations", "is_csv", "scores_of_row"]

_NEEDED = frozenset({"id", "traceId", "type", "startTime", "parentObservationId"})
_OBJECTS = frozenset({"usageDetails", "metadata"})
_HEAD = 1 << 16  # bytes that hold the header
_LONGEST_ID = 200  # of the cells that a row with too many or too few of them names
_CONTENT = frozenset({"input", "output", "metadata", "modelParameters"})  # any JSON, lists of numbers among it
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


def csv_observations(source: Source) -> Iterator[Document | Lost]:
    """The rows of a CSV file as the JSON objects that an export as JSON lines has; faulty rows are lost."""
    try:
        names: list[str] = []
        for line, row, cells in csv_rows(source):
            if isinstance(row, Problem):
                names = names or csv_header(source)
                yield Lost(row, _as_json(names, cells))
                continue
            values = {name: _value(name, cell) for name, cell in row.items() if cell is not None}
            yield Document(msgspec.json.encode(values), Place(source.name, line, -1))
    except TraceError as error:
        yield Lost(error.problem)


def _as_json(names: list[str], cells: tuple[str, ...]) -> bytes:
    """A row of too few or too many cells as a line that was cut: any cell may be the trace's id, if it got there."""
    at = names.index("traceId")
    key = "traceId" if len(cells) > at else "id"
    pairs = [msgspec.json.encode({key: cell})[1:-1] for cell in cells if len(cell) <= _LONGEST_ID]
    if len(cells) == at + 1:  # which may be cut itself
        pairs.append(b'"traceId":' + msgspec.json.encode(cells[at])[:-1])
    return b"{" + b",".join(pairs)


def _value(name: str, cell: str) -> str | msgspec.Raw:
    """A cell: JSON where a column holds objects, or a list, which scores are; else text."""
    if cell.startswith("[") or (name in _OBJECTS and cell.startswith("{")):
        try:
            return _RAW.decode(cell)
        except JSON_ERRORS:  # a text that begins like JSON; where an object is needed, its decoding refuses the text
            return cell
    return cell


def scores_of_row(raw: bytes) -> list[tuple[str, float]]:
    """Name and number of each score in the columns of a row; none for an observation of the API."""
    if b'"traceName"' not in raw:
        return []
    scores: list[tuple[str, float]] = []
    for name, value in _OBJECT.decode(raw).items():
        if name in _CONTENT or bytes(memoryview(value)[:1]) != b"[":
            continue
        try:
            scores += [(name, number) for number in _NUMBERS.decode(value)]
        except JSON_ERRORS:  # tags, comments, categories
            continue
    return scores
