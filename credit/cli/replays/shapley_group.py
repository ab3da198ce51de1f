"""`credit shapley`: plan the coalitions to evaluate, and solve for shares."""

from __future__ import annotations

import importlib

import click

__all__ = ["shapley"]

SUBCOMMANDS = ("plan", "solve")


class _Steps(click.Group):
    """Imports a subcommand when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        name = f"shapley_{cmd_name}"
        command: click.Command = getattr(importlib.import_module(f"credit.cli.replays.{name}"), name)
        return command


@click.group(cls=_Steps, short_help="Plan coalitions, solve for Shapley shares.")
def shapley() -> None:
    """Shapley shares of a team: plan which coalitions to evaluate, then solve.

    Evaluate the rows of the plan yourself, and write {"row": 0, "value": 1.0} for each, a line of JSON.
    """
