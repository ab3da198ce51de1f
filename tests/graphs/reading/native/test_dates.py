"""Times of native logs that are dates: programs write ISO 8601, and all traces were refused without a hint."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from graphs.logs import read

from .logs import EXTENDED, extended_trace

BEGIN = datetime.datetime(2026, 10, 5, 8, 10, 13, 308000, tzinfo=datetime.UTC)


def dated(*times: Any) -> dict[str, Any]:
    """A trace whose first events have these times, and others none."""
    document = extended_trace()
    for event in document["events"]:
        event["t"] = None
    for event, time in zip(document["events"], times, strict=False):
        event["t"] = time
    return document


@pytest.mark.parametrize("zone", ["Z", "+00:00", ""])
def test_dates_are_seconds_since_1970(tmp_path: Path, zone: str) -> None:
    moments = [BEGIN + datetime.timedelta(seconds=second) for second in (0, 1.5, 60)]
    written = [moment.replace(tzinfo=None).isoformat() + zone for moment in moments]
    log = tmp_path / "log.jsonl"
    document = dated(written[0], None, *written[1:])
    EXTENDED.validate(document)
    log.write_text(json.dumps(document))
    found = read(log)
    assert found.problems == ()
    assert found.events["time"].to_pylist()[:5] == [
        moments[0].timestamp(),
        None,
        *map(datetime.datetime.timestamp, moments[1:]),
        None,
    ]


@pytest.mark.parametrize(
    ("times", "kind", "said"),
    [
        (["2026-10-05T08:10:13Z", "2026-10-05T08:10:14"], "mixed-zones", "events[1].t is '2026-10-05 08:10:14'"),
        (["2026-10-05T08:10:13Z", 4], "mixed-zones", "expected times of one clock"),
        (["noon"], "bad-type", "expected a time such as 2026-01-31T12:00:00Z"),
        ([True], "bad-type", "expected a number, a time such as 2026-01-31T12:00:00Z or null"),
        (["1950-01-01T00:00:00Z"], "out-of-range", "dates count from 1970"),
    ],
)
def test_a_time_of_another_clock_is_named(tmp_path: Path, times: list[Any], kind: str, said: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, (dated(*times), extended_trace(trace_id="good")))))
    problem = read(log).problems[0]
    assert problem.kind == kind and said in str(problem)
