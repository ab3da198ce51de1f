"""`credit choose`: which methods these logs call for."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.reading import allow_bad, given_inputs, leave, read_traces, reads_logs

if TYPE_CHECKING:
    from rich.console import Console

    from credit.advice import Advice

__all__ = ["choose"]


@click.command(
    cls=Command,
    short_help="Recommend methods for logs.",
    examples="""
    credit choose runs/
    credit choose runs/ --json
    """,
)
@reads_logs()
@allow_bad
@json_option
@click.pass_context
def choose(ctx: click.Context, /, paths: tuple[str, ...], allow_bad: bool, as_json: bool, **reading: Any) -> None:
    """Recommend methods for logs: print the command to train with and its effect, then why, then the alternatives.

    The command uses only methods whose policy gradient has no bias: what leaves that open is named before it.
    """
    from credit.advice import choose as go_through
    from credit.methods.running import has_outcomes

    traces = read_traces(paths, **reading)
    advice = go_through(traces, inputs=given_inputs(ctx))
    if as_json:
        print_json(advice.as_json())
    else:
        if not has_outcomes(traces):
            command = shlex.join(["credit", "summary", *given_inputs(ctx)])
            stdout().print(words(f"to look at: {command}"), soft_wrap=True)
        _print(stdout(), advice)
    leave(ctx, traces, allow_bad)


def _print(console: Console, advice: Advice) -> None:
    """What to train with, why, and what else there is."""
    from credit.advice import NO_UNITS

    def say(text: str) -> None:
        console.print(words(text), soft_wrap=True)

    def say_command(use: str, command: str, effect: str) -> None:
        if command == advice.command_if_so:
            say(f"question: {advice.trial.question}")
        say(f"{use}: {command}")
        say(f"  {effect}")

    if advice.trial.unless:
        say(f"first mend, or rule out: {advice.trial.unless}")
    elif not advice.command:
        say("to train: nothing; no unbiased method gives a number other than 0 here")
    others = [row for row in advice.commands if row[0].startswith("or") or row[0] == "to read"]
    for row in advice.commands:
        if row not in others:
            say_command(*row)
    doubt = advice.trial.unless and f": {advice.trial.unless}"
    why_of = {
        branch.method: branch.why.replace(doubt, ", as said first") if doubt else branch.why
        for branch in advice.branches
        if branch.method
    }
    trained = advice.trial.method
    if trained in why_of:
        say(f"why: {why_of[trained]}")
        why_of[trained] = "as said above"
    for kind, why in advice.trial.refused.items():
        say(f"no {kind}: {why}")
    if advice.trained_with:
        say(f"trained with it: {advice.trained_with}")
    for line in (*advice.warnings, f"luck: {advice.luck}"):
        say(line)
    if others:
        console.print()
    for row in others:
        say_command(*row)
    console.print()
    table = plain_table("unit", "in the logs", "allowed", "what it computes, or why none")
    absent = [branch.unit for branch in advice.branches if branch.why == NO_UNITS]
    for branch in advice.branches:
        if branch.unit not in absent:
            why = why_of.get(branch.method, branch.why)
            table.add_row(branch.unit, words(branch.stated), branch.method or "–", words(why))
    console.print(table, width=console.width)  # of sentences, which files have wrapped, too
    if absent:
        say(f"nothing to compare in these logs: {', '.join(absent)}")
    better: dict[tuple[str, str], list[str]] = {}
    for branch in advice.branches:
        for method, need in branch.needs.items():
            better.setdefault((method, need), []).append(branch.unit)
    if better:
        console.print()
        needs = plain_table("better for", "method", "would need, or why not")
        for (method, need), units in better.items():
            needs.add_row(", ".join(units), method, words(need))
        console.print(needs, width=console.width)
