"""Control-variate advantages on a world small enough to enumerate: the gradient's mean is exact for wrong claims."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

import credit
import estimators
from estimators.base import Reason, finish
from estimators.composition.control import control_advantage
from estimators.composition.increments import NotComposableError, as_increment, combine

DECISIONS = 4
POLICY = np.array([0.5, 0.3, 0.6, 0.8])  # probability of choosing 1 at each decision, whatever came before


def every_trace() -> tuple[np.ndarray, np.ndarray]:
    """All choices [2^D, D] and their probabilities."""
    choices = np.array(list(itertools.product([0, 1], repeat=DECISIONS)))
    return choices, np.prod(np.where(choices == 1, POLICY, 1 - POLICY), axis=1)


def outcome(choices: np.ndarray) -> np.ndarray:
    """An AND of the first three, plus a term that couples the last with the first."""
    return choices[:, :3].prod(axis=1) + 0.7 * (choices[:, 0] != choices[:, 3])


def score(choices: np.ndarray) -> np.ndarray:
    """d log π / d θ of each decision, θ the logit."""
    return choices - POLICY


def batch(choices: np.ndarray):
    n = len(choices)
    graph, reward, rows = credit.from_columns(
        group=np.zeros(n * DECISIONS, int),
        trace=np.repeat(np.arange(n), DECISIONS),
        reward=np.repeat(outcome(choices), DECISIONS),
    )
    return graph, reward, rows


def claim(graph, rows, values: np.ndarray, **changes) -> credit.Credit:
    amounts = np.zeros(graph.num_events)
    amounts[rows.event] = values.ravel()
    options = {"estimand": "increment", "source": "made up", "centred": True, "own_outcome": False} | changes
    return finish(
        graph,
        credit=jax.numpy.asarray(amounts),
        baseline=jax.numpy.zeros(graph.num_events),
        scale=jax.numpy.ones(graph.num_events),
        stderr=jax.numpy.full(graph.num_events, jax.numpy.inf),
        reason=np.full(graph.num_events, Reason.VALID),
        unit="event",
        **options,
    )


def centred_claims(choices: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Any function of the past and the choice, minus its mean over the choice: wrong, but centred."""
    claims = np.zeros(choices.shape)
    for t in range(DECISIONS):
        table = rng.normal(size=(2,) * (t + 1)) * 3
        mean = table[..., 0] * (1 - POLICY[t]) + table[..., 1] * POLICY[t]
        past = tuple(choices[:, :t].T)
        claims[:, t] = table[(*past, choices[:, t])] - mean[past]
    return claims


def gradient(advantage: np.ndarray, choices: np.ndarray, probability: np.ndarray) -> np.ndarray:
    return (probability[:, None] * advantage * score(choices)).sum(axis=0)


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("beta", [1.0, -0.4])
def test_wrong_but_centred_claims_leave_the_gradient_exact(seed: int, beta: float) -> None:
    choices, probability = every_trace()
    graph, reward, rows = batch(choices)
    rng = np.random.default_rng(seed)
    wrong = claim(graph, rows, centred_claims(choices, rng))
    exact = (probability[:, None] * outcome(choices)[:, None] * score(choices)).sum(axis=0)
    result = control_advantage(
        graph, reward.astype(np.float64), [wrong], baseline=np.full(graph.num_traces, 0.3), beta=beta
    )
    advantage = np.asarray(rows.gather(result.credit.advantage)).reshape(choices.shape)
    np.testing.assert_allclose(gradient(advantage, choices, probability), exact, rtol=0, atol=1e-7)  # reward is float32
    assert result.used == ("made up",)


@pytest.mark.slow
def test_true_increments_reduce_the_variance() -> None:
    choices, probability = every_trace()
    graph, reward, rows = batch(choices)
    value = np.zeros((len(choices), DECISIONS + 1))
    for t in range(DECISIONS + 1):
        for i, c in enumerate(choices):
            same = (choices[:, :t] == c[:t]).all(axis=1)
            value[i, t] = (probability * outcome(choices))[same].sum() / probability[same].sum()
    true, reward = claim(graph, rows, np.diff(value, axis=1)), reward.astype(np.float64)
    v0 = np.full(graph.num_traces, value[0, 0])
    variance = {}
    for name, claims in (("none", []), ("true", [true])):
        result = control_advantage(graph, reward, claims, baseline=v0, beta=1.0)
        advantage = np.asarray(rows.gather(result.credit.advantage)).reshape(choices.shape)
        terms = advantage * score(choices)
        mean = (probability[:, None] * terms).sum(axis=0)
        variance[name] = (probability[:, None] * (terms - mean) ** 2).sum()
    assert variance["true"] < 0.5 * variance["none"]


@pytest.mark.slow
@pytest.mark.parametrize("replays", [1, 2, 4])
def test_own_outcome_in_an_earlier_claim_shrinks_gradients_by_one_over_its_replays(replays: int) -> None:
    """What the flag `own_outcome` protects from: declared falsely, the bias is the predicted factor 1 − 1/k."""
    choices, probability = every_trace()
    graph, reward, rows = batch(choices)
    own = np.zeros(choices.shape)
    own[:, 0] = (outcome(choices) - probability @ outcome(choices)) / replays  # the first decision's claim holds R / k
    exact = gradient(outcome(choices)[:, None] + 0 * choices, choices, probability)
    found = {}
    for declared in (False, True):
        lying = claim(graph, rows, own, own_outcome=declared)
        result = control_advantage(
            graph, reward.astype(np.float64), [lying], baseline=np.zeros(graph.num_traces), beta=1.0
        )
        advantage = np.asarray(rows.gather(result.credit.advantage)).reshape(choices.shape)
        found[declared] = gradient(advantage, choices, probability)
    np.testing.assert_allclose(found[False][1:], (1 - 1 / replays) * exact[1:], atol=1e-7)
    np.testing.assert_allclose(found[True], exact, atol=1e-7)


def test_without_claims_it_is_rloo() -> None:
    rng = np.random.default_rng(0)
    trace = np.repeat(np.arange(12), 3)
    graph, reward, _ = credit.from_columns(group=trace % 4, trace=trace, reward=rng.normal(size=12)[trace])
    result = control_advantage(graph, reward, [])
    np.testing.assert_array_equal(result.credit.advantage, credit.rloo(graph, reward).advantage)


@pytest.mark.study
def test_beta_is_fitted_on_other_groups_and_zero_on_few_traces() -> None:
    rng = np.random.default_rng(0)
    for groups, few in ((4, True), (40, False)):
        n = groups * 4
        choices = (rng.random((n, DECISIONS)) < POLICY).astype(int)
        trace = np.repeat(np.arange(n), DECISIONS)
        graph, reward, rows = credit.from_columns(
            group=trace // 4, trace=trace, reward=np.repeat(choices.sum(axis=1), DECISIONS).astype(float)
        )
        true = claim(graph, rows, choices - POLICY)
        beta = np.asarray(control_advantage(graph, reward, [true]).beta)[0, :n]
        if few:
            assert not beta.any()
        else:
            assert np.all(np.abs(beta - 1) < 0.35)
            for own in (0, 5):  # its own outcome and claims do not enter
                changed, other = reward.copy(), np.array(choices - POLICY)
                changed[own] += 100
                other[own] *= -7
                again = np.asarray(control_advantage(graph, changed, [claim(graph, rows, other)]).beta)[0, :n]
                assert again[own] == beta[own]
                assert not np.allclose(np.delete(again, own), np.delete(beta, own))


def variance_over_rloo(size: float, seed: int) -> dict[str, float]:
    """Exact claims on 72 tasks of size 1, pure noise on 8 of another size: the variance that claims leave, by size."""
    rng = np.random.default_rng(seed)
    groups, traces, steps = 80, 8, 4
    task = np.repeat(np.arange(groups), traces)
    noisy, unit = task < 8, np.where(task < 8, size, 1.0)[:, None]
    choices = rng.integers(0, 2, (len(task), steps))
    trace = np.repeat(np.arange(len(task)), steps)
    graph, reward, rows = credit.from_columns(
        group=task[trace], trace=trace, reward=(unit * choices).sum(axis=1)[trace].astype(float)
    )
    amount = unit * (np.where(noisy[:, None], rng.integers(0, 2, choices.shape), choices) - 0.5)
    terms = {}
    for name, claims in (("control", [claim(graph, rows, amount)]), ("rloo", [])):
        advantage = rows.gather(control_advantage(graph, reward, claims).credit.advantage)
        terms[name] = np.asarray(advantage).reshape(choices.shape) * (choices - 0.5)
    return {
        part: float(np.var(terms["control"][where], axis=0).sum() / np.var(terms["rloo"][where], axis=0).sum())
        for part, where in (("exact", ~noisy), ("noise", noisy))
    }


@pytest.mark.parametrize("size", [4.0, pytest.param(10.0, marks=pytest.mark.slow)])
@pytest.mark.study
def test_large_tasks_with_noisy_claims_do_not_decide_for_small_ones(size: float) -> None:
    """With one coefficient for all, claims of exact tasks were used at 50 % (size 4) and 14 % (size 10), noise too."""
    ratio = {part: np.mean([variance_over_rloo(size, seed)[part] for seed in range(3)]) for part in ("exact", "noise")}
    assert ratio["exact"] < 0.22 and ratio["noise"] < 1.06


def test_claims_that_would_bias_are_left_out_by_name() -> None:
    choices, _ = every_trace()
    graph, reward, rows = batch(choices)
    off_centre = claim(graph, rows, choices.astype(float), centred=False, source="critic")
    effect = claim(graph, rows, choices.astype(float), estimand="effect", source="removal")
    result = control_advantage(graph, reward, [off_centre, effect, credit.rloo(graph, reward)])
    assert set(result.refused) == {"critic", "removal", "rloo"} and result.used == ()
    assert "not centred" in result.refused["critic"]


@pytest.mark.study
def test_conversions_are_exact_or_refused() -> None:
    rng = np.random.default_rng(0)
    trace = np.repeat(np.arange(6), 4)
    graph, reward, rows = credit.from_columns(group=trace % 2, trace=trace, reward=rng.normal(size=6)[trace])
    value = np.full(graph.num_events, np.nan, np.float32)
    value[rows.event] = rng.normal(size=24)
    for lambda_ in (1.0, 0.7):
        made = as_increment(graph, credit.gae(graph, reward, value=value, lambda_=lambda_))
        amounts = np.asarray(rows.gather(made.credit)).reshape(6, 4)
        v = value[rows.event].reshape(6, 4)
        expected = np.concatenate([v[:, 1:], reward[:6, None]], axis=1) - v
        np.testing.assert_allclose(amounts, expected, atol=1e-6)
    for method in (credit.rloo, credit.dr_mas, credit.pass_at_k):
        with pytest.raises(NotComposableError):
            as_increment(graph, method(graph, reward))
    for options, why in (
        ({"discount": 0.9}, "a return discounted by 0.9 do not add up"),
        ({"along": "agent"}, "along the actions of each agent"),
    ):
        with pytest.raises(NotComposableError, match=why):
            as_increment(graph, credit.gae(graph, reward, value=value, **options))
    with pytest.raises(NotComposableError, match="along the actions of each agent"):
        as_increment(graph, credit.maac(graph, reward, value=value, normalise=False))
    with pytest.raises(NotComposableError, match="does not say with what λ"):
        as_increment(graph, claim(graph, rows, np.ones((6, 4)), estimand="return"))
    contrast = claim(graph, rows, np.ones((6, 4)), estimand="contrast")
    with pytest.raises(NotComposableError, match=r"estimates a contrast .* propensity"):
        as_increment(graph, contrast)
    propensity = np.full(graph.num_events, np.nan)
    propensity[rows.event] = np.tile([0.25, 1.0, 0.0, np.nan], 6)
    made = as_increment(graph, contrast, propensity=propensity)
    assert np.asarray(rows.gather(made.credit)).reshape(6, 4)[0].tolist() == [0.75, 0, 0, 0]
    assert np.asarray(rows.gather(made.valid)).reshape(6, 4)[0].tolist() == [True, False, False, False]


@pytest.mark.study
def test_coefficients_hold_nothing_of_a_replay_under_another_task() -> None:
    """A prefix that was run again by another version of the policy is in another group, and shares the choices."""
    rng = np.random.default_rng(0)
    n = 120
    graph, reward, rows = credit.from_columns(
        group=np.repeat(np.arange(n) // 4, 2),
        trace=np.repeat(np.arange(n), 2),
        reward=np.repeat(rng.normal(size=n), 2),
        evidence={
            "context": [name for t in range(n) for name in (None, "fan" if t in (0, 4) else None)],
            "node": [name for t in range(n) for name in (None, f"{t}" if t in (0, 4) else None)],
        },
    )
    assert graph.cluster_ids is not None and graph.cluster_ids[4] == 0
    amount = np.zeros(graph.num_events)
    amount[rows.event] = rng.normal(size=2 * n)
    made = credit.claim(graph, amount, estimand="increment", source="c", centred=True, own_outcome=False)
    other = np.array(reward)
    other[4] += 2.0  # the replay's outcome, which the choices of trace 0 decide, too
    one, two = (np.asarray(control_advantage(graph, r, [made]).beta)[0] for r in (reward, other))
    assert one[0] == two[0] != 0
    assert one[8] != two[8]  # of a task that shares nothing


@pytest.mark.slow
def test_claims_on_one_event_are_averaged_one_vote_a_source() -> None:
    choices, _ = every_trace()
    graph, _, rows = batch(choices)
    rng = np.random.default_rng(0)
    truth = rng.normal(size=choices.shape)

    def noisy(source: str, sd: float) -> credit.Credit:
        made = claim(graph, rows, truth + sd * rng.normal(size=choices.shape), source=source)
        stated = jax.numpy.where(made.valid, sd, 0.0)
        return made.__class__(**{**vars(made), "stderr": stated})

    a, b = noisy("a", 0.1), noisy("b", 0.3)
    both = combine([a, b])
    weight = np.asarray(both.weight)[:, rows.event]
    np.testing.assert_allclose(weight, np.array([[0.9], [0.1]]) + 0 * weight, atol=1e-6)
    np.testing.assert_allclose(np.asarray(both.stderr)[rows.event], np.sqrt(1 / (100 + 1 / 0.09)), rtol=1e-6)
    again = combine([a, b, b])
    np.testing.assert_array_equal(again.amount, both.amount)
    np.testing.assert_array_equal(again.stderr, both.stderr)
    assert 0.5 < float(both.chi_squared[0, 1]) < 2
    assert np.all(np.asarray(both.amount)[~np.asarray(both.claim_mask)] == 0)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [None, 0.7])
@pytest.mark.parametrize("joint", [True, False])
def test_a_compiled_function_refuses_a_decision_stated_twice_without_a_name(joint: bool, beta: float | None) -> None:
    n = 24  # traces in 6 groups: siblings of one prefix that two agents continue, in one turn or one after the other
    draw = np.random.default_rng(n)
    context = [["r", "r" if joint else f"s{i}"] for i in range(n)]
    graph, _, rows = credit.from_columns(
        group=np.repeat(np.arange(n) // 4, 2),
        trace=np.repeat(np.arange(n), 2),
        agent=["x", "y"] * n,
        turn=[0, 0 if joint else 1] * n,
        reward=np.repeat(draw.normal(size=n), 2),
        evidence={"context": np.ravel(context).tolist(), "node": list(range(2 * n))},
    )
    reward = draw.normal(size=graph.num_traces)

    def controlled(reward: jax.Array):
        claim = estimators.c3(graph, reward, context=rows.evidence["context"], node=rows.evidence["node"])
        return control_advantage(graph, reward, [claim], beta=beta)

    plain, compiled = controlled(reward), jax.jit(lambda reward: controlled(reward).credit)(reward)
    assert plain.used == (() if joint else ("c3",))
    np.testing.assert_allclose(compiled.advantage, plain.credit.advantage, atol=1e-6)
    assert compiled.valid.any()
