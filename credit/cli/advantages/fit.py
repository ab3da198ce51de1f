"""`credit fit critic`: learn from logs what a prefix of a trace is worth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, print_json, stderr, stdout, words
from credit.cli.shared.commands import SEED, Command, Number
from credit.cli.shared.progress import progress_bar
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from graphs.event_types import EventType
from graphs.text import counted, decimals, interval

if TYPE_CHECKING:
    from rich.table import Table

    from credit.critics.fitted_critic import Critic
    from estimators.critic.calibration import Judged
    from estimators.critic.train import Epoch

__all__ = ["fit"]

LEGEND = (
    "loss: mean over held-out traces; lower is better. below the constant's, per task: how much lower the loss is than "
    "that of the best constant, in brackets its 95 % interval where at least 8 tasks differ."
)


@click.group(short_help="Fit a critic on logs.")
def fit() -> None:
    """Fit models that methods need."""


@fit.command(
    cls=Command,
    short_help="Fit a critic: the value of every prefix.",
    examples="""
    credit fit critic runs/ -o critic/
    credit assign runs/ --method gae --critic critic/ -o advantages.parquet
    credit fit critic with_evidence.jsonl --replays -o critic/
    """,
)
@reads_logs()
@click.option("--output", "-o", required=True, metavar="DIR", type=click.Path(file_okay=False), help="Folder to write.")
@click.option("--head", type=click.Choice(["bernoulli", "value"]), default="bernoulli", show_default=True,
              help="bernoulli for outcomes in [0, 1]; value for any.")  # fmt: skip
@click.option("--members", type=click.IntRange(1), default=5, show_default=True, help="Size of the ensemble.")
@click.option("--model", type=click.Choice(["auto", "network", "additive"]), default="auto", show_default=True,
              help="auto fits both and keeps the one with the lower held-out loss.")  # fmt: skip
@click.option("--epochs", type=click.IntRange(1),
              help="Greatest number of passes over the traces.  [default: 20, more for few traces]")  # fmt: skip
@click.option("--patience", type=click.IntRange(1),
              help="Stop after so many epochs without a lower held-out loss.  [default: a fifth of them]")  # fmt: skip
@click.option("--lambda", "lambda_", type=Number(0, 1), default=1.0, show_default=True,
              help="Lambda of TD(lambda) targets; 1 is Monte Carlo.")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of splits, parameters and order.")
@click.option("--replays", is_flag=True, help="Learn from the runs of a value plan too, which `credit replay` added.")
@click.option("--dense", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="Your own numbers, .npy, one row for each event in the order read.")  # fmt: skip
@allow_bad
@json_option
@click.pass_context
def critic(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: str,
    head: str,
    members: int,
    model: str,
    epochs: int | None,
    patience: int | None,
    lambda_: float,
    seed: int,
    replays: bool,
    dense: str | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Fit a critic on logged traces, stop by held-out tasks, and evaluate on further tasks.

    Training resumes from matching checkpoints.
    """
    from credit.critics.fitted_critic import require_extra
    from credit.critics.fitting import fit_critic

    require_extra()
    from estimators.critic.train import Settings
    from graphs.array_files import read_array

    settings = Settings(
        head=head, members=members, model=model, epochs=epochs, patience=patience, lambda_=lambda_, seed=seed
    )  # fmt: skip
    traces = read_traces(paths, **reading)
    features = None if dense is None else read_array(Path(dense), "a .npy file of numbers")
    console = stderr()
    with progress_bar(console) as bar:
        task = bar.add_task("fitting", total=epochs)

        def after(epoch: Epoch) -> None:
            bar.update(task, completed=epoch.number, description=f"held-out loss {epoch.validation:.4f}")

        fitted = fit_critic(
            traces, dense=features, settings=settings, replays=replays, directory=output, after_epoch=after
        )
    if as_json:
        print_json(_plain(fitted, output))
    else:
        stdout().print(_table(fitted.judged))
        stdout().print(LEGEND, soft_wrap=True)
    for line in _summary(fitted, output):
        console.print(words(line), soft_wrap=True)
    leave(ctx, traces, allow_bad)


def _table(judged: Judged) -> Table:
    from rich.table import Table

    table = Table("on held-out tasks", "loss", "below the constant's, per task", box=None, pad_edge=False)
    for name, loss in judged.loss.items():
        gain, width = judged.gain.get(name, (math.nan, math.inf))
        around = f" ({interval(gain - width, gain + width, decimals, 4)})" if math.isfinite(width) else ""
        told = f"{decimals(gain, 4)}{around}" if name in judged.gain else ""
        table.add_row(*map(words, (name, f"{loss:.4f}", told)))
    return table


def _plain(fitted: Critic, output: str) -> dict[str, Any]:
    judged = fitted.judged
    gains = {name: {"gain": gain, "half_width": width} for name, (gain, width) in judged.gain.items()}
    return {
        "model": fitted.model,
        "output": output,
        "validation_loss": {name: float(loss) for name, loss in fitted.validation.items()},
        "held_out": {"tasks": judged.tasks, "traces": judged.traces, "loss": dict(judged.loss), "gain": gains},
        "calibration": judged.calibration,
        "converged": bool(fitted.fitted.converged),
        "intervals_withheld": fitted.intervals_withheld,
        "signs_held_for": _signs_held_for(fitted),
    }


def _summary(fitted: Critic, output: str) -> list[str]:
    judged = fitted.judged
    losses = ", ".join(f"{name} {loss:.4f}" for name, loss in fitted.validation.items())
    lines = [
        f"kept the {fitted.model} model; loss on validation tasks: {losses}",
        f"{counted(judged.tasks, 'held-out task')}, {counted(judged.traces, 'trace')}",
    ]
    if not fitted.fitted.converged:
        lines.append(
            "the fit did not converge: its held-out loss was still falling; allow more --epochs"
            if fitted.model == "network"
            else "the fit did not converge within 300 steps: its weights still moved"
        )
    if judged.calibration is not None:
        lines.append(f"calibration error {judged.calibration:.3f} over {counted(len(judged.curve), 'bin')}")
    gain, width = judged.gain["critic"]
    if gain - width <= 0:
        lines.append(
            "these tasks do not show that the critic knows more than the best constant: do not rely on its credit"
        )
    signs = _signs_held_for(fitted)
    lines.append(
        f"signs held on held-out tasks for events of type {'; '.join(signs)}. Others are reported as undecided"
        if signs
        else "no type of event had signs that held on held-out tasks: every sign is reported as undecided"
    )
    lines.append(fitted.intervals_withheld)
    lines.append(f"kept in {output}")
    return lines


def _signs_held_for(fitted: Critic) -> list[str]:
    """Types of events, circumstances where these matter, and at how many places: whose signs held on held-out tasks."""
    lines = []
    for test in fitted.tests:
        validated = sum(place.validated for place in test.places)
        if test.validated and validated:
            name, circumstances = EventType(test.region.kind).name.lower(), test.region.words()
            where = f"at {validated} of {counted(len(test.places), 'place')}"
            lines.append(f"{name} ({circumstances}; {where})" if circumstances else f"{name} ({where})")
    return lines
