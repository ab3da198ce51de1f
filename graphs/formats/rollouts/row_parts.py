"""Rows with one text as parts of a batch: many at once, because a record for each takes longer than decoding does."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator

import numpy as np
import pyarrow as pa

from graphs.errors import Problem
from graphs.event_types import EventType
from graphs.formats.rollouts.outputs import Read, Rollouts, may_be_an_output
from graphs.formats.rollouts.rows import (
    AGENT,
    ROW,
    Row,
    metrics_of,
    mixed_ids,
    prompt_group,
    reward_of,
    run_of,
    system_of,
    uid_group,
)
from graphs.reading.addresses import real_folder
from graphs.reading.documents import Document, line_document
from graphs.reading.encodings import is_utf8
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.limits import Limits, depth
from graphs.traces.part import Heading, Part
from graphs.traces.record import LARGEST_FLOAT, TraceRecord

__all__ = ["begins_with_a_row", "read_lines"]

_BATCH = 1 << 12  # rows of a part
_WINDOW = 1 << 18  # bytes of text that are decoded at once: what is made of them stays in the processor's cache

_Line = tuple[int, int, Row | None, bool]
"""Of a line its number, its offset, its row if it is one, and whether that is certainly text."""


def begins_with_a_row(source: Source) -> bool:
    """Whether the first line of a file is a row with one text, so that the file has a row a line.

    Raises:
      OSError: the file cannot be read.
    """
    for _, _, line in source.lines():
        try:
            return bool(system_of(ROW.decode(line))[0])
        except JSON_ERRORS:
            return False
    return False


def read_lines(
    source: Source, file: str, read_one: Read, uids: set[type], split: frozenset[tuple[str, str]]
) -> Iterator[Part | TraceRecord | Problem]:
    """The results of `read_one` for each line, with the rows that have no fault and no tokens put into parts.

    Args:
      source: the file.
      file: its name in ids of traces.
      read_one: reads a row by itself.
      uids: the type of the first `uid` of all files, once one is met; filled in here.
      split: rollouts of `split_rollouts`.
    """
    batch: list[Heading] = []
    latest: tuple[str, int | None, str] = ("", None, "")  # prompt, step and their group: rows of a group are neighbours
    folder = real_folder(source.name)
    without, with_uid = 0, 0  # rows of verl
    without_step, with_step = 0, 0
    rollouts: Rollouts | None = None

    def text_of(offset: int) -> bytes:
        return _line_at(source.data, offset)

    def document_of(number: int, offset: int) -> Document | None:
        return None if offset in source.lost else line_document(source, number, offset, text_of(offset))

    for number, offset, row, plain in _rows(source):
        if row is not None and row.input is not None:
            with_step += row.step is not None
            without_step += row.step is None
        if row is not None and row.uid is None:
            without += row.input is not None
        elif row is not None:
            with_uid += bool(str(row.uid).strip())
            uids |= set() if uids else {type(row.uid)}
            if type(row.uid) not in uids:  # 1 and "1" would be one group
                expected = "texts or numbers, the same in every row of all files"
                yield Problem("mixed-ids", source.name, number, "uid", excerpt(row.uid), expected, f"{file}/{number}")
                continue
        if rollouts is None and may_be_an_output(row):
            rollouts = Rollouts((line[:3] for line in _rows(source)), source.lost, text_of, split)
        if rollouts is not None and offset in rollouts:
            if batch:
                yield _part(batch)
                batch = []
            yield from rollouts.read(offset, source.name, file, read_one, document_of)
            continue
        heading = None
        if row is not None and plain:
            system, prompt = system_of(row)
            if prompt and (prompt, row.step) != latest[:2]:
                latest = prompt, row.step, prompt_group(prompt.encode(), row.step)
            heading = _heading(row, system, latest[2] if prompt else "", source.name, file, number, offset)
        if heading is not None:
            heading.run = run_of(text_of(offset), folder, number)
            batch.append(heading)
            if len(batch) < _BATCH:
                continue
        if batch:
            yield _part(batch)
            batch = []
        if heading is None:
            document = document_of(number, offset)
            if document is not None:
                yield from read_one(document, file)
    if batch:
        yield _part(batch)
    expected = "an id in every row, or in none: a row without one is of the group of its prompt"
    yield from mixed_ids(source.name, "uid", without, with_uid, expected)
    expected = "a step in every row, or in none: a row without one is in no group of those with one"
    yield from mixed_ids(source.name, "step", without_step, with_step, expected)


def _rows(source: Source) -> Iterator[_Line]:
    """The lines of a file."""
    number = 0
    for start, text in source.windows(_WINDOW):
        starts = _starts(text)
        rows = _decoded(text, starts, source.limits)
        if rows is None:
            number = yield from _one_by_one(source, text, number, start)
            continue
        for row, row_start in zip(rows, starts, strict=True):
            number += 1
            yield number, start + row_start, row, True
        if text.endswith(b"\n"):  # behind which a blank line ends the window
            number += 1


def _starts(text: bytes) -> list[int]:
    """Where each line of a text begins; an empty line at the end is none."""
    starts = [0]
    while 0 < (start := text.find(b"\n", starts[-1]) + 1) < len(text):
        starts.append(start)
    return starts


def _decoded(text: bytes, starts: list[int], limits: Limits) -> list[Row] | None:
    """The rows of lines together; None where one may be no row, no text, or pass the limits."""
    if not is_utf8(text):
        return None
    try:
        rows = ROW.decode_lines(text)
    except JSON_ERRORS:
        return None
    if len(rows) != len(starts):
        return None
    if not limits.may_refuse(text, np.array([*starts[1:], len(text)])):
        return rows
    # Brackets within texts nest nothing, and texts of mathematics have many: the depth of all lines together decides.
    is_small = len(text) <= min(limits.record_bytes, limits.string_bytes)
    return rows if is_small and depth(text) <= limits.depth else None


def _one_by_one(source: Source, text: bytes, number: int, start: int) -> Generator[_Line, None, int]:
    """`_rows` of a window at an offset, behind a number of lines; returns the number of lines behind it."""
    lines = source.lines_within(text, number, start)
    while True:
        try:
            line_number, offset, line = next(lines)
        except StopIteration as end:
            return int(end.value)
        try:
            row = ROW.decode(line)
        except JSON_ERRORS:
            yield line_number, offset, None, False
        else:
            yield line_number, offset, row, is_utf8(line)


def _line_at(data: bytes, offset: int) -> bytes:
    end = data.find(b"\n", offset)
    return data[offset : len(data) if end < 0 else end].strip()


def _heading(row: Row, system: str, group: str, name: str, file: str, line: int, offset: int) -> Heading | None:
    """The heading of a row's trace; None for a row that `read_row` has to look at."""
    if not system or row.responses_create_params is not None or row.response_ids is not None:
        return None
    reward = reward_of(row)
    if reward is not None and not abs(reward) <= LARGEST_FLOAT:
        return None
    trace = f"{file}/{line}"
    if row.uid is not None:
        group = uid_group(row.uid, row.step)
        if not group:
            return None
    return Heading(
        trace,
        group or trace,
        name,
        line,
        offset,
        "rollouts",
        "",
        system,
        "",
        {} if reward is None else {"team": reward},
        {},
        metrics_of(row),
        {} if row.step is None else {"policy_version": row.step},
    )


def _part(headings: list[Heading]) -> Part:
    """Traces of one message each."""
    n = len(headings)
    ends, none = np.arange(1, n + 1), np.zeros(0, np.int32)
    each = np.arange(n, dtype=np.int32)
    names = pa.repeat(AGENT, n)
    return Part(
        headings=headings,
        event_ends=ends,
        edge_ends=np.zeros(n, np.int64),
        agent_ends=ends,
        types=np.full(n, EventType.MESSAGE, np.int32),
        agents=each,
        turns=each.copy(),
        actions=np.ones(n, bool),
        times=np.full(n, math.nan),
        senders=none,
        receivers=none,
        edge_types=none,
        agent_ids=names,
        agent_names=names,
        agent_roles=names,
        parents=each.copy(),
        text={"event": pa.repeat("0", n)},
        evidence={},
    )
