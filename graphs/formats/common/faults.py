"""Whether a span ended in an error, and what a log says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from graphs.json_errors import JSON_ERRORS

__all__ = ["fault_of", "has_failed", "named_fault"]


def has_failed(codes: Iterable[Any], attributes: Mapping[str, Any], raised: Iterable[Mapping[str, Any]] = ()) -> bool:
    """Whether a span of OpenTelemetry ended in an error.

    Its status tells, OK or error. Where it tells neither, `error.type` does, which only failed operations have, or an
    exception that left the span.

    Args:
      codes: of its status, in each place where it may stand: numbers or words.
      attributes: those of the span.
      raised: those of each exception among its events.

    Reference: OpenTelemetry semantic conventions, Recording errors; OpenTelemetry specification, Set Status.

    Examples:
      >>> has_failed([0], {"error.type": "timeout"}), has_failed(["STATUS_CODE_OK"], {"error.type": "timeout"})
      (True, False)
      >>> has_failed([None], {}, [{"exception.escaped": "True"}]), has_failed([None], {}, [{"exception.type": "E"}])
      (True, False)
    """
    stated = [str(code).upper() for code in codes if code]
    if any(code == "2" or code.endswith("ERROR") for code in stated):
        return True
    if any(code == "1" or code.endswith("OK") for code in stated):
        return False
    return bool(attributes.get("error.type")) or any(
        str(about.get("exception.escaped")).lower() == "true" for about in raised
    )


def fault_of(error: bytes | msgspec.Raw) -> str:
    """The words of an error that is a text of JSON, an object with a message, or any other one.

    Examples:
      >>> fault_of(b'"ValueError()"'), fault_of(b'{"message": "Max turns exceeded", "data": {}}'), fault_of(b"null")
      ('ValueError()', 'Max turns exceeded', '')
    """
    try:
        stated = msgspec.json.decode(error)
    except JSON_ERRORS:
        stated = bytes(error).decode(errors="replace")
    if isinstance(stated, dict):
        stated = stated.get("message") or bytes(error).decode(errors="replace")
    return stated if isinstance(stated, str) else "" if stated is None else str(stated)


def named_fault(name: Any, message: Any) -> str:
    """The words of an error with a name, which its message may have, too; either may be missing.

    Examples:
      >>> named_fault("agents.MaxTurnsExceeded", "12 turns"), named_fault("KeyError", "KeyError: 'a'")
      ('agents.MaxTurnsExceeded: 12 turns', "KeyError: 'a'")
    """
    name, message = (text if isinstance(text, str) else "" for text in (name, message))
    return message if name.rpartition(".")[2] in message else ": ".join(filter(None, (name, message)))
