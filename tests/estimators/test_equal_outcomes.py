"""Equal outcomes give exactly 0, however many replays, leaves, workers or turns stand behind each of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import credit
from credit.laws import LAWS
from estimators.counterfactual.replays import subtree_values

COUNTS = (3, 7, 1, 11)
"""How often each of four alternatives was replayed: sums of 1/3 and 1/7 are no whole numbers in floats."""

AWKWARD = (0.1, 100.1, 10000.1)


def replayed(outcome: float) -> tuple[Any, Any, dict[str, Any], Any]:
    """Four alternatives in one context, replayed unequally often, all with one outcome."""
    node = np.repeat(["x", "y", "z", "w"], COUNTS)
    n = len(node)
    graph, reward, rows = credit.from_columns(
        group=[0] * n, trace=range(n), reward=[outcome] * n, evidence={"context": ["c"] * n, "node": node}
    )
    return graph, reward, {name: rows.evidence[name] for name in ("context", "node")}, rows


@pytest.mark.parametrize("outcome", AWKWARD)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"baseline": "mean"},
        {"normalise": True},
        {"variant": "value_only", "normalise": True},
        {"variant": "value_assisted", "normalise": True},
    ],
    ids=str,
)
def test_c3_compares_equal_values_whatever_the_replays(options: dict[str, Any], outcome: float) -> None:
    graph, reward, tree, rows = replayed(outcome)
    if "variant" in options:
        options = {**options, "q_value": np.full(graph.num_events, 0.3, np.float32)}
    result = credit.c3(graph, reward, **tree, **options)
    assert rows.gather(result.valid).all()
    assert not rows.gather(result.advantage).any()
    stderr = rows.gather(result.stderr)
    assert not stderr[np.isfinite(stderr)].any()


@pytest.mark.parametrize("outcome", AWKWARD)
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out", "max"])
def test_magrpo_compares_equal_returns_whatever_the_replays(baseline: Any, outcome: float) -> None:
    graph, reward, tree, rows = replayed(outcome)
    result = credit.magrpo(graph, reward, **tree, baseline=baseline)
    assert rows.gather(result.valid).all() and not rows.gather(result.advantage).any()
    np.testing.assert_allclose(rows.gather(result.credit), outcome, rtol=1e-6)


def test_magrpo_without_a_baseline_keeps_the_return_itself() -> None:
    graph, reward, tree, rows = replayed(0.1)
    for baseline in ("none", "raw"):
        assert (rows.gather(credit.magrpo(graph, reward, **tree, baseline=baseline).advantage) == np.float32(0.1)).all()


def test_magrpo_compares_completions_of_equal_returns() -> None:
    one, two = (np.repeat(list(names), 3) for names in ("abc", "pqr"))
    two = two.reshape(3, 3).T.ravel()
    node = np.repeat([a + b for a, b in zip(one, two, strict=True)], [1, 3, 7] * 3)
    first, second = np.repeat(one, [1, 3, 7] * 3), np.repeat(two, [1, 3, 7] * 3)
    n = len(node)
    graph, reward, rows = credit.from_columns(
        group=[0] * (2 * n),
        trace=np.repeat(np.arange(n), 2),
        agent=["one", "two"] * n,
        reward=[10000.1] * (2 * n),
        evidence={
            "context": ["c"] * (2 * n),
            "node": np.repeat(node, 2),
            "completion": np.stack([first, second], 1).ravel(),
        },
    )
    tree = {name: rows.evidence[name] for name in ("context", "node", "completion")}
    result = credit.magrpo(graph, reward, **tree, joint_mode="cross")
    assert rows.gather(result.valid).all() and not rows.gather(result.advantage).any()
    np.testing.assert_allclose(rows.gather(result.credit), 3 * 10000.1, rtol=1e-6)  # each stands in three joint turns


@pytest.mark.parametrize("outcome", AWKWARD)
def test_c3_magrpo_compares_equal_leaves_whatever_their_number(outcome: float) -> None:
    trace = np.repeat(range(4), COUNTS)
    graph, reward, rows = credit.from_columns(group=[0] * len(trace), trace=trace, reward=[outcome] * len(trace))
    result = credit.c3_magrpo(graph, reward, leaf=np.ones(graph.num_events, bool))
    assert rows.gather(result.valid).all() and not rows.gather(result.advantage).any()


def test_the_value_of_equal_leaves_is_theirs() -> None:
    graph, reward, tree, rows = replayed(10000.1)
    assert (rows.gather(subtree_values(graph, reward, **tree)) == np.float32(10000.1)).all()


@pytest.mark.parametrize("value", [0.0, 0.3])
@pytest.mark.parametrize("outcome", AWKWARD)
def test_maac_brings_equal_advantages_to_0(outcome: float, value: float) -> None:
    graph, reward, rows = credit.from_columns(
        group=[0] * 7, trace=range(7), reward=[outcome] * 7, evidence={"value": [value] * 7}
    )
    result = credit.maac(graph, reward, value=rows.evidence["value"], normalise=True)
    assert not rows.gather(result.advantage).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "needs", "scope"),
    [
        (functools.partial(credit.maac, normalise=True), ("value",), "batch"),
        (functools.partial(credit.c3, normalise=True), ("context", "node"), "group"),
    ],
    ids=["maac", "c3"],
)
def test_normalising_options_obey_the_laws_of_spreads(method: Any, needs: tuple[str, ...], scope: Any) -> None:
    kept = ("finite", "equal_rewards", "bounded", "tight_scope")
    credit.check(method, needs=needs, scope=scope, skip=[law for law in LAWS if law not in kept])
