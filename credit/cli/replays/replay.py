"""`credit replay`: make the runs of a plan, and add what came of them to a copy of the log."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from credit.cli.shared.answers import json_option, print_json, stderr, words
from credit.cli.shared.commands import Command, Limit, Number
from credit.cli.shared.engines import engine_option
from credit.cli.shared.outputs import check_folder
from credit.cli.shared.progress import progress_bar
from graphs.text import counted

if TYPE_CHECKING:
    from credit.replay.replay_plan import ReplayPlan
    from credit.replay.run_results import Results

__all__ = ["replay"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW = click.Path(dir_okay=False, path_type=Path)
_SHOWN = 10  # prefixes that did not reproduce, by name


@click.command(
    cls=Command,
    short_help="Make the runs of a plan.",
    examples="""
    credit replay plan.jsonl --driver my_team:rerun --results results.jsonl
    credit replay plan.jsonl --driver my_team:rerun --results results.jsonl --engine ray --concurrency 64
    credit replay plan.jsonl --results results.jsonl --log runs.jsonl -o with_evidence.jsonl
    """,
)
@click.argument("plan", type=_FILE)
@click.option("--driver", metavar="MODULE:NAME", help="Function that runs the team. Without it, only --log is written.")
@click.option("--results", required=True, type=_NEW, metavar="FILE", help="A .jsonl file; resumed where it exists.")
@click.option("--concurrency", type=click.IntRange(1), default=4, show_default=True, help="Runs at a time.")
@click.option("--attempts", type=click.IntRange(1), default=3, show_default=True, help="Tries of a run.")
@click.option("--pause", type=Number(0), default=0.5, show_default=True, help="Seconds before a second try.")
@click.option(
    "--seconds",
    type=Limit(),
    default=3600.0,
    show_default=True,
    help="Wall-clock time of a try; a run over it has failed; inf: any.",
)
@click.option("--max-tokens", type=click.IntRange(1), help="Start no run once this many tokens have been spent.")
@click.option(
    "--score-failed",
    type=Number(),
    metavar="REWARD",
    help="Count failed runs as outcomes with this reward. Default: they are no evidence.",
)
@click.option(
    "--after",
    type=(_FILE, _FILE),
    multiple=True,
    metavar="PLAN RESULTS",
    help="Earlier runs, which become evidence together with these. May be repeated.",
)
@engine_option("Make each run in a process of its own, here or on a cluster.")
@click.option("--log", type=_FILE, metavar="LOG", help="The log of the plan; needs --output.")
@click.option("--output", "-o", type=_NEW, metavar="OUT", help="A copy of the log with the evidence, a .jsonl file.")
@json_option
@click.pass_context
def replay(
    ctx: click.Context,
    plan: Path,
    driver: str | None,
    results: Path,
    concurrency: int,
    attempts: int,
    pause: float,
    seconds: float,
    max_tokens: int | None,
    score_failed: float | None,
    after: tuple[tuple[Path, Path], ...],
    engine: str | None,
    log: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Make the runs of PLAN that --results lacks, and append each when it ends. It can be stopped at any moment.

    The driver is a function of (prefix, replace, forbid, seed) that returns the reward, or an object with `run`
    (`credit.replay.replayer.Replayer`). Failed runs are counted and have no reward.
    """
    import math

    from credit.replay.added_evidence import write_evidence
    from credit.replay.execution import Limits, execute, read_results
    from credit.replay.pooling import pooled
    from credit.replay.replay_plan import read_plan
    from credit.replay.replayer import load_replayer

    if (log is None) != (output is None):
        raise click.UsageError("--log and --output come together", ctx)
    if engine is not None and driver is None:
        raise click.UsageError("--engine makes runs; expected --driver with it", ctx)
    for path, option in ((results, "--results"), (output, "--output")):
        if path is not None:
            check_folder(path, option)
            if path.resolve() in {p.resolve() for p in (plan, log) if p is not None}:
                raise click.BadParameter(f"{str(path)!r} is an input; expected another file", param_hint=option)
    planned = read_plan(plan)
    outcomes = read_results(planned, results)
    console = stderr()
    if driver is not None:
        limits = Limits(concurrency, attempts, pause, seconds, max_tokens or math.inf)
        make = (
            functools.partial(execute, planned, load_replayer(driver)) if engine is None else _on_ray(planned, driver)
        )
        with progress_bar(console) as bar:
            task = bar.add_task("runs", total=planned.runs, completed=outcomes.done)
            outcomes = make(results, limits=limits, advance=lambda n: bar.advance(task, n))
    failed = sum(map(len, outcomes.failed))
    for line in _about_runs(planned, outcomes, results, max_tokens):
        console.print(words(line), soft_wrap=True)
    earlier = [read_plan(earlier_plan) for earlier_plan, _ in after]
    earlier_runs = [(p, read_results(p, file)) for p, (_, file) in zip(earlier, after, strict=True)]
    together, all_outcomes = pooled([*earlier_runs, (planned, outcomes)])
    if score_failed is not None:
        all_outcomes = all_outcomes.scored(score_failed)
    luck = _luck(together, all_outcomes) if planned.purpose == "luck" else None
    if luck is not None:
        console.print(words(luck), soft_wrap=True)
    if log is not None and output is not None:
        from graphs.logs import read

        write_evidence(read(log), together, all_outcomes, output)
        console.print(words(f"wrote {output}"), soft_wrap=True)
    if as_json:
        counts = {"done": outcomes.done, "runs": planned.runs, "failed": failed, "tokens": outcomes.tokens}
        files = {"results": str(results), "output": None if output is None else str(output)}
        print_json(counts | {"strayed": len(outcomes.strayed)} | files | ({} if luck is None else {"luck": luck}))
    if failed or outcomes.strayed:
        ctx.exit(3)


def _about_runs(planned: ReplayPlan, outcomes: Results, results: Path, max_tokens: int | None) -> Iterator[str]:
    """Lines about runs: how many are done, failed or left, and the first prefixes that did not reproduce."""
    failed = sum(map(len, outcomes.failed))
    tokens = f", {outcomes.tokens} tokens" if outcomes.tokens else ""
    yield f"{outcomes.done} of {counted(planned.runs, 'run')} done{tokens}"
    if failed:
        yield f"{counted(failed, 'run')} failed; {results} says why"
    if max_tokens is not None and outcomes.tokens >= max_tokens and outcomes.done + failed < planned.runs:
        yield f"stopped at {max_tokens} tokens"
    if outcomes.strayed:
        strayed = counted(len(outcomes.strayed), "decision")
        yield f"the prefixes of {strayed} did not reproduce; their runs are no evidence"
    for job, why in itertools.islice(outcomes.strayed.items(), _SHOWN):
        prefix = planned.jobs[job].prefix
        yield f"  trace {prefix.trace!r}, event {prefix.decision!r}: {why}"


def _luck(planned: ReplayPlan, outcomes: Results) -> str:
    """The share of luck, or why there is none."""
    from credit.replay.luck_share import luck_of_runs
    from graphs.errors import CreditError

    try:
        return str(luck_of_runs(planned, outcomes))
    except CreditError as error:
        return f"luck: unknown; {error}"


def _on_ray(planned: ReplayPlan, driver: str) -> Callable[..., Results]:
    import credit.ray

    return functools.partial(credit.ray.replay, planned, driver)
