"""Words by which a table calls the types of its rows, as a user says what they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping

from graphs.errors import CreditError, expect
from graphs.formats.native.wire import EVENT_CODES
from graphs.text import excerpt, near_names, one_of

__all__ = ["TYPES_OPTION", "check_types", "likely_pair", "likely_type"]

TYPES_OPTION = "--types WORD=TYPE,... (in Python types={WORD: TYPE}) states what others mean"
"""How a user says what words of types mean."""
_LIKE = {
    "tool_result": re.compile(r"(?:tool|function).*(?:result|output|response|end)"),
    "tool_call": re.compile(r"tool|function"),
    "message": re.compile(r"llm|model|chat|completion|generation|inference|assistant|me+s+age"),
}
"""Words in words of types, in small letters, by the type that they seem to mean; the first goes."""


def likely_pair(word: str) -> str:
    """A word of a table and the type that it seems to mean, as `--types` takes them.

    Examples:
      >>> [likely_pair(word) for word in ("llm_call", "ToolResult", "dispawn", "handoff")]
      ['llm_call=message', 'ToolResult=tool_result', 'dispawn=despawn', 'handoff=TYPE']
    """
    near = near_names(word.strip().lower(), EVENT_CODES, shown=1)
    return f"{word}={likely_type(word) or (near[13:-1] if near.startswith('Did you mean ') else 'TYPE')}"


def likely_type(word: str) -> str:
    """The type that a word of a table is or holds; "" of none.

    Examples:
      >>> [likely_type(word) for word in ("spawn", "LLM call", "handoff")]
      ['spawn', 'message', '']
    """
    small = word.strip().lower()
    return next(
        (ours for ours, pattern in _LIKE.items() if pattern.search(small)), small if small in EVENT_CODES else ""
    )


def check_types(types: Mapping[str, str] | None) -> dict[str, int]:
    """What a user says words of types mean: the number of an `EventType` by the word in small letters.

    Args:
      types: the type that each word means.

    Raises:
      CreditError: no mapping of words to types, or a word that stands twice.

    Examples:
      >>> check_types({"LLM": "message"})
      {'llm': 3}
    """
    expect("types", types or {}, Mapping, "a mapping of words of a table to types of events")
    codes: dict[str, int] = {}
    for text, stated in (types or {}).items():
        word = str(text).strip().lower()
        if stated not in EVENT_CODES:
            raise CreditError(
                f"types has {excerpt(text)}: {excerpt(stated)}; expected {one_of(str(stated), EVENT_CODES)}"
            )
        if not word or word in codes:
            raise CreditError(f"types has the word {excerpt(text)}; expected each word once, whatever its capitals")
        codes[word] = EVENT_CODES[stated]
    return codes
