"""Rows of `results.jsonl`, which verifiers wrote before episodes: one rollout a row, as a chat."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat, add_messages, chat_of_text, decode_messages
from graphs.formats.common.run_digest import run_digest
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document
from graphs.reading.files import Tasks, canonical
from graphs.reading.json_problems import JSON_ERRORS
from graphs.traces.record import TraceRecord

__all__ = ["Result", "read_result"]


class Result(msgspec.Struct):
    """A row. Before October 2025 the id of the example was `id`."""

    prompt: msgspec.Raw
    completion: msgspec.Raw
    example_id: int | str | None = None
    id: int | str | None = None
    reward: float | None = None
    metrics: dict[str, float | None] | None = None
    error: Any = None
    is_truncated: Any = None


_RESULT = msgspec.json.Decoder(Result)
_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def read_result(document: Document, file: str, tasks: Tasks) -> TraceRecord:
    """The record of a row: the messages of its completion, which follow the prompt.

    Args:
      document: the row.
      file: the short name of its file.
      tasks: the tasks of all rows.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode_record`, "unknown-tool-call", "bad-value", "ambiguous-id".
    """
    raw, place = document
    row = decode_record(_RESULT, raw, file=place.file, line=place.line)
    field, example = ("example_id", row.example_id) if row.example_id is not None else ("id", row.id)
    if example is None:
        expected = "the id of the example"
        raise TraceError(Problem("missing-field", place.file, place.line, "example_id", "absent", expected))
    trace = f"{file}/{example}/{place.number}"
    task, prompt = f"example-{example}", canonical(row.prompt)
    group = tasks.group(task, prompt, f"{file}/{task}")
    record = TraceRecord(trace, group, place.file, place.line, place.offset, format="verifiers")
    completion = decode(_ANYTHING, row.completion, file=place.file, line=place.line, field="completion", trace=trace)
    # Rows have no ids, and two rollouts may have one text: the folder, the line and the whole row tell runs apart.
    record.run = run_digest(os.path.dirname(place.file), place.number, canonical(raw).decode())
    tasks.ids.check(record, field, example)
    if row.error:  # a text, or an object with texts
        record.error = str(row.error.get("error") or row.error) if isinstance(row.error, dict) else str(row.error)
    record.system = file  # no model is stated, and a file is one run of one model
    if row.reward is not None:
        record.rewards["team"] = row.reward
    record.metrics = {name: value for name, value in (row.metrics or {}).items() if value is not None}
    record.ended_by("length" if row.is_truncated is True else None)
    chat = Chat(record)
    stored = chat_of_text(completion) if isinstance(completion, str) else None
    if isinstance(completion, str) and stored is None:  # of a base model
        chat.reply("0", place)
    else:
        said = _with_objects(completion) if stored is None else msgspec.json.encode(stored)
        messages = decode_messages(said or row.completion, place, "completion", trace, b"" if said else raw)
        add_messages(chat, messages, "completion")
    return chat.finish()


def _with_objects(completion: Any) -> bytes:
    """The messages with each tool call that is a JSON text as the object in it; b"" where none is one."""
    messages = [message for message in completion if isinstance(message, dict)] if isinstance(completion, list) else []
    lists = [calls for message in messages if isinstance(calls := message.get("tool_calls"), list)]
    texts = [(calls, i) for calls in lists for i, call in enumerate(calls) if isinstance(call, str)]
    for calls, i in texts:
        with contextlib.suppress(*JSON_ERRORS):  # what is no JSON stays a text, and is refused as one
            calls[i] = _ANYTHING.decode(calls[i])
    return msgspec.json.encode(completion) if texts else b""
