"""`credit untrusted`: how far untrusted events reach, and the credit at risk."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from credit.cli.advantages.assign import evidence_option, method_option, method_options
from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs

__all__ = ["untrusted"]

LEGEND = (
    "reached: actions that are an untrusted event or depended on one. answers: traces whose last action is reached. "
    "at risk: their part of all |credit − baseline|."
)


@click.command(
    cls=Command,
    short_help="Show how far untrusted events reach.",
    examples="""
    credit untrusted runs/
    credit untrusted runs/ --type tool_result --type human_intervention
    """,
)
@reads_logs()
@click.option("--type", "types", multiple=True, metavar="TYPE",
              help="Events of this type are untrusted, too, unless the log trusts them. May be repeated.")  # fmt: skip
@method_option
@method_options
@evidence_option
@allow_bad
@json_option
@click.pass_context
def untrusted(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    types: tuple[str, ...],
    method: str,
    option_texts: tuple[str, ...],
    also: tuple[str, ...],
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Show which decisions depended on untrusted events, and the credit at risk, by source.

    Untrusted are events that the log marks `trusted: false`, and those of each --type.
    """
    from credit.methods.option_texts import parse_options
    from credit.methods.running import has_outcomes, run
    from credit.metrics.untrusted_reach import untrusted_reach

    options = parse_options(method, option_texts)
    traces = read_traces(paths, **reading)
    with working(stderr(), f"computing {method}"):
        credit = run(traces, method, evidence=also, **options) if has_outcomes(traces) else None
    found = untrusted_reach(traces, credit, types=types)
    if as_json:
        print_json({"method": method, "sources": [dataclasses.asdict(source) for source in found]})
    else:
        table = plain_table("untrusted", "#events", "#traces", "#reached", "#actions", "#answers", "#at risk")
        for source in found:
            counts = (source.events, source.traces, source.reached, source.actions, source.answers)
            risk = "–" if source.credit_at_risk is None else f"{source.credit_at_risk:.1%}"
            table.add_row(words(source.source), *map(str, counts), risk)
        stdout().print(table)
        stdout().print(LEGEND, soft_wrap=True)
    leave(ctx, traces, allow_bad)
