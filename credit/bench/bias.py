"""Bias of every method, as an exact number: its mean gradient over every batch that could have been sampled.

All batches of a micro-orchestration (`graphs.micro_worlds`, `credit.bench.draws`) are run through the method in
float64. With w_e the weight of a decision in its batch, 1/K in a group of K traces,

    g = Σ_e w_e A_e ∇ log π(e)
    bias = |E g − ∇J| / |∇J|      cosine = that between E g and ∇J      variance = runs (E|g|² − |E g|²) / |∇J|²

`runs` is the mean number of runs that a batch takes, traces and those beside them, so that variances compare at equal
cost. Advantage error is measured after
the mean of A in each state is removed, which is what a state-dependent baseline may add: A° = A − E[A | h]. Decisions
that the method refuses enter it with no weight, and the gradient with A = 0. With the true increments D = Q − V,

    error = E Σ_e w_e (A°_e − D_e)² / E Σ_e w_e D_e²      relative, of decisions that were answered
    rank  = Kendall's τ-b between E[A° | h, a] and D(h, a) over all (h, a)
    sign  = the share of decisions whose A° has the sign of D
    answered = the share of decisions that have a number; all shares by probability and weight

For rank and sign, what is less than a thousandth of the root mean square is nothing: two numbers that close are tied,
and a number that small has no sign. Without that an eps in a divisor would break ties.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from credit.bench.batches import Batches, stack
from credit.bench.bias_settings import SETTINGS, Way
from credit.bench.draws import Draws, alone, independent, replays
from graphs.micro import Lottery, Micro
from graphs.micro_worlds import MICRO

__all__ = ["TOO_MANY", "Row", "cells", "mean_gradient", "measure", "sizes", "x64"]

TOO_MANY: dict[tuple[Way, int], tuple[str, ...]] = {
    ("replays", 3): ("hire-additive",),
    ("nested", 2): ("hire-additive", "spawn-and"),
}
"""Worlds with more than 100,000 different replay trees, by the way of sampling and the number of alternatives."""

_CHUNK = 512
_TIE = 1e-3
_QUICK = {"xla_backend_optimization_level": 0}  # compiling takes longer than running


@dataclasses.dataclass(frozen=True)
class Row:
    """Scores of one method in one world at one size; NaN where a score is not defined (all zeros, all ties)."""

    method: str
    world: str
    k: int
    bias: float
    cosine: float
    variance: float
    error: float
    rank: float
    sign: float
    answered: float


def cells(methods: Sequence[str] = (), worlds: Sequence[str] = ()) -> Iterator[tuple[str, str, int]]:
    """Method (or variant), world and size of each row of the table, by default of all."""
    for name in methods or SETTINGS:
        for world in worlds or MICRO:
            yield from ((name, world, k) for k in sizes(SETTINGS[name].way, world))


def sizes(way: Way, world: str) -> tuple[int, ...]:
    """The sizes K that are enumerated: traces of a group, or alternatives of a context; 1 where there is one trace."""
    several: dict[Way, tuple[int, ...]] = {"groups": (2, 3), "replays": (2, 3), "nested": (2,)}
    return tuple(k for k in several.get(way, (1,)) if world not in TOO_MANY.get((way, k), ()))


def x64() -> contextlib.AbstractContextManager[Any]:
    """A context with 64 bits enabled; older JAX has it under `jax.experimental`."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64(True)


def measure(name: str, world: str, k: int) -> Row:
    """The scores of one method or variant in one world."""
    how, draws = SETTINGS[name], _draws(world, SETTINGS[name].way, k)
    batch = _batches(world, how.way, k)
    advantage, valid = _run(name, batch)
    factor = k / (k - 1) if how.rescaled else 1.0
    return Row(name, world, k, *_scores(draws, batch, advantage * factor, valid))


def mean_gradient(name: str, world: str, k: int) -> np.ndarray:
    """E g of one method or variant, float64 [S, C]; for comparison with a closed form."""
    batch = _batches(world, SETTINGS[name].way, k)
    draws = _draws(world, SETTINGS[name].way, k)
    return np.tensordot(draws.chance, _estimates(draws.world, batch, _run(name, batch)[0]), axes=1)


@functools.lru_cache(maxsize=16)
def _draws(world: str, way: Way, k: int) -> Draws:
    micro = MICRO[world]
    if way == "groups":
        return independent(micro, k, room=3)  # one shape for both sizes: a method compiles once
    if way in ("replays", "nested"):
        return replays(micro, k, nested=way == "nested")
    if way == "alone":
        return alone(micro)
    if way == "greedy":
        return alone(micro, "greedy_reward", lambda trace: [micro.greedy()])

    def again(trace: int, at: int) -> Lottery:
        return micro.rest((*micro.ends[trace][0][:at], 0)) if way == "rerun" else micro.frozen(trace, at)

    return alone(
        micro, "counterfactual_reward", lambda trace: [again(trace, at) for at in range(len(micro.ends[trace][0]))]
    )


@functools.lru_cache(maxsize=16)
def _batches(world: str, way: Way, k: int) -> Batches:
    wanted = {name for how in SETTINGS.values() if how.way == way for name in how.given}
    return stack(_draws(world, way, k), wanted)


@functools.cache
def _compiled(name: str) -> Any:
    how = SETTINGS[name]

    def one(batch: Batches) -> tuple[jax.Array, jax.Array]:
        evidence = {argument: batch.evidence[given] for argument, given in how.evidence.items()}
        if how.event_reward == "event_reward":
            evidence["event_reward"] = batch.event_reward
        elif how.event_reward is not None:
            evidence["event_reward"] = batch.evidence[how.event_reward]
        credit = how.fn(batch.graph, getattr(batch, _REWARD[how.reward]), **evidence, **how.options)
        return credit.advantage, credit.valid

    return jax.jit(jax.vmap(one), compiler_options=_QUICK)


_REWARD = {"outcome": "reward", "returns": "returns"}


def _run(name: str, batch: Batches) -> tuple[np.ndarray, np.ndarray]:
    """Advantage and validity of every event of every batch, in chunks of one shape."""
    total = len(batch.state)
    fn, parts = _compiled(name), []
    with x64():
        for start in range(0, total, _CHUNK):
            rows = np.minimum(np.arange(start, start + _CHUNK), total - 1)
            parts.append(jax.tree.map(np.asarray, fn(jax.tree.map(lambda values, rows=rows: values[rows], batch))))
    advantage, valid = (np.concatenate(part)[:total] for part in zip(*parts, strict=True))
    return advantage, valid


def _estimates(world: Micro, batch: Batches, advantage: np.ndarray) -> np.ndarray:
    """The gradient estimate g of each batch, [D, S, C]."""
    pushed = np.zeros((len(advantage), *world.policy.shape))
    row, event = np.nonzero(batch.state >= 0)
    at = row, batch.state[row, event], batch.choice[row, event]
    np.add.at(pushed, at, (batch.weight * advantage)[row, event])
    return world.through_scores(pushed)


def _scores(draws: Draws, batch: Batches, advantage: np.ndarray, valid: np.ndarray) -> tuple[float, ...]:
    world, true = draws.world, draws.world.gradient()
    estimate = _estimates(world, batch, advantage)
    mean = np.tensordot(draws.chance, estimate, axes=1)
    length = float(np.linalg.norm(true))
    spread = draws.chance @ np.sum((estimate - mean) ** 2, axis=(1, 2))

    there = batch.weight * (batch.state >= 0) > 0
    mass = draws.chance[:, None] * batch.weight
    answered = there & valid
    p, s, c, a = mass[answered], batch.state[answered], batch.choice[answered], advantage[answered]
    weight, total = np.zeros(world.policy.shape), np.zeros(world.policy.shape)
    np.add.at(weight, (s, c), p)
    np.add.at(total, (s, c), p * a)
    centre = _ratio(total.sum(1), weight.sum(1))
    centred, increment = a - centre[s], world.increments[s, c]
    known = weight > 0
    size = _rms(centred, p), _rms(increment, p)
    agrees = _sign(centred, size[0]) == _sign(increment, size[1])
    return (
        float(np.linalg.norm(mean - true)) / length,
        _one_ratio(float(np.sum(mean * true)), float(np.linalg.norm(mean)) * length),
        float(spread) * draws.runs / length**2,
        _one_ratio(float(p @ (centred - increment) ** 2), float(p @ increment**2)),
        _tau((_ratio(total, weight) - centre[:, None])[known], world.increments[known], size),
        _one_ratio(float(p @ agrees), float(p.sum())),
        float(p.sum() / mass[there].sum()),
    )


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _one_ratio(a: float, b: float) -> float:
    return a / b if b > 1e-18 else math.nan


def _rms(x: np.ndarray, weight: np.ndarray) -> float:
    return math.sqrt(_one_ratio(float(weight @ x**2), float(weight.sum())))


def _sign(x: np.ndarray, size: float) -> np.ndarray:
    return np.where(np.abs(x) > _TIE * size, np.sign(x), 0)


def _tau(x: np.ndarray, y: np.ndarray, size: tuple[float, float]) -> float:
    """Kendall's τ-b; NaN where one side is all ties."""
    upper = np.triu_indices(len(x), 1)
    a, b = (_sign((v[:, None] - v)[upper], n) for v, n in zip((x, y), size, strict=True))
    return _one_ratio(float(np.sum(a * b)), math.sqrt(np.sum(a**2) * np.sum(b**2)))
