"""Ids in cells of tables, as text."""

from __future__ import annotations

from typing import Any

__all__ = ["WRITTEN_EXACTLY", "id_text", "is_inexact"]

_EXACT = 2**53  # up to which a float holds every integer
WRITTEN_EXACTLY = "an id as a text or an integer: as a float it holds integers below 2**53 only"


def id_text(value: Any) -> str:
    """The text of an id: of a whole float, that of its integer.

    A column of integers is written as floats where one of them is missing. A text keeps its characters.

    Examples:
      >>> id_text(7.0), id_text(7), id_text("7.0"), id_text(7.5)
      ('7', '7', '7.0', '7.5')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return value if isinstance(value, str) else str(value)


def is_inexact(value: Any) -> bool:
    """Whether an id is a float that may have been several integers.

    Examples:
      >>> is_inexact(2.0**53), is_inexact(2**53), is_inexact(7.0)
      (True, False, False)
    """
    return isinstance(value, float) and abs(value) >= _EXACT
