"""Tokens of events: ids, masks of generated tokens and their probabilities as ragged arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.floats import shortest

__all__ = ["TOKEN_COLUMNS", "Tokens", "join_tokens"]

TOKEN_COLUMNS = ("token_ids", "token_mask", "token_log_probs", "token_sums_of_squares")
"""Keys of an event with a list of its tokens."""


@dataclasses.dataclass(frozen=True)
class Tokens:
    """The tokens that events added to their contexts, in the order of the events.

    N is the number of tokens of all events. An event without logged tokens has none. The tokens of event e are
    `offsets[e]` up to but not including `offsets[e + 1]`.

    Attributes:
      offsets: int64 [E + 1], over the real events.
      ids: int32 [N], ids of the vocabulary; -1 where the log has no ids.
      mask: bool [N], True for tokens that the policy generated, False for templates, tool results and prompts.
      log_probs: float32 [N], log-probability of each generated token under the policy that acted, in nats; NaN where
        the log has none.
      sums_of_squares: float32 [N], Σ π² over the vocabulary at the place of each generated token, under the policy that
        acted; NaN where an event has none, and None where no event has any.

    Examples:
      >>> import numpy as np
      >>> from graphs.traces.tokens import Tokens
      >>> tokens = Tokens(np.array([0, 2, 3]), np.array([5, 6, 7]), np.array([False, True, True]), np.full(3, np.nan))
      >>> tokens.events.tolist(), tokens.generated.tolist()
      ([0, 0, 1], [1, 1])
    """

    offsets: np.ndarray
    ids: np.ndarray
    mask: np.ndarray
    log_probs: np.ndarray
    sums_of_squares: np.ndarray | None = None

    @property
    def events(self) -> np.ndarray:
        """The event of each token: int32 [N]."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))

    @property
    def generated(self) -> np.ndarray:
        """The number of generated tokens of each event: int64 [E]."""
        return np.bincount(self.events[self.mask], minlength=len(self.offsets) - 1)

    def slice(self, start: int, stop: int) -> Tokens:
        """The tokens of the events from `start` up to but not including `stop`."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        sums = None if self.sums_of_squares is None else self.sums_of_squares[first:last]
        ids, mask, log_probs = (array[first:last] for array in (self.ids, self.mask, self.log_probs))
        return Tokens(self.offsets[start : stop + 1] - first, ids, mask, log_probs, sums)

    def listed(self, start: int, stop: int) -> dict[str, list[list[Any] | None]]:
        """The lists of the events from `start` up to but not including `stop` by key of the native format."""
        part = self.slice(start, stop)
        columns: dict[str, list[list[Any] | None]] = {name: [] for name in TOKEN_COLUMNS}
        for first, last in zip(part.offsets[:-1].tolist(), part.offsets[1:].tolist(), strict=True):
            ids, mask = part.ids[first:last], part.mask[first:last]
            columns["token_ids"].append(ids.tolist() if last > first and ids[0] >= 0 else None)
            columns["token_mask"].append(mask.tolist() if last > first else None)
            for name, array in (
                ("token_log_probs", part.log_probs),
                ("token_sums_of_squares", part.sums_of_squares),
            ):
                chosen = np.empty(0) if array is None else shortest(array[first:last][mask]).astype(np.float64)
                columns[name].append(chosen.tolist() if len(chosen) and not np.isnan(chosen[0]) else None)
        return columns


def join_tokens(parts: Sequence[Tokens | None], lengths: Sequence[int]) -> Tokens | None:
    """The tokens of parts with these numbers of events, one part after another; None if no part has tokens."""
    some = [tokens for tokens in parts if tokens is not None]
    if not some:
        return None
    counts = [
        np.zeros(n, np.int64) if tokens is None else np.diff(tokens.offsets)
        for tokens, n in zip(parts, lengths, strict=True)
    ]
    sums = [tokens.sums_of_squares for tokens in some]
    if any(one is not None for one in sums):
        sums = [
            np.full(len(tokens.ids), np.nan, np.float32) if one is None else one
            for one, tokens in zip(sums, some, strict=True)
        ]
    known = [one for one in sums if one is not None]
    ids, mask, log_probs = (
        np.concatenate([getattr(tokens, name) for tokens in some]) for name in ("ids", "mask", "log_probs")
    )
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return Tokens(offsets, ids, mask, log_probs, np.concatenate(known) if known else None)
