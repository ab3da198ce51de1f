"""`credit audit`: what adding methods up would have paid, beside the ledger."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.channel_weights import takes_channels
from credit.cli.shared.claims import makes_ledger, settled, takes_claims
from credit.cli.shared.commands import Command
from credit.cli.shared.outputs import output_option, save_table
from credit.cli.shared.progress import steps
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from graphs.text import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from credit.ledger.auditing import Audit
    from credit.methods.claims import ClaimRequest
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["audit"]

LEGEND = (
    "R: reward. claim: what a method would pay an action. estimates: what the number is of. per: the events that share "
    "one number. added up: the sum of all claims. overcount: Σ|claims| over |R|. paid twice: events of several "
    "claims. expected, increments, unexplained: the ledger, whose entries sum to R."
)


@click.command(
    cls=Command,
    short_help="Show what adding methods up would pay twice.",
    examples="""
    credit audit runs/ --methods rloo,gae,dr_mas
    credit audit runs/ --methods rloo,gae -o payments.csv
    """,
)
@reads_logs()
@takes_claims
@makes_ledger
@takes_channels
@output_option("Also write every payment: .parquet, .csv, .jsonl or .arrow.")
@click.option(
    "--level",
    default="event",
    show_default=True,
    type=click.Choice(["trace", "event"]),
    help="Write one row of --output for each of these.",
)
@click.option(
    "--worst", default=10, show_default=True, type=click.IntRange(0), help="Number of traces and events to list."
)
@allow_bad
@json_option
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    asked: ClaimRequest,
    making: dict[str, Any],
    weights: dict[str, float],
    output: Path | None,
    level: str,
    worst: int,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Show what adding the claims up would pay, which events it would pay twice, and what the ledger pays."""
    if output is None and ctx.get_parameter_source("level") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--level applies to the rows of --output; expected --output FILE with it")
    asked.check()
    import numpy as np

    from credit.ledger.auditing import audit as add_up
    from credit.ledger.from_methods import compose_channels, compose_claims, total_of

    traces = read_traces(paths, **reading)
    asked = settled(asked, traces)
    if weights:
        making.pop("expected")
        outcome = reading["reward_channel"]
        ledger, claims = compose_channels(traces, weights, asked.names, asked.compute, outcome=outcome, **making)
        total = np.where(ledger.scored, ledger.reward, np.nan)
    else:
        traces, claims = asked.run(traces, progress=functools.partial(steps, stderr()))
        ledger, total = compose_claims(traces, claims, **making), total_of(traces)
    report = add_up(traces.graph, total, claims, ledger=ledger)
    if as_json:
        print_json(report.as_json(traces))
    else:
        _print(stdout(), traces, claims, report, worst)
    if output is not None:
        save_table(report.table(traces) if level == "event" else report.trace_table(traces), output)
    leave(ctx, traces, allow_bad)


def _print(console: Console, traces: Traces, claims: dict[str, Credit], report: Audit, worst: int) -> None:
    import numpy as np

    n = traces.sizes.events
    paid, twice = int(np.sum(report.times[:n] > 0)), int(np.sum(report.twice[:n]))
    size = float(np.abs(np.asarray(report.ledger.reward, np.float64)).sum())
    console.print(words("Claims, added up", "bold"))
    console.print(_claims(claims, report))
    console.print()
    if math.isfinite(report.ratio):
        console.print(f"overcount: Σ|claims| is {report.ratio:.3g} times Σ|R| = {size:.6g}", soft_wrap=True)
    else:
        console.print("overcount: there is no reward to hold the claims against: Σ|R| is 0", soft_wrap=True)
    console.print(f"paid: {counted(paid, 'action')}, {twice} of them more than once", soft_wrap=True)
    if worst and twice:
        console.print()
        console.print(words("Actions paid more than once, the most first", "bold"))
        console.print(_events(traces, report, worst))
    if worst:
        console.print()
        console.print(words("Traces, the most overcounted first, and their ledgers", "bold"))
        console.print(_traces(traces, report, worst))
    if report.ledger.holding_luck:
        console.print(words(report.ledger.holding_luck), soft_wrap=True)
    console.print()
    console.print(LEGEND, soft_wrap=True)


def _claims(claims: dict[str, Credit], report: Audit) -> Table:
    import numpy as np

    table = plain_table("claim", "estimates", "per", "#Σ|claim|", "#Σ claim", "in the ledger")
    for name, row in zip(report.claims, report.payments, strict=True):
        claim = claims[name]
        part = report.refused.get(name) or "takes part"
        numbers = (f"{np.abs(row).sum():.6g}", f"{row.sum():z.6g}")
        table.add_row(words(name), claim.estimand, claim.unit, *numbers, words(part))
    return table


def _events(traces: Traces, report: Audit, worst: int) -> Table:
    import numpy as np

    n = traces.sizes.events
    weight = np.where(report.twice[:n], np.abs(report.payments[:, :n]).sum(axis=0), -1)
    order = np.argsort(-weight, kind="stable")[: min(worst, int(report.twice[:n].sum()))]
    table = plain_table("trace", "event", "agent", *(f"#{name}" for name in report.claims), "#added up", "#ledger")
    trace, agent = np.asarray(traces.graph.trace_ids), np.asarray(traces.graph.agent_ids)
    for event in order:
        place = (
            traces.traces["trace"][int(trace[event])].as_py(),
            traces.events["event"][int(event)].as_py(),
            traces.agents["agent"][int(agent[event])].as_py(),
        )
        numbers = (*report.payments[:, event], report.naive[event], float(report.ledger.increments[event]))
        table.add_row(*map(words, place), *(f"{x:z.4g}" for x in numbers))
    return table


def _traces(traces: Traces, report: Audit, worst: int) -> Table:
    columns = ("reward", "naive", "claimed", "overcount", "events_paid_twice", "expected", "increments", "unexplained")
    titles = ("R", "added up", "Σ|claims|", "overcount", "paid twice", "expected", "increments", "unexplained")
    table = plain_table("trace", *(f"#{title}" for title in titles))
    rows = report.trace_table(traces).to_pylist()
    known = [row for row in rows if row["overcount"] is not None]
    known.sort(key=lambda row: (-row["overcount"], -row["claimed"]))  # where R is 0, by what was paid for it
    for row in known[:worst]:
        table.add_row(words(row["trace"]), *(f"{row[column]:z.4g}" for column in columns))
    return table
