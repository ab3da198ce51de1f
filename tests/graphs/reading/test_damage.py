"""The one rule for damaged logs, over all formats: no trace is read without one of its records.

Each log is written twice, under two names and with two sets of ids, and damaged at random. A trace that is still read
has every event and reward that it has in the intact logs, unless a problem names the trace or one of its files.
"""

from __future__ import annotations

import json
import random
import re
import types
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from graphs.errors import NothingReadError, Problem, TraceError
from graphs.formats import FORMATS, Format
from graphs.logs import detection, found_logs, read
from graphs.traces.batch import Traces

from .all_formats import ALL

ROOT = Path(__file__).resolve().parents[3]

Lines = list[bytes]
Damage = Callable[[random.Random, Lines, Lines], tuple[Lines, Lines]]


def within(draw: random.Random, line: bytes) -> int:
    return draw.randrange(1, max(2, len(line)))


def cut(draw: random.Random, lines: Lines, other: Lines) -> tuple[Lines, Lines]:
    at = draw.randrange(len(lines))
    return [*lines[:at], lines[at][: within(draw, lines[at])] + b"\n", *lines[at + 1 :]], other


def glued(draw: random.Random, lines: Lines, other: Lines) -> tuple[Lines, Lines]:
    """A line that is cut or whole, and the next one behind it without a line break."""
    at = draw.randrange(len(lines))
    first = lines[at].rstrip(b"\n")
    first = first[: within(draw, first)] if draw.random() < 0.5 else first
    return [*lines[:at], first + b"".join(lines[at + 1 : at + 2]), *lines[at + 2 :]], other


def zeroed(draw: random.Random, lines: Lines, other: Lines) -> tuple[Lines, Lines]:
    at = draw.randrange(len(lines))
    start = within(draw, lines[at])
    length = draw.randrange(1, 200)
    filled = lines[at][:start] + b"\0" * min(length, len(lines[at]) - start) + lines[at][start + length :]
    return [*lines[:at], filled, *lines[at + 1 :]], other


def head_lost(draw: random.Random, lines: Lines, other: Lines) -> tuple[Lines, Lines]:
    at = draw.randrange(len(lines))
    return [lines[at][within(draw, lines[at]) :], *lines[at + 1 :]], other


def tail_torn(draw: random.Random, lines: Lines, other: Lines) -> tuple[Lines, Lines]:
    at = draw.randrange(len(lines))
    return [*lines[:at], lines[at][: within(draw, lines[at].rstrip(b"\n"))]], other


def doubled(draw: random.Random, lines: Lines, other: Lines) -> tuple[Lines, Lines]:
    at = draw.randrange(len(lines))
    return [*lines[: at + 1], *lines[at:]], other


def reordered(draw: random.Random, lines: Lines, other: Lines) -> tuple[Lines, Lines]:
    lines = [line.rstrip(b"\n") + b"\n" for line in lines]
    draw.shuffle(lines)
    return lines, other


def swapped(draw: random.Random, lines: Lines, other: Lines) -> tuple[Lines, Lines]:
    """Files under each other's names, as a wrong copy leaves them."""
    return other, lines


DAMAGES: tuple[Damage, ...] = (cut, glued, zeroed, head_lost, tail_torn, doubled, reordered, swapped)


NAMED_BY_PLACE = {"openhands", "verifiers results", "rollouts of verl", "rollouts of skyrl", "rollouts of nemo-rl",
                  "rollouts of nemo gym"}  # fmt: skip
"""Logs whose traces are named by their file and line."""


class Content(NamedTuple):
    """What the intact logs say of a trace."""

    events: Counter[tuple[int, bool]]
    rewards: dict[str, float]
    files: set[str]


def contents(traces: Traces) -> dict[str, Content]:
    """By id of the trace."""
    graph, files = traces.graph, traces.events["file"].to_pylist()
    of_events = [Content(Counter(), {}, {file}) for file in traces.traces["file"].to_pylist()]
    for event in range(traces.sizes.events):
        content = of_events[graph.trace_ids[event]]
        content.events[int(graph.event_type[event]), bool(graph.action_mask[event])] += 1
        content.files.add(files[event])
    for name, evidence in traces.evidence.items():
        if name.startswith("rewards."):
            for row, content in enumerate(of_events):
                if np.isfinite(evidence.array[row]):
                    content.rewards[name] = float(evidence.array[row])
    return dict(zip(traces.traces["trace"].to_pylist(), of_events, strict=True))


def found(folder: Path) -> tuple[dict[str, Content], list[Problem]]:
    try:
        traces = read(folder)
    except NothingReadError as error:
        return {}, list(error.problems)
    return contents(traces), list(traces.problems)


def written(folder: Path, name: str) -> tuple[Path, Path]:
    """A log of the format, and one of other traces beside it."""
    first = ALL[name].write(folder / "first")
    if name == "harbor":  # a trial's result is read with its trajectory
        ALL["atif"].write(folder / "first").rename(folder / "first" / "trajectory.json")
    second = folder / "second" / first.name
    second.parent.mkdir()
    data = first.read_bytes()
    for trace in sorted(contents(read(folder / "first")), key=len, reverse=True):
        last = "0" if trace[-1] != "0" else "1"
        data = data.replace(json.dumps(trace).encode(), json.dumps(trace[:-1] + last).encode())
    second.write_bytes(data)
    return first, second


def silent_losses(folder: Path, name: str, seed: int, times: int) -> Iterator[str]:
    first, second = written(folder, name)
    intact, _ = found(folder)
    originals = [file.read_bytes().splitlines(keepends=True) for file in (first, second)]
    for number in range(times):
        draw = random.Random(f"{name} {seed} {number}")
        damage = draw.choice(DAMAGES)
        if damage in (doubled, reordered, swapped) and name in NAMED_BY_PLACE:
            continue  # another row has the id then, and none is lost
        for file, lines in zip((first, second), damage(draw, *originals), strict=True):
            file.write_bytes(b"".join(lines))
        left, problems = found(folder)
        named = {problem.trace for problem in problems} | {problem.file for problem in problems}
        for trace, content in left.items():
            whole = intact.get(trace)
            lacks = whole is not None and (whole.events > content.events or bool(whole.events - content.events))
            if (lacks or (whole and whole.rewards != content.rewards)) and not named & {trace, *content.files}:
                yield f"{name}, {damage.__name__} of seed {seed}, number {number}: {trace}"


@pytest.mark.parametrize("times", [6, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ALL)
def test_no_trace_is_read_without_one_of_its_records(tmp_path: Path, name: str, times: int) -> None:
    assert list(silent_losses(tmp_path, name, seed=times, times=times)) == []


@pytest.mark.sampled
@pytest.mark.parametrize("name", [name for name, sample in ALL.items() if sample.lines])
def test_a_line_that_is_no_json_is_named_and_refuses_what_the_rule_says(tmp_path: Path, name: str) -> None:
    path = ALL[name].write(tmp_path / "damaged")
    good = read(path).sizes.traces
    whole = path.read_text()
    path.write_text(whole + '{"broken": \n')
    left, problems = found(path)
    assert any(problem.kind == "bad-json" and problem.line for problem in problems)
    is_whole = FORMATS[ALL[name].format].holds == "traces" or name == "openhands"  # whose rows are complete
    assert len(left) == (good if is_whole else 0)
    path.write_text(whole + '{"broken": ')
    left, problems = found(path)
    assert len(left) == (0 if FORMATS[ALL[name].format].holds == "parts" else good)
    path.write_text(whole)
    assert len(found(path)[0]) == good


def reader_of_contributing() -> types.ModuleType:
    """The reader that CONTRIBUTING shows, as it stands there: nothing in it is about damage."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (code,) = re.findall(r"```py\n(.*?)```", page.partition("## A format\n")[2].partition("\n## ")[0], re.DOTALL)
    module = types.ModuleType("acme")
    exec(code, module.__dict__)
    return module


def steps(runs: int) -> Lines:
    lines = [
        {"run": f"run-{run}", "task": "q", "step": step, "agent": f"agent-{step % 2}", "note": "said " * step}
        | ({"reward": float(run)} if step == 3 else {"tool": "search"} if step == 2 else {})
        for step in range(4)
        for run in range(runs)
    ]
    return [json.dumps(line).encode() + b"\n" for line in lines]


@pytest.mark.slow
def test_a_reader_without_a_line_about_damage_keeps_the_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acme, known = reader_of_contributing(), detection.reader_of
    monkeypatch.setitem(FORMATS, "acme", Format("acme", "steps of runs"))
    for module in (detection, found_logs):
        monkeypatch.setattr(module, "reader_of", lambda name: acme if name == "acme" else known(name))
    files = [tmp_path / "a" / "steps.jsonl", tmp_path / "b" / "steps.jsonl"]
    lines = steps(7)
    originals = [lines[::2], lines[1::2]]  # every run lies in both files
    for file, own in zip(files, originals, strict=True):
        file.parent.mkdir()
        file.write_bytes(b"".join(own))
    intact, problems = found(tmp_path)
    assert len(intact) == 7 and not problems
    for number in range(200):
        draw = random.Random(number)
        damage = draw.choice(DAMAGES)
        for file, own in zip(files, damage(draw, *originals), strict=True):
            file.write_bytes(b"".join(own))
        left, problems = found(tmp_path)
        named = {problem.trace for problem in problems}
        # Whole lines are gone with it, or the file's first, which tells its format: nothing tells whose they were.
        if damage in (head_lost, tail_torn) or any(problem.kind == "unknown-format" for problem in problems):
            named |= {problem.file for problem in problems}
        for trace, content in left.items():
            if intact[trace].events - content.events or intact[trace].rewards != content.rewards:
                assert named & {trace, *intact[trace].files}, (number, damage.__name__, trace)


def test_the_rule_names_what_to_do(tmp_path: Path) -> None:
    log = ALL["langfuse lines"].write(tmp_path)
    log.write_bytes(log.read_bytes().replace(b"\n", b'\n{"id": \n', 1))
    _, problems = found(log)
    refused = [problem for problem in problems if problem.kind == "lost-row"]
    assert refused and all("mend or delete line 2 and read again" in problem.expected for problem in refused)
    assert isinstance(TraceError(refused[0]), ValueError)


def test_a_trace_that_is_read_with_a_fault_stays_where_another_trace_is_damaged(tmp_path: Path) -> None:
    """Langfuse's list of traces names a score that is on no page at hand."""
    trace = {"id": "a", "timestamp": "2026-01-01T00:00:00.000Z", "scores": ["absent"], "projectId": "p"}
    trace["observations"] = [{**ALL["langfuse lines"].values[0], "traceId": "a", "parentObservationId": None}]
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    intact, problems = found(tmp_path)
    assert list(intact) == ["a"] and [problem.kind for problem in problems] == ["missing-part"]
    log = ALL["langfuse lines"].write(tmp_path)
    log.write_bytes(log.read_bytes()[:-9] + b"\n")
    left, problems = found(tmp_path)
    assert list(left) == ["a"] and {problem.trace for problem in problems if problem.kind == "lost-row"} == {"t"}
