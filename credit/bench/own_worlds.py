"""The worlds of benchmarks by name: those of the library, and your own as `module:name`."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from credit.bench.enumeration import DECISIONS
from credit.methods.own_functions import OwnName, function_of, is_own, load_named, own_name, place_and_text
from graphs.errors import CreditError, expect
from graphs.text import excerpt, near_names
from graphs.worlds import KINDS
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import Decision, History, Micro

__all__ = ["HEAVY", "MOST_TRACES", "TEAMS", "micro_world", "own_world", "shown_world", "shown_worlds"]

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


def shown_worlds(texts: Iterable[str], kind: type, known: Collection[str], noun: str = "world") -> list[str]:
    """The names of worlds; of your own the NAME of "NAME=module:name", else the world's `name`, as an `OwnName`.

    A `name` that the library, or another one of these, has is not shown: "module:name" is.

    Args:
      texts: as above, or names of the library's own.
      kind: what the benchmark takes.
      known: the library's own.
      noun: what the option calls a world.

    Raises:
      CreditError: NAME is empty or one of the library's own; there is no such world.
    """
    names = [own_name(text, noun, known) for text in texts]
    stated = {
        name: getattr(load_named(name, noun, lambda value: isinstance(value, kind)), "name", None)
        for name in names
        if is_own(name) and not isinstance(name, OwnName)
    }
    taken = Counter([*stated.values(), *names, *known])
    return [
        own_name(f"{of}={name}", noun) if isinstance(of := stated.get(name), str) and taken[of] == 1 else name
        for name in names
    ]


def shown_world(text: str, kind: type, known: Collection[str]) -> str:
    """The name of one world, as of `shown_worlds`; what is no text stays as it is.

    Args:
      text, kind, known: as there.

    Raises:
      CreditError: as there.
    """
    return shown_worlds([text], kind, known)[0] if isinstance(text, str) else text


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
    if not is_own(name):
        others = [option for option, names in _NAMES.items() if name in names and name not in known]
        taken = f" `{others[0]} {name}` takes it." if others else ""
        raise CreditError(f"No {noun} {name!r}.{taken} {near_names(name, known)} Yours is module:name: {expected}")
    world = load_named(name, noun, lambda value: isinstance(value, kind))
    if isinstance(world, kind):
        parts = {} if isinstance(world, FunctionType) else vars(world)
        named: W = (
            _naming_faults(f"{noun} {name!r}", world) if any(map(callable, parts.values())) or not parts else world
        )
        return named
    option = _TAKES.get(type(world).__name__)
    taken = f"; `{option} {function_of(name)}` takes it" if option else ""
    raise CreditError(f"{noun} {name!r} is {excerpt(world)}; expected {expected}, or one of {', '.join(known)}{taken}")


@functools.lru_cache(maxsize=64)  # one object for one world: what was computed of it is kept
def _naming_faults(what: str, world: Any) -> Any:
    """The world, or the function, whose exceptions name it, the call, the file and the line."""
    if isinstance(world, FunctionType):
        return _naming_place(what, world.__name__, world)
    own = {field.name: getattr(world, field.name) for field in dataclasses.fields(world)}
    named = {name: _naming_place(what, name, fn) for name, fn in own.items() if callable(fn)}
    return dataclasses.replace(world, **named)


def _naming_place(what: str, step: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def called(*args: Any) -> Any:
        try:
            return fn(*args)
        except Exception as error:  # whatever a user's function raises: its author sees where
            given = ", ".join("rng" if isinstance(value, np.random.Generator) else excerpt(value) for value in args)
            place = place_and_text(error, getattr(getattr(fn, "__code__", None), "co_filename", None))
            raise CreditError(f"{what}: {step}({given}) failed at {place}") from error

    return called


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
        if not isinstance(decision, Decision | None):
            expected = "a Decision of graphs.worlds.micro.orchestration, or None at the end"
            raise CreditError(f"world {name!r}: decide({history}) is {excerpt(decision)}; expected {expected}")
        if decision is not None and len(history) == DECISIONS:
            raise CreditError(f"world {name!r} goes on after the choices {history}; expected {DECISIONS} at most")
        if decision is not None:
            histories += [(*history, choice) for choice in range(decision.choices)]
            continue
        lottery = world.outcome(history)
        if not _is_lottery(lottery):
            expected = "pairs of a probability and a finite reward, whose probabilities are above 0 and sum to 1"
            raise CreditError(f"world {name!r} has the outcome {lottery!r} after {history}; expected {expected}")
        ends += len(lottery)
    if len(histories) == 1 or ends > MOST_TRACES:
        found = "no decision" if len(histories) == 1 else f"{ends:,} traces"
        raise CreditError(
            f"world {name!r} has {found}; expected one decision or more, and at most {MOST_TRACES} traces"
        )
    if np.linalg.norm(world.gradient()) <= 1e-9 * np.abs(world.total).max():
        raise CreditError(f"world {name!r} has no gradient to compare with: no choice changes its expected reward")
    return world


def _is_lottery(lottery: Any) -> bool:
    """Whether it is pairs of a probability and a reward, as an outcome is."""
    try:
        chances, rewards = [p for p, _ in lottery], [r for _, r in lottery]
        return min(chances, default=0) > 0 and abs(sum(chances) - 1) < 1e-9 and all(map(math.isfinite, rewards))
    except (TypeError, ValueError):
        return False
