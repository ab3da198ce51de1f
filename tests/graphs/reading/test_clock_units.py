"""Times in another unit than a format's, or of no clock: durations were wrong by 1,000 and more without a word."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credit.reports.trace_numbers import TeamFacts
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


def timed(folder: Path, *, place: str, parallel: bool = False, wait: float = 0.0, traces: int = 8) -> list[str]:
    """Kinds of notes on a table whose `time` is the begin or the end of each call, one after another or at once."""
    random, lines = np.random.default_rng(1), ["trace,group,reward,agent,time,seconds"]
    for trace in range(traces):
        now = 1.8e9
        for call in range(6):
            took = float(random.uniform(0.5, 9))
            at = now + (took if place == "end" else 0.0)
            lines.append(f"t{trace},q,1,{'ab'[call % 2]},{at:.3f},{took:.3f}")
            now += float(random.uniform(0, 3)) if parallel else took + wait * float(random.random())
    (path := folder / "log.csv").write_text("\n".join(lines) + "\n")
    return [problem.kind for problem in read(path).problems]


def test_ends_in_place_of_begins_are_named(tmp_path: Path) -> None:
    """Ends beside `seconds` gave a wall clock of 53.5 for 36.3, without a word."""
    assert timed(tmp_path, place="end") == ["times-of-ends"]
    assert timed(tmp_path, place="end", wait=0.01) == ["times-of-ends"]
    assert timed(tmp_path, place="end", traces=3) == []  # few pairs
    for parallel in (False, True):
        for wait in (0.0, 0.01, 3.0):
            assert timed(tmp_path, place="begin", parallel=parallel, wait=wait) == []


def ends_of(traces: int, calls: int = 6) -> tuple[list[dict[str, Any]], list[float]]:
    """Rows with the end of each call, one after another, and the wall clock of each trace."""
    random, rows, walls = np.random.default_rng(2), [], []
    for trace in range(traces):
        begun = now = 1.8e9 + 1000 * trace
        for call in range(calls):
            took = round(float(random.uniform(0.5, 9)), 3)
            now = round(now + took, 3)
            rows.append({"trace": f"t{trace}", "reward": 1, "agent": "ab"[call % 2], "done": now, "took": took})
        walls.append(now - begun)
    return rows, walls


def test_ends_are_read_as_begins(tmp_path: Path) -> None:
    """A wall clock of 33.8 for 30.2 stood in tables and got a star, while a note called it wrong."""
    rows, walls = ends_of(8)
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for columns in ({"time": "done", "seconds": "took"}, {"end": "done", "seconds": "took"}):
        traces = read(path, columns=columns)
        assert TeamFacts(traces).durations.wall == pytest.approx(walls, abs=0.01), columns
        assert traces.events["time"].to_pylist() == pytest.approx([r["done"] - r["took"] for r in rows], abs=1e-3)
        assert [note.kind for note in traces.problems] == ["times-of-ends"] * ("time" in columns)
    native = [
        {"id": str(i), "type": "message", "agent": row["agent"], "t": row["done"], "seconds": row["took"]}
        for i, row in enumerate(rows)
    ]
    traces_of = [{"trace_id": f"n{i}", "task_id": "q", "events": native[6 * i : 6 * i + 6]} for i in range(8)]
    (folder := tmp_path / "both").mkdir()
    (folder / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in traces_of))
    assert TeamFacts(read(folder)).durations.wall == pytest.approx(walls, abs=0.01)
    for begin in (row | {"done": row["done"] - row["took"], "time": row["done"] - row["took"]} for row in rows):
        with (folder / "begins.jsonl").open("a") as file:
            file.write(json.dumps(begin | {"seconds": begin["took"]}) + "\n")
    wall = TeamFacts(read(folder)).durations.wall  # of both formats, each with its own times
    assert wall == pytest.approx(walls + walls, abs=0.01)


NANOSECONDS = re.compile(r"\b1[67]\d{17}\b")
YEAR = re.compile(r"20\d\d(?=-\d\d-\d\dT)")


@pytest.mark.parametrize(("name", "stated"), [
    ("otlp of gen_ai", NANOSECONDS), ("otlp of openinference", NANOSECONDS), ("adk", SECONDS), ("braintrust", SECONDS),
])  # fmt: skip
@pytest.mark.parametrize("scale", [10**3, 10**6])
def test_times_that_are_too_small_for_their_unit_are_named(
    name: str, stated: re.Pattern[str], scale: int, tmp_path: Path
) -> None:
    path = ALL[name].write(tmp_path)
    assert "time-unit" not in [note.kind for note in read(path).problems]
    text, replaced = stated.subn(
        lambda time: f"{float(time[0]) / scale:.6f}" if stated is SECONDS else time[0][: -len(str(scale)) + 1],
        path.read_text(),
    )
    assert replaced
    path.write_text(text)
    (note,) = [note for note in read(path).problems if note.kind == "time-unit"]
    assert not note.is_failure and f"divided by {scale:,}" in note.expected


@pytest.mark.parametrize(("name", "stated"), [
    ("otlp of gen_ai", NANOSECONDS), ("adk", SECONDS), ("weave", YEAR), ("claude-code", YEAR),
])  # fmt: skip
def test_one_time_of_no_clock_is_named(name: str, stated: re.Pattern[str], tmp_path: Path) -> None:
    """A time that was never set is 1970: the run took half a century."""
    path = ALL[name].write(tmp_path)
    assert "time-unit" not in [note.kind for note in read(path).problems]
    never = "1970" if stated is YEAR else "1"
    text, replaced = stated.subn(never, path.read_text(), count=1)
    assert replaced
    path.write_text(text)
    notes = [note for note in read(path).problems if note.kind == "time-unit"]
    assert [note.is_failure for note in notes] == [False] and "one unit and one clock" in notes[0].expected
    traces = read(path)  # the note calls its durations wrong, so that none is told
    wrong = traces.traces["trace"].to_pylist().index(notes[0].trace)
    assert np.isnan(TeamFacts(traces).durations.wall[wrong])


@pytest.mark.parametrize(("times", "words"), [
    ((1767223833000, 1767223834500), "too long"), ((0, 1767223834.5), "one clock"),
    ((1767223.833, 1767223.8345), "by 1,000"),
    ((1767223833.0, 1767223834.5), ""), ((0, 1.5), ""), ((1.5, 2.0), ""), ((1500, 1700), ""), ((7, 7), ""),
])  # fmt: skip
def test_times_of_the_native_format_are_looked_at_too(times: tuple[float, ...], words: str, tmp_path: Path) -> None:
    events = [{"id": str(i), "type": "message", "agent": "a", "t": time} for i, time in enumerate(times)]
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": events, "rewards": {"team": 1}}) + "\n")
    notes = [note.expected for note in read(path).problems]
    assert len(notes) == bool(words) and all(words in note for note in notes)


def durations_of(folder: Path, scale: float, *, at_once: int = 1, column: str = "dur") -> Path:
    """Rounds of an agent's calls, serial or so many at once, with what they took in units of a second over `scale`."""
    random, lines = np.random.default_rng(3), [f"trace,group,reward,agent,time,{column}"]
    for trace in range(8):
        now = 1.8e9
        for _ in range(6):
            took = random.uniform(5, 9, at_once)
            for number, of in enumerate(took.tolist()):
                lines.append(f"t{trace},q,1,a,{now + 0.02 * number:.3f},{of * scale:.3f}")
            now += float(took.max()) + float(random.uniform(0, 3))
    (path := folder / f"{column}.csv").write_text("\n".join(lines) + "\n")
    return path


def test_durations_in_another_unit_are_named(tmp_path: Path) -> None:
    """Milliseconds as `seconds` printed a wall clock of 8,716 s for 40.8 s, without a word."""
    for scale, unit in ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")):
        path = durations_of(tmp_path, scale)
        (note,) = read(path, columns={"seconds": "dur"}).problems
        assert (note.kind, note.field, note.is_failure) == ("time-unit", "seconds", False)
        assert unit in note.expected and f"seconds=COLUMN/{scale:.0f}" in note.expected
        stated = read(path, columns={"seconds": f"dur/{scale:.0f}"})
        assert stated.problems == () and 5 <= np.nanmax(stated.evidence["seconds"].array) <= 9
    for at_once in (1, 4, 12):
        path = durations_of(tmp_path, 1, at_once=at_once)
        assert read(path, columns={"seconds": "dur"}).problems == ()


@pytest.mark.parametrize("column", ["dur_ms", "latencyMs", "took (ms)", "elapsed_milliseconds"])
def test_a_column_called_by_its_unit_is_read_in_it_and_named(column: str, tmp_path: Path) -> None:
    path = durations_of(tmp_path, 1e3, column=column)
    whole = read(path, columns={"seconds": column})
    (note,) = whole.problems
    assert (note.kind, note.is_failure) == ("time-unit", False) and f"{column!r}, by its name" in note.value
    assert 5 <= np.nanmax(whole.evidence["seconds"].array) <= 9
    kept = read(path, columns={"seconds": f"{column}/1"})
    assert 5000 <= np.nanmax(kept.evidence["seconds"].array) <= 9000


def test_a_time_called_by_its_unit_is_read_in_it(tmp_path: Path) -> None:
    (path := tmp_path / "log.csv").write_text("trace,reward,begun_ms,done_ms\na,1,1800000000000,1800000002500\n")
    traces = read(path, columns={"time": "begun_ms", "end": "done_ms"})
    assert traces.events["time"].to_pylist() == [1.8e9] and traces.evidence["seconds"].amounts.tolist() == [2.5]
    assert [note.field for note in traces.problems] == ["time", "end"]
    path.write_text("trace,reward,begun_ms\na,1,2026-01-31T12:00:00Z\n")
    assert not read(path, columns={"time": "begun_ms"}).problems  # a date has no other unit
