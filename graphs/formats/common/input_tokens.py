"""What the tokens were that a model call read."""

from __future__ import annotations

from typing import Annotated

import msgspec

from graphs.traces.record import LARGEST_COUNT

__all__ = ["InputDetails", "known_sum"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]


class InputDetails(msgspec.Struct):
    """Parts of the tokens that a call read, as OpenAI and as LangChain write those from a cache."""

    cached_tokens: _Count | None = None
    cache_read: _Count | None = None

    @property
    def cached(self) -> int | None:
        """Tokens from a cache."""
        return self.cache_read if self.cached_tokens is None else self.cached_tokens


def known_sum(*counts: int | None) -> int | None:
    """The sum of the counts that are stated; None without any."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
