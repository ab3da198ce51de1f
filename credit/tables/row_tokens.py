"""The sampled tokens of a trainer's rows, which prove that a row or a trace is a copy, though it stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from credit.tables.column_values import ColumnError, as_arrow
from graphs.traces.token_lists import TOKEN_TYPES, gather_tokens
from graphs.traces.tokens import Tokens

__all__ = ["SAMPLED", "tokens_of_rows"]

SAMPLED = ("token_ids", "token_mask", "token_log_probs")
"""Columns with a list for each row."""


def tokens_of_rows(lists: Mapping[str, Any], actions: np.ndarray, order: np.ndarray) -> Tokens | None:
    """The tokens of the events of rows; None without any.

    Args:
      lists: columns of `SAMPLED` by name, a list a row, null where it has none; or arrays, tensors [N, L].
      actions: bool [N], in the order of events.
      order: the row of each event, [N].

    Raises:
      ColumnError: a column is none of lists of numbers, or the lists of a row differ in length.
    """
    columns = {}
    for name, values in lists.items():
        rows = list(np.asarray(values)) if getattr(values, "ndim", 1) == 2 else values
        array = as_arrow(name, rows, len(order))
        try:
            columns[name] = array.cast(TOKEN_TYPES[name]).take(pa.array(order))
        except pa.ArrowException as error:
            problem = f"is of {array.type}; expected a list of numbers for each row, or None"
            raise ColumnError(name, [], problem) from error
    tokens, fits = gather_tokens(columns, actions)
    if not fits.all():
        words = "has lists that do not fit each other; expected lists of one length, or of the generated tokens alone"
        raise ColumnError(next(reversed(columns)), np.sort(order[~fits]), words)
    return tokens
