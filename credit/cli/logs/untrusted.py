"""`credit untrusted`: how far untrusted events reach, and the credit at risk."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_option, method_options
from credit.cli.shared.answers import explain, json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from credit.reports.triage_legend import MARKS
from graphs.text import at_least, percent

if TYPE_CHECKING:
    from credit.metrics.untrusted_reach import ReachUnit

__all__ = ["untrusted"]

LEGEND = (
    ("reached: ", "reached: actions that are an untrusted event or depend on one"),
    ("answers: ", "answers: traces whose last action is reached"),
    ("at risk: ", "at risk: part of all |credit − baseline| that is of reached actions"),
    ("at risk: –", "–: no action has credit"),
    MARKS[1],
)


@click.command(
    cls=Command,
    short_help="Show how far untrusted events reach.",
    examples="""
    credit untrusted runs/
    credit untrusted runs/ --type tool_result --type human_intervention
    credit untrusted runs/ --by vector
    """,
)
@reads_logs()
@click.option("--type", "of_types", multiple=True, metavar="TYPE",
              help="Events of this type are untrusted, too, unless the log trusts them. May be repeated.")  # fmt: skip
@click.option("--by", type=click.Choice(["source", "vector"]), default="source", show_default=True,
              help="Rows: type and tool of the events, or the attack vector that the log states.")  # fmt: skip
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
    of_types: tuple[str, ...],
    by: ReachUnit,
    method: str,
    option_texts: tuple[str, ...],
    also: tuple[str, ...],
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Show which decisions depended on untrusted events, and the credit at risk, by source or attack vector.

    Untrusted are events that the log marks `trusted: false`, those with an `attack_vector`, and those of each --type.
    """
    from credit.methods.option_texts import parse_options
    from credit.methods.running import has_outcomes, run
    from credit.metrics.untrusted_reach import untrusted_reach

    options = parse_options(method, option_texts)
    traces = read_traces(paths, **reading)
    with working(stderr(), f"computing {method}"):
        credit = run(traces, method, evidence=also, **options) if has_outcomes(traces) else None
    found = untrusted_reach(traces, credit, types=of_types, by=by)
    if as_json:
        print_json({"method": method, "by": by, "units": [dataclasses.asdict(unit) for unit in found]})
    else:
        table = plain_table("untrusted", "#events", "#traces", "#reached", "#actions", "#answers", "#at risk")
        for unit in found:
            counts = (unit.events, unit.traces, unit.reached, unit.actions, unit.answers)
            risk = "–" if unit.credit_at_risk is None else percent(unit.credit_at_risk, 1)
            table.add_row(words(unit.unit), *(at_least(str(count), unit.lacks_lines) for count in counts), risk)
        stdout().print(table)
        explain(stdout(), table, *LEGEND)
    leave(ctx, traces, allow_bad)
