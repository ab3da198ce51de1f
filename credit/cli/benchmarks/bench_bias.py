"""`credit bench bias`: bias, variance and advantage error of methods, as exact numbers by enumeration."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from credit.bench.given_values import GIVEN_VALUES, WRONG
from credit.cli.benchmarks.long_table import long_table_option, save_numbers
from credit.cli.benchmarks.measured import LEFT_OUT, Measured, of_run, said, with_absent
from credit.cli.benchmarks.to_write import print_to_write, to_write
from credit.cli.shared.answers import print_json, ruled_table, stderr, stdout, words
from credit.cli.shared.claims import alike, tell_unchecked
from credit.cli.shared.commands import Command, named_worlds, several_methods, whole_numbers
from credit.cli.shared.outputs import check_room, picture_option, save_picture
from credit.cli.shared.progress import progress_bar
from credit.cli.shared.provenance import source
from credit.methods.own_functions import is_own

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from credit.bench.bias import Row
    from credit.bench.refusals import Absent, LeftOut

__all__ = ["bias"]

_CENTRED = "; A° is an advantage less the mean advantage of its state, which a baseline may change"
LEGENDS = {
    "bias": "|E g − ∇J| / |∇J|, the distance of the mean gradient from the true one in lengths of the true one; "
    "0 is unbiased, 1 is as far off as no gradient at all; of a method that divides it changes with the unit of "
    "reward, which leaves the cosine",
    "cosine": "of the angle between the mean gradient and the true one; 1 is the same direction",
    "variance": "of the gradient, times the runs of a batch, over |∇J|²; it carries the square of a method's scale",
    "relative": "the variance over |E g|², which no scale changes: the runs of a batch over the squared signal to "
    "noise of its gradient",
    "error": "mean squared distance of A° from true increments, over the mean square of these; 0 is exact" + _CENTRED,
    "rank": "Kendall's τ-b between the mean A° of choices and true increments, where differences below a thousandth "
    "of the root mean square of each are ties; 1 is the same order" + _CENTRED,
    "sign": "part of all A° with the sign of the true increment, where neither is 0 up to rounding; a baseline "
    "without bias may put it below 0.5 where outcomes are skewed" + _CENTRED,
    "answered": "part of the decisions that have an advantage; 1 is all",
}
SCORES = tuple(LEGENDS)
MAIN = ("bias", "relative", "rank")
"""Those that are drawn, and that sentences are of, unless others are asked for."""
EXACT = "exact numbers, by enumeration of all batches, without draws"


def _known(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """The chosen worlds; what is none, or cannot be enumerated, is an error."""
    from credit.bench.own_worlds import micro_world
    from graphs.worlds.micro.examples import MICRO
    from graphs.worlds.micro.orchestration import Micro

    chosen = named_worlds(ctx, param, names, Micro, MICRO)
    for name in chosen:
        micro_world(name)
    return chosen


@click.command(
    cls=Command,
    short_help="Compute exact bias and variance by enumeration.",
    examples="""
    credit bench bias --method mt_grpo --world stop-rewards
    credit bench bias --method rloo --method mine:estimator --plot bias.svg
    credit bench bias --method mine:estimator --score all
    credit bench bias --score variance --json
    """,
)
@several_methods(
    "Method, variant ('gae, lambda 1'), published name, or your own function as module:function. By commas or "
    f"repeated. {GIVEN_VALUES['bias'].capitalize()}; {WRONG}."
)
@click.option(
    "--world",
    "worlds",
    multiple=True,
    callback=_known,
    help="World of `credit bench worlds`, or your own `Micro` as [NAME=]module:name. By commas or repeated.",
)
@click.option(
    "--score",
    type=click.Choice((*SCORES, "all")),
    default="bias",
    show_default=True,
    help="Score to print and, if given, to draw; all prints a table of each.",
)
@click.option(
    "--group-size",
    "group_sizes",
    callback=whole_numbers,
    metavar="K,...",
    help="Traces of a group or alternatives of a context, instead of 2 and 3. A median differs from a mean from 4 on.",
)
@click.option(
    "--most-batches",
    type=click.IntRange(1),
    metavar="N",
    help="Leave out rows of more groups or replay trees; 560,000 trees took 41 s and 3.8 GB.  [default: 100000]",
)
@long_table_option("--output", "-o")
@picture_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with every score.")
def bias(
    methods: tuple[str, ...],
    worlds: tuple[str, ...],
    score: str,
    group_sizes: tuple[int, ...] | None,
    most_batches: int | None,
    table: Path | None,
    width: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Run methods on every batch that a small team can produce, and compare with the true policy gradient.

    The whole table takes about five minutes. Two numbers in a cell are those of groups of 2 / 3 traces.
    """
    from credit.bench.bias import Row, beyond, cells, reasons, refusals
    from credit.bench.bias_settings import setting
    from credit.bench.refusals import Absent, LeftOut, absent_lines

    group_sizes = group_sizes or ()
    if group_sizes and min(group_sizes) < 2:
        raise click.BadParameter(f"{min(group_sizes)}; expected 2 or more", param_hint="'--group-size'")
    left_out = LeftOut()
    methods = left_out.keep(methods, "every world", setting)
    if plot is not None:
        stand_ins = [Row(*cell, *[0.5] * len(SCORES)) for cell in cells(methods, worlds, group_sizes, most_batches)]
        check_room(lambda: _drawn(stand_ins, score, group_sizes))
    tell_unchecked(methods)
    rows = _measured(cells(methods, worlds, group_sizes, most_batches), left_out)

    too_many = beyond(methods, worlds, group_sizes, most_batches)
    rows += [Row(*cell, *[math.nan] * len(SCORES)) for of in too_many.values() for cell in of]
    rows = _as_named(rows, methods, worlds)
    why = reasons(rows) if methods else {}
    lines = [*absent_lines(left_out.absent), *too_many]
    for line, of in too_many.items():
        left_out.absent += [Absent(name, world, line.partition(": ")[2], k) for name, world, k in of]
    of_own = _of_own(rows, group_sizes)
    numbers = of_run(
        _all_numbers(rows, left_out.absent, why), "bias", lambda number: {}, _given,  # conditions are all
        lambda number: of_own.get(number.method, ()), _about,
    )  # fmt: skip
    caveats, sentences = said(numbers, "caveats"), to_write(numbers, MAIN if score == "all" else (score,))
    for line in [*caveats, *(refusals(rows, why) if methods else ()), *_variants(methods)]:
        stderr().print(words(line), soft_wrap=True)
    save_numbers(numbers, table, _notes(rows), width)
    if as_json:
        from credit.bench.bias_settings import UNSCORED
        from credit.bench.bias_table import FIELDS, as_lists

        told_absent = [one._asdict() for one in left_out.absent]
        print_json({"fields": FIELDS, "rows": as_lists(rows), "unscored": UNSCORED, "left_out": told_absent,
                    "caveats": caveats, "to_write": sentences, "source": source()})  # fmt: skip
    else:
        _print(rows, score, group_sizes, left_out.absent, lines, all_methods=not methods)
        print_to_write(sentences)
    if plot is not None:
        save_picture(_drawn(rows, score, group_sizes, left_out.absent), plot)


def _as_named(rows: list[Row], methods: Sequence[str], worlds: Sequence[str]) -> list[Row]:
    """Rows by method and by world, each in the order of the call, which all tables and figures keep."""
    from graphs.worlds.micro.examples import MICRO

    of, at = methods or list(dict.fromkeys(row.method for row in rows)), worlds or [*MICRO]
    return sorted(rows, key=lambda row: (of.index(row.method), at.index(row.world)))


def _all_numbers(
    rows: list[Row], absent: Sequence[Absent], refused: Mapping[tuple[str, str, int], str]
) -> list[Measured]:
    """The scores of rows, in their order, and a line for each that is left out.

    Args:
      rows, absent: as printed.
      refused: of `reasons`.
    """
    left_out = {(one.method, one.place, one.size): one.why for one in absent}
    numbers = [
        number._replace(why=left_out.get(at, refused.get(at, "")))
        for row in rows
        for at in ((row.method, row.world, row.k),)
        for number in _numbers(row)
    ]
    return with_absent(numbers, absent)


def _notes(rows: list[Row]) -> dict[str, str]:
    """What stands below tables in LaTeX: of a score the printed legend, and of all the options of methods."""
    from credit.bench.bias_settings import setting

    options = {row.method: setting(row.method).options for row in rows}
    told = [f"{name}: {', '.join(f'{key}={value}' for key, value in of.items())}" for name, of in options.items() if of]
    return {**LEGENDS, "": "; ".join(told)}


def _about(number: Measured) -> list[str]:
    from credit.bench.own_worlds import micro_world

    return [EXACT, f"{number.world}: {micro_world(number.world or '').about.rstrip('.')}"]


def _numbers(row: Row) -> list[Measured]:
    """The scores of a row."""
    from credit.bench.bias_table import no_score

    return [
        Measured(row.method, name, getattr(row, name), world=row.world, group_size=row.k, shown=no_score(row, name))
        for name in SCORES
    ]


def _drawn(rows: list[Row], score: str, group_sizes: Sequence[int], absent: Sequence[Absent] = ()) -> Figure:
    from credit.plot import draw_methods

    stated = click.get_current_context().get_parameter_source("score") is not click.core.ParameterSource.DEFAULT
    panels = MAIN if not stated else _measured_scores(rows) if score == "all" else (score,)
    return draw_methods(rows, k=group_sizes or None, scores=panels, values=_values(rows), absent=absent)


def _measured_scores(rows: Sequence[Row]) -> list[str]:
    """The scores with something to draw: a number, and of what is answered a decision that is not."""

    def drawn(score: str, values: Iterable[float]) -> bool:
        return any(value < 1 if score == "answered" else math.isfinite(value) for value in values)

    return [score for score in SCORES if drawn(score, (getattr(row, score) for row in rows))]


def _print(
    rows: list[Row],
    score: str,
    group_sizes: Sequence[int],
    absent: Sequence[Absent],
    lines: Sequence[str],
    *,
    all_methods: bool,
) -> None:
    centred = _CENTRED  # once
    for name in SCORES if score == "all" else (score,):
        stdout().print(_table(rows, name, absent))
        stdout().print(f"{name}: {LEGENDS[name].replace(_CENTRED, centred)}.", soft_wrap=True)
        centred = "" if _CENTRED in LEGENDS[name] else centred
    for line in lines:
        stdout().print(words(line), soft_wrap=True)
    if sizes := _sizes(rows, group_sizes) if group_sizes else _pairs(rows):
        stdout().print(words(sizes), soft_wrap=True)
    if values := _values(rows):
        stdout().print(f"{values}.", soft_wrap=True)
    if all_methods:
        from credit.bench.bias_settings import UNSCORED

        for name, why in UNSCORED.items():
            stdout().print(words(f"{name} has no score: {why}"), soft_wrap=True)


def _given(method: str) -> str:
    """As `_values`, of one method, with what it alone has."""
    from credit.bench.bias_settings import given_beside

    return given_beside(method)


def _values(rows: list[Row]) -> str:
    """What the measured methods were given; "" where they take nothing."""
    from credit.bench.bias_settings import given_to

    return given_to(dict.fromkeys(row.method for row in rows))


def _variants(methods: tuple[str, ...]) -> list[str]:
    """A line about each method that is enumerated with other options or evidence too, which a call can name."""
    from credit.bench.bias_settings import family

    of = {name: [variant for variant in family(name)[1:] if variant not in methods] for name in methods}
    return [f"{name} has variants: {', '.join(map(repr, variants))}" for name, variants in of.items() if variants]


def _pairs(rows: list[Row]) -> str:
    """What the two numbers of a cell are; "" where no cell has two."""
    of: dict[bool, set[int]] = {}
    for row in rows:
        of.setdefault(_is_of_trees(row), set()).add(row.k)
    told = {False: "groups of 2 / 3 traces", True: "2 / 3 alternatives of a context"}
    pairs = [text for trees, text in told.items() if {2, 3} <= of.get(trees, set())]
    return f"Two numbers in a cell: {', or '.join(pairs)}." if pairs else ""


def _is_of_trees(row: Row) -> bool:
    """Whether alternatives of a context are compared, not traces of a group."""
    from credit.bench.bias_settings import setting

    return setting(row.method).way in ("replays", "nested")


def _sizes(rows: list[Row], group_sizes: Sequence[int]) -> str:
    """The sizes that were asked for, and the methods that are enumerated at others, such as those of one trace."""
    other: dict[str, list[str]] = {}
    for name in dict.fromkeys(row.method for row in rows):
        found = sorted({row.k for row in rows if row.method == name})
        if found != sorted(group_sizes):
            other.setdefault(" / ".join(map(str, found)), []).append(name)
    trees = {_is_of_trees(row) for row in rows if row.k in group_sizes}
    shown = " / ".join(map(str, sorted(group_sizes)))
    asked = [f"Groups of {shown} traces."] * (False in trees)
    asked += [f"{shown} alternatives of a context."] * (True in trees)
    return " ".join([*asked, *(f"Of size {k}: {'; '.join(names)}." for k, names in other.items())])


def _of_own(rows: list[Row], group_sizes: Sequence[int]) -> dict[str, list[str]]:
    """Caveats of own functions: of one without `event_reward`, to which logs give other rewards, and of one with the
    numbers of `rloo` or of an earlier one."""
    from credit.bench.bias import measure, same_as
    from credit.bench.bias_settings import setting

    lines: dict[str, list[str]] = {}
    own: dict[str, list[Row]] = {}
    for name in dict.fromkeys(row.method for row in rows if is_own(row.method)):
        of_method = [row for row in rows if row.method == name]
        lines[name] = []
        if setting(name).event_reward is None:
            here = "rewards at events were added to its outcomes here, which credit.run does not do"
            lines[name].append(f"{name} takes no event_reward: {here}")
        others = {"rloo": [measure("rloo", row.world, row.k) for row in of_method], **own}
        same = [other for other, of_other in others.items() if same_as(of_method, of_other)]
        if same:
            of_sizes = " and ".join(map(str, sorted(group_sizes or (2, 3))))
            worlds = {row.world for row in of_method}
            two = _of_two_values(worlds)
            told = f"{two} {_of_roles(worlds)}".strip()
            larger = _larger(name, same[0], sorted(worlds), max(group_sizes, default=3))
            lines[name].append(alike(name, same[0], of_sizes, larger, one_task=not two, worlds=told))
        own[name] = of_method
    return lines


def _larger(name: str, other: str, worlds: list[str], k: int) -> str:
    """A sentence on whether two methods with the same numbers differ in the next larger groups."""
    from credit.bench.bias import MOST_BATCHES, apart_at

    size, tried, world = apart_at(name, other, worlds, k)
    if size is not None:
        return f"In groups of {size} they differ in {world}; see --group-size {size}."
    if tried:
        return f"Nor do they differ in groups of {' and '.join(map(str, tried))} in {world}."
    return f"Larger groups have more than {MOST_BATCHES:,} batches."


def _of_roles(worlds: set[str]) -> str:
    """A sentence on which roles the agents have, by which an own function may compare."""
    from credit.bench.own_worlds import micro_world

    told = {world: ", ".join(dict.fromkeys(micro_world(world).roles)) for world in sorted(worlds)}
    return f"Roles: {'; '.join(f'{roles} in {world}' for world, roles in told.items())}."


def _of_two_values(worlds: set[str]) -> str:
    """A sentence for worlds whose returns all have one of two values, else ""."""
    from credit.bench.own_worlds import micro_world
    from graphs.worlds.micro.examples import MICRO

    of_more = {name for name in {*MICRO, *worlds} if len(set(micro_world(name).total.round(9).tolist())) > 2}
    more = [name for name in MICRO if name in of_more]
    if worlds & of_more:
        return ""
    here = ", ".join(sorted(worlds))
    return (
        f"Returns in {here} have two values, of which ranks tell what a mean does; in {', '.join(more)} they have more."
    )


def _measured(todo: Sequence[tuple[str, str, int]], left_out: LeftOut) -> list[Row]:
    """All rows, NaN where `left_out` takes one; with a progress bar where standard error is a terminal."""
    from credit.bench.bias import Row, measure

    rows = []
    with progress_bar(stderr()) as bar:
        task = bar.add_task("", total=len(todo))
        for name, world, k in todo:
            bar.update(task, description=name)
            row = left_out.try_one(name, world, functools.partial(measure, name, world, k), k)
            rows.append(row or Row(name, world, k, *[math.nan] * len(SCORES)))
            bar.advance(task)
    left_out.check([row for row in rows if not math.isnan(row.answered)])
    return rows


def _table(rows: list[Row], score: str, absent: Sequence[Absent]) -> Table:
    from credit.bench.bias_table import grid

    worlds, lines = grid(rows, score)
    table = ruled_table(score, *(f"#{world}" for world in worlds))
    for line in lines:
        table.add_row(*map(words, line))
    for name in dict.fromkeys(one.method for one in absent if one.method not in {row.method for row in rows}):
        table.add_row(words(name), *[LEFT_OUT] * len(worlds))
    return table
