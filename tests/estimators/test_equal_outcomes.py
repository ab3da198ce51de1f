"""Equal outcomes give exactly 0, however many replays, leaves, workers or turns stand behind each of them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import pytest

import credit
from credit.laws import LAWS
from estimators.baselines.released import marft_normalised, marshal_tokens, verl_gae_tokens
from estimators.composition.explained import explained
from estimators.counterfactual.fidelity import rank_correlation, weighted_leave_one_out
from estimators.counterfactual.replays import subtree_values
from estimators.shapley.event_credit import shapley

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


@pytest.mark.sampled
@pytest.mark.study
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


@pytest.mark.study
@pytest.mark.sampled
@pytest.mark.parametrize("outcome", AWKWARD)
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out", "max"])
def test_magrpo_compares_equal_returns_whatever_the_replays(baseline: Any, outcome: float) -> None:
    graph, reward, tree, rows = replayed(outcome)
    result = credit.magrpo(graph, reward, **tree, baseline=baseline)
    assert rows.gather(result.valid).all() and not rows.gather(result.advantage).any()
    np.testing.assert_allclose(rows.gather(result.credit), outcome, rtol=1e-6)


@pytest.mark.study
def test_magrpo_without_a_baseline_keeps_the_return_itself() -> None:
    graph, reward, tree, rows = replayed(0.1)
    for baseline in ("none", "raw"):
        assert (rows.gather(credit.magrpo(graph, reward, **tree, baseline=baseline).advantage) == np.float32(0.1)).all()


@pytest.mark.study
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


@pytest.mark.slow
@pytest.mark.parametrize("outcome", AWKWARD)
def test_c3_magrpo_compares_equal_leaves_whatever_their_number(outcome: float) -> None:
    trace = np.repeat(range(4), COUNTS)
    graph, reward, rows = credit.from_columns(group=[0] * len(trace), trace=trace, reward=[outcome] * len(trace))
    result = credit.c3_magrpo(graph, reward, leaf=np.ones(graph.num_events, bool))
    assert rows.gather(result.valid).all() and not rows.gather(result.advantage).any()


@pytest.mark.slow
def test_the_value_of_equal_leaves_is_theirs() -> None:
    graph, reward, tree, rows = replayed(10000.1)
    assert (rows.gather(subtree_values(graph, reward, **tree)) == np.float32(10000.1)).all()


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("value", [0.0, 0.3])
@pytest.mark.parametrize("outcome", AWKWARD)
def test_maac_brings_equal_advantages_to_0(outcome: float, value: float) -> None:
    graph, reward, rows = credit.from_columns(
        group=[0] * 7, trace=range(7), reward=[outcome] * 7, evidence={"value": [value] * 7}
    )
    result = credit.maac(graph, reward, value=rows.evidence["value"], normalise=True)
    assert not rows.gather(result.advantage).any()


@pytest.mark.sampled
@pytest.mark.study
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


@pytest.mark.study
@pytest.mark.parametrize("outcome", AWKWARD)
def test_turns_of_replays_that_all_go_on_are_equal(outcome: float) -> None:
    graph, reward, rows = credit.from_columns(group=[0] * 13, trace=range(13), reward=[outcome] * 13)
    cluster = np.arange(graph.num_traces, dtype=np.int32)
    cluster[:11] = 0  # eleven replays of one trace
    result = credit.turn_baseline(dataclasses.replace(graph, cluster_ids=cluster), reward)
    assert rows.gather(result.valid).all() and not rows.gather(result.advantage).any()


@pytest.mark.slow
def test_matpo_compares_equal_formats_whatever_the_workers() -> None:
    workers = (7, 1, 2)
    agent = [name for k in workers for name in ("main", *(f"worker {i}" for i in range(k)))]
    trace = np.repeat(range(3), [1 + k for k in workers])
    parent = [None if name == "main" else "main" for name in agent]
    graph, reward, rows = credit.from_columns(
        group=[0] * len(trace), trace=trace, agent=agent, parent=parent, reward=[1.0] * len(trace)
    )
    form = np.full(graph.num_events, 0.7, np.float32)
    assert not rows.gather(credit.matpo(graph, reward, format_score=form, format_weight=1.0).advantage).any()


@pytest.mark.slow
@pytest.mark.parametrize("outcome", AWKWARD)
def test_released_normalisations_of_equal_numbers_are_0(outcome: float) -> None:
    equal = np.full(7, outcome, np.float32)
    assert not np.asarray(marft_normalised(equal)).any()
    rewards, mask = equal[:, None], np.ones((7, 1), bool)
    assert not np.asarray(verl_gae_tokens(rewards, np.zeros_like(rewards), mask)[0]).any()
    last = np.arange(3) == 2
    rewards = np.where(last, equal[:, None], 0).astype(np.float32)
    of_tokens = marshal_tokens(rewards, np.tile(last, (7, 1)), np.ones((7, 3), bool), np.zeros(7, np.int32))
    assert not np.asarray(of_tokens).any()


@pytest.mark.slow
@pytest.mark.parametrize("outcome", AWKWARD)
def test_fidelity_of_equal_values_is_0(outcome: float) -> None:
    weights = np.arange(1.0, 12.0, dtype=np.float32)
    assert not np.asarray(weighted_leave_one_out(np.full(11, outcome, np.float32), weights)).any()
    many = np.full(20_001, outcome, np.float32)
    assert rank_correlation(many, np.arange(20_001.0, dtype=np.float32)) == 0


@pytest.mark.parametrize("outcome", AWKWARD)
def test_nothing_is_explained_where_outcomes_are_equal(outcome: float) -> None:
    group = np.repeat(range(3), (5, 11, 4))
    graph, _, _ = credit.from_columns(group=group, trace=range(20), reward=[outcome] * 20)
    scored = np.asarray(graph.trace_mask)
    cells = np.zeros((graph.num_events, 1))
    total = np.where(scored, outcome, 0.0)
    found = explained(graph, cells, np.ones_like(cells, bool), total, np.full_like(total, np.nan), scored)
    assert np.isnan(found.share)


@pytest.mark.slow
@pytest.mark.parametrize("outcome", AWKWARD)
def test_the_share_of_an_instance_is_that_of_its_actions(outcome: float) -> None:
    graph, reward, rows = credit.from_columns(group=[0] * 7, trace=[0] * 7, reward=[1.0] * 7)
    share = np.full(graph.num_events, outcome, np.float32)
    assert (rows.gather(shapley(graph, reward, share=share).credit) == np.float32(outcome)).all()


@functools.cache
def unevenly_placed(depth: int) -> tuple[Any, Any, dict[str, Any], Any, np.ndarray]:
    """Thirteen traces of `depth` actions, at places of the batch that other traces of 1 to 8 actions shift."""
    rng = np.random.default_rng(depth)
    trace, group, names = [], [], []
    for t in range(13):
        between = int(rng.integers(1, 9))
        trace += [f"x{t}"] * between + [f"t{t}"] * depth
        group += [1] * between + [0] * depth
        names += [f"other {t} {j}" for j in range(between)] + ["first"] + [f"{t} {j}" for j in range(1, depth)]
    step = [name if name == "first" else name.split()[-1] for name in names]
    node = [f"{name} of {t}" for name, t in zip(names, trace, strict=True)]
    graph, reward, rows = credit.from_columns(
        group=group, trace=trace, reward=[1.0] * len(trace), evidence={"anchor": step, "context": names, "node": node}
    )
    return graph, reward, dict(rows.evidence), rows, np.asarray(group) == 0


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("depth", [2, 33])
@pytest.mark.parametrize("discount", [0.5, 0.9, 0.985])
@pytest.mark.parametrize("outcome", AWKWARD)
def test_equal_returns_as_many_steps_before_the_end_are_equal_wherever_they_stand(
    outcome: float, discount: float, depth: int
) -> None:
    graph, reward, evidence, rows, alike = unevenly_placed(depth)
    reward = np.full_like(reward, outcome)
    for scale in ("none", "std"):
        result = credit.gigpo(graph, reward, anchor=evidence["anchor"], discount=discount, scale=scale)
        assert not rows.gather(result.advantage)[alike].any()
    tree = {name: evidence[name] for name in ("context", "node")}
    result = credit.magrpo(graph, reward, **tree, discount=discount)
    assert rows.gather(result.valid)[alike].any() and not rows.gather(result.advantage)[alike].any()


@pytest.mark.parametrize("scores", [[1.0, 0, 0], [0, 0, 1.0, 0, 0, 0], [-3.0, 1, 2, 0, 5]])
def test_the_mean_of_others_that_cancel_is_exactly_0(scores: list[float]) -> None:
    """The mean of 0 and 0 beside 1 was -3e-8: the mean of all is rounded, and its own share was taken off."""
    graph, reward, rows = credit.from_columns(group=[0] * len(scores), trace=range(len(scores)), reward=scores)
    baseline = rows.gather(credit.rloo(graph, reward).baseline)
    exact = (np.sum(scores) - scores) / (len(scores) - 1)
    assert baseline[exact == 0].tolist() == [0] * np.count_nonzero(exact == 0) != []
    assert baseline == pytest.approx(exact, rel=1e-6)


def test_a_mean_that_rounding_leaves_is_no_divisor() -> None:
    """Of -0.9, 0, 0.6 and 0.3 the mean is 0; what single precision left of it gave one an advantage of -1."""
    for first in itertools.product((-0.9, -0.3, 0.0, 0.6, 1.7), repeat=3):
        reward = [*first, -round(sum(first), 9)]
        graph, returns, rows = credit.from_columns(group=[0] * 4, trace=list("abcd"), reward=reward)
        result = credit.max_rl(graph, returns)
        assert not rows.gather(result.advantage).any(), reward
        assert rows.gather(result.valid).tolist() == [amount == 0 for amount in reward], reward
