"""Runs of LangGraph: the events of `stream(..., stream_mode="debug")`, with or without sub-graphs, or checkpoints.

    {step, timestamp, type: "checkpoint", payload: {config: {configurable: {thread_id}}, tasks: [{id}]}}
    {step, timestamp, type: "task", payload: {id, name, input, triggers}}
    {step, timestamp, type: "task_result", payload: {id, name, result}}

With `subgraphs=True` an item is a pair of a namespace and an event: `[["NODE:TASK"], EVENT]`. A thread is a trace and a
group of its own, without an outcome. An AI message that a node returns is a model call, and an action. `history` reads
checkpoints.
`docs/formats/langgraph.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.readers.common.files import short_names
from graphs.readers.common.keys import opening
from graphs.readers.common.places import Document, Place, documents
from graphs.readers.common.source import Source
from graphs.readers.common.times import seconds
from graphs.readers.common.typed import content, decode, decode_record
from graphs.readers.tracing.langgraph.hearing import Allowance
from graphs.readers.tracing.langgraph.history import begins_history, runs_of
from graphs.readers.tracing.langgraph.runs import Run, Step, Task
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["read", "sniff"]

_KEYS = frozenset({"step", "timestamp", "type", "payload"})
_HEAD = 1 << 24  # bytes that tell a checkpoint, whose values may be long
_TYPE = re.compile(rb'"type":\s{0,8}"(checkpoint|task|task_result)"')


class _Event(msgspec.Struct):
    step: int
    type: str
    payload: msgspec.Raw
    timestamp: datetime.datetime | None = None


class _Named(msgspec.Struct):
    id: str | None = None
    thread_id: str | int | None = None


class _Config(msgspec.Struct):
    configurable: _Named | None = None


class _Checkpoint(msgspec.Struct):
    config: _Config | None = None
    tasks: list[_Named] = []

    @property
    def thread(self) -> str | int:
        """The id of the thread; "" without one."""
        named = self.config.configurable if self.config is not None else None
        return "" if named is None or named.thread_id is None else named.thread_id


_EVENT = msgspec.json.Decoder(_Event)
_PAIR = msgspec.json.Decoder(tuple[list[str], msgspec.Raw])
_TASK = msgspec.json.Decoder(Task)
_CHECKPOINT = msgspec.json.Decoder(_Checkpoint)


def sniff(head: bytes) -> bool:
    """Whether the content begins as an event of a debug stream, as a checkpoint, or as a pair or list with one."""
    if begins_history(head):
        return True
    if set(opening(head).keys) >= _KEYS:
        return _TYPE.search(head) is not None
    start = head.lstrip()[:4096]
    return start.startswith(b"[") and all(f'"{key}"'.encode() in head for key in _KEYS) and bool(_TYPE.search(start))


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each thread of each file; an event that is not as expected refuses its file.

    Problem kinds: "unreadable", those of `graphs.readers.common.json_problems`, "bad-value", "unknown-task",
    "unknown-tool-call", "forked-thread", "step-back", "ambiguous-id", "empty-trace". One thread refused: "too-many"
    edges.
    """
    names = short_names(sources)
    for source in sources:
        try:
            yield from _read(source, names[source.name])
        except TraceError as error:
            yield error.problem
        source.release()


def _read(source: Source, name: str) -> Iterator[TraceRecord | Problem]:
    content(source)
    history = begins_history(source.head(_HEAD))
    allowance = Allowance(source.limits)
    runs = runs_of(documents(source), name, allowance) if history else _streamed(source, name, allowance)
    if len({str(own) for own in runs}) < len(runs):
        value, expected = excerpt(list(runs)), "ids of threads that differ in more than their types"
        raise TraceError(Problem("ambiguous-id", source.name, 1, "thread_id", value, expected, name))
    if len(runs) > 1:
        for own, run in runs.items():
            run.record.trace_id = run.record.group_id = f"{name}/{own}"
    if not runs:
        expected = "at least one task"
        raise TraceError(Problem("empty-trace", source.name, 1, "content", "no task", expected, name))
    for run in runs.values():
        try:
            yield run.finish()
        except TraceError as error:
            yield error.problem


def _streamed(source: Source, name: str, allowance: Allowance) -> dict[str | int, Run]:
    """The runs of a file's debug events by thread."""
    runs: dict[str | int, Run] = {}
    thread_of: dict[str, str | int] = {}
    thread: str | int = ""
    latest = 0  # step of the graph itself, while no thread is named
    for document in _items(source):
        if isinstance(document, Problem):
            raise TraceError(document)
        raw, place = document
        where: dict[str, Any] = {"file": place.file, "line": place.line, "trace": name}
        namespace: list[str] = []
        if raw.startswith(b"["):
            namespace, event_raw = decode_record(_PAIR, raw, **where)
            event = decode(_EVENT, event_raw, **where)
        else:
            event = decode_record(_EVENT, raw, **where)
        if event.type == "checkpoint":
            checkpoint = decode(_CHECKPOINT, event.payload, at="payload", **where)
            thread = thread if checkpoint.thread == "" else checkpoint.thread
            thread_of |= {task.id: thread for task in checkpoint.tasks if task.id}
        elif event.type in ("task", "task_result"):
            task = decode(_TASK, event.payload, at="payload", **where)
            own = thread_of.get(task.id, thread)
            if own == "" and event.type == "task" and not namespace:
                if event.step < latest:
                    expected = f"{latest} or more: runs of one file are told apart by the thread_id of a checkpoint"
                    value = excerpt(event.step)
                    raise TraceError(Problem("step-back", place.file, place.line, "step", value, expected, name))
                latest = event.step
            run = runs.get(own)
            if run is None:
                record = TraceRecord(name, name, place.file, place.line, max(place.offset, 0), format="langgraph")
                run = runs[own] = Run(record, allowance)
            run.grow(len(raw))
            time = seconds(event.timestamp)
            step = run.begin if event.type == "task" else run.end
            step(Step(event.step, tuple(part.partition(":")[::2] for part in namespace), time, place), task)
        else:
            expected = "checkpoint, task or task_result"
            raise TraceError(Problem("bad-value", place.file, place.line, "type", excerpt(event.type), expected, name))
    return runs


def _items(source: Source) -> Iterator[Document | Problem]:
    """The items of a file: lines that are pairs, or what `documents` finds."""
    first = next(source.lines(), None)
    try:
        if first is not None:
            _PAIR.decode(first[2])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        first = None
    if first is None:
        yield from documents(source)
        return
    for number, offset, text in source.lines():
        yield Document(text, Place(source.name, number, offset))
