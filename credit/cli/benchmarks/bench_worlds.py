"""`credit bench worlds`: what happens in the worlds and tasks of the benchmarks, in words."""

from __future__ import annotations

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.provenance import source

__all__ = ["worlds"]

MORE = "Formulas: docs/bias.md, docs/worlds.md, docs/snr.md, docs/training.md. J: the expected return."


@click.command(
    cls=Command,
    short_help="Say what happens in the worlds of benchmarks.",
    examples="""
    credit bench worlds
    credit bench worlds --json
    """,
)
@json_option
def worlds(as_json: bool) -> None:
    """Say what happens in each world and task that a benchmark takes by name.

    `robustness` takes those of `truth`.
    """
    listed = _worlds()
    if as_json:
        print_json({"worlds": [dict(zip(("bench", "world", "about"), of, strict=True)) for of in listed],
                    "source": source()})  # fmt: skip
        return
    table = plain_table("bench", "world", "what happens")
    for of in listed:
        table.add_row(*map(words, of))
    stdout().print(table)
    stdout().print(MORE, soft_wrap=True)


def _worlds() -> list[tuple[str, str, str]]:
    """The benchmark, the world and a text of each."""
    from credit.bench.own_worlds import HEAVY
    from credit.bench.training.learning_tasks import TASKS
    from graphs.worlds import KINDS
    from graphs.worlds.micro.examples import MICRO

    tails = "The noise has heavy tails: Student's t with three degrees of freedom, as much variance."
    enumerated = {
        world.name: f"{world.about} Roles: {', '.join(dict.fromkeys(world.roles))}. {len(world.ends)} traces. "
        f"J = {world.probabilities() @ world.total:.3f}."
        for world in MICRO.values()
    }
    of_bench = {
        "bias": enumerated,
        "truth": KINDS | {HEAVY: f"As additive. {tails}"},
        "snr": {
            "normal": "The return is the sum of the choices, each 1 or -1 with equal chances, and normal noise of "
            "standard deviation 1.",
            HEAVY: f"As normal. {tails}",
        },
        "train": {name: task.__doc__ or "" for name, task in TASKS.items()} | {HEAVY: f"As additive. {tails}"},
    }
    return [(bench, name, text) for bench, of in of_bench.items() for name, text in of.items()]
