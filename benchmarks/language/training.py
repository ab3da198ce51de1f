"""Train a team of language models: a short supervised warm-up, then policy gradient on tokens with a signal.

    L = −(1/n) Σ_traces Σ_decisions A Σ_tokens log π(token | what its writer read)

Sampling, re-runs, advantages and Adam are one compiled function. Events of re-runs are paid from the budget.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.language.questions import STOP, draw_questions, facts
from benchmarks.language.signals import as_graph, rerun, weigh
from benchmarks.language.team import Said, Team, fresh_team, log_probs, play
from graphs.errors import CreditError

__all__ = ["LanguageCurves", "LanguageSettings", "mean_reward", "train_language", "warm_team"]

CHUNK = 10
"""Updates of one call of the compiled function."""

EVALUATED = 2048
"""Fresh traces that a team's mean reward is measured on."""


@dataclasses.dataclass(frozen=True)
class LanguageSettings:
    """The same for every signal.

    Attributes:
      events: the budget: calls of models in traces and re-runs.
      groups: questions of an update.
      group_size: traces of a question.
      warm_steps: supervised updates before, of 32 demonstrations each.
    """

    events: int = 24_000
    groups: int = 8
    group_size: int = 4
    warm_steps: int = 60

    def __post_init__(self) -> None:
        for name, least in (("events", 1), ("groups", 1), ("group_size", 2), ("warm_steps", 0)):
            if getattr(self, name) < least:
                raise CreditError(f"LanguageSettings.{name} is {getattr(self, name)}; expected {least} or more")


class LanguageCurves(NamedTuple):
    """The course of training, one entry an update whose cost the budget holds: [U].

    Attributes:
      reward: float64, mean of the update's traces, sampled before it.
      teaching: float64, share of groups whose rewards are not all equal.
      spent: float64, events that were paid before the update.
      start, final: mean reward of the first and of the last team, on fresh traces.
      team: the last parameters.
    """

    reward: np.ndarray
    teaching: np.ndarray
    spent: np.ndarray
    start: float
    final: float
    team: Team


def train_language(signal: str, settings: LanguageSettings, seed: int, learning_rate: float) -> LanguageCurves:
    """Train one team from its warm-up until the budget is spent.

    Args:
      signal: one of `SIGNALS`.
      settings: of the loop.
      seed: of parameters, demonstrations, questions and samples.
      learning_rate: of Adam.

    Raises:
      CreditError: no such signal; the learning rate is not positive; or the budget does not hold one update.
    """
    if not learning_rate > 0:
        raise CreditError(f"learning_rate is {learning_rate!r}; expected a positive number")
    first = warm_team(seed, settings.warm_steps)
    begin, chunk = _compiled(signal, settings.groups, settings.group_size)
    key, spent = jax.random.key(seed), 0.0
    carry, team = begin(first), first
    parts: list[list[np.ndarray]] = []
    while spent <= settings.events:
        carry, (part, teams) = chunk(carry, jax.random.fold_in(key, len(parts)), learning_rate)
        parts.append([np.asarray(x, np.float64) for x in part])
        before = spent + np.concatenate([[0.0], np.cumsum(parts[-1][-1])])
        spent = float(before[-1])
        inside = int(np.sum(before[1:] <= settings.events))
        if inside:
            team = jax.tree.map(lambda x, last=inside - 1: x[last], teams)
    reward, teaching, cost = (np.concatenate(x) for x in zip(*parts, strict=True))
    paid = np.concatenate([[0.0], np.cumsum(cost)])
    updates = int(np.sum(paid[1:] <= settings.events))
    if not updates:
        raise CreditError(
            f"an update costs {cost[0]:.0f} events, the budget is {settings.events}; expected the events of an update"
        )
    return LanguageCurves(
        reward[:updates], teaching[:updates], paid[:updates], mean_reward(first, seed), mean_reward(team, seed), team
    )


def mean_reward(team: Team, seed: int) -> float:
    """The mean reward of `EVALUATED` fresh traces.

    Args:
      team: its parameters.
      seed: of questions and samples, apart from those of training.
    """
    return float(_evaluated(team, jax.random.fold_in(jax.random.key(seed), 2**30)))


@jax.jit
def _evaluated(team: Team, key: jax.Array) -> jax.Array:
    ask, run = jax.random.split(key)

    def some(keys: tuple[jax.Array, jax.Array]) -> jax.Array:
        return play(team, draw_questions(64, 1, keys[0]), keys[1]).reward.mean()

    keys = jax.random.split(ask, EVALUATED // 64), jax.random.split(run, EVALUATED // 64)
    mean: jax.Array = jax.lax.map(some, keys).mean()
    return mean


@functools.lru_cache(maxsize=32)
def warm_team(seed: int, steps: int) -> Team:
    """A team after a supervised warm-up on demonstrations: right calls, right answers.

    Args:
      seed: of parameters and demonstrations.
      steps: updates of 32 demonstrations each, by Adam at 0.003.
    """
    import optax

    adam = optax.scale_by_adam()

    @jax.jit
    def warmed(team: Team, keys: jax.Array) -> Team:
        def step(carry: Any, key: jax.Array) -> Any:
            team, memory = carry
            shown = demonstrations(draw_questions(32, 1, key))
            slope = jax.grad(lambda team: -jnp.mean(_of_decisions(team, shown)))(team)
            with jax.numpy_dtype_promotion("standard"):  # Adam of optax raises a float to an integer count of steps
                change, memory = adam.update(slope, memory, team)
            return (jax.tree.map(lambda p, c: p - 0.003 * c, team, change), memory), None

        return jax.lax.scan(step, (team, adam.init(team)), keys)[0][0]

    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 2**29), steps)
    team: Team = warmed(fresh_team(seed), keys)
    return team


def demonstrations(question: jax.Array) -> Said:
    """What the best team says: each part to the worker that holds it, answered right, then `STOP`.

    Args:
      question: int32 [n, R].
    """
    known = facts()
    asked, fact = question >= 0, jnp.maximum(question, 0)
    call = jnp.where(asked, 1 + jnp.asarray(known.book)[fact], STOP).astype(jnp.int32)
    before = jnp.concatenate([jnp.ones_like(asked[:, :1]), asked[:, :-1]], axis=1)
    taken = jnp.stack([before, asked], axis=2).reshape(len(question), -1)
    reward = jnp.zeros(len(question), jnp.float32)
    return Said(question, call, jnp.asarray(known.answer)[fact], taken, reward)


def _of_decisions(team: Team, said: Said) -> jax.Array:
    """Log-probability of each decision's tokens, [n, D]; 0 where it was not reached."""
    lead, worker = log_probs(team, said)
    table = jnp.stack([lead, worker.sum(axis=2)], axis=2).reshape(said.taken.shape)
    return jnp.where(said.taken, table, 0)


@functools.lru_cache(maxsize=16)
def _compiled(signal: str, groups: int, group_size: int) -> tuple[Any, Any]:
    import optax

    adam = optax.scale_by_adam()
    n = groups * group_size

    def answer(team: Team, state: Any, key: jax.Array) -> Any:
        ask, run, again = jax.random.split(key, 3)
        episodes = play(team, draw_questions(groups, group_size, ask), run)
        return episodes, weigh(signal, as_graph(episodes, group_size), state, lambda: rerun(team, episodes, again))

    def begin(team: Team) -> Any:
        state = jax.eval_shape(answer, team, None, jax.random.key(0))[1].state
        return team, adam.init(team), jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), state)

    @jax.jit
    def chunk(carry: Any, key: jax.Array, learning_rate: jax.Array) -> Any:
        def step(carry: Any, key: jax.Array) -> Any:
            team, memory, state = carry
            episodes, weighed = answer(team, state, key)

            def loss(team: Team) -> jax.Array:
                total = jnp.sum(weighed.own * _of_decisions(team, episodes))
                if weighed.reruns is not None:
                    table = _of_decisions(team, weighed.reruns.said)
                    at = jnp.take_along_axis(table, weighed.reruns.decision[:, None], axis=1)[:, 0]
                    total += jnp.sum(weighed.other * at)
                return -total / n

            slope = jax.grad(loss)(team)
            with jax.numpy_dtype_promotion("standard"):  # Adam of optax raises a float to an integer count of steps
                change, memory = adam.update(slope, memory, team)
            by_group = episodes.reward.reshape(groups, group_size)
            unequal = jnp.mean(by_group.max(axis=1) > by_group.min(axis=1))
            row = (episodes.reward.mean(), unequal, episodes.taken.sum().astype(jnp.float32) + weighed.cost)
            team = jax.tree.map(lambda p, c: p - learning_rate * c, team, change)
            return (team, memory, weighed.state), (row, team)

        return jax.lax.scan(step, carry, jax.random.split(key, CHUNK))

    return begin, chunk
