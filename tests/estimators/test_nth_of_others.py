"""Order statistics of the other samples of a key, against plain sorting."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import credit
from estimators.base import REASONS, Reason
from estimators.group import Singleton, settle_alone
from estimators.medians import in_order, nth_of_others
from estimators.members import members


def test_each_place_among_the_others_is_that_of_plain_sorting() -> None:
    outcomes = {"q": [5.0, 3.0, 1.0, 4.0, 4.0], "p": [1.0, 0.0, 2.0]}
    group = [name for name, listed in outcomes.items() for _ in listed]
    reward = [value for listed in outcomes.values() for value in listed]
    graph, rewards, rows = credit.from_columns(group=group, trace=list(range(len(group))), reward=reward)
    m = members(graph, rewards, None, by=None, population="trace", aggregate="sum")
    for place in (0, 1, -1, -2):
        found, others = (rows.gather(np.asarray(array)) for array in nth_of_others(m, place))
        expected = [
            sorted(listed[:i] + listed[i + 1 :])[place] for listed in outcomes.values() for i in range(len(listed))
        ]
        assert found.tolist() == expected and others.tolist() == [4] * 5 + [2] * 3


@pytest.mark.parametrize(
    ("place", "got"), [(0.5, "0.5"), (np.full(3, 0.5), "an array of float64"), (True, "True"), ("median", "'median'")]
)
def test_a_place_that_is_no_integer_is_named(place: Any, got: str) -> None:
    """0.5 for the median ended in a TypeError of JAX."""
    graph, reward, _ = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[9.0, 1.0, 0.0])
    m = members(graph, reward, None, by=None, population="trace", aggregate="sum")
    with pytest.raises(credit.CreditError, match=f"place is {got}; expected an integer.*median_of_others"):
        nth_of_others(m, place)


def test_a_place_may_grow_with_the_number_of_others() -> None:
    """A quartile took twelve lines on private places of sorted samples."""
    group = [0] * 7 + [1] * 4 + [2] * 2 + [3]
    reward = np.random.default_rng(0).normal(size=len(group)).astype(np.float32)
    graph, rewards, rows = credit.from_columns(group=group, trace=list(range(len(group))), reward=reward)
    m = members(graph, rewards, None, by=None, population="trace", aggregate="sum")
    place = 0.25 * (in_order(m, m.score).n - 2).astype(m.score.dtype)
    low, high = (nth_of_others(m, end(place).astype(jnp.int32))[0] for end in (jnp.floor, jnp.ceil))
    found = rows.gather(np.asarray(low + (place - jnp.floor(place))[m.of_event] * (high - low)))
    for i, of in enumerate(group):
        others = [reward[j] for j, other in enumerate(group) if other == of and j != i]
        assert found[i] == pytest.approx(np.quantile(others, 0.25) if others else np.nan, nan_ok=True, rel=1e-5)


@pytest.mark.parametrize("singleton", ["refuse", "zero"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_group_of_several_that_is_too_small_is_not_called_a_group_of_one(place: int, singleton: Singleton) -> None:
    """The second largest of the others in groups of two was refused with "the group has one member"."""
    group = [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    graph, reward, rows = credit.from_columns(group=group, trace=list(range(10)), reward=[float(i) for i in range(10)])
    m = members(graph, reward, None, by=None, population="trace", aggregate="sum")
    value, others = nth_of_others(m, -1 - place)
    for counted in (-1 - place, place):  # was a sample of another key, or another one of the same
        found = rows.gather(np.asarray(nth_of_others(m, counted)[0]))
        assert np.isnan(found).tolist() == [group.count(n) - 1 < 1 + place for n in group]
    x, has_reward = m.score[m.of_event], m.member_mask[m.of_event]
    _, reason = settle_alone(m, has_reward, others < 1, x, value, singleton, few=others < 1 + place)
    alone = Reason.SINGLETON if singleton == "refuse" else Reason.VALID
    expected = [alone if n == 1 else Reason.TOO_FEW if n - 1 < 1 + place else Reason.VALID
                for n in map(group.count, group)]  # fmt: skip
    assert rows.gather(np.asarray(reason)).tolist() == expected
    assert "divisor" not in REASONS[Reason.TOO_FEW]  # said of both
