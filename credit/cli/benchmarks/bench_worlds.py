"""`credit bench worlds`: what happens in the worlds and tasks of the benchmarks, in words."""

from __future__ import annotations

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.provenance import source

__all__ = ["worlds"]

MORE = (
    "J: the expected return. Formulas: docs/bias.md, docs/worlds.md, docs/snr.md, docs/training.md. "
    "`--json` has the numbers that rebuild a world."
)


@click.command(
    cls=Command,
    short_help="Say what happens in the worlds of benchmarks.",
    examples="""
    credit bench worlds
    credit bench worlds stop-rewards --json
    credit bench worlds mine:world
    """,
)
@click.argument("names", metavar="[WORLD]...", nargs=-1)
@json_option
def worlds(names: tuple[str, ...], as_json: bool) -> None:
    """Say what happens in each world and task that a benchmark takes by name, or in your own as module:name.

    `robustness` takes those of `truth`. With --json, each has the numbers that rebuild it: of bias decisions with the
    policy, and traces with probabilities and rewards; of others parameters, of train where WORLD names the task.
    """
    from credit.bench.world_texts import WORLDS_OF, bench_of, parameters, world_text
    from credit.methods.own_functions import is_own, own_name
    from graphs.errors import CreditError
    from graphs.text import near_names

    known = dict.fromkeys(world for of in WORLDS_OF.values() for world in of)
    names = tuple(own_name(name, "world", known) for name in names)
    own = [(bench_of(name), name) for name in names if is_own(name)]
    for name in names:
        if name not in known and not is_own(name):
            raise CreditError(f"No world {name!r}. {near_names(name, known)}")
    listed = [(bench, world) for bench, of in WORLDS_OF.items() for world in of if not names or world in names]
    listed += own
    if as_json:
        told = [
            {"bench": bench, "world": world, "about": world_text(bench, world)}
            | ({"parameters": parameters(bench, world)} if names or bench != "train" else {})  # 9 MB of train
            for bench, world in listed
        ]  # fmt: skip
        print_json({"worlds": told, "source": source()})
        return
    table = plain_table("bench", "world", "what happens")
    for bench, world in listed:
        table.add_row(*map(words, (bench, world, world_text(bench, world))))
    stdout().print(table)
    stdout().print(MORE, soft_wrap=True)
