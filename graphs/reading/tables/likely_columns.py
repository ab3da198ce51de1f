"""Which column of a table may mean what, by words in its name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

__all__ = ["likely_column", "likely_columns", "snake_case"]

_OF_ROWS = r"(?:step|turn|row|call|action|process|dense|intermediate|shap(?:ed|ing))"
_LIKE = {
    "trace": re.compile(r"(?:^|[^a-z])(?:trace|traj|trajectory|rollout|episode|conversation|session|run)(?![a-z])"),
    "group": re.compile(r"(?:^|[^a-z])(?:task|group|question|problem|prompt|puzzle|query|instance)(?![a-z])"),
    "event_reward": re.compile(
        rf"(?:^|[^a-z]){_OF_ROWS}[^a-z]?(?:level[^a-z])?(?:reward|score|return)(?![a-z])"
        rf"|(?:^|[^a-z])(?:(?:reward|score)[^a-z](?:of[^a-z]|per[^a-z])?{_OF_ROWS}|penalty|bonus)(?![a-z])"
    ),
    "reward": re.compile(r"(?:^|[^a-z])(?:reward|score|return|outcome|success|correct)(?![a-z])"),
    "agent": re.compile(r"(?:^|[^a-z])(?:agent|actor|speaker|worker)(?![a-z])|^name$"),
    "role": re.compile(r"(?:^|[^a-z])role(?![a-z])"),
    "model": re.compile(r"(?:^|[^a-z])(?:model|llm)(?![a-z])"),
    "arguments": re.compile(r"(?:^|[^a-z])(?:arguments?|args|kwargs|params?|parameters|inputs?)(?![a-z])"),
}
"""Words in names of columns, in small letters; underscores and digits end a word."""
_ELSE = {
    "reward": re.compile(
        r"(?:^|[^a-z])(?:pass|passed|accept(?:ed|ance)|solved|resol(?:ved|ution)|verdict|won)(?![a-z])"
    )
}
"""Words that count behind the others."""
_COUNT = re.compile(r"(?:^|_)(?:tokens?|counts?|len|length|chars|ms|secs?|seconds|cost|usd)$")
"""How the name of a number of a row ends, such as `prompt_tokens`, which is no group."""
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def likely_column(ours: str, names: Iterable[str], taken: Collection[str] = ()) -> str:
    """The first column whose name has a word for one of ours, such as "trace" or "reward"; "" where none has.

    Examples:
      >>> likely_column("trace", ["task", "rolloutId", "reward"])
      'rolloutId'
      >>> likely_column("group", ["trace", "truncated"])
      ''
      >>> [likely_column(ours, ["step_reward", "final_score"]) for ours in ("event_reward", "reward")]
      ['step_reward', 'final_score']
    """
    return next(iter(likely_columns(ours, names, taken)), "")


def likely_columns(ours: str, names: Iterable[str], taken: Collection[str] = ()) -> list[str]:
    """All columns whose names have a word for one of ours, the likeliest first.

    Examples:
      >>> likely_columns("reward", ["run", "passed", "score"])
      ['score', 'passed']
    """
    without = {"reward": _LIKE["event_reward"], "group": _COUNT}.get(ours)  # a step's is no outcome
    plain = {name: snake_case(name) for name in names if name not in taken}
    left = {name: words for name, words in plain.items() if without is None or not without.search(words)}
    patterns = [_LIKE[ours], *([_ELSE[ours]] if ours in _ELSE else [])]
    found = (name for pattern in patterns for name, words in left.items() if pattern.search(words))
    return list(dict.fromkeys(found))


def snake_case(name: str) -> str:
    """A name in small letters, with an underscore before each capital inside."""
    return _CAPITAL.sub("_", name).lower()
