"""The test of signs: where they are reported, and where they are not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimators.critic.data import Corpus, split_by_task
from estimators.critic.features import event_features
from estimators.critic.signs.circumstances import circumstances
from estimators.critic.signs.regions import regions
from estimators.critic.validation import validate_signs, validated_events
from graphs.event_types import EventType
from graphs.worlds.decisive import DecisiveEpisodes, DecisiveWorld


def corpus_of(episodes: DecisiveEpisodes) -> Corpus:
    return Corpus.of(episodes.graph, event_features(episodes.graph, dense=episodes.dense), episodes.reward)


def test_signs_are_validated_where_they_hold_and_nowhere_else() -> None:
    episodes = DecisiveWorld().sample(5, 480)
    corpus = corpus_of(episodes)
    split = split_by_task(corpus.group, corpus.reward, seed=0)
    acts = episodes.graph.action_mask
    size = corpus.lengths[0]
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1e-3, (8, len(corpus.features)))

    def tested(increments: np.ndarray) -> dict[int, bool]:
        after = 0.5 + np.cumsum(increments.reshape(-1, size), axis=1).ravel() + noise
        return {t.region.kind: t.validated for t in validate_signs(after, np.full(8, 0.5), corpus, acts, split.test)}

    decides, messages = int(EventType.ORCHESTRATOR_DECISION), int(EventType.MESSAGE)
    assert tested(episodes.increments)[decides] and not tested(episodes.increments)[messages]
    assert not tested(-episodes.increments)[decides]  # confident and wrong
    assert not any(tested(rng.choice([-0.2, 0.2], episodes.increments.shape)).values())  # confident about noise
    few = dataclasses.replace(split, test=split.test[:16])  # two tasks
    after = 0.5 + np.cumsum(episodes.increments, axis=1).ravel() + noise
    assert not any(t.validated for t in validate_signs(after, np.full(8, 0.5), corpus, acts, few.test))


def test_no_sign_is_reported_where_an_earlier_loss_made_the_rest_worthless() -> None:
    """Two signed steps a trace, of which the second does nothing after a bad first; the critic adds them up."""
    rng = np.random.default_rng(0)
    episodes = DecisiveWorld().sample(5, 480)
    corpus = corpus_of(episodes)
    size, traces = int(corpus.lengths[0]), len(corpus.lengths)
    acts = np.asarray(episodes.graph.action_mask)[: len(corpus.features)]
    early, late = np.flatnonzero(acts[:size] & (corpus.kind[:size] == EventType.MESSAGE))[[1, -1]]
    first, second = rng.choice([-1.0, 1.0], (2, traces))
    reward = 0.5 + 0.3 * first + np.where(first > 0, 0.4, 0.0) * second + 0.05 * rng.normal(size=traces)
    corpus = corpus._replace(reward=reward.astype(np.float32))
    steps = np.zeros((traces, size))
    steps[:, early], steps[:, late] = 0.3 * first, 0.2 * second  # the second's worth on average
    noise = rng.normal(0, 1e-3, (8, len(corpus.features)))
    after = 0.5 + np.cumsum(steps, axis=1).ravel() + noise
    start = np.full(8, 0.5)
    split = split_by_task(corpus.group, corpus.reward, seed=0)
    tests = validate_signs(after, start, corpus, acts, split.test)
    before = np.concatenate([np.full((8, 1), 0.5), after[:, :-1]], axis=1)
    before[:, corpus.start[:-1]] = start[:, None]
    trace = np.repeat(np.arange(traces), size)
    reported = validated_events(tests, before, after, corpus.kind, trace, acts).reshape(traces, size)
    assert reported[:, early].all()
    assert reported[first > 0, late].all() and not reported[first < 0, late].any()


def test_circumstances_are_those_of_the_prefix() -> None:
    trace = np.array([0, 0, 0, 1, 1, 2])
    amount = np.array([0.5, -0.25, 1.0, -1.0, 0.125, 3.0])
    before = np.array([1.0, 1.5, 1.25, 2.0, 1.0, 0.0])
    acts = np.array([True, True, True, False, True, True])
    change, least, greatest, actions = circumstances(before, amount, trace, acts)
    np.testing.assert_array_equal(change, [0, 0.5, 0.25, 0, -1, 0])
    np.testing.assert_array_equal(least, [0, 0, -0.25, 0, 0, 0])  # event 3 is no action
    np.testing.assert_array_equal(greatest, [0, 0.5, 0.5, 0, 0, 0])
    np.testing.assert_array_equal(actions, [0, 1, 2, 0, 0, 0])
    assert circumstances(before[:0], amount[:0], trace[:0], acts[:0]).shape == (4, 0)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_regions_part_the_events_of_a_type(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 400
    numbers, trace = rng.normal(size=(4, n)).round(1), np.repeat(np.arange(100), 4)
    amount = rng.normal(size=n)
    rest = amount * (numbers[0] > 0) * (1 + 2 * (numbers[2] > 0)) + 0.1 * rng.normal(size=n)
    found = regions(3, amount, rest, numbers, trace)
    assert len(found) > 1  # the slopes differ by far
    assert len({region.words() for region in found}) == len(found)
    held = np.sum([region.holds(np.full(n, 3), numbers) for region in found], axis=0)
    np.testing.assert_array_equal(held, 1)
    assert not any(region.holds(np.full(n, 4), numbers).any() for region in found)
