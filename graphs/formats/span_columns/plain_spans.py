"""Columns of spans that bear no marks: what `otlp.spans.Span` keeps of each, without an object for each."""

from __future__ import annotations

import array
import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from graphs.formats.otlp.dialects import Kind, Meaning
from graphs.formats.otlp.evaluations import Evaluation
from graphs.formats.otlp.spans import Span
from graphs.formats.otlp.wire import Place

__all__ = ["COLUMNS", "LATEST", "NO_TIME", "Codes", "PlainSpans", "integers", "storable"]

NO_TIME = -1
LATEST = 2**63
"""Time stamps from here on do not fit a signed column; their spans stay objects."""

COLUMNS: dict[str, Any] = {
    "trace": np.int32,  # code in `PlainSpans.traces`
    "id": np.uint64,
    "parent": np.uint64,  # 0: none
    "start": np.int64,  # `NO_TIME` where absent
    "end": np.int64,
    "failed": np.bool_,
    "meaning": np.int32,  # code in `PlainSpans.meanings`
    "tokens": np.int32,  # -1 where absent
    "input_tokens": np.int32,
    "service": np.int32,  # code in `PlainSpans.services`
    "file": np.int32,  # code in `PlainSpans.files`
    "line": np.int32,
    "offset": np.int64,
    "index": np.int64,
}
"""Columns and their types."""


class Codes(dict[Any, int]):
    """Dense numbers of values, in the order in which they are first asked for; `listed` has the values by number."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[Any] = []

    def __missing__(self, value: Any) -> int:
        self.listed.append(value)
        number = self[value] = len(self.listed) - 1
        return number


def integers(values: list[int]) -> np.ndarray:
    """int64 of Python's integers, in a third of the time that `np.array` takes.

    Raises:
      TypeError: something else is among them; a truth value is not told from an integer.
      OverflowError: one does not fit.
    """
    return np.frombuffer(array.array("q", values), np.int64)


@dataclasses.dataclass
class PlainSpans:
    """Spans by row; what few spans have is kept by row in dictionaries.

    `meanings` are without what is particular to a span: counts of tokens, ids of calls and responses.
    """

    traces: Codes = dataclasses.field(default_factory=Codes)
    meanings: Codes = dataclasses.field(default_factory=Codes)
    services: Codes = dataclasses.field(default_factory=Codes)
    files: Codes = dataclasses.field(default_factory=Codes)
    call_ids: dict[int, str] = dataclasses.field(default_factory=dict)
    emitted: dict[int, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    responses: dict[int, str] = dataclasses.field(default_factory=dict)
    evaluations: dict[int, tuple[Evaluation, ...]] = dataclasses.field(default_factory=dict)
    count: int = 0
    chunks: list[dict[str, np.ndarray]] = dataclasses.field(default_factory=list)
    single: dict[str, list[Any]] = dataclasses.field(default_factory=lambda: {name: [] for name in COLUMNS})

    def extend(
        self, columns: Mapping[str, Any], own: Mapping[str, Mapping[int, Any]], leaving: Collection[int]
    ) -> None:
        """Append rows, all columns given.

        Args:
          columns: by name, arrays or lists.
          own: what few spans have, by the name of the dictionary, and by row from 0.
          leaving: rows that are left out.
        """
        self._flush()
        keep = np.ones(len(columns["index"]), bool)
        keep[list(leaving)] = False
        chunk = {name: np.asarray(columns[name], dtype) for name, dtype in COLUMNS.items()}
        if not keep.all():
            chunk = {name: column[keep] for name, column in chunk.items()}
        self.chunks.append(chunk)
        for name, values in own.items():
            if values:
                rows = (np.cumsum(keep) - 1 + self.count).tolist()
                getattr(self, name).update({rows[i]: value for i, value in values.items() if value and keep[i]})
        self.count += len(chunk["index"])

    def append(self, span: Span, trace: str) -> None:
        """Append one span; `storable` says which may be."""
        row, what, (file, line, offset) = self.count, span.meaning, span.place
        bare = what._replace(tokens=None, input_tokens=None, response_id="", call_id="", emitted=())
        values: tuple[int, ...] = (
            self.traces[trace], int(span.id, 16), int(span.parent or "0", 16), *map(_time, (span.start, span.end)),
            span.failed, self.meanings[bare], *map(_amount, (what.tokens, what.input_tokens)),
            self.services[span.service], self.files[file], line, offset, span.index,
        )  # fmt: skip
        for column, value in zip(self.single.values(), values, strict=True):
            column.append(value)
        few: tuple[tuple[dict[int, Any], Any], ...] = (
            (self.call_ids, what.call_id),
            (self.emitted, what.emitted),
            (self.responses, what.response_id),
            (self.evaluations, tuple(span.evaluations)),
        )
        for kept, own in few:
            if own:
                kept[row] = own
        self.count += 1

    def _flush(self) -> None:
        if self.single["trace"]:
            self.chunks.append({name: np.array(self.single[name], dtype) for name, dtype in COLUMNS.items()})
            self.single = {name: [] for name in COLUMNS}

    def columns(self) -> dict[str, np.ndarray]:
        """All rows, in the order in which they were appended."""
        self._flush()
        if len(self.chunks) != 1:
            self.chunks = [
                {name: np.concatenate([np.zeros(0, dtype), *(chunk[name] for chunk in self.chunks)])
                 for name, dtype in COLUMNS.items()}
            ]  # fmt: skip
        return self.chunks[0]

    def spans(self, rows: np.ndarray) -> list[Span]:
        """The spans of some rows as objects, in their order in the log."""
        columns = self.columns()
        rows = rows[np.argsort(columns["index"][rows])]
        meanings, services, files = self.meanings.listed, self.services.listed, self.files.listed
        picked = zip(rows.tolist(), *(columns[name][rows].tolist() for name in COLUMNS), strict=True)
        return [
            Span(
                id=f"{own:016x}",
                parent=f"{parent:016x}" if parent else "",
                index=index,
                place=Place(files[file], line, offset),
                start=None if start == NO_TIME else start,
                end=None if end == NO_TIME else end,
                failed=failed,
                meaning=self._whole(row, meanings[meaning], tokens, input_tokens),
                service=services[service],
                marks={},
                evaluations=self.evaluations.get(row, ()),
                notes=(),
                links=(),
                group="",
            )
            for row, _, own, parent, start, end, failed, meaning, tokens, input_tokens, service, file, line, offset,
            index in picked
        ]  # fmt: skip

    def _whole(self, row: int, bare: Meaning, tokens: int, input_tokens: int) -> Meaning:
        if bare.kind is Kind.CALL:
            return bare._replace(
                tokens=None if tokens < 0 else tokens,
                input_tokens=None if input_tokens < 0 else input_tokens,
                emitted=self.emitted.get(row, ()),
                response_id=self.responses.get(row, ""),
            )
        return bare._replace(call_id=self.call_ids.get(row, "")) if bare.kind is Kind.TOOL else bare


def storable(span: Span) -> bool:
    """Whether the columns hold all that the span has."""
    return not (span.marks or span.notes or span.links or span.group) and max(span.start or 0, span.end or 0) < LATEST


def _time(nanoseconds: int | None) -> int:
    return NO_TIME if nanoseconds is None else nanoseconds


def _amount(count: int | None) -> int:
    return -1 if count is None else count
