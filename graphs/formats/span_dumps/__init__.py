"""Spans of OpenTelemetry in other envelopes than OTLP: dumps of SDKs, Phoenix, any-agent, Strands, MLflow.

Attributes and their meaning are as in OTLP, so `graphs.formats.otlp` makes the traces. This folder reads only the
envelopes: `envelopes` finds the spans of a file, `spans` brings one into OTLP's shape, and `phoenix` reads Phoenix'
Parquet files. `docs/formats/spans.md` has the whole mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from graphs.errors import Problem, TraceError
from graphs.formats.otlp.gathering import Gathering, Stated
from graphs.formats.span_dumps.envelopes import dumped_spans
from graphs.formats.span_dumps.phoenix import row_span, rows
from graphs.formats.span_dumps.spans import METADATA, SPANS, Dumped, DumpedSpan, decoded, span_of
from graphs.reading.documents import Place, documents
from graphs.reading.source import Source
from graphs.reading.tables.rows import is_parquet
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

RECORDS = (DumpedSpan,)

_KEYS = (b'"span_id"', b'"trace_id"', b'"attributes"')
_ID = re.compile(rb'"(?:span_id|trace_id)"\s*:\s*(?:"|[0-9])')


def sniff(head: bytes) -> bool:
    """Whether the content begins as JSON with spans whose keys are in snake case."""
    start = head.lstrip()
    if start[:1] not in (b"[", b"{") or b'"rollout_id"' in start:  # Agent Lightning's spans belong to rollouts
        return False
    return all(key in start for key in _KEYS) and _ID.search(start) is not None


def read(sources: Sequence[Source], attach_orphans: bool = False) -> Iterator[TraceRecord | Problem]:
    """The traces of all sources; spans of one trace may be spread over files.

    Problem kinds: those of `graphs.formats.otlp`, and those of `graphs.reading.tables.rows` for a Parquet file.
    """
    log = Gathering("spans", attach_orphans)
    for source in sources:
        if is_parquet(source):
            for row in rows(source):
                yield from log.take(_add_row, row)
        else:
            for document in documents(source):
                try:
                    for dumped in dumped_spans(document):
                        yield from log.take(_add, dumped)
                except TraceError as error:
                    yield error.problem
        source.release()
    yield from log.results()


def _add(log: Gathering, dumped: Dumped) -> None:
    stated, metadata = dumped.extra.pop(SPANS, None), dumped.extra.pop(METADATA, None)
    record = decoded(dumped)
    trace, span = span_of(record, dumped.place, dumped.extra, dumped.named)
    log.add_span(trace, span)
    if not span.parent and not metadata and record.resource is not None:
        metadata = record.resource.attributes
    if metadata:
        log.resources.setdefault(trace, metadata)
    if stated is not None:
        log.stated[trace] = Stated(stated, "mlflow.trace.sizeStats", dumped.place)


def _add_row(log: Gathering, row: tuple[dict[str, Any], Place]) -> None:
    values, place = row
    log.add_span(*span_of(row_span(values, place), place, {}))
