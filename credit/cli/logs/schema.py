"""`credit schema`: the JSON Schema of the native format with its extension."""

from __future__ import annotations

import importlib.resources

import click

__all__ = ["schema"]


@click.command
def schema() -> None:
    """Print the JSON Schema of the native format."""
    text = (
        importlib.resources.files("graphs.traces")
        .joinpath("schemas/orchestration-trace.schema.json")
        .read_text("utf-8")
    )
    click.echo(text.rstrip("\n"))
