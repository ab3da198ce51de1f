"""The blocks of docs/trainers.md and other pages, so that what a user copies is what the tests run."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["block"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "trainers.md"


def block(language: str, holds: str, page: str = PAGE.name) -> str:
    """The one block of a language on a page that holds some text."""
    bodies = re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    (found,) = [body for body in bodies if holds in body]
    return str(found)
