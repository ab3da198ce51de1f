"""Rollout summaries of tinker-cookbook: a row states the steps of a trajectory by their lengths and rewards."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.event_types import EdgeType, EventType
from graphs.formats.common.run_digest import run_digest
from graphs.formats.rollouts.rows import AGENT
from graphs.reading.addresses import real_folder
from graphs.reading.decode import decode_record
from graphs.reading.documents import Document
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, Agent, TraceRecord

__all__ = ["TINKER", "TinkerRow", "read_tinker"]

TINKER = frozenset({"split", "iteration", "group_idx", "traj_idx", "steps"})
_CLOSE = 1e-5  # of the stated total to the sum of its parts, which may be of single precision
_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Float = Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]


class _Step(msgspec.Struct):
    reward: _Float
    ob_len: _Count
    ac_len: _Count


class TinkerRow(msgspec.Struct):
    """A trajectory: its return is the sum of its steps' rewards and of the one that its group gave it at the end."""

    split: str
    iteration: _Count
    group_idx: _Count
    traj_idx: _Count
    steps: list[_Step]
    final_reward: _Float
    total_reward: _Float
    sampling_client_step: _Count | None = None
    trajectory_metrics: dict[str, Any] | None = None


_ROW = msgspec.json.Decoder(TinkerRow)


def read_tinker(document: Document, file: str) -> Iterator[TraceRecord]:
    """The record of a row: each step is a model call, an action, with its reward; the outcome is `final_reward`.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode_record`.
    """
    raw, place = document
    trace = f"{file}/{place.number}"
    row = decode_record(_ROW, raw, file=place.file, line=place.line, trace=trace)
    group = f"{row.split}/{row.iteration}/{row.group_idx}"
    record = TraceRecord(trace, group, *place[:2], place.offset, format="rollouts", system="tinker-cookbook")
    total = math.fsum([*(step.reward for step in row.steps), row.final_reward])
    if not math.isclose(total, row.total_reward, rel_tol=_CLOSE, abs_tol=_CLOSE):
        record.unsettle("", "total_reward", repr(row.total_reward), f"{total}, the sum of its parts")
    record.run = run_digest(real_folder(place.file), row.split, row.iteration, row.group_idx, row.traj_idx)
    record.rewards["team"] = row.final_reward
    numbers = (row.trajectory_metrics or {}).items()
    record.metrics = {name: float(value) for name, value in numbers if isinstance(value, int | float)}
    version = row.iteration if row.sampling_client_step is None else row.sampling_client_step
    record.evidence["policy_version"] = version
    record.instances[AGENT] = Agent(name=AGENT, role=AGENT)
    for number, step in enumerate(row.steps):
        record.event(
            str(number), EventType.MESSAGE, AGENT, action=True, line=place.line, offset=place.offset,
            tokens=step.ac_len, input_tokens=step.ob_len, event_reward=step.reward,
        )  # fmt: skip
        if number:
            record.edge(number - 1, number, EdgeType.TEMPORAL)
    if not record.ids:
        record.lack_events("steps", [], "a step")
    yield record
