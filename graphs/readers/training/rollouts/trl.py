"""TRL's completions: a Parquet file a step, with a row for each completion and a column for each reward function."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.errors import Problem, TraceError
from graphs.readers.common.chats.messages import Chat, Message, add_messages
from graphs.readers.common.places import Place
from graphs.readers.common.source import Source
from graphs.readers.training.rollouts.rows import prompt_group
from graphs.text import counted, excerpt
from graphs.traces.record import TraceRecord

__all__ = ["read_completions"]

_OTHER = frozenset({"step", "prompt", "completion", "advantage", "images"})


def read_completions(source: Source, name: str) -> Iterator[TraceRecord | Problem]:
    """A record for each row; the line of a row is its number."""
    if source.path is None:
        yield Problem("unreadable", source.name, 0, "file", "standard input", "a Parquet file by its name")
        return
    try:
        file = pq.ParquetFile(source.path)
        size = sum(file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups))
        if size > source.limits.file_bytes:
            expected = f"at most {counted(source.limits.file_bytes, 'byte')}"
            yield Problem("too-large", source.name, 0, "file", counted(size, "byte") + " unpacked", expected)
            return
        rewards = [
            field.name
            for field in file.schema_arrow
            if field.name not in _OTHER and (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
        ]
        if len(rewards) > 1:
            expected = "one reward function, or --reward NAME: the file does not hold the functions' weights"
            yield Problem("several-rewards", source.name, 0, "columns", excerpt(", ".join(rewards)), expected)
        number = 0
        for batch in file.iter_batches(batch_size=1024):
            for row in batch.to_pylist():
                number += 1
                try:
                    yield _record(row, rewards, name, Place(source.name, number, -1))
                except TraceError as error:
                    yield error.problem
    except (pa.ArrowException, OSError, ValueError) as error:
        yield Problem("bad-row", source.name, 0, "content", excerpt(str(error)), "Parquet as TRL writes it")


def _record(row: dict[str, Any], rewards: list[str], name: str, place: Place) -> TraceRecord:
    trace, step = f"{name}/{place.line}", row.get("step")
    if not isinstance(step, int):
        raise TraceError(Problem("bad-type", place.file, place.line, "step", excerpt(step), "a whole number", trace))
    record = TraceRecord(trace, prompt_group(repr(row["prompt"]).encode(), step), place.file, place.line, 0)
    record.format, record.system = "rollouts", "trl"
    amounts = {reward: row[reward] for reward in rewards if row[reward] is not None and math.isfinite(row[reward])}
    record.rewards = {reward: float(amount) for reward, amount in amounts.items()}
    if len(rewards) == 1 and amounts:
        record.rewards["team"] = float(next(iter(amounts.values())))
    if step >= 0:
        record.evidence["policy_version"] = step
    chat = Chat(record, "policy")
    if isinstance(row["completion"], list):
        add_messages(chat, [(_message(part, place, trace), place) for part in row["completion"]], "completion")
    else:
        chat.reply("0", place)
    return chat.finish()


def _message(part: Any, place: Place, trace: str) -> Message:
    """A chat message out of a row."""
    try:
        return msgspec.convert(part, Message)
    except msgspec.ValidationError as error:
        value_text, expected = excerpt(str(error)), "chat messages"
        raise TraceError(
            Problem("bad-type", place.file, place.line, "completion", value_text, expected, trace)
        ) from error
