"""From paths to one batch: find the logs, tell their formats, read them, at once or in chunks.

A format is a module of `graphs.formats` with `sniff(head) -> bool`, which tells it from the first bytes of a file, and
`read(sources) -> Iterator[TraceRecord | Part | Problem]`. It gets all sources of its format at once, because some
formats store a trace in several files. A bad trace becomes a `Problem`; the other traces are read.
"""

from graphs.logs.detection import FORMATS, MODULES, detect, reader_of, sort_sources
from graphs.logs.read_logs import read, read_records

__all__ = ["FORMATS", "MODULES", "detect", "read", "read_records", "reader_of", "sort_sources"]
