"""Tasks of any length and any share of luck, with exact returns: the worlds of `credit bench train --lengths`.

D decisions of two choices each. With s_d = ±1 for the choice at d, the expected reward is, in units of the standard
deviation of the reward under uniform choices,

    add         Σ_d w_d s_d
    interact    Σ_d w_d s_d + Σ_k v_k s_{o_k} s_{o_{k+1}}                along a random order o of the decisions
    threshold   success where enough choices are good, about 3 % of uniform traces; luck turns an outcome over
    shared      four kinds of task, Σ_d (w_d + δ_kd / 2) s_d

with w, v and δ standard normal before scaling. Luck is normal, but for `threshold`. The best return is exact: by signs,
by dynamic programming along the order, or all choices good.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from graphs.errors import CreditError

__all__ = ["LongTask", "Outcome", "draw_long_task", "expected_return", "outcomes"]

Outcome = Literal["add", "interact", "threshold", "shared"]

RARE = 0.03
"""The share of uniform traces that succeed in `threshold`, as near as whole numbers of choices come."""

KINDS = 4
"""Of tasks, in `shared`."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["weights", "pairs", "order", "needed", "noise", "turned", "first", "best"],
    meta_fields=["counts"],
)
@dataclasses.dataclass(frozen=True, eq=False)
class LongTask:
    """A task: a JAX tree, so that tasks of one shape share a compiled function.

    Attributes:
      weights: float [K, D], w of each kind; in `threshold` its sign says which choice is good.
      pairs: float [D], v, 0 where choices add.
      order: int [D].
      needed: float, good choices that success takes; 0 otherwise.
      noise: float, the standard deviation of luck.
      turned: float, the chance that luck turns an outcome over.
      first, best: float, expected return of uniform choices and of the best.
      counts: whether good choices are counted, as in `threshold`.
    """

    weights: np.ndarray
    pairs: np.ndarray
    order: np.ndarray
    needed: np.ndarray
    noise: np.ndarray
    turned: np.ndarray
    first: np.ndarray
    best: np.ndarray
    counts: bool = False


def draw_long_task(outcome: Outcome, decisions: int, luck: float, seed: int) -> LongTask:
    """A random task.

    Args:
      outcome: how choices make the reward.
      decisions: D, 2 or more.
      luck: the share of the variance of the reward under uniform choices that no choice explains, from 0 to below 1.
      seed: of the task.

    Raises:
      CreditError: an argument is out of range.

    Examples:
      >>> task = draw_long_task("add", 10, 0.3, 0)
      >>> task.weights.shape, round(float((task.weights**2).sum() + task.noise**2), 6)
      ((1, 10), 1.0)
    """
    if outcome not in get_args(Outcome):
        raise CreditError(f"outcome is {outcome!r}; expected one of {', '.join(get_args(Outcome))}")
    if decisions < 2 or not 0 <= luck < 1:
        raise CreditError(f"decisions is {decisions} and luck {luck}; expected 2 or more, and 0 to below 1")
    rng = np.random.default_rng([seed, decisions, round(100 * luck), get_args(Outcome).index(outcome)])
    order, pairs = rng.permutation(decisions).astype(np.int32), np.zeros(decisions)
    if outcome == "threshold":
        return _threshold(rng.choice([-1.0, 1.0], size=(1, decisions)), order, luck)
    weights = rng.normal(size=(1, decisions))
    if outcome == "shared":
        weights = weights + 0.5 * rng.normal(size=(KINDS, decisions))
    if outcome == "interact":
        pairs[:-1] = rng.normal(size=decisions - 1)
    scale = np.sqrt((1 - luck) / ((weights**2).sum(axis=1).mean() + (pairs**2).sum()))
    weights, pairs = scale * weights, scale * pairs
    best = np.mean([_largest(w[order], pairs) for w in weights])
    zero = np.zeros(())
    return LongTask(weights, pairs, order, zero, np.array(math.sqrt(luck)), zero, zero, np.array(best))


def _largest(weights: np.ndarray, pairs: np.ndarray) -> float:
    """The maximum of Σ w_k s_k + Σ v_k s_k s_{k+1} over signs: the best sums that end in each sign, one by one."""
    minus, plus = -weights[0], weights[0]
    for weight, pair in zip(weights[1:], pairs, strict=False):
        minus, plus = max(minus + pair, plus - pair) - weight, max(minus - pair, plus + pair) + weight
    return float(max(minus, plus))


def _threshold(weights: np.ndarray, order: np.ndarray, luck: float) -> LongTask:
    """With q the chance of success and φ that of luck, the share of luck is 1 − q(1−q)(1−2φ)²/(m(1−m)), m = q+φ−2qφ."""
    decisions = weights.shape[1]
    chance = np.array([math.comb(decisions, k) / 2**decisions for k in range(decisions + 1)])
    tail = chance[::-1].cumsum()[::-1]
    needed = int(np.argmin(np.abs(tail - RARE)))
    q, low, high = tail[needed], 0.0, 0.5
    for _ in range(60):  # bisection: the share of luck grows with φ
        turned = (low + high) / 2
        mean = q + turned - 2 * q * turned
        share = 1 - q * (1 - q) * (1 - 2 * turned) ** 2 / (mean * (1 - mean))
        low, high = (turned, high) if share < luck else (low, turned)
    zero, none = np.zeros(()), np.zeros(decisions)
    first = np.array(q + low - 2 * q * low)
    return LongTask(weights, none, order, np.array(float(needed)), zero, np.array(low), first, np.array(1 - low), True)


def outcomes(task: LongTask, kind: jax.Array, choice: jax.Array, luck: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Rewards of traces, float [...].

    Args:
      task: as drawn.
      kind: int [...].
      choice: int [..., D], 0 or 1.
      luck: a uniform and a normal number of each trace.
    """
    uniform, normal = luck
    sign = 2 * choice.astype(uniform.dtype) - 1
    if task.counts:
        good = jnp.sum(sign * jnp.asarray(task.weights)[kind] > 0, axis=-1, dtype=uniform.dtype)
        success = good >= task.needed
        return (success ^ (uniform < task.turned)).astype(jnp.float32)
    along = sign[..., task.order]
    added = jnp.sum(sign * jnp.asarray(task.weights)[kind], axis=-1)
    return added + (along[..., :-1] * along[..., 1:]) @ jnp.asarray(task.pairs)[:-1] + task.noise * normal


def expected_return(task: LongTask, chance: jax.Array) -> jax.Array:
    """J, exactly: the mean over kinds of the expected reward; differentiable.

    Args:
      task: as drawn.
      chance: float [K, D], of choice 1.

    Examples:
      >>> import jax.numpy as jnp
      >>> task = draw_long_task("threshold", 10, 0.0, 0)
      >>> print(round(float(expected_return(task, jnp.full((1, 10), 0.5))), 4), round(float(task.first), 4))
      0.0107 0.0107
    """
    if not task.counts:
        mean = 2 * chance - 1
        along = mean[:, task.order]
        added = jnp.sum(mean * task.weights, axis=1) + (along[:, :-1] * along[:, 1:]) @ jnp.asarray(task.pairs)[:-1]
        return added.mean()
    # The number of good choices, one choice after another: a Poisson binomial distribution.
    good = jnp.where(task.weights[0] > 0, chance[0], 1 - chance[0])
    number = jnp.arange(len(good) + 1, dtype=chance.dtype)

    def one_more(chances: jax.Array, p: jax.Array) -> tuple[jax.Array, None]:
        return chances * (1 - p) + p * jnp.concatenate([jnp.zeros(1), chances[:-1]]), None

    chances, _ = jax.lax.scan(one_more, (number == 0).astype(chance.dtype), good)
    success = jnp.sum(jnp.where(number >= task.needed, chances, 0))
    return success + task.turned - 2 * success * task.turned
