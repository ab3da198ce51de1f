"""Lines on which a writer was stopped and, started again, went on with the next line: two, or more, in one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

__all__ = ["are_early", "pieces"]

_BEGIN = re.compile(rb'\s*+\{\s*+(?:"([^"\\{]{0,200}+))?')
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]]', re.DOTALL)


def pieces(text: bytes, keys: Sequence[bytes] = ()) -> Iterator[bytes]:
    """A line that cannot be read, parted where another begins: with one of `keys`, or as this one does.

    An object within a value may begin so, too. It stands where a value may, and more follows behind it. One that begins
    with another key than the line is taken for such, whatever follows.
    """
    begin = _BEGIN.match(text)
    start = 0
    if begin is not None:
        behind = text.index(b"{") + 1
        alike = _places(text, behind, [begin[1] or b""])
        places = alike | (_places(text, behind, keys) if keys else set())
        end = len(text.rstrip())  # once: it copies the text, and one line may hold thousands
        while places and (at := _next(text, start, end, places, alike)):
            yield text[start:at]
            start = at
    yield text[start:]


def _places(text: bytes, start: int, keys: Sequence[bytes]) -> set[int]:
    """Where an object may begin whose first key begins so."""
    begin = re.compile(rb'\{\s*+"(?:' + b"|".join(map(re.escape, keys)) + b")")
    return {match.start() for match in begin.finditer(text, start)}


def _next(text: bytes, start: int, end: int, places: set[int], alike: set[int]) -> int:
    """The place where another line begins behind the one that begins at `start`; 0 for none; `end` is the text's."""
    depth = 0
    within: list[tuple[int, int]] = []  # the places where a value may stand, with their depths
    for match in _TOKEN.finditer(text, start):
        at = match.start()
        if match[0][:1] == b'"':
            if match.end() > at + 1 and (inside := _inside(match, places)):
                return inside
        elif match[0] in b"{[":
            if at > start and at in places:
                if not _is_value(text, at):
                    return at
                if at in alike:
                    within.append((at, depth))
            depth += 1
        else:
            depth -= 1
            if within and within[-1][1] >= depth:
                place, _ = within.pop()
                if match.end() == end:
                    return place
    return 0


def _inside(match: re.Match[bytes], places: set[int]) -> int:
    """The place of a line that begins within a text, whose end is the quote of the first key; 0 for none."""
    at = len(match[0][:-1].rstrip()) - 1 + match.start()
    return at if at > match.start() and at in places else 0


def _is_value(text: bytes, at: int) -> bool:
    """Whether a value may stand at a place."""
    while at and text[at - 1 : at].isspace():
        at -= 1
    return text[at - 1 : at] in (b"[", b",", b":")


def are_early(parts: list[bytes], states: Callable[[bytes], bool]) -> bool:
    """Whether a line was cut before it states its trace; the last of several may be an object of the one before."""
    return not all(map(states, parts[:-1] or parts))
