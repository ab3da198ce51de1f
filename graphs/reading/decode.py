"""Typed decoding of one JSON value of an untrusted log, or a `TraceError` with the place and the wrong value."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.encodings import is_utf8
from graphs.reading.json_problems import JSON_ERRORS, json_problem, not_utf8
from graphs.reading.null_and_truth import decoded
from graphs.reading.source import Source, unreadable

__all__ = ["content", "decode", "decode_record", "object_text", "refuse_repeated"]

T = TypeVar("T")
_TEXT = msgspec.json.Decoder(str)


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
    decoder: msgspec.json.Decoder[T],
    data: bytes | msgspec.Raw,
    *,
    file: str,
    line: int,
    field: str = "",
    trace: str = "",
) -> T:
    """The decoded value.

    Args:
      decoder: its type is the expected one.
      data: one JSON value, a record or a part of one that `decode_record` decodes.
      file, line: where it begins, for the problem.
      field: path of the value within its record; the field of the problem begins with it.
      trace: the trace's id, where it is known.

    Raises:
      TraceError: kinds as in `graphs.reading.json_problems.json_problem`.
    """
    try:
        return decoded(decoder, data, field)
    except JSON_ERRORS as error:
        problem = json_problem(error, bytes(data), file, line)
        # Else its field, "content", stands for the whole value.
        placed = " - at `" in str(error) or problem.kind == "missing-field" or problem.field != "content"
    raise TraceError(_within(problem, field, trace, placed))


def decode_record(
    decoder: msgspec.json.Decoder[T],
    data: bytes | msgspec.Raw,
    *,
    file: str,
    line: int,
    field: str = "",
    trace: str = "",
) -> T:
    """As `decode`, for a whole record. Bytes that are no UTF-8 refuse it, even in values that the decoder skips.

    A key that stands twice in an object is not looked for: the decoder takes the last one, as all readers of JSON do.
    No known program writes such objects. Two cut lines that are joined within their texts may make one. A search found
    half of these, and cost up to a third of the time of reading (docs/speed.md has the figures).

    Raises:
      TraceError: also "not-utf-8".
    """
    value = decode(decoder, data, file=file, line=line, field=field, trace=trace)
    text = bytes(data)
    if not is_utf8(text):
        raise TraceError(_within(not_utf8(text, file, line), field, trace, False))
    return value


def object_text(value: bytes | msgspec.Raw) -> bytes:
    r"""The JSON of an object that a log states as an object or as a JSON text of it; any other value as it is.

    Tables and many databases keep objects as texts, so one field has both forms in exports of one run.

    Args:
      value: the JSON of a field, valid by itself.

    Examples:
      >>> object_text(b'"{\\"step\\": 1}"')
      b'{"step": 1}'
    """
    text = bytes(value)
    if not text.startswith(b'"'):
        return text
    inner = _TEXT.decode(text).strip().encode()
    return inner if inner.startswith(b"{") else text


def refuse_repeated(field: str | None, *, file: str, line: int, within: str = "", trace: str = "") -> None:
    """Refuse a field that stands twice, if there is one.

    Raises:
      TraceError: "repeated-key".
    """
    if field is not None:
        problem = Problem("repeated-key", file, line, field, "stated twice", "each key once in an object")
        raise TraceError(_within(problem, within, trace, True))


def _within(problem: Problem, field: str, trace: str, placed: bool) -> Problem:
    """The problem of the value at `field`, as one of its record; `placed` if its field is a path within that value."""
    if field:
        inner = problem.field if placed else ""
        joint = "" if not inner or inner.startswith("[") else "."
        problem = dataclasses.replace(problem, field=field + joint + inner)
    return dataclasses.replace(problem, trace=trace or problem.trace)
