"""What commands that read native logs in parts share: `--engine ray`, and the options of reading parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from graphs.errors import CreditError

__all__ = ["engine_option", "options_of_parts"]


def engine_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--engine ray` (`engine`), with its help text."""
    return click.option("--engine", type=click.Choice(["ray"]), help=f"{text} Needs the extra ray.")


def options_of_parts(reading: dict[str, Any], option: str) -> dict[str, Any]:
    """The keywords of `credit.read_chunks` and of `credit.ray`, from those of `read_traces`.

    Args:
      reading: the options of a command that reads logs.
      option: the option that asks for parts, for the message.

    Raises:
      CreditError: a format other than the native one.
    """
    from graphs.traces.grouping import GROUP_KEYS
    from graphs.traces.limits import Limits

    if reading["columns"] is not None or reading["types"] is not None or reading["format_"] not in (None, "native"):
        raise CreditError(f"{option} reads native logs; `credit convert` writes any format as native")
    if reading["outcomes"] is not None:
        raise CreditError(f"{option} reads outcomes as numbers; `credit convert --outcomes` writes words as such")
    return {
        "reward": reading["reward_channel"],
        "rewards": reading["rewards"],
        "groups": reading["groups"],
        "group_by": GROUP_KEYS if reading["group_by"] is None else reading["group_by"],
        "limits": Limits.parse(reading["limits"]),
    }
