"""A critic's answer for a prefix depends on the prefix alone, bit for bit, and on all of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from estimators.critic.data import CriticData, Split, batches, pack, room, split_by_task
from estimators.critic.features import CLOCKS, event_features, event_kinds, feature_names, relations
from estimators.critic.network import Architecture, PrefixBatch, PrefixCritic, prefix_sum
from estimators.critic.predict import predict_corpus, predict_replaced
from estimators.critic.train import Fitted
from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.structure.prefix import pack as pack_graph
from graphs.structure.prefix import prefix
from graphs.worlds.quality import QualityEpisodes

pytestmark = pytest.mark.optimised


@pytest.mark.parametrize("t", [1, 3, 9, 19])
@pytest.mark.slow
def test_later_events_leave_values_bit_identical(
    episodes: QualityEpisodes, fitted: Fitted, changed: Callable[..., Any], t: int
) -> None:
    values = []
    for at in (20, t):
        graph, dense = changed(episodes, at)
        features = event_features(graph, dense=dense)
        values.append(predict_corpus(fitted, CriticData.of(graph, features, episodes.reward))[0].reshape(2, -1, 20))
    assert values[0][:, :, :t].tobytes() == values[1][:, :, :t].tobytes()
    assert (values[0][:, :, t] != values[1][:, :, t]).any()


@pytest.mark.slow
def test_every_earlier_event_can_move_a_value(corpus: CriticData, fitted: Fitted) -> None:
    last = np.array([19])
    before = predict_corpus(fitted, corpus)[0][:, last]
    for event in range(1, 19):
        features = corpus.features.copy()
        features[event, -6:] += 3
        assert (predict_corpus(fitted, corpus._replace(features=features))[0][:, last] != before).any(), event


def test_features_are_those_of_the_prefix_alone(episodes: QualityEpisodes) -> None:
    whole = event_features(episodes.graph)
    told = relations(episodes.graph)
    for t in (0, 4, 11):
        part = prefix(episodes.graph, 0, t)
        np.testing.assert_array_equal(event_features(part)[: t + 1], whole[: t + 1])
        mine = relations(part)
        np.testing.assert_array_equal(mine.previous[: t + 1], told.previous[: t + 1])
        np.testing.assert_array_equal(mine.birth[: t + 1], told.birth[: t + 1])


def test_features_against_a_count_by_hand(episodes: QualityEpisodes) -> None:
    graph, names = episodes.graph, feature_names()
    found = event_features(graph, tokens=np.full(graph.num_events, 7), event_reward=np.ones(graph.num_events))
    column = {name: found[:20, i] for i, name in enumerate(names)}
    kind, agent = graph.event_type[:20], graph.agent_ids[:20]
    for e in range(20):
        so_far, own = kind[: e + 1], agent[: e + 1] == agent[e]
        spawned = int(np.sum((so_far == EventType.SPAWN) & own))
        expected = {
            "depth": int(agent[e] != agent[0]),
            "fan_out": spawned,
            "pending": spawned,
            "own.events": int(own.sum()),
            "own.tokens": 7 * int(own.sum()),
            "so_far.message": int(np.sum(so_far == EventType.MESSAGE)),
            "so_far.agents": len(set(agent[: e + 1])),
            "so_far.actions": int(graph.action_mask[: e + 1].sum()),
            "so_far.tokens": 7 * (e + 1),
        }
        for name, count in expected.items():
            assert column[name][e] == np.float32(np.log1p(count)), (name, e)
        assert column["earned.so_far"][e] == e + 1
        assert column["type.spawn"][e] == (kind[e] == EventType.SPAWN)


def test_returns_lower_what_is_pending(episodes: QualityEpisodes) -> None:
    graph, names = episodes.graph, feature_names()
    kind = graph.event_type.copy()
    sub = np.flatnonzero((graph.agent_ids > 0) & (graph.trace_ids == 0))
    ends = [sub[graph.agent_ids[sub] == a][-1] for a in np.unique(graph.agent_ids[sub])]
    kind[ends[:2]] = EventType.RETURN
    found = np.expm1(event_features(dataclasses.replace(graph, event_type=kind))[:20]).round()
    place = np.arange(20)
    spawned = np.cumsum(kind[:20] == EventType.SPAWN)
    returned = np.cumsum(np.isin(place, ends[:2]))
    np.testing.assert_array_equal(found[:, names.index("so_far.pending")], spawned - returned)
    lead = graph.agent_ids[:20] == 0
    np.testing.assert_array_equal(found[lead, names.index("pending")], (spawned - returned)[lead])


@pytest.mark.slow
def test_prefix_sums_against_a_loop() -> None:
    rng = np.random.default_rng(0)
    lengths = [1, 70, 3, 200, 64, 5]
    trace = np.repeat(np.arange(len(lengths)), lengths)
    values = rng.normal(size=(len(trace) + 9, 2)).astype(np.float32)
    mask = np.arange(len(values)) < len(trace)
    values[~mask] = np.nan
    found = jax.jit(prefix_sum)(values, np.pad(trace, (0, 9)), mask)
    for at, of in enumerate(trace):
        expected = values[: at + 1][trace[: at + 1] == of].astype(np.float64).sum(axis=0)
        np.testing.assert_allclose(found[at], expected, rtol=0, atol=2e-5)
    assert not np.asarray(found[len(trace) :]).any()


@pytest.mark.slow
def test_sums_over_the_prefix_against_their_definition() -> None:
    """Each event over the root of its type's number; spawns beyond the number trained on by their mean."""
    rng = np.random.default_rng(0)
    kind = np.array([0, 1, 1, 1, 1, 1, 3, 0, 1, 3, 3], np.int32)
    trace = np.array([0] * 8 + [1] * 3, np.int32)
    counts = tuple(float(2 ** (i % 3)) for i in range(len(EventType)))
    none = np.zeros(0, np.int32)
    here = np.arange(len(kind), dtype=np.int32)
    mask = np.ones(len(kind), bool)
    batch = PrefixBatch(np.zeros((11, 40)), kind, trace, mask, here, here, none, none, none.astype(bool))
    values = rng.normal(size=(len(kind), 3)).astype(np.float32)
    opens = jnp.asarray(kind == EventType.SPAWN, jnp.float32)
    seen = prefix_sum(jnp.stack([jnp.ones(11), opens], axis=1), trace, mask)
    critic = PrefixCritic(Architecture(40, hidden=2, sums=2, counts=counts), nnx.Rngs(0))
    found = np.asarray(critic._sums(jnp.asarray(values), 1, seen, batch))
    assert found.shape == (11, 5)
    for e in range(11):
        before = [f for f in range(e + 1) if trace[f] == trace[e]]
        spawns = [f for f in before if kind[f] == EventType.SPAWN]
        most = counts[EventType.SPAWN]
        share = min(1, most / max(len(spawns), 1))
        weight = {f: (share if f in spawns else 1) / np.sqrt(counts[kind[f]]) for f in before}
        expected = np.concatenate([values[before, :2].mean(axis=0), sum(weight[f] * values[f] for f in before)])
        np.testing.assert_allclose(found[e], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_what_an_event_adds_does_not_depend_on_the_clocks(corpus: CriticData, fitted: Fitted) -> None:
    features = corpus.features.copy()
    features[5, list(CLOCKS)] = features.max(axis=0)[list(CLOCKS)]
    before, after = (predict_corpus(fitted, corpus._replace(features=f))[0] for f in (corpus.features, features))
    assert (before[:, 5] != after[:, 5]).all()
    assert np.delete(before, 5, axis=1).tobytes() == np.delete(after, 5, axis=1).tobytes()


@pytest.mark.slow
def test_beyond_the_range_trained_on_a_column_stays_at_its_end(
    corpus: CriticData, fitted: Fitted, split: Split
) -> None:
    far, most = corpus.features.copy(), corpus.features.copy()
    for column in (CLOCKS[0], corpus.features.shape[1] - 1):
        far[::7, column] += 1e3
        most[::7, column] = fitted.scaler.high[column]
    values = [predict_corpus(fitted, corpus._replace(features=f))[0] for f in (far, most)]
    assert values[0].tobytes() == values[1].tobytes()


@pytest.mark.slow
def test_a_padded_shape_holds_the_same_values(corpus: CriticData, fitted: Fitted, split: Split) -> None:
    to = room(corpus, 256)
    packed = list(batches(corpus, split.train, to))
    assert sum(int(b.trace_mask.sum()) for b in packed) == len(split.train)
    assert len({b.prefix.features.shape for b in packed}) == 1
    np.testing.assert_allclose(sum(float(b.weight.sum()) for b in packed), len(split.train) * 20 / 21, rtol=1e-5)
    with pytest.raises(CreditError, match="does not fit"):
        pack(corpus, split.train, to._replace(events=64))


@pytest.mark.slow
def test_an_alternative_is_valued_as_if_it_had_been_logged(corpus: CriticData, fitted: Fitted) -> None:
    at = np.array([3, 25, 26, 44])
    features = corpus.features[at + 100]
    found = predict_replaced(fitted, corpus, at, features)
    for i, event in enumerate(at):
        other = corpus.features.copy()
        other[event] = features[i]
        expected = predict_corpus(fitted, corpus._replace(features=other, kind=event_kinds(other)))[0][:, event]
        np.testing.assert_allclose(found[:, i], expected, rtol=0, atol=1e-6)


def test_tasks_are_never_on_two_sides() -> None:
    group = np.repeat(np.arange(10), 3)
    reward = np.where(np.arange(30) % 7 == 0, np.nan, 1.0)
    parts = split_by_task(group, reward, seed=3)
    tasks = [set(group[part]) for part in (parts.train, parts.validation, parts.test)]
    assert sum(map(len, tasks)) == len(set.union(*tasks)) == 10
    assert sum(len(p) for p in (parts.train, parts.validation, parts.test)) == np.isfinite(reward).sum()
    with pytest.raises(CreditError, match="outcomes in 2 tasks"):
        split_by_task(group[:6], reward[:6], seed=0)
    for part in (np.nan, np.inf, -0.1, 1.0):
        with pytest.raises(CreditError, match=f"test is {part}; expected a part of the tasks"):
            split_by_task(group, reward, seed=0, test=part)


@pytest.mark.slow
def test_wrong_input_is_refused_by_name(episodes: QualityEpisodes, corpus: CriticData, fitted: Fitted) -> None:
    graph = episodes.graph
    with pytest.raises(CreditError, match="dense of event 5"):
        event_features(graph, dense=np.where(np.arange(graph.num_events)[:, None] == 5, np.nan, 0.0))
    with pytest.raises(CreditError, match=r"tokens has shape \(3,\)"):
        event_features(graph, tokens=np.zeros(3))
    with pytest.raises(CreditError, match=r"feature columns; expected \d+, as fitted"):
        predict_corpus(fitted, corpus._replace(features=corpus.features[:, 1:]))
    holes = dataclasses.replace(graph, event_mask=np.arange(graph.num_events) % 2 == 0)
    with pytest.raises(CreditError, match="padding stands between"):
        CriticData.of(holes, np.zeros((graph.num_events, 1)), episodes.reward)
    assert pack_graph(prefix(graph, 1, 3)).event_mask[:4].all()
    assert jnp.isfinite(predict_corpus(fitted, corpus)[1]).all()
