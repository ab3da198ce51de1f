"""Re-running scripted teams of any form, whose true values are known: choices and outcomes are drawn in NumPy."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from credit.replay.drivers.seeded_uniforms import seeded_uniforms
from credit.replay.replayer import Continuation, Prefix
from graphs.errors import CreditError
from graphs.worlds.scripted.chances import counted, expectations
from graphs.worlds.scripted.runs import Runs
from graphs.worlds.scripted.team_world import TeamWorld
from graphs.worlds.team import Additive

__all__ = ["ScriptedReplayer"]


@dataclasses.dataclass(frozen=True)
class ScriptedReplayer:
    """A driver for `graphs.worlds.TeamWorld`, for the traces that it sampled.

    `replace` is "1" for a good choice and "0" for a bad one. A forbidden agent chooses badly wherever it decides, and
    spawns nobody. In kind "poisoned", whose truth needs every agent, spawns stay as they are.

    Attributes:
      world: the team.
      runs: the sampled traces of the log.
    """

    world: TeamWorld
    runs: Runs

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> list[Continuation]:
        """Draw `n` runs.

        Raises:
          CreditError: no such trace, event, choice or agent.
        """
        numbers = np.random.default_rng(seed).integers(0, 2**63, n)
        return self.run_seeds(prefix, replace=replace, forbid=forbid, seeds=numbers.tolist())

    def run_seeds(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), seeds: Sequence[int]
    ) -> list[Continuation]:
        """Draw one run for each seed.

        Raises:
          CreditError: no such trace, event, choice or agent.
        """
        world = self.world
        row, start = self._start(prefix)
        logged, chance = self._choices[row], self._chance(row, forbid)
        draws = seeded_uniforms(seeds, world.decisions + 2)
        choice = draws[:, : world.decisions] < chance
        choice[:, :start] = logged[:start]
        if replace is not None:
            choice[:, start] = self._good(replace, start)
        on = world.script.on[world.script.events]
        for d in np.flatnonzero(on >= 0):  # a decision comes after the one that it hangs on
            choice[:, d] &= choice[:, on[d]]
        score = np.where(counted(world.rule, choice) & choice, world.rule.weight, 0).sum(axis=1)
        least, means = self._means
        mean = means[score - least]
        if isinstance(world.outcome, Additive):
            normal = np.sqrt(-2 * np.log1p(-draws[:, -2])) * np.cos(2 * np.pi * draws[:, -1])
            reward = mean + world.outcome.noise * normal
        else:
            reward = (draws[:, -1] < mean).astype(np.float64)
        chosen = choice[:, start].astype(int).tolist() if start < world.decisions else [""] * len(seeds)
        return [Continuation(float(r), str(c)) for r, c in zip(reward.tolist(), chosen, strict=True)]

    def expected(self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = ()) -> float:
        """The exact mean of the runs' outcomes.

        Raises:
          CreditError: no such trace, event, choice or agent.
        """
        row, start = self._start(prefix)
        if replace is None and not forbid:
            return float(self._values[row, start])
        choice = self._choices[row][None].copy()
        if replace is not None:
            choice[0, start] = self._good(replace, start)
        value = expectations(self.world.rule, self._chance(row, forbid), self.world.outcome, choice)
        return float(value[0, start + (replace is not None)])

    @functools.cached_property
    def _means(self) -> tuple[int, np.ndarray]:
        """The least score that can be, and the expected outcome of each from it on: a table, since JAX compiles an
        array's length."""
        weight = self.world.rule.weight
        least, most = int(weight[weight < 0].sum()), int(weight[weight > 0].sum())
        return least, np.asarray(self.world.outcome.mean(np.arange(least, most + 1)), np.float64)

    @functools.cached_property
    def _tasks(self) -> np.ndarray:
        return np.asarray(self.runs.task)

    @functools.cached_property
    def _choices(self) -> np.ndarray:
        return np.asarray(self.runs.choice, bool)

    @functools.cached_property
    def _events(self) -> list[np.ndarray]:
        """Positions of each trace's events in the script."""
        return [np.flatnonzero(present) for present in self.world.present(self.runs)]

    @functools.cached_property
    def _values(self) -> np.ndarray:
        """The expected outcome before each decision of each trace, and at its end: float64 [n, D + 1]."""
        world = self.world
        rows = [
            expectations(world.rule, self._chance(row, ()), world.outcome, choice[None])[0]
            for row, choice in enumerate(self._choices)
        ]
        return np.stack(rows)

    @functools.cached_property
    def _row_of(self) -> dict[str, int]:
        return {f"trace-{int(number):06d}": row for row, number in enumerate(np.asarray(self.runs.trace))}

    def _start(self, prefix: Prefix) -> tuple[int, int]:
        """The row of the trace, and the first decision that is drawn anew."""
        row = self._row_of.get(prefix.trace)
        if row is None:
            raise CreditError(f"trace is {prefix.trace!r}; expected one of the {len(self._row_of)} that were sampled")
        if prefix.decision is None:
            return row, 0
        events = self._events[row]
        depth = len(prefix.events)
        decision = int(self.world.script.decision[events[depth]]) if depth < len(events) else -1
        if decision < 0 or prefix.decision != f"e{depth}":
            raise CreditError(f"event is {prefix.decision!r} of trace {prefix.trace!r}; expected one of its actions")
        return row, decision

    def _chance(self, row: int, forbid: Sequence[str]) -> np.ndarray:
        """The chance of a good choice at each decision, float64 [D]."""
        script = self.world.script
        strangers = [name for name in forbid if name not in script.names]
        if strangers:
            raise CreditError(f"forbidden agent is {strangers[0]!r}; expected agents of the world")
        absent = np.isin(script.agents[script.events], [script.names.index(name) for name in forbid])
        return np.where(absent & ~self._kept, 0.0, self.world.chance[self._tasks[row]])

    @functools.cached_property
    def _kept(self) -> np.ndarray:
        """Decisions that no run may change: bool [D]."""
        return np.asarray(self.world.script.optional & (self.world.kind == "poisoned"))

    def _good(self, replace: str, decision: int) -> bool:
        if replace not in ("0", "1"):
            raise CreditError(f"replace is {replace!r}; expected '0' or '1'")
        if replace == "0" and self._kept[decision]:
            raise CreditError("a spawn is replaced by '0'; expected '1' in kind 'poisoned'")
        return replace == "1"
