"""C3's analysis of replays, and its baselines, against the numbers that its own code gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import jax
import numpy as np
import pytest

import credit
from estimators.counterfactual.fidelity import influence, rank_correlation, weighted_leave_one_out

pytestmark = pytest.mark.optimised

Batch = Callable[..., tuple]
Oracle = Callable[[str], dict]


def close(found: object, expected: object) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("output", "baseline"), [("loo", "leave_one_out"), ("full_mean", "mean")])
def test_c3_baselines(batch: Batch, oracle: Oracle, output: str, baseline: str) -> None:
    case = oracle("c3_baselines")
    v = case["inputs"]["v"]
    graph, reward, _, evidence, row = batch(
        group=[0] * 3, trace=[0, 1, 2], agent=["a"] * 3, reward=v, evidence={"context": ["c"] * 3, "node": list("xyz")}
    )
    result = credit.c3(graph, reward, **evidence, baseline=baseline)
    close(result.baseline[row], case["outputs"][output])
    if output == "loo":
        close(result.advantage[row], case["outputs"]["adv_loo"])


def test_c3_analysis_metrics(oracle: Oracle) -> None:
    case = oracle("c3_analysis_metrics")
    outputs, candidates = case["outputs"], case["inputs"]["candidates"]
    value = np.array([np.mean(c["returns"]) for c in candidates], np.float32)
    replays = np.array([len(c["returns"]) for c in candidates], np.float32)
    against = weighted_leave_one_out(value, replays)
    close(against, outputs["A_loo_weighted"])
    pooled = value - np.average(value, weights=replays)
    close(pooled, outputs["A_mean_weighted"])
    close(np.var(against), outputs["var_loo"])
    close(np.var(pooled), outputs["var_mean"])
    pairs = np.array(outputs["pairs"]["all_candidates"])
    close(rank_correlation(pairs[:, 0], pairs[:, 1]), outputs["fidelity_spearman_all"])
    symbols = sorted({y for c in candidates for y in c["next_actions"]})
    counts = np.array([[Counter(c["next_actions"])[y] for y in symbols] + [0] for c in candidates])
    close(influence(counts), outputs["mi"])


@pytest.mark.slow
def test_rank_correlation_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, y = rng.integers(0, 4, 24).astype(np.float32), rng.integers(0, 5, 24).astype(np.float32)
        there = rng.random(24) < 0.8
        poisoned = np.where(there, x, np.nan)
        assert float(rank_correlation(poisoned, y, there)) == pytest.approx(
            stats.spearmanr(x[there], y[there]).statistic, abs=2e-6
        )
    assert float(rank_correlation(np.ones(4, np.float32), np.arange(4, dtype=np.float32))) == 0


def test_weighted_leave_one_out_is_a_loop_over_contexts() -> None:
    rng = np.random.default_rng(1)
    v, w = rng.normal(size=20).astype(np.float32), rng.integers(0, 4, 20).astype(np.float32)
    context, there = rng.integers(0, 5, 20), rng.random(20) < 0.9
    found = np.asarray(weighted_leave_one_out(np.where(there, v, np.nan), w, context, there))
    for j in range(20):
        others = [k for k in range(20) if k != j and there[k] and context[k] == context[j] and w[k] > 0]
        expected = v[j] - np.average(v[others], weights=w[others]) if others and there[j] else 0
        assert found[j] == pytest.approx(expected, abs=2e-6)


def test_influence_is_none_where_alternatives_lead_to_the_same_and_log_k_where_they_decide() -> None:
    assert float(influence(np.full((3, 4), 5), smoothing=0.0)) == pytest.approx(0, abs=1e-6)
    assert float(influence(np.eye(4) * 7, smoothing=0.0)) == pytest.approx(np.log(4), abs=1e-6)
    assert np.isfinite(jax.grad(lambda s: influence(np.eye(3), s))(0.5))
