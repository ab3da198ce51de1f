"""`--channel NAME=WEIGHT`: the weights of reward channels as texts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphs.errors import CreditError

__all__ = ["parse_channels"]

NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"


def parse_channels(texts: Iterable[str], step: int) -> dict[str, float]:
    """`NAME=WEIGHT` and `NAME=START..END/STEPS` as the weight of each channel at a step of training.

    Raises:
      CreditError: another form, or a channel named twice.
    """
    from credit.ledger.channels import annealed

    weights: dict[str, float] = {}
    for text in texts:
        name, sign, amount = text.rpartition("=")
        match = re.fullmatch(rf"({NUMBER})(?:\.\.({NUMBER})/(\d+))?", amount)
        if not sign or not name or match is None:
            raise CreditError(f"--channel {text!r}; expected NAME=WEIGHT or NAME=START..END/STEPS")
        if name in weights:
            raise CreditError(f"--channel names {name!r} twice")
        start, end, steps = match.groups()
        weights[name] = float(start) if end is None else annealed(float(start), float(end), int(steps))(step)
    return weights
