"""Training learns, stops, refuses, and goes on after a kill as if nothing had happened."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimators.critic.calibration import fit_counts, judge, predict_counts, reliability, scores
from estimators.critic.data import CriticData, Split, pack, room
from estimators.critic.objective import initial, member_loss, predict
from estimators.critic.predict import predict_corpus
from estimators.critic.train import Epoch, Fitted, Settings, fit
from graphs.errors import CreditError
from graphs.worlds.quality import QualityEpisodes

# Compiled whole, as in a fit: operation by operation takes far longer.
values_of = jax.jit(predict, static_argnames="sizes")
loss_of = jax.jit(member_loss, static_argnames=("sizes", "lambda_"))


class Killed(Exception):
    """Stands for a signal that ends the process after a checkpoint."""


def same(one: Fitted, two: Fitted) -> bool:
    leaves = zip(jax.tree.leaves(one.parameters), jax.tree.leaves(two.parameters), strict=True)
    return one.history == two.history and all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in leaves)


@pytest.mark.study
def test_training_lowers_the_loss(fitted: Fitted) -> None:
    assert [epoch.number for epoch in fitted.history] == [1, 2, 3]
    assert fitted.history[-1].train < fitted.history[0].train


@pytest.mark.slow
def test_a_killed_run_goes_on_bit_for_bit(
    tmp_path: Path, corpus: CriticData, split: Split, settings: Settings, fitted: Fitted
) -> None:
    def kill(epoch: Epoch) -> None:
        if epoch.number == 2:
            raise Killed

    with pytest.raises(Killed):
        fit(corpus, split, settings, checkpoint=tmp_path / "run.npz", after_epoch=kill)
    told: list[Epoch] = []
    resumed = fit(corpus, split, settings, checkpoint=tmp_path / "run.npz", after_epoch=told.append)
    assert same(resumed, fitted) and tuple(told) == fitted.history
    with pytest.raises(CreditError, match="is of a fit on other traces"):
        fit(corpus, split, dataclasses.replace(settings, seed=1), checkpoint=tmp_path / "run.npz")


@pytest.mark.study
def test_a_process_killed_at_any_moment_goes_on_bit_for_bit(
    tmp_path: Path, corpus: CriticData, split: Split, settings: Settings, fitted: Fitted
) -> None:
    script = f"""
from pathlib import Path
from estimators.critic.data import CriticData, split_by_task
from estimators.critic.features import event_features
from estimators.critic.train import fit, Settings
from graphs.worlds.quality import QualityWorld
episodes = QualityWorld(events=20, agents=4).sample(0, 40)
corpus = CriticData.of(episodes.graph, event_features(episodes.graph, dense=episodes.dense), episodes.reward)
split = split_by_task(corpus.group, corpus.reward, seed=1)
fit(corpus, split, {settings!r}, checkpoint=Path({str(tmp_path / "run.npz")!r}))
"""
    process = subprocess.Popen([sys.executable, "-c", script])
    while process.poll() is None and not (tmp_path / "run.npz").exists():
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert same(fit(corpus, split, settings, checkpoint=tmp_path / "run.npz"), fitted)


@pytest.mark.study
def test_td_targets_are_lambda_returns_of_the_slow_values(corpus: CriticData, split: Split, fitted: Fitted) -> None:
    """The loss at λ < 1 against a loop over each trace, written down from the definition."""
    scaled = corpus._replace(features=fitted.scaler(corpus.features))
    batch = pack(scaled, split.train[:3], room(corpus, 256))
    own = jax.tree.map(lambda x: x[0], fitted.parameters)
    slow = jax.tree.map(lambda x: x[1], fitted.parameters)
    value, start = (np.asarray(x, np.float64) for x in values_of(fitted.sizes, fitted.parameters, batch.prefix))
    weight = np.ones(len(batch.trace), np.float32)
    for lambda_ in (0.0, 0.7):
        found = float(loss_of(fitted.sizes, own, slow, batch, jnp.asarray(weight), lambda_=lambda_))
        total = 0.0
        for row in range(3):
            mine = np.flatnonzero(batch.prefix.mask & (batch.prefix.trace == row))
            target, losses = float(batch.reward[row]), []
            for e in mine[::-1]:
                losses.append(-target * np.log(value[0, e]) - (1 - target) * np.log(1 - value[0, e]))
                target = (1 - lambda_) * value[1, e] + lambda_ * target
            losses.append(-target * np.log(start[0]) - (1 - target) * np.log(1 - start[0]))
            total += np.mean(losses)
        np.testing.assert_allclose(found, total, rtol=2e-5)


@pytest.mark.study
def test_a_critic_before_training_says_the_mean_outcome(corpus: CriticData, fitted: Fitted) -> None:
    parameters = initial(fitted.sizes, 2, 0, 0.3)
    batch = pack(corpus, np.arange(2), room(corpus, 256))
    np.testing.assert_allclose(
        np.concatenate([np.ravel(x) for x in values_of(fitted.sizes, parameters, batch.prefix)]), 0.3, rtol=1e-5
    )


@pytest.mark.study
def test_a_fit_says_whether_it_stopped_because_the_held_out_loss_no_longer_fell(
    corpus: CriticData, split: Split, settings: Settings
) -> None:
    """The default ended after 20 epochs, whether or not the loss still fell, and nothing told which."""
    found = fit(corpus, split, dataclasses.replace(settings, epochs=60, patience=2))
    last = found.history[-1]
    assert found.converged and last.number == last.best_number + 2 < 60  # two epochs without a better loss
    cut = fit(corpus, split, dataclasses.replace(settings, epochs=1, patience=2))
    assert len(cut.history) == 1 and not cut.converged


def test_what_cannot_be_fitted_is_refused(corpus: CriticData, split: Split, settings: Settings) -> None:
    with pytest.raises(CreditError, match="a reward is 3; expected 0 to 1"):
        fit(corpus._replace(reward=np.where(corpus.reward > 0, 3, 0).astype(np.float32)), split, settings)
    with pytest.raises(CreditError, match="no training or no validation"):
        fit(corpus, dataclasses.replace(split, validation=np.zeros(0, int)), settings)
    with pytest.raises(CreditError, match=r"Settings\.head is 'softmax'"):
        Settings(head="softmax")
    with pytest.raises(CreditError, match=r"Settings\.epochs is 0"):
        Settings(epochs=0)


def test_judging_knows_a_good_critic_from_a_constant(
    episodes: QualityEpisodes, corpus: CriticData, split: Split
) -> None:
    true = judge(episodes.value.ravel(), corpus, split, "bernoulli")
    flat = judge(np.full(episodes.value.size, float(corpus.reward.mean())), corpus, split, "bernoulli")
    assert true.loss["critic"] < true.loss["constant"] and true.tasks == len(np.unique(corpus.group[split.test]))
    assert abs(flat.gain["critic"][0]) < 0.02 and len(flat.curve) == 1
    assert judge(episodes.value.ravel(), corpus, split, "value").calibration is None


def test_calibration_error_of_honest_and_of_overconfident_predictions() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=20_000)
    y = (rng.uniform(size=p.size) < p).astype(float)
    one = np.ones_like(p)
    assert reliability(p, y, one).error < 0.02
    sharp = np.where(p > 0.5, 0.99, 0.01)
    curve = reliability(sharp, y, one)
    assert curve.error > 0.2 and len(curve.weight) == 2
    found = scores(p, y, float(y.mean()), np.arange(p.size), np.arange(p.size) // 10, "bernoulli")
    assert found.tasks == 2000 and 0.2 < found.gain < 0.35


def test_a_regression_on_counts_finds_its_weights() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20_000, 2))
    z = x @ [1.0, -0.5] + 0.3
    one = np.ones(len(x))
    logistic = fit_counts(x, (rng.uniform(size=len(x)) < 1 / (1 + np.exp(-z))).astype(float), one, "bernoulli")
    np.testing.assert_allclose(logistic, [1.0, -0.5, 0.3], atol=0.06)
    np.testing.assert_allclose(predict_counts(fit_counts(x, z, one, "value"), x, "value"), z, atol=0.01)


@pytest.mark.study
def test_a_critic_of_values_answers_in_units_of_reward(corpus: CriticData, split: Split, settings: Settings) -> None:
    shifted = corpus._replace(reward=corpus.reward * 10 + 100)
    found = fit(shifted, split, dataclasses.replace(settings, head="value", members=1, epochs=1))
    values, start = predict_corpus(found, shifted)
    assert 95 < float(start[0]) < 115 and 90 < values.mean() < 120
