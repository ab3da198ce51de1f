"""The table of `credit.bench.bias` for people: one line a method, one column a world, a number for each size K."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from credit.bench.bias import Row
from credit.bench.rounding import decimals, fixed

__all__ = ["as_lists", "cell", "csv_text", "from_lists", "grid", "markdown", "no_score", "worlds_of"]

FIELDS = tuple(field.name for field in dataclasses.fields(Row))


def cell(rows: Iterable[Row], score: str, places: int | None) -> str:
    """The scores of one method in one world, by size: "0.500 / 0.333"; "-" where there are none."""
    in_order = sorted(rows, key=lambda row: row.k)
    return " / ".join(no_score(row, score) or fixed(getattr(row, score), places) for row in in_order) or "-"


def no_score(row: Row, score: str) -> str:
    """Why a row has no such score, "" where it has one.

    Where every decision was refused nothing pushed the policy, which is no bias of what the method computes: "refused".
    What was left out, as for numbers that are not finite, is "left out"; a score that nothing defines, "undefined".
    """
    if math.isnan(row.answered):
        return "left out"
    if row.answered <= 0 and score != "answered":
        return "refused"
    return "undefined" if math.isnan(getattr(row, score)) else ""


def worlds_of(rows: Sequence[Row]) -> list[str]:
    """The worlds of rows, in their order."""
    return list(dict.fromkeys(row.world for row in rows))


def grid(rows: Sequence[Row], score: str) -> tuple[list[str], list[list[str]]]:
    """Worlds, and for each method its name and cells."""
    places = {world: decimals(getattr(row, score) for row in rows if row.world == world) for world in worlds_of(rows)}
    lines = [
        [name, *(cell([r for r in rows if (r.method, r.world) == (name, w)], score, p) for w, p in places.items())]
        for name in dict.fromkeys(row.method for row in rows)
    ]
    return [*places], lines


def markdown(rows: Sequence[Row]) -> str:
    """One line a method as a Markdown table: its worst or mean score over the worlds, at the largest size measured.

    Bias, cosine and the share of answered decisions are the worst of the worlds, variances and rank their means.
    """
    found: dict[str, tuple[float, ...]] = {}
    for name in dict.fromkeys(row.method for row in rows):
        size: dict[str, Row] = {}
        for row in (row for row in rows if row.method == name):
            size[row.world] = max(row, size.get(row.world, row), key=lambda row: row.k)
        kept = list(size.values())
        found[name] = (
            max(_defined(row.bias for row in kept), default=math.nan),
            min(_defined(row.cosine for row in kept), default=math.nan),
            _mean(_defined(row.variance for row in kept)),
            _mean(_defined(row.relative for row in kept)),
            _mean(_defined(row.rank for row in kept)),
            min(row.answered for row in kept),
        )
    places = [*map(decimals, zip(*found.values(), strict=True))]
    lines = [["method", "bias", "cosine", "variance", "relative", "rank", "answered"], ["---"] + ["---:"] * 6]
    lines += [[name, *map(fixed, scores, places)] for name, scores in found.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def csv_text(rows: Sequence[Row]) -> str:
    """All rows with every score to full precision, as the text of a CSV file; an undefined score is empty."""
    lines = [",".join(FIELDS)]
    for row in as_lists(rows):
        lines.append(",".join(_quoted(value) for value in row))
    return "\n".join(lines) + "\n"


def _defined(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _quoted(value: str | int | float | None) -> str:
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value)
    return f'"{text}"' if "," in text else text


def as_lists(rows: Sequence[Row]) -> list[list[str | int | float | None]]:
    """Rows as lists in the order of the fields of `Row`, for JSON: NaN is None."""
    return [[None if isinstance(v, float) and math.isnan(v) else v for v in dataclasses.astuple(row)] for row in rows]


def from_lists(lists: Iterable[Sequence[str | int | float | None]]) -> list[Row]:
    """The reverse of `as_lists`."""
    return [
        Row(**{name: math.nan if v is None else v for name, v in zip(FIELDS, values, strict=True)})  # type: ignore[arg-type]
        for values in lists
    ]
