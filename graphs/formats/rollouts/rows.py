"""Rows that hold a rollout as text: one model call, one reward."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EventType
from graphs.reading.addresses import real_folder
from graphs.reading.decode import decode_record
from graphs.reading.documents import Document
from graphs.text import counted, excerpt
from graphs.traces.record import AT_LIMIT, LARGEST_COUNT, LARGEST_FLOAT, Agent, TraceRecord, is_limit

__all__ = [
    "AGENT",
    "ROW",
    "SKYRL",
    "VERL",
    "Row",
    "metrics_of",
    "mixed_ids",
    "output_of",
    "prompt_group",
    "read_row",
    "reward_of",
    "system_of",
    "uid_group",
]  # fmt: skip

VERL = frozenset({"input", "output", "score"})
SKYRL = frozenset({"input_prompt", "output_response", "score"})

AGENT = "policy"
_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]


class Row(msgspec.Struct):
    """The fields of verl and SkyRL; a row has those of one of them."""

    input: str | None = None
    output: str | None = None
    input_prompt: str | list[Any] | None = None
    output_response: str | None = None
    score: _Float | list[_Float] | None = None
    step: _Count | None = None
    uid: str | int | None = None
    response_ids: list[_Count] | None = None
    acc: float | bool | None = None
    stop_reason: Any = None
    responses_create_params: msgspec.Raw | None = None  # of NeMo Gym, whose rows another reader takes


ROW = msgspec.json.Decoder(Row)


def prompt_group(prompt: bytes, step: int | None) -> str:
    """The group of the rows of one prompt at one training step: a digest, for prompts are long."""
    digest = hashlib.blake2b(prompt, digest_size=8).hexdigest()
    return f"prompt-{digest}" if step is None else f"prompt-{digest}@{step}"


def read_row(document: Document, file: str) -> Iterator[TraceRecord | Problem]:
    """The record of a row.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`; "unknown-item", a row of none of the trainers;
        "empty-id", a blank `uid`.
    """
    raw, place = document
    trace = f"{file}/{place.number}"
    row = decode_record(ROW, raw, file=place.file, line=place.line, trace=trace)
    system, prompt = system_of(row)
    if not system:
        expected = "the fields of a trainer, such as verl or SkyRL: " + "; ".join(
            ", ".join(sorted(fields)) for fields in (VERL, SKYRL)
        )
        raise TraceError(Problem("unknown-item", place.file, place.line, "row", excerpt(raw[:60]), expected, trace))
    record = TraceRecord(trace, trace, place.file, place.line, place.offset, format="rollouts", system=system)
    if row.uid is not None:
        record.group_id = uid_group(row.uid, row.step)
        if not record.group_id:
            raise TraceError(Problem("empty-id", place.file, place.line, "uid", excerpt(row.uid), "an id", trace))
    elif prompt:
        record.group_id = prompt_group(prompt.encode(), row.step)
    record.run = run_of(raw, real_folder(place.file), place.number)
    record.instances[AGENT] = Agent(name=AGENT, role=AGENT)
    record.event(
        "0", EventType.MESSAGE, AGENT, action=True, line=place.line, offset=place.offset,
        tokens=len(row.response_ids) if row.response_ids is not None else None, token_ids=row.response_ids,
    )  # fmt: skip
    reward = reward_of(row)
    if reward is not None:
        record.rewards["team"] = reward
    record.metrics = metrics_of(row)
    if row.step is not None:
        record.evidence["policy_version"] = row.step
    yield record


def metrics_of(row: Row) -> dict[str, float]:
    """Whether the answer is right, and whether it was cut off, as far as a row says so."""
    found = {} if row.acc is None else {"acc": float(row.acc)}
    return found | ({AT_LIMIT: 1.0} if is_limit(row.stop_reason) else {})


def run_of(raw: bytes, folder: str, number: int) -> str:
    """What tells a copy of a file from another run: rows have no ids, and two samples of a run may be equal.

    The same row in the same line of another file of the folder is a copy; `folder` is of `real_folder`.
    """
    return f"{folder}\0{number}\0{hashlib.blake2b(raw, digest_size=16).hexdigest()}"


def system_of(row: Row) -> tuple[str, str]:
    """The trainer that wrote a row, "" for none known; and its prompt, "" where no field holds the prompt alone."""
    if row.input is not None and row.output is not None:
        return "verl", row.input
    if row.input_prompt is not None and row.output_response is not None:
        prompt = row.input_prompt
        return "skyrl", prompt if isinstance(prompt, str) else repr(prompt) if prompt else ""
    return "", ""


def reward_of(row: Row) -> float | None:
    """The outcome of a row: the sum of a list of scores, which SkyRL writes by token; None for an empty one."""
    if isinstance(row.score, list):
        return math.fsum(row.score) if row.score else None
    return row.score


# verl 0.9 writes the key of an output: the UUID of its prompt, the number of the rollout, that of the output within it.
_KEY = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_([0-9]{1,9})_([0-9]{1,9})")


def output_of(uid: str | int | None) -> tuple[str, str, int] | None:
    """The prompt, the rollout and the number within it that a `uid` of verl 0.9 names; None for any other."""
    key = _KEY.fullmatch(uid) if isinstance(uid, str) else None
    return (key[1], key[2], int(key[3])) if key else None


def uid_group(uid: str | int, step: int | None) -> str:
    """The group of the rows of one `uid` at one training step; "" for a blank one."""
    output = output_of(uid)
    name = output[0] if output else str(uid)
    if not name.strip():
        return ""
    return name if step is None else f"{name}@{step}"


def mixed_ids(file: str, field: str, without: int, stated: int, expected: str) -> Iterator[Problem]:
    """The problem of a file where some rows lack the field that names their group: a group would become two.

    Args:
      file, field: the file, and the field.
      without, stated: the number of rows without it, and with it.
      expected: what is expected.
    """
    if without and stated:
        yield Problem("mixed-ids", file, 0, field, f"absent in {counted(without, 'row')}, stated in {stated}", expected)
