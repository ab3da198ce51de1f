"""From paths to one batch: find the logs, tell their formats, read them, at once or in chunks.

A reader gets all sources of its format at once, because some formats store a trace in several files. A trace
that cannot be read becomes a `Problem`; the other traces are read. `graphs.formats` says what a format has.
"""

from graphs.formats import FORMATS
from graphs.logs.found_logs import Corpus, detect, open_logs, reader_of
from graphs.logs.read_logs import read

__all__ = ["FORMATS", "Corpus", "detect", "open_logs", "read", "reader_of"]
