"""Rows of NeMo-RL: a batch of one sample, with its tokens and a mask of those that the policy generated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EdgeType, EventType
from graphs.formats.rollouts.rows import AGENT, prompt_group, run_of
from graphs.reading.addresses import real_folder
from graphs.reading.decode import decode_record
from graphs.reading.documents import Document
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, Agent, TraceRecord

__all__ = ["NEMO_RL", "NemoRow", "read_nemo_rl"]

NEMO_RL = frozenset({"content", "rewards", "generation_logprobs"})
_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]


class NemoRow(msgspec.Struct):
    """A sample. `content` has the texts of its messages; versions of 2025 wrote no tokens."""

    content: msgspec.Raw
    rewards: _Float | list[_Float]
    generation_logprobs: list[list[_Float]]
    input_lengths: list[_Count] | None = None
    token_ids: list[list[_Count]] | None = None
    token_loss_mask: list[list[_Float]] | None = None


_ROW = msgspec.json.Decoder(NemoRow)


def read_nemo_rl(document: Document, file: str) -> Iterator[TraceRecord]:
    """The record of a row: each run of generated tokens is a model call, an action; the tokens before are the prompt.

    The group is the prompt in its file, which is a step, as in NeMo-RL's own baseline. A row without tokens is a call,
    and a group of its own.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode_record`; "bad-value", several samples in a row, or lists of
        tokens that differ in length.
    """
    raw, place = document
    trace = f"{file}/{place.number}"
    row = decode_record(_ROW, raw, file=place.file, line=place.line, trace=trace)
    record = TraceRecord(trace, trace, place.file, place.line, place.offset, format="rollouts", system="nemo-rl")
    record.run = run_of(raw, real_folder(place.file), place.number)
    record.instances[AGENT] = Agent(name=AGENT, role=AGENT)

    def refuse(field: str, found: object, expected: str) -> TraceError:
        return TraceError(Problem("bad-value", place.file, place.line, field, excerpt(found), expected, trace))

    rewards = row.rewards if isinstance(row.rewards, list) else [row.rewards]
    if len(rewards) > 1:
        raise refuse("rewards", rewards, "a list of one number, the reward of this sample")
    if rewards:
        record.rewards["team"] = rewards[0]
    if not row.token_ids or not row.token_loss_mask:
        record.event("0", EventType.MESSAGE, AGENT, action=True, line=place.line, offset=place.offset)
        yield record
        return
    ids, mask, log_probs = row.token_ids[0], row.token_loss_mask[0], (row.generation_logprobs or [[]])[0]
    if not len(ids) == len(mask) == len(log_probs):
        found = f"{len(ids)}, {len(mask)} and {len(log_probs)} tokens"
        raise refuse("token_ids", found, "as many tokens as in token_loss_mask and generation_logprobs")
    end = 0
    for is_generated, run in itertools.groupby(mask[: row.input_lengths[0] if row.input_lengths else None]):
        start, end = end, end + len(list(run))
        if is_generated:
            position = record.event(
                str(len(record.ids)), EventType.MESSAGE, AGENT, action=True, line=place.line, offset=place.offset,
                tokens=end - start, input_tokens=start, token_ids=ids[start:end],
                token_log_probs=log_probs[start:end], log_prob=math.fsum(log_probs[start:end]),
            )  # fmt: skip
            if position:
                record.edge(position - 1, position, EdgeType.TEMPORAL)
            elif start:
                record.group_id = f"{file}/{prompt_group(repr(ids[:start]).encode(), None)}"
    if not record.ids:
        record.lack_events("token_loss_mask", "only 0", "a token that the policy generated")
    yield record
