"""`credit schema`: the JSON Schema of the native format with its extension."""

from __future__ import annotations

import importlib.resources

import click

from credit.cli.shared.commands import Command

__all__ = ["schema"]


@click.command(cls=Command, examples="credit schema > trace.schema.json")
def schema() -> None:
    """Print the JSON Schema of the native format."""
    text = (
        importlib.resources.files("graphs.traces")
        .joinpath("schemas/orchestration-trace.schema.json")
        .read_text("utf-8")
    )
    click.echo(text.rstrip("\n"))
