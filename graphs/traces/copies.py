"""Copies of one run: a file under a further name, a record that stands twice, the logs of a run and of its retry.

A run that is read twice would count twice. Two traces are one run if they have the same id, or the same
`TraceRecord.run`, which formats set whose ids are made of files' names. If their contents are equal, the first is read.
Otherwise neither is, since nothing says which is right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from graphs.errors import DUPLICATE_TRACE, Problem
from graphs.text import excerpt
from graphs.traces.part import Heading, Part
from graphs.traces.repeated_rows import REPEATED_ROWS

__all__ = ["REPEATED_LINES", "digest", "without_copies"]

REPEATED_LINES = "repeated-lines"
"""The kind of the note that a file has its first lines again. It is not said where ids or rows told the copies."""


def without_copies(parts: Sequence[Part], problems: Iterable[Problem]) -> tuple[list[Part], list[Problem]]:
    """The parts with each run once, and the problems, one more for each trace that is left out.

    The first of several equal traces stays ("repeated-run", which is information); what was wrong with it is not said
    of the others again. Of traces that contradict each other none stays ("duplicate-trace").
    """
    first: dict[str, tuple[int, int]] = {}  # a run, or an id -> part and row
    dropped: dict[int, set[int]] = {}
    found: list[Problem] = []
    originals: dict[tuple[str, str], Heading] = {}  # file and trace of a copy -> what is read in its place
    disputed: set[tuple[int, int]] = set()
    for number, part in enumerate(parts):
        for row, heading in enumerate(part.headings):
            original_place = next((first[key] for key in _keys(heading) if key in first), None)
            if original_place is None:
                first |= dict.fromkeys(_keys(heading), (number, row))
                continue
            dropped.setdefault(number, set()).add(row)
            original = parts[original_place[0]].headings[original_place[1]]
            if original_place not in disputed and digest(part, row) == digest(
                parts[original_place[0]], original_place[1]
            ):
                found.append(_copy(heading, original))
                if heading.file != original.file:
                    originals[heading.file, heading.trace_id] = original
                continue
            found.append(_contradiction(heading, original))
            if original_place not in disputed:
                disputed.add(original_place)
                dropped.setdefault(original_place[0], set()).add(original_place[1])
                found.append(_contradiction(original, heading))
    kept = [piece for number, part in enumerate(parts) for piece in part.without(dropped.get(number, ()))]
    found = [*_without_echoes(problems, originals), *found]
    if any(problem.kind == REPEATED_ROWS for problem in found):
        files = {heading.file for part in kept for heading in part.headings}
        found = [p for p in found if p.kind != REPEATED_ROWS or p.file in files]
    if any(problem.kind == REPEATED_LINES for problem in found):
        told = {problem.file for problem in found if problem.kind in ("repeated-run", REPEATED_ROWS)}
        found = [p for p in found if p.kind != REPEATED_LINES or (p.file not in told and _is_read(p, kept))]
    return kept, found


def _without_echoes(problems: Iterable[Problem], originals: dict[tuple[str, str], Heading]) -> Iterator[Problem]:
    said: set[tuple[object, ...]] = set()
    for problem in problems:
        original = originals.get((problem.file, problem.trace))
        what = problem.kind, problem.field, problem.value, problem.count
        if original is None or (original.file, original.trace_id, *what) not in said:
            said.add((problem.file, problem.trace, *what))
            yield problem


def _is_read(again: Problem, parts: Sequence[Part]) -> bool:
    """Whether something of lines that a file has again was read, for want of ids that tell the copy."""
    for part in parts:
        if any(heading.file == again.file and heading.line >= again.line for heading in part.headings):
            return True
        if part.places is not None:
            files, lines, _ = part.places
            places = zip(files.to_pylist(), lines.to_pylist(), strict=True)
            if any(file == again.file and line >= again.line for file, line in places):
                return True
    return False


def digest(part: Part, row: int) -> bytes:
    """A hash of everything that a trace of a part states, without its id and places."""
    trace = part.slice(row, row + 1)
    content = hashlib.blake2b(digest_size=16)
    content.update(repr(_stated(trace.headings[0])).encode("utf-8", "surrogatepass"))
    for name, column in _columns(trace):
        values = column.tobytes() if isinstance(column, np.ndarray) else repr(column.to_pylist()).encode()
        content.update(f"\0{name}\0{len(values)}\0".encode() + values)
    return content.digest()


def _keys(heading: Heading) -> list[str]:
    return [heading.trace_id, f"{heading.format}\0{heading.run}"] if heading.run else [heading.trace_id]


def _stated(heading: Heading) -> list[object]:
    """What a heading states of a run, without what may differ in a copy: the id, the place, and what is made of them.

    Where a file's name makes the id, it makes the group of a trace without a task and the system, too. `run` is
    compared in their place: two runs may have equal events.
    """
    numbers = (heading.rewards, heading.costs, heading.metrics, heading.evidence)
    texts = [heading.format, heading.topology, heading.model]
    texts += [heading.run] if heading.run else [heading.group_id, heading.system]
    return [*texts, *(sorted(amounts.items()) for amounts in numbers)]


def _columns(trace: Part) -> Iterator[tuple[str, np.ndarray | pa.Array]]:
    """The columns of a part by name. Equal traces of a part with a column and of one without it are equal."""
    for name in ("types", "agents", "turns", "actions", "times", "senders", "receivers", "edge_types", "parents"):
        yield name, getattr(trace, name)
    for name in ("agent_ids", "agent_names", "agent_roles"):
        yield name, getattr(trace, name)
    for name, column in sorted(trace.text.items()):
        if column.null_count < len(column):
            yield name, column
    yield from sorted(trace.evidence.items())  # `slice` has left out columns without a value
    if trace.tokens is not None and trace.tokens.offsets[-1]:
        for name in ("offsets", "ids", "mask", "log_probs"):
            yield name, getattr(trace.tokens, name)
        sums = trace.tokens.sums_of_squares
        if sums is not None and not np.isnan(sums).all():
            yield "sums_of_squares", sums


_NUMBERED = ("native", "table")
"""Formats of logs that one writes oneself, whose ids may be numbers of the traces of a step."""


def _copy(heading: Heading, original: Heading) -> Problem:
    value = f"the run of {excerpt(original.file, 200)}, line {original.line} again"
    expected = "each run once, so it is read from there alone"
    return Problem("repeated-run", heading.file, heading.line, "trace_id", value, expected, heading.trace_id)


def _contradiction(heading: Heading, other: Heading) -> Problem:
    expected = "an id with one content: these differ, so neither is read"
    if heading.format in _NUMBERED and heading.file != other.file:
        expected += ". Where ids begin again in each file, join its name or step to them, as in 3-0"
    if other.format != heading.format:
        both = " and ".join(sorted((heading.format, other.format)))
        expected = f"a run in one format: these are {both}, so neither is read. Read the files of one format alone"
    value = f"{excerpt(heading.trace_id)}, as in {other.file}:{other.line}"
    return Problem(DUPLICATE_TRACE, heading.file, heading.line, "trace_id", value, expected, heading.trace_id)
