"""Typed decoding of one JSON value of an untrusted log, or a `TraceError` with the place and the wrong value."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import msgspec

from graphs.errors import TraceError
from graphs.readers.common.json_problems import JSON_ERRORS, json_problem
from graphs.readers.common.source import Source, unreadable

__all__ = ["content", "decode"]

T = TypeVar("T")


def content(source: Source) -> bytes:
    """The whole content of a source.

    Raises:
      TraceError: kind "unreadable", it cannot be opened or decompressed.
    """
    try:
        return source.data
    except OSError as error:
        raise TraceError(unreadable(source, error)) from error


def decode(
    decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw, *, file: str, line: int, at: str = "", trace: str = ""
) -> T:
    """The decoded value.

    Args:
      decoder: its type is the expected one.
      data: one JSON value.
      file, line: where it begins, for the problem.
      at: path of the value within its record; the problem's field begins with it.
      trace: the trace's id, where it is known.

    Raises:
      TraceError: kinds as in `graphs.readers.common.json_problems.json_problem`.
    """
    try:
        return decoder.decode(data)
    except JSON_ERRORS as error:
        problem = json_problem(error, bytes(data), file, line)
        placed = " - at `" in str(error) or problem.kind == "missing-field"  # else its field stands for the whole value
    if at:
        inner = problem.field if placed else ""
        joint = "" if not inner or inner.startswith("[") else "."
        problem = dataclasses.replace(problem, field=at + joint + inner)
    raise TraceError(dataclasses.replace(problem, trace=trace or problem.trace))
