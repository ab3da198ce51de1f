"""Re-running worlds small enough to enumerate, whose truth is known: runs are drawn from exact lotteries, all at
once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from credit.replay.drivers.seeded_uniforms import seeded_uniforms
from credit.replay.replayer import Continuation, Prefix
from graphs.errors import CreditError
from graphs.worlds.micro.orchestration import Micro

__all__ = ["MicroReplayer"]


@dataclasses.dataclass(frozen=True)
class MicroReplayer:
    """A driver for `graphs.worlds.micro`, whose traces are named "WORLD-NUMBER".

    `replace` is the number of a choice. A forbidden agent takes choice 0, the idle one, wherever it decides.

    Attributes:
      world: the team.
    """

    world: Micro

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> list[Continuation]:
        """Draw `n` runs.

        Raises:
          CreditError: no such trace or choice.
        """
        return self._drawn(prefix, replace, forbid, np.random.default_rng(seed).random(n))

    def run_seeds(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), seeds: Sequence[int]
    ) -> list[Continuation]:
        """Draw one run for each seed.

        Raises:
          CreditError: no such trace or choice.
        """
        return self._drawn(prefix, replace, forbid, seeded_uniforms(seeds, 1)[:, 0])

    def _drawn(
        self, prefix: Prefix, replace: str | None, forbid: Sequence[str], uniform: np.ndarray
    ) -> list[Continuation]:
        """One run for each uniform number in [0, 1), by the inverse of the cumulative chances."""
        world, history = self.world, self._history(prefix)
        policy = world.policy.copy()
        for s, decision in enumerate(world.states.values()):
            if decision.agent in forbid:
                policy[s] = np.eye(policy.shape[1])[0]
        if replace is not None:
            choices = world.states[history].choices
            if not (replace.isdecimal() and int(replace) < choices):
                raise CreditError(f"replace is {replace!r}; expected a choice from 0 to {choices - 1}")
            history = (*history, int(replace))
        reached = np.array([end[: len(history)] == history for end, _, _ in world.ends])
        ends = np.flatnonzero(reached)
        total = np.cumsum(self._rest(policy, len(history))[ends])
        drawn = ends[np.searchsorted(total, uniform * total[-1], side="right")]
        depth = len(prefix.events)
        return [
            Continuation(float(world.total[i]), str(world.ends[i][0][depth]) if len(world.ends[i][0]) > depth else "")
            for i in drawn.tolist()
        ]

    def _history(self, prefix: Prefix) -> tuple[int, ...]:
        name, _, number = prefix.trace.rpartition("-")
        if name != self.world.name or not number.isdecimal() or int(number) >= len(self.world.ends):
            raise CreditError(f"trace is {prefix.trace!r}; expected one of the world {self.world.name!r}")
        return self.world.ends[int(number)][0][: len(prefix.events)]

    def _rest(self, policy: np.ndarray, start: int) -> np.ndarray:
        """The probability of each trace's choices from `start` on, and of its luck, float64 [N]."""
        state, choice = self.world.state[:, start:], self.world.choice[:, start:]
        chosen = np.where(state >= 0, policy[state, choice], 1.0)
        return np.asarray(chosen.prod(1) * np.array([luck for _, luck, _ in self.world.ends]))
