"""`credit show`: one trace, to look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_option, method_options
from credit.cli.shared.answers import json_option, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command, Whole
from credit.cli.shared.outputs import picture_option, save_picture
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs

if TYPE_CHECKING:
    from rich.console import Console

    from graphs.traces.batch import Traces

__all__ = ["show"]

EVERYTHING = 10**9  # more events and agents than a batch can have
NEAR = 5  # events before and after the one that is asked for
LONG = 600  # characters of text of each of them


@click.command(
    cls=Command,
    short_help="Show one trace.",
    examples="""
    credit show runs/
    credit show runs/ --trace q1-a --events
    credit show runs/ --trace q1-a --around e7
    credit show runs/ --trace q1-a --json
    credit show runs/ --trace q1-a --method rloo --plot trace.svg
    """,
)
@reads_logs()
@click.option(
    "--trace",
    "name",
    metavar="ID",
    help="Trace to show, or the beginning of its id; `credit traces` lists them. Default: the first.",
)
@click.option("--around", metavar="EVENT", help="Show an event, by its id or number, with five before and after it.")
@click.option(
    "--number", type=Whole(0), metavar="N", help="As --around, an event by its number in the trace, whatever the ids."
)
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
    around: str | None,
    number: int | None,
    every_event: bool,
    all_: bool,
    plot: Path | None,
    method: str,
    option_texts: tuple[str, ...],
    also: tuple[str, ...],
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Show one trace: agents, events with tools, status and text, and its structure.

    With --plot, draw it with the advantages of a method.
    """
    from credit.reports.trace_text import render, trace_json

    options: dict[str, Any] = {}
    is_method_stated = ctx.get_parameter_source("method") is click.core.ParameterSource.COMMANDLINE
    if plot is not None or option_texts or is_method_stated:  # else no method is needed, and no JAX
        from credit.methods.option_texts import parse_options

        options = parse_options(method, option_texts)
    traces = read_traces(paths, **reading)
    trace = 0 if name is None else traces.index(name)
    if number is not None and around is not None:
        raise click.UsageError("--around and --number name one event; expected one of them")
    near = around if number is None else number
    if near is not None and (every_event or all_):
        raise click.UsageError("--around shows a few events; expected it without --events and --all")
    if as_json:
        print_json(trace_json(traces, trace))
    elif near is not None:
        _print_around(stdout(), traces, trace, near)
    elif all_:
        stdout().print(render(traces, trace, first=EVERYTHING, most=EVERYTHING, limit=400))
    else:
        stdout().print(render(traces, trace, first=EVERYTHING if every_event else 10))
    if plot is not None:
        _draw(traces, trace, plot, method, also, options)
    leave(ctx, traces, allow_bad)


def _print_around(console: Console, traces: Traces, trace: int, event: int | str) -> None:
    """An event and those beside it, each as a line and its text."""
    import numpy as np
    from rich.padding import Padding

    from credit.reports.endings import lasts
    from credit.reports.tool_calls import ToolCalls
    from credit.reports.trace_events import event_rows

    end, *early = lasts(traces, ToolCalls.of(traces)).get(trace, (-1, ""))
    members = np.flatnonzero(np.asarray(traces.graph.trace_ids)[: traces.sizes.events] == trace)
    place = traces.event_row(trace, event) - int(members[0])
    near = range(max(place - NEAR, 0), min(place + NEAR + 1, len(members)))
    name = traces.traces["trace"][trace].as_py()
    console.print(words(f"trace {name}: events {near[0]} to {near[-1]} of {len(members)}"), soft_wrap=True)
    for row in event_rows(traces, trace, near, limit=LONG):
        console.print()
        parts = [str(row.position), row.who, row.type, row.tool, row.status, row.model, row.event]
        if row.tokens is not None:
            parts.append(f"{row.tokens} tokens")
        mark = "→ " if row.position == place else "  "
        console.print(words(mark + "  ".join(filter(None, parts)), "bold" if mark.strip() else ""), soft_wrap=True)
        ends = "".join(early) if members[row.position] == end else ""
        for text in filter(None, (row.text, ends)):
            console.print(Padding(words(text), (0, 0, 0, 6)))


def _draw(
    traces: Traces, trace: int, path: Path, method: str, also: tuple[str, ...], options: Mapping[str, Any]
) -> None:
    """Draw the trace. The colour of an action is its advantage, the outline its error if the method states any."""
    import numpy as np

    from credit.methods.running import has_outcomes, run
    from credit.plot import draw_trace
    from credit.plot.finishing import shown_name

    if not has_outcomes(traces):
        save_picture(draw_trace(traces, trace), path)
        stderr().print("no trace has an outcome, so the picture has no advantages")
        return
    credit = run(traces, method, evidence=also, **options)
    values = np.where(np.asarray(credit.valid), np.asarray(credit.advantage), np.nan)
    error = np.asarray(credit.stderr) / np.asarray(credit.scale)
    stated = error if np.any(np.isfinite(error) & (error > 0)) else None
    figure = draw_trace(traces, trace, values, stderr=stated, label=f"advantage by {shown_name(method)}", unit="")
    save_picture(figure, path)
