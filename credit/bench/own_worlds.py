"""The worlds of exact bias by name: those of the library, and your own as `module:name`."""

from __future__ import annotations

import math

import numpy as np

from credit.bench.enumeration import DECISIONS
from credit.methods.own_functions import load_named
from graphs.errors import CreditError, expect
from graphs.text import near_names
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import History, Micro

__all__ = ["MOST_TRACES", "micro_world"]

MOST_TRACES = 1000
"""Of a world of your own, at most; 47 already make more groups of three than are enumerated."""


def micro_world(name: str) -> Micro:
    """A world of `MICRO`, or your own `graphs.worlds.micro.orchestration.Micro` by "module:name".

    Raises:
      CreditError: the name is no text, such as a `Micro` itself; there is none, it cannot be enumerated, or no choice
        changes its expected reward.
    """
    expect("world", name, str, "the name of a world, or of a Micro of yours as 'module:name'")
    if name in MICRO:
        return MICRO[name]
    if ":" not in name:
        raise CreditError(f"No world {name!r}. {near_names(name, MICRO)}")
    world = load_named(name, "world")
    if not isinstance(world, Micro):
        raise CreditError(f"world {name!r} is {world!r}; expected a Micro of graphs.worlds.micro.orchestration")
    histories: list[History] = [()]
    ends = 0
    for history in histories:
        decision = world.decide(history)
        if decision is not None and len(history) == DECISIONS:
            raise CreditError(f"world {name!r} goes on after the choices {history}; expected {DECISIONS} at most")
        if decision is not None:
            histories += [(*history, choice) for choice in range(decision.choices)]
            continue
        lottery = world.outcome(history)
        ends += len(lottery)
        chances, rewards = [p for p, _ in lottery], [r for _, r in lottery]
        if not (min(chances, default=0) > 0 and abs(sum(chances) - 1) < 1e-9 and all(map(math.isfinite, rewards))):
            expected = "pairs of a probability and a finite reward, whose probabilities are above 0 and sum to 1"
            raise CreditError(f"world {name!r} has the outcome {lottery!r} after {history}; expected {expected}")
    if len(histories) == 1 or ends > MOST_TRACES:
        found = "no decision" if len(histories) == 1 else f"{ends:,} traces"
        raise CreditError(
            f"world {name!r} has {found}; expected one decision or more, and at most {MOST_TRACES} traces"
        )
    if np.linalg.norm(world.gradient()) <= 1e-9 * np.abs(world.total).max():
        raise CreditError(f"world {name!r} has no gradient to compare with: no choice changes its expected reward")
    return world
