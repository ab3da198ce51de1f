"""Texts that programs write where a name is missing; as ids they would join all rows without one."""

from __future__ import annotations

import unicodedata

__all__ = ["MISSING_NAMES", "is_missing_name", "no_ids"]

MISSING_NAMES = frozenset({"nan", "none", "null", "<na>"})
"""In lower case; any case counts."""

_PANDAS = ("nan", "<NA>", "NaT")
_DRAWS = frozenset({"context", "node", "sibling_parent"})


def no_ids(key: str) -> tuple[str, ...]:
    """Texts that stand for none among the ids of a key of evidence: all events without one would share it.

    They are those that pandas writes. Another text may be an id, such as a choice "none", unless the key says which
    traces are continued from one draw.

    Examples:
      >>> no_ids("anchor"), "None" in no_ids("context")
      (('nan', '<NA>', 'NaT'), True)
    """
    return (
        (*_PANDAS, "", " ", "NaN", "NAN", "None", "none", "NONE", "null", "Null", "NULL") if key in _DRAWS else _PANDAS
    )


def is_missing_name(text: str) -> bool:
    """Whether a text is what programs write where a name is missing, blanks around it or not.

    `NaT` counts as pandas writes it only, since a name may be Nat. Control characters alone are no name: a buffer that
    was never filled is zeros.

    Examples:
      >>> [is_missing_name(text) for text in ("nan", "<NA>", " None ", "NaT", "\\0", "Nat", "q1", "")]
      [True, True, True, True, True, False, False, False]
    """
    word = text.strip()
    if word.lower() in MISSING_NAMES or word == "NaT":
        return True
    return word != "" and all(unicodedata.category(character) == "Cc" for character in word)
