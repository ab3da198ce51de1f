"""Ids in cells of tables, as text."""

from __future__ import annotations

from typing import Any

__all__ = ["id_text"]

_EXACT = 2**53  # up to which a float holds every integer


def id_text(value: Any) -> str:
    """The text of an id: of a whole float, that of its integer.

    A column of integers is written as floats where one of them is missing. A text keeps its characters.

    Examples:
      >>> id_text(7.0), id_text(7), id_text("7.0"), id_text(7.5)
      ('7', '7', '7.0', '7.5')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return str(int(value))
    return value if isinstance(value, str) else str(value)
