"""Rows with one text as parts of a batch: many at once, because a record for each takes longer than decoding does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from graphs.errors import Problem
from graphs.event_types import EventType
from graphs.readers.common.json_problems import JSON_ERRORS
from graphs.readers.common.places import Document, line_document
from graphs.readers.common.repeated_keys import may_repeat
from graphs.readers.common.source import Source
from graphs.readers.training.rollouts.rows import AGENT, ROW, Row, prompt_group, reward_of, system_of, uid_group
from graphs.text import excerpt
from graphs.traces.part import Heading, Part
from graphs.traces.record import LARGEST_FLOAT, TraceRecord

__all__ = ["begins_with_a_row", "read_lines"]

_BATCH = 1 << 12  # rows of a part

Read = Callable[[Document, str], Iterable[TraceRecord | Problem]]


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


def read_lines(source: Source, file: str, read_one: Read) -> Iterator[Part | TraceRecord | Problem]:
    """What `read_one` gives for each line, with the rows that have no fault and no tokens put into parts."""
    batch: list[Heading] = []
    latest: tuple[str, int | None, str] = ("", None, "")  # prompt, step and their group: rows of a group are neighbours
    uids: type | None = None  # of the first row that has one
    for number, offset, line in source.lines():
        try:
            row = ROW.decode(line)
        except JSON_ERRORS:
            row = None
        if row is not None and row.uid is not None:
            uids = uids or type(row.uid)
            if type(row.uid) is not uids:  # 1 and "1" would be one group
                expected = "texts or numbers, the same in every row"
                yield Problem("mixed-ids", source.name, number, "uid", excerpt(row.uid), expected, f"{file}/{number}")
                continue
        heading = None
        if row is not None and not may_repeat(line):
            system, prompt = system_of(row)
            if prompt and (prompt, row.step) != latest[:2]:
                latest = prompt, row.step, prompt_group(prompt.encode(), row.step)
            heading = _heading(row, system, latest[2] if prompt else "", source.name, file, number, offset)
        if heading is not None:
            batch.append(heading)
            if len(batch) < _BATCH:
                continue
        if batch:
            yield _part(batch)
            batch = []
        if heading is None:
            document = line_document(source, number, offset, line)
            if isinstance(document, Problem):
                yield document
            else:
                yield from read_one(document, file)
    if batch:
        yield _part(batch)


def _heading(row: Row, system: str, group: str, name: str, file: str, line: int, offset: int) -> Heading | None:
    """The heading of a row's trace; None for a row that `read_row` has to look at."""
    if not system or row.responses_create_params is not None or row.response_ids is not None:
        return None
    reward = reward_of(row, system)
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
        {} if row.acc is None else {"acc": float(row.acc)},
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
