"""`credit explain`: the receipt of one event."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.claims import makes_ledger, settled, takes_claims
from credit.cli.shared.commands import Command
from credit.cli.shared.progress import steps
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs

if TYPE_CHECKING:
    from rich.console import Console

    from credit.ledger.receipts.receipt import Receipt
    from credit.methods.claims import ClaimRequest

__all__ = ["explain"]


_PRECISION = 2**-22  # relative, of sums of a few single-precision numbers
COLUMNS = (
    "wanted: credit − baseline of the method. as increment: that amount for this action alone. "
    "weight: of the claim in the average. got: what it brought to the entry."
)
ROUNDING = 1e-5  # differences of this size come from the grid of exact arithmetic and are not shown


@click.command(
    cls=Command,
    short_help="Explain the credit of one event.",
    examples="credit explain runs/ q1-a e7 --methods rloo,c3",
)
@reads_logs()
@takes_claims
@makes_ledger
@allow_bad
@json_option
@click.pass_context
def explain(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    asked: ClaimRequest,
    making: dict[str, Any],
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Explain the credit of one event: its claims, what each of them estimates, and what the ledger pays.

    The last two arguments are a trace's id and the id or number of one of its events: PATH... TRACE EVENT.
    """
    if len(paths) < 3:
        raise click.UsageError(f"expected PATH... TRACE EVENT, and {len(paths)} of them were given")
    asked.check()
    from credit.ledger.from_methods import compose_claims
    from credit.ledger.receipts.explaining import explain as write_receipt

    *logs, trace, event = paths
    traces = read_traces(tuple(logs), **reading)
    traces.event_row(trace, event)  # before methods run
    traces, claims = settled(asked, traces).run(traces, progress=functools.partial(steps, stderr()))
    ledger = compose_claims(traces, claims, **making)
    receipt = write_receipt(traces, trace, event, claims, ledger=ledger)
    if as_json:
        print_json(receipt.as_json())
    else:
        _print(stdout(), receipt)
    leave(ctx, traces, allow_bad)


def _print(console: Console, receipt: Receipt) -> None:
    from credit.ledger.receipts.receipt import LEGEND

    chosen = "an action" if receipt.action else "no action of the team's policy"
    head = (
        f"event {receipt.event} of trace {receipt.trace}: {receipt.type} by {receipt.agent} ({receipt.role}), {chosen}"
    )
    console.print(words(head, "bold"), soft_wrap=True)
    if receipt.call:
        console.print(words(f"its credit is looked up at the action that it came from: {receipt.call}"), soft_wrap=True)
    console.print()
    amounts = (
        ("expected at the start", receipt.expected),
        ("this event (noise)" if receipt.noise else "this event", receipt.entry),
        ("its other events", receipt.others),
        ("outcome, after the last action", receipt.outcome),
        ("unexplained", receipt.unexplained),
        ("remainder of exact arithmetic", receipt.remainder),
        ("reward", receipt.reward),
    )
    largest = max((abs(amount) for _, amount in amounts if amount is not None), default=0.0)

    def number(value: float | None) -> str:
        return _number(value, largest)

    table = plain_table("claim", "estimates", "per", "#wanted", "#±", "#as increment", "#weight", "#got", "why")
    for line in receipt.lines:
        numbers = (line.wanted, line.stderr, line.increment, line.weight, line.got)
        table.add_row(words(line.claim), line.estimand, line.unit, *map(number, numbers), words(line.why))
    console.print(table)
    console.print()
    if abs(receipt.rest) > ROUNDING * max(1.0, abs(receipt.entry)):
        console.print(words(f"by rule {receipt.rule!r}, without a claim: {number(receipt.rest)}"))
    entry = number(receipt.entry)
    if receipt.noise:
        entry = f"({entry} ± {number(receipt.stderr)}), which is noise: within two standard errors of 0"
    elif receipt.stderr is not None:
        entry = f"{entry} ± {number(receipt.stderr)}"
    console.print(words(f"added up, the claims would pay {number(receipt.naive)}; the ledger pays {entry}"))
    account = plain_table("account of the trace", "#amount")
    for name, amount in amounts if receipt.reward is not None else amounts[-1:]:
        account.add_row(name, "no outcome" if amount is None else number(amount))
    console.print()
    console.print(account)
    if receipt.holding_luck:
        console.print(words(receipt.holding_luck), soft_wrap=True)
    console.print()
    console.print(f"{COLUMNS} {LEGEND}", soft_wrap=True)


def _number(value: float | None, largest: float) -> str:
    """A number; 0 where it is below what single precision tells apart beside the `largest` of its account."""
    if value is not None and abs(value) <= largest * _PRECISION:
        value = 0.0
    return "–" if value is None else f"{value:z.6g}"
