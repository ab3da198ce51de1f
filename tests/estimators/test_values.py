"""Debate scores, token-level GAE, and what is read out of values, against plain loops on drawn inputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
from credit.laws.trial_batches import regular
from estimators.base import Reason
from estimators.baselines import released
from estimators.counterfactual import factored
from estimators.tokens import rows as tokens


def debate(seed: int) -> list[dict]:
    """Six debates of up to four rounds; an agent may be silent in a round, and a few answers have an unknown round."""
    rng = np.random.default_rng(seed)
    rows = []
    for trace in range(6):
        outcome = round(float(rng.random()), 3)
        for stage in range(rng.integers(1, 5)):
            for agent in range(3):
                if rng.random() < 0.2 and agent:
                    continue
                rows.append(
                    {
                        "group": 0,
                        "trace": trace,
                        "agent": f"a{agent}",
                        "reward": outcome,
                        "event_reward": round(float(rng.random()), 3),
                        "stage": None if rng.random() < 0.1 else stage,
                    }
                )
    return rows


def expected_score(rows: list[dict], i: int, horizon: str, share: str) -> float:
    mine = rows[i]
    if mine["stage"] is None:
        return 0.0
    known = [
        r
        for r in rows
        if r["trace"] == mine["trace"] and r["stage"] is not None and (share == "all" or r["agent"] == mine["agent"])
    ]
    rounds = sorted({r["stage"] for r in known})
    mean = {t: np.mean([r["reward"] + r["event_reward"] for r in known if r["stage"] == t]) for t in rounds}
    if horizon == "last":
        return mean[rounds[-1]]
    if horizon == "current":
        return mean[mine["stage"]]
    later = [t for t in rounds if t >= mine["stage"]]
    weights = [0.4**k for k in range(len(later))]
    total = (
        mine["reward"] + mine["event_reward"] + sum(w * mean[t] for w, t in zip(weights[1:], later[1:], strict=True))
    )
    return total / sum(weights)


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("horizon", ["discounted_sum", "last", "current"])
@pytest.mark.parametrize("share", ["all", "individual"])
def test_maporl_against_a_loop(share: str, horizon: str) -> None:
    for seed in range(3):
        rows = debate(seed)
        given = {name: [r[name] for r in rows] for name in ("group", "trace", "agent", "reward", "event_reward")}
        evidence = {"stage": [r["stage"] for r in rows]}
        graph, reward, at = credit.from_columns(**given, evidence=evidence, events=128, traces=32, agents=64)
        options = {"discount": 0.4, "horizon": horizon, "share": share}
        result = credit.maporl(graph, reward, event_reward=at.event_reward, stage=at.evidence["stage"], **options)
        expected = [expected_score(rows, i, horizon, share) for i in range(len(rows))]
        np.testing.assert_allclose(at.gather(result.advantage), expected, atol=2e-6)
        assert np.asarray(at.gather(result.valid)).tolist() == [r["stage"] is not None for r in rows]


def side(x: float) -> int:
    return int(x > 0.5) - int(x < 0.5)


def expected_bonus(rows: list[dict], i: int, alpha: list[float]) -> float:
    """The rule as a chain of questions about one answer and the rounds beside it."""
    me = rows[i]
    if me["stage"] is None:
        return 0.0
    trace = [r for r in rows if r["trace"] == me["trace"] and r["stage"] is not None]
    played = sorted({r["stage"] for r in trace})
    at = played.index(me["stage"])

    def own(k: int) -> list[float]:
        return [
            r["correct"]
            for r in trace
            if 0 <= k < len(played) and r["stage"] == played[k] and r["agent"] == me["agent"]
        ]

    def others(k: int) -> list[float]:
        return [
            r["correct"]
            for r in trace
            if 0 <= k < len(played) and r["stage"] == played[k] and r["agent"] != me["agent"]
        ]

    current, bonus = me["correct"], 0.0
    if own(at - 1):
        previous, company = own(at - 1)[0], others(at - 1)
        crowd = np.mean(company) if company else None
        if previous > 0.5 and current < 0.5:
            if crowd is None or crowd > 0.5:
                bonus -= alpha[1]
            elif crowd < 0.5:
                bonus -= alpha[0]
        if previous < 0.5 and current > 0.5:
            if crowd is None or crowd < 0.5:
                bonus += alpha[1]
            elif crowd > 0.5:
                bonus += alpha[0]
    if others(at) and others(at + 1):
        now, later = np.mean(others(at)), np.mean(others(at + 1))
        if now < 0.5 < later:
            bonus -= {1: alpha[3], -1: alpha[2], 0: 0.0}[side(current)]
        if later < 0.5 < now:
            bonus += {-1: alpha[3], 1: alpha[2], 0: 0.0}[side(current)]
    return bonus


@pytest.mark.study
def test_maporl_bonus_against_a_loop() -> None:
    alpha, seen = [0.5, 0.25, 0.125, 1.0], set()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = debate(seed)
        for row in rows:  # quarters, so that means lie exactly at the threshold, too
            row["correct"] = float(rng.choice([0.0, 0.0, 0.25, 0.5, 1.0, 1.0]))
        given = {name: [r[name] for r in rows] for name in ("group", "trace", "agent", "reward", "event_reward")}
        evidence = {"stage": [r["stage"] for r in rows]}
        graph, reward, at = credit.from_columns(**given, evidence=evidence, events=128, traces=32, agents=64)
        correct = np.full(graph.num_events, np.nan, np.float32)
        correct[at.event] = [r["correct"] for r in rows]
        options = {"discount": 0.4, "stage": at.evidence["stage"], "event_reward": at.event_reward}
        plain = at.gather(credit.maporl(graph, reward, **options).credit)
        with_bonus = credit.maporl(graph, reward, **options, bonus=np.array(alpha, np.float32), correct=correct)
        expected = [expected_bonus(rows, i, alpha) for i in range(len(rows))]
        np.testing.assert_allclose(at.gather(with_bonus.credit) - plain, expected, atol=2e-6)
        seen |= set(expected)
    assert {-0.5, -0.25, -0.125, -1.0, 0.5, 0.25, 0.125, 1.0} <= seen  # every weight, in both directions


@pytest.mark.study
def test_maporl_bonus_takes_the_scores_where_nothing_else_says_who_is_right() -> None:
    scores = [0.0, 1.0, 1.0, 1.0]  # b stands at right; a is persuaded by it
    columns = {"group": [0] * 4, "trace": [0] * 4, "agent": list("abab"), "row_reward": scores}
    graph, reward, at = credit.from_columns(**columns, evidence={"stage": [0, 0, 1, 1]})
    options = {
        "event_reward": at.event_reward,
        "stage": at.evidence["stage"],
        "horizon": "current",
        "share": "individual",
    }
    alpha = np.array([0.5, 0.25, 0.125, 2.0], np.float32)
    found = credit.maporl(graph, reward, **options, bonus=alpha)
    np.testing.assert_allclose(at.gather(found.credit), [0, 1 - 2.0, 1 + 0.5, 1], atol=1e-6)
    with pytest.raises(ValueError, match=r"bonus has shape \(3,\); expected \(4,\)"):
        credit.maporl(graph, reward, **options, bonus=alpha[:3])


def test_maporl_refuses_wrong_options() -> None:
    graph, reward, at = credit.from_columns(group=[0], trace=[0], reward=[1.0], evidence={"stage": [0]})
    for options, words in (({"share": "none"}, "share is 'none'"), ({"horizon": "next"}, "horizon is 'next'")):
        with pytest.raises(ValueError, match=words):
            credit.maporl(graph, reward, stage=at.evidence["stage"], **options)


# --- GAE over tokens --------------------------------------------------------------------------------------------------


def gae_loop(rewards: np.ndarray, values: np.ndarray, discount: float, lambda_: float) -> np.ndarray:
    out, advantage, ahead = np.zeros(len(rewards)), 0.0, 0.0
    for t in reversed(range(len(rewards))):
        advantage = rewards[t] + discount * ahead - values[t] + discount * lambda_ * advantage
        out[t], ahead = advantage, values[t]
    return out


@pytest.mark.parametrize("seed", range(2))
def test_gae_passes_over_gaps_and_padding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random((6, 9)) < 0.6
    mask[0] = False
    rewards, values = rng.normal(size=(2, 6, 9)).astype(np.float32)
    rewards[~mask], values[~mask] = np.nan, np.inf
    advantage, returns = tokens.gae(rewards, values, mask, 0.9, 0.8)
    for i in range(6):
        there = mask[i]
        expected = gae_loop(rewards[i, there], values[i, there], 0.9, 0.8)
        np.testing.assert_allclose(np.asarray(advantage)[i, there], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(returns)[i, there], expected + values[i, there], rtol=1e-5, atol=1e-6)
    assert not np.asarray(advantage)[~mask].any() and not np.asarray(returns)[~mask].any()


@pytest.mark.slow
def test_old_verl_lets_padding_in() -> None:
    rng = np.random.default_rng(0)
    mask = np.arange(7)[None] < np.array([7, 3, 5])[:, None]
    rewards, values = rng.normal(size=(2, 3, 7)).astype(np.float32)
    whitened, returns = released.verl_gae_tokens(rewards, values, mask, 0.9, 0.8)
    raw = np.stack([gae_loop(rewards[i], values[i], 0.9, 0.8) for i in range(3)])
    np.testing.assert_allclose(returns, raw + values, rtol=1e-5, atol=1e-6)
    expected = (raw - raw[mask].mean()) / np.sqrt(raw[mask].var(ddof=1) + 1e-8)
    np.testing.assert_allclose(whitened, expected, rtol=1e-4, atol=1e-5)
    other = values + np.where(mask, 0, 1).astype(np.float32)
    assert (
        np.asarray(released.verl_gae_tokens(rewards, other, mask, 0.9, 0.8)[1])[mask] != np.asarray(returns)[mask]
    ).any()


@pytest.mark.slow
def test_marft_s_normalisation_moves_padding() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    x[1, 3:] = 0
    there = x[x != 0]
    found = np.asarray(released.marft_normalised(x))
    np.testing.assert_allclose(found, (x - there.mean()) / (there.std() + 1e-8), rtol=1e-5, atol=1e-6)
    assert abs(found[1, 3]) > 0.01
    assert not np.asarray(released.marft_normalised(np.zeros(3, np.float32))).any()


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_coma_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    q, policy = rng.normal(size=(5, 3, 4)), rng.dirichlet(np.ones(4), (5, 3))
    action, available = rng.integers(0, 4, (5, 3)), rng.random((5, 3, 4)) < 0.7
    np.put_along_axis(available, action[..., None], True, axis=-1)
    advantage, baseline = factored.coma_advantage(q.astype(np.float32), policy.astype(np.float32), action, available)
    for at in np.ndindex(5, 3):
        can = available[at]
        pi = policy[at][can] / policy[at][can].sum()
        expected = (pi * q[at][can]).sum()
        np.testing.assert_allclose(baseline[at], expected, atol=1e-5)
        np.testing.assert_allclose(advantage[at], q[at][action[at]] - expected, atol=1e-5)


@pytest.mark.slow
def test_coma_is_centred_and_silent_where_nothing_matters() -> None:
    policy = jnp.array([0.2, 0.5, 0.3])
    q = jnp.array([1.0, 2.0, 0.5])
    every = jax.vmap(lambda a: factored.coma_advantage(q, policy, a)[0])(jnp.arange(3))
    assert abs(float(policy @ every)) < 1e-6
    same = jax.vmap(lambda a: factored.coma_advantage(jnp.full(3, 0.1), policy, a)[0])(jnp.arange(3))
    assert not np.asarray(same).any()
    none, baseline = factored.coma_advantage(q, policy, 0, jnp.zeros(3, bool))
    assert float(none) == 0 and np.isfinite(float(baseline))
    with pytest.raises(ValueError, match="expected one shape"):
        factored.coma_advantage(q, policy[:2], 0)


@pytest.mark.slow
def test_coma_on_a_log_is_coma_on_the_values_of_all_alternatives() -> None:
    rng = np.random.default_rng(1)
    batch = regular(0, {})
    n = batch.graph.num_events
    q, policy = rng.normal(size=(n, 3)).astype(np.float32), rng.dirichlet(np.ones(3), n).astype(np.float32)
    action = rng.integers(0, 3, n)
    advantage, baseline = factored.coma_advantage(q, policy, action)
    q_value = q[np.arange(n), action]
    found = credit.coma(batch.graph, batch.reward, q_value=q_value, target_value=baseline)
    np.testing.assert_allclose(found.advantage, advantage, atol=1e-6)
    assert found.centred and not found.own_outcome and np.asarray(found.valid).all()
    q_value[3] = np.nan
    missing = credit.coma(batch.graph, batch.reward, q_value=q_value, target_value=baseline)
    assert np.flatnonzero(missing.reason).tolist() == [3] and int(missing.reason[3]) == Reason.NO_EVIDENCE


def test_qmix_against_a_loop_and_its_slopes_against_differences() -> None:
    rng = np.random.default_rng(0)
    agents, width, embed = 3, 4, 5
    shapes = {
        "hyper_w_1": (agents * embed, width),
        "hyper_w_final": (embed, width),
        "hyper_b_1": (embed, width),
        "V.0": (embed, width),
        "V.2": (1, embed),
    }
    parameters = {f"{name}.weight": rng.normal(size=shape) for name, shape in shapes.items()}
    parameters |= {f"{name}.bias": rng.normal(size=shape[0]) for name, shape in shapes.items()}
    q, state = rng.normal(size=agents), rng.normal(size=width)

    def slow(values: np.ndarray) -> float:
        out = {
            name: parameters[f"{name}.weight"] @ state + parameters[f"{name}.bias"] for name in shapes if name != "V.2"
        }
        total = 0.0
        for k in range(embed):
            x = out["hyper_b_1"][k] + sum(values[i] * abs(out["hyper_w_1"][i * embed + k]) for i in range(agents))
            total += abs(out["hyper_w_final"][k]) * (x if x > 0 else np.exp(x) - 1)
        hidden = np.maximum(out["V.0"], 0)
        return total + float(parameters["V.2.weight"][0] @ hidden + parameters["V.2.bias"][0])

    singles = {name: x.astype(np.float32) for name, x in parameters.items()}
    credit_of = jax.jit(factored.mixer_credit, static_argnums=0)
    total, slopes = credit_of(factored.qmix, q.astype(np.float32), state.astype(np.float32), singles)
    np.testing.assert_allclose(total, slow(q), rtol=1e-5)
    for i in range(agents):
        step = np.eye(agents)[i] * 1e-5
        np.testing.assert_allclose(slopes[i], (slow(q + step) - slow(q - step)) / 2e-5, rtol=1e-4)
    assert (np.asarray(slopes) >= 0).all()


def test_vdn_shares_are_one_each() -> None:
    total, slopes = factored.mixer_credit(factored.vdn, jnp.array([0.5, -2.0, 3.0]))
    assert float(total) == 1.5 and np.asarray(slopes).tolist() == [1.0, 1.0, 1.0]


def test_a_frozen_row_without_a_value_is_a_part_of_the_action_before_it() -> None:
    """Tool rows of `trainable` 0 refused each action before a tool: a coder of 199 had 0 in the ledger, unsaid."""
    value = np.array([0.5, np.nan, 0.8, 0.5, np.nan, 0.2])
    columns = {"group": ["q"] * 6, "trace": [*"aaabbb"], "agent": ["coder", "tool", "tester"] * 2}
    columns |= {"order": [0, 1, 2] * 2, "reward": np.repeat([1.0, 0.0], 3)}
    _, _, rows = credit.from_columns(**columns, evidence={"value": value, "trainable": np.tile([1.0, 0.0, 1.0], 2)})
    found = rows.gather(credit.run(rows, "critic").advantage)
    acts = [0, 2, 3, 5]
    np.testing.assert_allclose(found[acts], [0.3, 0.2, -0.3, -0.2], atol=1e-6)
    _, _, whole = credit.from_columns(**columns, evidence={"value": value}, action=np.tile([True, False, True], 2))
    np.testing.assert_array_equal(found[acts], whole.gather(credit.run(whole, "critic").advantage)[acts])
    _, _, untold = credit.from_columns(**columns, evidence={"value": value})  # a trained action lacks it
    assert np.asarray(untold.gather(credit.run(untold, "critic").reason))[0] == Reason.NO_EVIDENCE
