"""Off-policy credit is what its formulas say, written out draw by draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimators.base import Credit
from estimators.counterfactual.alternatives import Alternatives, Refusals
from estimators.counterfactual.messages import c3
from estimators.counterfactual.offpolicy import PolicyValue, off_policy, policy_value
from estimators.counterfactual.policy_estimates import Evaluation
from graphs.worlds.siblings import overlapping_world

from .sibling_logs import CONTEXTS, DRAWS, evidence, small_log


def slowly(y: list, w: list, p: list, a: list, model: list | None, expected: list | None) -> dict[str, Any]:
    """SNIPS and the doubly robust estimate of one context, with V from the others, one draw after the other."""
    n = len(y)

    def snips(members: list[int]) -> float:
        return sum(w[j] * y[j] for j in members) / sum(w[j] for j in members)

    everyone = list(range(n))
    scores, fitted = [], []
    for i in everyone:
        others = [j for j in everyone if j != i]
        if model is not None and expected is not None:
            m, mean = model[i], expected[i]
        else:
            known = {b: np.mean([y[j] for j in others if a[j] == b]) for b in {a[j] for j in others}}
            chance = {a[j]: p[j] for j in others}
            m = known.get(a[i], snips(others))
            mean = sum(chance[b] * known[b] for b in known) + (1 - sum(chance.values())) * snips(others)
        fitted.append(mean)
        scores.append(mean + w[i] * (y[i] - m))
    value = snips(everyone)
    left_out = [snips([j for j in everyone if j != i]) for i in everyone]
    return {
        "snips": value,
        "snips stderr": np.sqrt((n - 1) / n * sum((v - value) ** 2 for v in left_out)),
        "snips without": left_out,
        "doubly_robust": np.mean(scores),
        "stderr": np.std(scores, ddof=1) / np.sqrt(n),
        "without": fitted if model is None else [(sum(scores) - s) / (n - 1) for s in scores],
    }


@pytest.mark.sampled
@pytest.mark.parametrize("critic", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["siblings", "critic"])
@pytest.mark.slow
def test_estimates_are_those_of_a_loop_over_draws(critic: bool) -> None:
    log = small_log()
    graph, reward, given = log
    options: dict[str, Any] = evidence(log, critic)
    found: dict[str, tuple[PolicyValue, Credit]] = {}
    for name in ("snips", "doubly_robust"):
        found[name] = (
            policy_value(graph, reward, Alternatives(**options), evaluation=Evaluation(name, refusals=Refusals())),
            off_policy(graph, reward, evaluation=Evaluation(name), **options),
        )
    weight = given["target_propensity"] / given["propensity"]
    for c in range(0, CONTEXTS, 7):
        mine = slice(c * DRAWS, (c + 1) * DRAWS)
        y, w, a = reward[mine].tolist(), weight[mine].tolist(), given["alternative"][mine].tolist()
        models = [given[k][mine].tolist() for k in ("q_value", "target_value")] if critic else [None, None]
        slow = slowly(y, w, given["target_propensity"][mine].tolist(), a, *models)
        for name in ("snips", "doubly_robust"):
            value, events = found[name]
            assert float(value.value[c]) == pytest.approx(slow[name], abs=2e-6)
            assert float(value.ess[c]) == pytest.approx(sum(w) ** 2 / sum(x * x for x in w), rel=1e-5)
            without = slow["snips without" if name == "snips" else "without"]
            np.testing.assert_allclose(np.asarray(events.baseline)[mine], without, atol=3e-6)
            own = [np.mean([y[j] for j in range(DRAWS) if a[j] == b]) for b in a]
            np.testing.assert_allclose(np.asarray(events.credit)[mine], own, atol=2e-6)
        assert float(found["snips"][0].stderr[c]) == pytest.approx(slow["snips stderr"], rel=1e-4)
        if critic:
            assert float(found["doubly_robust"][0].stderr[c]) == pytest.approx(slow["stderr"], rel=1e-4)


@pytest.mark.slow
def test_error_of_alternatives_that_were_drawn_often_goes_by_their_counts() -> None:
    """With every alternative drawn, the estimate is Σ π_e(a) times its mean outcome: post-stratified."""
    log = overlapping_world(1).sample(np.random.default_rng(0), CONTEXTS, DRAWS)
    graph, reward, given = log
    support = np.full(CONTEXTS * DRAWS, np.nan, np.float32)
    result = policy_value(
        graph, reward, Alternatives(**given, target_support=support), evaluation=Evaluation(refusals=Refusals())
    )
    for c in np.flatnonzero(np.asarray(result.valid))[::9]:
        mine = given["context"] == c
        total = variance = 0.0
        nodes, counts = np.unique(given["alternative"][mine], return_counts=True)
        if counts.min() < 2:
            continue
        for node in nodes:
            y, p = reward[given["alternative"] == node], given["target_propensity"][given["alternative"] == node][0]
            total, variance = total + p * y.mean(), variance + p**2 * y.var(ddof=1) / len(y)
        assert float(result.value[c]) == pytest.approx(total, abs=2e-3)  # the alternatives drawn hold 99 % or more
        assert float(result.stderr[c]) == pytest.approx(np.sqrt(variance), rel=0.02)


@pytest.mark.study
def test_rewards_at_events_are_part_of_the_outcome() -> None:
    """As in `off_policy`: the value of a context was that of the outcomes alone."""
    graph, reward, given = overlapping_world(1).sample(np.random.default_rng(0), 4, DRAWS)
    logged, earned = Alternatives(**given), np.where(np.arange(len(reward)) % 3, 0.25, np.nan).astype(np.float32)
    options = {"evaluation": Evaluation(refusals=Refusals())}
    whole = policy_value(graph, reward + np.nan_to_num(earned), logged, **options)
    parts = policy_value(graph, reward, logged, event_reward=earned, **options)
    assert np.asarray(whole.valid).any()
    np.testing.assert_array_equal(parts.value, whole.value)
    np.testing.assert_array_equal(parts.stderr, whole.stderr)


@pytest.mark.study
def test_switch_rests_on_the_model_where_weights_are_large() -> None:
    log = small_log()
    graph, reward, given = log
    weight = given["target_propensity"] / given["propensity"]
    result = policy_value(
        graph, reward, Alternatives(**given), evaluation=Evaluation("switch", threshold=1.5, refusals=Refusals())
    )
    plain = policy_value(graph, reward, Alternatives(**given), evaluation=Evaluation(refusals=Refusals()))
    for c in range(0, CONTEXTS, 11):
        mine = slice(c * DRAWS, (c + 1) * DRAWS)
        w, residual = weight[mine], (reward - given["q_value"])[mine]
        kept = np.where(w > 1.5, 0, w * residual)
        assert float(result.value[c]) == pytest.approx(given["target_value"][mine][0] + kept.mean(), abs=2e-6)
        unsure = np.where(w > 1.5, w, 0).mean() ** 2 * (residual**2).mean()
        assert float(result.stderr[c]) == pytest.approx(np.sqrt(kept.var(ddof=1) / DRAWS + unsure), rel=1e-4)
    never = policy_value(
        graph, reward, Alternatives(**given), evaluation=Evaluation("switch", threshold=1e6, refusals=Refusals())
    )
    np.testing.assert_allclose(never.value, plain.value, atol=1e-6)


@pytest.mark.study
def test_on_policy_snips_is_the_leave_one_out_mean_of_c3() -> None:
    """One draw an alternative and π_e = π_b: the same numbers, also where each draw has several replays."""
    rng, n = np.random.default_rng(1), CONTEXTS * DRAWS
    log = small_log()
    node = np.arange(n, dtype=np.int32) // 2  # every draw replayed twice
    tree = {"context": log[2]["context"], "node": node}
    chance = np.full(n, 2 / DRAWS, np.float32)
    reward = rng.normal(size=n).astype(np.float32)
    ours = off_policy(
        log[0],
        reward,
        **tree,
        alternative=node,
        propensity=chance,
        target_propensity=chance,
        evaluation=Evaluation("snips"),
    )
    theirs = c3(log[0], reward, **tree)
    np.testing.assert_allclose(ours.advantage, theirs.advantage, atol=2e-6)
    assert np.asarray(ours.valid).all()
