"""Names that a person would take for one, and that are compared as several."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

__all__ = ["look_alikes"]


def look_alikes(names: Iterable[str]) -> list[str]:
    """Names that differ only in case, in blanks or in Unicode's form, in the order of the first of each, in words.

    Examples:
      >>> look_alikes(["Solver", "critic", "solver ", "solver"])
      ["'Solver', 'solver ', 'solver'"]
    """
    alike: dict[str, dict[str, None]] = {}
    for name in names:
        plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        alike.setdefault(plain, {})[name] = None
    return [_shown(list(same)) for same in alike.values() if len(same) > 1]


def _shown(names: list[str]) -> str:
    """Quoted; with escapes where they would look alike on a page, too."""
    is_seen = len({unicodedata.normalize("NFKC", name) for name in names}) == len(names)
    return ", ".join(map(repr if is_seen else ascii, names))
