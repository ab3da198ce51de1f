"""Why a model's reply ended, wherever the record of its call states it, in the words of each provider."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import msgspec

from graphs.json_errors import JSON_ERRORS

__all__ = ["states_reason", "stop_reason"]

_NAMES = frozenset({"finishreason", "finishreasons", "stopreason", "donereason"})
"""Of OpenAI and Gemini, of OpenTelemetry's convention, of Anthropic and Bedrock, of Ollama; without joints."""
_INCOMPLETE = "incomplete_details"  # of OpenAI's responses, which has a `reason`
_ASIDE = frozenset({"arguments", "args", "input", "parameters"})  # of a tool: there a model writes what it likes
_LIST = 200  # characters of a list of reasons that is a text
_STATED = re.compile(rf"(?i:(?:finish|stop|done)_?reason)|{_INCOMPLETE}")


def states_reason(key: str) -> bool:
    """Whether a key, such as an attribute's, is one under which a reason stands.

    Examples:
      >>> [states_reason(key) for key in ("gen_ai.response.finish_reasons", "stopReason", "stop_sequence")]
      [True, True, False]
    """
    return key.rpartition(".")[2].replace("_", "").lower() in _NAMES


def stop_reason(*records: Any) -> str | None:
    """The first reason that records of a call state, each a value or its JSON; None where they state none.

    Of several replies to one call the last counts.

    Examples:
      >>> stop_reason({"choices": [{"finish_reason": "length"}]}), stop_reason(b'{"stopReason": "max_tokens"}')
      ('length', 'max_tokens')
      >>> stop_reason("stop_reason", None, [{"tool_calls": [{"args": {"stop_reason": "length"}}]}]) is None
      True
    """
    for record in records:
        waiting = [_unpacked(record)]
        while waiting:
            value = waiting.pop()
            if isinstance(value, list):
                waiting += reversed(value)
            elif isinstance(value, dict):
                for key, held in value.items():
                    reason = held.get("reason") if key == _INCOMPLETE and isinstance(held, dict) else None
                    if states_reason(key):
                        many = _unpacked(held)
                        reason = many[-1] if isinstance(many, list) and many else many
                    if isinstance(reason, str) and reason:
                        return reason
                waiting += [held for key, held in reversed(value.items()) if key not in _ASIDE]
    return None


def _unpacked(value: Any) -> Any:
    """A value, that of the JSON which states a reason, or a text as it is."""
    text = bytes(value).decode(errors="replace") if isinstance(value, bytes | msgspec.Raw) else value
    if isinstance(text, str) and (_STATED.search(text) or (text.startswith("[") and len(text) < _LIST)):
        with contextlib.suppress(*JSON_ERRORS):
            return msgspec.json.decode(text)
    return text
