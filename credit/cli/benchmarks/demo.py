"""`credit demo`: a whole run on made-up logs with known credit."""

from __future__ import annotations

from pathlib import Path

import click

from credit.cli.shared.reading import stdout

__all__ = ["demo"]


@click.command(short_help="A whole run on made-up logs.")
@click.option(
    "--output",
    "-o",
    default="demo",
    show_default=True,
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for what it writes.",
)
@click.option("--seed", default=0, show_default=True, help="Of the traces that it makes up.")
def demo(output: Path, seed: int) -> None:
    """Make up logs with known credit, assign it, and compare."""
    from credit.demonstration import run

    run(stdout(), output, seed)
