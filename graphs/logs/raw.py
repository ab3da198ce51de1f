"""The log's own record of an event, read again from its file."""

from __future__ import annotations

import json
from pathlib import Path

from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.reading.source import Source
from graphs.traces.batch import Traces

__all__ = ["raw_record"]


@checked_kinds()
def raw_record(traces: Traces, event: int) -> bytes:
    """The log's own record of an event, read again from its file: the JSON value or the line that starts there.

    In formats whose record is a whole trace (native, one trace a line) this is the trace's record.

    Args:
      traces: what `credit.read` returned.
      event: the row of the event in `traces.events`.

    Raises:
      CreditError: no such event; or the batch was read from standard input or from a format without text.
    """
    if not 0 <= event < traces.events.num_rows:
        raise CreditError(f"event is {event}; expected 0 to {traces.events.num_rows - 1}")
    file, offset = traces.events["file"][event].as_py(), traces.events["offset"][event].as_py()
    path = Path(file)
    if not path.is_file() or offset is None or offset < 0:
        raise CreditError(f"event {event} has no record to read again: it came from {file!r}")
    data = Source(file, path).data[offset:]
    line = data.split(b"\n", 1)[0].strip()
    try:
        text = data.decode()
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:  # not JSON (a row of a CSV file), or the file has changed
        return line
    return text[:end].encode()
