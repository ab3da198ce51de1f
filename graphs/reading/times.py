"""Time stamps of logs as seconds."""

from __future__ import annotations

import datetime
import math

__all__ = ["seconds"]


def seconds(time: datetime.datetime | None) -> float:
    """Seconds since 1970, NaN for none; one without a zone is taken as UTC: only differences in a trace matter."""
    if time is None:
        return math.nan
    return (time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).timestamp()
