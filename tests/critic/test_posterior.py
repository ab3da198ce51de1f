"""The posterior of training runs: whose outcomes enter, its limits, what it learns, and how it is saved."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
from credit.bench.training.training_signals import centred_claim
from credit.critics.posterior_signal import _without_room
from estimators.composition.control import control_advantage
from estimators.critic.cholesky import cholesky
from estimators.critic.repaid_posterior import (
    FLOOR,
    PosteriorState,
    choice_features,
    fresh_posterior,
    posterior_advantage,
    posterior_claims,
    residual_weights,
)
from graphs.errors import CreditError

GROUPS, SIZE, DECISIONS = 4, 4, 3
TRACES = GROUPS * SIZE


def batch(more: int = 0) -> tuple[Any, np.ndarray]:
    """Traces of three decisions, and the event of each trace and decision."""
    trace = np.repeat(np.arange(TRACES), DECISIONS)
    sizes = {"traces": 32 + more, "events": 128 + more, "agents": 32 + more}
    graph, _, rows = credit.from_columns(group=trace // SIZE, trace=trace, reward=np.zeros(len(trace)), **sizes)
    return graph, np.asarray(rows.event).reshape(TRACES, DECISIONS)


GRAPH, EVENT = batch()


def arrays(x: np.ndarray, graph: Any = GRAPH, event: np.ndarray = EVENT) -> tuple[np.ndarray, np.ndarray]:
    columns, values = np.zeros((graph.num_events, 1), np.int32), np.zeros((graph.num_events, 1), np.float32)
    columns[event, 0] = np.arange(DECISIONS)[None]
    values[event, 0] = x
    return columns, values


def padded(reward: np.ndarray, graph: Any = GRAPH) -> np.ndarray:
    return np.append(reward, np.full(graph.num_traces - len(reward), np.nan)).astype(np.float32)


def drawn(rng: np.random.Generator, worth: np.ndarray, luck: float) -> tuple[np.ndarray, np.ndarray]:
    x = rng.integers(0, 2, (TRACES, DECISIONS)) - 0.5
    return x, x @ worth + luck * rng.normal(size=TRACES)


def learned(worth: np.ndarray, luck: float, steps: int, seed: int = 0) -> PosteriorState:
    rng, state = np.random.default_rng(seed), fresh_posterior(DECISIONS)
    for _ in range(steps):
        x, reward = drawn(rng, worth, luck)
        _, state = posterior_advantage(GRAPH, padded(reward), state, *arrays(x))
    return state


WORTH = np.array([1.0, -0.5, 0.0])


@pytest.mark.slow
def test_claims_on_a_trace_hold_no_outcome_of_its_group() -> None:
    state = learned(WORTH, 0.3, 3)
    x, reward = drawn(np.random.default_rng(9), WORTH, 0.3)
    changed = reward.copy()
    changed[:SIZE] += np.array([3.0, -1.0, 0.5, 2.0])
    first, other = (
        np.asarray(posterior_advantage(GRAPH, padded(r), state, *arrays(x))[0].advantage)[EVENT]
        for r in (reward, changed)
    )
    omega = float(residual_weights(state)[0])
    own = (changed - reward)[:SIZE]
    against = (own.sum() - own) / (SIZE - 1)
    np.testing.assert_allclose((other - first)[:SIZE], np.tile(omega * (own - against)[:, None], DECISIONS), atol=1e-5)
    assert np.abs(other - first)[2 * SIZE : 3 * SIZE].max() < 1e-6  # of the same half
    assert np.abs(other - first)[SIZE : 2 * SIZE].min() > 1e-4  # of the other half: they learn from it


@pytest.mark.slow
def test_at_full_weight_of_the_residual_it_is_control() -> None:
    state = learned(WORTH, 0.3, 3)._replace(again=jnp.full(1, 1e9), luck=jnp.zeros(1))
    x, reward = drawn(np.random.default_rng(9), WORTH, 0.3)
    columns, values = arrays(x)
    result, _ = posterior_advantage(GRAPH, padded(reward), state, columns, values)
    # Of events 0 and 1 of a trace, the difference is that of their claims.
    table = np.asarray(result.advantage)[EVENT]
    claims = np.zeros((TRACES, DECISIONS))
    for d in range(1, DECISIONS):
        claims[:, d] = table[:, d] - table[:, 0]
    shift = claims - claims * 0
    amount = np.zeros(GRAPH.num_events, np.float32)
    without = values.copy()
    without[EVENT] = np.nan  # no event has a claim: R − b
    plain, _ = posterior_advantage(GRAPH, padded(reward), state, columns, without)
    own = np.asarray(plain.advantage)[EVENT] - table  # Σ of the claims of the others
    amount[EVENT] = own.sum(axis=1, keepdims=True) / (DECISIONS - 1) - own
    claim = centred_claim(GRAPH, jnp.asarray(amount), "model", jnp.asarray(GRAPH.event_mask), own_outcome=False)
    control = control_advantage(GRAPH, padded(reward), [claim], beta=1.0).credit
    np.testing.assert_allclose(table, np.asarray(control.advantage)[EVENT], atol=1e-5)
    np.testing.assert_allclose(shift[:, 1] + amount[EVENT[:, 0]], amount[EVENT[:, 1]], atol=1e-5)
    ratio = amount[EVENT] / x
    assert np.ptp(ratio[:SIZE], axis=0).max() < 1e-4 < np.abs(ratio).max()  # one weight a decision, in a half


@pytest.mark.study
def test_padding_changes_nothing() -> None:
    state = learned(WORTH, 0.3, 2)
    x, reward = drawn(np.random.default_rng(9), WORTH, 0.3)
    larger, event = batch(64)
    first, after = posterior_advantage(GRAPH, padded(reward), state, *arrays(x))
    columns, values = arrays(x, larger, event)
    values[~np.asarray(larger.event_mask)] = np.nan
    other, later = posterior_advantage(larger, padded(reward, larger), state, columns, values)
    np.testing.assert_allclose(np.asarray(first.advantage)[EVENT], np.asarray(other.advantage)[event], atol=1e-5)
    for part, again in zip(after, later, strict=True):
        np.testing.assert_allclose(part, again, rtol=1e-4, atol=1e-5)


@pytest.mark.study
def test_it_learns_what_choices_are_worth_and_how_far_it_knows() -> None:
    state = learned(WORTH, 0.5, 40)
    columns, values = np.arange(3)[:, None], np.ones((3, 1), np.float32)
    found = posterior_claims(state, columns, values)
    assert np.abs((found.mean - WORTH) / found.stderr).max() < 3
    # Of 624 independent traces of ± ½: the standard error of a least-squares slope.
    np.testing.assert_allclose(found.stderr, 0.5 / np.sqrt(624 / 4), rtol=0.15)


@pytest.mark.slow
def test_a_step_that_overflows_is_refused_and_forgotten() -> None:
    state, (x, reward) = learned(WORTH, 0.3, 3), drawn(np.random.default_rng(5), WORTH, 0.3)
    columns, values = arrays(x)
    learn = jax.jit(posterior_advantage)
    _, after = learn(GRAPH, padded(reward), state, columns, values * np.float32(1e25))
    jax.tree.map(np.testing.assert_array_equal, after, state)
    with pytest.raises(CreditError, match="with J 1 or more"):
        posterior_advantage(GRAPH, padded(reward), state, columns[:, :0], values[:, :0])


@pytest.mark.slow
def test_where_others_have_settled_a_decision_moves_no_further() -> None:
    """The gradient of the last decision varies alike in steps that tell a third of earlier ones."""
    rng, state = np.random.default_rng(4), learned(WORTH, 0.3, 20)

    def spread(settled: float) -> float:
        slopes = []
        for _ in range(60):
            x, _ = drawn(rng, WORTH, 0.3)
            x[:, :-1] *= settled
            reward = x @ WORTH + 0.3 * rng.normal(size=TRACES)
            result, _ = posterior_advantage(GRAPH, padded(reward), state, *arrays(x))
            slopes.append((np.asarray(result.advantage)[EVENT] * x)[:, -1].mean())
        return float(np.std(slopes))

    assert spread(0.02) < 1.5 * spread(1.0)


@pytest.mark.study
def test_a_right_model_takes_little_of_the_residual_and_luck_alone_the_floor() -> None:
    assert float(residual_weights(learned(WORTH, 0.01, 60))[0]) < 0.1
    assert float(residual_weights(learned(0 * WORTH, 1.0, 12))[0]) > 0.9 * FLOOR


@pytest.mark.study
def test_a_wrong_model_takes_the_residual() -> None:
    """The worth of every choice turns over after 30 steps."""
    rng, state = np.random.default_rng(0), learned(WORTH, 0.1, 30)
    before = float(residual_weights(state)[0])
    for _ in range(6):
        x, reward = drawn(rng, -WORTH, 0.1)
        _, state = posterior_advantage(GRAPH, padded(reward), state, *arrays(x))
    assert before < 0.2 < 0.6 < float(residual_weights(state)[0])


@pytest.mark.study
def test_the_width_of_the_prior_follows_the_luck() -> None:
    sure, unsure = (learned(w, luck, 12) for w, luck in ((WORTH, 0.05), (0 * WORTH, 1.0)))
    assert float(sure.width[0]) < 0.1 * float(sure.first[0])
    assert float(unsure.width[0]) > 2 * float(unsure.first[0])


@pytest.mark.slow
def test_a_trace_without_a_reward_teaches_nothing() -> None:
    x, reward = drawn(np.random.default_rng(9), WORTH, 0.3)
    reward[5] = np.nan
    other = x.copy()
    other[5] = -x[5]
    states = [
        posterior_advantage(GRAPH, padded(reward), fresh_posterior(3), *arrays(choice))[1] for choice in (x, other)
    ]
    assert all(np.array_equal(a, b) for a, b in zip(*states, strict=True))
    assert float(states[0].seen) == TRACES - 3


@pytest.mark.slow
def test_a_run_that_resumes_gives_the_same_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    first = credit.PosteriorSignal(DECISIONS)
    steps = [drawn(rng, WORTH, 0.3) for _ in range(2)]
    first(GRAPH, padded(steps[0][1]), *arrays(steps[0][0]))
    first.save(tmp_path / "posterior.npz")
    resumed = credit.PosteriorSignal.load(tmp_path / "posterior.npz")
    both = [s(GRAPH, padded(steps[1][1]), *arrays(steps[1][0])).advantage for s in (first, resumed)]
    assert np.array_equal(*both)
    assert np.array_equal(first.residual_weights, resumed.residual_weights)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("moment", lambda a: a[:-1], r"moment is float32 \(2,\); expected float32 \(3,\)"),
        ("gram", lambda a: a * np.nan, "gram holds a number that is not finite"),
    ],
)
def test_a_damaged_state_is_refused(tmp_path: Path, name: str, change: Any, message: str) -> None:
    file = tmp_path / "posterior.npz"
    parts = {key: np.asarray(part) for key, part in fresh_posterior(DECISIONS)._asdict().items()}
    np.savez(file, **{**parts, name: change(parts[name])})
    with pytest.raises(CreditError, match=message):
        credit.PosteriorSignal.load(file)


def test_columns_beyond_the_features_are_refused() -> None:
    x, reward = drawn(np.random.default_rng(9), WORTH, 0.3)
    columns, values = arrays(x)
    with pytest.raises(CreditError, match="columns has numbers from 0 to 2; expected 0 to 1"):
        credit.PosteriorSignal(2)(GRAPH, padded(reward), columns, values)
    for wrong in (columns + 1, columns - 1):
        for call in (lambda c: posterior_claims(fresh_posterior(3), c, values),
                     lambda c: posterior_advantage(GRAPH, padded(reward), fresh_posterior(3), c, values)):  # fmt: skip
            with pytest.raises(CreditError, match=r"columns has numbers from .*; expected 0 to 2"):
                call(wrong)
    with pytest.raises(CreditError, match="chosen has numbers from 2 to 2; expected 0 to 1"):
        choice_features(np.array([0]), np.array([2]), np.full((1, 2), 0.5))
    # Of a compiled function the numbers are not known when it is called: the event has no claim.
    traced = jax.jit(posterior_claims)(fresh_posterior(3), columns + 1, values)
    np.testing.assert_array_equal(np.isnan(traced.mean), columns[:, 0] == 2)
    with pytest.raises(CreditError, match=r"columns has shape \(128, 1\) and values \(127, 1\); expected \(128, J\)"):
        posterior_advantage(GRAPH, padded(reward), fresh_posterior(3), arrays(x)[0], arrays(x)[1][1:])


@pytest.mark.slow
def test_features_of_choices_have_mean_zero_under_the_policy() -> None:
    policy = np.array([[0.2, 0.3, 0.5]])
    columns = [choice_features(np.array([1]), np.array([c]), policy) for c in range(3)]
    assert all(found.tolist() == [[3, 4, 5]] for found, _ in columns)
    np.testing.assert_allclose(sum(p * v for p, (_, v) in zip(policy[0], columns, strict=True)), 0, atol=1e-7)


@pytest.mark.slow
def test_at_full_weight_the_gradient_is_exact_in_an_enumerated_world() -> None:
    """Two groups of two traces of two decisions, a reward that the model cannot hold: all 256 batches."""
    trace = np.repeat(np.arange(4), 2)
    graph, _, rows = credit.from_columns(group=trace // 2, trace=trace, reward=np.zeros(8))
    event, chance = np.asarray(rows.event).reshape(4, 2), np.array([0.3, 0.6])
    state = fresh_posterior(2)._replace(again=jnp.full(1, 1e9), moment=jnp.array([0.7, -2.0]))
    mean = np.zeros(2)
    for bits in itertools.product((0, 1), repeat=8):
        choice = np.array(bits).reshape(4, 2)
        columns, values = np.zeros((graph.num_events, 1), np.int32), np.zeros((graph.num_events, 1), np.float32)
        columns[event, 0], values[event, 0] = np.arange(2)[None], choice - chance
        reward = np.full(graph.num_traces, np.nan, np.float32)
        reward[:4] = choice[:, 0] * choice[:, 1]
        found = np.asarray(posterior_advantage(graph, reward, state, columns, values)[0].advantage)[event]
        probability = np.prod(np.where(choice == 1, chance, 1 - chance))
        mean += probability * (found * (choice - chance)).mean(axis=0)
    np.testing.assert_allclose(mean, [0.3 * 0.7 * 0.6, 0.6 * 0.4 * 0.3], atol=1e-5)


@pytest.mark.study
def test_the_order_of_columns_changes_nothing() -> None:
    """ω was that of the block of the first column."""
    worth, rng = np.array([0.5, -0.2, 0.4]), np.random.default_rng(3)
    ends = [fresh_posterior(DECISIONS + 1, block=np.array([0, 0, 0, 1])) for _ in range(2)]
    for _ in range(5):
        x, reward = drawn(rng, worth, 0.5)
        columns, values = (np.concatenate([part, part], axis=1) for part in arrays(x))
        columns[EVENT, 1], values[EVENT, 1] = DECISIONS, x[:, :1] * x
        found = []
        for k, order in enumerate(([0, 1], [1, 0])):
            result, ends[k] = posterior_advantage(GRAPH, padded(reward), ends[k], columns[:, order], values[:, order])
            found.append(np.asarray(result.advantage))
        np.testing.assert_allclose(found[0], found[1], atol=1e-4)


@pytest.mark.parametrize("block", [[0.5, 0, 1], [0, -1, 1], [0, 1]])
def test_blocks_are_numbers_from_0(block: list[float]) -> None:
    with pytest.raises(CreditError, match="expected 3 integers from 0"):
        fresh_posterior(3, block=np.array(block))


@pytest.mark.slow
def test_room_for_traces_changes_no_advantage_and_is_not_paid_for() -> None:
    rng, signals = np.random.default_rng(5), [credit.PosteriorSignal(DECISIONS) for _ in range(2)]
    for _ in range(3):
        x, reward = drawn(rng, WORTH, 0.2)
        found = []
        for signal, room in zip(signals, (TRACES, 4096), strict=True):
            trace = np.repeat(np.arange(TRACES), DECISIONS)
            graph, outcome, rows = credit.from_columns(
                group=trace // SIZE, trace=trace, reward=reward[trace], traces=room, events=64
            )
            event = np.asarray(rows.event).reshape(TRACES, DECISIONS)
            found.append(rows.gather(signal(graph, outcome, *arrays(x, graph, event)).advantage))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)
    assert np.shape(_without_room(graph, outcome)[1]) == (TRACES,)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("size", [33, 1, 31, 32, 70])
def test_the_factor_is_that_of_lapack(size: int) -> None:
    rows = np.random.default_rng(size).normal(size=(3, 2 * size, size)).astype(np.float32)
    matrix = rows.swapaxes(1, 2) @ rows + np.eye(size, dtype=np.float32)
    factor = jax.jit(cholesky)
    np.testing.assert_allclose(factor(matrix), np.linalg.cholesky(matrix), rtol=2e-4, atol=2e-5)
    assert np.isnan(np.asarray(factor(-matrix))).any()


@pytest.mark.slow
def test_one_reward_that_outweighs_all_others_is_told_before_it_is_learned() -> None:
    """It changed the run for good, without a word. A first success among failures gives no scale, and is none."""
    rng, signal = np.random.default_rng(6), credit.PosteriorSignal(DECISIONS)
    for reward in (np.zeros(TRACES), np.eye(TRACES)[2], drawn(rng, WORTH, 0.3)[1], 3 * rng.normal(size=TRACES)):
        signal(GRAPH, padded(reward), *arrays(drawn(rng, WORTH, 0.3)[0]))
    before = signal.state
    x, reward = drawn(rng, WORTH, 0.3)
    reward[5] = 1e4
    with pytest.warns(UserWarning, match=r"trace 5 of the batch has reward 1e\+04.*pass NaN"):
        signal(GRAPH, padded(reward), *arrays(x))
    signal.state = before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            signal(GRAPH, padded(reward), *arrays(x))
        assert signal.state is before
        reward[5] = np.nan
        signal(GRAPH, padded(reward), *arrays(x))


@pytest.mark.slow
def test_features_that_are_infinite_or_overflow_are_refused() -> None:
    signal, (x, reward) = credit.PosteriorSignal(DECISIONS), drawn(np.random.default_rng(7), WORTH, 0.3)
    columns, values = arrays(x)
    with pytest.raises(CreditError, match=r"values reach 5e\+29 .* overflow"):
        signal(GRAPH, padded(reward), columns, values * np.float32(1e30))
    values[EVENT[1, 0]] = np.inf
    with pytest.raises(CreditError, match=f"row {EVENT[1, 0]} of the numbers .* infinite"):
        signal(GRAPH, padded(reward), columns, values)
    with pytest.raises(CreditError, match="infinite"):
        posterior_claims(signal.state, columns, values)
    assert int(signal.state.steps) == 0
