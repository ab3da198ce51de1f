"""`credit bench robustness`: what methods pay for events that were inserted and changed nothing."""

from __future__ import annotations

import dataclasses
import math

import click

from credit.bench.given_values import GIVEN_VALUES, values_given
from credit.cli.benchmarks.measured import LEFT_OUT, Measured, of_run
from credit.cli.benchmarks.to_write import print_to_write, to_write
from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import SEED, Command, several_methods
from credit.cli.shared.progress import working
from credit.cli.shared.provenance import source
from credit.methods.own_functions import own_name

__all__ = ["robustness"]

METHODS = ("rloo", "grpo", "discounted_return", "verl_grpo", "turn_baseline", "dr_mas", "mgrpo", "gae", "critic")
NOTES = (
    "events are inserted into one trace of each group of {}; outcomes stay as they are",
    "taken: part of all |advantages| of these traces at the inserted actions",
    "moved, others: how far advantages of the other actions moved, in these traces and in the rest of their groups",
    "gained: by how much the sum of advantages of these traces rose; all three as parts of their |advantages| before",
)


@click.command(
    cls=Command,
    short_help="Insert a poisoned message, a longer log or more agents, and see what is paid for it.",
    examples="credit bench robustness --method rloo --method gae",
)
@several_methods(f"By default {', '.join(METHODS)}. {GIVEN_VALUES['robustness'].capitalize()}.")
@click.option(
    "--world",
    default="additive",
    show_default=True,
    metavar="KIND",
    help="Kind of outcome, as in `bench truth`, heavy for heavy tails, or your own `TeamWorld` as [NAME=]module:name.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all draws.")
@json_option
def robustness(methods: tuple[str, ...], world: str, seed: int, as_json: bool) -> None:
    """Compare advantages before and after events are inserted into drawn logs whose true credit is 0."""
    import numpy as np

    from credit.bench.own_worlds import TEAMS
    from credit.bench.refusals import COUNTED, LeftOut, absent_lines, refused_lines
    from credit.bench.robustness import TASKS
    from credit.bench.robustness import robustness as measure
    from credit.bench.rounding import rounded
    from credit.bench.signs import residue
    from credit.methods.published import find_method

    names, left_out, world = methods or METHODS, LeftOut(), own_name(world, "world", TEAMS)
    for name in names:
        find_method(name)  # before anything is drawn
    with working(stderr(), "inserting events"):
        rows = list(measure(names, seed, left_out, world))
    left_out.check(rows)
    measured = of_run(
        [
            Measured(row.method, quantity, value, world=row.insertion, group_size=row.group_size, why=row.refused)
            for row in rows
            for quantity, value in (("taken", row.taken), ("answered", row.answered))
        ],
        "robustness",
        lambda number: {"world": world, "tasks": TASKS, "seed": seed},
        lambda name: values_given("robustness", find_method(name).needs),
    )
    if as_json:
        plain = [dataclasses.asdict(row) for row in rows]
        print_json(
            {
                "world": world,
                "seed": seed,
                "rows": [{k: None if v != v else v for k, v in row.items()} for row in plain],
                "left_out": [one._asdict() for one in left_out.absent],
                "to_write": to_write(measured),
                "source": source(),
            }
        )
        return
    table = plain_table("method", "insertion", "#taken", "#moved", "#others", "#gained")
    for row in rows:
        numbers = (row.taken, row.moved, row.others, row.gained)
        cells = ("–" if math.isnan(x) else rounded(x, ".2f", exact=residue(1.0, np.float32)) for x in numbers)
        table.add_row(words(row.method), row.insertion, *cells)
    for one in left_out.absent:
        table.add_row(words(one.method), one.place, *[LEFT_OUT] * 4)
    stdout().print(table)
    values = values_given("robustness", {need for name in names for need in find_method(name).needs})
    partly = ((f"{row.method} in {row.insertion}", row.answered, row.refused) for row in rows)
    refused = refused_lines(partly, COUNTED["robustness"])
    notes = (note.format(rows[0].group_size) for note in NOTES)
    for line in filter(None, (*absent_lines(left_out.absent), *refused, *notes, values)):
        stdout().print(words(line), soft_wrap=True)
    print_to_write(to_write(measured))
