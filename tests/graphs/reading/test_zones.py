"""Times with and without a zone in one trace: the latter were taken for UTC, and events of a team changed places."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.traces.batch import Traces

from .all_formats import ALL

ZONED = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)(?P<clock>[T ]\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:?\d\d)(?=\")")


def parsed(path: Path) -> Traces | list[str]:
    """What was read, or the kinds of problems where nothing was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return read(path)
        except NothingReadError as error:
            return [problem.kind for problem in error.problems]


def without_one_zone(text: str) -> Iterator[str]:
    """The text without the zone of one of its times, set to another year: for the first five of them, and the last."""
    times = list(ZONED.finditer(text))
    for time in {id(time): time for time in (*times[:5], *times[-1:])}.values():
        yield f"{text[: time.start()]}2031-01-01{time['clock']}{text[time.end() :]}"


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_time_without_a_zone_among_others_is_named(name: str, tmp_path: Path) -> None:
    path = ALL[name].write(tmp_path)
    text = path.read_text()
    was = parsed(path)
    for changed in without_one_zone(text):
        path.write_text(changed)
        now = parsed(path)
        if isinstance(was, Traces) and isinstance(now, Traces) and not (len(now.problems) > len(was.problems)):
            np.testing.assert_array_equal(now.graph.time, was.graph.time)  # that time is not read
            np.testing.assert_array_equal(now.graph.agent_ids, was.graph.agent_ids)


@pytest.mark.parametrize("name", ["langsmith", "weave", "spans of phoenix, recorded", "codex"])
def test_times_that_all_lack_a_zone_are_read(name: str, tmp_path: Path) -> None:
    path = ALL[name].write(tmp_path)
    was = parsed(path)
    assert isinstance(was, Traces)
    path.write_text(ZONED.sub(r"\g<day>\g<clock>", path.read_text()))
    now = parsed(path)
    assert isinstance(now, Traces)
    np.testing.assert_array_equal(now.graph.time, was.graph.time)
