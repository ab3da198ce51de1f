"""Spans in the Parquet file that Phoenix' `get_spans_dataframe().to_parquet()` writes: a row a span."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from graphs.errors import Problem, TraceError
from graphs.formats.otlp.wire import Place
from graphs.formats.span_dumps.dump_types import Dumped, DumpedSpan
from graphs.parquet.checks import checked_batches
from graphs.reading.source import Lost, Source
from graphs.reading.tables.rows import open_parquet, refuse_long_lists, to_values
from graphs.text import excerpt

__all__ = ["phoenix_spans"]

_ATTRIBUTE = "attributes."


def phoenix_spans(source: Source) -> Iterator[Dumped | Problem | Lost]:
    """The spans of an export, row by row; the line of a span is the number of its row."""
    if source.path is None:
        yield Problem("unreadable", source.name, 0, "file", "standard input", "a Parquet file by its name")
        return
    try:
        file, row = open_parquet(source), 0
        refuse_long_lists(source, file, file.schema_arrow.names)
        shared: dict[Any, Any] = {}
        for batch in checked_batches(file, rows=1024):
            for cells in zip(*(to_values(column, shared) for column in batch.columns), strict=True):
                row += 1
                yield _span(dict(zip(batch.schema.names, cells, strict=True)), Place(source.name, row, -1))
    except TraceError as error:
        yield error.problem
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = Problem("bad-row", source.name, 0, "content", excerpt(str(error)), "Parquet as Phoenix writes it")
        yield Lost(problem, b"{")  # further rows may be of any trace


def _span(values: dict[str, Any], place: Place) -> Dumped | Problem:
    columns = ("name", "span_kind", "status_code", "parent_id", "context.trace_id", "context.span_id")
    texts: dict[str, str | None] = {}
    for name in columns:
        value = values.get(name)
        if value is not None and not isinstance(value, str):
            return _fault(values, place, name, "a string")
        texts[name] = value
    for name in ("start_time", "end_time"):
        if not _is_moment(values.get(name)):
            return _fault(values, place, name, "a date or a number")
    attributes = {
        name.removeprefix(_ATTRIBUTE): value
        for name, value in values.items()
        if name.startswith(_ATTRIBUTE) and value is not None
    }
    span = DumpedSpan(
        name=texts["name"],
        trace_id=texts["context.trace_id"],
        span_id=texts["context.span_id"],
        parent_id=texts["parent_id"],
        span_kind=texts["span_kind"],
        status_code=texts["status_code"],
        start_time=_moment(values.get("start_time")),
        end_time=_moment(values.get("end_time")),
        attributes=attributes,
    )
    return Dumped(span, *place)


def _fault(values: dict[str, Any], place: Place, field: str, expected: str) -> Problem:
    """What is wrong with a row, whose trace would be read without it."""
    trace = values.get("context.trace_id")
    own = trace.lower() if isinstance(trace, str) else ""
    return Problem("bad-type", place.file, place.line, field, excerpt(values[field]), expected, own)


def _is_moment(value: Any) -> bool:
    return value is None or (isinstance(value, datetime.datetime | str | int | float) and not isinstance(value, bool))


def _moment(value: Any) -> str | int | float | None:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return None if value != value else value  # pandas writes NaN where a number is missing
