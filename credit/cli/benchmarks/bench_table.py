"""`credit bench table`: what several benchmarks found of the same methods side by side, in one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from credit.cli.benchmarks import bench_bias, bench_snr, bench_train, bench_truth
from credit.cli.benchmarks.long_table import (
    LEFT_OUT,
    Measured,
    condition,
    place,
    save_numbers,
    shared_conditions,
    table_or_latex,
)
from credit.cli.shared.answers import json_option, print_json, ruled_table, stdout, words
from credit.cli.shared.commands import Command, several_methods
from credit.cli.shared.outputs import save_table

__all__ = ["table"]

MAIN = ("bias", "relative", "correlation", "snr", "area")
LEGENDS = {
    **{name: text for name, _, text in (note.partition(": ") for note in bench_truth.NOTES)},
    **bench_bias.LEGENDS,
    "snr": bench_snr.NOTES[0].removeprefix("SNR: ").replace(", in brackets half of its 99 % band", ""),
    "area": f"{bench_train.AREA}, median over seeds; share: {bench_train.SHARE}",
}
REAL, WHOLE = ("value", "low", "high", "confidence", "learning_rate"), ("n", "group_size", "length")
FILES = "a table that `credit bench bias`, `truth`, `snr` or `train` wrote with `--table`"


@click.command(
    cls=Command,
    short_help="Put results of several benchmarks side by side.",
    examples="""
    credit bench table bias.csv snr.csv train.csv
    credit bench table bias.csv truth.csv --quantity bias,variance,slope -o table.tex
    """,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, path_type=Path))
@several_methods("Methods to show, in this order, by commas or repeated. Default: all, as files have them.")
@click.option("--quantity", "-q", "quantities", default=",".join(MAIN), show_default=True, metavar="NAME,...",
              help="Quantities to show, in this order, of those that the files have.")  # fmt: skip
@click.option("--output", "-o", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              callback=table_or_latex, help="Also write it: .csv, .parquet, .jsonl or .arrow, or .tex.")  # fmt: skip
@json_option
def table(
    files: tuple[Path, ...], methods: tuple[str, ...], quantities: str, output: Path | None, as_json: bool
) -> None:
    """Put what several benchmarks found of the same methods into one table, a line a method.

    FILES are those of `--table` of bias, truth, snr and train, in any of its formats but LaTeX.
    """
    from graphs.errors import CreditError
    from graphs.text import near_names

    numbers = [number for number in _read(files) if not number.less]
    known = list(dict.fromkeys(number.quantity for number in numbers))
    names = methods or tuple(dict.fromkeys(number.method for number in numbers))
    shown: list[Measured] = []
    legend = []
    for quantity in (name for name in quantities.split(",") if name in known):
        of = [number for number in numbers if number.quantity == quantity]
        shared = shared_conditions(of)
        for n in of:
            column = ", ".join(filter(None, [quantity, condition(n, shared, others=True)]))
            shown.append(Measured(n.method, "result", n.value, world=column, mark=n.mark, why=n.why, shown=n.shown))
        sure = {f"in brackets {100 * n.confidence:.2g} % intervals" for n in of if n.confidence}
        about = "; ".join(filter(None, [LEGENDS.get(quantity, ""), condition(of[0], shared), *sorted(sure)]))
        legend.append(f"{quantity}: {about}")
    for name in names:
        if name not in {number.method for number in shown}:
            listed = list(dict.fromkeys(number.method for number in shown))
            raise CreditError(f"the files have no {quantities} of {name!r}. {near_names(name, listed)}")
    columns = list(dict.fromkeys(number.world for number in shown))
    shown = sorted(
        (n for n in shown if n.method in names), key=lambda n: (columns.index(n.world), names.index(n.method))
    )
    cells = {(number.method, number.world): number.cell for number in shown}
    rows = [{"method": name, **{str(c): cells.get((name, c), "–") for c in columns}} for name in names]
    if output is not None and output.suffix != ".tex":
        import pyarrow as pa

        save_table(pa.Table.from_pylist(rows), output)
    else:
        save_numbers(shown, output, {"": "; ".join(legend)})
    if as_json:
        print_json({"rows": rows, "legend": legend})
        return
    printed = ruled_table("method", *(f"#{column}" for column in columns))
    for row in rows:
        printed.add_row(*map(words, row.values()))
    stdout().print(printed)
    lines = [f"{n.method} has no {str(n.world).partition(',')[0]}: {n.why}" for n in shown if n.is_absent]
    others = [name for name in known if name not in quantities.split(",")]
    for line in [*dict.fromkeys(lines), *legend, *[f"also in the files: {', '.join(others)}"] * bool(others)]:
        stdout().print(words(line), soft_wrap=True)


def _read(files: Sequence[Path]) -> list[Measured]:
    """The numbers of all files, each once.

    Raises:
      CreditError: a file is no such table, or two have different numbers of one method in one condition.
    """
    from graphs.errors import CreditError, TraceError
    from graphs.reading.tables.rows import read_rows

    found: dict[tuple[Any, ...], tuple[Measured, str]] = {}
    for path in files:
        for line, row in read_rows(path, lists=None):
            where = f"{path}:{line}"
            if not isinstance(row, dict):
                raise TraceError(row.problem)
            number = _measured(where, row)
            first, at = found.setdefault((number.method, *place(number)), (number, where))
            if repr(first) != repr(number):
                both = f"{number.quantity} {number.value:g} of {number.method}, and {at} has {first.value:g}"
                raise CreditError(f"{where} has {both} in the same condition; expected one number: leave out one file")
    return [number for number, _ in found.values()]


def _measured(where: str, row: dict[str, Any]) -> Measured:
    from credit.bench.rounding import rounded
    from graphs.errors import CreditError
    from graphs.task_means import ROUNDING
    from graphs.text import excerpt

    values: dict[str, Any] = {}
    for name in Measured._fields[:-1]:  # without what the screen showed
        if name not in row:
            raise CreditError(f"{where} has no {name}; expected {FILES}")
        value = row[name]
        kind = float if name in REAL else int if name in WHOLE else str
        try:
            values[name] = kind(value) if value not in (None, "") else math.nan if name in REAL[:3] else None
        except ValueError as error:
            raise CreditError(f"{where} has {name} {excerpt(value)}; expected a number, in {FILES}") from error
    number = Measured(**values | {name: values[name] or "" for name in ("quantity", "less", "mark", "why")})
    ends = [rounded(x, exact=ROUNDING) for x in (number.value, number.low, number.high)]
    if number.is_absent:
        return number._replace(shown=LEFT_OUT)
    return number if math.isnan(number.low) else number._replace(shown="{} ({} to {})".format(*ends))
