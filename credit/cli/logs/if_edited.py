"""`credit if-edited`: what an edit of one event undoes, and what making it again costs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import SEED, Command
from credit.cli.shared.outputs import check_folder
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from graphs.text import at_least, counted, signed

if TYPE_CHECKING:
    from credit.metrics.cost_summary import Amount
    from credit.replay.edited_runs import EditedRuns
    from graphs.traces.batch import Traces

__all__ = ["if_edited"]

SHOWN = 20  # events that are named


@click.command(
    name="if-edited",
    cls=Command,
    short_help="Say what an edit of one event would undo and cost.",
    examples="""
    credit if-edited runs/ q1-a e7
    credit if-edited runs/ q1-a e7 --run my_team:rerun --replace "say nothing" --results edit.jsonl
    """,
)
@reads_logs()
@click.option("--run", "driver", metavar="MODULE:NAME", help="Make the runs, by this driver, as `credit replay` does.")
@click.option("--replace", metavar="TEXT", help="What is put in the place of the event. Default: decided anew.")
@click.option("--runs", type=click.IntRange(1), default=8, show_default=True, help="How many runs.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the runs.")
@click.option("--results", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="With --run, the .jsonl file of the runs; resumed where it exists.")  # fmt: skip
@allow_bad
@json_option
@click.pass_context
def if_edited(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    driver: str | None,
    replace: str | None,
    runs: int,
    seed: int,
    results: Path | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Say which events an edit of one event undoes, what making them again costs, and the expected change of reward.

    The last two arguments are a trace's id and the id or number of one of its events: PATH... TRACE EVENT. With --run
    the trace is run again from there, and the change is measured.
    """
    if (driver is None) != (results is None):
        raise click.UsageError("--run and --results come together")
    if driver is None and replace is not None:
        raise click.UsageError("--replace is for runs; expected --run with it")
    if len(paths) < 3:
        raise click.UsageError(f"expected PATH... TRACE EVENT, and {len(paths)} of them were given")
    from credit.metrics.event_influence import if_edited as find_effect

    *logs, trace, event = paths
    traces = read_traces(tuple(logs), **reading)
    row = traces.event_row(trace, event)
    effect = find_effect(traces, row)
    made = None if driver is None or results is None else _run(traces, row, driver, replace, runs, seed, results)
    if as_json:
        plain = None if made is None else dataclasses.asdict(made)
        print_json({"trace": trace, "event": event} | dataclasses.asdict(effect) | {"run": plain})
    else:
        table = plain_table("an edit undoes", "#")
        counts = {"events": len(effect.invalidated), "  of them actions": effect.actions,
                  "  of them tool calls": effect.tool_calls, "all later events": effect.later}  # fmt: skip
        for name, count in counts.items():
            table.add_row(name, at_least(str(count), effect.lacks_lines))
        for name in ("tokens", "input_tokens", "seconds"):
            table.add_row(f"{name.replace('_', ' ')} they took", _amount(getattr(effect, name), effect.lacks_lines))
        error = "" if effect.stderr is None else f" ± {effect.stderr:.3g}"
        change = "–" if effect.change is None else f"{signed(effect.change, 4)}{error}, by {effect.source}"
        table.add_row("expected change of the return, ± one standard error", change)
        if made is not None:
            table.add_row(f"change of the return by {counted(made.runs, 'run')}, ± one standard error", _change(made))
        stdout().print(table)
        if made is not None and made.strayed:
            stdout().print(words(f"the prefix did not reproduce: {made.strayed}"), soft_wrap=True)
        if made is not None and made.failed:
            stdout().print(f"{counted(made.failed, 'run')} failed; {results} says why", soft_wrap=True)
        if effect.without:
            stdout().print(f"no expected change: {effect.without}", soft_wrap=True)
        shown = ", ".join(effect.invalidated[:SHOWN]) + (", …" if len(effect.invalidated) > SHOWN else "")
        if shown:
            stdout().print(words(f"undone: {shown}"), soft_wrap=True)
    leave(ctx, traces, allow_bad)


def _run(traces: Traces, row: int, driver: str, replace: str | None, runs: int, seed: int, results: Path) -> EditedRuns:
    from credit.replay.edited_runs import edit_plan, run_edit
    from credit.replay.execution import Limits
    from credit.replay.replayer import load_replayer

    check_folder(results, "--results")
    plan = edit_plan(traces, row, replace, runs, seed)
    with working(stderr(), "making runs"):
        return run_edit(traces, plan, load_replayer(driver), results, Limits(), name=driver)


def _change(made: EditedRuns) -> str:
    error = "" if made.stderr is None else f" ± {made.stderr:.3g}"
    return "–" if made.change is None else f"{signed(made.change, 4)}{error}"


def _amount(amount: Amount, lacks_lines: bool) -> str:
    return at_least("–" if amount.total is None else f"{amount.total:.6g}", amount.missing > 0 or lacks_lines)
