"""`credit watch`: the numbers of each training step, while a run trains."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_options
from credit.cli.shared.answers import stderr, stdout, words
from credit.cli.shared.commands import Command, Number
from credit.cli.shared.outputs import stay_outside
from credit.cli.shared.progress import working
from credit.cli.shared.reading import REFUSED, allow_bad, list_problems, read_traces, reads_logs

if TYPE_CHECKING:
    from credit.watching.sinks import Sink

__all__ = ["watch"]

LEGEND = (
    "teach: groups in which a row has an advantage other than 0. not NAME: what `credit/condition/NAME` says of the "
    "step, as that a row is compared with no other trace. signal-to-noise: spread of claims on single actions beyond "
    "their own errors, over these errors. ledger: mean per trace of what each role changed. coverage: share of the "
    "reward's variance that the claims explain. alignment: cosine with the advantages of another method."
)

WAITS = "Steps are printed as they arrive. Ctrl-C ends; --once reads once."


@click.command(
    cls=Command,
    short_help="Print the numbers of each training step as it arrives.",
    examples="""
    credit watch runs/watch/metrics.jsonl
    credit watch rollouts/ --method dr_mas --compare rloo,turn_baseline
    credit watch rollouts/ --method rloo --once --output watched/ --tensorboard
    """,
)
@reads_logs()
@click.option("--method", "-m", default="rloo", show_default=True, help="Method that the trainer uses.")
@method_options
@evidence_option
@click.option("--compare", default="", metavar="NAME,...", help="Methods whose advantages are compared with its own.")
@click.option("--no-ledger", is_flag=True, help="Leave out the ledger by role.")
@click.option("--once", is_flag=True, help="Print the steps that are there and leave, instead of waiting for more.")
@click.option("--interval", type=Number(0.05), default=5.0, show_default=True, metavar="SECONDS",
              help="Time between two looks. A log is read when two looks find it unchanged.")  # fmt: skip
@click.option("--output", "-o", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
              help="Folder to which the numbers are also written, as metrics.jsonl.")  # fmt: skip
@click.option("--tensorboard", is_flag=True, help="Write them for TensorBoard, too; needs --output and the extra.")
@click.option("--wandb", metavar="PROJECT", help="Send them to a new wandb run of this project; needs the extra.")
@allow_bad
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each step, a line each.")
@click.pass_context
def watch(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    method: str,
    option_texts: tuple[str, ...],
    also: tuple[str, ...],
    compare: str,
    no_ledger: bool,
    once: bool,
    interval: float,
    output: Path | None,
    tensorboard: bool,
    wandb: str | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Print the numbers of each training step: groups that teach, the ledger by role, alignment.

    PATH is the metrics.jsonl that a trainer's integration writes, the folder with it, or a folder to which a trainer
    adds logs. In a folder of logs, each log and each folder directly in it is one step.
    """
    from credit.methods.option_texts import parse_options
    from credit.methods.published import find_method
    from credit.watching.sinks import METRICS
    from graphs.reading.addresses import local_path

    options = parse_options(method, option_texts)
    others = tuple(name.strip() for name in compare.split(",") if name.strip())
    for name in others:
        find_method(name)
    if len(paths) != 1 or paths[0] == "-":
        raise click.UsageError("watch follows one file or folder; expected one PATH")
    if tensorboard and output is None:
        raise click.UsageError("--tensorboard writes its files into a folder; expected --output with it")
    if output is not None:
        stay_outside(ctx, output)
    path = local_path(paths[0])
    if not path.exists():
        raise click.BadParameter(f"{paths[0]!r} does not exist; expected a file or a folder", param_hint="PATH")
    steps: Iterator[dict[str, Any]]
    failures: list[str] = []
    if path.is_file() or (path / METRICS).is_file():
        steps = _of_metrics(path if path.is_file() else path / METRICS, once, interval)
    else:
        asked = {"compare": others, "options": options, "evidence": also, "ledger": not no_ledger}
        steps = _of_logs(
            path, once, interval, lambda step: _numbers(step, method, asked, reading, failures), reading, failures
        )
    sinks = _sinks(output, tensorboard, wandb)
    if not once:
        stderr().print(WAITS)
    if not as_json:
        stderr().print(LEGEND, soft_wrap=True)
    try:
        for row in steps:
            _show(row, as_json)
            numbers = {key: value for key, value in row.items() if key != "step" and not isinstance(value, str)}
            labels = {key: value for key, value in row.items() if isinstance(value, str)}
            for sink in sinks:
                sink.write(int(row["step"]), numbers, labels)
    finally:
        for sink in sinks:
            sink.close()
    ctx.exit(REFUSED if failures and not allow_bad else 0)


def _sinks(output: Path | None, tensorboard: bool, wandb: str | None) -> list[Sink]:
    from credit.watching.sinks import MetricsFile, TensorBoard, Wandb

    sinks: list[Sink] = [] if output is None else [MetricsFile(output)]
    if tensorboard and output is not None:
        sinks.append(TensorBoard(output))
    if wandb is not None:
        sinks.append(Wandb(wandb))
    return sinks


def _show(row: dict[str, Any], as_json: bool) -> None:
    """Print one step at once, so that a program at the other end of a pipe need not wait for the next."""
    import json

    from credit.watching.step_numbers import step_lines

    if as_json:
        click.echo(json.dumps(row))
    else:
        for line in step_lines(row):
            stdout().print(words(line), soft_wrap=True)
    if sys.stdout is not None:  # as it is where the shell closed it
        sys.stdout.flush()


def _of_metrics(path: Path, once: bool, interval: float) -> Iterator[dict[str, Any]]:
    from credit.watching.following import GrowingMetrics

    growing = GrowingMetrics(path)
    yield from growing.new_lines()
    while not once:
        time.sleep(interval)
        yield from growing.new_lines()


def _of_logs(
    folder: Path,
    once: bool,
    interval: float,
    numbers: Callable[[Path], dict[str, float] | None],
    reading: Mapping[str, Any],
    failures: list[str],
) -> Iterator[dict[str, Any]]:
    """The steps of a folder, numbered from 0 in the order in which they are read; tables of outcomes are none."""
    from credit.watching.following import GrowingFolder
    from credit.watching.outcome_files import OutcomeFiles
    from graphs.errors import NothingReadError
    from graphs.traces.limits import Limits

    growing, number = GrowingFolder(folder), 0
    tables = OutcomeFiles(
        growing.entries,
        (reading["rewards"], reading["groups"]),
        detects=not (reading["format_"] or reading["columns"] or reading["types"]),
        limits=Limits.parse(reading["limits"]),
    )
    passed: set[str] = set()
    waiting: list[Path] = []
    while True:
        ready = [*waiting, *growing.new_steps(final=once)]
        alone = [step for step in ready if not tables.is_given(step)] if number == 0 and not once else []
        waits = tables.waits(alone[0]) if len(alone) == 1 else None
        if waits is not None:  # its log may be about to arrive, and a number that is printed stays
            if not waiting:
                list_problems((waits,), stderr())
            ready.remove(alone[0])
        waiting = [] if waits is None else alone
        for step in ready:
            is_given = tables.is_given(step)
            problem = None if is_given else tables.problem(step)
            if problem is not None:
                list_problems((problem,), stderr())
                failures.append(step.name)
            if problem is not None or is_given:
                passed.add(step.name)
                continue
            row = numbers(step)
            if row is not None:
                yield {"step": number, "logs": step.name, **row}
            number += 1
        for name in growing.changed_steps():
            if name in passed or name in [step.name for step in waiting]:
                continue
            failures.append(name)
            stderr().print(words(f"{name} changed after it was read; its numbers are of the earlier content"))
        if once:
            break
        time.sleep(interval)
    if number == 0:
        raise NothingReadError(f"{str(folder)!r} has no logs", ())


def _numbers(
    step: Path, method: str, asked: dict[str, Any], reading: dict[str, Any], failures: list[str]
) -> dict[str, float] | None:
    """The numbers of one step; None where it cannot be read or lacks evidence, which is printed."""
    from credit.watching.log_steps import log_numbers
    from graphs.errors import CreditError, NothingReadError

    try:
        traces = read_traces((str(step),), **reading)
        if traces.problems:
            list_problems(traces.problems, stderr())
            failures += [step.name] if any(problem.is_failure for problem in traces.problems) else []
        with working(stderr(), f"computing {method} for {step.name}"):
            return log_numbers(traces, method, **asked)
    except CreditError as error:
        failures.append(step.name)
        stderr().print(words(f"{step.name}: {error}"), soft_wrap=True)
        if isinstance(error, NothingReadError):
            list_problems(error.problems, stderr())
        return None
