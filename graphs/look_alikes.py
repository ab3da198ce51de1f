"""Names that a person would take for one, and that are compared as several."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["look_alikes"]

_WHOLE = re.compile(r"\A([-+]?\d+)\.0+\Z")
"""Such as 1.0, as pandas writes a column of integers in which one is missing."""
_JOINT = re.compile(r"(?<=[^\W_])[\s_-]+(?=[^\W_])")
"""Between words, which a renamed agent has otherwise: `searcher-0`, `searcher_0`. Before a number it may be a sign."""


def look_alikes(names: Iterable[str]) -> list[str]:
    """Names that differ only in case, outer blanks, what joins their words, Unicode's form or as 1.0 and 1 do.

    Those of one are named together, by the first. Also where they act in one trace, whose log may be joined of two.

    Examples:
      >>> look_alikes(["Solver", "critic", "solver ", "solver"])
      ["'Solver', 'solver ', 'solver'"]
      >>> look_alikes(["1", "1.0", "1.5"])
      ["'1', '1.0'"]
      >>> look_alikes(["searcher-0", "searcher_0", "searcher 1", "searcher0", "1", "-1"])
      ["'searcher-0', 'searcher_0'"]
    """
    alike: dict[str, dict[str, None]] = {}
    for name in names:
        plain = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        plain = _JOINT.sub("_", plain)
        plain = _WHOLE.sub(r"\1", plain)
        alike.setdefault(plain, {})[name] = None
    return [_shown(list(same)) for same in alike.values() if len(same) > 1]


def _shown(names: list[str]) -> str:
    """Quoted; with escapes where they would look alike on a page, too."""
    is_seen = len({unicodedata.normalize("NFKC", name) for name in names}) == len(names)
    return ", ".join(map(repr if is_seen else ascii, names))
