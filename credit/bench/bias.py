"""Bias of every method, as an exact number: its mean gradient over every batch that could have been sampled.

All batches of a micro-orchestration (`graphs.worlds.micro.examples`, `credit.bench.enumeration`) are run through the
method in float64. With w_e the weight of a decision in its batch, 1/K in a group of K traces,

    g = Σ_e w_e A_e ∇ log π(e)
    bias = |E g − ∇J| / |∇J|      cosine = that between E g and ∇J      variance = runs (E|g|² − |E g|²) / |∇J|²
    relative = runs (E|g|² − |E g|²) / |E g|², the runs over the squared signal to noise of g: the same at any scale

`runs` is the mean number of runs that a batch takes, so that variances compare at equal cost; a replay from a decision
on counts as a whole run, unlike in `bench train`, which counts events. A baseline may add any number to all advantages
of a state, so errors are those of A° = A − E[A | h], without the mean of the state. Decisions that the method refuses
have no weight in the error, and A = 0 in the gradient. With the true increments D = Q − V,

    error = E Σ_e w_e (A°_e − D_e)² / E Σ_e w_e D_e²      relative, of decisions that were answered
    rank  = Kendall's τ-b between E[A° | h, a] and D(h, a) over all (h, a)
    sign  = the share whose A° has the sign of D, of decisions at which neither is 0
    answered = the share of decisions that have a number; all shares by probability and weight

Rank compares means, so that ties are of the size of means, whatever the noise of A: a difference below a thousandth of
their root mean square is one. Otherwise the eps of a divisor would break ties. Sign is that of single numbers, 0 where
rounding leaves no more (`credit.bench.signs`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from credit.bench.bias_settings import OWN_EVIDENCE, SETTINGS, Way, setting
from credit.bench.enumeration import Draws, alone, count_fan_outs, count_replays, fan_outs, independent, replays
from credit.bench.own_worlds import micro_world, shown_world
from credit.bench.refusals import COUNTED, refused_share, why_refused
from credit.bench.signs import residue, root_mean_square, signs
from credit.bench.stacked_batches import Batches, stack
from credit.methods.own_functions import own_name
from credit.methods.own_results import ABOVE_0, FINITE, UnmeasuredError
from estimators.base import REASONS, Credit, Reason
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError, expect
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import Lottery, Micro

__all__ = [
    "MOST_BATCHES",
    "Row",
    "apart_at",
    "beyond",
    "cells",
    "mean_gradient",
    "measure",
    "refusals",
    "same_as",
    "sizes",
    "x64",
]

MOST_BATCHES = 100_000
"""Of a world and a group size: a minute for most methods, and some hundred megabytes.

Where groups in every order are more, those that differ in the order of their traces only are one, with their chances
together. A method whose numbers depend on the order is then refused.
"""

_CHUNK, _PART = 512, 40_000
_MANY = 20_000  # batches, from which on running takes longer than compiling
_ALIKE = 1e-6  # of the largest number: what rounding in single precision may change
_TIE = 1e-3  # of the root mean square of what is ranked: numbers closer than that are tied
_QUICK, _FAST = ({"xla_backend_optimization_level": level} for level in (0, 1))  # to compile, and to run


@dataclasses.dataclass(frozen=True)
class Row:
    """Scores of one method in one world at one size; NaN where a score is not defined (all zeros, all ties).

    All but `answered` are NaN where every decision was refused, for which `reasons` has the reason, and all where the
    method is left out, as for numbers that are not finite (`credit.bench.refusals`).
    """

    method: str
    world: str
    k: int
    bias: float
    cosine: float
    variance: float
    relative: float
    error: float
    rank: float
    sign: float
    answered: float


@checked_kinds()
def cells(
    methods: Sequence[str] = (), worlds: Sequence[str] = (), group_sizes: Sequence[int] = (), most: int | None = None
) -> list[tuple[str, str, int]]:
    """Method (or variant), world and size of each row of the table, by default of all.

    Args:
      methods, worlds: names; empty for all.
      group_sizes: instead of 2 and 3, of groups of traces and of the alternatives of a context. Rows of one trace stay
        as they are, and rows with too many batches (`beyond`) are left out.
      most: batches of a row; None for `MOST_BATCHES`. `measure` takes as many as there are.

    Raises:
      CreditError: all rows have more than `most` batches of that size.
    """
    too_many = beyond(methods, worlds, group_sizes, most)
    out = {cell for of in too_many.values() for cell in of}
    found = [cell for cell in _asked(methods, worlds, group_sizes) if cell not in out]
    if not found:
        lines = "; ".join(too_many)
        raise CreditError(f"{lines}: choose a smaller group_size, or another world")
    return found


def beyond(
    methods: Sequence[str], worlds: Sequence[str], group_sizes: Sequence[int] = (), most: int | None = None
) -> dict[str, list[tuple[str, str, int]]]:
    """The rows with too many batches, by a line for each world and kind of batch.

    Args:
      methods, worlds, group_sizes, most: as of `cells`.
    """
    most = most or MOST_BATCHES
    rows: dict[str, list[tuple[str, str, int]]] = {}
    for name, world, k in _asked(methods, worlds, group_sizes):
        if (many := _number(name, world, k)) > most:
            of = "replay trees" if setting(name).way in ("replays", "nested") else "groups in any order"
            each = f"{k} alternatives a context" if of == "replay trees" else f"{k} traces"
            line = f"world {world!r} has {many:,} {of} of {each}; expected at most {most:,} (--most-batches)"
            rows.setdefault(line, []).append((name, world, k))
    return {f"{', '.join(name for name, _, _ in of)}: {line}": of for line, of in rows.items()}


def _asked(methods: Sequence[str], worlds: Sequence[str], group_sizes: Sequence[int]) -> Iterator[tuple[str, str, int]]:
    for name in methods or SETTINGS:
        usual = sizes(setting(name).way)
        for world in worlds or MICRO:
            yield from ((name, world, k) for k in (usual if not group_sizes or usual == (1,) else group_sizes))


def _number(name: str, world: str, k: int) -> int:
    """How many batches a row takes, where its size or its world is none of the usual ones; else 0."""
    way, micro = setting(name).way, micro_world(world)
    if k in sizes(way) and world in MICRO:
        return 0
    if way in ("replays", "nested"):
        return count_replays(micro, k, way == "nested")
    if way == "trees":
        return count_fan_outs(micro, k, 1, 2)
    return 1 if way not in ("groups", "solo") else math.comb(_possible(micro, way) + k - 1, k)


def _possible(micro: Micro, way: Way) -> int:
    """How many traces, each with what runs beside it, a group may draw."""
    return len(micro.ends) * (len(micro.without(micro.agents[0])) if way == "solo" else 1)


def _in_order(micro: Micro, way: Way, k: int) -> bool:
    """Whether groups in every order are few enough to be told apart."""
    return way not in ("groups", "solo") or _possible(micro, way) ** k <= MOST_BATCHES


def same_as(rows: Sequence[Row], other: Sequence[Row]) -> bool:
    """Whether two methods have the same scores in all worlds and sizes, up to rounding; False without any.

    Two methods that answer nothing have no numbers, and so not the same. Two methods that differ in a batch of positive
    probability have equal scores only by accident.

    Args:
      rows, other: of the two methods, the same worlds and sizes in the same order.
    """
    table = {(row.world, row.k): row for row in other}
    pairs = [(row, table[row.world, row.k]) for row in rows if (row.world, row.k) in table]
    if not any(row.answered > 0 for row, _ in pairs):
        return False
    left, right = ([[row.bias, row.variance, row.error] for row in side] for side in zip(*pairs, strict=True))
    return np.allclose(left, right, rtol=1e-9, atol=1e-12, equal_nan=True)


def apart_at(name: str, other: str, worlds: Sequence[str], k: int) -> tuple[int | None, tuple[int, ...], str]:
    """Whether two methods that have the same scores in groups of `k` have others in groups of one or two traces more.

    Args:
      name, other: two methods.
      worlds: where they have the same scores.
      k: traces of a group there.

    Returns:
      The least such size, None without one; the sizes that were measured; and the world, the one of the fewest batches,
      where that can be one whose returns have more than two values: of two a rank tells no more than a mean.
    """
    values = {world: len(set(micro_world(world).total.round(9).tolist())) for world in worlds}
    world = min(worlds, key=lambda world: (values[world] <= 2, _number(name, world, k + 1)))
    tried: list[int] = []
    for size in (k + 1, k + 2):
        if max(_number(one, world, size) for one in (name, other)) > MOST_BATCHES:
            continue
        try:
            rows = [measure(one, world, size) for one in (name, other)]
        except UnmeasuredError:
            continue
        tried.append(size)
        if rows[0].answered > 0 and not same_as(rows[:1], rows[1:]):
            return size, tuple(tried), world
    return None, tuple(tried), world


def sizes(way: Way) -> tuple[int, ...]:
    """The sizes K that are enumerated: traces or trees of a group, alternatives of a context, or 1 for one trace.

    Args:
      way: how batches are made, as of a `setting`.
    """
    several: dict[Way, tuple[int, ...]] = {
        **dict.fromkeys(("groups", "solo", "replays"), (2, 3)),
        **dict.fromkeys(("trees", "nested"), (2,)),
    }
    return several.get(way, (1,))


def x64() -> contextlib.AbstractContextManager[Any]:
    """A context with 64 bits enabled; older JAX has it under `jax.experimental`."""
    enable = jax.enable_x64 if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental").enable_x64
    result: contextlib.AbstractContextManager[Any] = enable(True)
    return result


def measure(name: str, world: str, k: int) -> Row:
    """The scores of one method or variant, or of your own "module:function", in one world.

    Args:
      name: a key of `METHODS`, a variant such as "gae, lambda 1", a published name, or your own "module:function".
      world: a name in docs/bias.md, or your own `Micro` as "[NAME=]module:name".
      k: traces of a group, or alternatives of a context; one of `sizes` or more.

    Raises:
      CreditError: the name is none, or a function itself; the worlds do not have its evidence; the size is below the
        least of `sizes`.
      UnmeasuredError: its numbers depend on the order of traces, and groups in every order are too many.
    """
    expect("name", name, str, "the name of a method or of a function, such as 'rloo' or 'mine:estimator'")
    name, world = own_name(name), shown_world(world, Micro, MICRO)
    way = setting(name).way
    if k < min(sizes(way)):
        raise CreditError(f"k is {k!r}; expected {min(sizes(way))} or more, with which {name!r} is enumerated")
    return Row(name, world, k, *_scores(_draws(micro_world(world), way, k), _enumerated(name, world, k)))


def reasons(rows: Sequence[Row]) -> dict[tuple[str, str, int], str]:
    """By method, world and size K the main reason of decisions that have no number; rows without any are not in it."""
    places = [(row.method, row.world, row.k) for row in rows if row.answered < 1]
    return {place: why_refused(_enumerated(*place).reason) for place in places}


def refusals(rows: Sequence[Row], why: Mapping[tuple[str, str, int], str]) -> list[str]:
    """A line for each method, size K and reason of decisions that have no number: how many in which world, and why.

    Args:
      rows: what was measured.
      why: of `reasons`.
    """
    largest: dict[str, int] = {}
    worlds: dict[tuple[str, int], int] = {}
    refused: dict[tuple[str, int, str], list[Row]] = {}
    for row in rows:
        largest[row.method] = max(row.k, largest.get(row.method, 0))
        worlds[row.method, row.k] = worlds.get((row.method, row.k), 0) + 1
        if row.answered < 1:
            refused.setdefault((row.method, row.k, why[row.method, row.world, row.k]), []).append(row)
    lines = []
    for (name, k, reason), of_reason in refused.items():
        places: dict[str, list[str]] = {}
        for row in sorted(of_reason, key=lambda row: row.answered):
            places.setdefault(refused_share(row.answered), []).append(row.world)
        number, met = worlds[name, k], len(of_reason)
        where = "; ".join(f"{share} in {', '.join(of)}" for share, of in places.items())
        if number > 1:
            where = f"{next(iter(places))} in all {number} worlds" if met == number and len(places) == 1 else (
                f"{where} ({met} of {number} worlds)")  # fmt: skip
        few = reason == REASONS[Reason.TOO_FEW] or not any(row.answered for row in of_reason)
        more = f"; --group-size {k + 1} has more" * (few and k == largest[name] > 1)
        counted = f"; they {COUNTED['bias']}" * any(row.answered for row in of_reason)
        lines.append(f"{name}, size {k}, gave no number for decisions: {where}; most often: {reason}{counted}{more}")
    return lines


def mean_gradient(name: str, world: str, k: int) -> np.ndarray:
    """E g of one method or variant, float64 [S, C]; for comparison with a closed form.

    Args:
      name, world, k: as of `measure`.
    """
    return np.tensordot(
        _draws(micro_world(world), setting(name).way, k).chance, _enumerated(name, world, k).estimate, axes=1
    )


@functools.lru_cache(maxsize=16)
def _draws(micro: Micro, way: Way, k: int) -> Draws:
    ordered = _in_order(micro, way, k)
    if way == "groups":
        return independent(micro, k, 3, ordered=ordered)  # one shape for both sizes: a method compiles once
    if way == "solo":
        return independent(micro, k, 3, "solo_return", micro.without(micro.agents[0]), ordered)
    if way == "trees":  # a log that names the trees, and not the choices that their leaves share
        return dataclasses.replace(fan_outs(micro, k, 1, 2), cluster_ids=None)
    if way in ("replays", "nested"):
        return replays(micro, k, nested=way == "nested")
    if way == "alone":
        return alone(micro)
    if way == "greedy":
        return alone(micro, "greedy_reward", lambda trace: [micro.greedy()])

    def again(trace: int, decision: int) -> Lottery:
        return micro.rest((*micro.ends[trace][0][:decision], 0)) if way == "rerun" else micro.frozen(trace, decision)

    return alone(
        micro,
        "counterfactual_reward",
        lambda trace: [again(trace, decision) for decision in range(len(micro.ends[trace][0]))],
    )


def _batches(world: Micro, way: Way, k: int, part: int) -> Batches:
    """The batches of one part of the draws, kept for other methods if there is no other part, which saves memory."""
    draws = _draws(world, way, k)
    if len(draws.chance) <= _PART:
        return _all_batches(world, way, k)
    return stack(draws.part(part * _PART, (part + 1) * _PART), _wanted(way))


@functools.lru_cache(maxsize=16)
def _all_batches(world: Micro, way: Way, k: int) -> Batches:
    return stack(_draws(world, way, k), _wanted(way))


def _wanted(way: Way) -> set[str]:
    """The evidence that methods measured in this way take."""
    if way == "groups":
        return OWN_EVIDENCE
    return {name for how in SETTINGS.values() if how.way == way for name in how.given}


@functools.cache
def _compiled(name: str, fn: Callable[..., Credit], many: bool) -> Any:
    how = setting(name)

    def one(batch: Batches) -> tuple[jax.Array, jax.Array, jax.Array]:
        evidence = {argument: batch.evidence[logged_as] for argument, logged_as in how.evidence.items()}
        if how.event_reward == "event_reward":
            evidence["event_reward"] = batch.event_reward
        elif how.event_reward is not None:
            evidence["event_reward"] = batch.evidence[how.event_reward]
        credit = fn(batch.graph, getattr(batch, _REWARD[how.reward]), **evidence, **how.options)
        return credit.advantage, credit.scale, credit.reason

    return jax.jit(jax.vmap(one), compiler_options=_FAST if many else _QUICK)


_REWARD = {"outcome": "reward", "returns": "returns"}


def _run(name: str, batch: Batches) -> tuple[np.ndarray, np.ndarray]:
    """Advantage of every event of every batch and the reason why it has none, in chunks of one shape."""
    total = len(batch.state)
    fn, parts = _compiled(name, setting(name).fn, total > _MANY), []
    with x64():
        for start in range(0, total, _CHUNK):
            rows = np.minimum(np.arange(start, start + _CHUNK), total - 1)
            parts.append(jax.tree.map(np.asarray, fn(jax.tree.map(lambda values, rows=rows: values[rows], batch))))
    advantage, scale, reason = (np.concatenate(part)[:total] for part in zip(*parts, strict=True))
    valid = reason == Reason.VALID  # what is compiled cannot refuse
    for what, x, wrong, words in (("scale", scale, ~(scale > 0), ABOVE_0),
                                  ("advantage", advantage, ~np.isfinite(advantage), FINITE)):  # fmt: skip
        for row, event in np.argwhere(valid & wrong)[:1].tolist():
            found = f"the {what} of event {event} of batch {row} is {x[row, event]} and marked valid"
            raise UnmeasuredError(f"method {name!r}: {found}; {words}")
    return advantage, reason


class _Enumerated(NamedTuple):
    """What a method gave in every batch, and its decisions that have a weight, in one list of N.

    Attributes:
      estimate: the gradient estimate g of each batch, [D, S, C].
      mass: the probability of the batch times the weight of the decision, [N].
      state, choice, advantage, reason: of the decision, [N].
    """

    estimate: np.ndarray
    mass: np.ndarray
    state: np.ndarray
    choice: np.ndarray
    advantage: np.ndarray
    reason: np.ndarray


def _enumerated(name: str, world: str, k: int) -> _Enumerated:
    how, draws = setting(name), _draws(micro_world(world), setting(name).way, k)
    factor = k / (k - 1) if how.rescaled else 1.0
    in_order, parts = _in_order(draws.world, how.way, k), []
    for part in range(-(-len(draws.chance) // _PART)):
        batch, chance = _batches(draws.world, how.way, k, part), draws.chance[part * _PART : (part + 1) * _PART]
        rows, pushed = _pushed(name, batch, draws.world, factor)
        if not in_order:
            other = stack(draws.part(part * _PART, (part + 1) * _PART).rearranged(k), _wanted(how.way))
            again = _pushed(name, other, draws.world, factor)[1]
            if np.any(np.abs(again - pushed) > _ALIKE * np.abs(pushed).max(axis=(1, 2, 3), keepdims=True)):
                groups = f"{_possible(draws.world, how.way) ** k:,} groups of {k} traces in every order"
                raise UnmeasuredError(
                    f"its numbers depend on the order of traces, and world {world!r} has {groups}; expected at most "
                    f"{MOST_BATCHES:,}: choose a smaller group_size"
                )
        row, weight, *rest = rows
        parts.append(_Enumerated(draws.world.through_scores(pushed[0]), chance[row] * weight, *rest))
    return _Enumerated(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _pushed(name: str, batch: Batches, world: Micro, factor: float) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Row, weight, state, choice, advantage and reason of all decisions; weighted sums of A, A² and 1, [3, D, S, C]."""
    advantage, reason = _run(name, batch)
    row, event = np.nonzero((batch.state >= 0) & (batch.weight > 0))
    weight, state, choice, reason = (x[row, event] for x in (batch.weight, batch.state, batch.choice, reason))
    advantage = advantage[row, event] * factor
    pushed = np.zeros((3, len(batch.state), *world.policy.shape))
    for of, x in zip(pushed, (advantage, advantage**2, reason == Reason.VALID), strict=True):
        np.add.at(of, (row, state, choice), weight * x)
    return (row, weight, state, choice, advantage, reason), pushed


def _scores(draws: Draws, enumerated: _Enumerated) -> tuple[float, ...]:
    if not np.any(enumerated.reason == Reason.VALID):  # a gradient of 0 is no estimate
        return (*[math.nan] * (len(dataclasses.fields(Row)) - 4), 0.0)
    world, true = draws.world, draws.world.gradient()
    mean = np.tensordot(draws.chance, enumerated.estimate, axes=1)
    length = float(np.linalg.norm(true))
    spread = draws.chance @ np.sum((enumerated.estimate - mean) ** 2, axis=(1, 2))

    answered = enumerated.reason == Reason.VALID
    p, s, c, a = (
        enumerated.mass[answered],
        enumerated.state[answered],
        enumerated.choice[answered],
        enumerated.advantage[answered],
    )
    weight, total = np.zeros(world.policy.shape), np.zeros(world.policy.shape)
    np.add.at(weight, (s, c), p)
    np.add.at(total, (s, c), p * a)
    centre = _ratio(total.sum(1), weight.sum(1))
    centred, increment = a - centre[s], world.increments[s, c]
    known = weight > 0
    means = _ratio(total, weight) - centre[:, None]
    of_means, of_truth = (root_mean_square(x, p) for x in (means[s, c], increment))
    size = max(root_mean_square(centred, p), float(np.abs(world.total).max()))
    product = signs(centred, size, np.float64) * signs(increment, size, np.float64)
    ties = [max(_TIE * of_scale, residue(size, np.float64)) for of_scale in (of_means, of_truth)]
    return (
        float(np.linalg.norm(mean - true)) / length,
        _one_ratio(float(np.sum(mean * true)), float(np.linalg.norm(mean)) * length),
        float(spread) * draws.runs / length**2,
        _one_ratio(float(spread) * draws.runs, float(np.sum(mean**2))),
        _one_ratio(float(p @ (centred - increment) ** 2), float(p @ increment**2)),
        _tau(means[known], world.increments[known], ties),
        _one_ratio(float(p @ (product > 0)), float(p @ (product != 0))),
        float(p.sum() / enumerated.mass.sum()),
    )


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.divide(a, b, out=np.zeros_like(a), where=b > 0)
    return result


def _one_ratio(a: float, b: float) -> float:
    return a / b if b > 1e-18 else math.nan


def _tau(x: np.ndarray, y: np.ndarray, ties: Sequence[float]) -> float:
    """Kendall's τ-b, where smaller differences are ties; NaN where one side is all ties."""
    upper = np.triu_indices(len(x), 1)
    apart = ((v[:, None] - v)[upper] for v in (x, y))
    a, b = (np.where(np.abs(v) > tie, np.sign(v), 0) for v, tie in zip(apart, ties, strict=True))
    return _one_ratio(float(np.sum(a * b)), math.sqrt(np.sum(a**2) * np.sum(b**2)))
