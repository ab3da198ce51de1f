"""The doubly robust contrast: its formula written out, coverage against a known effect, and every refusal."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from estimators.base import Reason
from estimators.counterfactual.contrast import Contrast, doubly_robust_contrast

REPEATS, DECISIONS = 1000, 400


def world(seed: int, repeats: int = REPEATS, decisions: int = DECISIONS, low: float = 0.2) -> dict[str, Any]:
    """Prefixes with a state x; the policy spawns more often where x is large, and so does the outcome rise: confounded.

    The outcome is Bernoulli, its mean after either decision known, so is the mean effect over prefixes; the model that
    is handed in is wrong.
    """
    rng = np.random.default_rng(seed)
    n = repeats * decisions
    x = rng.random(n)
    p = low + (1 - 2 * low) * x
    q1, q0 = 0.15 + 0.6 * x**2, 0.1 + 0.5 * x**2
    treated = rng.random(n) < p
    outcome = (rng.random(n) < np.where(treated, q1, q0)).astype(np.float32)
    return {
        "outcome": outcome,
        "treated": treated,
        "propensity": p.astype(np.float32),
        "value_treated": (0.1 + 0.5 * x).astype(np.float32),
        "value_control": (0.3 * np.ones(n)).astype(np.float32),
        "segment_ids": np.repeat(np.arange(repeats, dtype=np.int32), decisions),
        "num_segments": repeats,
        "truth": 0.05 + 0.1 / 3,
        "q": (q1, q0),
    }


def run(given: dict[str, Any], **changes: Any) -> Contrast:
    return doubly_robust_contrast(**{k: v for k, v in given.items() if k not in ("truth", "q")} | changes)


@pytest.mark.slow
def test_intervals_cover_the_effect_and_the_naive_difference_does_not() -> None:
    given = world(0)
    result = run(given)
    assert np.asarray(result.valid).all()
    inside = np.abs(np.asarray(result.effect) - given["truth"]) <= 1.96 * np.asarray(result.stderr)
    sigma = np.sqrt(0.95 * 0.05 / REPEATS)
    assert abs(inside.mean() - 0.95) < 3.5 * sigma
    error = np.asarray(result.effect).mean() - given["truth"]
    assert abs(error) < 4 * np.asarray(result.effect).std() / np.sqrt(REPEATS)
    y, took = given["outcome"], given["treated"]
    assert y[took].mean() - y[~took].mean() > given["truth"] + 0.1
    q1, q0 = (q.astype(np.float32) for q in given["q"])
    best = run(given, value_treated=q1, value_control=q0)
    assert np.asarray(result.stderr).mean() < 1.3 * np.asarray(best.stderr).mean()


def test_formula_of_each_decision_and_of_the_mean() -> None:
    given = world(1, repeats=2)
    result = run(given)
    for s in range(2):
        mine = given["segment_ids"] == s
        phi = []
        for i in np.flatnonzero(mine):
            m1, m0, p = (float(given[k][i]) for k in ("value_treated", "value_control", "propensity"))
            y = float(given["outcome"][i])
            phi.append(m1 - m0 + ((y - m1) / p if given["treated"][i] else -(y - m0) / (1 - p)))
        np.testing.assert_allclose(np.asarray(result.score)[mine], phi, rtol=2e-5, atol=2e-6)
        assert float(result.effect[s]) == pytest.approx(np.mean(phi), abs=2e-6)
        assert float(result.stderr[s]) == pytest.approx(np.std(phi, ddof=1) / np.sqrt(len(phi)), rel=1e-5)
        p = given["propensity"][mine]
        ess = [len(p) ** 2 / (1 / chance).sum() for chance in (p, 1 - p)]
        assert float(result.ess[s]) == pytest.approx(min(ess), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("low", "answered"), [(0.06, True), (0.02, False)])
def test_answers_do_not_select_by_how_decisions_fell(low: float, answered: bool) -> None:
    """The effect is 0.6 where the policy rarely spawns, else 0.2. At 0.02 the answers were off by −0.18."""
    rng, n = np.random.default_rng(0), REPEATS * DECISIONS
    rare = np.arange(n) % 5 == 0
    p = np.where(rare, low, 0.5).astype(np.float32)
    treated = rng.random(n) < p
    outcome = (rng.random(n) < np.where(treated, np.where(rare, 0.9, 0.5), 0.3)).astype(np.float32)
    none = np.zeros(n, np.float32)
    result = run(world(0) | {"outcome": outcome, "treated": treated, "propensity": p,
                             "value_treated": none, "value_control": none})  # fmt: skip
    assert (np.asarray(result.valid) == answered).all()
    found = np.asarray(result.effect)
    assert not answered or abs(found.mean() - 0.28) < 4 * found.std() / np.sqrt(REPEATS)


@pytest.mark.study
def test_clusters_widen_the_error_when_decisions_share_an_outcome() -> None:
    given = world(2, repeats=1, decisions=100)
    columns = {k: np.repeat(v, 4) for k, v in given.items() if isinstance(v, np.ndarray)}
    copied = run({**given, **columns}, cluster_ids=np.repeat(np.arange(100, dtype=np.int32) * 7, 4))
    once = run(given, min_ess=20)
    assert float(copied.effect[0]) == pytest.approx(float(once.effect[0]), abs=1e-6)
    assert float(copied.stderr[0]) == pytest.approx(float(once.stderr[0]), rel=1e-4)
    assert float(run({**given, **columns}).stderr[0]) == pytest.approx(float(once.stderr[0]) / 2, rel=1e-2)


@pytest.mark.slow
def test_a_third_alternative_belongs_to_neither_arm() -> None:
    given = world(3, repeats=1)
    rng = np.random.default_rng(0)
    third = rng.random(400) < 0.25
    p = given["propensity"]
    result = run(
        given,
        treated=given["treated"] & ~third,
        control=~given["treated"] & ~third,
        propensity=(0.75 * p).astype(np.float32),
        propensity_control=(0.75 * (1 - p)).astype(np.float32),
        outcome=np.where(third, np.nan, given["outcome"]).astype(np.float32),
    )
    assert bool(result.valid[0])
    assert abs(float(result.effect[0]) - given["truth"]) < 4 * float(result.stderr[0])


def spoiled(key: str, value: float, at: int = 5) -> Any:
    def spoil(given: dict[str, Any]) -> dict[str, Any]:
        column = given[key].copy()
        column[at] = value
        return {key: column}

    return spoil


REFUSALS = {
    "propensity 1": (spoiled("propensity", 1.0), Reason.NO_OVERLAP),
    "propensity 0": (spoiled("propensity", 0.0), Reason.NO_OVERLAP),
    "propensity unknown": (spoiled("propensity", np.nan), Reason.NO_OVERLAP),
    "always spawned": (lambda given: {"propensity": np.ones_like(given["propensity"])}, Reason.NO_OVERLAP),
    "outcome unknown": (spoiled("outcome", np.nan), Reason.NO_EVIDENCE),
    "value unknown": (spoiled("value_control", np.inf), Reason.NO_EVIDENCE),
    "nobody spawned": (lambda given: {"treated": np.zeros_like(given["treated"])}, Reason.TOO_FEW),
    "no decision": (lambda given: {"where": np.zeros_like(given["treated"])}, Reason.NO_EVIDENCE),
    "small arm": (lambda given: {"where": np.arange(400) < 60}, Reason.LOW_ESS),
    "one large weight": (
        lambda given: {"propensity": np.where(np.arange(400) == np.argmax(given["treated"]), 1e-5, 0.5).astype("f4")},
        Reason.LOW_ESS,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str) -> None:
    given = world(4, repeats=1)
    spoil, reason = REFUSALS[case]
    result = run(given, **spoil(given))
    assert int(result.reason[0]) == reason
    assert np.isnan(result.effect[0]) and np.isinf(result.stderr[0]) and np.isnan(result.score).all()


@pytest.mark.slow
def test_what_is_no_decision_is_inert_and_other_segments_go_on() -> None:
    given = world(5, repeats=2)
    spoil = {k: np.concatenate([v, v[:50]]) for k, v in given.items() if isinstance(v, np.ndarray)}
    for k in ("outcome", "propensity", "value_treated", "value_control"):
        spoil[k][800:] = np.nan
    result, plain = run({**given, **spoil}, where=np.arange(850) < 800), run(given)
    np.testing.assert_array_equal(result.effect, plain.effect)
    np.testing.assert_array_equal(result.stderr, plain.stderr)
    assert np.isnan(result.score[800:]).all() and np.isfinite(result.score[:800]).all()
    half = run(given, **spoiled("propensity", 0.0)(given))
    assert np.asarray(half.valid).tolist() == [False, True]
    assert float(half.effect[1]) == float(plain.effect[1])


def test_wrong_arguments_are_named() -> None:
    given = world(6, repeats=1)
    with pytest.raises(TypeError, match="treated is float32"):
        run(given, treated=given["outcome"])
    with pytest.raises(ValueError, match="value_control has shape"):
        run(given, value_control=given["outcome"][:-1])
    with pytest.raises(ValueError, match="both control and propensity_control"):
        run(given, control=~given["treated"])
    assert jnp.asarray(run(given).reason).dtype == jnp.int8
