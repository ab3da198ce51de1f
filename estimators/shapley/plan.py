"""Plans: which coalitions of units to evaluate. *plan → the user evaluates → solve*; nothing here calls the user.

A plan lists coalitions, `bool [C, N]`. The user evaluates each row, by re-running the team with only these units, by
masking the others, or from what a log holds, and hands `values [C]` to `solve`. Legend: N units, C coalitions, M
samples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import jax
import numpy as np

from estimators.shapley.sampling import generator, paired_coalitions, random_orders, sobol_orders
from graphs.errors import CreditError
from graphs.event_graph import Array

__all__ = [
    "Plan",
    "bound_constant",
    "merge",
    "pad_plan",
    "plan_exact",
    "plan_pairs",
    "plan_walks",
    "stack_plans",
    "walks_from_orders",
]

SIZE_TERMS = 16
Method = Literal["exact", "walks", "pairs"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Plan:
    """Coalitions to evaluate, and how their values make up samples.

    Attributes:
      coalitions: bool [C, N]; row c is evaluated once. Repeated rows are meant: they average noise.
      row_mask: bool [C], True for rows that are not padding.
      unit_mask: bool [N], True for real units; the first n.
      samples: int32 [M, K] positions of rows. "pairs": a coalition and its complement (K = 2). "walks": the N + 1
        prefixes of an order (K = N + 1). "exact": none.
      sample_mask: bool [M].
      ranks: int32 [M, N], "walks": the place of each unit in the order. Else [M, 0].
      size_terms: int32 [], "pairs": how many regressors depend on the size alone, at most 16.
      method: what `solve` does with it.
      distinct: no pair occurs twice; then sampling errs less than with replacement, and a full enumeration not at all.
      noisy: evaluating one coalition twice gives two values.
      antithetic: "walks": an order and its reverse stand one after the other and are one sample.
    """

    coalitions: Array
    row_mask: Array
    unit_mask: Array
    samples: Array
    sample_mask: Array
    ranks: Array
    size_terms: Array
    method: Method = dataclasses.field(metadata={"static": True})
    distinct: bool = dataclasses.field(metadata={"static": True})
    antithetic: bool = dataclasses.field(metadata={"static": True})
    noisy: bool = dataclasses.field(metadata={"static": True})

    @property
    def evaluations(self) -> int:
        """How many rows to evaluate."""
        return int(np.asarray(self.row_mask).sum())


def plan_exact(n: int) -> Plan:
    """All 2^n coalitions of n ≤ 16 units; row c holds the units of the set bits of c.

    Raises:
      CreditError: n is not in 1 to 16.

    Examples:
      >>> plan_exact(2).coalitions.tolist()
      [[False, False], [True, False], [False, True], [True, True]]
    """
    if not 1 <= n <= 16:
        raise CreditError(f"n is {n}; expected 1 to 16 units, more than 65,536 coalitions are not enumerated")
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return _plan(bits.astype(bool), np.zeros((0, 0), np.int32), method="exact")


def plan_walks(
    key: jax.Array, n: int, budget: int, *, points: Literal["sobol", "random"] = "sobol", antithetic: bool = True
) -> Plan:
    """Orders in which units join one by one, at most `budget` evaluations: W(n − 1) + 2 for W orders.

    With `antithetic` orders come with their reverses: terms of two units then cancel exactly, so a game with only
    such terms is solved by one order and its reverse, 2n evaluations. For values without noise: the endpoints are
    evaluated once and their noise would be no part of the standard error.

    Args:
      key: of the draws.
      n: units of the game.
      budget: the most evaluations.
      points: Sobol's points, or random ones.
      antithetic: whether each order comes with its reverse.

    Raises:
      CreditError: `budget` does not reach for one sample.

    Examples:
      >>> import jax
      >>> plan = plan_walks(jax.random.key(0), n=5, budget=20)
      >>> plan.evaluations, plan.ranks.shape
      (18, (4, 5))
    """
    step = 2 if antithetic else 1
    number = max(0, (budget - 2) // max(n - 1, 1)) // step
    if n < 2 or number < 1:
        raise CreditError(
            f"budget is {budget} for {n} units; expected n >= 2 and at least {step * (n - 1) + 2} evaluations"
        )
    rng = generator(key)
    orders = sobol_orders(rng, n, number) if points == "sobol" else random_orders(rng, n, number)
    if antithetic:
        orders = np.stack([orders, orders[:, ::-1]], axis=1).reshape(-1, n)
    return walks_from_orders(orders, antithetic=antithetic)


def walks_from_orders(orders: np.ndarray, *, antithetic: bool = False) -> Plan:
    """The plan of given orders, int [W, n]: the two endpoints once, then the inner prefixes of each order.

    Args:
      orders: of the units.
      antithetic: whether each order comes with its reverse, one behind the other.

    Examples:
      >>> import numpy as np
      >>> walks_from_orders(np.array([[1, 0]])).coalitions.tolist()
      [[False, False], [True, True], [False, True]]
    """
    number, n = orders.shape
    ranks = np.empty_like(orders, dtype=np.int32)
    np.put_along_axis(ranks, orders, np.broadcast_to(np.arange(n, dtype=np.int32), orders.shape), axis=1)
    inner = ranks[:, None, :] < np.arange(1, n, dtype=np.int32)[None, :, None]
    coalitions = np.concatenate([np.zeros((1, n), bool), np.ones((1, n), bool), inner.reshape(-1, n)])
    rows = 2 + np.arange(number * (n - 1), dtype=np.int32).reshape(number, n - 1)
    ends = np.zeros((number, 1), np.int32)
    return _plan(coalitions, np.concatenate([ends, rows, ends + 1], 1), ranks, method="walks", antithetic=antithetic)


def plan_pairs(key: jax.Array, n: int, budget: int, *, noisy: bool = True, endpoints: int | None = None) -> Plan:
    """Coalitions with their complements, sizes by q(s) ∝ 1/√(s(n − s)), and replicated endpoints: ≤ `budget` rows.

    Without noise no pair is taken twice and endpoints are evaluated once. With noise v(∅) and v(N) are evaluated
    r = m / (2 + n √C_n) times each, which minimises their part 2σ²/(r n²) of the error and C_n σ²/(m − 2r), the rest;
    one noisy endpoint taken as exact would leave an error floor of 2σ²/n² that no budget removes.

    Args:
      key: a typed JAX key.
      n: number of units, at least 2.
      budget: evaluations, endpoints included.
      noisy: whether evaluating one coalition twice gives two values.
      endpoints: how often each endpoint is evaluated; 0 where both are known and passed to `solve`.

    Raises:
      CreditError: fewer than two units, or no room for n − 1 pairs.

    Examples:
      >>> import jax
      >>> plan = plan_pairs(jax.random.key(0), n=5, budget=40)
      >>> first, second = plan.samples[0]
      >>> bool((plan.coalitions[first] == ~plan.coalitions[second]).all())
      True
    """
    if endpoints is None:
        endpoints = endpoint_rows(n, budget) if noisy else 1
    number = (budget - 2 * endpoints) // 2
    if n < 2 or number < min(n - 1, 2 ** (n - 1) - 1):
        raise CreditError(
            f"budget is {budget} for {n} units; expected n >= 2 and at least {2 * (n - 1 + endpoints)} evaluations"
        )
    drawn = paired_coalitions(generator(key), n, number, distinct=not noisy)
    ends = np.repeat(np.array([[False], [True]]), endpoints, axis=0)
    coalitions = np.concatenate(
        [np.broadcast_to(ends, (2 * endpoints, n)), np.stack([drawn, ~drawn], 1).reshape(-1, n)]
    )
    samples = 2 * endpoints + np.arange(2 * len(drawn), dtype=np.int32).reshape(-1, 2)
    terms = min(SIZE_TERMS, n // 2, max(2, len(drawn) // 40))
    return _plan(coalitions, samples, method="pairs", distinct=not noisy, noisy=noisy, size_terms=terms)


def endpoint_rows(n: int, budget: int) -> int:
    """How often `plan_pairs` evaluates each endpoint of noisy values: m / (2 + n √C_n), rounded.

    Examples:
      >>> endpoint_rows(2, 40), endpoint_rows(8, 100)
      (10, 5)
    """
    return max(1, round(float(budget / (2 + n * bound_constant(n) ** 0.5))))


def bound_constant(n: int) -> float:
    """C_n = (Σ_s 1/√(s(n − s)))², which tends to π² (C_16 = 5.80, C_300 = 8.84).

    No estimator that is linear in m evaluations with noise variance σ² and unbiased for every game has a mean variance
    below C_n σ²/m: Σ_i c_i(S)² = (1/s + 1/(n − s)) / C(n, s)² for the Shapley coefficients c_i, and Cauchy–Schwarz over
    how often each size is evaluated.

    Examples:
      >>> round(bound_constant(16), 2), round(bound_constant(300), 2)
      (5.8, 8.84)
    """
    s = np.arange(1, n)
    return float((1 / np.sqrt(s * (n - s))).sum() ** 2)


def merge(first: Plan, second: Plan) -> Plan:
    """Both plans as one; its values are those of the first, then those of the second: how a plan is extended.

    Raises:
      CreditError: different methods or numbers of units, or two enumerations.

    Examples:
      >>> import jax
      >>> first, second = (plan_pairs(jax.random.key(i), n=5, budget=40) for i in range(2))
      >>> merge(first, second).evaluations == first.evaluations + second.evaluations
      True
    """
    if first.method != second.method or first.coalitions.shape[1] != second.coalitions.shape[1]:
        raise CreditError("plans differ in method or number of units; expected two of one kind")
    if first.method == "exact" or first.antithetic != second.antithetic:
        raise CreditError("an enumeration cannot be extended, nor orders with reverses by orders without")

    def join(name: str) -> np.ndarray:
        return np.concatenate([np.asarray(getattr(first, name)), np.asarray(getattr(second, name))])

    return dataclasses.replace(
        first,
        coalitions=join("coalitions"),
        row_mask=join("row_mask"),
        samples=np.concatenate([np.asarray(first.samples), np.asarray(second.samples) + len(first.coalitions)]),
        sample_mask=join("sample_mask"),
        ranks=join("ranks"),
        distinct=False,  # the second may hold pairs of the first
        noisy=first.noisy or second.noisy,
        size_terms=np.maximum(first.size_terms, second.size_terms),
    )


def pad_plan(plan: Plan, *, rows: int, units: int, samples: int) -> Plan:
    """The plan in larger arrays, so that plans of many traces share one compilation; it draws nothing anew.

    Raises:
      CreditError: an odd number of samples for orders that come with their reverses.

    Examples:
      >>> plan = pad_plan(plan_exact(2), rows=8, units=3, samples=0)
      >>> plan.coalitions.shape, plan.evaluations
      ((8, 3), 4)
    """
    if plan.antithetic and samples % 2:
        raise CreditError(f"samples is {samples}; expected an even number, an order and its reverse are one sample")
    c, n = plan.coalitions.shape
    m = len(plan.sample_mask)
    inner = np.asarray(plan.samples)
    ranks = np.asarray(plan.ranks)
    if plan.method == "walks":
        inner = np.concatenate([inner, np.repeat(inner[:, -1:], units - n, 1)], 1)
        ranks = np.concatenate([ranks, np.broadcast_to(np.arange(n, units, dtype=np.int32), (m, units - n))], 1)
    return dataclasses.replace(
        plan,
        coalitions=np.pad(plan.coalitions, ((0, rows - c), (0, units - n))),
        row_mask=np.pad(plan.row_mask, (0, rows - c)),
        unit_mask=np.pad(plan.unit_mask, (0, units - n)),
        samples=np.pad(inner, ((0, samples - m), (0, 0))),
        sample_mask=np.pad(plan.sample_mask, (0, samples - m)),
        ranks=np.pad(ranks, ((0, samples - m), (0, 0))),
    )


def stack_plans(plans: Sequence[Plan]) -> Plan:
    """Plans of one method, padded to common sizes, with a leading axis [T]: for `estimators.shapley.shapley`.

    Raises:
      CreditError: no plan, or plans that differ in method, `distinct`, `antithetic` or `noisy`.

    Examples:
      >>> stack_plans([plan_exact(2), plan_exact(3)]).coalitions.shape
      (2, 8, 3)
    """
    kinds = {(p.method, p.distinct, p.antithetic, p.noisy) for p in plans}
    if len(kinds) != 1:
        raise CreditError(f"{len(plans)} plans are of {len(kinds)} kinds; expected at least one plan, all of one kind")
    rows, units = (max(p.coalitions.shape[axis] for p in plans) for axis in (0, 1))
    samples = max(len(p.sample_mask) for p in plans)
    padded = [pad_plan(p, rows=rows, units=units, samples=samples) for p in plans]
    stacked: Plan = jax.tree.map(lambda *leaves: np.stack(leaves), *padded)
    return stacked


def _plan(
    coalitions: np.ndarray,
    samples: np.ndarray,
    ranks: np.ndarray | None = None,
    *,
    method: Method,
    distinct: bool = False,
    size_terms: int = 0,
    antithetic: bool = False,
    noisy: bool = False,
) -> Plan:
    return Plan(
        coalitions=coalitions,
        row_mask=np.ones(len(coalitions), bool),
        unit_mask=np.ones(coalitions.shape[1], bool),
        samples=samples,
        sample_mask=np.ones(len(samples), bool),
        ranks=np.zeros((len(samples), 0), np.int32) if ranks is None else ranks,
        method=method,
        distinct=distinct,
        size_terms=np.asarray(size_terms, np.int32),
        antithetic=antithetic,
        noisy=noisy,
    )
