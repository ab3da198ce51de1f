"""Rows that hold a rollout as text: one model call, one reward."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EventType
from graphs.readers.common.places import Document
from graphs.readers.common.typed import decode
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, Agent, TraceRecord

__all__ = ["NEMO_RL", "SKYRL", "VERL", "prompt_group", "read_row"]

VERL = frozenset({"input", "output", "score"})
SKYRL = frozenset({"input_prompt", "output_response", "score"})
NEMO_RL = frozenset({"content", "rewards", "generation_logprobs"})

_AGENT = "policy"
_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]


class _Row(msgspec.Struct):
    """The fields of verl, SkyRL and NeMo-RL; a row has those of one of them."""

    input: str | None = None
    output: str | None = None
    input_prompt: str | list[Any] | None = None
    output_response: str | None = None
    content: Any = None
    score: _Float | list[_Float] | None = None
    rewards: _Float | list[_Float] | None = None
    step: _Count | None = None
    uid: str | int | None = None
    response_ids: list[_Count] | None = None
    acc: float | bool | None = None


_ROW = msgspec.json.Decoder(_Row)


def prompt_group(prompt: bytes, step: int | None) -> str:
    """The group of the rows of one prompt at one training step: a digest, for prompts are long."""
    digest = hashlib.blake2b(prompt, digest_size=8).hexdigest()
    return f"prompt-{digest}" if step is None else f"prompt-{digest}@{step}"


def read_row(document: Document, file: str) -> Iterator[TraceRecord | Problem]:
    """The record of a row.

    Raises:
      TraceError: kinds of `graphs.readers.common.typed.decode`; "unknown-item", a row of none of the trainers.
    """
    raw, place = document
    row = decode(_ROW, raw, file=place.file, line=place.line)
    trace = f"{file}/{place.line}"
    if row.input is not None and row.output is not None:
        system, group, reward = "verl", prompt_group(row.input.encode(), row.step), row.score
    elif row.input_prompt is not None and row.output_response is not None:
        prompt = row.input_prompt if isinstance(row.input_prompt, str) else repr(row.input_prompt)
        system, group, reward = "skyrl", prompt_group(prompt.encode(), row.step), row.score
    elif row.content is not None and row.rewards is not None:
        system, group, reward = "nemo-rl", trace, row.rewards  # prompt and answer are one text: nothing tells groups
    else:
        expected = "the fields of verl, SkyRL, NeMo-RL or NeMo Gym: " + "; ".join(
            ", ".join(sorted(fields)) for fields in (VERL, SKYRL, NEMO_RL)
        )
        raise TraceError(Problem("unknown-item", place.file, place.line, "row", excerpt(raw[:60]), expected, trace))
    if row.uid is not None:
        group = str(row.uid) if row.step is None else f"{row.uid}@{row.step}"
    record = TraceRecord(trace, group, place.file, place.line, place.offset, format="rollouts", system=system)
    record.instances[_AGENT] = Agent(name=_AGENT, role=_AGENT)
    record.event(
        "0", EventType.MESSAGE, _AGENT, action=True, line=place.line, offset=place.offset,
        tokens=len(row.response_ids) if row.response_ids is not None else None, token_ids=row.response_ids,
    )  # fmt: skip
    if reward is not None:
        record.rewards["team"] = math.fsum(reward) if isinstance(reward, list) else reward
    if row.acc is not None:
        record.metrics["acc"] = float(row.acc)
    if row.step is not None:
        record.evidence["policy_version"] = row.step
    yield record
