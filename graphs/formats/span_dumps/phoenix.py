"""Spans in the Parquet file that Phoenix' `get_spans_dataframe().to_parquet()` writes: a row a span."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

from graphs.errors import Problem, TraceError
from graphs.formats.span_dumps.spans import DumpedSpan
from graphs.reading.documents import Place
from graphs.reading.source import Source
from graphs.reading.tables.rows import log_rows
from graphs.text import excerpt

__all__ = ["row_span", "rows"]

_ATTRIBUTE = "attributes."
_TEXTS = ("name", "span_kind", "status_code", "parent_id", "context.trace_id", "context.span_id")
_TIMES = ("start_time", "end_time")


def rows(source: Source) -> Iterator[tuple[dict[str, Any], Place]]:
    """The rows of an export by column; the line of each is its number."""
    for number, row in log_rows(source, lists=None):
        yield row, Place(source.name, number, -1)


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
