"""`credit plan`: which runs to make for which evidence, within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from credit.cli.shared.answers import json_option, leave, print_json
from credit.cli.shared.commands import Command
from credit.cli.shared.outputs import check_folder
from credit.cli.shared.reading import allow_bad, read_traces, reads_logs, stderr, words
from graphs.text import counted

__all__ = ["plan"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    cls=Command,
    short_help="Plan runs that the log lacks.",
    examples="""
    credit plan runs/ --for value --budget 2000 -o plan.jsonl
    credit plan runs/ --for difference --replace "say nothing" --budget 2000 -o plan.jsonl
    credit plan runs/ --for value --budget 2000 --after plan.jsonl results.jsonl -o more.jsonl
    """,
)
@reads_logs()
@click.option("--for", "purpose", required=True, type=click.Choice(["value", "difference", "spawn"]), help="Evidence.")
@click.option("--budget", required=True, type=click.IntRange(1), help="Runs in all.")
@click.option("--replace", default="0", show_default=True, help="The replacement, in the words of the driver.")
@click.option("--least", type=click.IntRange(1), default=2, show_default=True, help="Runs of each decision, at least.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the runs.")
@click.option(
    "--after", type=(_FILE, _FILE), metavar="PLAN RESULTS", help="Earlier runs; their spreads steer this plan."
)
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="PLAN",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A .jsonl file.",
)
@allow_bad
@json_option
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    purpose: Any,
    budget: int,
    replace: str,
    least: int,
    seed: int,
    after: tuple[Path, Path] | None,
    output: Path,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Write which runs to make: value from before each action, or a re-run with the action replaced.

    Runs are spread evenly, or, after earlier runs, by the spread of their outcomes. `credit replay` makes them.
    """
    from credit.replay.execution import read_results
    from credit.replay.replay_plan import plan_replays, read_plan, spreads_of, write_plan

    check_folder(output, "--output")
    earlier: dict[str, Any] = {}
    if after is not None:
        first = read_plan(after[0])
        earlier = spreads_of(first, read_results(first, after[1]))
    traces = read_traces(paths, **reading)
    planned = plan_replays(traces, purpose, budget, replace=replace, least=least, seed=seed, **earlier)
    write_plan(planned, output)
    console = stderr()
    jobs, runs = counted(len(planned.jobs), "decision"), counted(planned.runs, "run")
    console.print(words(f"wrote {runs} from {jobs} to {output}"), soft_wrap=True)
    if as_json:
        print_json({"for": purpose, "decisions": len(planned.jobs), "runs": planned.runs, "output": str(output)})
    leave(ctx, traces, allow_bad)
