"""The worlds of benchmarks by name: those of the library, and your own as `module:name`."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TypeVar

import numpy as np

from credit.bench.enumeration import DECISIONS
from credit.methods.own_functions import load_named
from graphs.errors import CreditError, expect
from graphs.text import excerpt, near_names
from graphs.worlds import KINDS
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import History, Micro

__all__ = ["HEAVY", "MOST_TRACES", "TEAMS", "micro_world", "own_world"]

HEAVY = "heavy"
TEAMS = (*KINDS, HEAVY)
"""Worlds of `credit.bench.against_truth`; "heavy" is as "additive", with noise of `graphs.worlds.HeavyTailed`."""

W = TypeVar("W")
_TAKES = {
    "Micro": "credit bench bias --world",
    "TeamWorld": "credit bench truth --world",
    "function": "credit bench snr --world",
    "LearningTask": "credit bench train --tasks",
}
"""Which option takes what a user wrote, by its type."""
_NAMES = {"credit bench bias --world": MICRO, "credit bench truth --world": TEAMS}  # of `bench robustness`, too

MOST_TRACES = 1000
"""Of a world of your own, at most; 47 already make more groups of three than are enumerated."""


def own_world(name: str, kind: type[W], expected: str, known: Collection[str], noun: str = "world") -> W:
    """Your own world by "module:name", for each benchmark that takes one.

    Args:
      name: as above, or one that is not among `known`.
      kind: what the benchmark takes.
      expected: the same in words.
      known: names of the library's own, for messages.
      noun: what the option calls it.

    Raises:
      CreditError: there is none, or it is something else; where another benchmark takes it, that is named.
    """
    if ":" not in name:
        others = [option for option, names in _NAMES.items() if name in names and name not in known]
        taken = f" `{others[0]} {name}` takes it." if others else ""
        raise CreditError(f"No {noun} {name!r}.{taken} {near_names(name, known)} Yours is module:name: {expected}")
    world = load_named(name, noun)
    if isinstance(world, kind):
        return world
    option = _TAKES.get(type(world).__name__)
    taken = f"; `{option} {name}` takes it" if option else ""
    raise CreditError(f"{noun} {name!r} is {excerpt(world)}; expected {expected}, or one of {', '.join(known)}{taken}")


def micro_world(name: str) -> Micro:
    """A world of `MICRO`, or your own `graphs.worlds.micro.orchestration.Micro` by "module:name".

    Raises:
      CreditError: the name is no text, such as a `Micro` itself; there is none, it cannot be enumerated, or no choice
        changes its expected reward.
    """
    expect("world", name, str, "the name of a world, or of a Micro of yours as 'module:name'")
    if name in MICRO:
        return MICRO[name]
    world = own_world(name, Micro, "a Micro of graphs.worlds.micro.orchestration", MICRO)
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
