"""`credit bench plot`: a figure of results that a benchmark wrote, without running it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from credit.cli.benchmarks.saved_numbers import FILES, edited_option, saved_numbers, selected
from credit.cli.shared.answers import stderr, words
from credit.cli.shared.commands import Command, by_commas, several_methods, whole_numbers
from credit.cli.shared.outputs import PICTURES, look_options, output_option, save_picture
from graphs.errors import CreditError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot"]


@click.command(
    cls=Command,
    short_help="Draw results again, or those of several runs.",
    examples="""
    credit bench plot bias.csv --quantity bias,variance -o bias.svg
    credit bench plot normal.csv heavy.csv --quantity "snr less" -o snr.tex --size 3.4x2.6 --style serif
    credit bench plot runs.parquet -o curves.pdf
    """,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, path_type=Path))
@several_methods("Methods to draw, in this order, by commas or repeated. Default: all, as files have them.")
@click.option("--quantity", "-q", "quantities", multiple=True, callback=by_commas, metavar="NAME",
              help="Quantities to draw, a panel each; 'snr less': differences from the first method. Default: those "
                   "that the benchmark draws, of train without curves 'area'.")  # fmt: skip
@click.option("--group-size", "group_sizes", callback=whole_numbers, metavar="K,...", help="Traces of a group to draw.")
@output_option("Figure: .svg, .png or .pdf; or .tex, for LaTeX with a caption, and a .pdf beside it.",
               required=True, metavar="FIGURE", suffixes=(*PICTURES, ".tex"))  # fmt: skip
@edited_option
@look_options
def plot(
    files: tuple[Path, ...],
    methods: tuple[str, ...],
    quantities: tuple[str, ...],
    group_sizes: tuple[int, ...] | None,
    output: Path,
    edited: bool,
) -> None:
    """Draw results of a benchmark from its file, without running it again.

    FILES are those of `--table` of bias, truth, snr or train, in any of its formats but LaTeX; or that of `-o` of
    train, which has the learning curves. Worlds of several files stand side by side.
    """
    from credit.cli.benchmarks.figures import DRAWN, figure_of  # it loads JAX, and `--help` does not
    from credit.cli.benchmarks.latex_figure import save_latex_figure
    from credit.cli.benchmarks.measured import holds

    if files[0].suffix == ".json" or _holds_runs(files[0]):
        if quantities or group_sizes or len(files) > 1:
            raise click.UsageError(f"{files[0]} holds runs of training; expected it alone, without -q and --group-size")
        figure, caption, sources = _curves(files[0], methods), "Learning curves", []
    else:
        read = saved_numbers(files, methods)
        found = [number for number, _ in read]
        default = [name for of in dict.fromkeys(number.bench for number in found) for name in DRAWN.get(of, ())]
        chosen = selected(read, methods, quantities, default, less=False, edited=edited)
        for line in (*chosen.edits, *chosen.namesakes):
            stderr().print(words(line), soft_wrap=True)
        numbers = chosen.numbers
        if group_sizes:
            numbers = [number for number in numbers if number.group_size in (1, None, *group_sizes)]
        if not numbers:
            raise CreditError(f"the files have no groups of {', '.join(map(str, group_sizes or ()))}")
        sizes = {number.group_size for number in numbers}
        figure = figure_of([number for number in found if number.group_size in sizes], numbers)
        caption, sources = holds(numbers), list(dict.fromkeys(number.source for number in numbers))
    if output.suffix == ".tex":
        save_latex_figure(figure, output, caption, sources)
    else:
        save_picture(figure, output, sources)


def _holds_runs(path: Path) -> bool:
    """Whether a file is that of `credit bench train -o`."""
    if path.suffix != ".parquet":
        return False
    import pyarrow.parquet as pq

    return b"settings" in (pq.read_schema(path).metadata or {})


def _curves(path: Path, methods: Sequence[str]) -> Figure:
    """The learning curves of a file of runs."""
    from credit.bench.training.training_files import runs_of_file
    from credit.bench.training.training_signals import COMPOSITIONS, ORACLES
    from credit.cli.benchmarks.bench_train import values_of
    from credit.methods.own_functions import OwnName, function_of
    from credit.methods.published import is_named
    from credit.plot import draw_training
    from graphs.text import near_names

    try:
        rows, settings = runs_of_file(path)
    except CreditError as error:
        raise CreditError(f"{error}, or {FILES}") from error
    shown_as = {function_of(name): name for name in methods}
    names = {row["signal"]: shown_as.get(row.get("function") or row["signal"], row["signal"]) for row in rows}
    for name in methods:
        if name not in names.values():
            raise CreditError(f"{path} has no run of {name!r}. {near_names(name, names.values())}")
    known = {name for name in names if name in COMPOSITIONS or name in ORACLES or is_named(name)}
    kept = methods or tuple(names.values())
    shown = {name: names[name] if name in known else OwnName(names[name]) for name in names if names[name] in kept}
    rows = [row | {"signal": shown[row["signal"]]} for row in rows if row["signal"] in shown]
    values = values_of(known & shown.keys())
    signals = sorted(shown.values(), key=kept.index)
    return draw_training({"rows": rows, "settings": settings}, signals=signals, values=values)
