"""Bias where replays are logged under another task than their trace, as an exact number.

A method that compares the traces of a group refuses a replay whose group has no independent trace. Whether a trace has
replays depends on its choices where these can end it, and so does the share of its decisions that is answered. All
batches of fan-outs of one team (`credit.bench.enumeration.fan_outs`) are run in float64, the first trace of each
fan-out under one task and its siblings under another one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import jax
import numpy as np

from credit.bench.bias import x64
from credit.bench.enumeration import Draws, fan_outs
from credit.bench.stacked_batches import Batches, stack
from credit.methods.registry import METHODS
from graphs.worlds.micro.examples import MICRO

__all__ = ["LAYOUTS", "Layout", "ReplayTaskBias", "replay_task_bias"]

Layout = Literal["one task", "a task for each trace's replays", "one task for all replays", "no trace beside its own"]
"""Where the siblings of a trace stand: under its task; under a task of their own; under one that siblings of other
traces share; there, and each first trace under a task of its own, too.
"""

LAYOUTS: tuple[Layout, ...] = get_args(Layout)


class ReplayTaskBias(NamedTuple):
    """The relative bias of one method in one layout, by two ways to weigh the traces of a fan-out.

    Attributes:
      method, world, layout: what was measured.
      all_siblings: each trace of a fan-out weighs 1 over their number, and a refused one pushes nothing.
      answered_siblings: 1 over the number of those that are answered.
    """

    method: str
    world: str
    layout: Layout
    all_siblings: float
    answered_siblings: float


def replay_task_bias(name: str, world: str, layout: Layout, *, fans: int = 2, at: int = 1) -> ReplayTaskBias:
    """Measure a method that needs no evidence in batches of `fans` fan-outs of two siblings from decision `at` on.

    Args:
      name: a key of `credit.METHODS`.
      world: of `graphs.worlds.micro.examples.MICRO`.
      layout: which tasks the traces are logged under.
      fans: independent fan-outs in a batch.
      at: the decision that siblings take anew, from 1.
    """
    draws = fan_outs(MICRO[world], fans, at, 2, ordered=True)
    batch = _regrouped(stack(draws), draws, layout, fans)
    with x64():
        advantage, valid = map(np.asarray, _compiled(name)(batch))
    row, event = np.nonzero((batch.state >= 0) & (batch.weight > 0) & valid)
    trace = np.asarray(batch.graph.trace_ids)[row, event]
    fan = np.asarray(batch.graph.cluster_ids)[row, trace]
    answered = np.zeros(draws.members.shape)
    answered[row, trace] = 1
    size, known = (_by_fan(draws, counted) for counted in (draws.members >= 0, answered))
    true = draws.world.gradient()
    rows = []
    for of_fan in (size, known):
        weight = batch.weight[row, event] * size[row, fan] / of_fan[row, fan]
        pushed = np.zeros((len(draws.chance), *draws.world.policy.shape))
        np.add.at(pushed, (row, batch.state[row, event], batch.choice[row, event]), weight * advantage[row, event])
        mean = np.tensordot(draws.chance, draws.world.through_scores(pushed), axes=1)
        rows.append(float(np.linalg.norm(mean - true) / np.linalg.norm(true)))
    return ReplayTaskBias(name, world, layout, *rows)


@functools.cache
def _compiled(name: str) -> Callable[[Batches], tuple[jax.Array, jax.Array]]:
    def one(batch: Batches) -> tuple[jax.Array, jax.Array]:
        credit = METHODS[name](batch.graph, batch.reward, event_reward=batch.event_reward)
        return credit.advantage, credit.valid

    return jax.jit(jax.vmap(one))


def _by_fan(draws: Draws, values: np.ndarray) -> np.ndarray:
    """Sums over the traces of each fan-out, [D, T], at the place of its first trace."""
    total = np.zeros(draws.members.shape)
    fan = np.asarray(draws.cluster_ids)
    np.add.at(total, (np.arange(len(total))[:, None], fan), np.where(draws.members >= 0, values, 0))
    return total


def _regrouped(batch: Batches, draws: Draws, layout: Layout, fans: int) -> Batches:
    first = draws.cluster_ids == np.arange(draws.members.shape[1])
    fan = np.cumsum(first & (draws.members >= 0), axis=1) - 1
    group = {
        "one task": np.zeros_like(fan),
        "a task for each trace's replays": np.where(first, 0, 1 + fan),
        "one task for all replays": np.where(first, 0, 1),
        "no trace beside its own": np.where(first, fan, fans),
    }[layout]
    group = np.where(draws.members >= 0, group, 0).astype(np.int32)
    return dataclasses.replace(batch, graph=dataclasses.replace(batch.graph, group_ids=group))
