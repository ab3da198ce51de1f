"""The checkpoints of a thread, as `graph.get_state_history(config)` gives them from any checkpointer.

    {values, next, config: {configurable: {thread_id, checkpoint_id}}, metadata: {step}, created_at, parent_config,
     tasks: [{id, name, path, result}]}

A checkpoint names the tasks that run next and, once they have, their results. Its own values are what they were given,
but for those that `Send` started, whose input no checkpoint keeps.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.langgraph.checkpoints import Checkpoints, Fault
from graphs.formats.langgraph.hearing import Allowance
from graphs.formats.langgraph.runs import SENT, Run, Step, Task
from graphs.reading.decode import decode_record
from graphs.reading.documents import Document
from graphs.reading.keys import opening
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["begins_history", "runs_of"]

_KEYS = frozenset({"values", "next", "config", "metadata", "created_at", "parent_config", "tasks"})
_INPUT = "__start__"  # the task that puts the input into the state

_Id = Annotated[str, msgspec.Meta(min_length=1)]


class _Task(msgspec.Struct):
    id: _Id
    name: _Id
    path: list[Any] = []
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Named(msgspec.Struct):
    checkpoint_id: _Id
    thread_id: str | int = ""


class _Config(msgspec.Struct):
    configurable: _Named


class _Metadata(msgspec.Struct):
    step: int
    source: str | None = None


class _Snapshot(msgspec.Struct):
    config: _Config
    metadata: _Metadata
    values: msgspec.Raw = msgspec.Raw()
    tasks: list[_Task] = []
    created_at: datetime.datetime | None = None
    parent_config: _Config | None = None


_SNAPSHOT = msgspec.json.Decoder(_Snapshot)


def begins_history(head: bytes) -> bool:
    """Whether the content begins as a checkpoint, or as a list with one."""
    if head.lstrip().startswith(b"["):
        return all(f'"{key}"'.encode() in head for key in _KEYS)
    return frozenset(opening(head).keys) >= _KEYS


def runs_of(
    items: Iterable[Document | Problem], name: str, allowance: Allowance, checkpoints: Checkpoints
) -> dict[str | int, Run]:
    """The runs of a file's checkpoints by thread; checkpoints of a thread stand in any order.

    `checkpoints` has those of the files before; a thread that lacks some, or shares them with a file, is refused.

    Raises:
      TraceError: a fault of a checkpoint; "forked-thread", two checkpoints that follow the same one.
    """
    threads: dict[str | int, list[tuple[_Snapshot, Document]]] = {}
    for document in items:
        if isinstance(document, Problem):
            raise TraceError(document)
        raw, place = document
        snapshot = decode_record(_SNAPSHOT, raw, file=place.file, line=place.line, trace=name)
        threads.setdefault(snapshot.config.configurable.thread_id, []).append((snapshot, document))
    runs = {thread: _run(snapshots, name, allowance) for thread, snapshots in threads.items()}
    for thread, snapshots in threads.items():
        own = {one.config.configurable.checkpoint_id: document.place for one, document in snapshots}
        parents = [(one.parent_config, document.place) for one, document in snapshots]
        followed = {one.configurable.checkpoint_id: place for one, place in parents if one is not None}
        runs[thread].fault = checkpoints.take(own, followed) or _gap(snapshots)
    return runs


def _gap(snapshots: list[tuple[_Snapshot, Document]]) -> Fault | None:
    """A checkpoint, if any, before which steps were not saved; the checkpoints stand in the order of their ids.

    A step of the graph ("loop") has the number after that of the checkpoint it follows, after an input, an update, a
    fork and in time travel, too; the first of a thread follows an input. A copy ("fork") follows what its original
    followed, two steps before. Where no parent is named, as some checkpointers do, the one before stands for it.
    """
    steps = {one.config.configurable.checkpoint_id: one.metadata.step for one, _ in snapshots}
    before: int | None = None
    for one, document in snapshots:
        step, parent = one.metadata.step, one.parent_config
        followed = before if parent is None else steps.get(parent.configurable.checkpoint_id, step - 1)
        before = step
        if one.metadata.source == "loop" and (followed is None or step > followed + 1):
            after = "an input before it" if followed is None else f"{followed + 1}, one more than what it follows"
            expected = f'{after}: steps between were not saved, as with durability="exit"'
            return Fault("missing-parent", document.place, "metadata.step", excerpt(step), expected)
    return None


def _run(snapshots: list[tuple[_Snapshot, Document]], name: str, allowance: Allowance) -> Run:
    snapshots.sort(key=lambda pair: pair[0].config.configurable.checkpoint_id)  # which begin with their time
    place = min((document.place for _, document in snapshots), key=lambda place: (place.line, place.offset))
    run = Run(TraceRecord(name, name, place.file, place.line, max(place.offset, 0), format="langgraph"), allowance)
    followed: set[str] = set()
    later = itertools.chain((one for one, _ in snapshots[1:]), [None])
    for (snapshot, document), follower in zip(snapshots, later, strict=True):
        run.grow(len(document.raw))
        if snapshot.parent_config is not None:
            parent = snapshot.parent_config.configurable.checkpoint_id
            if parent in followed:
                expected = "a thread without forks: no other checkpoint that follows this one"
                raise TraceError(
                    Problem("forked-thread", document.place.file, document.place.line, "parent_config",
                            excerpt(parent), expected, name)
                )  # fmt: skip
            followed.add(parent)
        for time, finish in ((snapshot.created_at, False), (None if follower is None else follower.created_at, True)):
            step = Step(snapshot.metadata.step + 1, (), seconds(time), document.place)
            for task in _tasks(snapshot):
                if not finish:
                    run.begin(step, task)
                elif bytes(task.result) != b"null":
                    run.end(step, task)
    return run


def _tasks(snapshot: _Snapshot) -> Iterator[Task]:
    for task in snapshot.tasks:
        if task.name != _INPUT:
            sent = SENT in task.path
            yield Task(task.id, task.name, msgspec.Raw() if sent else snapshot.values, task.result, [SENT] * sent)
