"""The options `--channel` and `--step`: rewards of the log with their weights, in place of the outcome alone."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import click

from graphs.errors import CreditError

__all__ = ["parse_channels", "takes_channels"]

NUMBER = r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:e-?\d+)?"  # a minus or no sign; neither inf nor nan


def takes_channels(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command of `takes_claims` and `makes_ledger` `--channel` and `--step`, as the keyword `weights`."""

    @click.option(
        "--channel",
        "channels",
        multiple=True,
        metavar="NAME=WEIGHT",
        help="Reward of the log and its weight. NAME=START..END/STEPS anneals the weight. May be repeated.",
    )
    @click.option(
        "--step", default=0, show_default=True, type=click.IntRange(0), help="Step of training, for annealed weights."
    )
    @functools.wraps(command)
    def gathered(*args: Any, channels: tuple[str, ...], step: int, **kwargs: Any) -> Any:
        if step and not channels:
            raise click.UsageError("--step anneals the weights of channels; expected --channel with it")
        asked = kwargs["asked"]
        if channels and (asked.files or asked.critic or kwargs["making"]["expected"] == "value"):
            raise click.UsageError(
                "--channel runs methods on each reward; expected it without --judgements, --critic and --expected value"
            )
        return command(*args, weights=parse_channels(channels, step) if channels else {}, **kwargs)

    return gathered


def parse_channels(texts: Iterable[str], step: int) -> dict[str, float]:
    """`NAME=WEIGHT` and `NAME=START..END/STEPS` as the weight of each channel at a step of training.

    Raises:
      CreditError: another form, or a channel named twice.
    """
    from credit.ledger.channels import annealed

    weights: dict[str, float] = {}
    for text in texts:
        name, sign, amount = text.rpartition("=")
        # One number, or two with ".." between them and the number of steps behind a slash.
        match = re.fullmatch(rf"({NUMBER})(?:\.\.({NUMBER})/(\d+))?", amount)
        if not sign or not name or match is None:
            raise CreditError(f"--channel {text!r}; expected NAME=WEIGHT or NAME=START..END/STEPS")
        if name in weights:
            raise CreditError(f"--channel names {name!r} twice")
        start, end, steps = match.groups()
        weights[name] = float(start) if end is None else annealed(float(start), float(end), int(steps))(step)
    return weights
