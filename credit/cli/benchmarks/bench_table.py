"""`credit bench table`: what several benchmarks found of the same methods side by side, in one table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from credit.cli.benchmarks import bench_bias, bench_snr, bench_train, bench_truth
from credit.cli.benchmarks.long_table import (
    LEFT_OUT,
    MARKS,
    OPTIONS,
    SETTINGS,
    Measured,
    cells_by_column,
    condition,
    of_all_sizes,
    place,
    shared_conditions,
    side_by_side,
    table_or_latex,
)
from credit.cli.shared.answers import json_option, print_json, ruled_table, stderr, stdout, words
from credit.cli.shared.commands import Command, each_once, several_methods
from credit.cli.shared.outputs import save_table

__all__ = ["table"]

MAIN = ("bias", "cosine", "relative", "correlation", "snr", "area")
COUNTS = ("cost", "events to 90 %")
"""Quantities without a fraction, of which training may not reach one."""
LEGENDS = {
    (bench, quantity): text
    for bench, of in (
        ("bias", bench_bias.LEGENDS),
        ("truth", bench_truth.LEGENDS),
        ("snr", bench_snr.LEGENDS | {"*": bench_snr.OUTSIDE, "‡": bench_snr.APART}),
        ("train", bench_train.LEGENDS | {"at edge": bench_train.EDGE.partition(": ")[2]}),
    )
    for quantity, text in of.items()
}
REAL, WHOLE = ("value", "low", "high", "confidence", "learning_rate"), ("n", "group_size", "length")
FILES = "a table that `credit bench bias`, `truth`, `snr` or `train` wrote with `--table`"


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    return each_once(ctx, param, [name.strip() for name in (value or "").split(",") if name.strip()]) or ()


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
@click.option("--quantity", "-q", "quantities", callback=_names, metavar="NAME,...",
              help="Quantities to show, in this order; with the benchmark before it, as 'truth slope', that of one "
                   f"alone. Default: of {', '.join(MAIN)} what the files have.")  # fmt: skip
@click.option("--output", "-o", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              callback=table_or_latex, help="Also write it: .csv, .parquet, .jsonl or .arrow, or .tex.")  # fmt: skip
@json_option
def table(
    files: tuple[Path, ...],
    methods: tuple[str, ...],
    quantities: tuple[str, ...],
    output: Path | None,
    as_json: bool,
) -> None:
    """Put what several benchmarks found of the same methods into one table, a line a method.

    FILES are those of `--table` of bias, truth, snr and train, in any of its formats but LaTeX. Runs of other settings
    have other columns.
    """
    from credit.bench.refusals import Absent, absent_caption

    found = _described([(number, where) for number, where in _read(files) if not number.less])
    heads = _heads(number for number, _ in found)
    chosen = _chosen(quantities, heads)
    shown = _agreed([one for key in chosen for one in found if _key(one[0]) == key], methods)
    names = methods or tuple(dict.fromkeys(number.method for number in shown))
    caption, notes = [], []
    sized = {key: of_all_sizes([n for n in shown if _key(n) == key]) for key in chosen}
    of_bench: dict[str, set[str]] = {}
    for bench in dict.fromkeys(bench for bench, _ in chosen):
        run = [n for key in chosen if key[0] == bench for n in sized[key][0]]
        of_bench[bench] = shared_conditions(run)
        listed = ", ".join(dict.fromkeys(heads[_key(n)] for n in run))
        caption.append(f"{listed} ({': '.join(filter(None, [f'bench {bench}', condition(run[0], of_bench[bench])]))})")
    columns: dict[str, dict[str, dict[str, str]]] = {}
    for key, (of, _) in sized.items():
        shared = shared_conditions(of)
        columns[heads[key]] = cells_by_column(of, shared)
        sure = sorted({f"in brackets {100 * n.confidence:.2g} % intervals" for n in of if n.confidence})
        marks = [f"{m}: {LEGENDS.get((key[0], m), '')}" for m in MARKS if any(m in n.mark for n in of)]
        about = [LEGENDS.get(key, ""), condition(of[0], shared - of_bench[key[0]]), *sure, *marks]
        notes.append(f"{heads[key]}: {'; '.join(filter(None, about))}")
    notes += dict.fromkeys(line for _, alone in sized.values() for line in alone)
    rows = [
        {"method": name}
        | {
            ", ".join(filter(None, [head, column])): cells.get(name, "–")
            for head, of_head in columns.items()
            for column, cells in of_head.items()
        }
        for name in names
    ]
    absent = dict.fromkeys((n.method, heads[_key(n)], n.why) for n in shown if n.is_absent)
    if output is not None:
        told = [absent_caption(Absent(*one) for one in absent)] if absent else []
        _save(rows, output, side_by_side(columns, names, output.stem, "; ".join(caption), [*notes, *told, OPTIONS]))
    if as_json:
        print_json({"rows": rows, "legend": [*caption, *notes]})
        return
    printed = ruled_table("method", *(f"#{column}" for column in [*rows[0]][1:]))
    for row in rows:
        printed.add_row(*map(words, row.values()))
    stdout().print(printed)
    others = [head for key, head in heads.items() if key not in chosen]
    lines = [f"{method} has no {head}: {why}" for method, head, why in absent]
    for line in [*lines, *caption, *notes, *[f"also in the files: {', '.join(others)}"] * bool(others)]:
        stdout().print(words(line), soft_wrap=True)


def _described(found: Sequence[tuple[Measured, str]]) -> list[tuple[Measured, str]]:
    """The numbers, each with what `SETTINGS` of its run say of it: the share that was refused, and marks."""
    from credit.bench.refusals import refused_beside

    def run(number: Measured) -> tuple[Any, ...]:
        return number.method, number.bench, number.settings, *place(number)[1:]

    answered = {run(number): number.value for number, _ in found if number.quantity == "answered"}
    marks = {run(number): number.mark for number, _ in found if number.quantity == "rate"}

    def described(number: Measured) -> Measured:
        if number.quantity in (*SETTINGS, "closed form") or number.is_absent:
            return number
        share, mark = answered.get(run(number), 1.0), marks.get(run(number), "")
        if math.isnan(number.value):
            return number._replace(shown="" if share else "refused")
        shown = number._replace(mark="").cell + refused_beside(share)
        return number._replace(shown=shown, mark=" ".join(filter(None, [mark, number.mark])))

    return [(described(number), where) for number, where in found]


def _save(rows: list[dict[str, str]], output: Path, text: str) -> None:
    """Write the table by its suffix, `text` as LaTeX."""
    import pyarrow as pa

    from graphs.atomic import atomic_write

    if output.suffix != ".tex":
        save_table(pa.Table.from_pylist(rows), output)
        return
    with atomic_write(output) as file:
        file.write(text.encode())
    stderr().print(words(f"wrote {output}"), soft_wrap=True)


def _key(number: Measured) -> tuple[str, str]:
    return number.bench, number.quantity


def _heads(numbers: Iterable[Measured]) -> dict[tuple[str, str], str]:
    """Names of all quantities by benchmark and quantity: with the benchmark where several have one of that name."""
    keys = dict.fromkeys(map(_key, numbers))
    several = Counter(quantity for _, quantity in keys)
    return {(bench, name): f"{bench} {name}" if several[name] > 1 else name for bench, name in keys}


def _chosen(names: Sequence[str], heads: Mapping[tuple[str, str], str]) -> list[tuple[str, str]]:
    """The quantities that are asked for, or those of `MAIN`.

    Raises:
      CreditError: the files do not have one.
    """
    from graphs.errors import CreditError
    from graphs.text import near_names

    chosen: dict[tuple[str, str], None] = {}
    for name in names or MAIN:
        of_name = [key for key in heads if name in (key[1], " ".join(key))]
        if names and not of_name:
            raise CreditError(f"the files have no quantity {name!r}. {near_names(name, heads.values())}")
        chosen |= dict.fromkeys(of_name)
    if not chosen:
        raise CreditError(f"the files have none of {', '.join(MAIN)}; expected --quantity: {', '.join(heads.values())}")
    return list(chosen)


def _agreed(found: Sequence[tuple[Measured, str]], methods: Sequence[str]) -> list[Measured]:
    """The numbers of some methods, or of all, each once.

    Raises:
      CreditError: a method has none, or two files have different numbers of one in one condition.
    """
    from graphs.errors import CreditError
    from graphs.text import near_names

    known = dict.fromkeys(number.method for number, _ in found)
    for name in methods:
        if name not in known:
            listed = ", ".join(dict.fromkeys(number.quantity for number, _ in found))
            raise CreditError(f"the files have no {listed} of {name!r}. {near_names(name, known)}")
    kept: dict[tuple[Any, ...], tuple[Measured, str]] = {}
    for number, where in found:
        if methods and number.method not in methods:
            continue
        at = (number.method, number.bench, number.settings, *place(number))
        first, place_of_first = kept.setdefault(at, (number, where))
        if repr(first[2:5]) != repr(number[2:5]):  # marks are of what else a run had
            both = f"{number.quantity} {number.value:g} of {number.method}, and {place_of_first} has {first.value:g}"
            raise CreditError(f"{where} has {both} under the same settings; expected one number: leave out one file")
    return [number for number, _ in kept.values()]


def _read(files: Sequence[Path]) -> Iterator[tuple[Measured, str]]:
    """The numbers of all files, each with its line.

    Raises:
      CreditError: a file is no such table.
    """
    from graphs.errors import TraceError
    from graphs.reading.tables.rows import read_rows

    for path in files:
        for line, row in read_rows(path, lists=None):
            if not isinstance(row, dict):
                raise TraceError(row.problem)
            yield _measured(where := f"{path}:{line}", row), where


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
    number = Measured(
        **values | {name: values[name] or "" for name in ("quantity", "less", "mark", "why", "bench", "settings")}
    )
    if math.isnan(number.value):
        return number._replace(shown=LEFT_OUT * number.is_absent)
    show = bench_train.count_text if number.quantity in COUNTS else partial(rounded, exact=ROUNDING)
    return number._replace(shown=bench_train.within(number.value, (number.low, number.high), show))
