"""Rows of `results.jsonl`, which verifiers wrote before episodes: one rollout a row, as a chat."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from graphs.errors import Problem
from graphs.formats.common.chat import Chat, add_messages, decode_messages
from graphs.reading.decode import decode_record
from graphs.reading.documents import Document
from graphs.reading.files import Tasks, canonical
from graphs.traces.record import TraceRecord

__all__ = ["read_result"]


class _Result(msgspec.Struct):
    example_id: int | str
    prompt: msgspec.Raw
    completion: msgspec.Raw
    reward: float | None = None
    metrics: dict[str, float | None] | None = None


_RESULT = msgspec.json.Decoder(_Result)


def read_result(document: Document, file: str, tasks: Tasks) -> Iterator[TraceRecord | Problem]:
    """The record of a row: the messages of its completion, which follow the prompt.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`, "unknown-tool-call", "bad-value", "ambiguous-id".
    """
    raw, place = document
    row = decode_record(_RESULT, raw, file=place.file, line=place.line)
    trace = f"{file}/{row.example_id}/{place.line}"
    task = f"example-{row.example_id}"
    group = tasks.group(task, canonical(row.prompt), f"{file}/{task}")
    record = TraceRecord(trace, group, place.file, place.line, place.offset, format="verifiers")
    tasks.ids.check(record, "example_id", row.example_id)
    record.system = file  # no model is stated, and a file is one run of one model
    if row.reward is not None:
        record.rewards["team"] = row.reward
    record.metrics = {name: value for name, value in (row.metrics or {}).items() if value is not None}
    chat = Chat(record)
    if bytes(row.completion).startswith(b'"'):  # a completion of a base model: one text
        chat.reply("0", place)
    else:
        add_messages(chat, decode_messages(row.completion, place, "completion", trace), "completion")
    yield chat.finish()
