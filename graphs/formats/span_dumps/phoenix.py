"""Spans in the Parquet file that Phoenix' `get_spans_dataframe().to_parquet()` writes: a row a span."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from graphs.errors import Problem, TraceError
from graphs.formats.span_dumps.spans import DumpedSpan
from graphs.parquet.checks import checked_batches
from graphs.reading.documents import Place
from graphs.reading.source import Lost, Source
from graphs.reading.tables.rows import open_parquet, refuse_long_lists, to_values
from graphs.text import excerpt

__all__ = ["row_span", "rows"]

_ATTRIBUTE = "attributes."
_ROWS = 1024  # that are Python values at once
_TEXTS = ("name", "span_kind", "status_code", "parent_id", "context.trace_id", "context.span_id")
_TIMES = ("start_time", "end_time")


def rows(source: Source) -> Iterator[tuple[dict[str, Any], Place]]:
    """The rows of an export by column; the line of each is its number."""
    if source.path is None:
        raise TraceError(Problem("unreadable", source.name, 0, "file", "standard input", "a Parquet file by its name"))
    row = 0
    try:
        file = open_parquet(source)
        refuse_long_lists(source, file, file.schema_arrow.names)
        shared: dict[Any, Any] = {}
        for batch in checked_batches(file, rows=_ROWS):
            for cells in zip(*(to_values(column, shared) for column in batch.columns), strict=True):
                row += 1
                yield dict(zip(batch.schema.names, cells, strict=True)), Place(source.name, row, -1)
    except TraceError as error:
        source.lost[0] = Lost(error.problem)
    except (pa.ArrowException, OSError, ValueError) as error:
        expected = "Parquet as Phoenix writes it"
        source.lost[0] = Lost(Problem("bad-row", source.name, 0, "content", excerpt(str(error)), expected))


def row_span(values: dict[str, Any], place: Place) -> DumpedSpan:
    """The span that a row is.

    Raises:
      TraceError: "bad-type".
    """
    for name in _TEXTS:
        if not isinstance(values.get(name), str | None):
            raise _bad_type(values, place, name, "a string")
    for name in _TIMES:
        value = values.get(name)
        if isinstance(value, bool) or not isinstance(value, datetime.datetime | str | int | float | None):
            raise _bad_type(values, place, name, "a date or a number")
    return DumpedSpan(
        name=values.get("name"),
        trace_id=values.get("context.trace_id"),
        span_id=values.get("context.span_id"),
        parent_id=values.get("parent_id"),
        span_kind=values.get("span_kind"),
        status_code=values.get("status_code"),
        start_time=_moment(values.get("start_time")),
        end_time=_moment(values.get("end_time")),
        attributes={
            name.removeprefix(_ATTRIBUTE): value
            for name, value in values.items()
            if name.startswith(_ATTRIBUTE) and value is not None
        },
    )


def _bad_type(values: dict[str, Any], place: Place, field: str, expected: str) -> TraceError:
    trace = values.get("context.trace_id")
    trace = trace.lower() if isinstance(trace, str) else ""
    return TraceError(Problem("bad-type", place.file, place.line, field, excerpt(values[field]), expected, trace))


def _moment(value: Any) -> str | int | float | None:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return None if value != value else value  # pandas writes NaN where a number is missing
