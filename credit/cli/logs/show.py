"""`credit show`: one trace, to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_option, method_options
from credit.cli.shared.answers import json_option, leave, print_json
from credit.cli.shared.commands import Command
from credit.cli.shared.outputs import picture_option, save_picture
from credit.cli.shared.reading import allow_bad, read_traces, reads_logs, stderr, stdout

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["show"]

EVERYTHING = 10**9  # more events and agents than a batch can have


@click.command(
    cls=Command,
    short_help="Show one trace.",
    examples="""
    credit show runs/
    credit show runs/ --trace q1-a --events
    credit show runs/ --trace q1-a --json
    credit show runs/ --trace q1-a --method rloo --plot trace.svg
    """,
)
@reads_logs()
@click.option("--trace", "name", metavar="ID", help="Trace to show; `credit traces` lists them. Default: the first.")
@click.option("--events", "every_event", is_flag=True, help="List every event instead of the first and last.")
@click.option("--all", "all_", is_flag=True, help="List every event and agent, with longer excerpts of text.")
@picture_option
@method_option
@method_options
@evidence_option
@allow_bad
@json_option
@click.pass_context
def show(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    name: str | None,
    every_event: bool,
    all_: bool,
    plot: Path | None,
    method: str,
    given: tuple[str, ...],
    also: tuple[str, ...],
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Show one trace: agents, events with tools, status and text, and its structure.

    With --plot, draw it with the advantages of a method.
    """
    from credit.methods.option_texts import parse_options
    from credit.methods.running import has_outcomes, run
    from credit.reports.trace_text import render, trace_json

    options = parse_options(method, given)
    traces = read_traces(paths, **reading)
    trace = 0 if name is None else traces.index(name)
    if as_json:
        print_json(trace_json(traces, trace))
    elif all_:
        stdout().print(render(traces, trace, first=EVERYTHING, most=EVERYTHING, limit=400))
    else:
        stdout().print(render(traces, trace, first=EVERYTHING if every_event else 10))
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
    from credit.plot.finishing import short_names

    values = np.where(np.asarray(credit.valid), np.asarray(credit.advantage), np.nan)
    error = np.asarray(credit.stderr) / np.asarray(credit.scale)
    stated = error if np.any(np.isfinite(error) & (error > 0)) else None
    figure = draw_trace(traces, trace, values, stderr=stated, label=f"advantage by {short_names([method])[0]}", unit="")
    save_picture(figure, path)
