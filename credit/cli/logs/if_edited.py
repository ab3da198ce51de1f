"""`credit if-edited`: what an edit of one event undoes, and what making it again costs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs

if TYPE_CHECKING:
    from credit.metrics.cost_summary import Amount

__all__ = ["if_edited"]

SHOWN = 20  # events that are named


@click.command(
    name="if-edited",
    cls=Command,
    short_help="Say what an edit of one event would undo and cost.",
    examples="credit if-edited runs/ q1-a e7",
)
@reads_logs()
@allow_bad
@json_option
@click.pass_context
def if_edited(ctx: click.Context, /, paths: tuple[str, ...], allow_bad: bool, as_json: bool, **reading: Any) -> None:
    """Say which events an edit of one event undoes, what making them again costs, and the expected change of reward.

    The last two arguments are the id of a trace and the id of one of its events: PATH... TRACE EVENT.
    """
    if len(paths) < 3:
        raise click.UsageError(f"expected PATH... TRACE EVENT, and {len(paths)} of them were given")
    from credit.ledger.receipts.explaining import event_index
    from credit.metrics.event_influence import if_edited as find_effect

    *logs, trace, event = paths
    traces = read_traces(tuple(logs), **reading)
    effect = find_effect(traces, event_index(traces, trace, event)[1])
    if as_json:
        print_json({"trace": trace, "event": event} | dataclasses.asdict(effect))
    else:
        table = plain_table("an edit undoes", "#")
        table.add_row("events", str(len(effect.invalidated)))
        table.add_row("  of them actions", str(effect.actions))
        table.add_row("  of them tool calls", str(effect.tool_calls))
        table.add_row("all later events", str(effect.later))
        for name in ("tokens", "input_tokens", "seconds"):
            table.add_row(f"{name.replace('_', ' ')} they took", _amount(getattr(effect, name)))
        error = "" if effect.stderr is None else f" ± {effect.stderr:.3g}"
        change = "–" if effect.change is None else f"{effect.change:+z.4g}{error}, by {effect.source}"
        table.add_row("expected change of the return", change)
        stdout().print(table)
        if effect.without:
            stdout().print(f"no expected change: {effect.without}", soft_wrap=True)
        shown = ", ".join(effect.invalidated[:SHOWN]) + (", …" if len(effect.invalidated) > SHOWN else "")
        if shown:
            stdout().print(words(f"undone: {shown}"), soft_wrap=True)
    leave(ctx, traces, allow_bad)


def _amount(amount: Amount) -> str:
    if amount.total is None:
        return "–"
    return f"{'≥ ' if amount.missing else ''}{amount.total:.6g}"
