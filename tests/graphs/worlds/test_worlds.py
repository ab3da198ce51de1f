"""Worlds: what they draw, and that what they say about it is true."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.worlds import Additive, Bernoulli, Episodes, Pivotal, World

from .planned_oracle import good_probability, plan_probability, qualities, true_values

OUTCOMES = {
    "additive": Additive(0.7, 0.5),
    "bernoulli": Bernoulli(0.9, 1.0),
    "pivotal": Pivotal(0.9, 0.2),
}
KINDS = sorted(OUTCOMES)


@pytest.fixture
def x64() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def small_world(kind: str, seed: int) -> World:
    """A world of at most two workers of two calls; probabilities are random, weights (a shape) are not."""
    rng = np.random.default_rng(seed)
    sizes = rng.dirichlet([2.0, 2.0])
    return World(
        difficulties=tuple(rng.normal(size=2)),
        group_size=4,
        max_workers=2,
        calls=2,
        size_probabilities=(float(sizes[0]), float(1 - sizes[0])),
        good_plan=rng.uniform(0.2, 0.8),
        good_call=tuple(rng.uniform(0.2, 0.8, 2)),
        good_aggregate=rng.uniform(0.2, 0.8),
        plan_weight=1,
        call_weights=(2, -1),
        aggregate_weight=1,
        worker_cost=1,
        chatter=0.5,
        outcome=OUTCOMES[kind],
    )


@pytest.mark.sampled
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.study) for seed in (1, 2))])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_increments_are_those_of_full_enumeration(kind: str, seed: int, x64: None) -> None:
    world = small_world(kind, seed)
    episodes = world.sample(jax.random.key(seed), 12)
    truth = world.increments(episodes)
    for row, record in enumerate(world.records(episodes)):
        values = true_values(world, episodes, row, record)
        got = np.asarray(truth.increments[row])[np.asarray(truth.event_mask[row])]
        np.testing.assert_allclose(got[record.actions], np.diff(values), atol=1e-9, rtol=0)
        assert not got[~np.array(record.actions)].any()
        np.testing.assert_allclose(truth.expected[row], values[0], atol=1e-9, rtol=0)
        np.testing.assert_allclose(truth.outcome[row], float(episodes.reward[row]) - values[-1], atol=1e-9, rtol=0)


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("seed", [10, *(pytest.param(seed, marks=pytest.mark.study) for seed in (11, 12))])
@pytest.mark.parametrize("kind", KINDS)
def test_increments_are_those_of_running_again(kind: str, seed: int) -> None:
    """D = Q(choice) - Σ π(a) Q(a), each Q the mean of fresh runs; within 5 standard errors."""
    runs, key = 2000, jax.random.key(7)
    world = small_world(kind, seed)
    episodes = world.sample(jax.random.key(seed), 12)
    truth = world.increments(episodes)
    row = seed % 3
    task, size = int(episodes.task[row]), int(episodes.size[row])
    actions = qualities(world, episodes, row, world.records(episodes)[row])
    mask = np.asarray(truth.event_mask[row])
    acted = [i for i, s in enumerate(np.asarray(world.log_order(episodes)[0])[row]) if _is_call(world, s, mask, i)]
    increments = np.asarray(truth.increments[row])[acted]
    for t, (agent, call, good) in enumerate(actions):
        choices: dict[tuple[bool, int | None], float] = {}
        if t == 0:
            for team, plan in itertools.product((1, 2), (False, True)):
                choices[plan, team] = plan_probability(world, task, team, plan)
            chosen: tuple[bool, int | None] = (good, size)
        else:
            p = good_probability(world, task, actions[0][2], agent, call)
            choices = {(True, None): p, (False, None): 1 - p}
            chosen = (good, None)
        estimate, variance = 0.0, 1e-12
        for number, ((alternative, team), p) in enumerate(choices.items()):
            fresh = jax.random.fold_in(key, 100 * seed + 10 * t + number)
            r = np.asarray(world.rerun(fresh, episodes, row, t, alternative, runs, size=team), np.float64)
            factor = float((alternative, team) == chosen) - p
            estimate += factor * r.mean()
            variance += factor**2 * r.var(ddof=1) / runs
        assert abs(increments[t] - estimate) < 5 * math.sqrt(variance) + 1e-6, (kind, seed, t)


def _is_call(world: World, slot: int, mask: np.ndarray, i: int) -> bool:
    return bool(mask[i]) and world.layout.slots[int(slot)].decision >= 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_reward_is_expected_plus_increments_plus_outcome(kind: str) -> None:
    world = small_world(kind, 3)
    episodes = world.sample(jax.random.key(3), 12)
    truth = world.increments(episodes)
    total = truth.expected + truth.increments.sum(1) + truth.outcome
    np.testing.assert_allclose(total, episodes.reward, atol=2e-6, rtol=0)


@pytest.mark.slow
def test_effects_and_choices_without_alternative_have_exactly_no_increment() -> None:
    world = World()
    episodes = world.sample(jax.random.key(0), 80)
    truth = world.increments(episodes)
    traces = world.traces(episodes)
    flat = truth.flat(traces.graph.num_events)
    assert flat.shape == traces.graph.event_type.shape
    assert not flat[~traces.graph.action_mask].any()
    assert not flat[traces.graph.event_type == EventType.STOP].any()
    decided = (traces.graph.event_type == EventType.MESSAGE) & traces.graph.action_mask
    assert np.all(flat[decided] != 0)  # the zeros above are no accident


@pytest.mark.study
def test_a_pivotal_message_earns_everything_that_is_not_luck() -> None:
    world = dataclasses.replace(World(outcome=Pivotal()), good_call=(0.5, 0.5), difficulties=(0.0,))
    episodes = world.sample(jax.random.key(2), 32)
    truth = world.increments(episodes)
    entries = np.asarray(world.log_order(episodes)[0])
    pivot = [s.decision == world.layout.call(0, world.calls - 1) for s in world.layout.slots]
    earned = np.asarray(truth.increments)[np.array(pivot)[entries]]
    np.testing.assert_allclose(earned, np.asarray(episodes.reward) - 0.5, atol=1e-6)
    np.testing.assert_allclose(np.abs(truth.increments).sum(1), 0.5, atol=1e-6)


@pytest.mark.study
def test_increments_have_mean_zero_given_the_past_and_are_uncorrelated() -> None:
    world = World(difficulties=(0.3,), max_workers=2, size_probabilities=(0.4, 0.6), outcome=Bernoulli(0.9, 3.0))
    n = 20_000
    episodes = world.sample(jax.random.key(11), n)
    truth = world.increments(episodes)
    entries = np.asarray(world.log_order(episodes)[0])
    chosen = np.array([s.decision >= 0 for s in world.layout.slots])[entries] & np.asarray(truth.event_mask)
    number = np.cumsum(chosen, 1) - 1
    by_action = np.zeros((n, world.layout.decisions))  # k-th action of each trace
    rows, columns = np.nonzero(chosen)
    by_action[rows, number[rows, columns]] = np.asarray(truth.increments)[rows, columns]
    reward, size, plan = np.asarray(episodes.reward), np.asarray(episodes.size), np.asarray(episodes.good[:, 0])

    def mean_is_zero(x: np.ndarray) -> None:
        assert abs(x.mean()) < 5 * x.std() / math.sqrt(len(x)) + 1e-6

    mean_is_zero(by_action[:, 0])
    mean_is_zero(np.asarray(truth.outcome, np.float64))
    for team, quality in itertools.product((1, 2), (False, True)):
        past = (size == team) & (plan == quality)
        for k in range(1, world.layout.decisions):
            mean_is_zero(by_action[past, k])
        for k in range(2, world.layout.decisions):
            mean_is_zero(by_action[past & (by_action[:, k - 1] >= 0), k])  # after a good choice, or none
    for i, j in itertools.combinations(range(world.layout.decisions), 2):
        mean_is_zero(by_action[:, i] * by_action[:, j])
    parts = by_action.var(0).sum() + np.asarray(truth.outcome, np.float64).var()
    np.testing.assert_allclose(parts, reward.var(), rtol=0.05)


@pytest.mark.study
def test_a_trace_does_not_depend_on_the_others() -> None:
    world = World()
    many = world.sample(jax.random.key(5), 80)
    few = world.sample(jax.random.key(5), 7)
    later = world.sample(jax.random.key(5), 7, first=9)
    other = world.sample(jax.random.key(6), 80)
    for field in dataclasses.fields(Episodes):
        all_rows = np.asarray(getattr(many, field.name))
        np.testing.assert_array_equal(getattr(few, field.name), all_rows[:7])
        np.testing.assert_array_equal(getattr(later, field.name), all_rows[9:16])
    assert not np.array_equal(many.good, other.good)
    assert not np.array_equal(many.tick, other.tick)


@pytest.mark.study
def test_draws_do_not_depend_on_the_default_precision() -> None:
    world = small_world("additive", 1)
    single = world.sample(jax.random.key(5), 12)
    jax.config.update("jax_enable_x64", True)
    try:
        double = world.sample(jax.random.key(5), 12)
    finally:
        jax.config.update("jax_enable_x64", False)
    for field in ("size", "good", "tick", "recipient"):
        np.testing.assert_array_equal(getattr(single, field), getattr(double, field))
    np.testing.assert_allclose(single.reward, double.reward, rtol=1e-6)


@pytest.mark.study
def test_a_run_again_keeps_the_past_and_the_forced_choice() -> None:
    """With the last choice that counts forced and no luck, outcomes have no spread; the plan's leave some."""
    world = dataclasses.replace(small_world("additive", 4), outcome=Additive(1.0, 0.0))
    episodes = world.sample(jax.random.key(1), 12)
    for row in range(4):
        actions = int(np.sum(np.asarray(episodes.active[row])))
        good = np.asarray(world.rerun(jax.random.key(2), episodes, row, actions - 2, True, 2000))
        bad = np.asarray(world.rerun(jax.random.key(2), episodes, row, actions - 2, False, 2000))
        own = good if episodes.good[row, -2] else bad
        np.testing.assert_array_equal(own, np.full(2000, episodes.reward[row]))
        np.testing.assert_array_equal(good - bad, np.full(2000, world.aggregate_weight))
        start = np.asarray(world.rerun(jax.random.key(2), episodes, row, 0, True, 2000, size=1))
        assert start.std() > 0
    few = world.rerun(jax.random.key(2), episodes, 3, 0, True, 5, size=1)
    np.testing.assert_array_equal(few, start[:5])


@pytest.mark.slow
def test_a_run_again_that_makes_no_sense_is_refused() -> None:
    world = World()
    episodes, key = world.sample(jax.random.key(1), 80), jax.random.key(2)
    for trace, t, size, word in ((80, 0, 1, "trace"), (0, 99, None, "t is"), (0, 0, None, "size"), (0, 1, 2, "size")):
        with pytest.raises(CreditError, match=word):
            world.rerun(key, episodes, trace, t, True, 8, size=size)
    with pytest.raises(CreditError, match="expected 1 to 4"):
        world.rerun(key, episodes, 0, 0, True, 8, size=5)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("group_size", 0),
        ("difficulties", ()),
        ("difficulties", (math.nan,)),
        ("size_probabilities", (0.5, 0.5)),
        ("size_probabilities", (0.5, 0.5, 0.5, 0.5)),
        ("good_plan", 1.0),
        ("good_call", (0.5,)),
        ("good_call", (0.0, 0.5)),
        ("chatter", 2.0),
        ("plan_weight", 0.5),
        ("call_weights", (1, 1)),
        ("outcome", "bernoulli"),
    ],
)
def test_a_world_names_the_parameter_that_is_wrong(field: str, value: object) -> None:
    with pytest.raises(CreditError, match=rf"World\.{field} is "):
        dataclasses.replace(World(), **{field: value})
