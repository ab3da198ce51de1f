"""The blocks of docs/trainers.md, so that what a user copies is what the tests run."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["block"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "trainers.md"


def block(language: str, holds: str) -> str:
    """The one block of a language that holds some text."""
    bodies = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (found,) = [body for body in bodies if holds in body]
    return str(found)
