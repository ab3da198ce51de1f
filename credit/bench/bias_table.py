"""The table of `credit.bench.bias` for people: one line a method, one column a world, a number for each size K."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence

from credit.bench.bias import Row
from graphs.worlds.micro.examples import MICRO

__all__ = ["DIGITS", "as_lists", "cell", "from_lists", "grid", "inserted", "markdown"]

DIGITS = {"bias": "{:.6f}", "cosine": "{:.4f}", "rank": "{:.3f}", "sign": "{:.3f}", "answered": "{:.3f}"}
"""How each score is written; the others with four digits, whatever their size."""

FIELDS = tuple(field.name for field in dataclasses.fields(Row))


def cell(rows: Iterable[Row], score: str, digits: str = "") -> str:
    """The scores of one method in one world, by size: "0.5 / 0.333"; "-" where there are none."""
    form = digits or DIGITS.get(score, "{:.4g}")
    values = (getattr(row, score) for row in sorted(rows, key=lambda row: row.k))
    written = ("undefined" if math.isnan(v) else form.format(0.0 if abs(v) < 1e-9 else v) for v in values)
    return " / ".join(written) or "-"


def grid(rows: Sequence[Row], score: str, digits: str = "") -> tuple[list[str], list[list[str]]]:
    """Worlds, and for each method its name and cells."""
    worlds = [world for world in MICRO if any(row.world == world for row in rows)]
    lines = [
        [name, *(cell([r for r in rows if (r.method, r.world) == (name, world)], score, digits) for world in worlds)]
        for name in dict.fromkeys(row.method for row in rows)
    ]
    return worlds, lines


def markdown(rows: Sequence[Row], score: str) -> str:
    """The grid of one score as a Markdown table; of "answered", the rows that leave something unanswered."""
    if score == "answered":
        short = {row.method for row in rows if row.answered < 1 - 1e-9}
        rows = [row for row in rows if row.method in short]
    worlds, lines = grid(rows, score)
    head = ["method", *worlds]
    table = [head, ["---"] + ["---:"] * len(worlds), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in table)


def inserted(page: str, rows: Sequence[Row]) -> str:
    """A page with the tables put between its marks `<!-- table SCORE -->` and `<!-- end -->`."""

    def replaced(mark: re.Match[str]) -> str:
        return f"{mark[1]}\n\n{markdown(rows, mark[2])}\n\n{mark[3]}"

    return re.sub(r"(<!-- table (\w+) -->).*?(<!-- end -->)", replaced, page, flags=re.DOTALL)


def as_lists(rows: Sequence[Row]) -> list[list[str | int | float | None]]:
    """Rows as lists in the order of the fields of `Row`, for JSON: NaN is None."""
    return [[None if isinstance(v, float) and math.isnan(v) else v for v in dataclasses.astuple(row)] for row in rows]


def from_lists(lists: Iterable[Sequence[str | int | float | None]]) -> list[Row]:
    """The reverse of `as_lists`."""
    return [
        Row(**{name: math.nan if v is None else v for name, v in zip(FIELDS, values, strict=True)})  # type: ignore[arg-type]
        for values in lists
    ]
