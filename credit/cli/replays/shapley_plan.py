"""`credit shapley plan`: which coalitions of agents to evaluate."""

from __future__ import annotations

from pathlib import Path

import click

from credit.cli.shared.answers import json_option, print_json
from credit.cli.shared.commands import Command
from credit.cli.shared.outputs import check_folder
from credit.cli.shared.reading import stderr, words
from graphs.text import counted

__all__ = ["shapley_plan"]


@click.command(
    "plan",
    cls=Command,
    short_help="Choose the coalitions to evaluate.",
    examples="credit shapley plan --units planner,solver,critic --budget 64 -o plan.jsonl",
)
@click.option("--units", required=True, metavar="NAME,...", help="The units: agents, roles or sub-teams.")
@click.option("--budget", required=True, type=click.IntRange(1), help="Evaluations that can be made.")
@click.option(
    "--noise",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Standard deviation between evaluations of one coalition; at most 0.5 for success or failure.",
)
@click.option("--parents", metavar="NAME,...", help="The unit that spawned each unit, in order; '-' for a root.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the coalitions drawn.")
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="PLAN",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A .jsonl file.",
)
@json_option
def shapley_plan(
    units: str, budget: int, noise: float, parents: str | None, seed: int, output: Path, as_json: bool
) -> None:
    """Write the coalitions to evaluate, one JSON line each: {"row": 0, "team": ["planner"]}.

    Evaluate each row: run the team with these units only, and write {"row": 0, "value": 1.0} to a file for
    `credit shapley solve`. Equal options give equal plans.
    """
    from credit.replay import shapley_game

    check_folder(output, "--output")
    names = [name.strip() for name in units.split(",")]
    spawners = [] if parents is None else [None if p.strip() == "-" else p.strip() for p in parents.split(",")]
    game = shapley_game.shapley_plan(names, budget, noise=noise, seed=seed, parents=spawners)
    shapley_game.write_game(game, output)
    console = stderr()
    console.print(words(f"{game.choice.method}: {game.choice.reason}"), soft_wrap=True)
    console.print(words(f"wrote {counted(game.plan.evaluations, 'row')} to {output}"), soft_wrap=True)
    if as_json:
        choice = {"method": game.choice.method, "reason": game.choice.reason}
        print_json(choice | {"rows": game.plan.evaluations, "output": str(output)})
