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
    """Recommend methods for logs: print the command to train with and its effect, then the reasons.

    The reasons are the evidence that the logs hold. The command uses only methods whose policy gradient has no bias:
    what leaves that open is named, with the command for the case that it is not so.
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
    """The answer, then its reasons."""
    if not advice.command:
        why = "nothing; no unbiased method gives a number other than 0 here"
        why = f"only if the following is not so: {advice.trial.unless}" if advice.trial.unless else why
        console.print(words(f"to train: {why}"), soft_wrap=True)
    for use, command, effect in advice.commands:
        if command == advice.command_if_so:
            console.print(words(f"question: {advice.trial.question}"), soft_wrap=True)
        console.print(words(f"{use}: {command}"), soft_wrap=True)
        console.print(words(f"  {effect}"), soft_wrap=True)
    for kind, why in advice.trial.refused.items():
        console.print(words(f"no {kind}: {why}"), soft_wrap=True)
    if advice.trained_with:
        console.print(words(f"trained with it: {advice.trained_with}"), soft_wrap=True)
    for line in advice.warnings:
        console.print(words(line), soft_wrap=True)
    console.print(words(f"luck: {advice.luck}"), soft_wrap=True)
    console.print()
    table = plain_table("unit", "in the logs", "allowed", "what it computes, or why none")
    for branch in advice.branches:
        table.add_row(branch.unit, words(branch.stated), branch.method or "–", words(branch.why))
    console.print(table, width=console.width)  # of sentences, which files have wrapped, too
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
    console.print()
    if any(question.answer for question in advice.questions):
        questions = plain_table("question of the survey", "in the logs", "then", "measured here")
        for question in advice.questions:
            if question.answer:
                questions.add_row(question.name, *map(words, (question.stated, question.advice, question.evidence)))
        console.print(questions, width=console.width)
    no = [question.name for question in advice.questions if not question.answer]
    if no:
        console.print(words(f"questions of the survey that these logs answer with no: {', '.join(no)}"), soft_wrap=True)
