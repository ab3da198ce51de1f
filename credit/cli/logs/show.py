"""`credit show`: one trace, to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_option, method_options
from credit.cli.shared.answers import leave
from credit.cli.shared.outputs import picture_option, save_picture
from credit.cli.shared.reading import allow_bad, read_traces, reads_logs, stderr, stdout

if TYPE_CHECKING:
    from pathlib import Path

    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["show"]


@click.command(short_help="Look at one trace.")
@reads_logs()
@click.option("--trace", "name", metavar="ID", help="The trace to show; by default the first.")
@picture_option
@method_option
@method_options
@evidence_option
@allow_bad
@click.pass_context
def show(
    ctx: click.Context,
    /,
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
    from credit.methods.option_texts import parse_options
    from credit.methods.running import has_outcomes, run

    options = parse_options(method, given)
    traces = read_traces(paths, **reading)
    trace = 0 if name is None else traces.index(name)
    from credit.reports.trace_text import render

    stdout().print(render(traces, trace))
    if plot is not None and has_outcomes(traces):
        _draw(traces, trace, plot, method, run(traces, method, evidence=also, **options))
    elif plot is not None:
        from credit.plot import draw_trace

        save_picture(draw_trace(traces, trace), plot)
        stderr().print("no trace has an outcome, so the picture has no advantages")
    leave(ctx, traces, allow_bad)


def _draw(traces: Traces, trace: int, path: Path, method: str, credit: Credit) -> None:
    """Draw the trace, actions filled by their advantage, outlined by its error if the method states any."""
    import numpy as np

    from credit.plot import draw_trace

    values = np.where(np.asarray(credit.valid), np.asarray(credit.advantage), np.nan)
    error = np.asarray(credit.stderr) / np.asarray(credit.scale)
    stated = error if np.any(np.isfinite(error) & (error > 0)) else None
    figure = draw_trace(traces, trace, values, stderr=stated, label=f"advantage by {method}", unit="")
    save_picture(figure, path)
