"""`--table FILE` of benchmarks: what they measured, one number a line, in the same columns for all; or LaTeX."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import click

from credit.cli.benchmarks.latex_text import typeset
from credit.cli.benchmarks.measured import (
    LEFT_OUT,
    MARKS,
    OPTIONS,
    REFUSED,
    SETTINGS,
    Measured,
    brackets,
    condition,
    holds,
    of_all_sizes,
    refused,
    said,
    settings_of_worlds,
    shared_conditions,
    table_of,
    told_of_worlds,
)
from credit.cli.shared.answers import stderr, words
from credit.cli.shared.commands import Number
from credit.cli.shared.outputs import check_folder, save_table, table_path
from graphs.text import printable

__all__ = [
    "COLUMN",
    "TEXT",
    "Column",
    "Told",
    "absent_notes",
    "columns_of",
    "in_blocks",
    "label_of",
    "latex",
    "long_table_option",
    "of_benchmarks",
    "save_latex",
    "save_numbers",
    "table_or_latex",
    "without_advice",
]

TEXT, COLUMN, APART = 397.0, 252.0, 12.0
"""Points: how wide a page of one column is, one of the two of a paper, and from one column of a table to the next."""
SIZES = {"": 5.0, r"\footnotesize": 4.25, r"\scriptsize": 3.98}
"""By type the points of a digit of Computer Modern, as which each character counts."""
LAYOUTS = [("", False), *((size, True) for size in SIZES)]
"""Type, and whether intervals stand below their numbers: the first that has room."""
_NONE: Mapping[str, str] = MappingProxyType({})
_NUMBER = re.compile(r"(?<![\w.])([+-]?)(\d(?:[\d,.]*\d)?)(?:e([+-])0*(\d+))?")
_ADVICE = re.compile(r"--[a-z]|\bcredit bench ")
_CLAUSE = re.compile(r"(?<=[.;]) ")
_ASIDE = re.compile(r" \((?=--[a-z]|`?credit bench )[^()]*\)")


def table_or_latex(context: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """A path that a table can be written to, or LaTeX; checked before all else."""
    if path is None or path.suffix != ".tex":
        return table_path(context, parameter, path)
    check_folder(path, parameter.opts[0])
    return path


def width_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--width POINTS` of LaTeX."""
    return click.option(
        "--width", type=Number(100), default=TEXT, show_default=True, metavar="POINTS",
        help="How wide a page is for tables in LaTeX; a column of a paper has about 240, both 505.",
    )(command)  # fmt: skip


def long_table_option(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--table FILE`, under further names too, and `--width`; a path is checked before all else."""

    alone = " So is `-o` here, not in snr and train." * ("-o" in names)

    table = click.option(
        "--table",
        *names,
        "table",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=table_or_latex,
        help="Also write all numbers, one a line, in the same columns for bias, truth, snr and train: .csv, .parquet, "
        ".jsonl or .arrow, which `bench table` and `bench plot` read; or .tex, a LaTeX table of each quantity, for "
        f"the package booktabs.{alone}",
    )
    return lambda command: table(width_option(command))


def save_numbers(
    numbers: Sequence[Measured], path: Path | None, notes: Mapping[str, str] = _NONE, page: float = TEXT
) -> None:
    """Write numbers by the suffix of a path, if there is one; in LaTeX with `OPTIONS`, else as `latex`."""
    if path is None:
        return
    if path.suffix != ".tex":
        save_table(table_of(numbers), path)
        return
    of_all = "; ".join(filter(None, [*said(numbers, "about"), notes.get("", ""), OPTIONS]))
    save_latex(latex(numbers, path.stem, {**notes, "": of_all}, page), path, (number.source for number in numbers))


def save_latex(text: str, path: Path, sources: Iterable[str]) -> None:
    """Write a table whole or not at all, with a comment on each command that made it, and print its name."""
    from graphs.atomic import atomic_write

    made_by = "".join(f"% {printable(one, 2000)}\n" for one in dict.fromkeys(sources) if one)
    with atomic_write(path) as file:
        file.write((made_by + "% needs \\usepackage{booktabs}\n" + text).encode())
    stderr().print(words(f"wrote {path}"), soft_wrap=True)


def latex(numbers: Sequence[Measured], name: str, notes: Mapping[str, str] = _NONE, page: float = TEXT) -> str:
    r"""A LaTeX table of each quantity, a line a method and a column a condition, for the package booktabs.

    Cells are those of the printed table. Conditions that all its numbers share stand in its caption, and what they mean
    in notes below it; what is of all tables, and `SETTINGS` that are the same throughout, below the first one, to which
    the others refer. What is wider than a column of a paper is a `table*`, and what is wider than a page has its
    intervals below their numbers, smaller type, or columns below each other. A number of one trace stands at each size
    of groups that others have.

    Args:
      numbers: one or more.
      name: of the file, with which each label begins.
      notes: what stands below of quantities by their names, of differences by "less", of all by "", and of `MARKS`
        where a table has them.
      page: points, the width of tables.

    Examples:
      >>> print(latex([Measured("rloo", "bias", 0.0, world="relay-and", group_size=2),
      ...              Measured("mine:a_b", "bias", -2e-5, world="relay-and", group_size=2)], "small"))
      \begin{table}
      \caption{bias (relay-and, groups of 2)}
      \label{tab:small-bias}
      \centering
      \begin{tabular}{lr}
      \toprule
      method & bias \\
      \midrule
      rloo & 0 \\
      mine:a\_b & $-2 \times 10^{-5}$ \\
      \bottomrule
      \end{tabular}
      \end{table}
      <BLANKLINE>
    """
    tables: dict[tuple[str, str], list[Measured]] = {}
    for number in numbers:
        tables.setdefault((number.quantity, number.less), []).append(number)
    throughout = []
    for setting in SETTINGS:
        cells = [number.cell for number in tables.get((setting, ""), ()) if not number.is_absent]
        if len(cells) < len(numbers) and len(set(cells)) == 1:
            throughout.append(f"{setting}: {cells[0]} throughout")
            del tables[setting, ""]
    of_all = [
        *told_of_worlds(tables.values()),
        notes.get("", ""),
        "; ".join(said(numbers, "given")),
        *refused(numbers),
        *said(numbers, "caveats"),
    ]
    texts, see = [], ""
    for of_table in tables.values():
        title, quantity = of_table[0].title, of_table[0].quantity
        of_quantity = [
            f"{head}: {notes[key]}" for key, head in {quantity: quantity, "less": title}.items()
            if notes.get(key) and (key != "less" or title != quantity)
        ]  # fmt: skip
        marks = " ".join([*throughout, *(number.mark for number in of_table)])
        of_marks = [notes[mark] for mark in MARKS if mark in marks and mark in notes]
        absent = absent_notes(of_table)
        of, alone = of_all_sizes(of_table)
        shared = shared_conditions(of)
        about = condition(of[0], shared)
        below = [*brackets(of), *throughout, *of_quantity, *of_all, *of_marks, *absent, *alone]
        columns = [column._replace(below=column.below or quantity) for column in columns_of(of, shared)]
        methods = list(dict.fromkeys(number.method for number in of))
        caption = f"{holds(of)} ({about})" if about else holds(of)
        texts.append(side_by_side(columns, methods, f"{name} {title}", caption, below, see, page))
        if any(of_all):
            see = rf"; notes: Table~\ref{{{label_of(f'{name} {title}')}}}"
        throughout, of_all = [], []
    return "\n".join(texts)


def absent_notes(numbers: Iterable[Measured], head: Callable[[Measured], str] = lambda number: "") -> list[str]:
    """Which numbers there are not and why, those that a method refused apart from those that were left out.

    Args:
      numbers: some of which are absent.
      head: what a method lacks, in words.
    """
    from credit.bench.refusals import Absent, absent_caption

    absent = [(n.shown == REFUSED, Absent(n.method, head(n), n.why)) for n in numbers if n.is_absent]
    told = {word: absent_caption(one for of, one in absent if of == (word == REFUSED)) for word in (LEFT_OUT, REFUSED)}
    return [word + text.removeprefix(LEFT_OUT) for word, text in told.items() if text]


class Column(NamedTuple):
    """Numbers of one quantity under one condition.

    Attributes:
      bench, head: the benchmark, and what the numbers are; "" of one that a caption has.
      below: the condition.
      cells: by method.
      numbers: in the cells.
    """

    bench: str
    head: str
    below: str
    cells: dict[str, str]
    numbers: list[Measured]


def columns_of(numbers: Sequence[Measured], shared: set[str], head: str = "") -> list[Column]:
    """A column for each of the conditions that are not shared, without the settings that its world has in all."""
    columns: dict[str, Column] = {}
    of_world = settings_of_worlds(numbers)
    for number in numbers:
        below = condition(number, shared | of_world[number.world], others=True)
        column = columns.setdefault(below, Column(number.bench, head, below, {}, []))
        column.cells[number.method] = number.cell
        column.numbers.append(number)
    return list(columns.values())


Width = Callable[[Sequence[Column]], float]
"""Of columns beside each other."""


def in_blocks(columns: Sequence[Column], room: float, width: Width) -> list[list[Column]]:
    """Columns beside each other: all where they have room, else those of a benchmark, whole quantities if they fit.

    A benchmark has as few blocks as it can, about as wide as each other.
    """
    if width(columns) <= room:
        return [[*columns]]
    blocks: list[list[Column]] = []
    for _, of_bench in itertools.groupby(columns, lambda column: column.bench):
        pieces: list[list[Column]] = []
        for _, of_head in itertools.groupby(of_bench, lambda column: column.head):
            part = [*of_head]
            pieces += [part] if width(part) <= room else _whole_groups(part, room, width)
        joined: list[tuple[int, float, list[list[Column]]]] = [(0, 0.0, [])]  # of the first pieces: the fewest blocks
        for end in range(1, len(pieces) + 1):
            ways = []
            for first in range(end):
                block = [column for piece in pieces[first:end] for column in piece]
                if first + 1 == end or width(block) <= room:
                    count, uneven, before = joined[first]
                    ways.append((count + 1, uneven + width(block) ** 2, [*before, block]))
            joined.append(min(ways, key=lambda way: way[:2]))
        blocks += joined[-1][2]
    return blocks


def _whole_groups(columns: Sequence[Column], room: float, width: Width) -> list[list[Column]]:
    """Columns of one quantity, those of one first condition together; of more than have room about as many a piece."""
    groups = [[*of] for _, of in itertools.groupby(columns, lambda column: column.below.split(", ")[0])]
    if len(groups) == len(columns):
        groups = [[*columns]]
    pieces: list[list[Column]] = []
    for group in groups:
        for parts in range(1, len(group) + 1):
            ends = [round(len(group) * part / parts) for part in range(parts + 1)]
            tried = [group[first:last] for first, last in itertools.pairwise(ends)]
            if max(map(width, tried)) <= room:
                break
        pieces += tried
    return pieces


class Told(NamedTuple):
    """What stands beside the numbers of a benchmark.

    Attributes:
      quantities: their heads.
      about: the benchmark, its conditions, and what it gave to methods.
      notes: lines below the tables.
    """

    quantities: str
    about: tuple[str, ...]
    notes: list[str]

    @property
    def caption(self) -> str:
        """As the screen has it."""
        return f"{self.quantities} ({'; '.join(self.about)})"


MOST_WORDS, MOST_LINES = 60, 48
"""Of a caption, where what has no room is a note; and of a float, whose page has a little more."""


def of_benchmarks(
    columns: Sequence[Column],
    methods: Sequence[str],
    name: str,
    told: Mapping[str, Told],
    last: Sequence[str],
    page: float = TEXT,
) -> str:
    """One LaTeX table of all columns, if they and its caption have room, else of each quantity or of what fits a page.

    What all columns of a table are of stands in its caption alone.

    Args:
      columns, methods: in order.
      name: of the file, for labels.
      told: by benchmark.
      last: notes of all.
      page: points, the width of tables.
    """
    blocks = in_blocks(columns, *_room(methods, page, *LAYOUTS[-1]))
    notes = {bench: of.notes for bench, of in told.items()}
    about = {bench: of.about for bench, of in told.items()}

    def captioned(some: Sequence[Column], shared: Sequence[str] = ()) -> str:
        of_bench: dict[str, list[Measured]] = {}
        for column in some:
            of_bench.setdefault(column.bench, []).extend(column.numbers)
        texts = []
        sure = {bench: {n.confidence for n in of if n.confidence and "(" in n.cell} for bench, of in of_bench.items()}
        unlike = len(set().union(*sure.values())) > 1
        for bench, numbers in of_bench.items():
            run, _, conditions = "".join(about[bench][:1]).partition(": ")
            of_run = ": ".join(filter(None, [run, ", ".join(filter(None, [*shared, conditions]))]))
            kinds = [" and ".join(f"{100 * one:.2g} %" for one in sorted(sure[bench])) + " intervals"] * bool(
                sure[bench]
            )
            all_of = "; ".join(filter(None, [of_run, *about[bench][1:], *kinds * unlike]))
            texts.append(holds(numbers) + (f" ({all_of})" if all_of else ""))
        return "; ".join(texts)

    if len(blocks) == 1 and len(told) > 1 and len(captioned(columns).split()) > MOST_WORDS:
        blocks = [[*of] for _, of in itertools.groupby(columns, lambda column: column.bench)]
    for bench, of in told.items():
        if len(captioned([column for column in columns if column.bench == bench]).split()) > MOST_WORDS:
            about[bench], notes[bench] = (), [*of.about, *of.notes]
    texts: list[str] = []
    labels: dict[str, str] = {}
    parts: Counter[str] = Counter()
    floats = _floats(blocks, notes, page)
    for block in floats:
        of_block = list(dict.fromkeys(column.bench for column in block))
        parts[of_block[0]] += 1
        further = f" {parts[of_block[0]]}" * (of_block[0] in labels)
        label = name if len(floats) == 1 else f"{name} {of_block[0]}{further}"
        see = "".join(rf"; notes: Table~\ref{{{labels[bench]}}}" for bench in of_block if bench in labels)
        below = [note for bench in of_block if bench not in labels for note in notes[bench]] + [*last] * (not texts)
        shared, plain = _without_shared(block)
        texts.append(side_by_side(plain, methods, label, captioned(block, shared), below, see, page))
        labels |= {bench: label_of(label) for bench in of_block if bench not in labels}
    return "\n".join(texts)


def _floats(blocks: Sequence[list[Column]], notes: Mapping[str, Sequence[str]], page: float) -> list[list[Column]]:
    """Blocks of one quantity below each other in one float, as many as a page has room for; others alone.

    Those of one world, or of another first condition, stay together.
    """
    floats: list[list[Column]] = []
    noted: set[str] = set()
    last, lines = {""}, 0.0
    of_one = itertools.groupby(blocks, lambda block: ({c.head for c in block}, block[0].below.split(", ")[0]))
    for (of, _), group in of_one:
        together, takes = [*group], 0
        for block in together:
            cells = [cell for column in block for cell in column.cells.values()]
            stacked = any(_lines(cell, True)[1] for cell in cells)
            takes += len(block[0].cells) * (1 + stacked) + 4 + block[0].below.count(", ")
        bench = together[0][0].bench
        if len(of) > 1 or of != last or lines + takes > MOST_LINES:
            floats.append([])
            lines = 0.0 if bench in noted else sum(map(len, notes[bench])) * SIZES[r"\footnotesize"] / page
        floats[-1] += itertools.chain.from_iterable(together)
        noted.add(bench)
        last, lines = of, lines + takes
    return floats


def _without_shared(columns: Sequence[Column]) -> tuple[list[str], list[Column]]:
    """The conditions that several columns of a benchmark share, and the columns without them and without one head."""
    if len({column.bench for column in columns}) > 1 or len(columns) < 2:
        return [], [*columns]
    conditions = [[*filter(None, column.below.split(", "))] for column in columns]
    shared = [text for text in conditions[0] if all(text in of for of in conditions)]
    one_head = len({column.head for column in columns}) == 1
    return shared, [
        column._replace(head=column.head * (not one_head), below=", ".join(text for text in of if text not in shared))
        for column, of in zip(columns, conditions, strict=True)
    ]


def _room(methods: Sequence[str], page: float, size: str, stacked: bool) -> tuple[float, Width]:
    """Points beside the column of methods, and how many columns take with their heads."""
    digit, small = SIZES[size], min(SIZES.values())

    def of_one(column: Column) -> float:
        numbers, intervals = zip(*(_lines(cell, stacked) for cell in column.cells.values()), strict=True)
        texts = (*column.below.split(", "), *numbers)
        return APART + max(digit * max(map(len, texts)), small * max(map(len, intervals)))

    def width(columns: Sequence[Column]) -> float:
        heads = itertools.groupby(columns, lambda column: column.head)
        return sum(max(APART + digit * len(head), sum(map(of_one, of))) for head, of in heads)

    return page - APART - digit * max(map(len, ("method", *methods))), width


def side_by_side(
    columns: Sequence[Column],
    methods: Sequence[str],
    name: str,
    caption: str,
    notes: Sequence[str],
    see: str,
    page: float,
) -> str:
    """One LaTeX table, a line a method, the conditions of columns below their quantity, and notes below all.

    What has no room is in several blocks below each other.

    Args:
      columns, methods: in order.
      name: of the file, for the label.
      caption, notes: in words.
      see: LaTeX at the end of the caption.
      page: points, the width of tables.
    """
    least = len(in_blocks(columns, *_room(methods, page, *LAYOUTS[-1])))
    for size, stacked in LAYOUTS:
        room, width = _room(methods, page, size, stacked)
        blocks = in_blocks(columns, room, width)
        if len(blocks) == least and max(map(width, blocks)) <= room:
            break
    star = "*" * (page - room + max(map(width, blocks)) > COLUMN)
    lines = [typeset(note) + r"\par" for note in map(without_advice, notes) if note]
    below = [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize", *lines, r"\end{minipage}"]
    return "\n".join([
        rf"\begin{{table{star}}}", rf"\caption{{{typeset(caption)}{see}}}", rf"\label{{{label_of(name)}}}",
        r"\centering", *[size] * bool(size),
        "\n\\par\\medskip\n".join(_tabular(block, methods, stacked) for block in blocks),
        *below * bool(lines), rf"\end{{table{star}}}", "",
    ])  # fmt: skip


def without_advice(text: str) -> str:
    """What a paper says of it: without the clauses that name a command or an option.

    Examples:
      >>> without_advice("a trains as b. To see whether they differ: --optimizer sgd. One task; see --groups 2")
      'a trains as b. One task'
      >>> without_advice("left out: a (9 groups; expected 8 (--most)) and b (no; --all)")
      'left out: a (9 groups; expected 8) and b (no)'
    """
    kept: list[str] = []
    for clause in _CLAUSE.split(_ASIDE.sub("", text)):
        if not _ADVICE.search(clause):
            kept.append(clause)
        elif kept and (closed := clause.count(")") - clause.count("(")) > 0:  # a bracket that an earlier one opened
            kept[-1] = kept[-1].rstrip(";.") + ")" * closed + clause[-1] * (clause[-1] in ";.")
    return " ".join(kept).rstrip(";")


def label_of(name: str, kind: str = "tab") -> str:
    """A label of LaTeX.

    Args:
      name: any text.
      kind: what it labels.
    """
    return f"{kind}:" + re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")


def _lines(cell: str, stacked: bool) -> tuple[str, str]:
    """A number with its marks, and its interval where that is to stand below it."""
    found = re.fullmatch(r"(.+?) (\(.* to .*\))(.*)", cell) if stacked else None
    return (found[1] + found[3], found[2]) if found else (cell, "")


def _tabular(columns: Sequence[Column], methods: Sequence[str], stacked: bool) -> str:
    below = itertools.zip_longest(*(filter(None, column.below.split(", ")) for column in columns), fillvalue="")
    levels = [*[tuple(column.head for column in columns)] * bool(columns[0].head), *below]
    heads: list[str] = []
    for number in range(len(levels)):
        last, at, rules = number + 1 == len(levels), 2, ""
        runs = [(run[-1], len([*of])) for run, of in itertools.groupby(zip(*levels[: number + 1], strict=True))]
        row, joined = ["method" if last else ""], not last and any(n > 1 for _, n in runs)
        for text, n in runs:
            joins = joined or (number == 0 and bool(columns[0].head))
            row += [rf"\multicolumn{{{n}}}{{c}}{{{typeset(text)}}}"] if joins else [typeset(text)] * n
            rules += rf"\cmidrule(lr){{{at}-{at + n - 1}}}" * (joins and not last)
            at += n
        heads += [" & ".join(row) + r" \\", *[rules] * bool(rules)]
    body = []
    for method in methods:
        cells = (_lines(column.cells.get(method, "–"), stacked) for column in columns)
        numbers, intervals = zip(*cells, strict=True)
        body.append([typeset(method), *map(_numbers, numbers)])
        if any(intervals):
            body.append(["", *(rf"{{\scriptsize {_numbers(text)}}}" if text else "" for text in intervals)])
    rows = [" & ".join(line) + r" \\" for line in body]
    return "\n".join([
        rf"\begin{{tabular}}{{l{'r' * len(columns)}}}", r"\toprule", *heads, r"\midrule", *rows, r"\bottomrule",
        r"\end{tabular}",
    ])  # fmt: skip


def _numbers(cell: str) -> str:
    """A cell with its signs and powers of ten as mathematics."""

    def one(found: re.Match[str]) -> str:
        sign, digits, below, power = found.groups()
        ten = rf" \times 10^{{{below.strip('+')}{power}}}" if power else ""
        return f"${sign}{digits.replace(',', '{,}')}{ten}$" if sign or ten else digits

    return _NUMBER.sub(one, typeset(cell))
