"""Under which keys of a record, or columns of a table, stands what an event said or did."""

from __future__ import annotations

import functools
import re

__all__ = ["ASKED", "CALLED", "COMMANDS", "FAILED", "GAVE", "SAID", "TOLD", "is_text_key", "last_word", "text_key"]

# Keys whose values are what an event said or did, the most telling first. The last word of a key counts, so that
# `spanInputs`, `gen_ai.tool.call.arguments` and `input.value` are inputs.
SAID = ("text", "content", "output", "outputs", "result", "response", "output_response", "arguments", "command",
        "message", "tool_calls", "function")  # fmt: skip
COMMANDS = ("command", "cmd", "code", "script")
CALLED = ("arguments", "args", *COMMANDS, "action")
ASKED = ("arguments", "args", "input", "inputs", *COMMANDS, "action")
GAVE = ("output", "outputs", "result", "content", "observation", "response")
FAILED = ("error",)
TOLD = ("input", "inputs", "query", "prompt", "thought")
_FAILURE = re.compile(r"exception(\.message)?|(error|status)_?message", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


@functools.lru_cache(4096)  # a log has few keys, many times
def text_key(key: str) -> str:
    """The word of a key that says what it holds; "" where it is about what a model was given."""
    if _FAILURE.fullmatch(key):
        return "error"
    if "." not in key:
        return last_word(key)
    parts = key.removesuffix(".value").split(".")
    if any(part in ("prompt", "input_messages") for part in parts[:-1]):
        return ""
    if parts[-1] == "messages":  # of OpenTelemetry's conventions: gen_ai.input.messages, gen_ai.output.messages
        return "output" if "output" in parts else ""
    return parts[-1].rpartition("_")[2] if parts[-1].endswith("_args") else last_word(parts[-1])


def last_word(name: str) -> str:
    """The last word of a name in camel case; another name as it is."""
    return name if name.islower() or not _WORD.search(name) else _WORD.findall(name)[-1].lower()


def is_text_key(key: str, *, of_errors: bool = True) -> bool:
    """Whether a value under this key is shown of an event; `of_errors`: of one that failed, too."""
    word = text_key(key)
    return any(word in keys for keys in (SAID, CALLED, ASKED, GAVE, TOLD)) or (of_errors and word in FAILED)
