"""`credit bench table`: what several benchmarks found of the same methods side by side, in one table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from credit.cli.benchmarks import bench_bias, bench_snr, bench_train, bench_truth
from credit.cli.benchmarks.long_table import (
    Column,
    Told,
    absent_notes,
    columns_of,
    in_blocks,
    of_benchmarks,
    save_latex,
    table_or_latex,
    width_option,
)
from credit.cli.benchmarks.measured import (
    MARKS,
    OPTIONS,
    REFUSED,
    SETTINGS,
    Measured,
    brackets,
    condition,
    in_columns,
    of_all_sizes,
    refused,
    said,
    shared_conditions,
    table_of,
    told_of_worlds,
)
from credit.cli.benchmarks.saved_numbers import Key, edited_option, key_of, run_of, saved_numbers, selected
from credit.cli.shared.answers import json_option, print_json, ruled_table, stderr, stdout, words
from credit.cli.shared.commands import Command, by_commas, several_methods
from credit.cli.shared.outputs import save_table
from credit.cli.shared.provenance import source

__all__ = ["table"]

MAIN = ("bias", "cosine", "relative", "correlation", "snr", "area")
_SENTENCE, _OF_INTERVAL = re.compile(r"(?<=[.]) "), re.compile(r"(intervals(?! and \*)|Bands)\b")
_INTERVAL = re.compile(r" \([^()]* to [^()]*\)")
LEGENDS = {
    (bench, quantity): text
    for bench, of in (
        ("bias", bench_bias.LEGENDS),
        ("truth", bench_truth.LEGENDS | {"less": bench_truth.LEGENDS["less"] + bench_truth.OF_PAIRS}),
        (
            "snr",
            bench_snr.LEGENDS
            | {"less": bench_snr.PAIRS, "*": bench_snr.OUTSIDE, "†": bench_snr.OTHERS, "‡": bench_snr.APART},
        ),
        ("train", bench_train.LEGENDS | bench_train.MARKS),
    )
    for quantity, text in of.items()
}


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
@click.option("--quantity", "-q", "quantities", multiple=True, callback=by_commas, metavar="NAME",
              help="Quantities to show, in this order; 'area less': differences from the first method; with the "
                   f"benchmark before it, as 'truth slope', that of one alone. Default: of {', '.join(MAIN)} what the "
                   "files have, with differences.")  # fmt: skip
@click.option("--output", "-o", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              callback=table_or_latex, help="Also write it: .csv, .parquet, .jsonl or .arrow, or .tex.")  # fmt: skip
@click.option("--intervals/--no-intervals", default=True, help="Whether cells have intervals; files always do.")
@edited_option
@width_option
@json_option
def table(
    files: tuple[Path, ...],
    methods: tuple[str, ...],
    quantities: tuple[str, ...],
    output: Path | None,
    intervals: bool,
    edited: bool,
    width: float,
    as_json: bool,
) -> None:
    """Put what several benchmarks found of the same methods into one table, a line a method.

    FILES are those of `--table` of bias, truth, snr and train, in any of its formats but LaTeX. Runs of other settings
    have other columns. -o and --json hold the numbers one a line, as FILES do.
    """
    numbers, places = zip(*saved_numbers(files, methods), strict=True)
    read = _described([*zip(in_columns(numbers), places, strict=True)])
    if not intervals:
        read = [(number._replace(shown=_INTERVAL.sub("", number.shown)), where) for number, where in read]
    found = [number for number, _ in read]
    heads, chosen, shown, edits, namesakes = selected(read, methods, quantities, MAIN, edited=edited)
    names = methods or tuple(dict.fromkeys(number.method for number in shown))
    of_key = {
        key: of_all_sizes([n for n in shown if key_of(n) == key] or [n for n in found if key_of(n) == key])
        for key in chosen
    }
    columns = [
        column for key, (of, _) in of_key.items() for column in columns_of(of, shared_conditions(of), heads[key])
    ]
    absent = [(n.method, heads[key_of(n)], n.why) for n in shown if n.is_absent]
    runs = {run_of(n._replace(less="")) for n in shown}
    answered = [n for n in found if n.quantity == "answered" and run_of(n) in runs]
    told, alone = _legend(of_key, heads, found)
    alone += edits
    for bench, of in told.items():
        caveats = said((n for n in shown if n.bench == bench), "caveats")
        if not intervals:  # what limits a mark remains
            caveats = [
                " ".join(part for part in _SENTENCE.split(line) if not _OF_INTERVAL.match(part)) for line in caveats
            ]
        lines = [*refused(n for n in answered if n.bench == bench), *filter(None, caveats)]
        of.notes.extend(f"{bench}: {line}" for line in lines)
    legend = [*(of.caption for of in told.values()), *(note for of in told.values() for note in of.notes), *alone]
    written = table_of([*shown, *(n for n in answered if key_of(n) not in chosen)])
    if output is not None and output.suffix == ".tex":
        for bench, of in told.items():
            left_out = {(n.method, heads[key_of(n)], n.why): n for n in shown if n.is_absent and n.bench == bench}
            missing = absent_notes(left_out.values(), lambda number: heads[key_of(number)])
            about = "; ".join(said((n for n in shown if n.bench == bench), "about"))
            told[bench] = of._replace(notes=[*of.notes, *[f"{bench}: {about}"] * bool(about), *missing])
        text = of_benchmarks(columns, names, output.stem, told, [*alone, OPTIONS], width)
        save_latex(text, output, [source(), *(number.source for number in shown)])
    elif output is not None:
        save_table(written, output)
    for line in namesakes:
        stderr().print(words(line), soft_wrap=True)
    if as_json:
        print_json({"rows": written.to_pylist(), "legend": legend, "source": source()})
        return
    console, first = stdout(), 2 + max(map(len, ("method", *names)))
    for block in in_blocks(columns, console.width - first, lambda some: sum(map(_width, some))):
        printed = ruled_table("method", *(f"#{_title(column)}" for column in block))
        for of_screen, column in zip(printed.columns[1:], block, strict=True):
            of_screen.width = _width(column) - 3
        for name in names:
            printed.add_row(*map(words, (name, *(column.cells.get(name, "–") for column in block))))
        console.print(printed)
    others = [head for key, head in heads.items() if key not in chosen]
    lines = _absent_lines(absent, Counter(column.head for column in columns))
    for line in [*lines, *legend, *[f"also in the files: {', '.join(others)}"] * bool(others)]:
        console.print(words(line), soft_wrap=True)


def _absent_lines(absent: Iterable[tuple[str, str, str]], columns: Mapping[str, int]) -> list[str]:
    """Who has no what, in how many columns and why; one line for all methods, and all quantities, of which it is true.

    Args:
      absent: for each cell the method, the quantity and the reason.
      columns: of each quantity.
    """
    of_method: dict[tuple[str, str, str], list[str]] = {}
    for (method, head, why), n in Counter(absent).items():
        where = f" in {n} of {columns[head]} columns" if n < columns[head] else ""
        of_method.setdefault((method, where, why), []).append(head)
    alike: dict[tuple[str, ...], list[str]] = {}
    for (method, where, why), of in of_method.items():
        alike.setdefault((", ".join(of), where, why), []).append(method)
    return [
        f"{', '.join(names)} {'have' if len(names) > 1 else 'has'} no {of}{where}: {why}"
        for (of, where, why), names in alike.items()
    ]


def _legend(
    of_key: Mapping[Key, tuple[Sequence[Measured], list[str]]], heads: Mapping[Key, str], found: Sequence[Measured]
) -> tuple[dict[str, Told], list[str]]:
    """By benchmark what its runs share, and what each quantity means; and lines on methods of one trace."""
    told: dict[str, Told] = {}
    for bench in dict.fromkeys(bench for bench, *_ in of_key):
        keys = {key: of for key, (of, _) in of_key.items() if key[0] == bench}
        run = [n for of in keys.values() for n in of]
        shared = shared_conditions(run)
        of_run = ": ".join(filter(None, [f"bench {bench}", condition(run[0], shared)]))
        methods_there = {name for n in run for name in (n.method, n.less)}
        given = said((n for n in found if n.bench == bench and n.method in methods_there), "given")
        notes = []
        for key, of in keys.items():
            marks = [f"{m}: {LEGENDS.get((bench, m), '')}" for m in MARKS if any(m in n.mark for n in of)]
            meaning = LEGENDS.get((bench, "less" if key[2] else key[1]), "")
            about = [meaning, condition(of[0], shared_conditions(of) - shared), *brackets(of), *marks]
            notes.append(f"{heads[key]}: {'; '.join(filter(None, about))}")
        notes += [f"{bench}: {line}" for line in told_of_worlds(keys.values())]
        listed = ", ".join(dict.fromkeys(heads[key_of(n)] for n in run))
        told[bench] = Told(listed, (of_run, *given), notes)
    return told, list(dict.fromkeys(line for _, alone in of_key.values() for line in alone))


def _title(column: Column) -> str:
    return ", ".join(filter(None, [column.head, column.below]))


def _width(column: Column) -> int:
    """In a printed table, which breaks the title between words."""
    return 3 + max(map(len, (*_title(column).split(), *column.cells.values())))


def _described(found: Sequence[tuple[Measured, str]]) -> list[tuple[Measured, str]]:
    """The numbers, each with what `SETTINGS` of its run say of it: the share that was refused, and marks."""
    from credit.bench.refusals import refused_beside

    answered = {run_of(number): number.value for number, _ in found if number.quantity == "answered"}
    marks = {run_of(number): number.mark for number, _ in found if number.quantity == "rate"}

    def described(number: Measured) -> Measured:
        share, mark = answered.get(run_of(number), 1.0), marks.get(run_of(number), "")
        if number.quantity in (*SETTINGS, "closed form") or (math.isnan(number.value) and share):
            return number
        if math.isnan(number.value):
            return number._replace(shown=REFUSED)
        shown = number._replace(mark="").cell + refused_beside(share)
        return number._replace(shown=shown, mark=" ".join(filter(None, dict.fromkeys([mark, number.mark]))))

    return [(described(number), where) for number, where in found]
