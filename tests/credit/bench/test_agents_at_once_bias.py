"""Agents at once under true values: which methods have no bias, over all outcomes of a round."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import credit

CHOICES = np.array(list(itertools.product((0, 1), repeat=3)))  # of a lead, then of two agents at once
OUTCOME = CHOICES[:, 0] * 0.2 + CHOICES[:, 1] * 0.5 + CHOICES[:, 2] * 0.3 + CHOICES[:, 1] * CHOICES[:, 2] * 0.4
CHANCE = np.array([0.3, 0.6, 0.5])  # of choosing 1


def expected(known: int) -> np.ndarray:
    """The mean outcome of each trace given its first choices."""
    weight = np.prod(np.where(CHOICES == 1, CHANCE, 1 - CHANCE), axis=1)
    alike = (CHOICES[:, None, :known] == CHOICES[None, :, :known]).all(axis=2) * weight
    return np.asarray(alike @ OUTCOME / alike.sum(axis=1))


@pytest.mark.parametrize(
    ("method", "options", "after", "factors"),
    [
        ("gae", {"lambda_": 1.0}, False, [1, 1, 1]),
        ("gae", {"lambda_": 0.5}, False, [1, 0.5, 1]),  # of each state's gain: the row before the last gets lambda
        ("gae", {"lambda_": 0.0}, False, [1, 0, 1]),
        ("gae", {"lambda_": 0.0, "along": "agent"}, False, [1, 1, 1]),
        ("critic", {}, False, [1, 0, 0]),  # refused
        ("critic", {}, True, [1, 1, 1]),  # as a fitted critic, with a value between the two
    ],
)
def test_what_true_values_leave_of_the_gradient_of_agents_at_once(
    method: str, options: dict[str, Any], after: bool, factors: list[float]
) -> None:
    """`gae` was called unbiased with true values, and a critic that answered all actions was said to refuse some."""
    states = np.stack([expected(0), expected(1), expected(2 if after else 1)], axis=1)
    n = len(CHOICES)
    graph, reward, rows = credit.from_columns(
        group=[0] * 3 * n, trace=np.repeat(np.arange(n), 3), agent=["lead", "x", "y"] * n, order=[0, 1, 1] * n,
        reward=np.repeat(OUTCOME, 3), evidence={"value": states.ravel()},
    )  # fmt: skip
    more: dict[str, Any] = {}
    if after:
        behind = np.full(rows.events, np.nan, np.float32)
        behind[rows.event] = np.stack([*states[:, 1:].T, OUTCOME], axis=1).ravel()
        more = {"value_after": behind}
    with warnings.catch_warnings(action="ignore"):
        result = credit.METHODS[method](graph, reward, value=rows.evidence["value"], **more, **options)
        got = rows.gather(result).reshape(n, 3)
    weight = np.prod(np.where(CHOICES == 1, CHANCE, 1 - CHANCE), axis=1)[:, None]
    score = np.where(CHOICES == 1, 1 - CHANCE, -CHANCE)  # of the logit of choosing 1
    true = (weight * score * OUTCOME[:, None]).sum(axis=0)
    np.testing.assert_allclose((weight * score * got).sum(axis=0), np.array(factors) * true, atol=1e-6)
