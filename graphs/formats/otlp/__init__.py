"""OTLP JSON: spans and log records with OpenTelemetry GenAI or OpenInference attributes.

Reads export requests, one a line (what file exporters write) or one a file, spans and logs in the same or in different
files. One trace id is one trace. `docs/formats/otlp.md` has the mapping in full; the files here, in the order in which
they work: `wire` cuts files into records, `dialects`, `evaluations` and `marks` read attributes, `spans` keeps what
counts, `tree` settles what each span is, `drafts` makes events, `order` and `edges` arrange them, `rewards` places
evaluations, `assembly` puts the record together; `gathering` brings the spans of all files together, `strays` those
that state no trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from graphs.errors import Problem
from graphs.formats.otlp.gathering import Gathering
from graphs.formats.otlp.requests import items
from graphs.reading.documents import refused_lines
from graphs.reading.source import Lost, Source, unreadable
from graphs.traces.record import TraceRecord

__all__ = ["read", "sniff"]

_BEGINS = re.compile(rb'"(?:resource|scope)(?:Spans|Logs)"\s*:\s*\[')


def sniff(head: bytes) -> bool:
    """Whether a file that begins with `head` is OTLP JSON: its outer lists are visible there, unescaped."""
    return _BEGINS.search(head) is not None


def read(sources: Iterable[Source]) -> Iterator[TraceRecord | Problem]:
    """The traces of all sources, in the order in which their first spans were met.

    Everything is read before the first trace is whole, since its spans may be spread over files; of a span only what
    `spans.Span` has is kept. A line that cannot be read refuses the traces that it states. A file's traces without any
    span of either dialect are one problem together.
    """
    log = Gathering("otlp")
    for source in sources:
        try:
            for item in items(source):
                problem = log.lose(item) if isinstance(item, Lost) else log.add(item)
                if problem is not None:
                    yield problem
            for line in refused_lines(source):
                log.lose(line)
        except OSError as error:
            yield unreadable(source, error)
        finally:
            source.release()
    yield from log.results()
