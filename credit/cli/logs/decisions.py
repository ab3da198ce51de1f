"""`credit decisions`: what it was worth to go on or stop, to spawn or not, whom to ask, and to aggregate."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import explain, json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command, Number, takes_prices
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from graphs.text import signed

if TYPE_CHECKING:
    from rich.console import Console

    from credit.metrics.aggregate_values import AggregateValue
    from credit.metrics.candidate_values import CandidateValue
    from credit.metrics.decision_values import DecisionValue
    from credit.metrics.event_costs import Prices

__all__ = ["decisions"]

ERROR = "±: one standard error over traces"
MORE = {"stop": ("went on", "E[R | go on] − E[R | stop]"), "spawn": ("spawned", "E[R | spawn] − E[R | not]")}


@click.command(
    cls=Command,
    short_help="Show what going on, stopping, spawning, asking and aggregating were worth.",
    examples="""
    credit decisions runs/ --of stop
    credit decisions runs/ --of stop --cost tokens --price 1e-4
    credit decisions runs/ --of stop --cost tokens --budget 600
    credit decisions runs/ --of whom
    """,
)
@reads_logs()
@click.option("--of", "kind", type=click.Choice(["stop", "spawn", "whom", "aggregate"]), default="stop",
              show_default=True, help="Which decisions.")  # fmt: skip
@click.option("--basis", type=click.Choice(["logs", "critic", "replays"]), default="logs", show_default=True,
              help="What values come from: logged choices, a logged critic, or re-runs of the other side.")  # fmt: skip
@click.option("--over", type=click.Choice(["batch", "task"]), default="batch", show_default=True,
              help="Pool decisions over the batch, or within a task, that is a group.")  # fmt: skip
@click.option("--cost", type=click.Choice(["tokens", "tool_calls", "seconds", "money"]), help="What more costs.")
@click.option("--price", type=Number(), default=0.0, metavar="NUMBER", help="Units of reward for a unit of the cost.")
@takes_prices(", for --cost money")
@click.option("--budget", type=Number(), metavar="NUMBER",
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
    prices: Prices | None,
    budget: float | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Show the value of one more step, of spawning, or of each agent that could be asked, by agent and step.

    The log states the probability of stopping at each decision that stopped or could have, `stop_propensity`; that of
    the agent that was asked is `propensity`. Aggregation is compared with the `agent_reward` of what it combined.
    """
    from credit.metrics.aggregate_values import aggregate_values
    from credit.metrics.candidate_values import candidate_values
    from credit.metrics.decision_values import fitted_price, step_values

    if budget is not None and (cost is None or kind != "stop" or price):
        raise click.UsageError("--budget is for --of stop with --cost, and takes the place of --price", ctx)
    if kind in ("whom", "aggregate") and (cost is not None or price or prices is not None or basis != "logs"):
        raise click.UsageError("--basis, --cost, --price and --prices are for --of stop and --of spawn", ctx)
    if kind == "aggregate" and over != "batch":
        raise click.UsageError("--over is for --of stop, --of spawn and --of whom", ctx)
    options: dict[str, Any] = {"basis": basis, "over": over, "cost": cost, "prices": prices}
    traces = read_traces(paths, **reading)
    rows: Any  # of the kind that was asked for
    with working(stderr(), "comparing decisions"):
        if kind == "whom":
            rows = candidate_values(traces, over=over)
        elif kind == "aggregate":
            rows = aggregate_values(traces)
        else:
            rows = step_values(traces, kind, price=price, **options)
            if budget is not None:
                price = fitted_price(rows, budget)
                rows = step_values(traces, kind, price=price, **options)
    if as_json:
        priced = {"basis": basis, "price": price} if kind in MORE else {}
        print_json({"of": kind, **priced, "decisions": [dataclasses.asdict(row) for row in rows]})
    elif kind == "whom":
        _print_candidates(stdout(), rows)
    elif kind == "aggregate":
        _print_aggregates(stdout(), rows)
    else:
        _print(stdout(), rows, kind, basis, cost, price)
    leave(ctx, traces, allow_bad)


def _print(console: Console, rows: list[DecisionValue], kind: str, basis: str, cost: str | None, price: float) -> None:
    more, formula = MORE[kind]
    by_group, priced = any(row.group for row in rows), cost is not None
    few = (
        "± –: fewer than 50 effective decisions on a side"
        if basis == "logs"
        else "± –: fewer than 50 effective traces, or fewer than 5 above or below the mean"
    )
    table = plain_table(
        *(["group"] if by_group else []), "agent", "#step", "#decisions", f"#{more}", "#gain",
        *([f"#{cost}"] if priced else []), "#value of more", "±", "no number since",
    )  # fmt: skip
    for row in rows:
        shown = [_signed(x) for x in (row.gain, *([row.cost] if priced else []), row.value)]
        error = _error(row.stderr)
        names = [words(row.group)] if by_group else []
        counts = (str(row.step), str(row.decisions), str(row.more))
        table.add_row(*names, words(row.agent), *counts, *shown, error, words(row.reason))
    console.print(table)
    explain(
        console,
        table,
        ("", f"gain: {formula}"),
        ("±: ", ERROR),
        ("±: –", few),
        *([("", f"value of more: gain less {price:.4g} for each of {cost}")] if priced else []),
    )


def _print_candidates(console: Console, rows: list[CandidateValue]) -> None:
    by_group = any(row.group for row in rows)
    table = plain_table(
        *(["group"] if by_group else []),
        "agent",
        "#step",
        "#decisions",
        "asked",
        "#times",
        "#value",
        "±",
        "no number since",
    )
    for row in rows:
        names = [words(row.group)] if by_group else []
        counts = (str(row.step), str(row.decisions), words(row.candidate), str(row.picks))
        table.add_row(*names, words(row.agent), *counts, _signed(row.value), _error(row.stderr), words(row.reason))
    console.print(table)
    explain(
        console,
        table,
        ("", "value: E[R | asked] − E[R]"),
        ("±: ", ERROR),
        ("±: –", "± –: fewer than 50 effective picks"),
    )


def _print_aggregates(console: Console, rows: list[AggregateValue]) -> None:
    table = plain_table(
        "agent",
        "#decisions",
        "#unknown",
        "#results",
        "#outcome",
        "#best",
        "#over best",
        "±",
        "#mean",
        "#over mean",
        "±",
    )
    for row in rows:
        table.add_row(
            words(row.agent), str(row.decisions), str(row.unknown), f"{row.results:.3g}", f"{row.outcome:.3g}",
            f"{row.best:.3g}", _signed(row.over_best), _error(row.over_best_stderr),
            f"{row.mean:.3g}", _signed(row.over_mean), _error(row.over_mean_stderr),
        )  # fmt: skip
    console.print(table)
    over = "over best, over mean: outcome less the best and the mean of the combined results"
    explain(console, table, ("", over), ("±: ", ERROR))


def _signed(number: float | None) -> str:
    return "–" if number is None else signed(number)


def _error(stderr: float | None) -> str:
    return "–" if stderr is None else f"{stderr:.2g}"
