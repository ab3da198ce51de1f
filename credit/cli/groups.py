"""Commands with subcommands: each subcommand is imported when it is asked for, so that other commands start quickly."""

from __future__ import annotations

import importlib

import click

__all__ = ["bench", "shapley"]


class LazyGroup(click.Group):
    """A group of commands that are not imported yet.

    Args:
      homes: the module and the name in it of each subcommand, as "module:name", in the order of the help.
      **options: as of `click.Group`.
    """

    def __init__(self, *args: object, homes: dict[str, str], **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands in the order of the help."""
        return list(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand; None for a name that there is not."""
        if cmd_name not in self.homes:
            return None
        module, _, name = self.homes[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(f"credit.cli.{module}"), name)
        return command


@click.group(
    cls=LazyGroup,
    homes={name: f"benchmarks.bench_{name}:{name}" for name in ("bias", "truth", "snr", "train")},
    short_help="Measure methods on worlds with known truth.",
)
def bench() -> None:
    """Measure methods on worlds with known truth."""


@click.group(
    cls=LazyGroup,
    homes={name: f"replays.shapley_{name}:shapley_{name}" for name in ("plan", "solve")},
    short_help="Plan coalitions, solve for Shapley shares.",
)
def shapley() -> None:
    """Shapley shares of a team: plan which coalitions to evaluate, then solve.

    Evaluate the rows of the plan yourself, and write {"row": 0, "value": 1.0} for each, a line of JSON.
    """
