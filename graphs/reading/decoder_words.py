"""What msgspec says of JSON that it refuses, in plain words: types by what they are, faults by what JSON has there."""

from __future__ import annotations

import re

from graphs.event_types import STATED_TOPOLOGIES, EdgeType, EventType
from graphs.text import one_of

__all__ = ["expected_json", "expected_name", "expected_type"]

_WORDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "null": "null",
    "array": "a list", "object": "an object", "datetime": "a time such as 2026-01-31T12:00:00Z",
}  # fmt: skip
_TEXTS = {
    "Invalid RFC3339 encoded datetime": "a time such as 2026-01-31T12:00:00Z (RFC 3339)",
    "Invalid base64 encoded string": "a text in base64",
    "Invalid epoch timestamp": "seconds since 1970",
}
_QUOTED = re.compile(r"(got )?`([^`]*)`")

_NEEDED = {
    "object keys must be strings": "a key in double quotes",
    "trailing comma in object": "no comma before '}'",
    "trailing comma in array": "no comma before ']'",
    "trailing characters": "nothing behind the value",
    "invalid number": "a number as JSON writes it",
    "invalid escape character in string": "an escape that JSON has",
    "invalid character in unicode escape": "four hexadecimal digits behind \\u",
    "invalid character": "another character",
}
_PLACE = re.compile(r" ?\(byte (\d+)\)$")

LONGEST_NAME = 60  # characters of an unknown name that are compared with the known ones


def expected_type(message: str) -> str:
    """What a message about a wrong type expects.

    Examples:
      >>> expected_type("Expected `float | null`, got `str`")
      'a number or null, got a text'
      >>> expected_type("Expected `int` >= 0")
      'a whole number >= 0'
      >>> expected_type("Invalid RFC3339 encoded datetime")
      'a time such as 2026-01-31T12:00:00Z (RFC 3339)'
    """
    return _TEXTS.get(message) or _QUOTED.sub(_in_words, message.removeprefix("Expected "))


def _in_words(quoted: re.Match[str]) -> str:
    actual, types = quoted.groups()
    if actual and types == "float":  # a whole number was expected: any number is a float otherwise
        return "got a decimal number"
    *before, last = [_WORDS.get(name, name) for name in types.split(" | ")]
    return (actual or "") + (f"{', '.join(before)} or {last}" if before else last)


def expected_json(message: str) -> str:
    """What JSON has at the place of a message about malformed JSON.

    Examples:
      >>> expected_json("JSON is malformed: object keys must be strings (byte 1)")
      'JSON with a key in double quotes at byte 1'
      >>> expected_json("JSON is malformed: expected ',' or '}' (byte 7)")
      "JSON with ',' or '}' at byte 7"
    """
    place = _PLACE.search(message)
    fault = _PLACE.sub("", message).removeprefix("JSON is malformed").removeprefix(": ")
    needed = _NEEDED.get(fault, fault.removeprefix("expected "))
    return f"JSON with {needed} at byte {place[1]}" if place else f"JSON with {needed}"


def expected_name(message: str, field: str) -> tuple[str, str]:
    """The kind of the problem of a name that the schema lacks at `field`, and the names that it has.

    Examples:
      >>> kind, expected = expected_name("Invalid enum value 'mesage'", "events[0].type")
      >>> kind, expected.partition(". ")[2]
      ('unknown-event-type', 'Did you mean message?')
    """
    name = message.removeprefix("Invalid enum value ").strip("'")[:LONGEST_NAME]
    if field.startswith("events"):
        return "unknown-event-type", one_of(name, [kind.name.lower() for kind in EventType])
    if field.startswith("edges"):
        return "unknown-edge-type", one_of(name, [kind.name.lower() for kind in EdgeType])
    return "unknown-topology", one_of(name, STATED_TOPOLOGIES)
