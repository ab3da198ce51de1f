"""Which rows of a trainer's batch count."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from credit.integrations.rows.row_columns import as_labels, taken
from credit.tables.column_values import ColumnError, as_arrow, factorise, truths
from graphs.text import excerpt

__all__ = ["check_lengths", "length_of", "rewards_left_out", "rows_named", "used_rows"]


def check_lengths(columns: Mapping[str, Any], n: int) -> None:
    """Refuse columns of another length than N.

    Raises:
      ColumnError: it names the column and its length.
    """
    for name, column in columns.items():
        if (rows := length_of(name, column)) != n:
            raise ColumnError(name, [], f"has {rows} rows; column 'reward' has {n}")


def length_of(name: str, column: Any) -> int:
    """The number of rows of a column.

    Raises:
      ColumnError: it is no column.
    """
    try:
        return len(column)
    except TypeError:
        raise ColumnError(name, [], f"is {excerpt(column)}; expected a column, one entry a row") from None


@contextlib.contextmanager
def rows_named(taken_rows: np.ndarray | None) -> Iterator[None]:
    """Translate row numbers in errors about a selection of rows into those of the batch; None for no selection."""
    try:
        yield
    except ColumnError as error:
        if taken_rows is None:
            raise
        raise ColumnError(error.column, taken_rows[error.rows], error.problem) from None


def used_rows(score: np.ndarray, trace: Any, where: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that count, and rows that ran, with a reward or without: bool [N], bool [N].

    Args:
      score: float64 [N], NaN where a trace has no reward.
      trace: ids [N].
      where: truth values [N], False for rows that only fill the batch; None for none.
      n: N.

    Raises:
      ColumnError: an infinite reward; a trace with a reward in some of its rows only; `where` of something else than
        truth values.
    """
    ran = np.ones(n, bool)
    if where is not None:
        check_lengths({"where": where}, n)
        ran = truths("where", as_labels(where), n) if n else ran
    if (bad := np.isinf(score) & ran).any():
        raise ColumnError("reward", np.flatnonzero(bad), "is infinite; expected a finite number, or NaN for none")
    unscored = np.isnan(score)
    use = ran & ~unscored
    if (unscored & ran).any() and use.any():
        rows = np.flatnonzero(ran)  # rows that only fill the batch may carry any trace id
        of_trace = np.full(n, -1)
        ran_trace = taken("trace", trace, rows)  # names rows of the batch
        with rows_named(rows):
            of_trace[rows] = factorise("trace", ran_trace, len(rows))[0]
        lacking = np.zeros(n, bool)
        lacking[of_trace[unscored & ran]] = True
        partial = use & lacking[of_trace]
        if partial.any():
            row = int(np.argmax(partial))
            both = [row, int(np.argmax(unscored & ran & (of_trace == of_trace[row])))]
            said = "one trace has a reward in some of its rows and NaN in others; expected"
            raise ColumnError("reward", sorted(both), f"{said} its outcome in each of its rows, or NaN in all of them")
    return use, ran


def rewards_left_out(paid: np.ndarray, labels: Mapping[str, Any], use: np.ndarray, ran: np.ndarray) -> int:
    """How many rows that only fill the batch have an event reward of a trace that counts, and are no copy of its rows.

    Args:
      paid: float64 [N], rewards at events.
      labels: ids and places [N] by their names, with "trace".
      use, ran: of `used_rows`.
    """
    if not (left := ~ran & (np.nan_to_num(paid) != 0)).any():
        return 0
    columns = {
        name: column.tolist() if isinstance(column, np.ndarray) else as_arrow(name, column, len(paid)).to_pylist()
        for name, column in labels.items()
    }
    rows = list(zip(*columns.values(), paid.tolist(), strict=True))
    whole = {rows[i] for i in np.flatnonzero(use)}
    of_traces = {columns["trace"][i] for i in np.flatnonzero(use)}
    return sum(columns["trace"][i] in of_traces and rows[i] not in whole for i in np.flatnonzero(left))
