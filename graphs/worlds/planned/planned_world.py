"""A lead with a plan and its workers: a small team in which later choices depend on earlier ones.

A lead plans (how many workers, and a good or a bad plan), spawns workers, each worker makes a few model calls in
parallel with the others, the lead aggregates and stops. Every call has a hidden quality, good or bad, drawn from a
policy with known probabilities. The outcome depends on an integer score, the weighted number of good calls, so the
expectation of the outcome after any part of the log follows exactly by dynamic programming over the score.

    world = World(outcome=Bernoulli())
    episodes = world.sample(jax.random.key(0), 64)
    truth = world.increments(episodes)          # R = expected + Σ increments + outcome, on every trace
    traces = world.traces(episodes, truth)      # as if read from a log

To extend: another outcome is another class like `Bernoulli`; another team is another `Layout` (which decisions there
are, and what they weigh) with a `Policy` for it; the kernels know only these.

Legend: n traces, K tasks, N workers at most, C calls a worker, S = N C + 3 decisions at most, V log entries at most.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from graphs.errors import CreditError
from graphs.text import counted
from graphs.worlds import team
from graphs.worlds import truth as truths
from graphs.worlds.planned import draws, episode_log
from graphs.worlds.team import Additive, Bernoulli, Episodes, Layout, Outcome, Pivotal, Policy
from graphs.worlds.truth import Truth

if TYPE_CHECKING:
    from graphs.traces.batch import Traces
    from graphs.traces.record import TraceRecord

__all__ = ["World"]


@dataclasses.dataclass(frozen=True)
class World:
    """A team, its policy and its tasks.

    The probability p of a good decision holds for a task of difficulty 0; a difficulty d is subtracted from its logit.

    Attributes:
      difficulties: one for each task, K of them.
      group_size: traces in a group.
      max_workers: N.
      calls: C, calls of each worker.
      size_probabilities: of spawning 1, …, N workers.
      good_plan: probability that the plan is good.
      good_call: probability that a worker's call is good, after a bad plan and after a good one.
      good_aggregate: probability that the aggregation is good.
      plan_weight, call_weights, aggregate_weight: what good decisions add to the score; one call weight for each of the
        C calls. A `Pivotal` outcome ignores them.
      worker_cost: what each worker takes from the score; ignored likewise.
      chatter: probability that a call sends another worker a message (which changes nothing).
      outcome: how the score becomes a reward: `Additive`, `Bernoulli` or `Pivotal`.

    Raises:
      CreditError: a parameter is out of range; it names the field.
    """

    difficulties: tuple[float, ...] = (-1.0, -0.5, 0.0, 0.5, 1.0)
    group_size: int = 8
    max_workers: int = 4
    calls: int = 3
    size_probabilities: tuple[float, ...] = (0.1, 0.3, 0.4, 0.2)
    good_plan: float = 0.6
    good_call: tuple[float, float] = (0.4, 0.7)
    good_aggregate: float = 0.7
    plan_weight: int = 1
    call_weights: tuple[int, ...] = (1, 1, 2)
    aggregate_weight: int = 3
    worker_cost: int = 1
    chatter: float = 0.3
    outcome: Outcome = dataclasses.field(default_factory=Bernoulli)

    def __post_init__(self) -> None:
        def require(holds: bool, field: str, expected: str) -> None:
            if not holds:
                raise CreditError(f"World.{field} is {getattr(self, field)!r}; expected {expected}")

        for field in ("group_size", "max_workers", "calls"):
            require(getattr(self, field) >= 1, field, "1 or more")
        require(len(self.difficulties) > 0, "difficulties", "at least one task")
        require(all(map(math.isfinite, self.difficulties)), "difficulties", "finite numbers")
        sizes = self.size_probabilities
        require(len(sizes) == self.max_workers, "size_probabilities", f"{self.max_workers} numbers, one for each size")
        require(all(p > 0 for p in sizes) and math.isclose(sum(sizes), 1), "size_probabilities", "a distribution")
        for field in ("good_plan", "good_aggregate"):
            require(0 < getattr(self, field) < 1, field, "a probability between 0 and 1, exclusive")
        require(len(self.good_call) == 2, "good_call", "two probabilities: after a bad and after a good plan")
        require(all(0 < p < 1 for p in self.good_call), "good_call", "probabilities between 0 and 1, exclusive")
        require(0 <= self.chatter <= 1, "chatter", "a probability")
        for field in ("plan_weight", "aggregate_weight", "worker_cost"):
            require(isinstance(getattr(self, field), int), field, "an integer")
        require(all(isinstance(w, int) for w in self.call_weights), "call_weights", "integers")
        require(isinstance(self.outcome, Additive | Bernoulli | Pivotal), "outcome", "Additive, Bernoulli or Pivotal")
        require(len(self.call_weights) == self.calls, "call_weights", f"{self.calls} integers, one for each call")

    @functools.cached_property
    def layout(self) -> Layout:
        """The decisions and their weights."""
        if isinstance(self.outcome, Pivotal):
            weights, cost = [0] * (self.max_workers * self.calls + 3), 0
            weights[self.calls] = 1  # the last call of the first worker
        else:
            weights, cost = (
                [self.plan_weight, *self.call_weights * self.max_workers, self.aggregate_weight, 0],
                (self.worker_cost),
            )
        return Layout(self.max_workers, self.calls, self.group_size, tuple(weights), cost)

    @functools.cached_property
    def policy(self) -> Policy:
        """Probabilities of all choices, float64. The stop is certain: it has probability 1 and weight 0."""

        def on_tasks(probability: float) -> np.ndarray:
            return 1 / (1 + np.exp(np.array(self.difficulties) - math.log(probability / (1 - probability))))

        good = np.ones((len(self.difficulties), 2, self.layout.decisions))
        good[:, :, 0] = on_tasks(self.good_plan)[:, None]
        for plan in (0, 1):
            good[:, plan, 1:-2] = on_tasks(self.good_call[plan])[:, None]
        good[:, :, -2] = on_tasks(self.good_aggregate)[:, None]
        return Policy(np.array(self.size_probabilities), good, np.array(self.chatter))

    def sample(self, key: jax.Array, n: int, *, first: int = 0) -> Episodes:
        """Draw traces `first` to `first + n - 1`. What a trace draws depends on the key and its own number only."""
        result: Episodes = draws.sample(
            self.layout, self.policy, self.outcome, key, jnp.arange(first, first + n, dtype=jnp.int32)
        )
        return result

    def increments(self, episodes: Episodes) -> Truth:
        """The change in expected outcome by each event of each trace, exact up to rounding.

        Computed in JAX's default precision: within `jax.enable_x64()`, in float64.
        """
        result: Truth = truths.increments(self.layout, self.policy, self.outcome, episodes)
        return result

    def rerun(
        self, key: jax.Array, episodes: Episodes, trace: int, t: int, good: bool, n: int, *, size: int | None = None
    ) -> jax.Array:
        """Fresh outcomes of a trace with another choice at action t: float32 [n].

        Decisions before action t do not change, action t has the given quality, and all later ones are drawn again.

        Args:
          key: of these runs; run i uses `fold_in(key, i)`.
          episodes: where the trace is.
          trace: its row there.
          t: number of the action among the trace's actions in log order; 0 is the plan.
          good: quality of the replacement.
          n: how many runs.
          size: team size of a replaced plan; only with t = 0.

        Raises:
          CreditError: no such trace, action or size; or a size with an action that is not the plan.
        """
        if not 0 <= trace < len(episodes.size):
            raise CreditError(f"trace is {trace}; expected 0 to {len(episodes.size) - 1}")
        actions = int(np.sum(np.asarray(episodes.active[trace])))
        if not 0 <= t < actions:
            raise CreditError(f"t is {t}; expected 0 to {actions - 1}, trace {trace} has {counted(actions, 'action')}")
        if (size is None) == (t == 0):
            raise CreditError(f"size is {size} at action {t}; expected a size for action 0, the plan, and no other")
        if size is not None and not 1 <= size <= self.max_workers:
            raise CreditError(f"size is {size}; expected 1 to {self.max_workers}")
        one = jax.tree.map(lambda x: x[trace], episodes)
        team = jnp.asarray(one.size if size is None else size, jnp.int32)
        runs = jnp.arange(n, dtype=jnp.int32)
        result: jax.Array = draws.rerun(
            self.layout, self.policy, self.outcome, key, one, team, jnp.asarray(t), jnp.asarray(good), runs
        )
        return result

    def log_order(self, episodes: Episodes) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Entries of each trace in log order: number in `layout.slots`, tick, and mask, each [n, V]."""
        result: tuple[jax.Array, jax.Array, jax.Array] = team.log_order(self.layout, episodes)
        return result

    def records(self, episodes: Episodes, truth: Truth | None = None) -> list[TraceRecord]:
        """The traces as records of a reader. With `truth`, true values are logged as evidence `value`."""
        return episode_log.records(self, episodes, truth)

    def traces(self, episodes: Episodes, truth: Truth | None = None, **options: Any) -> Traces:
        """The traces as a batch; `options` go to `graphs.traces.assembling.assemble`."""
        from graphs.traces.assembling import assemble

        return assemble(self.records(episodes, truth), **options)
