"""`credit bench snr`: signal to noise of one decision's advantage against trace length, beside its closed form."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.bench.given_values import GIVEN_VALUES, unpaid, values_given
from credit.cli.benchmarks.long_table import long_table_option, save_numbers
from credit.cli.benchmarks.measured import Measured, of_run, said
from credit.cli.benchmarks.to_write import print_to_write, to_write
from credit.cli.shared.answers import json_option, print_json, ruled_table, stderr, stdout, words
from credit.cli.shared.claims import tell_unchecked
from credit.cli.shared.commands import SEED, Command, several_methods, whole_numbers
from credit.cli.shared.outputs import check_room, picture_option, save_picture
from credit.cli.shared.progress import progress_bar
from credit.cli.shared.provenance import source
from credit.methods.own_functions import own_name

if TYPE_CHECKING:
    from rich.table import Table

    from credit.bench.snr import Fit, Report
    from credit.bench.snr_schemes import Scheme

__all__ = ["snr"]

NOTES = (
    "SNR: m / sqrt(E[A²] − m²), in brackets half of its 99 % band; A: a decision's advantage, x: its true effect, "
    "m = E[A sign(x)]. An offset, E[A] other than 0, counts as noise. Negative: the advantage has the wrong sign",
    "runs: the method of the scheme, or the scheme of the method",
)
COSTS = "cost is in rollouts a trace; what a critic's training took is not in it"
NO_COSTS = "no snr-cost: the evidence of every scheme is the trace itself, one rollout, so that it would repeat snr"
LESS = (
    "less: on the traces that both were measured on, with half of its 99 % band from 100 pairs or more, not corrected "
    "for how many there are. Bands of 100 pairs held the truth in 97 to 98 %; ‡ of draws of its own"
)
PAIRS = LESS.removeprefix("less: ").replace("half of its", "its")
SLOPE = "of log SNR on log T, up to T = {:,}, in brackets half of its 99 % interval"
LEGENDS = {
    "snr": NOTES[0].removeprefix("SNR: ").replace(", in brackets half of its 99 % band", ""),
    "closed form": "SNR by formula",
    "cost": COSTS.removeprefix("cost is "),
    "traces": "drawn and counted; none of messages, which draw contexts",
    "answered": "part of the decisions that have an advantage",
    "slope": "of log SNR on log T",
}
OUTSIDE = "the closed form lies outside the 99 % band"
APART = "drawn apart from the first scheme: their bands are independent, and no order is of one draw"
OTHERS = "of fewer or more traces than the first scheme has there; differences are on those of both"
FEW = "; without brackets: of fewer than 100 pairs, and without a band"


@click.command(
    cls=Command,
    short_help="Measure signal to noise against trace length.",
    examples="""
    credit bench snr --quick -o snr/
    credit bench snr --quick -m rloo -m mine:estimator --plot snr.svg
    """,
)
@several_methods(
    "Scheme, as tables name it ('control, claims'), method, or your own module:function. By commas or repeated. "
    f"{GIVEN_VALUES['snr'].capitalize()}.",
    "names",
)
@click.option("--all", "all_", is_flag=True, help="Run every scheme and every method that the logs of the world allow.")
@click.option("--lengths", callback=whole_numbers, metavar="T,T,...", help="Decisions of a trace, multiples of 10.")
@click.option(
    "--group-size",
    "sizes",
    callback=whole_numbers,
    default="8",
    show_default=True,
    metavar="K,...",
    help="Traces of a group.",
)
@click.option(
    "--world",
    default="normal",
    show_default=True,
    metavar="NAME",
    help="Noise of outcomes: normal; heavy, of tails, as much variance; or your f(rng, shape) as [NAME=]module:name. "
    "One a run: `bench table` and `bench plot` join runs.",
)
@click.option("--quick", is_flag=True, help="Use fewer draws, and T up to 1,000: about half a minute.")
@click.option(
    "--output",
    "-o",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for snr.json, snr.parquet and figures, not the table of `--table`. A stopped run resumes from the "
    "points in it.",
)
@long_table_option()
@picture_option
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all draws.")
@json_option
def snr(
    names: tuple[str, ...],
    all_: bool,
    lengths: tuple[int, ...] | None,
    sizes: tuple[int, ...],
    world: str,
    quick: bool,
    output: Path | None,
    table: Path | None,
    width: float,
    plot: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Measure the signal-to-noise ratio of one decision's advantage as traces grow.

    The world has independent decisions, and all methods see the same traces. Tables have 99 % bands, of differences
    from the first method too, fitted slopes beside those of the closed forms, and the cost of the evidence.
    """
    from credit.bench.rounding import EXACT
    from credit.bench.snr import FORMS, FULL, LENGTHS, QUICK, QUICK_LENGTHS, run
    from credit.bench.snr_logs import WORLDS, noise_of
    from credit.bench.snr_schemes import needs_of
    from credit.bench.world_texts import world_text
    from credit.plot import draw_snr_report

    world = own_name(world, "world", WORLDS)
    noise_of(world)
    schemes, lacking = _schemes(names, all_)
    chosen = lengths or (QUICK_LENGTHS if quick else LENGTHS)
    values = values_given("snr", {need for scheme in schemes for need in needs_of(scheme)})
    given = {scheme.name: values_given("snr", needs_of(scheme)) for scheme in schemes}
    tell_unchecked(names)
    if output is not None or plot is not None:
        stand_ins = _stand_ins(schemes, chosen, sizes, world)
        if stand_ins.points:
            check_room(lambda: draw_snr_report(stand_ins, values=values))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)  # what was measured must not be lost for want of a folder
    effort = QUICK if quick else FULL
    report = run(
        [*schemes, *lacking],
        lengths=chosen,
        group_sizes=sizes,
        effort=effort,
        seed=seed,
        world=world,
        folder=None if output is None else output / "points",
        progress=_bar,
    )
    if output is not None:
        _write(report, output)
    few = any(math.isnan(d.high) and not d.text().startswith("equal") for d in report.differences)
    about = f"{world}: {world_text('snr', world).rstrip('.')}"
    drawn = {"effort": "quick" if quick else "full", "seed": seed}
    fitted = {"lengths": ",".join(map(str, sorted(chosen))), **drawn}
    numbers = of_run(
        _numbers(report),
        "snr",
        lambda number: fitted if number.quantity == "slope" else drawn,
        lambda name: given.get(name, ""),
        lambda number: [line for line in report.caveats if line != FORMS or number.quantity == "closed form"],
        lambda number: [about],
    )
    save_numbers(numbers, table, _notes(report, few), width)
    if as_json:
        print_json(
            report.json() | {"caveats": said(numbers, "caveats"), "to_write": to_write(numbers), "source": source()}
        )
    else:
        for group in sizes:
            stdout().print(_table(report, group))
            if any(d.group == group for d in report.differences):
                stdout().print(_differences(report, group))
        counts = [p.traces for p in report.points if p.traces]
        ends = " to ".join(f"{count:,}" for count in sorted({min(counts), max(counts)})) if counts else ""
        some = [LESS + FEW * few + _pairs(report)] * bool(report.differences) + [COSTS] * _has_costs(report)
        some += [f"traces: {ends} a point, {LEGENDS['traces']}; `--table` has each"] * bool(counts)
        lines = [*report.refusals(), *some, *NOTES, *said(numbers, "caveats"), *unpaid(names), *filter(None, [values])]
        if all_:
            lines += [f"{name} is left out: it {why}" for name, why in report.left_out.items()]
        for line in lines:
            stdout().print(words(line), soft_wrap=True)
        print_to_write(to_write(numbers))
    if output is not None and any(p.snr > EXACT for p in report.points):  # a logarithmic axis has no others
        _draw(report, output, values)
    if plot is not None:
        save_picture(draw_snr_report(report, values=values), plot)


def _notes(report: Report, few: bool) -> dict[str, str]:
    """What stands below tables in LaTeX, by quantity and by mark; the words are those of the printed notes."""
    fitted = min(max(p.length for p in report.points), 10_000) if report.points else 0
    return {
        **LEGENDS,
        "snr": NOTES[0].removeprefix("SNR: "),
        "slope": SLOPE.format(fitted),
        "less": LESS.removeprefix("less: ") + FEW * few,
        "": "T decisions a trace",
        "*": f"* {OUTSIDE}",
        "†": f"† {OTHERS}",
        "‡": f"‡ {APART}",
    }


def _pairs(report: Report) -> str:
    """Of how many pairs the differences are."""
    found = [d.pairs for d in report.differences if d.pairs]
    ends = " to ".join(f"{count:,}" for count in sorted({min(found), max(found)})) if found else ""
    return f"; here {ends} pairs, each of two schemes on one part of the traces" * bool(found)


def _marks(report: Report) -> dict[tuple[str, int, int], str]:
    """What stands beside each point, by scheme, group and length."""
    apart = {(d.scheme, d.group, d.length) for d in report.differences if not d.traces}
    places = {(p.scheme, p.group, p.length): p for p in report.points}
    traces = {place: p.traces for place, p in places.items()}
    others = {
        (d.scheme, d.group, d.length)
        for d in report.differences
        if d.traces and traces.get((d.scheme, d.group, d.length)) != traces.get((d.first, d.group, d.length))
    }
    return {
        place: "*" * (p.agrees is False) + "†" * (place in others) + "‡" * (place in apart)
        for place, p in places.items()
    }


def _numbers(report: Report) -> list[Measured]:
    found: list[Measured] = []
    marks, (places, of_less) = _marks(report), report.places()
    for p in report.points:
        one = functools.partial(Measured, p.scheme, world=report.world, group_size=p.group, length=p.length)
        found.append(one("snr", p.snr, p.low, p.high, confidence=0.99, n=round(p.decisions), independent=p.parts,
                         shown=p.text(places[p.length]), mark=marks[p.scheme, p.group, p.length]))  # fmt: skip
        closed = math.nan if p.theory is None else p.theory
        found += [one("closed form", closed, shown="none" if p.theory is None else "")]
        found += [one("cost", p.cost, shown=f"{p.cost:,.0f}"), one("traces", p.traces, shown=f"{p.traces:,}")]
        found += [one("answered", p.answered, why=p.why)]
    for r in report.refused:
        found.append(Measured(r.scheme, "snr", math.nan, world=report.world, group_size=r.group, length=r.length,
                              why=r.why, shown="refused"))  # fmt: skip
    for d in report.differences:
        found.append(
            Measured(d.scheme, "snr", d.difference, d.low, d.high, 0.99, d.traces or None, d.first, report.world,
                     d.group, d.length, independent=d.pairs or None, mark="" if d.traces else "‡",
                     shown=d.text(of_less[d.length]).removesuffix(" ‡"))
        )  # fmt: skip
    for f in report.fits:
        ends = (f.slope - f.half_width, f.slope + f.half_width)
        found.append(Measured(f.scheme, "slope", f.slope, *ends, 0.99, world=report.world, group_size=f.group,
                              shown=_slope(f)))  # fmt: skip
    return found


def _slope(line: Fit) -> str:
    return f"{line.slope:+z.3f} ({line.half_width:.3f})"


def _schemes(names: tuple[str, ...], all_: bool) -> tuple[list[Scheme], dict[str, str]]:
    """What is to be measured, and by name why a method cannot be: it does not keep the others from being measured."""
    from credit.bench.snr_schemes import SCHEMES, registered, schemes_of

    with_form = SCHEMES.values() if all_ or not names else ()
    chosen, lacking = schemes_of([*with_form, *names, *(registered().values() if all_ else ())])
    return list({scheme.name: scheme for scheme in chosen}.values()), lacking


def _bar(todo: list[Any]) -> Iterator[Any]:
    """A progress bar on standard error where that is a terminal; it says which scheme goes how far."""
    with progress_bar(stderr()) as bar:
        task = bar.add_task("", total=len(todo))
        for job in todo:
            bar.update(task, description=f"{job[0].name}, T = {job[1]:,}")
            yield job
            bar.advance(task)


def _stand_ins(schemes: list[Scheme], lengths: tuple[int, ...], sizes: tuple[int, ...], world: str) -> Report:
    """A report with all curves of a run, and numbers that nothing measured."""
    from credit.bench.snr import Point, Report, fit

    rest = (1.0, None, 1.0, 1.0, 1.0, 2, "full", 0.0, 1.0, "")
    curves = [
        [Point(s.name, s.method, length, size, 1.0, 0.9, 1.1, *rest) for length in lengths if length <= s.longest]
        for s in schemes
        for size in sizes
    ]
    fits = [line for line in map(fit, curves) if line is not None]
    return Report([point for curve in curves for point in curve], fits, {}, world=world)


def _write(report: Report, folder: Path) -> None:
    from credit.bench.snr import json_lines
    from credit.cli.shared.outputs import save_table
    from graphs.atomic import atomic_write

    with atomic_write(folder / "snr.json") as file:
        file.write(json_lines(report.json()).encode())
    save_table(report.table(), folder / "snr.parquet")


def _draw(report: Report, folder: Path, values: str) -> None:
    from credit.cli.shared.outputs import PICTURES, save_picture
    from credit.plot import draw_snr_report

    of_cost = _has_costs(report)
    if not of_cost:
        stderr().print(NO_COSTS)
    for name, by_cost in (("snr", False), ("snr-cost", True))[: 1 + of_cost]:
        figure = draw_snr_report(report, equal_cost=by_cost, values=values)
        for suffix in PICTURES:
            save_picture(figure, folder / f"{name}{suffix}")


def _has_costs(report: Report) -> bool:
    """Whether the evidence of some trace takes more than the trace itself."""
    return any(point.cost > 1 for point in report.points)


def _table(report: Report, group: int) -> Table:
    from credit.bench.rounding import decimals, fixed, rounded
    from credit.bench.snr_schemes import SCHEMES

    points, costs = [p for p in report.points if p.group == group], _has_costs(report)
    refused = [r for r in report.refused if r.group == group]
    lengths = sorted({p.length for p in points} | {r.length for r in refused})
    title = f"SNR, groups of {group}" + ("" if report.world == "normal" else f", world {report.world}")
    sloped = any(f.group == group for f in report.fits)
    formed = any(p.theory is not None for p in points)
    numbers = (
        *(f"#T = {length:,}" for length in lengths),
        *["#slope"] * sloped,
        *["#of the form"] * (sloped and formed),
        *["#closed form"] * formed,
        *["#cost"] * costs,
    )
    table = ruled_table("scheme", "runs", *numbers, title=title)
    marked, (places, _) = _marks(report), report.places()
    at_last = {p.scheme: p for p in sorted(points, key=lambda point: point.length)}
    closed = decimals(p.theory for p in at_last.values() if p.theory is not None) or 0
    shown = {sign for (_, size, _), of in marked.items() if size == group for sign in of}
    for name in dict.fromkeys([p.scheme for p in points] + [r.scheme for r in refused]):
        of_scheme = {p.length: p for p in points if p.scheme == name}
        line = next((f for f in report.fits if (f.scheme, f.group) == (name, group)), None)
        cells: dict[int, str] = dict.fromkeys(lengths, "") | {r.length: "refused" for r in refused if r.scheme == name}
        for length, p in of_scheme.items():
            cells[length] = f"{p.text(places[length])} {marked[name, group, length]}".rstrip()
        slope = "" if line is None else _slope(line)
        form = "" if line is None or line.theory is None else f"{line.theory:+z.3f}"
        last = at_last.get(name)
        whole = (
            ""
            if last is None
            else "none"
            if last.ratio is None
            else f"{fixed(last.theory or 0, max(closed, places[last.length] or 0))} ({rounded(last.ratio, '.3f')})"
        )
        cost = "" if last is None else f"{last.cost:,.0f}"
        runs = SCHEMES[name].method if name in SCHEMES else next((s for s in SCHEMES if SCHEMES[s].method == name), "")
        beside = [*[slope] * sloped, *[form] * (sloped and formed), *[whole] * formed, *[cost] * costs]
        table.add_row(words(name), words(runs), *cells.values(), *beside)
    fitted = min(max(lengths), 10_000)
    meanings = {"*": OUTSIDE, "†": OTHERS, "‡": APART}
    marks = "".join(f"{sign} {text}\n" for sign, text in meanings.items() if sign in shown)
    of_slope = f"slope: {SLOPE.format(fitted)}" + "; of the form: that of the closed form" * formed
    of_form = "closed form: SNR by formula at the last T, in brackets the measured one over it"
    of_cost = "cost: at the last T"
    at_end = "; ".join([*[of_form] * formed, *[of_cost] * costs])
    table.caption = marks + "\n".join(filter(None, [of_slope * sloped, at_end]))
    return table


def _differences(report: Report, group: int) -> Table:
    found = [d for d in report.differences if d.group == group]
    lengths = sorted({d.length for d in found})
    _, places = report.places()
    title = f"SNR less that of {found[0].first}, groups of {group}"
    table = ruled_table("scheme", *(f"#T = {length:,}" for length in lengths), title=title)
    for name in dict.fromkeys(d.scheme for d in found):
        of_scheme = {d.length: d for d in found if d.scheme == name}
        cells = (of_scheme[t].text(places[t]) if t in of_scheme else "" for t in lengths)
        table.add_row(words(name), *cells)
    return table
