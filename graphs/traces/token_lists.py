"""Lists of tokens by event, as logs have them, made into ragged arrays and checked for lengths that fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from graphs.traces.part import ABSENT_COUNT
from graphs.traces.schema import ROUNDING
from graphs.traces.tokens import TOKEN_COLUMNS, Tokens

__all__ = ["TOKEN_TYPES", "gather_tokens", "impossible_sums", "with_counts"]

TOKEN_TYPES: dict[str, pa.DataType] = dict(
    zip(TOKEN_COLUMNS, map(pa.list_, (pa.int32(), pa.bool_(), pa.float64(), pa.float64())), strict=True)
)
"""Types of the columns of `TOKEN_COLUMNS`."""
_NUMBERS = TOKEN_COLUMNS[2:]
"""Columns with a number for each token, or for each generated one."""


def gather_tokens(
    columns: Mapping[str, pa.Array | Sequence[Any]], actions: np.ndarray
) -> tuple[Tokens | None, np.ndarray]:
    """Tokens from lists by event, and which events have lists that fit each other.

    The first list that an event has, in the order of `TOKEN_TYPES`, gives its length. A mask must have this
    length. Without a mask, every token of an action is generated, and none of another event. Log-probabilities, and
    sums of squares, are of all tokens, or of the generated ones only; those of other tokens are dropped.

    Args:
      columns: by the names of `TOKEN_TYPES`: Arrow lists or Python lists, [E], null where an event has none.
      actions: bool [E].

    Returns:
      The tokens of the events whose lists fit, None without any, and bool [E], True where the lists fit.
    """
    n = len(actions)
    lists = {name: _arrow(columns.get(name), kind, n) for name, kind in TOKEN_TYPES.items()}
    counts = {name: _counts(column) for name, column in lists.items()}
    stated = {name: np.asarray(column.is_valid()) for name, column in lists.items()}
    length = np.zeros(n, np.int64)
    for name in reversed(TOKEN_COLUMNS):  # the first list in order is written last, so it wins
        length = np.where(stated[name], counts[name], length)
    sound = ~stated["token_mask"] | (counts["token_mask"] == length)
    mask = np.repeat(actions, np.where(sound, length, 0))
    # Tokens of events with a mask of their own; the others keep whether their event is an action.
    has_mask = np.repeat(stated["token_mask"], np.where(sound, length, 0))
    mask[has_mask] = _values(lists["token_mask"], sound)
    ends = np.cumsum(np.where(sound, length, 0))
    totals = np.concatenate([[0], np.cumsum(mask)])
    # Generated tokens of each event, by differences of running sums: a list of numbers may be of these alone.
    generated = totals[ends] - totals[ends - np.where(sound, length, 0)]
    whole = {name: counts[name] == length for name in _NUMBERS}
    fits = np.all([~stated[name] | whole[name] | (counts[name] == generated) for name in _NUMBERS], axis=0)
    if not fits.all():
        kept = np.repeat(fits, np.where(sound, length, 0))
        sound, mask = sound & fits, mask[kept]
    length = np.where(sound, length, 0)
    offsets = np.concatenate([[0], np.cumsum(length)])
    if offsets[-1] == 0:
        return None, sound
    ids = np.full(offsets[-1], -1, np.int32)
    ids[np.repeat(stated["token_ids"], length)] = _values(lists["token_ids"], sound)

    def numbers(name: str) -> np.ndarray:
        values = np.full(offsets[-1], np.nan, np.float32)
        values[np.repeat(stated[name], length) & (np.repeat(whole[name], length) | mask)] = _values(lists[name], sound)
        return np.where(mask, values, np.float32(np.nan))

    sums = numbers("token_sums_of_squares") if (stated["token_sums_of_squares"] & sound).any() else None
    return Tokens(offsets, ids, mask, numbers("token_log_probs"), sums), sound


def with_counts(
    evidence: Mapping[str, np.ndarray | pa.Array], tokens: Tokens | None, actions: np.ndarray
) -> dict[str, np.ndarray | pa.Array]:
    """Evidence in which `tokens` of an action without a count is the number of generated tokens in its lists.

    Args:
      evidence: by name, int32 [E] for `tokens`, `ABSENT_COUNT` where the log has none.
      tokens: of the same events.
      actions: bool [E].

    Examples:
      >>> tokens = Tokens(np.array([0, 3, 3]), np.array([5, 6, 7]), np.array([False, True, True]), np.full(3, np.nan))
      >>> with_counts({}, tokens, np.ones(2, bool))["tokens"].tolist()  # the second action has no lists
      [2, -1]
    """
    if tokens is None:
        return dict(evidence)
    stated = evidence.get("tokens", np.full(len(actions), ABSENT_COUNT, np.int32))
    counted = actions & (np.diff(tokens.offsets) > 0) & (stated == ABSENT_COUNT)
    return {**evidence, "tokens": np.where(counted, tokens.generated, stated).astype(np.int32)}


def impossible_sums(tokens: Tokens | None) -> np.ndarray:
    """The tokens whose Σ π² is below the π² of the token itself, which is one of its terms: int64, in their order.

    Examples:
      >>> sums, log_probs = np.array([0.4, 0.2], np.float32), np.log([0.5, 0.5])
      >>> impossible_sums(Tokens(np.array([0, 2]), np.array([5, 6]), np.ones(2, bool), log_probs, sums)).tolist()
      [1]
    """
    if tokens is None or tokens.sums_of_squares is None:
        return np.zeros(0, np.int64)
    with np.errstate(over="ignore"):  # a log-probability above 0 that no probability has
        return np.flatnonzero(tokens.sums_of_squares < np.exp(2 * tokens.log_probs) - ROUNDING)


def _arrow(column: pa.Array | Sequence[Any] | None, kind: pa.DataType, n: int) -> pa.Array:
    if column is None:
        return pa.nulls(n, kind)
    return column if isinstance(column, pa.Array) else pa.array(column, kind)


def _counts(column: pa.Array) -> np.ndarray:
    counts: np.ndarray = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return counts


def _values(column: pa.Array, sound: np.ndarray) -> np.ndarray:
    """The elements of the lists of sound events, one list after another."""
    values: np.ndarray = column.flatten().to_numpy(zero_copy_only=False)
    return values if sound.all() else values[np.repeat(sound, _counts(column))]
