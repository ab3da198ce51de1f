"""The one protocol that re-running needs: continue a team from a prefix, some number of times.

A driver is any object with the method `run` of `Replayer`. `CallableReplayer` makes one of a function;
`credit.replay.drivers` holds those for worlds whose truth is known and for agent frameworks. A driver that can make
many runs at once also has the method `run_seeds` of `SeededReplayer`.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from credit.replay.before import Before, TraceEvents
from graphs.errors import CreditError

__all__ = ["CallableReplayer", "Continuation", "Prefix", "PrefixError", "Replayer", "SeededReplayer", "load_replayer"]


class PrefixError(CreditError):
    """The prefix did not reproduce, for example because a tool answered otherwise; no outcome of it is evidence."""


@dataclasses.dataclass(frozen=True)
class Prefix:
    """The part of a trace before a decision.

    Attributes:
      trace: id of the trace in the log.
      group: name of its group, usually the task.
      events: ids of the trace's events before the decision, in log order.
      decision: id of the event that decides; None for a run from the start.
    """

    trace: str
    group: str
    events: Sequence[str] = ()
    decision: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.events, Before):
            object.__setattr__(self, "events", TraceEvents(self.events).first(len(self.events)))

    @property
    def before(self) -> Before:
        """`events`, of which prefixes of one trace share the list."""
        assert isinstance(self.events, Before)
        return self.events


@dataclasses.dataclass(frozen=True)
class Continuation:
    """One run from a prefix to the end.

    Attributes:
      reward: the return of the whole trace, event rewards included, in units of reward.
      alternative: what was chosen at the decision, as an id; "" where the driver does not report it.
      tokens: tokens spent on this run, 0 where unknown.
    """

    reward: float
    alternative: str = ""
    tokens: int = 0


@runtime_checkable
class Replayer(Protocol):
    """Continues a team from a prefix."""

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> Sequence[Continuation]:
        """Run the team from the prefix to the end, `n` times.

        Args:
          prefix: what happened before; it must be reproduced as logged.
          replace: what the decision is replaced by; None lets the policy decide anew.
          forbid: names of agents that do not act in these runs. The driver states what that means (removed,
            muted, idle), since each is another game.
          n: how many runs.
          seed: equal seeds may give equal runs; different seeds must give independent ones.

        Returns:
          `n` continuations.

        Raises:
          PrefixError: the prefix did not reproduce. It is not tried again.
          Exception: anything else; the runs may be tried again.
        """
        ...


@runtime_checkable
class SeededReplayer(Replayer, Protocol):
    """A driver that makes many runs from one prefix at once, each with a seed of its own.

    The attribute `at_once`, if it has one, is the largest number of runs to ask for. Runs in the making are lost where
    the process is killed, so a driver whose runs cost much has a small number.
    """

    def run_seeds(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), seeds: Sequence[int]
    ) -> Sequence[Continuation | Exception]:
        """Run the team from the prefix to the end, once for each seed; a run depends on its own seed only.

        A run that failed may be an exception in its place; the others count.
        """
        ...


@dataclasses.dataclass(frozen=True)
class CallableReplayer:
    """A driver made of a function of one run: `fn(prefix, replace, forbid, seed)`, which returns the reward.

    Examples:
      >>> from credit.replay.replayer import CallableReplayer, Prefix
      >>> driver = CallableReplayer(lambda prefix, replace, forbid, seed: 1.0 if replace is None else 0.0)
      >>> [run.reward for run in driver.run(Prefix("t", "g"), replace="say nothing", n=2, seed=0)]
      [0.0, 0.0]
    """

    fn: Callable[[Prefix, str | None, tuple[str, ...], int], float | Continuation]

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> list[Continuation]:
        """Call the function `n` times, with the seeds `seed`, `seed + 1`, …"""
        outcomes = [self.fn(prefix, replace, tuple(forbid), seed + i) for i in range(n)]
        return [x if isinstance(x, Continuation) else Continuation(float(x)) for x in outcomes]


def load_replayer(name: str) -> Replayer:
    """The driver "module:attribute"; the current folder is searched first. A plain function becomes one.

    Raises:
      CreditError: no such module or attribute, or one that is neither a driver nor a function.
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise CreditError(f"driver is {name!r}; expected MODULE:ATTRIBUTE")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise CreditError(f"driver {name!r}: {error}") from error
    if not hasattr(module, attribute):
        raise CreditError(f"driver {name!r}: module {module_name!r} has no attribute {attribute!r}")
    value = getattr(module, attribute)
    if isinstance(value, Replayer) and not isinstance(value, type):
        return value
    if callable(value):
        return CallableReplayer(value)
    raise CreditError(f"driver {name!r} is {type(value).__name__}; expected an object with `run`, or a function")
