"""Readers of log formats, grouped by the source of the logs.

    native      the survey's orchestration-trace JSON and its extension
    training    logs of trainers: rollouts, and tables with a row for each action
    tracing     exports of tracing systems
    evaluation  logs of evaluation harnesses and benchmarks
    coding      sessions of coding agents
    common      what readers share

A reader is a module with `sniff(head) -> bool`, which tells its format from the first bytes of a file, and
`read(sources) -> Iterator[TraceRecord | Part | Problem]`. It gets all sources of its format at once, because some
formats store a trace in several files. A bad trace becomes a `Problem`; the other traces are read.
"""

from graphs.readers.formats import FORMATS, MODULES, detect, reader_of, sort_sources
from graphs.readers.reading import read, read_records

__all__ = ["FORMATS", "MODULES", "detect", "read", "read_records", "reader_of", "sort_sources"]
