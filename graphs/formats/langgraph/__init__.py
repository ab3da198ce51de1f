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
from graphs.formats.langgraph.checkpoints import Checkpoints, Fault
from graphs.formats.langgraph.hearing import Allowance
from graphs.formats.langgraph.history import begins_history, runs_of
from graphs.formats.langgraph.runs import Run, Step, Task
from graphs.reading.decode import content, decode, decode_record
from graphs.reading.documents import Document, Place, documents
from graphs.reading.files import short_names
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.reading.times import seconds
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
    checkpoint_id: str | None = None


class _Config(msgspec.Struct):
    configurable: _Named | None = None


class _Metadata(msgspec.Struct):
    source: str | None = None


class _Checkpoint(msgspec.Struct):
    config: _Config | None = None
    parent_config: _Config | None = None
    metadata: _Metadata | None = None
    tasks: list[_Named] = []

    @property
    def id(self) -> str | None:
        """Its own id."""
        return _id(self.config)

    @property
    def source(self) -> str | None:
        """What made it: "loop", the steps of the graph; or "input", "update" or "fork", which begin anew."""
        return None if self.metadata is None else self.metadata.source

    @property
    def followed(self) -> str | None:
        """The id of the checkpoint that it follows, if the steps between are of the same run."""
        return _id(self.parent_config) if self.source == "loop" else None

    @property
    def thread(self) -> str | int:
        """The id of the thread; "" without one."""
        named = self.config.configurable if self.config is not None else None
        return "" if named is None or named.thread_id is None else named.thread_id


def _id(config: _Config | None) -> str | None:
    return None if config is None or config.configurable is None else config.configurable.checkpoint_id


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

    Problem kinds: "unreadable", those of `graphs.reading.json_problems`, "bad-value", "unknown-task",
    "unknown-tool-call", "forked-thread", "step-back", "ambiguous-id", "empty-trace". One thread refused: "too-many"
    edges; "missing-parent", "parted-thread", "duplicate-id": checkpoints that are not in the file, or in another, too.
    Named while the thread reads: "unfinished-task".
    """
    names = short_names(sources)
    checkpoints = Checkpoints()
    for source in sources:
        try:
            yield from _read(source, names[source.name], checkpoints)
        except TraceError as error:
            yield error.problem
        source.release()


def _read(source: Source, name: str, checkpoints: Checkpoints) -> Iterator[TraceRecord | Problem]:
    content(source)
    history = begins_history(source.head(_HEAD))
    allowance = Allowance(source.limits)
    if history:
        runs = runs_of(documents(source), name, allowance, checkpoints)
    else:
        runs = _streamed(source, name, allowance, checkpoints)
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
            if run.unfinished is not None:
                yield run.unfinished.problem(run.record.trace_id)
        except TraceError as error:
            yield error.problem


def _streamed(source: Source, name: str, allowance: Allowance, checkpoints: Checkpoints) -> dict[str | int, Run]:
    """The runs of a file's debug events by thread."""
    made: dict[str | int, dict[str, Place]] = {}  # thread -> its checkpoints
    followed: dict[str | int, dict[str, Place]] = {}
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
        outer = tuple(part.partition(":")[::2] for part in namespace)
        if event.type == "checkpoint":
            checkpoint = decode(_CHECKPOINT, event.payload, at="payload", **where)
            thread = thread if checkpoint.thread == "" else checkpoint.thread
            thread_of |= {task.id: thread for task in checkpoint.tasks if task.id}
            for ids, named in ((made, checkpoint.id), (followed, checkpoint.followed)):
                if named is not None:
                    ids.setdefault(thread, {}).setdefault(named, place)
            if thread in runs and checkpoint.source == "loop":
                runs[thread].settle(outer, event.step)
            elif thread in runs and checkpoint.source is not None:
                runs[thread].abandon(outer)
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
                run = runs[own] = _begun(name, place, allowance)
            run.grow(len(raw))
            time = seconds(event.timestamp)
            step = Step(event.step, outer, time, place)
            if event.type == "task":
                run.settle(outer, event.step - 1)
                run.begin(step, task)
            else:
                run.end(step, task)
        else:
            expected = "checkpoint, task or task_result"
            raise TraceError(Problem("bad-value", place.file, place.line, "type", excerpt(event.type), expected, name))
    for own in dict.fromkeys([*runs, *made, *followed]):
        fault = checkpoints.take(made.get(own, {}), followed.get(own, {}))
        if fault is not None and own not in runs:  # its tasks are in another file, or came before its checkpoints
            runs[own] = _begun(name, fault.place, allowance)
        if own in runs:
            runs[own].fault = fault
    if "" in runs and thread != "":
        unnamed = runs[""].record
        expected = "a checkpoint before it that names its thread, as others of the file do"
        place = Place(source.name, unnamed.line, unnamed.offset)
        runs[""].fault = Fault("missing-parent", place, "content", "a task of no thread", expected)
    return runs


def _begun(name: str, place: Place, allowance: Allowance) -> Run:
    """A thread that begins here, without events yet."""
    return Run(TraceRecord(name, name, place.file, place.line, max(place.offset, 0), format="langgraph"), allowance)


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
