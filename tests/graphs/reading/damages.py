"""Random damages of logs, and what reading them leaves: no trace may lack one of its records without a word.

    python -m tests.graphs.reading.damages [--seed N] [--damages N] [WORDS]

Damages logs of all formats, or of those whose name has WORDS, and prints each trace that was read without one of its
records, or that is gone, while no problem names the trace or a damaged file. The exit status is 1 if there is one.

Each log lies in two files, the second with other ids, beside a log of another format. A number and a kind of damage are
drawn by the seed, so a line of the output can be repeated alone.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from graphs.errors import NothingReadError, Problem
from graphs.formats import FORMATS
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.traces.schema import EVENT_EVIDENCE

from .all_formats import ALL

__all__ = ["DAMAGES", "Content", "Fault", "Tally", "damaged", "faults", "found"]

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
    """The first lines and a part of the next. If only whole lines are lost, nothing tells the log from a whole one."""
    at = draw.randrange(len(lines))
    return [lines[at][within(draw, lines[at].rstrip(b"\n")) :], *lines[at + 1 :]], other


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

NAMED_BY_PLACE = frozenset({"openhands", "verifiers results", "rollouts of verl", "rollouts of skyrl",
                            "rollouts of nemo-rl", "rollouts of nemo gym", "rollouts of tinker"})  # fmt: skip
"""Logs whose traces are named by file and line. A row that moved has another's id: its content tells what it is."""


ORDER_IS_ALL = "codex"
"""The format of logs in which nothing but the order of lines tells what is of one model call."""

Event = tuple[object, ...]
_KIND = 2  # fields of an event that tell its kind


class Content(NamedTuple):
    """What a trace holds: its events, each with its agent and numbers, in any order; and the numbers of the trace."""

    events: tuple[Event, ...]
    numbers: tuple[tuple[str, float], ...]

    def lacks(self, whole: Content, fields: int | None) -> bool:
        """Whether an event of the whole trace is missing, by its first `fields`, or a number of the trace differs."""
        ours, theirs = (Counter(event[:fields] for event in of.events) for of in (self, whole))
        return bool(theirs - ours) or self.numbers != whole.numbers


def contents(traces: Traces) -> dict[str, Content]:
    """By id of the trace."""
    graph, sizes = traces.graph, traces.sizes
    names = list(zip(*(traces.agents[name].to_pylist() for name in ("name", "role")), strict=True))
    of_events: list[list[Event]] = [[] for _ in range(sizes.traces)]
    of_traces: list[list[tuple[str, float]]] = [[] for _ in range(sizes.traces)]
    values: list[list[tuple[str, float]]] = [[] for _ in range(sizes.events)]
    for name, evidence in sorted(traces.evidence.items()):
        into = of_traces if name.startswith(("rewards.", "costs.", "metrics.")) else values
        if name in EVENT_EVIDENCE or into is of_traces:
            for row, amount in zip(evidence.rows.tolist(), evidence.amounts.tolist(), strict=True):
                into[row].append((name, amount))
    for event in range(sizes.events):
        kind = int(graph.event_type[event]), bool(graph.action_mask[event])
        of_events[graph.trace_ids[event]].append((*kind, names[graph.agent_ids[event]], tuple(values[event])))
    return {
        trace: Content(tuple(sorted(events)), tuple(numbers))
        for trace, events, numbers in zip(traces.traces["trace"].to_pylist(), of_events, of_traces, strict=True)
    }


def found(folder: Path) -> tuple[dict[str, Content], list[Problem]]:
    """The traces of a folder, and all problems."""
    try:
        traces = read(folder)
    except NothingReadError as error:
        return {}, list(error.problems)
    return contents(traces), list(traces.problems)


class Fault(NamedTuple):
    """A trace that lacks a record, or is gone, and no problem says so."""

    trace: str
    is_gone: bool


class Tally(NamedTuple):
    """How many traces of damaged logs were read whole, and how many were left out or read in part by name."""

    whole: int
    named: int


def faults(
    intact: dict[str, Content],
    standing: list[Problem],
    folder: Path,
    files: set[str],
    damage: Damage,
    *,
    by_content: bool = False,
) -> tuple[list[Fault], Tally]:
    """What is wrong with a folder after `files` were damaged.

    A problem must name a trace that is read in part. A problem of the file will do for a trace that is gone, and where
    whole lines are gone, since nothing is left that tells whose they were.

    Args:
      intact, standing: its traces and problems before.
      folder, files: what to read, and the names of the damaged files.
      damage: what was done.
      by_content: ids tell places, and an intact trace is any one of its content.
    """
    left, problems = found(folder)
    before = set(map(_without_line, standing))
    new = [problem for problem in problems if _without_line(problem) not in before]
    named = {problem.trace for problem in new}
    named_files = {problem.file for problem in new} & files
    if by_content:
        known = set(intact.values())  # a doubled row is two runs, for two samples may be equal
        part = {trace for trace, content in left.items() if content not in known}
        gone = _beyond(intact, left)
    else:
        fields = _KIND if damage in (doubled, reordered) else None  # order may tell which number is of which event
        part = {trace for trace in left.keys() & intact if left[trace].lacks(intact[trace], fields)}
        gone = intact.keys() - left
    lines_gone = damage in (head_lost, tail_torn, swapped) or any(problem.kind in _OF_WHOLE_LINES for problem in new)
    silent = [Fault(trace, False) for trace in part - named if not (lines_gone and named_files)]
    silent += [Fault(trace, True) for trace in gone - named if not named_files]
    return silent, Tally(len(left) - len(part), len(part | gone) - len(silent))


_OF_WHOLE_LINES = ("unfinished-line", "unknown-format")
"""A last line that may still be written; a first line without which nothing tells the format of the others."""


def _beyond(these: dict[str, Content], those: dict[str, Content]) -> set[str]:
    """Traces whose content is not, or not as often, among others: the rows of two files may be equal."""
    room = Counter(those.values())
    more = set()
    for trace, content in these.items():
        room[content] -= 1
        if room[content] < 0:
            more.add(trace)
    return more


def _without_line(problem: Problem) -> tuple[str, str, str, str]:
    return problem.kind, problem.file, problem.field, problem.trace


def written(folder: Path, name: str) -> tuple[Path, Path]:
    """A log of the format, and one of other traces beside it."""
    first = ALL[name].write(folder / "first")
    if name == "harbor":  # a trial's result is read with its trajectory
        ALL["atif"].write(folder / "first").rename(folder / "first" / "trajectory.json")
    second = folder / "second" / first.name
    second.parent.mkdir()
    data = first.read_bytes()
    stated = {str(value["trace_id"]) for value in ALL[name].values if isinstance(value, dict) and "trace_id" in value}
    ids = stated | found(folder / "first")[0].keys()
    ids |= {trace.partition("/")[0] for trace in ids}  # as of rLLM, which states the step of training beside an id
    for trace in sorted(ids, key=len, reverse=True):
        last = "0" if trace[-1] != "0" else "1"
        data = data.replace(json.dumps(trace).encode(), json.dumps(trace[:-1] + last).encode())
    second.write_bytes(data)
    if FORMATS[ALL[name].format].holds == "parts":
        _mix(folder, first, second)
    return first, second


def _mix(folder: Path, first: Path, second: Path) -> None:
    """Write lines of both files into each, in turn, if the format reads the same traces then."""
    apart, files = found(folder)[0], (first, second)
    of_files = [file.read_bytes().splitlines(keepends=True) for file in files]
    pairs = list(zip(*of_files, strict=True))
    for file, mixed in zip(files, (pairs[::2], pairs[1::2]), strict=True):
        file.write_bytes(b"".join(line for pair in mixed for line in pair))
    if found(folder)[0] != apart:
        for file, lines in zip(files, of_files, strict=True):
            file.write_bytes(b"".join(lines))


def _is_broken(lines: Lines) -> bool:
    """Whether a file that was one value is none. If it still is, a line was changed, and nothing can tell."""
    try:
        json.loads(b"".join(lines))
    except ValueError:
        return True
    return False


def damaged(folder: Path, name: str, seed: int, times: int) -> Iterator[tuple[str, list[Fault], Tally]]:
    """Of each of `times` damages of a log: its kind and number, the faults, and the tally."""
    first, second = written(folder, name)
    others = [of for of in ALL if ALL[of].format != ALL[name].format]
    third = ALL[random.Random(f"{name} {seed}").choice(others)].write(folder / "third")
    intact, standing = found(folder)
    if len(intact) <= len(found(third.parent)[0]):
        raise RuntimeError(f"{name}: the log is not read beside {third.name}, so that no damage of it would be noticed")
    originals = {file: file.read_bytes().splitlines(keepends=True) for file in (first, second, third)}
    for number in range(times):
        draw = random.Random(f"{name} {seed} {number}")
        damage, after = swapped, originals
        while after == originals or not (damage is swapped or ALL[name].lines or _is_broken(after[first])):
            damage = draw.choice([of for of in DAMAGES if of is not reordered or ALL[name].format != ORDER_IS_ALL])
            partner = third if damage is swapped and draw.random() < 0.5 else second
            lines = damage(draw, originals[first], originals[partner])
            after = originals | dict(zip((first, partner), lines, strict=True))
        for file, content in after.items():
            file.write_bytes(b"".join(content))
        files = {str(file) for file in originals if after[file] != originals[file]}
        by_content = name in NAMED_BY_PLACE or damage is swapped
        silent, tally = faults(intact, standing, folder, files, damage, by_content=by_content)
        yield f"{damage.__name__}, number {number}", silent, tally


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="?", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--damages", type=int, default=2000)
    given = parser.parse_args()
    names = [name for name in ALL if given.words in name]
    kinds, whole, named, silent = Counter[str](), 0, 0, 0
    for position, name in enumerate(names):
        share = given.damages * (position + 1) // len(names) - given.damages * position // len(names)
        with tempfile.TemporaryDirectory() as folder:
            for what, wrong, tally in damaged(Path(folder), name, given.seed, share):
                kinds[what.partition(",")[0]] += 1
                whole, named, silent = whole + tally.whole, named + tally.named, silent + len(wrong)
                for fault in wrong:
                    state = "is gone" if fault.is_gone else "lacks a record"
                    print(
                        f"{name}, {what} of seed {given.seed}: {fault.trace} {state}, and nothing says so", flush=True
                    )
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    print(f"seed {given.seed}: {kinds.total()} damages of {len(names)} logs ({counts})")
    print(f"traces: {whole} read whole, {named} left out or named, {silent} silent")
    return silent > 0


if __name__ == "__main__":
    sys.exit(main())
