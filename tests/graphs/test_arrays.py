"""Segments, pair ids and padding, against loops over lists."""

from __future__ import annotations

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from linear_time import seconds

import credit
from credit.bench.bias import x64
from estimators.clusters import independent_groups
from graphs import CapacityError, EventGraph, Sizes, bucket, level_ids, pad, pair_ids, sizes, unpad
from graphs.event_graph import AGENT_FIELDS, EDGE_FIELDS, EVENT_FIELDS, TRACE_FIELDS
from graphs.levels import TABLE_LEVELS, ids_on_host, key_ids, unit_ids
from graphs.padding import pad_array
from graphs.segment import (
    safe_divide,
    safe_sqrt,
    segment_count,
    segment_first,
    segment_mean,
    segment_sum,
    segment_sum_squares,
)
from graphs.structure.host_ids import among, by_id, distinct

LENGTH, SEGMENTS = 40, 11


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_counts_of_few_segments_are_those_of_bincount(dtype: type) -> None:
    rng = np.random.default_rng(0)
    ids, where = np.sort(rng.integers(0, 5, 3000)).astype(np.int32), rng.random(3000) < 0.7
    count = segment_count(ids, 7, where, dtype)
    assert count.dtype == dtype and count.tolist() == np.bincount(ids[where], minlength=7).tolist()


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, unsorted ids with two segments that stay empty, and a mask outside which values are not finite."""
    rng = np.random.default_rng(seed)
    where = rng.random(LENGTH) < 0.7
    values = rng.normal(size=LENGTH).astype(np.float32)
    values[~where] = np.resize([np.nan, np.inf, -np.inf], (~where).sum())
    return values, rng.integers(0, SEGMENTS - 2, LENGTH).astype(np.int32), where


def segments(values: np.ndarray, ids: np.ndarray, where: np.ndarray) -> list[list[float]]:
    return [[float(v) for v, i, w in zip(values, ids, where, strict=True) if w and i == s] for s in range(SEGMENTS)]


@pytest.mark.parametrize("seed", range(3))
def test_segment_reductions(seed: int) -> None:
    values, ids, where = draw(seed)
    lists = segments(values, ids, where)
    means = [math.fsum(xs) / len(xs) if xs else 0.0 for xs in lists]
    squares = [math.fsum((x - m) ** 2 for x in xs) for xs, m in zip(lists, means, strict=True)]
    places = [[i for i in range(LENGTH) if where[i] and ids[i] == s] for s in range(SEGMENTS)]
    mean = jax.jit(segment_mean, static_argnums=2)(values, ids, SEGMENTS, where)
    np.testing.assert_allclose(segment_sum(values, ids, SEGMENTS, where), [math.fsum(xs) for xs in lists], atol=1e-5)
    np.testing.assert_array_equal(segment_count(ids, SEGMENTS, where), [len(xs) for xs in lists])
    np.testing.assert_allclose(mean, means, atol=1e-6)
    np.testing.assert_allclose(segment_sum_squares(values, mean, ids, SEGMENTS, where), squares, atol=1e-5)
    np.testing.assert_array_equal(segment_first(ids, SEGMENTS, where), [min(p, default=0) for p in places])


@pytest.mark.slow
def test_sum_squares_keeps_its_digits_far_from_zero() -> None:
    values = np.array([10000.0, 10001.0, 10002.0], np.float32)
    ids, where = np.zeros(3, np.int32), np.ones(3, bool)
    mean = segment_mean(values, ids, 1, where)
    assert float(segment_sum_squares(values, mean, ids, 1, where)[0]) == 2.0


@pytest.mark.slow
def test_gradients_of_reductions_are_finite_outside_the_mask() -> None:
    values, ids, where = draw(0)

    def total(x: jax.Array) -> jax.Array:
        mean = segment_mean(x, ids, SEGMENTS, where)
        return jnp.sum(safe_sqrt(segment_sum_squares(x, mean, ids, SEGMENTS, where)))

    for x in (values, np.where(where, np.float32(0.1), values)):
        slope = np.asarray(jax.grad(total)(x))
        assert np.isfinite(slope).all() and not slope[~where].any()


@pytest.mark.slow
@pytest.mark.parametrize(("x", "root", "slope"), [(4.0, 2.0, 0.25), (0.0, 0.0, 0.0), (-1e-9, 0.0, 0.0)])
def test_safe_sqrt(x: float, root: float, slope: float) -> None:
    assert jax.value_and_grad(safe_sqrt)(x) == (root, slope)


@pytest.mark.parametrize(("a", "b", "quotient"), [(1.0, 4.0, 0.25), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, -2.0, 0.0)])
def test_safe_divide(a: float, b: float, quotient: float) -> None:
    value, slopes = jax.value_and_grad(safe_divide, argnums=(0, 1))(a, b)
    assert value == quotient and np.isfinite(slopes).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("top", [3, 2**31 - 1])
def test_pair_ids_number_the_pairs_like_a_dict(seed: int, top: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.choice(np.array([-top, 0, top // 4, top], np.int32), LENGTH)  # products and differences overflow
    second = (rng.integers(0, 3, LENGTH) * (top // 3)).astype(np.int32)
    mask = rng.random(LENGTH) < 0.8
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    number = {pair: i for i, pair in enumerate(sorted({p for p, m in zip(pairs, mask, strict=True) if m}))}
    expected = [number[p] if m else 0 for p, m in zip(pairs, mask, strict=True)]
    np.testing.assert_array_equal(pair_ids(jnp.asarray(first), jnp.asarray(second), jnp.asarray(mask)), expected)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [2, 2**20, 2**31 - 1])
def test_pair_ids_side_by_side_are_the_same_pairs_in_the_same_order(seed: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, LENGTH).astype(np.int32)
    second = (rng.integers(-1, 2, LENGTH) * (spread // 2) + 5).astype(np.int32)  # few fit beside each other, or none
    mask = rng.random(LENGTH) < 0.8
    plain = np.asarray(pair_ids(first, second, mask))
    found = np.asarray(pair_ids(first, second, mask, 4))
    assert found.min() >= 0 and found.max() < LENGTH and not found[~mask].any()
    assert len(np.unique(found[mask])) == len(np.unique(plain[mask]))
    order = np.argsort(plain[mask], kind="stable")
    assert (np.diff(found[mask][order]) >= 0).all()


def test_pair_ids_of_ranges_that_int32_does_not_hold() -> None:
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    mask = np.ones(3, bool)
    ids = jax.jit(pair_ids, static_argnames="num_first")
    assert ids(np.array([0, 0, 1]), np.array([least, most, 5]), mask, num_first=2).tolist() == [0, 1, 2]


def test_pair_ids_of_nothing() -> None:
    zeros = jnp.zeros(4, jnp.int32)
    assert pair_ids(zeros, zeros, jnp.zeros(4, bool)).tolist() == [0, 0, 0, 0]


def graph_of(events: int, edges: int, agents: int, traces: int, seed: int = 0) -> EventGraph:
    """An unpadded graph with each field drawn; every trace has an agent and an event."""
    rng = np.random.default_rng(seed)
    agent_trace = np.sort(np.concatenate([np.arange(traces), rng.integers(0, traces, agents - traces)]))
    trace_ids = np.sort(np.concatenate([np.arange(traces), rng.integers(0, traces, events - traces)]))
    agent_ids = np.array([rng.choice(np.flatnonzero(agent_trace == t)) for t in trace_ids])
    senders = rng.integers(0, events - 1, edges)

    def integers(values: np.ndarray) -> np.ndarray:
        return values.astype(np.int32)

    return EventGraph(
        event_type=integers(rng.integers(0, 11, events)),
        action_mask=rng.random(events) < 0.5,
        event_mask=np.ones(events, bool),
        time=rng.normal(size=events).astype(np.float32),
        trace_ids=integers(trace_ids),
        agent_ids=integers(agent_ids),
        turn_ids=integers(np.arange(events)),
        senders=integers(senders),
        receivers=integers(senders + 1),
        edge_type=integers(rng.integers(0, 8, edges)),
        edge_mask=np.ones(edges, bool),
        agent_name_ids=integers(rng.integers(0, 3, agents)),
        agent_role_ids=integers(rng.integers(0, 2, agents)),
        agent_parent=integers(np.arange(agents)),
        agent_trace=integers(agent_trace),
        agent_mask=np.ones(agents, bool),
        group_ids=integers(np.sort(rng.integers(0, max(1, traces // 2), traces))),
        trace_mask=np.ones(traces, bool),
    )


@pytest.mark.slow
def test_units_and_keys_of_agents_like_dicts() -> None:
    graph = graph_of(30, 20, 12, 5)
    padded = pad(graph)
    for by, names in (("agent_name", graph.agent_name_ids), ("role_name", graph.agent_role_ids)):
        for found, first in (
            (unit_ids(padded, by), graph.agent_trace),
            (key_ids(padded, by), graph.group_ids[graph.agent_trace]),
        ):
            pairs = list(zip(first.tolist(), names.tolist(), strict=True))
            number = {pair: i for i, pair in enumerate(sorted(set(pairs)))}
            assert found[:12].tolist() == [number[pair] for pair in pairs]
            assert not found[12:].any()
    with pytest.raises(ValueError, match="by is 'team'"):
        unit_ids(padded, "team")  # type: ignore[arg-type]


def test_levels_are_nested() -> None:
    graph = pad(graph_of(30, 20, 12, 5))
    coarse_to_fine = [np.asarray(level_ids(graph, level))[:30] for level in ("trace", "role", "agent", "event")]
    for coarse, fine in itertools.pairwise(coarse_to_fine):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == len(set(fine.tolist()))
    with pytest.raises(ValueError, match="level is 'team'"):
        level_ids(graph, "team")  # type: ignore[arg-type]


def test_levels_are_the_same_on_the_host() -> None:
    graph = pad(graph_of(30, 20, 12, 5))
    for level in TABLE_LEVELS:
        ids, compiled = ids_on_host(graph, level), np.asarray(level_ids(graph, level))
        assert np.array_equal(ids, compiled) and ids.dtype == compiled.dtype
    with pytest.raises(ValueError, match="level is 'team'"):
        ids_on_host(graph, "team")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("real", "padded"),
    [
        (Sizes(1, 0, 1, 1), Sizes(128, 8, 128, 128)),
        (Sizes(128, 1, 64, 32), Sizes(128, 256, 64, 32)),
        (Sizes(129, 200, 10, 4), Sizes(256, 512, 128, 64)),
        (Sizes(300, 0, 300, 300), Sizes(512, 8, 512, 512)),  # rows of single-turn traces
        (Sizes(300, 1100, 300, 10), Sizes(512, 2048, 512, 512)),
        (Sizes(300, 400, 10, 200), Sizes(512, 1024, 512, 512)),
        (Sizes(100, 10, 200, 10), Sizes(128, 256, 256, 128)),  # more agents than events
        (Sizes(2**21, 2**22, 2**20, 512), Sizes(2**21, 2**22, 2**20, 2**19)),
    ],
)
def test_bucket_rule(real: Sizes, padded: Sizes) -> None:
    assert bucket(real) == padded


def test_pad_and_unpad_are_inverse() -> None:
    graph = graph_of(30, 20, 12, 5)
    padded = pad(graph)
    assert sizes(padded) == Sizes(30, 20, 12, 5)
    assert (padded.num_events, padded.num_edges, padded.num_agents, padded.num_traces) == bucket(sizes(graph))
    back = unpad(padded)
    for field in dataclasses.fields(EventGraph):
        before, after = np.asarray(getattr(graph, field.name)), np.asarray(getattr(back, field.name))
        assert after.dtype == before.dtype
        np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(unpad(pad(padded, Sizes(31, 21, 13, 6))).trace_ids, graph.trace_ids)


def test_padding_has_id_zero_and_mask_false() -> None:
    padded = pad(graph_of(30, 20, 12, 5))
    for fields, real in ((EVENT_FIELDS, 30), (EDGE_FIELDS, 20), (AGENT_FIELDS, 12), (TRACE_FIELDS, 5)):
        for field in fields:
            rest = getattr(padded, field)[real:]
            assert np.isnan(rest).all() if field == "time" else not rest.any()


@pytest.mark.parametrize("axis", range(4))
def test_nothing_is_truncated(axis: int) -> None:
    graph = graph_of(30, 20, 12, 5)
    room = sizes(graph)
    small = room._replace(**{Sizes._fields[axis]: room[axis] - 1})
    with pytest.raises(CapacityError) as caught:
        pad(graph, small)
    name = Sizes._fields[axis]
    assert (caught.value.axis, caught.value.need, caught.value.room) == (name, room[axis], room[axis] - 1)
    assert f"pass {name}={room[axis]} or more" in str(caught.value)


def test_pad_array_keeps_dtype_and_trailing_axes() -> None:
    out = pad_array(np.ones((2, 3), np.float16), 4, np.nan)
    assert out.dtype == np.float16 and out.shape == (4, 3) and np.isnan(out[2:]).all()


@pytest.mark.slow
def test_distinct_numbers_take_a_sort_and_no_table_of_hashes() -> None:
    """`np.unique` took 30 times as long for 300,000 numbers as for 30,000: 0.2 seconds, where the sort takes 0.014."""
    values = np.random.default_rng(0).integers(0, 3_000_000, 300_000)
    np.testing.assert_array_equal(distinct(values), np.unique(values))
    assert seconds(lambda: distinct(values)) < 4 * seconds(lambda: np.sort(values))
    assert distinct(values[:0]).tolist() == [] and distinct(np.array([2, 1, 2])).tolist() == [1, 2]


@pytest.mark.parametrize("most", [9, 2**16 - 1, 2**16, 2**40])
@pytest.mark.parametrize("least", [0, -5])
def test_rows_by_id_are_those_of_one_sort_of_all_ids(least: int, most: int) -> None:
    """Ids of 16 bits are sorted by counts; one above them, or below 0, would come back as another."""
    rng = np.random.default_rng(most % 97)
    first, next_one = np.append(rng.integers(0, 9, 200), [least, most]), rng.integers(0, 3, 202)
    np.testing.assert_array_equal(by_id(first), np.argsort(first, kind="stable"))
    np.testing.assert_array_equal(by_id(next_one, first), np.lexsort((first, next_one)))
    np.testing.assert_array_equal(among(first, (least, most)), np.isin(first, (least, most)))
    assert by_id(first[:0]).tolist() == []


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_counts_of_few_segments_take_ids_of_any_width(dtype: type) -> None:
    """Counted in parts, whose ids are several times as large: 20 of 8 bits would overflow."""
    ids = (np.arange(400) % 20).astype(dtype)
    with x64():
        assert segment_count(jnp.asarray(ids), 20, jnp.arange(400) != 19).tolist() == [20] * 19 + [19]


def test_pairs_and_samples_of_groups_are_compiled_once() -> None:
    """Outside of a compiled function each call compiled a condition or a loop again: 0.4 s for the pairs of a batch."""
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, _seconds, **_: compiled.append(event))
    ids = np.arange(128, dtype=np.int32)
    graph = credit.from_columns(group=[0, 1, 2], trace=list("abc"), reward=[1.0] * 3)[0]
    graph = dataclasses.replace(graph, cluster_ids=np.minimum(ids, 1))

    for _ in range(2):
        compiled.clear()
        pair_ids(0 * ids, ids, np.ones(128, bool), 1)
        independent_groups(graph)
    assert not any(event.endswith("backend_compile_duration") for event in compiled)
