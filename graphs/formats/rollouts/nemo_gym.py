"""Rollouts of NeMo Gym: a row holds the items of OpenAI's Responses API."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat
from graphs.formats.common.input_tokens import ChatUsage
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.responses import Item, Responses
from graphs.formats.common.run_digest import run_digest
from graphs.formats.rollouts.rows import mixed_ids, prompt_group, run_of
from graphs.reading.addresses import real_folder
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place
from graphs.reading.files import canonical
from graphs.reading.json_problems import JSON_ERRORS
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, TraceRecord

__all__ = ["FailedRow", "GymRow", "GymRows", "read_failed", "read_gym"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]


class _Incomplete(msgspec.Struct):
    reason: Any = None


class _Response(msgspec.Struct):
    output: msgspec.Raw = msgspec.Raw(b"[]")
    model: str | None = None
    usage: ChatUsage | None = None
    incomplete_details: _Incomplete | None = None


class _Request(msgspec.Struct):
    input: msgspec.Raw = msgspec.Raw(b"null")


class _Agent(msgspec.Struct):
    name: str = ""


class GymRow(msgspec.Struct):
    responses_create_params: _Request
    response: _Response
    reward: _Float | None = None
    reward_components: dict[str, float | None] | None = None
    agent_ref: _Agent | None = None
    task: _Count | None = msgspec.field(default=None, name="_ng_task_index")
    rollout: _Count | None = msgspec.field(default=None, name="_ng_rollout_index")
    failure: str | None = msgspec.field(default=None, name="_ng_failure_class")
    mask_sample: bool | None = None


class FailedRow(msgspec.Struct):
    """A run that came back without a rollout."""

    failure: str = msgspec.field(name="_ng_failure_class")


class _Indices(msgspec.Struct):
    responses_create_params: msgspec.Raw
    response: msgspec.Raw
    task: _Count | None = msgspec.field(default=None, name="_ng_task_index")


_NO_PROMPT = frozenset({b"null", b'""', b"[]"})
_ROW = msgspec.json.Decoder(GymRow)
_FAILED = msgspec.json.Decoder(FailedRow)
_INDICES = msgspec.json.Decoder(_Indices)
_ITEM = msgspec.json.Decoder(Item)
_STATES = msgspec.json.Decoder(list[list[msgspec.Raw]])
_OF_STATES = re.compile(rb"\[\s*\[")


class GymRows:
    """How many rows of a file number their task."""

    def __init__(self) -> None:
        self._without, self._with_task = 0, 0

    def count(self, raw: bytes) -> None:
        """Take a row in."""
        try:
            numbered = _INDICES.decode(raw).task is not None
        except JSON_ERRORS:  # `read_gym` names rows that cannot be read
            return
        self._with_task += numbered
        self._without += not numbered

    def mixed_ids(self, file: str) -> Iterator[Problem]:
        """The problem of a file, once its rows are read, in which some number their task and others do not."""
        expected = "a number in every row, or in none: a row without one is of the group of its prompt"
        yield from mixed_ids(file, "_ng_task_index", self._without, self._with_task, expected)


def read_gym(document: Document, file: str) -> Iterator[TraceRecord | Problem]:
    """The record of a row.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`, "unknown-tool-call", "bad-value".
    """
    raw, place = document
    trace = f"{file}/{place.number}"
    row = decode_record(_ROW, raw, file=place.file, line=place.line, trace=trace)
    prompt = canonical(row.responses_create_params.input)
    group = prompt_group(prompt, None)
    if row.task is not None:
        group = f"task-{row.task}/{group}"
    elif prompt in _NO_PROMPT:
        group = trace  # nothing tells the group
    record = TraceRecord(trace, group, place.file, place.line, place.offset, format="rollouts")
    if row.task is None or row.rollout is None:
        record.run = run_of(raw, real_folder(place.file), place.number)
    else:  # a run that went on may have appended the row again, or a file holds a copy of it, perhaps scored otherwise
        spoken = _INDICES.decode(raw)
        record.run = run_digest(
            row.task, row.rollout, *map(canonical, (spoken.responses_create_params, spoken.response))
        )
    record.model = row.response.model or ""
    record.system = row.agent_ref.name if row.agent_ref is not None else ""
    if row.reward is not None:
        record.rewards["team"] = row.reward
    if row.failure is not None:  # as of a judge that did not answer: no outcome of its own, whatever `reward` says
        record.error = record.invalidated = f"_ng_failure_class is {row.failure}"
    elif row.mask_sample:  # version 0.7: "its reward is not a valid measurement"
        record.error = record.invalidated = "mask_sample is true"
    if row.response.incomplete_details is not None:
        record.ended_by(row.response.incomplete_details.reason)
    components = row.reward_components or {}
    record.rewards |= {name: value for name, value in components.items() if value is not None and name != "team"}
    responses = Responses(Chat(record, record.system or "assistant"))
    for index, (item, where) in enumerate(_items(row, document, trace)):
        responses.add(item, str(index), where, f"response.output[{index}]")
    responses.end()
    responses.chat.finish()
    if len(responses.calls) == 1 and row.response.usage is not None:  # else it is the sum over all calls
        responses.count_last(row.response.usage)
    yield record


def read_failed(document: Document, file: str) -> Problem:
    """What is said of a row without a rollout: its agent or its server failed.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode_record`.
    """
    raw, place = document
    trace = f"{file}/{place.number}"
    row = decode_record(_FAILED, raw, file=place.file, line=place.line, trace=trace)
    return Problem("no-events", place.file, place.line, "_ng_failure_class", row.failure, "a rollout", trace)


def _items(row: GymRow, document: Document, trace: str) -> list[tuple[Item, Place]]:
    """What the model and the environment said: the output, or the last of the states that Aviary's agent writes.

    Each of them holds the one before, so that the last is the whole.

    Raises:
      TraceError: "bad-value", a state does not begin with the one before.
    """
    place = document.place
    where: dict[str, Any] = {"file": place.file, "line": place.line, "field": "response.output", "trace": trace}
    output = row.response.output
    if not _OF_STATES.match(output):
        placed = placed_elements(document.raw, output, place, field="response.output", trace=trace)
        return [(decode(_ITEM, item, **where), at) for item, at in placed]
    states = decode(_STATES, output, **where)
    for before, state in itertools.pairwise(states):
        if [canonical(item) for item in state[: len(before)]] != [canonical(item) for item in before]:
            expected = "states of which each begins with the one before"
            raise TraceError(
                Problem("bad-value", place.file, place.line, "response.output", "changed", expected, trace)
            )
    return [(decode(_ITEM, item, **where), place) for item in states[-1]]
