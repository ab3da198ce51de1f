"""Parts of a batch hold whole groups, and arrays that are split and joined come back."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from credit.laws.trial_batches import SIZES, padded, ragged
from estimators.baselines.shared import rloo
from graphs.errors import CreditError
from graphs.invariants import validate
from graphs.structure.whole_groups import cut_groups


@pytest.mark.parametrize("parts", [1, 3, 12])  # the batch has 7 groups, so that some of 12 parts are empty
def test_each_group_is_in_one_part_and_arrays_come_back(parts: int) -> None:
    batch = padded(ragged(1, {"context": "event"}), SIZES)
    graph, cut = batch.graph, cut_groups(batch.graph, parts)
    assert cut.num_parts == parts
    holders: dict[int, set[int]] = {}
    for part, traces in enumerate(cut.traces):
        for trace in traces[traces >= 0]:
            holders.setdefault(int(graph.group_ids[trace]), set()).add(part)
    assert all(len(at) == 1 for at in holders.values())
    assert sorted(cut.traces[cut.traces >= 0]) == list(np.flatnonzero(graph.trace_mask))
    assert sorted(cut.events[cut.events >= 0]) == list(np.flatnonzero(graph.event_mask))
    for part in range(parts):
        validate(jax.tree.map(lambda leaf, part=part: leaf[part], cut.graph))
    values = np.where(graph.event_mask, np.arange(graph.num_events, dtype=np.float32), 0)
    np.testing.assert_array_equal(cut.join_events(cut.split_events(values)), values)
    rewards, real = np.where(graph.trace_mask, batch.reward, 0), cut.traces >= 0
    np.testing.assert_array_equal(cut.split_traces(rewards)[real], rewards[cut.traces[real]])


def test_the_parts_hold_about_the_same_number_of_events() -> None:
    graph = padded(ragged(2, {}), SIZES).graph
    events = (cut_groups(graph, 2).events >= 0).sum(axis=1)
    of_group = np.bincount(graph.group_ids[graph.trace_ids[graph.event_mask]])
    assert abs(int(events[0]) - int(events[1])) <= of_group.max()


@pytest.mark.slow
def test_a_method_on_the_parts_is_the_method_on_the_batch() -> None:
    batch = padded(ragged(3, {}), SIZES)
    cut = cut_groups(batch.graph, 3)
    reward = cut.split_traces(batch.reward)
    parts = [rloo(jax.tree.map(lambda leaf, d=d: leaf[d], cut.graph), reward[d]).advantage for d in range(3)]
    whole = rloo(batch.graph, batch.reward).advantage
    np.testing.assert_array_equal(cut.join_events(np.stack(parts)), whole)


def test_ids_count_from_zero_in_each_part_and_keep_what_is_equal() -> None:
    batch = padded(ragged(1, {"context": "event"}), SIZES)
    context = batch.evidence["context"]
    for places, ids in zip(
        (cut := cut_groups(batch.graph, 3)).events, cut.split_events(context, ids=True), strict=True
    ):
        before, after = context[places[places >= 0]], ids[places >= 0]
        assert ((before < 0) == (after < 0)).all()
        assert len(set(zip(before.tolist(), after.tolist(), strict=True))) == len(set(before)) == len(set(after))
        assert set(after[after >= 0]) == set(range(len(set(after[after >= 0]))))


@pytest.mark.parametrize("parts", [0, -1, True, 2.0])
def test_parts_that_are_no_number_of_parts_are_refused(parts: object) -> None:
    with pytest.raises(CreditError, match="expected a whole number of parts, 1 or more"):
        cut_groups(padded(ragged(1, {}), SIZES).graph, parts)  # type: ignore[arg-type]
