"""`credit bench train`: train teams with many signals on the same tasks, and compare what they learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from credit.cli.shared.answers import json_option, print_json
from credit.cli.shared.commands import Command
from credit.cli.shared.progress import progress_bar
from credit.cli.shared.reading import stderr, stdout, words

__all__ = ["train"]

METHODS = ("rloo", "grpo", "gae", "control_exact", "exact_increments", "zero")
LEGEND = (
    "share of optimum: (J − J₀) / (J* − J₀) at the end, from 0, the first policy, to 1, the best one. ± stderr: over "
    "seeds. area: the same share, averaged over all steps."
)
QUICK_METHODS, QUICK_TASKS = ("rloo", "control_exact", "zero"), ("bottleneck", "stopping")


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


@click.command(
    cls=Command,
    short_help="Train teams, and compare what they learn.",
    examples="credit bench train --methods rloo,grpo --seeds 2",
)
@click.option("--methods", "-m", callback=_names, metavar="NAMES",
              help="Methods, by commas; also exact_increments, control_exact and zero.")  # fmt: skip
@click.option("--tasks", callback=_names, metavar="NAMES", help="Tasks, by commas; default: all.")
@click.option("--seeds", type=click.IntRange(1), help="Seeds of each.  [default: 5]")
@click.option("--steps", type=click.IntRange(1), help="Updates.  [default: 200]")
@click.option("--groups", type=click.IntRange(1), default=8, show_default=True, help="Groups of a step.")
@click.option("--group-size", type=click.IntRange(1), default=8, show_default=True, help="Traces of a group.")
@click.option("--learning-rate", type=click.FloatRange(0, min_open=True), default=0.05, show_default=True,
              help="Of Adam, the same for every method.")  # fmt: skip
@click.option("--policy", type=click.Choice(["tabular", "mlp"]), default="tabular", show_default=True,
              help="A logit for each decision, or a network shared by all.")  # fmt: skip
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Keep every row in a .json or .parquet file; a run that was cut off resumes.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Three methods, two tasks, two seeds, 60 steps.")
@json_option
def train(
    methods: tuple[str, ...] | None,
    tasks: tuple[str, ...] | None,
    seeds: int | None,
    steps: int | None,
    groups: int,
    group_size: int,
    learning_rate: float,
    policy: Any,
    output: Path | None,
    quick: bool,
    as_json: bool,
) -> None:
    """Train the same team on the same tasks with the advantages of each method.

    The expected return of every policy on the way is an exact number, so that curves have no evaluation noise. A method
    that needs values gets the exact ones.
    """
    from credit.bench.training.learning_tasks import TASKS
    from credit.bench.training.training_loop import TrainingSettings
    from credit.bench.training.training_runs import run_training, summary_rows

    signals = methods or (QUICK_METHODS if quick else METHODS)
    names = tasks or (QUICK_TASKS if quick else tuple(TASKS))
    seeds = seeds or (2 if quick else 5)
    settings = TrainingSettings(
        steps=steps or (60 if quick else 200), groups=groups, group_size=group_size,
        learning_rate=learning_rate, policy=policy,
    )  # fmt: skip
    with progress_bar(stderr()) as bar:
        task = bar.add_task("training", total=len(signals) * len(names) * seeds)

        def after_row(row: dict[str, Any]) -> None:
            bar.update(task, advance=1, description=f"{row['task']}: {row['signal']}")

        rows = run_training(signals, names, seeds, settings, output=output, after_row=after_row)
    columns = ("task", "method", "seeds", "share_of_optimum", "stderr", "area")
    if as_json:
        print_json({"rows": [dict(zip(columns, row, strict=True)) for row in summary_rows(rows)]})
        return
    from rich.table import Table

    table = Table("task", "method", "seeds", "share of optimum", "± stderr", "area", box=None, pad_edge=False)
    for name, signal, count, final, error, area in summary_rows(rows):
        table.add_row(*map(words, (name, signal, str(count), f"{final:.3f}", f"{error:.3f}", f"{area:.3f}")))
    stdout().print(table)
    stdout().print(LEGEND, soft_wrap=True)
