"""`credit bench doctor`: how often `credit doctor` finds planted faults, and faults that are not there."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import click

from credit.cli.benchmarks.to_write import of_release, print_to_write
from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout
from credit.cli.shared.commands import SEED, Command
from credit.cli.shared.progress import progress_bar
from credit.cli.shared.provenance import source

if TYPE_CHECKING:
    from credit.bench.doctor_trial import Trial

__all__ = ["doctor"]


@click.command(
    name="doctor",
    cls=Command,
    short_help="Plant faults in drawn teams, and count those that `credit doctor` finds.",
    examples="""
    credit bench doctor --seed 7 --worlds 2
    credit bench doctor --agents 17,40 --events 250,600
    """,
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all draws.")
@click.option("--worlds", default=20, show_default=True, help="Teams to draw.")
@click.option("--agents", default="3,16", show_default=True, metavar="LEAST,MOST", help="Agents of a team.")
@click.option("--events", default="60,200", show_default=True, metavar="LEAST,MOST", help="Events of a trace.")
@click.option("--tasks", default="8,16", show_default=True, metavar="LEAST,MOST", help="Tasks of a log.")
@json_option
def doctor(seed: int, worlds: int, agents: str, events: str, tasks: str, as_json: bool) -> None:
    """Draw teams of six forms, examine them without a fault and with each planted fault, and count."""
    from credit.bench.doctor_trial import doctor_trials

    of_agents, of_events, of_tasks = (
        _range(name, text) for name, text in (("agents", agents), ("events", events), ("tasks", tasks))
    )
    trials: list[Trial] = []
    with progress_bar(stderr()) as bar:
        task = bar.add_task("teams", total=worlds)
        counted = doctor_trials(seed, worlds, agents=of_agents, events=of_events, tasks=of_tasks)
        for done, trials in counted:  # noqa: B007  # the last counts are of all worlds
            bar.update(task, completed=done)
    ranges = {"agents": of_agents, "events": of_events, "tasks": of_tasks}
    teams = ", ".join(f"{low} to {high} {name}" for name, (low, high) in ranges.items())
    sentence = _to_write(trials, f"{worlds} team{'s' * (worlds > 1)} of {teams}, seed {seed}")
    if as_json:
        plain = [dataclasses.asdict(trial) for trial in trials]
        rows = [{name: None if number != number else number for name, number in row.items()} for row in plain]
        print_json({"seed": seed, "worlds": worlds, **ranges, "rows": rows, "to_write": sentence, "source": source()})
        return
    table = plain_table("check", "#planted", "#found", "#without fault", "#false alarms", "#tasks above the limit")
    for trial in trials:
        above = "" if math.isnan(trial.above) else f"{trial.above:.2%}"
        counts = (trial.planted, trial.found, trial.answered, trial.false_alarms)
        table.add_row(trial.check, *map(str, counts), above)
    stdout().print(table)
    print_to_write(sentence)


def _to_write(trials: list[Trial], drawn: str) -> list[str]:
    """Over all checks, with the one that found least; none where no fault could be planted."""
    planted, found, answered, false = (
        sum(getattr(trial, name) for trial in trials) for name in ("planted", "found", "answered", "false_alarms")
    )
    if not planted:
        return []
    least = min((trial for trial in trials if trial.planted), key=lambda trial: trial.found / trial.planted)
    fewest = f" {least.check} found fewest, {least.found} of {least.planted}." * (found < planted)
    return [
        f"`credit doctor` found {found} of {planted} planted faults.{fewest} On logs without a fault {false} of "
        f"{answered} answers named one. Conditions: {drawn}. {of_release('doctor')}"
    ]


def _range(name: str, text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r}; expected two numbers, LEAST,MOST", param_hint=f"--{name}")
    return int(parts[0]), int(parts[1])
