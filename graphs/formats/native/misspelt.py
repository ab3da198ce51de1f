"""Keys of the native format that are almost known: unknown keys are allowed, so a misspelt one would be no evidence."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Iterator

import msgspec

from graphs.errors import Problem
from graphs.formats.native.wire import EVENT_FIELDS, Trace
from graphs.reading.json_problems import JSON_ERRORS
from graphs.text import excerpt

__all__ = ["LOOKED_AT", "may_be_near", "near_keys"]

LOOKED_AT = 100
"""Files of a reading whose first trace is looked at: a program misspells a key in all traces that it writes."""
_LIKE = 0.85  # of letters; `propensities` has 0.82 in common with `propensity`, and is found by its ending

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_EVENTS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


def may_be_near(unknown: Iterable[str] | None) -> bool:
    """Whether `near_keys` may find one among unknown keys; for None, those of a trace that nobody has looked at."""
    known = (*Trace.__struct_encode_fields__, *EVENT_FIELDS)
    return unknown is None or any(_nearest(key, known) for key in unknown)


def near_keys(data: bytes, file: str, line: int) -> Iterator[Problem]:
    """The keys of a trace and of its events that are not read and almost are; none of a trace that cannot be decoded.

    A key beside the one that it resembles means something else.

    Examples:
      >>> log = b'{"trace_id": "a", "rewards": {}, "events": [{"id": "0", "event_rewards": 0.5}]}'
      >>> print(*near_keys(log, "log.jsonl", 1))
      log.jsonl:1: events[0].event_rewards is 0.5; expected the key 'event_reward': this one is not read [near-key]
    """
    try:
        document = _OBJECT.decode(data)
        events = _EVENTS.decode(document.get("events", b"[]"))
    except JSON_ERRORS:
        return
    stated: dict[str, tuple[str, msgspec.Raw]] = {}
    keys: set[str] = set()
    for number, event in enumerate(events):
        if not keys.issuperset(event):
            stated |= {key: (f"events[{number}].{key}", event[key]) for key in event if key not in keys}
            keys.update(event)
    top = {key: (key, value) for key, value in document.items()}
    for found, known in ((top, Trace.__struct_encode_fields__), (stated, EVENT_FIELDS)):
        for key, (field, value) in found.items():
            near = "" if key in known else _nearest(key, tuple(name for name in known if name not in found))
            if near:
                expected = f"the key {near!r}: this one is not read"
                yield Problem("near-key", file, line, field, excerpt(msgspec.json.decode(value)), expected)


@functools.lru_cache(maxsize=1024)  # the files of a log have the same keys
def _nearest(key: str, known: tuple[str, ...]) -> str:
    """The known key that differs in case, in what joins its words, in number, or in few letters; "" without one."""
    forms = {_form(name): name for name in known}
    near = difflib.get_close_matches(_form(key), forms, n=1, cutoff=_LIKE)
    return forms[near[0]] if near else ""


def _form(key: str) -> str:
    letters = "".join(filter(str.isalnum, key.lower()))
    return letters.removesuffix("ies") + "y" if letters.endswith("ies") else letters.removesuffix("s")
