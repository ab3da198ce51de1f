"""What a log says of the error that a span ended in."""

from __future__ import annotations

from typing import Any

import msgspec

from graphs.json_errors import JSON_ERRORS

__all__ = ["fault_of", "named_fault"]


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
