"""`credit siblings`: prefixes that traces of a log share become evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from credit.cli.shared.answers import json_option, print_json, stderr, words
from credit.cli.shared.commands import Command
from credit.cli.shared.outputs import check_folder, stay_outside
from credit.cli.shared.reading import allow_bad, keep_logs, leave, read_traces, reads_logs
from graphs.text import counted

__all__ = ["siblings"]

_NEW = click.Path(dir_okay=False, path_type=Path)
_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")


@click.command(
    cls=Command,
    short_help="Find actions that were chosen after one prefix.",
    examples="""
    credit siblings runs/ -o with_siblings.jsonl
    credit siblings runs/ -o with_siblings.jsonl --contrasts contrasts.jsonl
    """,
)
@reads_logs()
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="OUT",
    type=_NEW,
    help="A copy of the log: .jsonl, .jsonl.gz or .jsonl.zst.",
)
@click.option(
    "--contrasts", metavar="FILE", type=_NEW, help="Also write mean returns of spawn or not, and of whom to ask."
)
@click.option(
    "--without-content",
    type=click.Choice(["differ", "equal"]),
    default="differ",
    show_default=True,
    help="Whether events without content differ, or are equal if type, agents, tool and status are.",
)
@allow_bad
@json_option
@click.pass_context
def siblings(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: Path,
    contrasts: Path | None,
    without_content: Any,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Mark actions that traces of a task chose after equal prefixes, with `context` and `node`, in a copy of the log.

    The prefix is all that happened before: messages, tool calls and answers, spawns, and the agents. `credit assign
    --method c3` takes the copy. No two actions share a `node`, since the traces are independent. Equal actions share
    an `alternative`.
    """
    from credit.replay.json_lines import write_lines
    from credit.replay.prefixes.choice_contrasts import choice_contrasts
    from credit.replay.prefixes.shared_prefixes import shared_prefixes, with_siblings
    from graphs.writers import native

    if not output.name.endswith(_SUFFIXES):
        raise click.BadParameter(f"{str(output)!r}; expected a name ending in {', '.join(_SUFFIXES)}", ctx=ctx)
    for path, option in ((output, "--output"), (contrasts, "--contrasts")):
        if path is not None:
            check_folder(path, option)
            keep_logs(ctx, path, option)
            stay_outside(ctx, path)
    if contrasts is not None and contrasts.resolve() == output.resolve():
        raise click.BadParameter("it is the file of --output; expected another one", ctx=ctx, param_hint="--contrasts")
    traces = read_traces(paths, **reading)
    shared = shared_prefixes(traces, without_content=without_content)
    native.write(with_siblings(traces, shared), output)
    choices = list(choice_contrasts(traces, shared))
    if contrasts is not None:
        write_lines(contrasts, (choice.row() for choice in choices))
    actions = int(traces.graph.action_mask.sum())
    console = stderr()
    text = f"{shared.actions} of {counted(actions, 'action')} have siblings, in {counted(shared.contexts, 'context')}"
    console.print(words(text), soft_wrap=True)
    if shared.unknown:
        text = f"{counted(shared.unknown, 'event')} without content end the prefixes that can be compared"
        console.print(words(text), soft_wrap=True)
    numbers = {question: sum(choice.question == question for choice in choices) for question in ("spawn", "whom")}
    text = f"contexts with spawn and no spawn: {numbers['spawn']}; with different agents asked: {numbers['whom']}"
    console.print(words(text), soft_wrap=True)
    console.print(words(f"wrote {output}"), soft_wrap=True)
    if as_json:
        counts = {"actions": actions, "with_siblings": shared.actions, "contexts": shared.contexts}
        files = {"output": str(output), "contrasts": None if contrasts is None else str(contrasts)}
        print_json(counts | {"without_content": shared.unknown} | numbers | files)
    leave(ctx, traces, allow_bad)
