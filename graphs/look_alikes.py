"""Names that a person would take for one, and that are compared as several."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["look_alikes"]

_WHOLE = re.compile(r"\A([-+]?\d+)\.0+\Z")
"""Such as 1.0, as pandas writes a column of integers in which one is missing."""


def look_alikes(names: Iterable[str]) -> list[str]:
    """Names that differ only in case, blanks, Unicode's form or as 1.0 and 1 do, in the order of the first of each.

    Examples:
      >>> look_alikes(["Solver", "critic", "solver ", "solver"])
      ["'Solver', 'solver ', 'solver'"]
      >>> look_alikes(["1", "1.0", "1.5"])
      ["'1', '1.0'"]
    """
    alike: dict[str, dict[str, None]] = {}
    for name in names:
        plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        plain = _WHOLE.sub(r"\1", plain)
        alike.setdefault(plain, {})[name] = None
    return [_shown(list(same)) for same in alike.values() if len(same) > 1]


def _shown(names: list[str]) -> str:
    """Quoted; with escapes where they would look alike on a page, too."""
    is_seen = len({unicodedata.normalize("NFKC", name) for name in names}) == len(names)
    return ", ".join(map(repr if is_seen else ascii, names))
