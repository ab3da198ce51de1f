"""Off-policy credit has no value, and says why, where the log does not tell it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from estimators.base import Reason
from estimators.counterfactual.alternatives import Alternatives, Refusals
from estimators.counterfactual.messages import c3
from estimators.counterfactual.offpolicy import off_policy, policy_value
from estimators.counterfactual.policy_estimates import Evaluation
from graphs import CreditError
from graphs.worlds.siblings import SiblingWorld, hidden_favourite_world, overlapping_world

from .sibling_logs import CONTEXTS, DRAWS, LONG, evidence, small_log

UNIT: dict[str, Any] = {"outcome_range": (0, 1), "evaluation": Evaluation(refusals=Refusals())}


def spoil(name: str, value: Any, at: Any = 3) -> Any:
    def spoiled(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        column = given[name].copy()
        column[at] = value
        return {**given, name: column}

    return spoiled


def node_of_two(first: int, second: int) -> Any:
    """Every draw has a node of its own, but for two."""

    def spoiled(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        node = np.arange(len(given["context"]), dtype=np.int32)
        node[second] = first
        return {**given, "node": node}

    return spoiled


def unlike_its_first(given: dict[str, np.ndarray]) -> int:
    """A draw of another alternative than the first of its context."""
    return int(np.argmax(given["alternative"] != given["alternative"][0]))


def rest_elsewhere(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Some 5 % of the target lie on alternatives without a draw, and context 0 does not log that they can be drawn."""
    silent = np.where(given["context"] == 0, np.nan, given["target_support"])
    changed = {name: given[name] * np.float32(0.95) for name in ("propensity", "target_propensity")}
    return {**given, **changed, "target_support": silent}


def one_large_weight(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    nodes, counts = np.unique(given["alternative"][given["context"] == 0], return_counts=True)
    rare = given["alternative"] == nodes[np.argmin(counts)]
    return {**given, "propensity": np.where(rare, 1e-4, given["propensity"]).astype(np.float32)}


REFUSALS: dict[str, tuple[Any, int]] = {
    "propensity of 1": (spoil("propensity", 1.0), Reason.NO_OVERLAP),
    "propensity of 0": (spoil("propensity", 0.0), Reason.NO_OVERLAP),
    "propensity unknown": (spoil("propensity", np.nan), Reason.NO_OVERLAP),
    "target unknown": (spoil("target_propensity", np.nan), Reason.NO_EVIDENCE),
    "target above 1": (spoil("target_propensity", 1.5), Reason.NO_EVIDENCE),
    "node of another context": (node_of_two(0, DRAWS), Reason.CONTEXTS_DIFFER),
    "two alternatives of one node": (
        lambda given: node_of_two(0, unlike_its_first(given))(given), Reason.CONTRADICTION
    ),
    "two propensities of one alternative": (spoil("propensity", 0.9), Reason.CONTRADICTION),
    "probabilities above 1": (
        spoil("target_propensity", 0.9, slice(0, DRAWS)),
        Reason.CONTRADICTION,
    ),
    "target elsewhere": (rest_elsewhere, Reason.NO_SUPPORT),
    "truncated": (spoil("target_support", 0.9), Reason.NO_SUPPORT),
    "one alternative": (
        lambda given: {
            **given,
            "alternative": np.where(given["context"] == 0, 0, given["alternative"]).astype(np.int32),
            "propensity": np.where(given["context"] == 0, 0.5, given["propensity"]).astype(np.float32),
            "target_propensity": np.where(given["context"] == 0, 1, given["target_propensity"]).astype(np.float32),
        },
        Reason.NO_SIBLING,
    ),
    "one large weight": (one_large_weight, Reason.LOW_ESS),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str) -> None:
    graph, reward, _ = small_log()
    graph = dataclasses.replace(graph, group_ids=np.zeros_like(graph.group_ids))  # a node of another task is another
    change, reason = REFUSALS[case]
    given = evidence(small_log(), critic=False)
    value = policy_value(graph, reward, Alternatives(**change(given)), **UNIT)
    assert int(value.reason[0]) == reason
    assert np.isnan(value.value[0]) and np.isinf(value.stderr[0])
    low, high = value.interval()
    assert np.isneginf(low[0]) and np.isposinf(high[0])
    assert np.asarray(value.valid)[2:CONTEXTS].all()
    credit = off_policy(graph, reward, **change(given))
    assert (np.asarray(credit.reason)[:DRAWS] == reason).all()


@pytest.mark.study
def test_a_context_of_two_tasks_has_no_value_and_its_siblings_are_those_of_one_task() -> None:
    graph, reward, _ = small_log()
    given = evidence(small_log(), critic=False)
    moved = dataclasses.replace(graph, group_ids=np.where(np.arange(CONTEXTS * DRAWS) == 5, 1, graph.group_ids))
    assert int(policy_value(moved, reward, Alternatives(**given)).reason[0]) == Reason.CONTEXTS_DIFFER
    tree = {"context": given["context"], "node": given["alternative"]}
    one, without = (c3(moved, r, **tree) for r in (reward, np.where(np.arange(len(reward)) == 5, np.nan, reward)))
    assert int(one.reason[5]) == Reason.NO_SIBLING
    rest = np.arange(len(reward)) != 5
    np.testing.assert_array_equal(np.asarray(one.advantage)[rest], np.asarray(without.advantage)[rest])
    assert np.asarray(one.valid)[:DRAWS][rest[:DRAWS]].all()


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("seed", range(3))
def test_a_favourite_that_is_hardly_ever_drawn_has_no_answer(seed: int) -> None:
    """π_b draws the target's favourite with probability 0.0005, and 300 draws of each context hardly ever hold it."""
    graph, reward, given = hidden_favourite_world(seed).sample(np.random.default_rng(seed), 40, LONG)
    given = {**given, "target_support": np.ones(40 * LONG, np.float32)}
    value = policy_value(graph, reward, Alternatives(**given))
    assert not np.asarray(value.valid).any()
    favourite = np.isclose(given["target_propensity"], 0.5).reshape(40, LONG).any(1)
    expected = np.where(favourite, Reason.LOW_ESS, Reason.NO_SUPPORT)
    assert (np.asarray(value.reason)[:40] == expected).all() and not favourite.all()
    assert not np.asarray(off_policy(graph, reward, **given).valid).any()


@pytest.mark.slow
def test_a_rare_alternative_without_a_draw_has_no_answer_although_the_mean_weight_is_near_one() -> None:
    """A tenth of the target is on an alternative of probability 0.0005: 0.9 is within the error of heavy weights."""
    world = SiblingWorld(
        np.array([0.2, 0.7995, 0.0005]), np.array([0.7, 0.2, 0.1]), np.array([0.2, 0.3, 0.9]), np.zeros(3)
    )
    graph, reward, given = world.sample(np.random.default_rng(0), 40, LONG)
    given = {**given, "target_support": np.ones(40 * LONG, np.float32)}
    assert not np.asarray(policy_value(graph, reward, Alternatives(**given)).valid).any()


@pytest.mark.study
def test_texts_that_are_never_drawn_twice_show_a_hidden_favourite_by_their_mean_weight() -> None:
    n, rng = CONTEXTS * DRAWS, np.random.default_rng(0)
    graph = small_log()[0]
    logged = {
        "context": small_log()[2]["context"],
        "alternative": np.arange(n, dtype=np.int32),
        "propensity": np.full(n, 1e-4, np.float32),
        "target_support": np.ones(n, np.float32),
    }
    reward = (rng.random(n) < 0.5).astype(np.float32)
    weight = rng.uniform(0.5, 1.5, n)
    for mean, reason in ((1.0, Reason.VALID), (0.5, Reason.NO_SUPPORT), (2.5, Reason.CONTRADICTION)):
        target = (1e-4 * mean * weight).astype(np.float32)
        value = policy_value(graph, reward, Alternatives(**logged, target_propensity=target))
        assert (np.asarray(value.reason)[:CONTEXTS] == reason).all()


@pytest.mark.slow
def test_equal_outcomes_have_a_value_and_an_interval() -> None:
    graph, reward, _ = small_log()
    given = evidence(small_log(), critic=False)
    value = policy_value(graph, np.ones_like(reward), Alternatives(**given), **UNIT)
    assert np.asarray(value.valid)[:CONTEXTS].all() and (np.asarray(value.value)[:CONTEXTS] == 1).all()
    assert np.isinf(np.asarray(value.stderr)).all()  # the draws show no error, which is not an error of 0
    low, high = (np.asarray(end)[:CONTEXTS] for end in value.interval())
    assert (low < 0.99).all() and (high >= 1 - 1e-6).all()
    assert np.asarray(off_policy(graph, np.ones_like(reward), **given).valid).all()


@pytest.mark.slow
def test_without_a_range_of_outcomes_there_is_no_interval() -> None:
    graph, reward, _ = small_log()
    logged = Alternatives(**evidence(small_log(), critic=False))
    value = policy_value(graph, reward, logged, evaluation=UNIT["evaluation"])
    assert np.asarray(value.valid)[:CONTEXTS].all()
    with pytest.raises(CreditError, match=r"expected policy_value\(..., outcome_range=\(low, high\)\)"):
        value.interval()


@pytest.mark.slow
def test_a_range_that_outcomes_leave_refuses_every_context_and_a_wrong_one_is_named() -> None:
    graph, reward, _ = small_log()
    logged = Alternatives(**evidence(small_log(), critic=False))
    beyond = np.where(np.arange(len(reward)) == 7, 2, reward).astype(np.float32)
    assert (np.asarray(policy_value(graph, beyond, logged, **UNIT).reason)[:CONTEXTS] == Reason.CONTRADICTION).all()
    with pytest.raises(CreditError, match=r"outcome_range is \(1, 0\); expected two finite numbers"):
        policy_value(graph, reward, logged, outcome_range=(1, 0))


def test_limits_of_refusals_are_checked() -> None:
    with pytest.raises(CreditError, match="min_ess_fraction is 2; expected a number from 0 to 1"):
        Refusals(min_ess_fraction=2)


@pytest.mark.slow
def test_support_is_believed_where_it_is_logged() -> None:
    graph, reward, _ = small_log()
    given = rest_elsewhere(evidence(small_log(), critic=False))
    told = policy_value(graph, reward, Alternatives(**given), **UNIT)
    assert np.asarray(told.valid)[:CONTEXTS].tolist() == [False] + [True] * (CONTEXTS - 1)
    np.testing.assert_allclose(told.covered[1:CONTEXTS], 1)


@pytest.mark.slow
def test_a_support_above_1_is_none() -> None:
    """It hid that the alternatives that were drawn do not hold what the target may choose."""
    graph, reward, _ = small_log()
    given = rest_elsewhere(evidence(small_log(), critic=False))
    unknown, above = (
        Alternatives(**given | {"target_support": np.full_like(given["target_support"], x)}) for x in (np.nan, 1.5)
    )
    without = policy_value(graph, reward, unknown, **UNIT)
    told = policy_value(graph, reward, above, **UNIT)
    np.testing.assert_array_equal(told.covered[:CONTEXTS], without.covered[:CONTEXTS])
    np.testing.assert_array_equal(told.reason, without.reason)


@pytest.mark.slow
def test_few_siblings_have_a_credit_and_no_interval() -> None:
    log = overlapping_world(4).sample(np.random.default_rng(0), CONTEXTS * DRAWS // 8, 8)
    given = {**log[2], "target_support": np.ones(CONTEXTS * DRAWS, np.float32)}
    result = off_policy(log[0], log[1], **given)
    assert np.asarray(result.valid).mean() > 0.9 and np.isinf(np.asarray(result.stderr)[np.asarray(result.valid)]).all()
    assert (np.asarray(policy_value(log[0], log[1], Alternatives(**given)).reason)[:20] != Reason.VALID).all()


@pytest.mark.slow
def test_wrong_arguments_are_named() -> None:
    graph, reward, given = small_log()
    with pytest.raises(ValueError, match="come together"):
        policy_value(graph, reward, Alternatives(**{k: v for k, v in given.items() if k != "target_value"}))
    with pytest.raises(CreditError, match="estimator is 'ips'; expected 'snips' or 'doubly_robust' or 'switch'"):
        Evaluation("ips")
    with pytest.raises(CreditError, match="threshold is nan; expected a number"):
        Evaluation("switch", threshold=float("nan"))
