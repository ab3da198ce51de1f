"""Teams that learn: exact returns against enumeration, signals that must or must not teach, RLOO in NumPy."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credit.bench.training.learning_tasks import TASKS, LearningTask, learning_task
from credit.bench.training.training_loop import TrainingSettings, exact_return, train
from credit.bench.training.training_signals import training_signal
from graphs.errors import CreditError

pytestmark = pytest.mark.usefixtures("optax_promotes")

SHORT = TrainingSettings(steps=60, groups=8, group_size=8, learning_rate=0.1)


@pytest.mark.parametrize("name", ["bottleneck", "router", "stopping"])
@pytest.mark.sampled
def test_the_exact_return_is_the_sum_over_all_choices(name: str) -> None:
    task = learning_task(name)
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(task.kinds, task.decisions, task.choices)).astype(np.float32)
    policy = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    total = 0.0
    for kind in range(task.kinds):
        for choice in itertools.product(range(task.choices), repeat=len(task.decisive)):
            chance = np.prod([policy[kind, d, c] for d, c in zip(task.decisive, choice, strict=True)])
            total += chance * task.reward[(kind, *choice)] / task.kinds
    assert float(exact_return(task, jnp.asarray(logits))) == pytest.approx(total, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TASKS))
def test_every_task_can_be_learned_and_none_is_learned_at_the_start(name: str) -> None:
    task = learning_task(name)
    settings = TrainingSettings(steps=300, learning_rate=0.1)
    curve = np.asarray(train(task, training_signal("exact_increments"), settings, 0).expected)
    assert curve[0] < 0.9 * task.optimum
    assert curve[-1] > curve[0] + 0.8 * (task.optimum - curve[0])
    assert curve.max() <= task.optimum + 1e-6


def test_a_zero_signal_teaches_nothing_and_a_seed_repeats_bit_for_bit() -> None:
    task = learning_task("pivotal")
    still = train(task, training_signal("zero"), SHORT, 0)
    assert len(np.unique(np.asarray(still.expected))) == 1 and not np.asarray(still.cosine).any()
    one, two, other = (train(task, training_signal("rloo"), SHORT, seed) for seed in (1, 1, 2))
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(one, two, strict=True))
    assert np.asarray(one.expected).tobytes() != np.asarray(other.expected).tobytes()


@pytest.mark.slow
def test_exact_increments_teach_at_least_as_fast_as_the_team_reward() -> None:
    """As advantages, and as claims of the advantage "control", which also holds luck that no choice explains."""
    task = learning_task("bernoulli")
    area = {
        name: np.array([np.asarray(train(task, training_signal(name), SHORT, s).expected).mean() for s in range(4)])
        for name in ("rloo", "exact_increments", "control_exact")
    }
    error = area["rloo"].std(ddof=1) / 2
    assert area["exact_increments"].mean() > area["rloo"].mean() + 2 * error
    assert area["control_exact"].mean() > area["rloo"].mean()


def rloo_in_numpy(task: LearningTask, settings: TrainingSettings, seed: int) -> np.ndarray:
    """J along the way, with RLOO, a softmax table and Adam written out; all decisions taken, one kind."""
    rng = np.random.default_rng(seed)
    logits = np.zeros((task.decisions, task.choices))
    first, second, curve = np.zeros_like(logits), np.zeros_like(logits), []
    for step in range(1, settings.steps + 1):
        policy = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        curve.append(float(exact_return(task, jnp.asarray(logits[None], jnp.float32))))
        slope = np.zeros_like(logits)
        for _ in range(settings.groups):
            choice = np.array([[rng.choice(task.choices, p=p) for p in policy] for _ in range(settings.group_size)])
            reward = (rng.random(len(choice)) < [task.reward[(0, *c)] for c in choice]).astype(float)
            advantage = reward - (reward.sum() - reward) / (len(reward) - 1)
            for row, a in zip(choice, advantage, strict=True):
                slope -= a * (np.eye(task.choices)[row] - policy)
        slope /= settings.groups * settings.group_size
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        logits -= settings.learning_rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return np.array(curve)


@pytest.mark.slow
def test_rloo_here_and_in_numpy_lie_within_each_others_bands() -> None:
    task, settings = learning_task("bottleneck"), TrainingSettings(steps=25, groups=4, group_size=4, learning_rate=0.1)
    here = np.stack([np.asarray(train(task, training_signal("rloo"), settings, s).expected) for s in range(12)])
    plain = np.stack([rloo_in_numpy(task, settings, 100 + s) for s in range(12)])
    error = np.sqrt((here.var(axis=0, ddof=1) + plain.var(axis=0, ddof=1)) / 12)
    assert (np.abs(here.mean(axis=0) - plain.mean(axis=0)) <= 3.5 * error + 1e-6).all()
    assert here[:, -1].mean() > here[0, 0] + 0.05  # both have learned something


@pytest.mark.slow
def test_an_mlp_shared_by_all_decisions_learns() -> None:
    task = learning_task("router")
    settings = TrainingSettings(steps=150, policy="mlp", learning_rate=0.02)
    curve = np.asarray(train(task, training_signal("rloo"), settings, 0).expected)
    assert curve[-1] > curve[0] + 0.3


@pytest.mark.slow
def test_the_taken_gradient_points_along_the_exact_one() -> None:
    task = learning_task("additive")
    large = TrainingSettings(steps=3, groups=64, group_size=16, learning_rate=0.01)
    assert float(np.min(train(task, training_signal("exact_increments"), large, 0).cosine)) > 0.98
    logits = jnp.zeros((1, 6, 2))
    assert jax.grad(lambda x: exact_return(task, x))(logits).shape == logits.shape


def test_wrong_names_and_numbers_are_refused() -> None:
    with pytest.raises(CreditError, match="no task 'chess'"):
        learning_task("chess")
    with pytest.raises(CreditError, match="no signal 'magic'"):
        training_signal("magic")
    with pytest.raises(CreditError, match=r"needs .*, which the tasks do not have"):
        training_signal("c3")
    with pytest.raises(CreditError, match=r"TrainingSettings\.steps is 0"):
        TrainingSettings(steps=0)
