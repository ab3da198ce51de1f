"""What the tokens were that a model call read, and which of them came from a cache."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from graphs.traces.record import LARGEST_COUNT

__all__ = ["ChatUsage", "InputDetails", "known_sum", "read_counts"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]


class InputDetails(msgspec.Struct):
    """Parts of the tokens that a call read, as OpenAI and as LangChain write those from, and into, a cache."""

    cached_tokens: _Count | None = None
    cache_read: _Count | None = None
    cache_creation: _Count | None = None

    @property
    def cached(self) -> int | None:
        """Tokens from a cache."""
        return self.cache_read if self.cached_tokens is None else self.cached_tokens


class ChatUsage(msgspec.Struct):
    """The usage of a chat completion, in the words of OpenAI's two interfaces, of Anthropic's and of LiteLLM's."""

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    prompt_tokens_details: InputDetails | None = None
    input_tokens_details: InputDetails | None = None
    cache_read_input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The counts as evidence of the call. In Anthropic's words those of a cache stand beside `input_tokens`."""
        details = self.prompt_tokens_details or self.input_tokens_details
        cached = self.cache_read_input_tokens if details is None or details.cached is None else details.cached
        is_anthropic = self.prompt_tokens is None and details is None
        read = self.input_tokens if self.prompt_tokens is None else self.prompt_tokens
        written = self.cache_creation_input_tokens
        tokens = self.output_tokens if self.completion_tokens is None else self.completion_tokens
        return {"tokens": tokens} | read_counts(read, cached, written, beside=is_anthropic)


def read_counts(
    read: int | None, cached: int | None, written: int | None = None, *, beside: bool = False
) -> dict[str, Any]:
    """The tokens that a call read, and those of them that a cache had and that it got, as evidence.

    Args:
      read: as the log states them.
      cached, written: what came from a cache, and what was put into one.
      beside: whether these two are no part of `read`; they cannot be where more came from the cache.

    Examples:
      >>> read_counts(1000, 900)
      {'input_tokens': 1000, 'cached_tokens': 900}
      >>> read_counts(100, 900)
      {'input_tokens': 1000, 'cached_tokens': 900}
      >>> read_counts(100, 0, 50, beside=True)
      {'input_tokens': 150, 'cached_tokens': 0, 'cache_write_tokens': 50}
    """
    if read is not None and (beside or (cached or 0) > read):
        read = known_sum(read, cached, written)
    return {"input_tokens": read, "cached_tokens": cached} | ({"cache_write_tokens": written} if written else {})


def known_sum(*counts: int | None) -> int | None:
    """The sum of the counts that are stated; None without any."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
