"""Lines that cannot be read, and the rollouts that they name: those may lack a call or their last reward."""

from __future__ import annotations

import re

import msgspec

from graphs.errors import Problem
from graphs.readers.common.json_problems import JSON_ERRORS
from graphs.readers.common.places import Lost, lost_row

__all__ = ["LostLines"]

_NAMED = re.compile(rb'"rollout_id"\s*+:\s*+"((?:[^"\\]|\\.)*+)("?)', re.DOTALL)
_TEXT = msgspec.json.Decoder(str)


class LostLines:
    """The rollouts that unreadable lines name; of an id that is cut off, all that begin with what is left of it."""

    def __init__(self) -> None:
        self._named: dict[str, Problem] = {}
        self._begins: dict[str, Problem] = {}
        self._longest = 0  # characters of a beginning

    def add(self, lost: Lost) -> None:
        """Note a line, or the content of a file, that cannot be read."""
        for match in _NAMED.finditer(lost.text):
            name = _plain(match[1])
            if name:
                (self._named if match[2] else self._begins).setdefault(name, lost.problem)
                self._longest = max(self._longest, 0 if match[2] else len(name))

    def of(self, rollout: str) -> Problem | None:
        """The problem of a rollout that one of the lines names or may name."""
        beginnings = (rollout[:end] for end in range(min(len(rollout), self._longest), 0, -1))
        cut = next((self._begins[text] for text in beginnings if text in self._begins), None)
        problem = self._named.get(rollout) or cut
        return None if problem is None else lost_row(problem, rollout, "calls, or its last reward")


def _plain(text: bytes) -> str:
    """The text of a JSON string; of one that is cut within an escape, up to there."""
    for end in range(len(text), max(-1, len(text) - len(b"\\ud83d\\ude00")), -1):
        try:
            return _TEXT.decode(b'"' + text[:end] + b'"')
        except JSON_ERRORS:
            continue
    return ""
