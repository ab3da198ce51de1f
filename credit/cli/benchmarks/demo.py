"""`credit demo`: a whole run on made-up logs with known credit."""

from __future__ import annotations

from pathlib import Path

import click

from credit.cli.shared.answers import json_option, print_json, stderr, stdout
from credit.cli.shared.commands import SEED, Command
from credit.cli.shared.progress import working

__all__ = ["demo"]


@click.command(
    cls=Command, short_help="Generate logs with known credit and run everything on them.", examples="credit demo"
)
@click.option(
    "--output",
    "-o",
    default="demo",
    show_default=True,
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the traces.")
@json_option
def demo(output: Path, seed: int, as_json: bool) -> None:
    """Generate logs with known credit, assign credit, and compare."""
    import dataclasses

    from credit.demonstration import run

    with working(stderr(), "generating and assigning"):
        result = run(output, seed)
    if as_json:
        files = [str(path) for path in result.files]
        print_json(dataclasses.asdict(result.comparison) | {"traces": result.traces.sizes.traces, "files": files})
        return
    console = stdout()
    for part in result.report:
        console.print(part, soft_wrap=isinstance(part, str))
