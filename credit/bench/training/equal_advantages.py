"""Whether two signals that train alike have equal advantages, or one has a multiple of the other's."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import numpy as np

from credit.bench.signs import residue
from credit.bench.training.learning_tasks import learning_task
from credit.bench.training.rollouts import BERNOULLI, draw_rollout
from credit.bench.training.training_loop import Signal, TrainingSettings
from credit.bench.training.training_signals import training_signal

__all__ = ["BATCHES", "Relation", "larger_apart", "most_telling", "relation"]

Relation = Literal["equal", "multiple", "apart"]
BATCHES = 32
"""Each of another policy."""


def most_telling(tasks: Sequence[str]) -> str:
    """The first task whose rewards are drawn from a continuum, since of 0 and 1 a rank tells what a mean does.

    Args:
      tasks: names; without such a task the first one counts.

    Examples:
      >>> most_telling(["bottleneck", "heavy"]), most_telling(["bottleneck"])
      ('heavy', 'bottleneck')
    """
    return max(tasks, key=lambda name: learning_task(name).noise or 0)


def relation(first: str, other: str, task: str, settings: TrainingSettings) -> Relation:
    """How the advantages of two signals compare on the same drawn batches of a task.

    Args:
      first, other: names of signals.
      task: its name.
      settings: of the training. With the policy "tabular" a multiple may have a factor for each decision, else one.

    Examples:
      >>> relation("verl_rloo", "rloo", "bottleneck", TrainingSettings())
      'multiple'
    """
    of = learning_task(task)
    shape = dataclasses.replace(of, name="", noise=BERNOULLI if of.noise is None else of.noise)
    drawn = _compiled(training_signal(first), training_signal(other), settings.groups, settings.group_size)
    of_first, of_other = (np.asarray(weights, np.float64) for weights in drawn(shape, jax.random.key(0)))
    least = residue(np.abs(of_first).max(), np.float32)
    if np.abs(of_first - of_other).max() <= least:
        return "equal"
    over = (0, 1, 3) if settings.policy == "tabular" else None  # all but decisions
    squares = np.sum(of_other**2, axis=over, keepdims=True)
    factor = np.sum(of_first * of_other, axis=over, keepdims=True) / np.where(squares > 0, squares, 1)
    return "multiple" if np.abs(of_first - factor * of_other).max() <= least else "apart"


def larger_apart(first: str, other: str, task: str, settings: TrainingSettings) -> tuple[int | None, list[int]]:
    """The least size of groups, of one or two traces more, in which advantages are not equal; and the sizes tried.

    Args:
      first, other, task, settings: as of `relation`.
    """
    tried: list[int] = []
    for size in (settings.group_size + 1, settings.group_size + 2):
        tried.append(size)
        if relation(first, other, task, dataclasses.replace(settings, group_size=size)) != "equal":
            return size, tried
    return None, tried


@functools.lru_cache(maxsize=64)
def _compiled(first: Signal, other: Signal, groups: int, group_size: int) -> Callable[..., Any]:
    """Of a task and a key the weights of both signals in all batches, [BATCHES, n, D, C]."""

    @jax.jit
    def drawn(task: Any, key: jax.Array) -> Any:
        def of_batch(states: Any, key: jax.Array) -> Any:
            policy, draw, runs = jax.random.split(key, 3)
            logits = jax.random.normal(policy, (task.kinds, task.decisions, task.choices))
            rollout = draw_rollout(task, logits, groups, group_size, draw)
            answers = [signal.weigh(rollout, state, runs) for signal, state in zip((first, other), states, strict=True)]
            return tuple(answer.state for answer in answers), tuple(answer.weights for answer in answers)

        return jax.lax.scan(of_batch, (first.start(task), other.start(task)), jax.random.split(key, BATCHES))[1]

    return drawn
