"""Which columns of a table are one value a trace, an id of traces, or an outcome in words, by its first rows."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from graphs.reading.tables.outcome_words import PAIRS

__all__ = ["constant_within", "first_rows", "id_of_traces", "outcome_in_words"]


def first_rows(lines: Sequence[str]) -> dict[str, list[str]]:
    """The cells of each column of CSV, by its first lines: of many the last, which may be cut, is left out."""
    names, *rows = csv.reader(lines[:-1] if len(lines) > 9 else lines)
    whole = [row for row in rows if len(row) == len(names)]
    return {name: [row[i].strip() for row in whole] for i, name in enumerate(names)}


def constant_within(cells: Mapping[str, Sequence[str]], trace: str) -> list[str]:
    """The columns that have one value in each trace; all without a column of traces.

    Args:
      cells: of `first_rows`.
      trace: the column of traces; "" where it is not known.

    Examples:
      >>> constant_within({"run": ["a", "a", "b"], "task": ["q", "q", "q"], "tokens": ["1", "2", "1"]}, "run")
      ['run', 'task']
    """
    ids = cells.get(trace)
    return [name for name, values in cells.items()
            if ids is None or len({*zip(ids, values, strict=True)}) == len({*ids})]  # fmt: skip


def id_of_traces(cells: Mapping[str, Sequence[str]], taken: Collection[str] = ()) -> str:
    """The column of most values that each stand in rows that follow each other, two a value at least; "" of none.

    Args:
      cells: of `first_rows`.
      taken: columns that are something else.

    Examples:
      >>> id_of_traces({"day": ["1"] * 5, "case": ["a", "a", "a", "b", "b"], "tool": ["x", "y", "x", "y", "x"]})
      'case'
    """
    blocks = {name: [value for value, _ in groupby(values)] for name, values in cells.items() if name not in taken}
    ids = {name: len(of) for name, of in blocks.items()
           if "" not in of and len(of) == len({*of}) and 2 <= len(of) <= len(cells[name]) / 2}  # fmt: skip
    return max(ids, key=lambda name: ids[name], default="")


def outcome_in_words(cells: Mapping[str, Sequence[str]], names: Collection[str]) -> str:
    """The first of these columns that has both words of one pair as pass and fail, and no others; "" of none.

    Args:
      cells: of `first_rows`.
      names: columns that may be outcomes.

    Examples:
      >>> outcome_in_words({"status": ["ok", "ok"], "thumbs": ["up", ""], "judge": ["Pass", "fail"]}, ["judge"])
      'judge'
    """
    said = {name: {value.lower() for value in cells[name]} - {""} for name in names}
    return next((name for name, words in said.items() if words in [{*pair} for pair in PAIRS]), "")
