"""`credit show`: one trace, to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.assign import evidence_option, method_option, method_options
from credit.cli.reading import (
    allow_bad,
    exit_code,
    list_problems,
    read_traces,
    reads_logs,
    stderr,
    stdout,
    words,
)

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.traces import Traces

__all__ = ["show"]

PICTURES = (".svg", ".png", ".pdf")


@click.command(short_help="Look at one trace.")
@reads_logs()
@click.option("--trace", "name", metavar="ID", help="The trace to show; by default the first.")
@click.option(
    "--plot", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Also draw it: .svg, .png or .pdf."
)
@method_option
@method_options
@evidence_option
@allow_bad
@click.pass_context
def show(
    ctx: click.Context,
    paths: tuple[str, ...],
    name: str | None,
    plot: Path | None,
    method: str,
    given: tuple[str, ...],
    also: tuple[str, ...],
    allow_bad: bool,
    **reading: Any,
) -> None:
    """Show the events of one trace; with --plot, draw them with the advantages of a method."""
    from credit.cli.options import parse_options, run_method

    parse_options(method, given)
    if plot is not None and plot.suffix not in PICTURES:
        raise click.BadParameter(f"{str(plot)!r}; expected a name ending in {', '.join(PICTURES)}", param_hint="--plot")
    traces = read_traces(paths, **reading)
    trace = 0 if name is None else traces.index(name)
    from credit.show import render

    stdout().print(render(traces, trace))
    if plot is not None:
        _draw(traces, trace, plot, method, run_method(traces, method, given, also))
    list_problems(traces.problems, stderr(), all_=False)
    ctx.exit(exit_code(traces, allow_bad))


def _draw(traces: Traces, trace: int, path: Path, method: str, credit: Credit) -> None:
    """Draw the trace, actions filled by their advantage, outlined by its error if the method states any."""
    import numpy as np

    from credit.plot import draw_trace
    from graphs.writers.atomic import atomic_write

    values = np.where(np.asarray(credit.valid), np.asarray(credit.advantage), np.nan)
    error = np.asarray(credit.stderr) / np.asarray(credit.scale)
    stated = error if np.any(np.isfinite(error) & (error > 0)) else None
    figure = draw_trace(traces, trace, values, stderr=stated, label=f"advantage by {method}", unit="")
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lstrip("."))
    stderr().print(words(f"drew {path}"), soft_wrap=True)
