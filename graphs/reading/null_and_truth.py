"""What typed decoders refuse and every format means alike: null of an optional key, and an outcome that is a truth.

Null says that the key is missing, and so does NaN, which Python writes, of evidence. True and false of a reward or a
score are 1 and 0. This runs where a decoder has refused a record, so that others are read at full speed.
"""

from __future__ import annotations

import re
from typing import Protocol, TypeVar

import msgspec

from graphs.json_errors import JSON_ERRORS
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["as_meant", "decoded", "without_nan"]

_EARNED = ("event_reward", "agent_reward")  # NaN of these is a fault: what was earned is not known
_MAY_BE_NAN = "|".join(
    name for name, key in {**EVENT_EVIDENCE, **TRACE_EVIDENCE}.items() if key.kind == "float" and name not in _EARNED
)
_NAN = re.compile(rf'(?<!\\)"({_MAY_BE_NAN})"\s*:\s*NaN\b'.encode())

T = TypeVar("T", covariant=True)
# Of msgspec's messages: the required field that is missing; what was expected, what came, and at which path.
_REQUIRED = re.compile(r"missing required field `(\w+)`")
_GOT = re.compile(r"(.*), got `(null|bool)`(?: - at `\$(.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(?:\d+|\.\.\.)\]")
_OUTCOME = re.compile(r"reward|score", re.IGNORECASE)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_NUMBERS = {b"true": b"1", b"false": b"0"}


class Decodes(Protocol[T]):
    """A decoder of msgspec, or what acts as one."""

    def decode(self, data: bytes | msgspec.Raw, /) -> T:
        """The value."""


def decoded(decoder: Decodes[T], data: bytes | msgspec.Raw, field: str = "") -> T:
    """The value of a JSON text, null and truths read as every format means them.

    Args:
      decoder: of its type.
      data: one JSON value.
      field: path of the value within its record.

    Raises:
      one of `JSON_ERRORS`: of the decoder, about what is wrong beside these.
    """
    try:
        return decoder.decode(data)
    except JSON_ERRORS as error:
        fault, stated = error, bytes(data)
    while (meant := as_meant(stated, fault, field)) is not None:
        try:
            return decoder.decode(meant)
        except JSON_ERRORS as error:
            missing = _REQUIRED.search(str(error))
            if missing is not None and str(fault).endswith(f".{missing[1]}`"):
                break  # a key that must be there is null
            fault, stated = error, meant
    raise fault


def without_nan(data: bytes) -> tuple[bytes, list[str]]:
    """The JSON with null for each NaN of evidence, and the keys of these.

    Examples:
      >>> without_nan(b'{"value": NaN, "event_reward": NaN, "said": "value: NaN"}')
      (b'{"value":null, "event_reward": NaN, "said": "value: NaN"}', ['value'])
    """
    return _NAN.sub(rb'"\1":null', data), [key.decode() for key in _NAN.findall(data)]


def as_meant(data: bytes, error: Exception, field: str = "") -> bytes | None:
    """The JSON without the null, or with the number, that a decoder refused, wherever the record has the like.

    Args:
      data: what was decoded, a JSON value.
      error: of the decoder.
      field: path of the value within its record.

    Returns:
      None where the error is another one, or leaves the value as it is.

    Examples:
      >>> record = b'{"rewards": [{"score": true, "weight": null}, {"score": 0.5}]}'
      >>> as_meant(record, ValueError("Expected `float`, got `bool` - at `$.rewards[0].score`"))
      b'{"rewards":[{"score":1,"weight":null},{"score": 0.5}]}'
      >>> as_meant(record, ValueError("Expected `float`, got `null` - at `$.rewards[0].weight`"))
      b'{"rewards":[{"score":true},{"score": 0.5}]}'
    """
    found = _GOT.fullmatch(str(error))
    if found is None:
        return None
    wanted, got, path = found[1], found[2], found[3] or ""
    if got == "bool" and not ("float" in wanted and _OUTCOME.search(field + path)):
        return None
    steps = [step[1] or "" for step in _STEP.finditer(path)]
    try:
        meant = _with(data, steps, is_null=got == "null")
    except JSON_ERRORS:
        return None
    return None if meant == data else meant


def _with(value: bytes, steps: list[str], *, is_null: bool) -> bytes:
    """The value without the null, or with the number, at the end of these steps; "" is any element or key."""
    if not steps:
        return value if is_null else _NUMBERS.get(value, value)
    step, *rest = steps
    if value.startswith(b"[") and not step:
        elements = list(map(bytes, _ELEMENTS.decode(value)))
        meant = [_with(element, rest, is_null=is_null) for element in elements]
        return value if meant == elements else b"[" + b",".join(meant) + b"]"
    if not value.startswith(b"{"):
        return value
    members = {name: bytes(inner) for name, inner in _MEMBERS.decode(value).items()}
    kept = {
        name: _with(inner, rest, is_null=is_null) if step in ("", name) else inner
        for name, inner in members.items()
        if rest or not is_null or step not in ("", name) or inner != b"null"
    }
    pairs = (msgspec.json.encode(name) + b":" + inner for name, inner in kept.items())
    return value if kept == members else b"{" + b",".join(pairs) + b"}"
