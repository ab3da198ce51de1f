"""Spans of OpenTelemetry in other envelopes than OTLP: dumps of SDKs, Phoenix, any-agent, Strands, MLflow.

The attributes are those that OTLP carries, and so is what spans mean; `graphs.formats.otlp` settles it. Here
are only the envelopes: where the spans of a file stand, and what each of them calls its ids, times and status.
`docs/formats/spans.md` has the whole mapping.

`envelopes` finds spans in files, `spans` brings one into OTLP's shape, `mlflow` and `phoenix` what theirs need more.
`blocks` and `attribute_shapes` do for many spans at once what `spans` does for one; `span_columns` makes the graphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from graphs.errors import Problem, TraceError
from graphs.formats.span_columns.bulk import Bulk
from graphs.formats.span_dumps.blocks import Blocks
from graphs.formats.span_dumps.dump_types import Dumped
from graphs.formats.span_dumps.envelopes import dumped_spans, in_batches
from graphs.formats.span_dumps.phoenix import phoenix_spans
from graphs.formats.span_dumps.spans import lost_spans, plain_span, stray_in
from graphs.reading.documents import refused_lines
from graphs.reading.source import Lost, Source, unreadable
from graphs.traces.limits import DEFAULT
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["read", "sniff"]

_KEYS = (b'"span_id"', b'"trace_id"', b'"attributes"')
_ID = re.compile(rb'"(?:span_id|trace_id)"\s*:\s*(?:"|[0-9])')
_PARQUET = b"PAR1"


def sniff(head: bytes) -> bool:
    """Whether the content begins as JSON with spans whose keys are in snake case."""
    start = head.lstrip()
    if start[:1] not in (b"[", b"{") or b'"rollout_id"' in start:  # Agent Lightning's spans belong to rollouts
        return False
    return all(key in start for key in _KEYS) and _ID.search(start) is not None


def read(sources: Iterable[Source]) -> Iterator[TraceRecord | Part | Problem]:
    """The traces of all sources; spans of one trace may be spread over files.

    A line or an object that cannot be read refuses the traces that it states.

    Problem kinds: those of `graphs.formats.otlp`, and "bad-row" for a Parquet file that is none.
    """
    bulk, problems, limits = Bulk("spans", lost_spans()), list[Problem](), DEFAULT

    def one(dumped: Dumped, index: int) -> None:
        try:
            wire, resource = plain_span(dumped)
            bulk.add_one(wire, resource, dumped.place, index)
        except TraceError as error:
            problem = bulk.spoil(error.problem)
            if problem is not None:
                bulk.strays.note(problem, stray_in(dumped.span))
                problems.append(problem)

    blocks = Blocks(bulk.plain, bulk.meet, one)
    for source in sources:
        limits = source.limits
        try:
            is_table = source.head(4) == _PARQUET
            for batch in in_batches(phoenix_spans(source), source.name) if is_table else dumped_spans(source):
                if isinstance(batch, Lost):
                    yield bulk.lose(batch)
                elif isinstance(batch, Problem):
                    problem = bulk.spoil(batch)
                    if problem is not None:
                        yield problem
                elif batch.spans:
                    blocks.add(batch, bulk.count)
                    bulk.count += len(batch.spans)
                    yield from problems
                    problems.clear()
            for line in refused_lines(source):
                bulk.lose(line)
        except OSError as error:
            yield unreadable(source, error)
        finally:
            source.release()
    yield from bulk.gathered(limits)
