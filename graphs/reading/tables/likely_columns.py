"""Which column of a table may mean what, by words in its name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

__all__ = ["likely_column", "snake_case"]

_LIKE = {
    "trace": re.compile(r"(?:^|[^a-z])(?:trace|traj|trajectory|rollout|episode|conversation|session|run)(?![a-z])"),
    "group": re.compile(r"(?:^|[^a-z])(?:task|group|question|problem|prompt|puzzle|query|instance)(?![a-z])"),
    "reward": re.compile(r"(?:^|[^a-z])(?:reward|score|return|outcome|success|correct)(?![a-z])"),
    "agent": re.compile(r"(?:^|[^a-z])(?:agent|actor|speaker|worker)(?![a-z])|^name$"),
    "arguments": re.compile(r"(?:^|[^a-z])(?:arguments?|args|kwargs|params?|parameters|inputs?)(?![a-z])"),
}
"""Words in names of columns, in small letters; underscores and digits end a word."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def likely_column(ours: str, names: Iterable[str], taken: Collection[str] = ()) -> str:
    """The first column whose name has a word for one of ours, such as "trace" or "reward"; "" where none has.

    Examples:
      >>> likely_column("trace", ["task", "rolloutId", "reward"])
      'rolloutId'
      >>> likely_column("group", ["trace", "truncated"])
      ''
    """
    return next((n for n in names if n not in taken and _LIKE[ours].search(snake_case(n))), "")


def snake_case(name: str) -> str:
    """A name in small letters, with an underscore before each capital inside."""
    return _CAPITAL.sub("_", name).lower()
