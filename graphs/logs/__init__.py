"""From paths to one batch: find the logs, tell their formats, read them, at once or in chunks.

A reader gets all sources of its format at once, because some formats store a trace in several files. A trace
that cannot be read becomes a `Problem`; the other traces are read. `graphs.formats` says what a format has.
"""

from graphs.logs.detection import FORMATS, detect, reader_of, sort_sources
from graphs.logs.read_logs import read, read_records

__all__ = ["FORMATS", "detect", "read", "read_records", "reader_of", "sort_sources"]
