"""`credit plan`: which runs to make for which evidence, within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, print_json, stderr, words
from credit.cli.shared.commands import SEED, Command
from credit.cli.shared.outputs import output_option
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from graphs.text import counted

if TYPE_CHECKING:
    from credit.replay.replay_plan import ReplayPlan

__all__ = ["plan"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _budget(ctx: click.Context, parameter: click.Parameter, text: str) -> tuple[int, str]:
    from credit.replay.allocation import parse_budget
    from graphs.errors import CreditError

    try:
        return parse_budget(text)
    except CreditError as error:
        raise click.BadParameter(str(error), ctx, parameter) from error


@click.command(
    cls=Command,
    short_help="Plan runs that the log lacks.",
    examples="""
    credit plan runs/ --for c3 --budget 2000 -o plan.jsonl
    credit plan runs/ --for difference --replace "say nothing" --budget 2000000tokens -o plan.jsonl
    credit plan runs/ --for stop --replace stop --go-on "ask again" --budget 500 -o plan.jsonl
    credit plan runs/ --for shapley --units planner,coder,critic --budget 400 -o plan.jsonl
    credit plan runs/ --for luck --budget 400 -o plan.jsonl
    credit plan runs/ --for value --budget 2000 --after plan.jsonl results.jsonl -o more.jsonl
    """,
)
@reads_logs()
@click.option(
    "--for",
    "purpose",
    required=True,
    type=click.Choice(["value", "c3", "difference", "spawn", "stop", "shapley", "luck"]),
    help="Evidence to collect.",
)
@click.option(
    "--budget",
    required=True,
    metavar="NUMBER[runs|tokens]",
    callback=_budget,
    help="Total of all runs. A run counts the tokens that the logged trace took from that action on.",
)
@click.option("--replace", metavar="TEXT",
              help="The replacement of --for difference, spawn and stop, for the driver.  [default: 0]")  # fmt: skip
@click.option("--go-on", metavar="TEXT", help="What replaces a stop, of --for stop.  [default: 1]")
@click.option("--units", metavar="NAME,...", help="Agents that are players of --for shapley. Default: all.")
@click.option("--least", type=click.IntRange(1), default=2, show_default=True, help="Runs of each decision, at least.")
@click.option("--seed", type=SEED, help="Seed of the runs. Default: 0, or 1 above the seeds of --after.")
@click.option(
    "--after",
    type=(_FILE, _FILE),
    multiple=True,
    metavar="PLAN RESULTS",
    help="Earlier runs, from which the spread of outcomes is known. May be repeated.",
)
@output_option("A .jsonl file.", required=True, metavar="PLAN", suffixes=())
@allow_bad
@json_option
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    purpose: Any,
    budget: tuple[int, str],
    replace: str | None,
    go_on: str | None,
    units: str | None,
    least: int,
    seed: int | None,
    after: tuple[tuple[Path, Path], ...],
    output: Path,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Write which runs to make. They start before each action, or with the action replaced, or use a part of the team.

    Decisions whose outcomes vary more get more runs: outcomes of the group or, with --after, of earlier runs. The
    predicted standard error of each mean is printed and stored. `credit replay` makes the runs.
    """
    from credit.replay.execution import read_results
    from credit.replay.pooling import pooled
    from credit.replay.replay_plan import read_plan, write_plan
    from credit.replay.run_planning import known_from, plan_replays
    from credit.replay.team_planning import plan_coalitions

    if units is not None and purpose != "shapley":
        raise click.UsageError("--units is for --for shapley", ctx)
    if replace is not None and purpose not in ("difference", "spawn", "stop"):
        raise click.UsageError("--replace is for --for difference, spawn and stop", ctx)
    if go_on is not None and purpose != "stop":
        raise click.UsageError("--go-on is for --for stop", ctx)
    known = game = None
    if after:
        plans = [read_plan(path) for path, _ in after]
        first, results = pooled(
            (earlier, read_results(earlier, path)) for earlier, (_, path) in zip(plans, after, strict=True)
        )
        if first.purpose != purpose:
            raise click.UsageError(f"--after is for {first.purpose!r}; expected {purpose!r}", ctx)
        known, game = known_from(first, results), first.game
        seed = 1 + max(earlier.seed for earlier in plans) if seed is None else seed
    traces = read_traces(paths, **reading)
    amount, unit = budget
    options: dict[str, Any] = {"unit": unit, "least": least, "seed": seed or 0, "known": known}
    if purpose == "shapley":
        names = () if units is None else tuple(name.strip() for name in units.split(","))
        planned = plan_coalitions(traces, amount, units=names, game=game, **options)
    else:
        planned = plan_replays(traces, purpose, amount, replace=replace, go_on=go_on, **options)
    write_plan(planned, output)
    _report(planned, output)
    if as_json:
        numbers = {"decisions": len(planned.jobs), "runs": planned.runs, "tokens": planned.tokens}
        print_json({"for": purpose, **numbers, "output": str(output)})
    leave(ctx, traces, allow_bad)


def _report(planned: ReplayPlan, output: Path) -> None:
    import math

    from credit.replay.team_planning import predicted_share_stderr

    console = stderr()
    jobs = counted(len(planned.jobs), "decision")
    if planned.game is not None:
        jobs = counted(len(planned.jobs), "pair") + " of coalition and task"
    tokens = "" if planned.tokens is None else f", about {planned.tokens:.0f} tokens,"
    console.print(words(f"wrote {counted(planned.runs, 'run')} from {jobs}{tokens} to {output}"), soft_wrap=True)
    errors = sorted(job.stderr for job in planned.jobs if math.isfinite(job.stderr))
    if errors:
        low, middle, high = errors[0], errors[len(errors) // 2], errors[-1]
        text = f"predicted standard errors of the means: {low:.3g} to {high:.3g}, median {middle:.3g}"
        console.print(words(text), soft_wrap=True)
    if planned.game is not None and len(errors) == len(planned.jobs):
        for name, error in predicted_share_stderr(planned).items():
            console.print(words(f"predicted standard error of the share of {name}: {error:.3g}"), soft_wrap=True)
