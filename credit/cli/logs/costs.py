"""`credit costs`: tokens, tool calls, seconds and money by agent, role, decision, model or trace."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from graphs.text import counted

if TYPE_CHECKING:
    from rich.console import Console

    from credit.metrics.cost_summary import Amount, CostRow, CostUnit, GroupCosts

__all__ = ["costs"]

LEGEND = "≥: the log lacks the number of some events. –: of all. seconds: since the latest cause."
MONEY = (
    "money: cache reads are priced as input, so it may be too high; ~: the log lacks the tokens of some events, too."
)
UNITS = ("agent", "role", "decision", "model", "trace")


@click.command(
    cls=Command,
    short_help="Add up tokens, tool calls, seconds and money.",
    examples="""
    credit costs runs/ --by role
    credit costs runs/ --by model --prices prices.csv
    """,
)
@reads_logs()
@click.option("--by", type=click.Choice(UNITS), default="agent", show_default=True,
              help="Unit to add up over; decision: spawn, whom, message, aggregate, stop, tool, other.")  # fmt: skip
@click.option("--prices", "price_table", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="Table of prices: model, input and output (of a million tokens), or tool and call.")  # fmt: skip
@allow_bad
@json_option
@click.pass_context
def costs(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    by: CostUnit,
    price_table: str | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Add up what teams cost: tokens, tool calls, seconds, and money by a table of prices.

    Sums over events whose number the log lacks are lower bounds and marked so. Money is none, since cache reads are
    priced as input.
    """
    from credit.metrics.cost_summary import cost_rows, group_costs, stated_sums
    from credit.metrics.event_costs import read_prices

    prices = None if price_table is None else read_prices(price_table)
    traces = read_traces(paths, **reading)
    rows, groups, stated = cost_rows(traces, by, prices), group_costs(traces), stated_sums(traces)
    if as_json:
        plain = [dataclasses.asdict(row) for row in rows]
        whole = {name: dataclasses.asdict(amount) for name, amount in stated.items()}
        print_json({"by": by, "costs": plain, "groups": dataclasses.asdict(groups), "stated": whole})
    else:
        _print(stdout(), rows, groups, by, prices is not None)
        for name, amount in stated.items():
            if amount.total is not None:
                some = counted(traces.sizes.traces - amount.missing, "trace")
                stdout().print(f"costs.{name}, as the log states it of {some}: {amount.total:.6g}", soft_wrap=True)
    leave(ctx, traces, allow_bad)


def _print(console: Console, rows: list[CostRow], groups: GroupCosts, by: str, priced: bool) -> None:
    money = ["#money"] if priced else []
    table = plain_table(by, "#events", "#tool calls", "#tokens", "#input tokens", "#seconds", *money)
    for row in rows:
        amounts = [_text(amount) for amount in (row.tokens, row.input_tokens, row.seconds)]
        paid = [_text(row.money, "~")] if priced else []
        table.add_row(words(row.unit), str(row.events), str(row.tool_calls), *amounts, *paid)
    console.print(table)
    console.print(LEGEND, soft_wrap=True)
    if priced:
        console.print(MONEY, soft_wrap=True)
    k = f"{counted(groups.groups, 'group')} of K = {groups.multiplier:.3g} traces on average"
    if groups.of_trace is None:
        console.print(
            f"{k}; an action lacks its tokens, read or generated, so what a group cost is not known",
            soft_wrap=True,
        )
    else:
        untaught = "" if groups.untaught is None else f"; {groups.untaught:.0%} of tokens in groups that teach nothing"
        line = f"{k}; tokens of a trace {groups.of_trace:.6g}, of a group {groups.of_group:.6g}{untaught}"
        console.print(line, soft_wrap=True)


def _text(amount: Amount, incomplete: str = "≥") -> str:
    if amount.total is None:
        return "–"
    return f"{f'{incomplete} ' if amount.missing else ''}{amount.total:.6g}"
