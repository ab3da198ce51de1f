"""`credit score reliability`: do two halves of the logs give the same credit?"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_option, method_options
from credit.cli.shared.answers import json_option, print_json, stderr, stdout, words
from credit.cli.shared.commands import SEED, Command
from credit.cli.shared.progress import progress_bar
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from credit.reports.reliability import By, Halves, Reliability
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["reliability"]

KINDS = ("tool", "agent", "role", "type")
LEGEND = (
    "agreement: correlation between the halves, from -1 to 1. of the whole: the agreement expected of "
    "two logs, each as large as all of these. numbers: those that both halves have."
)
HALVES: tuple[Halves, ...] = ("groups", "traces")


@click.command(
    cls=Command,
    short_help="Measure agreement between halves of the logs.",
    examples="credit score reliability runs/ --method rloo --by agent",
)
@reads_logs()
@method_option
@method_options
@evidence_option
@click.option(
    "--by", type=click.Choice(KINDS), default="tool", show_default=True, help="Kind of action to average over."
)
@click.option("--splits", type=click.IntRange(1), default=20, show_default=True, help="Number of random splits.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of splits.")
@allow_bad
@json_option
@click.pass_context
def reliability(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    method: str,
    option_texts: tuple[str, ...],
    also: tuple[str, ...],
    by: By,
    splits: int,
    seed: int,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Split the logs in two at random, assign credit in each half, and measure how well the halves agree.

    One table row splits tasks, one splits the traces of each task. The numbers compared are mean advantages of kinds
    of action.
    """
    from credit.methods.option_texts import parse_options
    from credit.methods.running import run_part
    from graphs.errors import CreditError

    options = parse_options(method, option_texts)
    traces = read_traces(paths, **reading)

    with progress_bar(stderr()) as bar:
        task = bar.add_task("assigning in halves", total=2 * splits * len(HALVES))

        def credit_of(half: Traces) -> Credit:
            credit = run_part(half, method, evidence=also, **options)
            bar.advance(task)
            return credit

        result = {halves: _agreement(traces, credit_of, by, halves, splits, seed) for halves in HALVES}
    if all(isinstance(r, str) for r in result.values()):
        raise CreditError("; ".join(f"halves of {halves}: {why}" for halves, why in result.items()))
    if as_json:
        plain = {k: v if isinstance(v, str) else dataclasses.asdict(v) for k, v in result.items()}
        print_json({"method": method, "by": by, "halves": plain})
    else:
        from rich.table import Table

        table = Table("halves of", "agreement", "of the whole", "numbers", "tasks", box=None, pad_edge=False)
        for halves, r in result.items():
            if isinstance(r, str):
                table.add_row(halves, words(r))
                continue
            table.add_row(halves, _number(r.agreement), _number(r.stepped_up), f"{r.units:.0f}", str(r.groups))
        stdout().print(table)
        stdout().print(words(f"{method}, mean advantages by {by}. {LEGEND}"), soft_wrap=True)
        if any(not isinstance(r, str) and math.isnan(r.stepped_up) for r in result.values()):
            why = "of the whole: – where halves do not agree, since an agreement of 0 or less cannot be stepped up"
            stdout().print(why, soft_wrap=True)
    leave(ctx, traces, allow_bad)


def _number(value: float) -> str:
    return f"{value:+z.2f}" if math.isfinite(value) else "–"


def _agreement(
    traces: Traces, run: Callable[[Traces], Credit], by: By, halves: Halves, splits: int, seed: int
) -> Reliability | str:
    """How well the halves agree, or why these logs cannot tell."""
    from credit.reports.reliability import SplitError, reliability

    try:
        result = reliability(traces, run, by=by, halves=halves, splits=splits, seed=seed)
    except SplitError as error:
        return str(error)
    if math.isnan(result.agreement):
        return f"some split has fewer than 3 numbers in both halves, or equal ones; the mean is {result.units:.0f}"
    return result
