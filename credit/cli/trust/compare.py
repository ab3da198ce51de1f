"""`credit compare`: the same logs under several methods, side by side."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import explain, json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.claims import settled, takes_claims
from credit.cli.shared.commands import Command
from credit.cli.shared.outputs import output_option, picture_option, save_picture, save_table
from credit.cli.shared.progress import steps
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from credit.methods.claims import ClaimRequest
    from credit.reports.comparison import Comparison

__all__ = ["compare"]

LEGEND = (
    ("", "correlations: from -1, opposite order, to 1, the same order"),
    ("–", "–: too few numbers differ"),
)
MOST = 7  # roles or kinds that have a column


@click.command(
    cls=Command,
    short_help="Compare methods on the same logs.",
    examples="""
    credit compare runs/ --methods rloo,turn_baseline,gae
    credit compare runs/ --methods rloo,gae -o all.csv --plot methods.svg
    """,
)
@reads_logs()
@takes_claims
@output_option("Also write the advantages of all methods: .parquet, .csv, .jsonl or .arrow.")
@picture_option
@click.option("--worst", default=10, show_default=True, type=click.IntRange(0), help="Number of disagreements to list.")
@allow_bad
@json_option
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    asked: ClaimRequest,
    output: Path | None,
    plot: Path | None,
    worst: int,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Compare methods: rank correlations, shares by role and kind, and where they differ most."""
    from credit.reports.comparison import compare as side_by_side

    asked.check(least=2)
    traces = read_traces(paths, **reading)
    traces, claims = settled(asked, traces, least=2).run(traces, progress=functools.partial(steps, stderr()))
    comparison = side_by_side(traces, claims, worst=worst)
    if as_json:
        print_json(comparison.as_json())
    else:
        _print(stdout(), comparison)
    if output is not None:
        save_table(comparison.events, output)
    if plot is not None:
        from credit.plot import draw_comparison

        save_picture(draw_comparison(comparison), plot)
    leave(ctx, traces, allow_bad)


def _print(console: Console, comparison: Comparison) -> None:
    tables = {
        "Rank correlation of advantages (Spearman, ties at their mean rank)": _matrix(
            comparison, comparison.correlation
        ),
        "The same within traces": _matrix(comparison, comparison.within),
        "Each role's part of all credit, whatever its sign (Σ |credit − baseline|)": _shares(
            comparison, comparison.roles, comparison.by_role, comparison.actions_by_role
        ),
        "Each kind of decision's part": _shares(
            comparison, comparison.kinds, comparison.by_kind, comparison.actions_by_kind
        ),
    }
    for title, table in tables.items():
        console.print(words(title, "bold"))
        console.print(table)
        console.print()
    if len(comparison.disagreements):
        console.print(words("Where advantages differ most, one action a trace", "bold"))
        console.print(_worst(comparison))
        console.print()
    explain(console, [*tables.values()], *LEGEND)


def _number(value: float) -> str:
    return f"{value:z.2f}" if math.isfinite(value) else "–"


def _matrix(comparison: Comparison, values: np.ndarray) -> Table:
    table = plain_table("", *(f"#{i + 1}" for i in range(len(comparison.methods))), "#actions with an advantage")
    for i, name in enumerate(comparison.methods):
        table.add_row(words(f"{i + 1} {name}"), *map(_number, values[i]), str(comparison.answered[i]))
    return table


def _shares(comparison: Comparison, names: Sequence[str], shares: np.ndarray, actions: np.ndarray) -> Table:
    """Parts that anybody has, the largest by name and first."""
    import numpy as np

    largest = np.nan_to_num(np.vstack([actions, shares])).max(axis=0)
    order = [i for i in np.argsort(-largest, kind="stable") if largest[i] > 0]
    shown, rest = order[:MOST], order[MOST:]
    table = plain_table("", *(f"#{names[i]}" for i in shown), *([f"#{len(rest)} more"] if rest else []))
    for name, row in (("of all actions", actions), *zip(comparison.methods, shares, strict=True)):
        parts = [row[i] for i in shown] + ([row[rest].sum()] if rest else [])
        table.add_row(words(name), *map(_number, parts))
    return table


def _worst(comparison: Comparison) -> Table:
    import pyarrow as pa

    shift = comparison.events.num_columns - len(comparison.methods)
    table = plain_table("trace", "event", "role", "type", *(f"#{name}" for name in comparison.methods))
    for row in comparison.events.take(pa.array(comparison.disagreements)).to_pylist():
        numbers = ["–" if value is None else f"{value:z.3g}" for value in list(row.values())[shift:]]
        table.add_row(*(words(row[name]) for name in ("trace", "event", "role", "type")), *numbers)
    return table
