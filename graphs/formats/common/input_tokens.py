"""What the tokens were that a model call read, and which of them came from a cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from graphs.reading.decode import decode
from graphs.traces.cache_conventions import ShownBeside, TakenAsWithin
from graphs.traces.record import LARGEST_COUNT

__all__ = [
    "COUNT_ATTRIBUTES",
    "ChatUsage",
    "InputDetails",
    "call_counts",
    "first_count",
    "known_sum",
    "read_counts",
    "unlike",
    "usage_of",
]

COUNT_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "cached_tokens": (
        "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens", "gen_ai.usage.details.cache_read_input_tokens",
        "gen_ai.usage.details.cached_tokens", "llm.token_count.prompt_details.cache_read",
    ),
    "cache_write_tokens": (
        "gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.cache_write_input_tokens", "gen_ai.usage.details.cache_write_tokens",
        "gen_ai.usage.details.cache_creation_input_tokens", "llm.token_count.prompt_details.cache_write",
    ),
}  # fmt: skip
"""Attributes of a call's span for each count, of any dialect: a span of one may have a count in another's words."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]


class InputDetails(msgspec.Struct):
    """Parts of the tokens that a call read, as OpenAI, LangChain, LiteLLM and OpenRouter write those of a cache."""

    cached_tokens: _Count | None = None
    cache_read: _Count | None = None
    cache_creation: _Count | None = None
    cache_creation_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None


_NO_DETAILS = InputDetails()


class ChatUsage(msgspec.Struct):
    """The usage of a model call, in the words of OpenAI's two interfaces and Codex, of Anthropic, LangChain, LiteLLM.

    A count may stand under several words, and each is read by itself: one that is stated never hides another.
    """

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    prompt_tokens_details: InputDetails | None = None
    input_tokens_details: InputDetails | None = None
    input_token_details: InputDetails | None = None
    cached_input_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None
    cache_read_input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The counts as evidence of the call."""
        return _stated(self).columns


class _Counts(NamedTuple):
    """What one place states: tokens generated, read, read from a cache, written to one, the last two as no part."""

    tokens: int | None
    read: int | None
    cached: int | None
    written: int | None
    beside: bool

    @property
    def columns(self) -> dict[str, Any]:
        return {"tokens": self.tokens} | read_counts(self.read, self.cached, self.written, beside=self.beside or None)


def _stated(usage: ChatUsage) -> _Counts:
    """In Anthropic's words the tokens of a cache stand beside `input_tokens`."""
    details = (usage.prompt_tokens_details, usage.input_tokens_details, usage.input_token_details)
    known = [each for each in details if each is not None and each != _NO_DETAILS]
    cached = [count for each in known for count in (each.cached_tokens, each.cache_read)]
    put = [
        count for each in known for count in (each.cache_creation, each.cache_creation_tokens, each.cache_write_tokens)
    ]
    within = (usage.prompt_tokens, usage.cached_input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return _Counts(
        first_count(usage.completion_tokens, usage.output_tokens),
        first_count(usage.prompt_tokens, usage.input_tokens),
        first_count(*cached, usage.cached_input_tokens, usage.cache_read_tokens, usage.cache_read_input_tokens),
        first_count(*put, usage.cache_write_tokens, usage.cache_creation_input_tokens),
        not known and first_count(*within) is None,
    )


def usage_of(stated: bytes | msgspec.Raw, file: str, line: int, field: str, trace: str) -> ChatUsage | None:
    """The usage that a field of free form holds; None for what is no object, such as the text of a program's own.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`.
    """
    if not bytes(stated).startswith(b"{"):
        return None
    return decode(_USAGE, stated, file=file, line=line, field=field, trace=trace)


def call_counts(*places: ChatUsage | None) -> tuple[dict[str, Any], str]:
    """The counts of a call as evidence, from all places of a log that may state them: each from the first that does.

    And the counts of which two places state different numbers, in words; "" where none do.

    Examples:
      >>> call_counts(ChatUsage(prompt_tokens=9), ChatUsage(input_tokens=8, cached_input_tokens=7))
      ({'tokens': None, 'input_tokens': 9, 'cached_tokens': 7}, 'input_tokens 9 and 8')
    """
    stated = [_stated(place) for place in places if place is not None] or [_NOTHING]
    if len(stated) == 1:
        return stated[0].columns, ""
    tokens, read, cached, written = (first_count(*(each[field] for each in stated)) for field in range(4))
    of_cache = [each for each in stated if each.cached is not None or each.written]
    inputs = [(each.read, each.columns["input_tokens"]) for each in stated if each.read is not None]
    beside = all(each.beside for each in of_cache) and next((each.beside for each in stated if each.read == read), True)
    if all(each.read != read for each in of_cache):  # the first states its sum, or none of it
        beside = beside and all(whole != read for own, whole in inputs if own != read)
    columns = _Counts(tokens, read, cached, written, beside).columns
    total = columns["input_tokens"]
    return columns, unlike(
        {
            "tokens": [each.tokens for each in stated],
            "input_tokens": [total, *(whole for own, whole in inputs if own != read and whole != total)],
            "cached_tokens": [each.cached for each in stated],
        }
    )


def unlike(stated: Mapping[str, Iterable[int | None]]) -> str:
    """The counts for which a log states different numbers, in words; "" for none.

    Examples:
      >>> unlike({"tokens": [3, None, 4, 3], "input_tokens": [7]})
      'tokens 3 and 4'
    """
    numbers = {name: dict.fromkeys(one for one in counts if one is not None) for name, counts in stated.items()}
    return ", ".join(f"{name} {' and '.join(map(str, found))}" for name, found in numbers.items() if len(found) > 1)


def first_count(*counts: int | None) -> int | None:
    """The first count that is stated; None without any."""
    return next((count for count in counts if count is not None), None)


_USAGE = msgspec.json.Decoder(ChatUsage)
_NOTHING = _Counts(None, None, None, None, False)


def read_counts(
    read: int | None, cached: int | None, written: int | None = None, *, beside: bool | None = None
) -> dict[str, Any]:
    """The tokens that a call read, and those of them that a cache had and that it got, as evidence.

    Args:
      read: as the log states them.
      cached, written: what came from a cache, and what was put into one.
      beside: whether these two are no part of `read`; they cannot be where they are more. None where the format does
        not say: then all calls of the batch tell together (`graphs.traces.cache_conventions`).

    Examples:
      >>> read_counts(1000, 900)
      {'input_tokens': 1000, 'cached_tokens': 900}
      >>> read_counts(100, 900)
      {'input_tokens': 1000, 'cached_tokens': 900}
      >>> read_counts(100, 0, 50, beside=True)
      {'input_tokens': 150, 'cached_tokens': 0, 'cache_write_tokens': 50}
    """
    of_cache = known_sum(cached, written) or 0
    if read is not None and of_cache:
        is_shown = of_cache > read
        read += of_cache if beside or is_shown else 0
        read = read if beside is not None else ShownBeside(read) if is_shown else TakenAsWithin(read)
    return {"input_tokens": read, "cached_tokens": cached} | ({"cache_write_tokens": written} if written else {})


def known_sum(*counts: int | None) -> int | None:
    """The sum of the counts that are stated; None without any."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
