"""Words by which a table calls the types of its rows, as a user says what they mean."""

from __future__ import annotations

from collections.abc import Mapping

from graphs.errors import CreditError, expect
from graphs.formats.native.wire import EVENT_CODES
from graphs.text import excerpt, one_of

__all__ = ["TYPES_OPTION", "check_types"]

TYPES_OPTION = "--types WORD=TYPE,... (in Python types={WORD: TYPE}) states what others mean"
"""How a user says what words of types mean."""


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
