"""Keys of the native format that are almost known: unknown keys are allowed, so a misspelt one would be no evidence.

And so would one in another place, such as a trace's `policy_version` at an event.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from graphs.errors import Problem
from graphs.formats.native.wire import EVENT_FIELDS, Trace
from graphs.reading.json_problems import JSON_ERRORS
from graphs.text import excerpt
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["LOOKED_AT", "bytes_looked_at", "count_key", "may_be_near", "near_keys", "nearest_key"]

LOOKED_AT = 100
"""Files of a reading that are looked at: a program misspells a key in all traces that have it."""
_BYTES = 1 << 18  # over all files: looking at a trace takes longer than reading it
_LIKE = 0.85  # of letters; `propensities` has 0.82 in common with `propensity`, and is found by its ending

_TIMES = frozenset(("time", "timestamp", "datetime", "createdat", "startedat", "starttime"))
"""What other logs call the time of an event, as `_form` has it."""

_STEPS = frozenset(("step", "global_step", "train_step", "training_step", "iteration"))
"""What trainers call the step of a trace, which is the version of its policy."""

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CACHE, _TOKEN, _USE = "cache", "token", "usage"
_USAGE = frozenset((_CACHE, _TOKEN, _USE))
"""Words of keys in which other logs state counts of tokens, also as objects of several."""
_WRITTEN = frozenset(("creation", "create", "created", "write", "written"))
_OF_CACHE = frozenset((_TOKEN, "input", "prompt", "read", "content", *_WRITTEN))
_READ = frozenset(("input", "prompt", "in", "read"))
_GENERATED = frozenset(("output", "completion", "generated", "candidate", "response", "sampled", "out"))
_BARE = frozenset((_TOKEN, "count", "num", "number", "n", "of", _USE))
_PARTS = frozenset(("audio", "image", "text", "reasoning", "accepted", "rejected"))
_NO_COUNT = _PARTS | {"max", "min", "limit", "budget", "price", "cost", "rate", "miss", "id", "mask", "prob", "total"}
"""Words of keys whose number is no count of a call's tokens, or of some of one kind, or of all kinds together."""

_EVIDENCE, _EVENT = "evidence", "an event"
_HOMES: dict[str, tuple[str, ...]] = {
    _EVENT: tuple(EVENT_EVIDENCE),
    f"the trace's {_EVIDENCE!r}": tuple(TRACE_EVIDENCE),
    "the trace": Trace.__struct_encode_fields__,
}
"""Where keys stand; an event has further ones, such as `id`, which mean something else elsewhere."""

_UNREAD = "the key {!r}: this one is not read"
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MAYBE = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_EVENTS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


def bytes_looked_at(number: int, files: int) -> int:
    """At how much of one of so many files to look: its first trace may lack a key that later ones have."""
    return max(_BYTES // files, 1) if number < LOOKED_AT else 0


def may_be_near(unknown: Iterable[str] | None, data: bytes) -> bool:
    """Whether `near_keys` may find one among unknown keys of a trace; for None, nobody has looked at them."""
    known = (*Trace.__struct_encode_fields__, *EVENT_FIELDS, *TRACE_EVIDENCE)
    near = any(nearest_key(key, known) or _words(key) & _USAGE or key in _STEPS for key in unknown or ())
    return unknown is None or near or b'"evidence"' in data


def near_keys(data: bytes, file: str, line: int, seen: set[tuple[str, str]]) -> Iterator[Problem]:
    """The keys of a trace, its events and its evidence that are not read and almost are, or are in another place.

    A key beside the one that it resembles means something else, and so does one that stands where it is read, too. A
    trace that cannot be decoded has none.

    Args:
      data: the trace.
      file: where it stands.
      line: the same.
      seen: places and keys of the file's earlier traces, which are not named again; those of this one are added.

    Examples:
      >>> log = b'{"trace_id": "a", "rewards": {}, "events": [{"id": "0", "event_rewards": 0.5}]}'
      >>> print(*near_keys(log, "log.jsonl", 1, set()))
      log.jsonl:1: events[0].event_rewards is 0.5; expected the key 'event_reward': this one is not read [near-key]
    """
    try:
        document = _OBJECT.decode(data)
        events = _EVENTS.decode(document.get("events", b"[]"))
        evidence = _MAYBE.decode(document.get(_EVIDENCE, b"null")) or {}
    except JSON_ERRORS:
        return
    stated: dict[str, tuple[str, msgspec.Raw]] = {}
    keys: set[str] = set()
    for number, event in enumerate(events):
        if not keys.issuperset(event):
            stated |= {key: (f"events[{number}].{key}", event[key]) for key in event if key not in keys}
            keys.update(event)
    top = {key: (key, value) for key, value in document.items()}
    whole = {key: (f"{_EVIDENCE}.{key}", value) for key, value in evidence.items()}
    places = ((stated, EVENT_FIELDS), (whole, tuple(TRACE_EVIDENCE)), (top, Trace.__struct_encode_fields__))
    for place, (found, known) in zip(_HOMES, places, strict=True):
        fresh = [key for key in found if (place, key) not in seen]
        seen.update((place, key) for key in fresh)
        for key in fresh:
            if key in known:
                continue
            field, value = found[key]
            left = tuple(name for name in known if (place, name) not in seen)
            near = nearest_key(key, left)
            if not near and place == _EVENT and _words(key) & _USAGE:
                for inner, words, count in _numbers(field, _words(key), msgspec.json.decode(value)):
                    if (meant := _count_of(words)) in left:
                        yield Problem("near-key", file, line, inner, excerpt(count), _UNREAD.format(meant))
            expected = _UNREAD.format(near) if near else ""
            if place == "the trace" and key in _STEPS:
                key = "policy_version"
            for (home, names), (others, _) in zip(_HOMES.items(), places, strict=True):
                if key in names:
                    expected = "" if key in others else f"the key {key!r} of {home}: here it is not read"
            if expected:
                yield Problem("near-key", file, line, field, excerpt(msgspec.json.decode(value)), expected)


@functools.lru_cache(maxsize=1024)  # the files of a log have the same keys
def nearest_key(key: str, known: tuple[str, ...]) -> str:
    """The known key that differs in case, in what joins its words, in number, in order or a few letters; or "".

    An event's reward of any other name, such as `step_reward`, may be its `event_reward`, and a time of its its `t`.
    """
    forms, form = {_form(name): name for name in known}, _form(key)
    near = difflib.get_close_matches(form, forms, n=1, cutoff=_LIKE)
    near += [name for name in forms if sorted(name) == sorted(form)]  # two letters of `vlaue` are a third of it
    if not near and form.endswith("reward"):
        near = [name for name in forms if forms[name] == "event_reward"]
    if not near and form in _TIMES:
        near = [name for name in forms if forms[name] == "t"]
    return forms[near[0]] if near else ""


@functools.lru_cache(maxsize=1024)
def _words(key: str) -> frozenset[str]:
    """The words of a key, without their plural; what is cached is of the cache."""
    words = (word.lower() for word in _WORD.findall(key))
    ones = (word if word.endswith("ss") else word.removesuffix("s") for word in words)
    return frozenset(_CACHE if word == "cached" else word for word in ones)


def _numbers(field: str, words: frozenset[str], value: Any) -> Iterator[tuple[str, frozenset[str], float]]:
    """The numbers of a key's value, each with its field and all words on the way to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _numbers(f"{field}.{key}", words | _words(key), part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield field, words, value


def count_key(key: str) -> str:
    """The known key for the count of tokens that a key states, as "input_tokens" for `prompt_tokens`; "" for none."""
    return _count_of(_words(key))


def _count_of(words: frozenset[str]) -> str:
    """The known key for the count that a key of these words states; "" for none."""
    if words & _NO_COUNT:
        return ""
    if _CACHE in words:
        is_count = words & _OF_CACHE or words == {_CACHE}
        return ("cache_write_tokens" if words & _WRITTEN else "cached_tokens") if is_count else ""
    if not words & {_TOKEN, _USE}:
        return ""
    return "input_tokens" if words & _READ else "tokens" if words & _GENERATED or {_TOKEN} <= words <= _BARE else ""


def _form(key: str) -> str:
    letters = "".join(filter(str.isalnum, key.lower()))
    return letters.removesuffix("ies") + "y" if letters.endswith("ies") else letters.removesuffix("s")
