"""Trajectories of ART (openpipe-art): a file a step, `trajectories/SPLIT/STEP.parquet`, before JSON lines of groups.

    group_index, group_metadata, reward, metrics, messages: [{role, content, tool_calls, tool_call_id, trainable}], …
    {trajectories: [{reward, metrics, metadata, messages_and_choices: [{role, …} | {finish_reason, message}]}]}

A row of the table, or a trajectory of a group, is a trace. What the model sampled, a `Choice`, is a model call and an
action; a message in its name that it did not sample is none, where the trajectory has any that it did.
`docs/formats/art.md` has the whole mapping.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat, Message, ToolCall, add_messages
from graphs.formats.common.placed import placed_elements
from graphs.formats.rollouts.rows import run_of
from graphs.reading.addresses import real_folder
from graphs.reading.copied_files import without_copied_files
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Place, documents
from graphs.reading.files import short_names, systems
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.reading.tables.rows import is_parquet, open_parquet, parquet_rows
from graphs.traces.record import TraceRecord

__all__ = ["RECORDS", "read", "sniff"]


class _Choice(msgspec.Struct):
    role: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    message: Message | None = None
    finish_reason: Any = None


class _Said(msgspec.Struct):
    """A message of a row."""

    role: str
    tool_calls: str | None = None
    tool_call_id: str | None = None
    trainable: bool | None = None


class _History(msgspec.Struct):
    messages_and_choices: msgspec.Raw


class _Trajectory(msgspec.Struct):
    messages_and_choices: msgspec.Raw
    reward: float
    metrics: dict[str, Any] | None = None
    additional_histories: list[_History] | None = None


class _Group(msgspec.Struct):
    trajectories: list[msgspec.Raw]


RECORDS = (_Group, _Trajectory)
_CHOICE = msgspec.json.Decoder(_Choice)
_GROUP = msgspec.json.Decoder(_Group)
_TRAJECTORY = msgspec.json.Decoder(_Trajectory)
_CALLS = msgspec.json.Decoder(list[ToolCall] | None)
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_Sampled = tuple[Message, bool, Place]
"""A message, whether the model sampled it, and where it stands."""
_TYPES: dict[str, Callable[[pa.DataType], bool]] = {
    "group_index": pa.types.is_integer,
    "reward": pa.types.is_floating,
    "metrics": lambda kind: pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "messages": lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind),
}
"""The columns that are read, and what their types must be."""


def sniff(head: bytes) -> bool:
    """Whether the content begins as a group of trajectories, or as a list of them."""
    found = opening(head)
    return "trajectories" in found.keys and b'"messages_and_choices"' in head


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trajectory.

    Problem kinds: those of `graphs.reading.json_problems`, "unknown-tool-call", "bad-value", "non-finite-reward", and
    of Parquet files "bad-header", "bad-parquet", "too-large".
    """
    sources, copies = without_copied_files(sources)
    yield from copies
    names, system_of = short_names(sources), systems("art", {source.name: _of_model(source.name) for source in sources})
    for source in sources:
        rows = _table if is_parquet(source) else _groups
        for item in rows(source, names[source.name]):
            if isinstance(item, TraceRecord):
                item.system = system_of[source.name]
            yield item
        source.release()


def _of_model(name: str) -> str:
    """The folder of a model, which holds `trajectories/SPLIT`."""
    folder = real_folder(name)
    above = os.path.dirname(folder)
    return os.path.dirname(above) if os.path.basename(above) == "trajectories" else folder


def _table(source: Source, name: str) -> Iterator[TraceRecord | Problem]:
    try:
        file = open_parquet(source)
        for column, fits in _TYPES.items():
            kind = file.schema_arrow.field(column).type
            if not fits(kind):
                expected = "the type that ART writes, which a program changed that wrote the file again"
                raise TraceError(Problem("bad-type", source.name, 0, column, str(kind), expected))
        for line, row in parquet_rows(source, file, list(_TYPES)):
            record = TraceRecord(f"{name}/{line}", f"{name}/group-{row['group_index']}", source.name, line, 0)
            place = Place(source.name, line, -1)
            try:
                said = [_of_row(part, place, f"messages[{i}]", record) for i, part in enumerate(row["messages"] or [])]
                metrics = decode(
                    _OBJECT, (row["metrics"] or "{}").encode(), file=place.file, line=line, field="metrics"
                )
                yield _finished(record, row["reward"], metrics, [("", said)])
            except TraceError as error:
                yield error.problem
    except TraceError as error:
        yield error.problem


def _of_row(part: Any, place: Place, field: str, record: TraceRecord) -> _Sampled:
    """A message of a row, whose tool calls are JSON text, whether the model sampled it, and the place of the row."""
    try:
        said = msgspec.convert(part, _Said)
    except msgspec.ValidationError as error:
        expected = "a message with role, tool_calls as JSON text, tool_call_id and trainable"
        record.refuse("bad-type", field, str(error), expected)
    calls = decode(_CALLS, (said.tool_calls or "null").encode(), file=place.file, line=place.line, field=field)
    return Message(said.role, calls, said.tool_call_id), bool(said.trainable), place


def _groups(source: Source, name: str) -> Iterator[TraceRecord | Problem]:
    for raw, place in documents(source):
        try:
            group = decode_record(_GROUP, raw, file=place.file, line=place.line)
        except TraceError as error:
            yield error.problem
            continue
        for index, trajectory in enumerate(group.trajectories):
            record = TraceRecord(
                f"{name}/{place.number}/{index}", f"{name}/group-{place.number - 1}", *place, format="art"
            )
            record.run = run_of(raw, real_folder(place.file), place.number) + f"/{index}"
            field, trace = f"trajectories[{index}]", record.trace_id
            try:
                one = decode(_TRAJECTORY, trajectory, file=place.file, line=place.line, field=field, trace=trace)
                parts = [("", one.messages_and_choices)]
                parts += [
                    (f"history-{n}/", more.messages_and_choices)
                    for n, more in enumerate(one.additional_histories or [])
                ]
                said = [(prefix, list(_of_choices(record, choices, raw, place))) for prefix, choices in parts]
                yield _finished(record, one.reward, one.metrics or {}, said)
            except TraceError as error:
                yield error.problem


def _of_choices(record: TraceRecord, choices: msgspec.Raw, group: bytes, place: Place) -> Iterator[_Sampled]:
    """The messages of a history, each with whether the model sampled it, and its place."""
    field, trace = "messages_and_choices", record.trace_id
    for index, (element, where) in enumerate(placed_elements(group, choices, place, field=field, trace=trace)):
        name = f"{field}[{index}]"
        choice = decode(_CHOICE, element, file=where.file, line=where.line, field=name, trace=trace)
        said = choice.message or Message(choice.role or "", choice.tool_calls, choice.tool_call_id)
        said.finish_reason = choice.finish_reason
        yield said, choice.message is not None, where


def _finished(
    record: TraceRecord,
    reward: float | None,
    metrics: dict[str, Any],
    histories: list[tuple[str, list[_Sampled]]],
) -> TraceRecord:
    """The record of a trajectory, whose histories are chats of one agent, one after another.

    Raises:
      TraceError: kinds of `graphs.formats.common.chat.add_messages`, "non-finite-reward".
    """
    record.format = "art"
    if reward is not None and not math.isfinite(reward):
        record.refuse("non-finite-reward", "reward", reward, "a finite number")
    if reward is not None:
        record.rewards["team"] = float(reward)
    record.metrics |= {key: float(value) for key, value in metrics.items() if isinstance(value, int | float)}
    chat = Chat(record, "policy")
    is_sampled = any(sampled for _, messages in histories for _, sampled, _ in messages)
    for prefix, messages in histories:
        fixed = {index for index, (_, sampled, _) in enumerate(messages) if is_sampled and not sampled}
        placed = [(message, place) for message, _, place in messages]
        add_messages(chat, placed, "messages_and_choices", prefix=prefix, fixed=fixed)
    return chat.finish()
