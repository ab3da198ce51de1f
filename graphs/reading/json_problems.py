"""Faults of JSON as a `Problem`: kind, line, field, offending value, expectation.

The error messages of msgspec give the place of an error. This module parses them and decodes the offending piece again,
untyped, to quote the value. It runs only for refused input.
"""

from __future__ import annotations

import functools
import json
import math
import re
from typing import Any

import msgspec

from graphs.errors import Problem
from graphs.json_errors import JSON_ERRORS
from graphs.reading.decoder_words import expected_json, expected_name, expected_type
from graphs.reading.encodings import is_utf8
from graphs.text import excerpt

__all__ = ["JSON_ERRORS", "brief_kind", "is_one_record", "json_problem", "not_a_number", "untyped"]

_PATH = re.compile(r"^(?P<what>.*?)(?: - at `(?P<path>.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.(?P<name>\w+)|\[(?P<index>\d+)\]|(?P<any>\[\.\.\.\])")
_BYTE = re.compile(r"\(byte (\d+)\)")
_LITERAL = re.compile(rb"-?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_RAW = msgspec.json.Decoder(msgspec.Raw)
_FIRST_KEY = re.compile(rb'\{\s*"(?:[^"\\]|\\.)*"\s*:')
_OPENING = 12  # bytes that the records of a file begin with alike: a brace, a key, a colon
_REQUIRED = re.compile(r"required field `(\w+)`")

_UNKNOWN = object()

LARGEST_QUOTED = 64 << 20
"""Bytes of JSON that are decoded once more, untyped, to quote an offending value: Python's objects take many times as
much."""


def is_one_record(text: bytes) -> bool:
    """Whether a record that cannot be read is one object, or the beginning of one, so that an id in it is its own.

    What is left of two records, joined where the first was cut, is no beginning of JSON, or holds the opening of a
    record again. A record without its beginning and one with zero bytes, which a crash leaves, are no beginning either.
    Such a text may lack its own id, and have that of another record.
    """
    opening = text[:_OPENING]
    if not opening.startswith(b"{") or text.count(opening) > 1:
        return False
    first = _FIRST_KEY.match(text)
    if first is not None and re.search(
        rb":\s*" + re.escape(first[0]), text
    ):  # cut before a value: the next record is it
        return False
    try:
        _RAW.decode(_LITERAL.sub(b"0", text))  # NaN, which Python writes, is a fault of one value
    except JSON_ERRORS as error:
        return str(error) == "Input data was truncated"
    return True


def json_problem(error: Exception, data: bytes, file: str, line: int) -> Problem:
    """The problem that `error`, one of `JSON_ERRORS`, reports about `data`, which begins at `line` of `file`.

    Kinds: "too-deep", "not-utf-8", "bad-json", "non-finite", "missing-field", "empty-id", "out-of-range",
    "unknown-event-type", "unknown-edge-type", "unknown-topology", "bad-type".
    """
    if isinstance(error, RecursionError):
        return Problem("too-deep", file, line, "content", excerpt(data[:60]), "less nesting of lists and objects")
    if isinstance(error, UnicodeDecodeError) or not is_utf8(data):  # whatever a decoder met first
        return not_utf8(data, file, line)
    if isinstance(error, msgspec.ValidationError):
        return _invalid(str(error), data, file, line)
    return _malformed(str(error), data, file, line)


def not_utf8(data: bytes, file: str, line: int) -> Problem:
    """The problem of bytes that are no text, though a decoder may take them within what it skips."""
    return Problem("not-utf-8", file, line, "content", excerpt(data[:60]), "text in UTF-8")


def brief_kind(error: Exception) -> str:
    """The kind of `json_problem` by the message alone, which is fast enough for files with many faults."""
    return "too-deep" if isinstance(error, RecursionError) else _kind_of_message(str(error))


@functools.lru_cache(maxsize=256)
def _kind_of_message(message: str) -> str:
    if message.startswith(("JSON is malformed", "Input data was truncated")):
        return "bad-json"
    match = _PATH.match(message)
    what, path = (match["what"], match["path"] or "") if match else (message, "")
    return "missing-field" if _REQUIRED.search(what) else _classify(what, path.removeprefix("$."))[0]


def not_a_number(value: object) -> bool:
    """Whether `value` is not a finite number; true and false are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    try:
        return not math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return True


def untyped(data: bytes) -> Any:
    """`data` as plain Python values, with NaN and infinities where the text has them; None if it cannot be decoded.

    None also where it is longer than `LARGEST_QUOTED`.
    """
    if len(data) > LARGEST_QUOTED:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):  # a ValueError also for an integer of thousands of digits
        return None


def _malformed(message: str, data: bytes, file: str, line: int) -> Problem:
    byte_match = _BYTE.search(message)
    if byte_match is None:
        end = line + data.rstrip().count(b"\n")
        return Problem("bad-json", file, end, "content", excerpt(data[-40:]), "JSON that does not end in the middle")
    position = int(byte_match.group(1))
    line += data.count(b"\n", 0, position)
    literal = _LITERAL.match(data, max(0, position - 1)) or _LITERAL.match(data, position)
    if literal:
        field = _field_of_non_finite(untyped(data), "") or "content"
        return Problem("non-finite", file, line, field, literal.group().decode(), "a finite number", _trace_id(data))
    shown = excerpt(data[max(0, position - 20) : position + 20])
    return Problem("bad-json", file, line, "content", shown, expected_json(message))


def _invalid(message: str, data: bytes, file: str, line: int) -> Problem:
    match = _PATH.match(message)
    what, path = (match["what"], match["path"] or "$") if match else (message, "$")
    field, value = _locate(untyped(data), path)
    shown = excerpt(data[:60]) if value is _UNKNOWN else excerpt(value)
    trace = _trace_id(data)
    required = _REQUIRED.search(what)
    if required:
        inner = f"{field}.{required.group(1)}" if field else required.group(1)
        return Problem(
            "missing-field", file, line, inner, f"missing in {shown}", f"a field {required.group(1)!r}", trace
        )
    kind, expected = _classify(what, field)
    return Problem(kind, file, line, field or "content", shown, expected, trace)


def _classify(what: str, field: str) -> tuple[str, str]:
    if what.startswith("Invalid enum value"):
        return expected_name(what, field)
    if what == "Number out of range":
        return "non-finite", "a finite number"
    if "length >= 1" in what:
        return "empty-id", "a non-empty string"
    if ">=" in what or "<=" in what:
        return "out-of-range", expected_type(what)
    return "bad-type", expected_type(what)


def _locate(document: Any, path: str) -> tuple[str, Any]:
    """The field that msgspec's `path` names, and the value there; in a mapping of numbers, the first that is none."""
    field, value = "", document
    for step in _STEP.finditer(path.removeprefix("$")):
        key: Any = step["name"] if step["name"] else int(step["index"]) if step["index"] else None
        if key is None and isinstance(value, dict):
            key = next((k for k, v in value.items() if not_a_number(v)), "...")
        field += f"[{key}]" if isinstance(key, int) else f".{key}" if field else str(key)
        try:
            value = value[key]
        except (TypeError, KeyError, IndexError):
            value = _UNKNOWN
    return field, value if document is not None else _UNKNOWN


def _field_of_non_finite(document: Any, field: str) -> str | None:
    """The field of the first NaN or infinity of a document, such as "rewards.team"; None without one.

    Walks without recursion: `json.loads` may give deeper nesting than Python's stack.
    """
    stack: list[tuple[str, Any]] = [(field, document)]
    while stack:
        field, value = stack.pop()
        if isinstance(value, float) and not math.isfinite(value):
            return field
        if isinstance(value, dict):
            stack += [(f"{field}.{key}" if field else str(key), inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(f"{field}[{i}]", value[i]) for i in range(len(value) - 1, -1, -1)]
    return None


def _trace_id(data: bytes) -> str:
    document = untyped(data)
    if not isinstance(document, dict):
        return ""
    trace_id = document.get("id" if "traces" in document else "trace_id")  # an episode of several agents' traces
    return trace_id if isinstance(trace_id, str) else ""
