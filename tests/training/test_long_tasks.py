"""Tasks of any length and luck: their exact returns against enumeration, and training on them."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credit.bench.training.long_tasks import LongTask, Outcome, draw_long_task, expected_return, outcomes
from credit.bench.training.long_training import SIGNALS, long_cell, steps_to_90
from graphs.errors import CreditError

CHOICES = np.array(list(itertools.product((0, 1), repeat=7)))


def single(task: LongTask) -> LongTask:
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.int32 if x.dtype == np.int32 else jnp.float32), task)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("outcome", ["add", "interact", "threshold"])
def test_first_best_and_luck_are_those_of_all_choices(outcome: Outcome) -> None:
    task = draw_long_task(outcome, 7, 0.3, 5)
    unlucky = jnp.ones(len(CHOICES)), jnp.zeros(len(CHOICES))  # no outcome turned over, no noise
    plain = np.asarray(outcomes(single(task), jnp.zeros(len(CHOICES), int), jnp.asarray(CHOICES), unlucky))
    mean = plain + task.turned - 2 * plain * task.turned
    variance = mean * (1 - mean) if outcome == "threshold" else np.full(len(mean), task.noise**2)
    assert mean.mean() == pytest.approx(float(task.first), abs=1e-6)
    assert mean.max() == pytest.approx(float(task.best), abs=1e-6)
    share = variance.mean() / (variance.mean() + mean.var())
    assert share == pytest.approx(0.3, abs=1e-5)
    chance = np.linspace(0.1, 0.8, 7)
    probability = np.prod(np.where(CHOICES == 1, chance, 1 - chance), axis=1)
    found = expected_return(single(task), jnp.asarray(chance, jnp.float32)[None])
    assert float(found) == pytest.approx(probability @ mean, abs=1e-6)


def test_what_is_out_of_range_is_refused() -> None:
    with pytest.raises(CreditError, match="luck 1; expected 2 or more, and 0 to below 1"):
        draw_long_task("add", 7, 1, 0)
    with pytest.raises(CreditError, match=r"seeds and tuning share \[3\]"):
        long_cell("add", 4, 0.0, "rloo", seeds=[3], tuning=[2, 3], budget=10)


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("signal", SIGNALS)
def test_every_signal_learns_an_easy_task(signal: str) -> None:
    found = steps_to_90("shared" if signal == "posterior" else "add", 4, 0.0, signal, [0, 1], 8.0, "sgd", 16 * 4 * 80)
    assert np.isfinite(found).all()


@pytest.mark.sampled
@pytest.mark.slow
def test_natural_steps_learn_and_a_seed_does_not_depend_on_its_neighbours() -> None:
    run = functools.partial(steps_to_90, "add", 4, 0.0, "rloo", rate=2.0, optimizer="natural", budget=16 * 4 * 80)
    many = run(seeds=range(18))
    assert np.isfinite(many).mean() > 0.8
    np.testing.assert_array_equal(many[16:], run(seeds=[16, 17]))
    wide = run(seeds=range(4), groups=8)
    assert np.all(wide[np.isfinite(wide)] % (32 * 4) == 0)
