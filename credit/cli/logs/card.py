"""`credit card`: what a report of results should state, filled as far as the log tells."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from credit.cli.shared.answers import explain, json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from credit.reports.triage_legend import MARKS

__all__ = ["card"]

LEGEND = (
    ("", "in brackets: behind a name, its traces; behind a number, the 95 % interval over tasks"),
    ("", "outcomes, work: means over tasks; costs: means over traces"),
    MARKS[1],
)


@click.command(
    cls=Command,
    short_help="State tasks, teams, outcomes, costs, evidence, and what the log lacks.",
    examples="credit card runs/",
)
@reads_logs()
@allow_bad
@json_option
@click.pass_context
def card(ctx: click.Context, /, paths: tuple[str, ...], allow_bad: bool, as_json: bool, **reading: Any) -> None:
    """Print the card of a set of traces: what a report of results should state, and what the log lacks for it."""
    from credit.metrics.run_card import run_card

    traces = read_traces(paths, **reading)
    with working(stderr(), "measuring traces"):
        lines = run_card(traces)
    if as_json:
        print_json({"lines": [dataclasses.asdict(line) for line in lines]})
    else:
        table = plain_table("section", "item", "value", "missing")
        for line in lines:
            table.add_row(line.section, line.item, words(line.value), words(line.missing))
        stdout().print(table)
        explain(stdout(), table, *LEGEND)
    leave(ctx, traces, allow_bad)
