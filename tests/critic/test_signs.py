"""The test of signs: where they are reported, and where they are not."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.worlds.decisive import DecisiveEpisodes, DecisiveWorld
from estimators.critic.data import CriticData, split_by_task
from estimators.critic.features import event_features
from estimators.critic.signs.circumstances import circumstances
from estimators.critic.signs.places import LEVEL, PlaceTest, held_out_mean, mean_of_signs, place_tests
from estimators.critic.signs.regions import regions
from estimators.critic.validation import Fold, cross_fit, validate_signs, validated_events
from graphs.event_types import EventType


def critic_data(episodes: DecisiveEpisodes) -> CriticData:
    return CriticData.of(episodes.graph, event_features(episodes.graph, dense=episodes.dense), episodes.reward)


@pytest.mark.slow
def test_signs_are_validated_where_they_hold_and_nowhere_else() -> None:
    episodes = DecisiveWorld().sample(5, 480)
    corpus = critic_data(episodes)
    split = split_by_task(corpus.group, corpus.reward, seed=0)
    acts = episodes.graph.action_mask
    size = corpus.lengths[0]
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1e-3, (8, len(corpus.features)))

    def tested(increments: np.ndarray) -> dict[int, bool]:
        after = 0.5 + np.cumsum(increments.reshape(-1, size), axis=1).ravel() + noise
        tests = validate_signs(after, np.full(8, 0.5), corpus, acts, split.test, roles=0)
        return {t.region.kind: t.validated for t in tests}

    decides, messages = int(EventType.ORCHESTRATOR_DECISION), int(EventType.MESSAGE)
    assert tested(episodes.increments)[decides] and not tested(episodes.increments)[messages]
    assert not tested(-episodes.increments)[decides]  # confident and wrong
    assert not any(tested(rng.choice([-0.2, 0.2], episodes.increments.shape)).values())  # confident about noise
    few = dataclasses.replace(split, test=split.test[:16])  # two tasks
    after = 0.5 + np.cumsum(episodes.increments, axis=1).ravel() + noise
    assert not any(t.validated for t in validate_signs(after, np.full(8, 0.5), corpus, acts, few.test, roles=0))


class TwoMessages(NamedTuple):
    """Episodes in which two messages of each trace have a sign, drawn at random: float [traces] each."""

    corpus: CriticData
    action_mask: np.ndarray
    early: int
    late: int
    first: np.ndarray
    second: np.ndarray
    held_out: np.ndarray
    rng: np.random.Generator

    @classmethod
    def drawn(cls, seed: int) -> TwoMessages:
        rng = np.random.default_rng(seed)
        episodes = DecisiveWorld().sample(5, 480)
        corpus = critic_data(episodes)
        size = int(corpus.lengths[0])
        acts = np.asarray(episodes.graph.action_mask)[: len(corpus.features)]
        early, late = np.flatnonzero(acts[:size] & (corpus.kind[:size] == EventType.MESSAGE))[[1, -1]].tolist()
        first, second = rng.choice([-1.0, 1.0], (2, len(corpus.lengths)))
        held_out = split_by_task(corpus.group, corpus.reward, seed=0).test
        return cls(corpus, acts, early, late, first, second, held_out, rng)

    def reported(self, reward: np.ndarray, worth: float) -> tuple[np.ndarray, np.ndarray]:
        """Whether the first and the second have a reported sign, where a critic adds up ± 0.3 and ± `worth`."""
        corpus, acts = self.corpus._replace(reward=reward.astype(np.float32)), self.action_mask
        steps = np.zeros((len(corpus.lengths), int(corpus.lengths[0])))
        steps[:, self.early], steps[:, self.late] = 0.3 * self.first, worth * self.second
        after = 0.5 + np.cumsum(steps, axis=1).ravel() + self.rng.normal(0, 1e-3, (8, len(corpus.features)))
        start = np.full(8, 0.5)
        tests = validate_signs(after, start, corpus, acts, self.held_out, roles=0)
        before = np.concatenate([np.full((8, 1), 0.5), after[:, :-1]], axis=1)
        before[:, corpus.start[:-1]] = start[:, None]
        reported = validated_events(tests, before, after, corpus, acts, roles=0).reshape(steps.shape)
        return reported[:, self.early], reported[:, self.late]


def test_no_sign_is_reported_where_an_earlier_loss_made_the_rest_worthless() -> None:
    """Two signed steps a trace, of which the second does nothing after a bad first; the critic adds them up."""
    drawn = TwoMessages.drawn(seed=0)
    first, second = drawn.first, drawn.second
    reward = 0.5 + 0.3 * first + np.where(first > 0, 0.4, 0.0) * second + 0.05 * drawn.rng.normal(size=len(first))
    early, late = drawn.reported(reward, worth=0.2)  # the second's worth on average
    assert early.all()
    # Noise puts a few late events into the region of the early ones, where only one held-out task has a late one.
    assert late[first > 0].mean() > 0.9 and not late[first < 0].any()


def test_a_sign_is_reported_where_both_its_region_and_its_place_passed() -> None:
    drawn = TwoMessages.drawn(seed=0)
    corpus, acts = drawn.corpus._replace(reward=(0.5 + 0.3 * drawn.first).astype(np.float32)), drawn.action_mask
    steps = np.zeros((len(corpus.lengths), int(corpus.lengths[0])))
    steps[:, drawn.early] = 0.3 * drawn.first
    after = 0.5 + np.cumsum(steps, axis=1).ravel() + drawn.rng.normal(0, 1e-3, (8, len(corpus.features)))
    before = np.concatenate([np.full((8, 1), 0.5), after[:, :-1]], axis=1)
    before[:, corpus.start[:-1]] = 0.5
    tests = validate_signs(after, np.full(8, 0.5), corpus, acts, drawn.held_out, roles=0)
    failed = {
        "neither": tests,
        "region": tuple(test._replace(validated=False) for test in tests),
        "place": tuple(
            test._replace(places=tuple(each._replace(validated=False) for each in test.places)) for test in tests
        ),
    }
    reported = {
        name: validated_events(of, before, after, corpus, acts, roles=0).reshape(steps.shape)[:, drawn.early].mean()
        for name, of in failed.items()
    }
    assert reported == {"neither": 1, "region": 0, "place": 0}


def signs_of(effect: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of two messages are reported, bool [traces]: ± 0.3, and an effect that is ± 0.1 on the known tasks."""
    drawn = TwoMessages.drawn(seed)
    effects = np.full(len(drawn.first), 0.1)
    effects[drawn.held_out] = effect
    noise = 0.2 * drawn.rng.normal(size=len(drawn.first))
    return drawn.reported(0.5 + 0.3 * drawn.first + effects * drawn.second + noise, worth=0.1)


def by_folds(effect: float, seed: int) -> tuple[bool, bool]:
    """Whether a message of some effect has a sign, by the held-out tasks, of which there are two, and by folds."""
    rng = np.random.default_rng(seed)
    episodes = DecisiveWorld(group_size=40).sample(5, 480)
    corpus, size = critic_data(episodes), episodes.increments.shape[1]
    acts = np.asarray(episodes.graph.action_mask)[: len(corpus.features)]
    bit = rng.choice([-1.0, 1.0], 480)
    reward = (rng.random(480) < 0.5 + effect / 2 * bit).astype(np.float32)
    corpus, task = corpus._replace(reward=reward), corpus.group

    def values(held_out: np.ndarray) -> np.ndarray:
        """Those of critics that learned the sign of the effect from the other tasks."""
        learned = 0.5 * np.mean((reward * bit)[~held_out]) * 2
        steps = np.zeros((480, size))
        steps[:, 1] = learned * bit
        return 0.5 + np.cumsum(steps, axis=1).ravel() + rng.normal(0, 1e-3, (8, len(corpus.features)))

    parts = [np.isin(task, part) for part in np.array_split(np.unique(task), 5)]
    folds = tuple(Fold(values(part), np.full(8, 0.5), np.flatnonzero(part)) for part in parts)
    own = values(parts[-1]), np.full(8, 0.5), corpus, acts, np.flatnonzero(parts[-1])
    alone, every = validate_signs(*own, roles=0), validate_signs(*own, roles=0, folds=folds)
    alone_held, every_held = (
        any(test.validated and any(place.validated for place in test.places) for test in tests)
        for tests in (alone, every)
    )
    return alone_held, every_held


def test_folds_find_an_effect_that_few_held_out_tasks_do_not_show() -> None:
    """Of 12 tasks two are held out, where a test takes four: no sign of an effect of .6 was reported in 504 traces."""
    assert by_folds(0.6, seed=0) == (False, True)


@pytest.mark.study
def test_folds_find_signs_in_noise_as_rarely_as_stated() -> None:
    """The critics of the folds agree on a sign that the whole log chose: the test must be two-sided."""
    assert sum(by_folds(0.0, seed)[1] for seed in range(40)) <= 4  # at 2.5 %: more has a chance of 0.3 %


def test_messages_that_matter_do_not_validate_a_message_without_effect() -> None:
    """In one of three fits of two worlds they did: 19 and 20 % of the actions without an effect had a sign."""
    assert np.mean(signs_of(0.1, seed=0)) > 0.9
    early, late = signs_of(0.0, seed=0)
    assert early.mean() > 0.9 and not late.any()


@pytest.mark.study
def test_folds_of_fitted_critics_find_the_decision_and_nothing_else() -> None:
    episodes = DecisiveWorld(good=0.8, bad=0.2, group_size=42).sample(0, 504)
    corpus = critic_data(episodes)
    acts = np.asarray(episodes.graph.action_mask)[: len(corpus.features)]
    folds = cross_fit(corpus, head="bernoulli", roles=0)
    assert sorted(np.concatenate([fold.held_out for fold in folds])) == list(range(504))
    after, start, held_out = folds[0]
    tests = validate_signs(after, start, corpus, acts, held_out, roles=0, folds=folds)
    before = np.concatenate([np.full((len(start), 1), 0.5), after[:, :-1]], axis=1)
    before[:, corpus.start[:-1]] = start[:, None]
    decided = np.abs((after - before).mean(axis=0)) > 0.1
    reported = validated_events(tests, before, after, corpus, acts, roles=0) & decided
    assert set(np.flatnonzero(reported) % episodes.increments.shape[1]) == {episodes.decisive}


@pytest.mark.study
def test_a_place_without_effect_passes_as_rarely_as_stated() -> None:
    passed = sum(signs_of(0.0, seed)[1].any() for seed in range(100))
    assert passed <= 7  # of 100 at 2.5 %: more has a chance of 0.4 %


def test_what_other_events_explain_is_no_noise_of_a_place() -> None:
    """A place of effect 0.1 under noise of 1 that the critic explains, and under the same noise that it does not."""
    rng = np.random.default_rng(0)
    n = 200
    sign, noise, task = rng.choice([-1.0, 1.0], n), rng.normal(size=n), np.repeat(np.arange(20), 10)
    held_out, place = task >= 10, np.full(n, 7)
    (clear,) = place_tests(place, sign, 0.1 * sign + 0.01 * noise, task, held_out)
    (hidden,) = place_tests(place, sign, 0.1 * sign + noise, task, held_out)
    assert clear.validated and clear.place == 7 and clear.result.tasks == 10 and clear.result.events == 100
    assert clear.result.mean == pytest.approx(0.1, abs=0.01) and not hidden.validated
    (wrong,) = place_tests(place, -sign, 0.1 * sign + 0.01 * noise, task, held_out)
    assert wrong.result.p_value > 0.999
    (unknown,) = place_tests(place, np.ones(n), np.full(n, 0.5), task, np.ones(n, bool))
    assert unknown.result.mean == 0.5 and unknown.result.p_value == 1  # an offset of the critic looks like a sign
    few = task >= 17  # three tasks
    assert place_tests(place, sign, 0.1 * sign, task, few)[0].result.p_value == 1


class Counted(np.ndarray):
    """Numbers that count how many of them were computed with."""

    seen = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):  # type: ignore[no-untyped-def]
        type(self).seen += max(np.size(each) for each in inputs)
        plain = [each.view(np.ndarray) if isinstance(each, Counted) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **options)


@pytest.mark.slow
@pytest.mark.parametrize("places", [1, 40, 4000])
def test_many_places_are_tested_as_each_alone_is_without_a_pass_for_each(places: int) -> None:
    rng = np.random.default_rng(places)
    n = 4000
    place, task, held_out = rng.integers(places, size=n), rng.integers(50, size=n), rng.random(n) < 0.5
    sign, alone = rng.choice([-1.0, 1.0], n), rng.normal(size=n)
    Counted.seen = 0
    found = place_tests(place.view(Counted), sign, alone, task, held_out)
    assert 0 < Counted.seen < 4 * n
    slow = []
    for key in sorted(set(place[held_out].tolist())):
        at, others = (place == key) & held_out, (place == key) & ~held_out
        off = alone[others].mean() if others.any() else 0.0
        result = held_out_mean(sign[at] * (alone[at] - off), task[at])
        result = result if others.any() else result._replace(p_value=1.0)
        slow.append(PlaceTest(key, result, result.p_value < LEVEL))
    assert found == tuple(slow)


def test_no_event_has_no_place() -> None:
    nothing = np.zeros(0)
    assert place_tests(nothing.astype(int), nothing, nothing, nothing.astype(int), nothing.astype(bool)) == ()


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


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("tasks", "success", "sign", "least", "most"),
    [
        (60, 0.5, 1, 0.02, 0.05),
        (60, 0.95, 1, 0.06, 0.11),
        (60, 0.95, -1, 0.005, 0.03),
        (20, 0.95, 1, 0.16, 0.23),
        (20, 0.95, -1, 0.003, 0.025),
    ],
)
def test_the_rate_of_the_test_of_a_place_where_nothing_is_to_be_found(
    tasks: int, success: float, sign: int, least: float, most: float
) -> None:
    """A fifth of the tasks is held out: m has an error of its own, and rare failures make outcomes uneven."""
    rng, task = np.random.default_rng(0), np.repeat(np.arange(tasks), 8)
    passed = [
        mean_of_signs(np.full(len(task), float(sign)), outcome - success, task, task < tasks // 5).p_value < LEVEL
        for outcome in rng.random((1500, len(task))) < success
    ]
    assert least < np.mean(passed) < most
