"""`credit bench table`: what several benchmarks found of the same methods side by side, in one table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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
    EQUAL,
    LEFT_OUT,
    MARKS,
    OPTIONS,
    REAL,
    REFUSED,
    SETTINGS,
    WHOLE,
    Measured,
    brackets,
    condition,
    in_columns,
    of_all_sizes,
    place,
    refused,
    said,
    shared_conditions,
    table_of,
)
from credit.cli.shared.answers import json_option, print_json, ruled_table, stdout, words
from credit.cli.shared.commands import Command, by_commas, several_methods
from credit.cli.shared.outputs import save_table
from credit.cli.shared.provenance import source
from credit.methods.own_functions import function_of
from graphs.errors import CreditError, TraceError
from graphs.text import excerpt, near_names

__all__ = ["table"]

MAIN = ("bias", "cosine", "relative", "correlation", "snr", "area")
COUNTS = ("cost", "traces", "events to 90 %")
"""Quantities without a fraction, of which training may not reach one."""
_SENTENCE, _OF_INTERVAL = re.compile(r"(?<=[.]) "), re.compile(r"(intervals(?! and \*)|Bands)\b")
_INTERVAL = re.compile(r" \([^()]* to [^()]*\)")
Key = tuple[str, str, str]
"""A benchmark, a quantity, and of a difference the method whose number was subtracted."""
LEGENDS = {
    (bench, quantity): text
    for bench, of in (
        ("bias", bench_bias.LEGENDS),
        ("truth", bench_truth.LEGENDS),
        ("snr", bench_snr.LEGENDS | {"less": bench_snr.PAIRS, "*": bench_snr.OUTSIDE, "‡": bench_snr.APART}),
        ("train", bench_train.LEGENDS | bench_train.MARKS),
    )
    for quantity, text in of.items()
}
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
@click.option("--quantity", "-q", "quantities", multiple=True, callback=by_commas, metavar="NAME",
              help="Quantities to show, in this order; 'area less': differences from the first method; with the "
                   f"benchmark before it, as 'truth slope', that of one alone. Default: of {', '.join(MAIN)} what the "
                   "files have, with differences.")  # fmt: skip
@click.option("--output", "-o", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
              callback=table_or_latex, help="Also write it: .csv, .parquet, .jsonl or .arrow, or .tex.")  # fmt: skip
@click.option("--intervals/--no-intervals", default=True, help="Whether cells have intervals; files always do.")
@width_option
@json_option
def table(
    files: tuple[Path, ...],
    methods: tuple[str, ...],
    quantities: tuple[str, ...],
    output: Path | None,
    intervals: bool,
    width: float,
    as_json: bool,
) -> None:
    """Put what several benchmarks found of the same methods into one table, a line a method.

    FILES are those of `--table` of bias, truth, snr and train, in any of its formats but LaTeX. Runs of other settings
    have other columns. -o and --json hold the numbers one a line, as FILES do.
    """
    shown_as = {function_of(name): name for name in methods}
    numbers, places = zip(*_read(files), strict=True)
    renamed = in_columns([_renamed(number, shown_as) for number in numbers])
    read = _described([*zip(renamed, places, strict=True)])
    if not intervals:
        read = [(number._replace(shown=_INTERVAL.sub("", number.shown)), where) for number, where in read]
    found = [number for number, _ in read]
    heads = _heads(found)
    known = _known(methods, found)
    chosen = _chosen(quantities, heads, [_key(number) for number in found if number.method in known])
    shown = _agreed(read, chosen, known)
    names = methods or tuple(dict.fromkeys(number.method for number in shown))
    of_key = {
        key: of_all_sizes([n for n in shown if _key(n) == key] or [n for n in found if _key(n) == key])
        for key in chosen
    }
    columns = [
        column for key, (of, _) in of_key.items() for column in columns_of(of, shared_conditions(of), heads[key])
    ]
    absent = [(n.method, heads[_key(n)], n.why) for n in shown if n.is_absent]
    runs = {_run(n._replace(less="")) for n in shown}
    answered = [n for n in found if n.quantity == "answered" and _run(n) in runs]
    told, alone = _legend(of_key, heads, found)
    for bench, of in told.items():
        caveats = said((n for n in shown if n.bench == bench), "caveats")
        if not intervals:  # what limits a mark remains
            caveats = [
                " ".join(part for part in _SENTENCE.split(line) if not _OF_INTERVAL.match(part)) for line in caveats
            ]
        lines = [*refused(n for n in answered if n.bench == bench), *filter(None, caveats)]
        of.notes.extend(f"{bench}: {line}" for line in lines)
    legend = [*(of.caption for of in told.values()), *(note for of in told.values() for note in of.notes), *alone]
    written = table_of([*shown, *(n for n in answered if _key(n) not in chosen)])
    if output is not None and output.suffix == ".tex":
        for bench, of in told.items():
            left_out = {(n.method, heads[_key(n)], n.why): n for n in shown if n.is_absent and n.bench == bench}
            missing = absent_notes(left_out.values(), lambda number: heads[_key(number)])
            about = "; ".join(said((n for n in shown if n.bench == bench), "about"))
            told[bench] = of._replace(notes=[*of.notes, *[f"{bench}: {about}"] * bool(about), *missing])
        text = of_benchmarks(columns, names, output.stem, told, [*alone, OPTIONS], width)
        save_latex(text, output, [source(), *(number.source for number in shown)])
    elif output is not None:
        save_table(written, output)
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


def _renamed(number: Measured, shown_as: Mapping[str, str]) -> Measured:
    """The number with the names of its methods that a call gave."""
    method, less = (shown_as.get(name, name) for name in (number.method, number.less))
    return number._replace(method=method, less=less)


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
        listed = ", ".join(dict.fromkeys(heads[_key(n)] for n in run))
        told[bench] = Told(listed, (of_run, *given), notes)
    return told, list(dict.fromkeys(line for _, alone in of_key.values() for line in alone))


def _title(column: Column) -> str:
    return ", ".join(filter(None, [column.head, column.below]))


def _width(column: Column) -> int:
    """In a printed table, which breaks the title between words."""
    return 3 + max(map(len, (*_title(column).split(), *column.cells.values())))


def _run(number: Measured) -> tuple[Any, ...]:
    return number.method, number.bench, number.settings, *place(number)[1:]


def _described(found: Sequence[tuple[Measured, str]]) -> list[tuple[Measured, str]]:
    """The numbers, each with what `SETTINGS` of its run say of it: the share that was refused, and marks."""
    from credit.bench.refusals import refused_beside

    answered = {_run(number): number.value for number, _ in found if number.quantity == "answered"}
    marks = {_run(number): number.mark for number, _ in found if number.quantity == "rate"}

    def described(number: Measured) -> Measured:
        share, mark = answered.get(_run(number), 1.0), marks.get(_run(number), "")
        if number.quantity in (*SETTINGS, "closed form") or (math.isnan(number.value) and share):
            return number
        if math.isnan(number.value):
            return number._replace(shown=REFUSED)
        shown = number._replace(mark="").cell + refused_beside(share)
        return number._replace(shown=shown, mark=" ".join(filter(None, dict.fromkeys([mark, number.mark]))))

    return [(described(number), where) for number, where in found]


def _key(number: Measured) -> Key:
    return number.bench, number.quantity, number.less


def _heads(numbers: Iterable[Measured]) -> dict[Key, str]:
    """Names of all quantities and differences: with the benchmark where several have one of that name."""
    titles = {_key(number): number.title for number in numbers}
    several = Counter(titles.values())
    return {key: f"{key[0]} {title}" if several[title] > 1 else title for key, title in titles.items()}


def _chosen(names: Sequence[str], heads: Mapping[Key, str], known: Iterable[Key]) -> list[Key]:
    """The quantities that are asked for, or those of `MAIN` and their differences that the chosen methods have."""
    if not names:
        chosen = [key for name in MAIN for key in dict.fromkeys(known) if key[1] == name]
        if not chosen:
            listed = ", ".join(heads.values())
            raise CreditError(f"the files have none of {', '.join(MAIN)}; expected --quantity: {listed}")
        return chosen
    asked: dict[Key, None] = {}
    for name in names:
        short = {key: key[1] + " less" * bool(key[2]) for key in heads}  # one name for all differences
        of_name = [key for key, text in short.items() if name in (heads[key], text, f"{key[0]} {text}")]
        if not of_name:
            raise CreditError(f"the files have no quantity {name!r}. {near_names(name, heads.values())}")
        asked |= dict.fromkeys(of_name)
    return list(asked)


def _known(names: Sequence[str], found: Iterable[Measured]) -> list[str]:
    """The methods that are asked for, or all."""
    known = list(dict.fromkeys(number.method for number in found))
    for name in names:
        if name not in known:
            raise CreditError(f"the files have no number of {name!r}. {near_names(name, known)}")
    return list(names) or known


def _agreed(found: Sequence[tuple[Measured, str]], chosen: Sequence[Key], methods: Sequence[str]) -> list[Measured]:
    """The chosen numbers of some methods, each once, in which no two files may contradict each other."""
    kept: dict[tuple[Any, ...], tuple[Measured, str]] = {}
    order = ((key, name) for key in chosen for name in methods)
    for number, where in (one for at in order for one in found if (_key(one[0]), one[0].method) == at):
        first, place_of_first = kept.setdefault((_run(number), _key(number)), (number, where))
        if repr(first[2:5]) != repr(number[2:5]):  # marks are of what else a run had
            both = f"{number.title} {number.value:g} of {number.method}, and {place_of_first} has {first.value:g}"
            raise CreditError(f"{where} has {both} under the same settings; expected one number: leave out one file")
    return [number for number, _ in kept.values()]


def _read(files: Sequence[Path]) -> Iterator[tuple[Measured, str]]:
    """The numbers of all files, each with its line."""
    from graphs.reading.tables.rows import read_rows

    for path in files:
        for line, row in read_rows(path, lists=None):
            if not isinstance(row, dict):
                raise TraceError(row.problem)
            yield _measured(where := f"{path}:{line}", row), where


def _measured(where: str, row: dict[str, Any]) -> Measured:
    values: dict[str, Any] = {}
    for name in Measured._fields[:-1]:  # without what the screen showed
        if name not in row and name not in ("about", "source"):  # which earlier releases did not write
            raise CreditError(f"{where} has no {name}; expected {FILES}")
        value = row.get(name)
        kind = float if name in REAL else int if name in WHOLE else str
        try:
            values[name] = kind(value) if value not in (None, "") else math.nan if name in REAL[:3] else None
        except ValueError as error:
            raise CreditError(f"{where} has {name} {excerpt(value)}; expected a number, in {FILES}") from error
    number = Measured(
        **values
        | {
            name: values[name] or ""
            for name in ("quantity", "less", "mark", "why", "bench", "settings", "given", "caveats", "about", "source")
        }
    )
    if number.quantity in COUNTS and not number.why:  # JSON has no infinity
        if math.isnan(number.high) and not math.isnan(number.low):
            number = number._replace(high=math.inf)
        if math.isnan(number.value):
            number = number._replace(value=math.inf)
    if math.isnan(number.value):
        return number._replace(shown=LEFT_OUT * number.is_absent)
    if EQUAL in number.mark:
        return number._replace(shown=EQUAL, mark=number.mark.removeprefix(EQUAL).lstrip())
    if number.quantity not in COUNTS:
        return number
    return number._replace(shown=bench_train.within(number.value, (number.low, number.high), bench_train.count_text))
