"""Which estimator for how many units, evaluations and how much noise: one documented rule and its guarantees."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import jax
import numpy as np

from estimators.shapley.plan import Plan, bound_constant, endpoint_rows, plan_exact, plan_pairs, plan_walks
from graphs.errors import CreditError
from graphs.event_graph import Array

__all__ = ["Choice", "attainable_stderr", "choose", "least_evaluations", "make_plan"]

MOST_PAIRS = 400  # for which interactions are fitted: the time grows as the cube of the pairs


@dataclasses.dataclass(frozen=True)
class Choice:
    """The choice of `choose`, and the reason.

    Attributes:
      method: "exact", "walks" or "pairs".
      degrees: for `solve`: which slopes in the size of the team "pairs" may use.
      chains: whether "pairs" gets the chains of the spawn forest as regressors (`above` of `solve`).
      interactions: whether `solve` fits interactions (`interactions` of `solve`); `degrees` is what it uses without.
      expected_stderr: what noise alone leaves of a share's standard error, √C_n σ / √m; 0 without noise. No estimator
        that is right for every game goes below it.
      reason: in words.
    """

    method: Literal["exact", "walks", "pairs"]
    degrees: tuple[int, ...]
    chains: bool
    interactions: bool
    expected_stderr: float
    reason: str


def attainable_stderr(n: int, evaluations: int, noise: float) -> float:
    """√(C_n / m) σ: the root mean square standard error that no linear unbiased estimator of n shares goes below.

    Args:
      n: units of the game.
      evaluations: m, how many there are.
      noise: σ, of one of them.

    Examples:
      >>> round(attainable_stderr(8, 71, noise=0.5), 3)  # as large as the mean share of a team worth 1
      0.125
    """
    return noise * (bound_constant(n) / evaluations) ** 0.5 if n > 1 else 0.0


def least_evaluations(n: int, noise: float, target: float) -> int:
    """C_n σ² / target²: how many evaluations any linear unbiased estimator needs for a standard error of `target`.

    Known before the first evaluation: where it exceeds what can be afforded, group units, use structure, or give no
    number.

    Args:
      n: units of the game.
      noise: σ, of one evaluation.
      target: the standard error.

    Examples:
      >>> least_evaluations(8, noise=0.5, target=1 / 8)
      71
    """
    return math.ceil(bound_constant(n) * (noise / target) ** 2) if n > 1 else 0


def choose(n: int, budget: int, *, noise: float = 0.0, forest: bool = False) -> Choice:
    """Choose an estimator.

    1. All 2^n coalitions fit the budget, n ≤ 16 and values do not repeat differently: enumerate. Exact.
    2. Fewer than 6n evaluations and no noise: walks, on antithetic Sobol orders. The regression has not enough pairs;
       walks are exact for terms of one and two units from 2n evaluations on.
    3. Else: regression on pairs. With a spawn forest its chains are regressors too. Slopes in the size of the team
       (degrees 1, 2) are offered where there are pairs enough for them; the estimated error decides between them.
    4. In case 3, without noise or a forest and with at most 400 pairs, interactions of three and of five units are
       fitted too, each shrunk as far as the evaluations say. More pairs cost too much time: M³ for M pairs.

    With noise the regression is taken at any budget: walks pay 2nσ²/m where it pays C_n σ²/m. With few pairs it has no
    standard error, and `reason` says how many evaluations it takes. Walks would state one there, but none is of use:
    an equal part of v(N) − v(∅) for each unit errs less than half as much, at success or failure.

    Args:
      n: number of units.
      budget: number of evaluations.
      noise: standard deviation between evaluations of one coalition (√(p(1 − p)) for success or failure; at most 0.5);
        0 if a coalition always gives the same value.
      forest: whether the units form a spawn forest in which nothing works without its ancestors.

    Raises:
      CreditError: fewer than two units, a budget with which nothing can be estimated (2n), or no such noise.

    Examples:
      >>> choose(4, 16).method, choose(20, 60).method, choose(20, 400, noise=0.5).method
      ('exact', 'walks', 'pairs')
    """
    if n < 2 or budget < 2 * n:
        raise CreditError(f"budget is {budget} for {n} units; expected n >= 2 and a budget of at least 2n = {2 * n}")
    if not 0 <= noise < math.inf:
        raise CreditError(f"noise is {noise}; expected a finite number that is not negative")
    floor = attainable_stderr(n, budget, noise)
    if noise == 0 and n <= 16 and 2**n <= budget:
        return Choice("exact", (), False, False, 0.0, f"all {2**n} coalitions fit the budget")
    per_unit = budget / n
    if noise == 0 and per_unit < 6:
        orders = (budget - 2) // (2 * (n - 1))
        words = f"{per_unit:.1f} evaluations a unit are too few for a regression; "
        words += (
            "one pair of orders tells no error"
            if orders == 1
            else (f"with {orders} pairs of orders errors assume that one more can differ by the largest marginal seen")
        )
        return Choice("walks", (), False, False, 0.0, words)
    chains = forest and per_unit >= 6
    if noise > 0:
        degrees: tuple[int, ...] = (0, 1) if per_unit >= 30 else (0,)
    elif chains:
        degrees = (0, 1) if per_unit >= 20 else (0,)
    else:
        degrees = (0, 1, 2) if per_unit >= 8 else (0, 1)
    interactions = noise == 0 and not chains and budget <= 2 * MOST_PAIRS + 2
    words = "values are noisy" if noise > 0 else "values are exact"
    words += f", {per_unit:.0f} evaluations a unit: regression on pairs"
    words += ", with interactions shrunk by empirical Bayes" if interactions else f", degrees {degrees}"
    words += ", with the chains of the spawn forest" if chains else ""
    least = _least_for_errors(n, budget) if noise > 0 else budget
    if least > budget:
        words += f"; too few pairs tell no standard error, {least} evaluations do"
    elif noise > 0:
        words += f"; noise leaves a standard error of at least {floor:.2g} a share"
    return Choice("pairs", degrees, chains, interactions, floor, words)


def _least_for_errors(n: int, budget: int) -> int:
    """The least budget, from this one on, whose noisy pairs of coalitions tell a standard error."""
    # The pairs that `estimators.shapley.pairs` asks for without slopes in the size: 1.5 a regressor, at most all.
    few = min(1.5 * (n + 2), max(2, 2 ** (n - 1) - 1))
    while budget // 2 - endpoint_rows(n, budget) < few:
        budget += 1
    return budget


def make_plan(
    key: jax.Array,
    n: int,
    budget: int,
    *,
    noise: float = 0.0,
    parent: Array | None = None,
    endpoints: int | None = None,
) -> tuple[Plan, Choice]:
    """The plan of what `choose` chooses, and the choice. For several traces give each `jax.random.fold_in(key, trace)`.

    Args:
      key: a typed JAX key.
      n: number of units.
      budget: number of evaluations.
      noise: standard deviation between evaluations of one coalition; 0 if it always gives the same value.
      parent: int [n], the spawn forest of the units, a root its own parent; None without one.
      endpoints: evaluations of each of v(∅) and v(N) in a noisy plan; 0 where `solve` gets both.

    Raises:
      CreditError: fewer than two units, a budget below 2n, or `parent` has not n entries.

    Examples:
      >>> import jax
      >>> plan, choice = make_plan(jax.random.key(0), n=3, budget=8)
      >>> plan.evaluations, choice.reason
      (8, 'all 8 coalitions fit the budget')
    """
    if parent is not None and np.shape(parent) != (n,):
        raise CreditError(f"parent has shape {np.shape(parent)}; expected ({n},)")
    choice = choose(n, budget, noise=noise, forest=parent is not None)
    if choice.method == "exact":
        return plan_exact(n), choice
    if choice.method == "walks":
        return plan_walks(key, n, budget), choice
    return plan_pairs(key, n, budget, noisy=noise > 0, endpoints=endpoints), choice
