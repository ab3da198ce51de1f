"""Spans brought together as columns where they are plain, and as objects where they are not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from graphs.errors import Problem
from graphs.formats.common.foreign_parents import torn
from graphs.formats.common.lost_lines import LostLines
from graphs.formats.otlp.gathering import Gathering, Without
from graphs.formats.otlp.spans import make_span, trace_id_of
from graphs.formats.otlp.wire import Attributes, Place, WireSpan
from graphs.formats.span_columns.foreign_rows import foreign_rows
from graphs.formats.span_columns.plain_spans import PlainSpans, storable
from graphs.formats.span_columns.team_parts import teams_of
from graphs.traces.limits import Limits
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["Bulk"]


class Bulk(Gathering):
    """A `Gathering` whose plain spans are `plain`; `spans` has the others, and every trace in its order."""

    is_by_span = True

    def __init__(self, format: str, lost: LostLines) -> None:
        super().__init__(format, lost)
        self.plain = PlainSpans()

    def meet(self, trace: str) -> None:
        """Note a trace, in the order of the log."""
        self.spans.setdefault(trace, [])

    def add_one(self, wire: WireSpan, resource: Attributes, place: Place, index: int) -> None:
        """Take a decoded span in, as a row if it can be one.

        Raises:
          TraceError: as `make_span`.
        """
        trace = trace_id_of(wire, place)
        span = make_span(wire, resource, place, index, trace)
        self.meet(trace)
        if storable(span):
            self.plain.append(span, trace)
        else:
            self.spans[trace].append(span)

    def lines_of(self) -> Iterator[tuple[str, str, int]]:
        """Those of plain spans, too."""
        yield from super().lines_of()
        columns, traces, files = self.plain.columns(), self.plain.traces.listed, self.plain.files.listed
        rows = zip(*(columns[name].tolist() for name in ("trace", "file", "line")), strict=True)
        yield from ((traces[trace], files[file], line) for trace, file, line in rows)

    def ids_of(self) -> Iterator[tuple[str, str, str]]:
        """Those of plain spans, too."""
        yield from super().ids_of()
        columns, traces = self.plain.columns(), self.plain.traces.listed
        rows = zip(*(columns[name].tolist() for name in ("trace", "id", "parent")), strict=True)
        yield from ((traces[trace], f"{own:016x}", f"{parent:016x}" if parent else "") for trace, own, parent in rows)

    def torn(self) -> Iterator[Problem]:
        """As of a `Gathering`, by columns: an object for each span would take longer than all else."""
        names, columns, files = list(self.spans), self.plain.columns(), self.plain.files.listed
        number = {name: at for at, name in enumerate(names)}
        listed = np.array([number[name] for name in self.plain.traces.listed], np.int64)
        others = [(number[name], span) for name, spans in self.spans.items() for span in spans]
        trace = np.r_[listed[columns["trace"]], np.array([at for at, _ in others], np.int64)]
        own = np.r_[columns["id"], np.array([int(span.id, 16) for _, span in others], np.uint64)]
        parent = np.r_[columns["parent"], np.array([int(span.parent or "0", 16) for _, span in others], np.uint64)]
        for row, other in foreign_rows(trace, own, parent):
            if row < self.plain.count:
                place = Place(files[columns["file"][row]], int(columns["line"][row]), int(columns["offset"][row]))
            else:
                place = others[row - self.plain.count][1].place
            yield from torn(names[trace[row]], names[other], place, "parentSpanId", f"{parent[row]:016x}")

    def gathered(self, limits: Limits) -> Iterator[TraceRecord | Part | Problem]:
        """Parts, records and problems, in the order of the traces."""
        self.spoil_lost()
        names = list(self.spans)
        rank = {trace: number for number, trace in enumerate(names)}
        allowed = np.array([not self.spans[trace] and trace not in self.spoiled for trace in names], bool)
        ranks = np.array([rank[trace] for trace in self.plain.traces], np.int64)
        part, parts_made = teams_of(self.plain, ranks, allowed, self.format, limits)
        in_part = np.zeros(len(names), bool)
        in_part[parts_made] = True
        rows = _rows(self.plain, ranks, ~in_part)
        without = Without()
        at = 0
        for whole, run in itertools.groupby(range(len(names)), in_part.__getitem__):
            members = list(run)
            if whole and part is not None:
                yield part.slice(at, at + len(members))
                at += len(members)
                continue
            for number in members:
                trace = names[number]
                spans = self.spans.pop(trace)
                if number in rows and trace not in self.spoiled:
                    spans = sorted([*spans, *self.plain.spans(rows[number])], key=lambda span: span.index)
                yield from self.result(trace, spans, without)
        yield from without.problems()


def _rows(plain: PlainSpans, ranks: np.ndarray, wanted: np.ndarray) -> dict[int, np.ndarray]:
    """Rows of the traces that are wanted, by rank."""
    rank = ranks[plain.columns()["trace"]]
    rows = np.flatnonzero(wanted[rank])
    if not len(rows):
        return {}
    rows = rows[np.argsort(rank[rows], kind="stable")]
    present, starts = np.unique(rank[rows], return_index=True)
    return dict(zip(present.tolist(), np.split(rows, starts[1:]), strict=True))
