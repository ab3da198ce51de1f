"""Times in milliseconds where a format has seconds: durations became 1,000 times as long without a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphs.logs import read

from .all_formats import ALL

SECONDS = re.compile(r"(?<=[:\s])(1[67]\d{8}(?:\.\d+)?)(?=[,}\]\s])")


@pytest.mark.parametrize("name", ["adk", "agent-lightning spans", "braintrust"])
@pytest.mark.parametrize("scale", [10**3, 10**6, 10**9])
def test_times_that_cannot_be_seconds_are_named(name: str, scale: int, tmp_path: Path) -> None:
    path = ALL[name].write(tmp_path)
    assert "time-unit" not in [note.kind for note in read(path).problems]
    path.write_text(SECONDS.sub(lambda time: str(int(float(time[1]) * scale)), path.read_text()))
    (note,) = [note for note in read(path).problems if note.kind == "time-unit"]
    assert not note.is_failure and "too long by 1,000 or more" in note.expected
