"""`credit decisions`: what it was worth to go on or to stop, and to spawn or not."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs

if TYPE_CHECKING:
    from rich.console import Console

    from credit.metrics.decision_values import DecisionValue

__all__ = ["decisions"]

MORE = {"stop": ("went on", "E[R | go on] − E[R | stop]"), "spawn": ("spawned", "E[R | spawn] − E[R | not]")}


@click.command(
    cls=Command,
    short_help="Show what going on, stopping and spawning were worth.",
    examples="""
    credit decisions runs/ --of stop
    credit decisions runs/ --of stop --cost tokens --price 1e-4
    credit decisions runs/ --of stop --cost tokens --budget 600
    """,
)
@reads_logs()
@click.option("--of", "kind", type=click.Choice(["stop", "spawn"]), default="stop", show_default=True,
              help="Which decisions.")  # fmt: skip
@click.option("--basis", type=click.Choice(["logs", "critic", "replays"]), default="logs", show_default=True,
              help="What values come from: logged choices, a logged critic, or re-runs of the other side.")  # fmt: skip
@click.option("--over", type=click.Choice(["batch", "task"]), default="batch", show_default=True,
              help="Pool decisions over the batch, or within a task.")  # fmt: skip
@click.option("--cost", type=click.Choice(["tokens", "tool_calls", "seconds", "money"]), help="What more costs.")
@click.option("--price", type=float, default=0.0, metavar="NUMBER", help="Units of reward for a unit of the cost.")
@click.option("--prices", "price_table", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="Table of prices, for --cost money.")  # fmt: skip
@click.option("--budget", type=float, metavar="NUMBER",
              help="Fit the price to this mean cost of a trace; of stops of one agent.")  # fmt: skip
@allow_bad
@json_option
@click.pass_context
def decisions(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    kind: Any,
    basis: Any,
    over: Any,
    cost: Any,
    price: float,
    price_table: str | None,
    budget: float | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Show the value of one more step, or of spawning, by agent and step, with its standard error.

    The log states the probability of stopping at each decision that stopped or could have, `stop_propensity`.
    """
    from credit.metrics.decision_values import fitted_price, step_values
    from credit.metrics.event_costs import read_prices

    if budget is not None and (cost is None or kind != "stop" or price):
        raise click.UsageError("--budget is for --of stop with --cost, and takes the place of --price", ctx)
    options: dict[str, Any] = {"basis": basis, "over": over, "cost": cost}
    options["prices"] = None if price_table is None else read_prices(price_table)
    traces = read_traces(paths, **reading)
    with working(stderr(), "comparing decisions"):
        rows = step_values(traces, kind, price=price, **options)
        if budget is not None:
            price = fitted_price(rows, budget)
            rows = step_values(traces, kind, price=price, **options)
    if as_json:
        print_json({"of": kind, "basis": basis, "price": price, "decisions": [dataclasses.asdict(row) for row in rows]})
    else:
        _print(stdout(), rows, kind, cost, price)
    leave(ctx, traces, allow_bad)


def _print(console: Console, rows: list[DecisionValue], kind: str, cost: str | None, price: float) -> None:
    more, formula = MORE[kind]
    by_task, priced = any(row.group for row in rows), cost is not None
    table = plain_table(
        *(["task"] if by_task else []), "agent", "#step", "#decisions", f"#{more}", "#gain",
        *([f"#{cost}"] if priced else []), "#value of more", "±", "no number since",
    )  # fmt: skip
    for row in rows:
        numbers = [row.gain, *([row.cost] if priced else []), row.value]
        shown = ["–" if x is None else f"{x:+z.3g}" for x in numbers]
        error = "–" if row.stderr is None else f"{row.stderr:.2g}"
        names = [words(row.group)] if by_task else []
        counts = (str(row.step), str(row.decisions), str(row.more))
        table.add_row(*names, words(row.agent), *counts, *shown, error, words(row.reason))
    console.print(table)
    text = f"gain: {formula}. ±: standard error over traces; – with fewer than 50 effective decisions on a side."
    if priced:
        text += f" value of more: gain less {price:.4g} for each of {cost}."
    console.print(words(text), soft_wrap=True)
