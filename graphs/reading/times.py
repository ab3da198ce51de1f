"""Time stamps of logs as seconds."""

from __future__ import annotations

import datetime
import math

from graphs.traces.record import ZonelessTime

__all__ = ["seconds"]


def seconds(time: datetime.datetime | None) -> float:
    """Seconds since 1970, NaN for none; of a time without a zone a `ZonelessTime`, as if it were in UTC.

    Only differences in a trace matter, and a trace that has times of both kinds is refused.
    """
    if time is None:
        return math.nan
    return time.timestamp() if time.tzinfo else ZonelessTime(time.replace(tzinfo=datetime.UTC).timestamp())
