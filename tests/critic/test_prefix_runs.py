"""Further runs from prefixes in a critic's fit: n runs count as n outcomes, in both models."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import credit
from benchmarks.worlds.decisive import DecisiveEpisodes, DecisiveWorld
from credit.replay.added_evidence import add_evidence
from estimators.critic.additive.additive_columns import expected_numbers, levels_of, place_keys
from estimators.critic.additive.additive_critic import fit_additive, predict_additive
from estimators.critic.additive.posterior import Outcomes, fit_posterior
from estimators.critic.additive.prefix_runs import prefix_columns, prefixes_with_runs
from estimators.critic.data import Batch, CriticData, Split, pack, room
from estimators.critic.features import event_features
from estimators.critic.network import Architecture
from estimators.critic.objective import initial, member_loss, predict
from estimators.critic.train import check_split
from graphs.errors import CreditError

# Compiled whole, as in a fit: operation by operation takes far longer.
values_of = jax.jit(predict, static_argnames="sizes")
loss_of = jax.jit(member_loss, static_argnames=("sizes", "lambda_"))

WORLD = DecisiveWorld(rounds=3, workers=2, decisive=1, group_size=2)


def critic_data(episodes: DecisiveEpisodes, runs: Any = None, mean: Any = None) -> CriticData:
    features = event_features(episodes.graph, dense=episodes.dense)
    return CriticData.of(episodes.graph, features, episodes.reward, runs=runs, run_mean=mean)


def some_runs(events: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Up to three runs from about half of the prefixes, with means that they can have; NaN where there are none."""
    rng = np.random.default_rng(seed)
    runs = np.where(rng.random(events) < 0.5, rng.integers(1, 4, events), 0)
    return runs, np.where(runs > 0, rng.binomial(runs, 0.4) / np.maximum(runs, 1), np.nan)


def batch_of(corpus: CriticData, traces: list[int]) -> Batch:
    return pack(corpus, np.array(traces), room(corpus, len(corpus.features)))


def test_runs_stand_at_the_event_that_ends_their_prefix() -> None:
    episodes = WORLD.sample(0, 6)
    runs, mean = some_runs(6 * WORLD.events)
    batch = batch_of(critic_data(episodes, runs, mean), [4, 1])
    for row, trace in enumerate([4, 1]):
        first = trace * WORLD.events
        assert batch.first_runs[row] == runs[first]
        assert batch.first_mean[row] == np.float32(np.nan_to_num(mean[first]))
        for e in range(WORLD.events):
            after = first + e + 1
            expected = (runs[after], np.nan_to_num(mean[after])) if e + 1 < WORLD.events else (0, 0)
            at = row * WORLD.events + e
            assert (batch.runs[at], batch.run_mean[at]) == (expected[0], np.float32(expected[1]))
    assert not np.any(batch.runs[2 * WORLD.events :])


@pytest.mark.study
def test_a_network_s_loss_of_n_runs_is_n_losses() -> None:
    episodes = WORLD.sample(0, 6)
    runs, mean = some_runs(6 * WORLD.events)
    traces = list(range(6))
    with_runs, without = batch_of(critic_data(episodes, runs, mean), traces), batch_of(critic_data(episodes), traces)
    sizes = Architecture(with_runs.prefix.features.shape[1], 4, 2, 1, (1.0,) * 16, "bernoulli")
    members = initial(sizes, 2, 0, 0.4)
    value, start = (np.asarray(part)[0] for part in values_of(sizes, members, with_runs.prefix))
    own = jax.tree.map(lambda leaf: leaf[0], members)
    weight = np.ones(with_runs.reward.shape, np.float32)
    losses = [float(loss_of(sizes, own, own, batch, weight, lambda_=1.0)) for batch in (with_runs, without)]
    total = 0.0
    for trace in traces:
        for e in range(-1, WORLD.events - 1):
            at = trace * WORLD.events + e + 1
            p = float(start if e < 0 else value[trace * WORLD.events + e])
            successes = round(runs[at] * np.nan_to_num(mean[at]))
            total -= (successes * np.log(p) + (runs[at] - successes) * np.log1p(-p)) / (WORLD.events + 1)
    assert losses[0] - losses[1] == pytest.approx(total, rel=1e-4)


def test_a_mean_of_n_outcomes_is_n_rows() -> None:
    rng = np.random.default_rng(0)
    x, mean = rng.normal(size=(40, 3)), rng.integers(0, 4, 40) / 3
    level = np.array([0, 0, 1])
    rows = Outcomes(x, np.ones(40), mean, np.full(40, 3.0))
    each = (np.arange(3)[None] < np.rint(3 * mean)[:, None]).astype(float).ravel()
    apart = Outcomes(np.repeat(x, 3, axis=0), np.ones(120), each, np.ones(120))
    together, separate = (
        fit_posterior(data, level, "bernoulli", 4, np.random.default_rng(1)) for data in (rows, apart)
    )
    np.testing.assert_allclose(together.mean, separate.mean, atol=0.02)
    np.testing.assert_allclose(together.draws, separate.draws, atol=0.05)


def test_columns_of_a_prefix_are_sums_over_its_events() -> None:
    episodes = WORLD.sample(0, 30)
    runs, mean = some_runs(30 * WORLD.events)
    corpus = critic_data(episodes, runs, mean)
    traces = np.arange(3, 25)
    critic = fit_additive(critic_data(episodes), traces)
    keys = place_keys(corpus, 0)
    x = expected_numbers(critic.expected, corpus, 0, keys[2], None)
    event = np.arange(3 * WORLD.events, 25 * WORLD.events)
    columns, _, places, varies = levels_of(x[event], keys[:, event], (event // WORLD.events) - 3, len(traces))
    prefixes = prefixes_with_runs(corpus, traces)
    assert len(prefixes.length) == np.sum(runs[event] > 0)
    sums = prefix_columns(x, keys, prefixes, places, varies)
    whole = prefixes._replace(
        first=WORLD.events * traces, length=np.full(len(traces), WORLD.events), runs=np.ones(22), mean=np.ones(22)
    )
    np.testing.assert_allclose(prefix_columns(x, keys, whole, places, varies), columns, atol=1e-12)
    for row, (first, length) in enumerate(zip(prefixes.first, prefixes.length, strict=True)):
        slow = []
        for key, own, kept in zip(keys, places, varies, strict=False):
            by_place = np.zeros((len(own), x.shape[1]))
            for e in range(first, first + length):
                if key[e] in own:
                    by_place[np.searchsorted(own, key[e])] += x[e]
            slow.append(by_place.ravel()[kept])
        np.testing.assert_allclose(sums[row], np.concatenate(slow), atol=1e-12)


@pytest.mark.study
@pytest.mark.parametrize("head", ["bernoulli", "value"])
@pytest.mark.sampled
def test_runs_bring_an_additive_critic_closer_to_the_truth(head: Any) -> None:
    """40 traces alone, and with ten runs from every prefix; what x is to be expected stays that of 40 traces."""
    world = DecisiveWorld()
    episodes, fresh = world.sample(0, 40), world.sample(1, 100)
    value = 0.5 + np.cumsum(episodes.increments, axis=1) - episodes.increments  # before each event
    mean = np.random.default_rng(2).binomial(10, value.ravel()) / 10
    errors = []
    for corpus in (critic_data(episodes), critic_data(episodes, np.full(mean.shape, 10), mean)):
        after, start = predict_additive(fit_additive(corpus, np.arange(40), head=head), critic_data(fresh))
        increments = np.diff(after.mean(axis=0).reshape(100, -1), axis=1, prepend=start.mean())
        errors.append(np.sqrt(np.mean((increments - fresh.increments) ** 2)))
    assert errors[1] < 0.75 * errors[0], errors


def test_runs_outside_the_head_s_range_and_without_a_mean_are_refused() -> None:
    episodes = WORLD.sample(0, 6)
    events = 6 * WORLD.events
    runs = np.zeros(events)
    runs[5] = 2
    with pytest.raises(CreditError, match="event 5 has 2 runs and no mean"):
        critic_data(episodes, runs, np.full(events, np.nan))
    split = Split(np.arange(4), np.array([4, 5]), np.arange(0))
    with pytest.raises(CreditError, match=r"runs have mean 1\.5; expected 0 to 1"):
        check_split(critic_data(episodes, runs, np.where(runs > 0, 1.5, np.nan)), split, "bernoulli")


def test_a_log_without_runs_of_a_value_plan_is_refused() -> None:
    _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], reward=[1.0, 0.0])
    traces = rows.traces
    with pytest.raises(CreditError, match="no evidence 'value' and 'replays'"):
        credit.fit_critic(traces, replays=True)
    size = traces.graph.num_events
    some = add_evidence(
        traces, value=np.full(size, 0.5, np.float32), replays=np.full(size, 2, np.int32),
        counterfactual_reward=np.full(size, 0.5, np.float32),
    )  # fmt: skip
    with pytest.raises(CreditError, match="'replays' counts the runs of one of them"):
        credit.fit_critic(some, replays=True)
