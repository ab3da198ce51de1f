"""TRL's completions: a Parquet file a step, with a row for each completion and a column for each reward function."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat, Message, add_messages, chat_of_text
from graphs.formats.rollouts.rows import prompt_group
from graphs.reading.documents import Place
from graphs.reading.json_problems import json_problem
from graphs.reading.source import Source
from graphs.reading.tables.rows import number, open_parquet, parquet_rows
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["read_completions"]

_OTHER = frozenset({"step", "prompt", "completion", "advantage", "images"})
_MISSING, _TRUTHS = frozenset({"None", "null", "<NA>"}), frozenset({"True", "False", "true", "false"})


def read_completions(source: Source, name: str) -> Iterator[TraceRecord | Problem]:
    """A record for each row; the line of a row is its number.

    A column of texts may be a user's own, such as a solution. A column of numbers in another type is named: it may hold
    rewards that another program wrote again.
    """
    try:
        file = open_parquet(source)
        others = [field for field in file.schema_arrow if field.name not in _OTHER]
        rewards = [
            field.name for field in others if pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        ]
        retyped = [field.name for field in others if _is_retyped(source, file, field)]
        if retyped:
            expected = "floats or integers, as TRL writes rewards: a reward among these columns is not read"
            yield Problem(
                "retyped-rewards", source.name, 0, "columns", excerpt(", ".join(retyped)), expected, about="reward"
            )
        if len(rewards) > 1:
            expected = (
                "one reward function, or a choice by --reward-channel NAME (in Python reward=NAME): the file does not "
                "hold the functions' weights"
            )
            yield Problem("several-rewards", source.name, 0, "columns", excerpt(", ".join(rewards)), expected)
        groups: dict[tuple[str, int], str] = {}  # rows that share a prompt share the digest of it
        for line, row in parquet_rows(source, file, ["step", "prompt", "completion", *rewards]):
            try:
                record = _record(row, rewards, groups, name, Place(source.name, line, -1))
                if len(rewards) == 1 and record.rewards:
                    record.rewards["team"] = record.rewards[rewards[0]]
                yield record
            except TraceError as error:
                yield error.problem
    except TraceError as error:
        yield error.problem


def _is_retyped(source: Source, file: pq.ParquetFile, field: pa.Field) -> bool:
    """Whether a column holds truth values, decimals, or texts of numbers or truth values. Cells may be missing."""
    if pa.types.is_boolean(field.type) or pa.types.is_decimal(field.type):
        return True
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    some = False
    for _, row in parquet_rows(source, file, [field.name]):
        text = row[field.name]
        if text and text not in _MISSING:
            if number(text) is None and text not in _TRUTHS:
                return False
            some = True
    return some


def _record(
    row: dict[str, Any], rewards: list[str], groups: dict[tuple[str, int], str], name: str, place: Place
) -> TraceRecord:
    trace, step, prompt = f"{name}/{place.line}", row["step"], row["prompt"]
    if not isinstance(step, int) or isinstance(step, bool):
        raise TraceError(Problem("bad-type", place.file, place.line, "step", excerpt(step), "a whole number", trace))
    group = trace  # without a prompt nothing tells the group
    if isinstance(prompt, str) and prompt:
        group = groups.get((prompt, step)) or groups.setdefault((prompt, step), _digest(prompt, step))
    elif prompt:
        group = _digest(prompt, step)
    record = TraceRecord(trace, group, place.file, place.line, 0)
    record.format, record.system = "rollouts", "trl"
    for reward in rewards:
        amount = row[reward]
        if amount is None or math.isnan(amount):  # the function does not apply to this row
            continue
        if math.isinf(amount):
            expected = "a finite number, or NaN where the function does not apply"
            raise TraceError(Problem("non-finite-reward", place.file, place.line, reward, str(amount), expected, trace))
        record.rewards[reward] = float(amount)
    if step >= 0:
        record.evidence["policy_version"] = step
    chat = Chat(record, "policy")
    completion = row["completion"]
    if isinstance(completion, str):
        completion = chat_of_text(completion) or completion
    if isinstance(completion, list):
        parts = enumerate(completion)
        add_messages(chat, [(_message(part, i, place, trace), place) for i, part in parts], "completion")
    else:
        chat.reply("0", place)
    return chat.finish()


def _digest(prompt: Any, step: int) -> str:
    return prompt_group(repr(prompt).encode(), step)


def _message(part: Any, index: int, place: Place, trace: str) -> Message:
    """A chat message of a row."""
    try:
        return msgspec.convert(part, Message)
    except msgspec.ValidationError as error:
        problem = json_problem(error, msgspec.json.encode(part), place.file, place.line)
        field = f"completion[{index}]" + ("" if problem.field == "content" else f".{problem.field}")
        raise TraceError(dataclasses.replace(problem, field=field, trace=trace)) from error
