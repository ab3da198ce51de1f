"""`credit bench`: measure methods on worlds whose truth is known. Subcommands are in `bench_NAME.py`."""

from __future__ import annotations

import importlib

import click

__all__ = ["bench"]

SUBCOMMANDS = ("bias", "truth", "snr", "train")


class _Benches(click.Group):
    """Imports a subcommand when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"credit.cli.benchmarks.bench_{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Benches, short_help="Measure methods on worlds with known truth.")
def bench() -> None:
    """Measure methods on worlds with known truth."""
