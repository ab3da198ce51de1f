"""`credit demo`: a whole run on made-up logs with known credit."""

from __future__ import annotations

from pathlib import Path

import click

from credit.cli.shared.commands import Command
from credit.cli.shared.reading import stdout

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
@click.option("--seed", default=0, show_default=True, help="Seed of the traces.")
def demo(output: Path, seed: int) -> None:
    """Generate logs with known credit, assign credit, and compare."""
    from credit.demonstration import run

    run(stdout(), output, seed)
