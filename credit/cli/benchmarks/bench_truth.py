"""`credit bench truth`: advantages beside the true increments of drawn logs."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.bench.given_values import GIVEN_VALUES, unpaid, values_given
from credit.cli.benchmarks.long_table import long_table_option, save_numbers
from credit.cli.benchmarks.measured import EQUAL, LEFT_OUT, OFFSET, Measured, of_run, said, with_absent
from credit.cli.benchmarks.to_write import print_to_write, to_write
from credit.cli.shared.answers import json_option, print_json, ruled_table, stderr, stdout, words
from credit.cli.shared.claims import tell_unchecked
from credit.cli.shared.commands import SEED, Command, named_worlds, several_methods, whole_numbers
from credit.cli.shared.outputs import check_room, picture_option, save_picture
from credit.cli.shared.progress import progress_bar
from credit.cli.shared.provenance import source
from credit.methods.own_functions import is_own

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from credit.bench.against_truth import Difference, Draw, Match, Scored
    from credit.bench.refusals import Absent

__all__ = ["truth"]

DRAWN = "drawn logs, at decisions with a choice"
METHODS = ("rloo", "grpo", "dr_mas", "turn_baseline", "gae")
NOTES = (
    "slope: of the advantage on the true increment, Σ A D / Σ D²; 1: all of the true credit is in the advantage, on "
    "average; a method that divides by a spread has another slope without a wrong direction",
    "correlation: of advantages with true increments; 1: no noise but perhaps an offset, one number added to all. "
    "Neither that nor a scale changes it; `credit bench bias --score variance` and `credit bench snr` count an offset",
    "sign: part of the advantages, none centred, with the sign of the true increment, where neither is 0 up to "
    "rounding; a baseline without bias may put it below 0.5 where outcomes are skewed",
    "answered: part of the decisions that have an advantage",
    "in brackets: 95 % intervals over groups of traces, none below 40",
    "less: on the same logs, over the decisions that both answer; of sign, over those where neither is 0",
)
OF_PAIRS = ", with 95 % intervals of pairs where five or more groups differ, not corrected for how many there are"
LEGENDS = {name: text for name, _, text in (note.partition(": ") for note in NOTES)}


def _known(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    from credit.bench.own_worlds import TEAMS
    from graphs.worlds import TeamWorld

    return named_worlds(ctx, param, names, TeamWorld, TEAMS)


@click.command(
    cls=Command,
    short_help="Compare advantages with true increments on drawn logs.",
    examples="""
    credit bench truth --method rloo --method mine:estimator --plot truth.pdf
    credit bench truth --method mine:estimator --world pivotal --topology debate --agents 4
    """,
)
@several_methods(
    f"Method, or your own function as module:function. By commas or repeated; by default {', '.join(METHODS)}. "
    f"{GIVEN_VALUES['truth'].capitalize()}."
)
@click.option(
    "--world",
    "worlds",
    multiple=True,
    callback=_known,
    metavar="KIND",
    help="Kind of outcome, of `credit bench worlds`, or your own `TeamWorld` as [NAME=]module:name. By commas or "
    "repeated.",
)
@click.option("--topology", default="swarm", show_default=True, help="Form of the team, as in docs/worlds.md.")
@click.option("--agents", default=5, show_default=True, help="Agents of the team.")
@click.option("--events", default=100, show_default=True, help="Events of a trace with all agents.")
@click.option("--traces", default=400, show_default=True, help="Traces to draw, a multiple of the group size.")
@click.option(
    "--group-size",
    "group_sizes",
    callback=whole_numbers,
    metavar="K,...",
    help="Traces of a group; of each size logs of their own.  [default: 8; your own world states its own]",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all draws.")
@long_table_option("--output", "-o")
@picture_option
@json_option
def truth(
    methods: tuple[str, ...],
    worlds: tuple[str, ...],
    topology: str,
    agents: int,
    events: int,
    traces: int,
    group_sizes: tuple[int, ...] | None,
    seed: int,
    table: Path | None,
    width: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare the advantages of methods with the true increment of every decision.

    Logs are drawn from worlds whose truth has a closed form: teams of any form and size, larger than those that
    `bench bias` can enumerate.
    """
    from credit.bench.against_truth import Match, differences, draw, team_of
    from credit.bench.refusals import COUNTED, LeftOut, absent_lines, refused_lines
    from credit.bench.world_texts import world_text
    from credit.methods.published import find_method
    from graphs.worlds import KINDS

    names = methods or METHODS
    for name in names:
        find_method(name)  # before anything is drawn
    stated = click.get_current_context().get_parameter_source
    given = [
        name for name in ("topology", "agents", "events") if stated(name) is not click.core.ParameterSource.DEFAULT
    ]
    if given and worlds and all(map(is_own, worlds)):
        raise click.UsageError(f"--{given[0]} does not go with the world {worlds[0]}: that states its team")
    tell_unchecked(names)
    values = values_given("truth", {need for name in names for need in find_method(name).needs})
    todo = worlds or KINDS
    places = []
    for world in todo:  # each is refused before any is drawn
        own_team = functools.partial(team_of, world, topology=topology, agents=agents, events=events)
        sizes = [own_team(traces=traces, group_size=k).group_size for k in group_sizes or (None,)]
        places += [(world, k) for k in sizes]
        if is_own(world) and sizes != [own := own_team().group_size]:
            used = f"--group-size {', '.join(map(str, sizes))} is used"
            stderr().print(words(f"{world} states groups of {own}; {used}"), soft_wrap=True)
    picture = functools.partial(_drawn, values=values)
    if plot is not None:
        check_room(
            lambda: picture(
                [
                    Match(
                        name,
                        world,
                        1,
                        0.5,
                        0.5,
                        0.5,
                        0.5,
                        0.5,
                        0.5,
                        0.5,
                        0.5,
                        0.5,
                        1.0,
                        groups=traces // k,
                        group_size=k,
                    )
                    for world, k in places
                    for name in names
                ]
            )
        )
    teams = {world: team_of(world, topology=topology, agents=agents, events=events) for world in todo}
    form = {"topology": topology, "agents": agents, "events": events}
    rows: list[Match] = []
    left_out = LeftOut()
    less: list[Difference] = []
    with progress_bar(stderr()) as bar:
        task = bar.add_task("", total=len(places) * len(names))
        for world, k in places:
            bar.update(task, description=world)
            of_team: dict[str, Any] = {} if is_own(world) else form
            drawn = draw(world, **of_team, traces=traces, group_size=k, seed=seed)
            first = None
            for name in names:
                bar.update(task, description=f"{world}, {name}")
                found = left_out.try_one(name, world, functools.partial(_scored, drawn, name))
                if found is not None:
                    rows.append(found.match)
                    if found.match.answered:
                        less += differences(found, first) if first else []
                        first = first or found
                bar.advance(task)
    left_out.check(rows)
    todo = tuple(dict.fromkeys(row.world for row in rows))
    draws = {"traces": traces, "seed": seed}
    numbers = of_run(
        with_absent(_numbers(rows, less), left_out.absent),
        "truth",
        lambda number: {name: getattr(teams[number.world or ""], name) for name in form} | draws,
        lambda name: values_given("truth", find_method(name).needs),
        about=lambda number: [
            DRAWN,
            f"{number.world}: {world_text('truth', number.world or '').rstrip('.')}",
        ],
    )
    legends = _legends(rows, less)
    save_numbers(numbers, table, legends | {"": legends["in brackets"].removeprefix(LEGENDS["in brackets"])}, width)
    if as_json:
        team: dict[str, Any] = {} if all(map(is_own, todo)) else form
        team = {**team, "traces": traces}
        told = {"rows": [_plain(dataclasses.asdict(row)) for row in rows]}
        told |= {"differences": [_plain(line._asdict()) for line in less]}
        print_json({"team": team, "seed": seed, **told, "left_out": [one._asdict() for one in left_out.absent],
                    "caveats": said(numbers, "caveats"), "to_write": to_write(numbers),
                    "source": source()})  # fmt: skip
    else:
        for place in dict.fromkeys((row.world, row.group_size) for row in rows):
            here = [n for n in numbers if (n.world, n.group_size) == place]
            absent = dict.fromkeys(n.method for n in here if n.shown == LEFT_OUT)
            stdout().print(_table([row for row in rows if (row.world, row.group_size) == place], absent))
            if of_place := [line for line in less if (line.world, line.group_size) == place]:
                stdout().print(_differences(of_place))
        lines = refused_lines(((row.method, row.answered, row.refused) for row in rows), COUNTED["truth"])
        notes = [f"{name}: {text}" for name, text in legends.items() if less or name != "less"]
        notes += unpaid(dict.fromkeys(row.method for row in rows))
        for line in filter(None, [*absent_lines(left_out.absent), *lines, *notes, values]):
            stdout().print(words(line), soft_wrap=True)
        print_to_write(to_write(numbers))
    if plot is not None:
        save_picture(picture(rows, absent=left_out.absent), plot)


def _legends(rows: list[Match], less: list[Difference]) -> dict[str, str]:
    """What the scores are, by name, with a word on intervals where there are any."""
    from credit.bench.against_truth import LEAST_GROUPS, SCORES

    legends = LEGENDS | {"less": LEGENDS["less"] + OF_PAIRS * any(not math.isnan(line.low) for line in less)}
    if all(math.isnan(_ends(row, score)[1]) for row in rows for score in SCORES):
        enough = LEAST_GROUPS * math.lcm(*(row.group_size for row in rows))
        legends["in brackets"] = (
            f"no 95 % intervals, of fewer than {LEAST_GROUPS} groups of traces; --traces {enough} draws {LEAST_GROUPS}"
        )
    return legends


def _numbers(rows: list[Match], less: list[Difference]) -> list[Measured]:
    from credit.bench.against_truth import SCORES

    scores = [
        Measured(row.method, name, *_ends(row, name), 0.95, row.counted(name), "", row.world, row.group_size,
                 why=row.refused, independent=row.groups, shown=_score(row, name))
        for row in rows for name in SCORES
    ]  # fmt: skip
    return scores + [
        Measured(line.method, line.score, line.difference, line.low, line.high, 0.95, line.decisions, line.first,
                 line.world, line.group_size, independent=line.groups, shown=_less(line), mark=_mark(line))
        for line in less
    ]  # fmt: skip


def _ends(row: Match, score: str) -> tuple[float, float, float]:
    """A score with the ends of its interval, NaN where there is none."""
    return getattr(row, score), getattr(row, f"{score}_low", math.nan), getattr(row, f"{score}_high", math.nan)


def _drawn(rows: list[Match], *, values: str, absent: Sequence[Absent] = ()) -> Figure:
    from credit.plot import draw_truth

    return draw_truth(rows, values=values, absent=absent)


def _scored(drawn: Draw, name: str) -> Scored:
    """The scores of a method whose evidence the drawn logs have; another one is refused before it is compiled."""
    from credit.bench.against_truth import lacking, score_by_group
    from credit.methods.own_results import UnmeasuredError
    from credit.methods.published import find_method

    if lack := lacking(drawn, find_method(name).needs):
        raise UnmeasuredError(f"method {name!r} needs {', '.join(lack)}, which the drawn logs do not have")
    return score_by_group(drawn, name)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in values.items()}


def _table(rows: list[Match], absent: Iterable[str]) -> Table:
    from credit.bench.against_truth import SCORES
    from credit.bench.rounding import decimals, fixed

    groups = " to ".join(f"{k:,}" for k in sorted({f([row.groups for row in rows]) for f in (min, max)}))
    title = f"{rows[0].world}: {rows[0].decisions:,} decisions, answers in {groups} groups of {rows[0].group_size}"
    table = ruled_table("method", *(f"#{score}" for score in SCORES), title=title)
    places = decimals(row.answered for row in rows)
    for row in rows:
        table.add_row(words(row.method), *(_score(row, score) or fixed(row.answered, places) for score in SCORES))
    for name in absent:
        table.add_row(words(name), *[LEFT_OUT] * len(SCORES))
    return table


def _differences(less: list[Difference]) -> Table:
    scores = list(dict.fromkeys(line.score for line in less))
    title = f"{less[0].world}: less that of {less[0].first}"
    table = ruled_table("method", *(f"#{score}" for score in scores), title=title)
    for name in dict.fromkeys(line.method for line in less):
        table.add_row(words(name), *(f"{_less(line)} {_mark(line)}".rstrip() for line in less if line.method == name))
    return table


def _less(line: Difference) -> str:
    """The difference with its interval; "equal" where single precision cannot tell the two apart."""
    from credit.bench.rounding import are_equal

    if math.isnan(line.difference):
        return "undefined"
    if are_equal(line.difference, line.low, line.high):
        return EQUAL
    middle, low, high = (_share(value, "+.3f") for value in (line.difference, line.low, line.high))
    return middle if math.isnan(line.low) else f"{middle} ({low} to {high})"


def _mark(line: Difference) -> str:
    """What an equal correlation does not say."""
    return OFFSET * line.offset


def _score(row: Match, score: str) -> str:
    """With three decimals; "" of the share of answers, which its column writes."""
    if score == "answered":
        return ""
    return _cell(*_ends(row, score)) if row.answered else "refused"


def _cell(value: float, low: float, high: float) -> str:
    return _share(value) if math.isnan(low) else f"{_share(value)} ({_share(low)} to {_share(high)})"


def _share(value: float, form: str = ".3f") -> str:
    """As benchmarks write numbers, of single precision."""
    from credit.bench.rounding import rounded
    from graphs.task_means import ROUNDING

    return rounded(value, form, exact=ROUNDING)
