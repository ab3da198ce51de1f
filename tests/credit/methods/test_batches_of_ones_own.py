"""Batches that no reader made: what would give wrong numbers without a word is refused, or named."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.method_summary import Summary
from estimators.base import Reason
from graphs.errors import CreditError, PrecisionWarning
from graphs.event_graph import EventGraph
from graphs.invariants import InvariantError


def small() -> tuple[EventGraph, np.ndarray, credit.Rows]:
    """Two groups of two traces of two events, in arrays of one length for events and traces."""
    trace = np.repeat(np.arange(4), 2)
    return credit.from_columns(
        group=trace // 2, trace=trace, reward=np.array([1.0, 0.0, 0.5, 0.0])[trace], events=16, traces=16, agents=16
    )


@pytest.mark.parametrize(
    ("field", "at", "value", "invariant"),
    [
        ("group_ids", 1, 40, "id-range"),
        ("trace_ids", 7, 40, "id-range"),
        ("trace_ids", 7, -1, "id-range"),
        ("trace_ids", 7, 9, "masked-reference"),
        ("trace_ids", 2, 0, "agent-trace"),
    ],
)
def test_ids_out_of_range_are_refused_where_methods_gave_zeros(field: str, at: int, value: int, invariant: str) -> None:
    graph, reward, rows = small()
    ids = np.array(getattr(graph, field))
    ids[at] = value
    broken = dataclasses.replace(graph, **{field: ids})
    calls: list[Any] = [
        lambda: credit.run(dataclasses.replace(rows.traces, graph=broken), "rloo"),
        lambda: credit.compose(broken, reward, []),
    ]
    for call in calls:
        with pytest.raises(InvariantError) as caught:
            call()
        assert (caught.value.invariant == invariant and field in str(caught.value)) or invariant == "agent-trace"


@pytest.mark.slow
def test_rewards_of_events_are_no_outcomes_though_both_are_padded_alike() -> None:
    graph, reward, rows = small()
    of_events = np.zeros(16, np.float32)
    of_events[rows.event] = np.linspace(0.1, 0.8, 8)
    for call in (credit.rloo, credit.turn_baseline, lambda g, r: credit.compose(g, r, [])):
        with pytest.raises(
            credit.CreditError, match=r"reward has 0\.5 at place 4, and the batch has 4 traces; expected one"
        ):
            call(graph, of_events)
    padded = np.where(graph.trace_mask, reward, np.nan)
    np.testing.assert_array_equal(credit.rloo(graph, padded).advantage, credit.rloo(graph, reward).advantage)


def test_outcomes_whose_differences_single_precision_changes_are_named() -> None:
    """1,000,000.3 becomes 1,000,000.3125: `rloo` moved by a tenth of the difference."""
    offset = np.array([0.3, 0.0, 0.1, 0.2])
    with pytest.warns(
        UserWarning, match="1 group whose outcomes differ by little for their size: single precision"
    ) as found:
        credit.from_columns(group=[0] * 4, trace=range(4), reward=1e6 + offset)
    assert found[0].filename == __file__
    for large in ([10**13, 10**13 + 5], [2**53, 2**53 + 1]):  # of which double precision makes one number
        with pytest.warns(UserWarning, match="1 group whose outcomes differ by little for their size"):
            credit.from_columns(group=[0] * 2, trace=range(2), reward=large)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        credit.from_columns(group=[0] * 4, trace=range(4), reward=offset)
        credit.from_columns(group=[0] * 4, trace=range(4), reward=1e6 + 100 * offset)
        credit.from_columns(group=[0] * 4, trace=range(4), reward=[1.0, None, 1e6, 2e6])


def test_arrays_beyond_their_range_count_as_absent() -> None:
    """A compiled function cannot refuse by value: a negative error was an error, the logarithm of e a probability."""
    graph, reward, rows = credit.from_columns(group=[0] * 4, trace=list("aabb"), reward=[1.0, 1.0, 0.0, 0.0])
    room = graph.num_events
    result = credit.hcapo(graph, reward, hindsight_log_prob=np.ones(room, np.float32))
    assert set(rows.gather(result.reason).tolist()) == {Reason.NO_EVIDENCE}
    share = credit.shapley(
        graph, reward, share=np.full(room, 0.5, np.float32), share_stderr=np.full(room, -0.1, np.float32)
    )
    assert rows.gather(share.valid).all() and np.isinf(rows.gather(share.stderr)).all()


@pytest.mark.parametrize("name", ["value", "counterfactual_reward", "greedy_reward"])
def test_evidence_whose_difference_from_outcomes_single_precision_changes_is_named(name: str) -> None:
    """1,000,000.3 less 1,000,000.1 was 0.19 for 0.2 without a word: outcomes of one trace differ from none."""
    columns = {"group": [0, 1], "trace": [0, 1]}
    with pytest.warns(UserWarning, match=f"2 groups whose outcomes and '{name}' differ by little for their size"):
        credit.from_columns(**columns, reward=[1e6 + 0.3] * 2, evidence={name: [1e6 + 0.1] * 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        credit.from_columns(**columns, reward=[1e6] * 2, evidence={name: [1e6 + 8, None]})
        credit.from_columns(**columns, reward=[0.3] * 2, evidence={name: [0.1] * 2})


@pytest.mark.parametrize("name", ["value", "greedy_reward"])
def test_such_evidence_of_a_log_is_named(tmp_path: Path, name: str) -> None:
    """`credit assign` printed advantages of 0.19 for 0.2."""
    for number, (value, is_coarse) in enumerate(
        [(1e6 + 0.1, True), (1e6 + 8, False), (2**24 + 1, False), (2**30 + 100, True)]
    ):
        event = {"id": "0", "type": "message", "agent": "a"}
        team = 2**30 if value > 2**29 else 1e6
        trace = {"schema_version": "1.0", "trace_id": "t", "task_id": "q", "events": [event], "rewards": {"team": team}}
        if name == "value":
            event[name] = value
        else:
            trace["evidence"] = {name: value}
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(trace))
        traces, summary, method = credit.read(path), Summary(), "gae" if name == "value" else "remax"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            summary.add(traces, credit.run(traces, method), method, {})
        assert [one.category for one in caught] == [PrecisionWarning] * is_coarse  # Python was told nothing
        assert (
            any("look: 1 group whose outcomes, or values beside them" in x for x in summary.lines(method, {}))
            == is_coarse
        )


def test_values_of_another_reward_than_the_outcome_are_named(tmp_path: Path) -> None:
    """A critic's values of 'team' were subtracted from 'format', which `--reward-channel` had put in its place."""
    event = {"id": "0", "type": "message", "agent": "a", "value": 0.5}
    traces = [
        {"trace_id": str(i), "task_id": "q", "events": [event], "rewards": {"team": i, "format": 1 - i}} for i in (0, 1)
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, traces)))
    for channel, method, is_named in (("format", "gae", True), ("team", "gae", False), ("format", "rloo", False)):
        batch, summary = credit.read(path, reward=channel), Summary()
        summary.add(batch, credit.run(batch, method), method, {})
        assert any("look: value of the log belong" in line for line in summary.lines(method, {})) == is_named
        assert summary.as_json(method, {})["about_the_outcome"] == (["value"] if is_named else [])


@pytest.mark.slow
def test_an_offset_of_rewards_is_named_where_it_enters_advantages() -> None:
    """Of traces of different lengths `turn_baseline` counts those that have ended as 0."""
    columns = {"group": [0] * 5, "trace": list("aabbc"), "turn": [0, 1, 0, 1, 0]}
    graph, reward, rows = credit.from_columns(**columns, reward=1e6 + np.array([1.0, 1, 0, 0, 0.5]))
    result, summary = credit.turn_baseline(graph, reward), Summary()
    summary.add(rows.traces, result, "turn_baseline", {})
    assert rows.gather(result)[1] > 4e5
    assert any(
        "2 actions have an advantage larger than 10 times the spread" in line
        for line in summary.lines("turn_baseline", {})
    )


@pytest.mark.slow
def test_a_ledger_names_results_of_other_rewards_in_its_repr() -> None:
    graph, reward, _ = small()
    with pytest.warns(credit.ledger.OtherRewardsWarning):
        ledger = credit.compose(graph, reward, [credit.rloo(graph, 2 * reward)])
    assert "; of other rewards: rloo)" in repr(ledger) and "of other rewards: rloo" in ledger._repr_html_()
    assert "of other rewards" not in repr(credit.compose(graph, reward, [credit.rloo(graph, reward)]))


def test_an_array_in_the_order_of_rows_is_refused_where_events_stand_in_another() -> None:
    """128 numbers of 128 rows were taken in the order of events: each action got the value of another row."""
    count = 128
    for trace, moved in ((np.arange(count) % 4, True), (np.arange(count) // 32, False)):
        value = np.random.default_rng(0).random(count).astype(np.float32)
        columns = {"group": [0] * count, "trace": trace, "reward": 1.0 * (trace > 1), "turn": np.arange(count)}
        _, _, rows = credit.from_columns(**columns, evidence={"value": value})
        by_column = rows.gather(credit.run(rows, "critic"))
        assert rows.gather(credit.run(rows, "critic", value=rows.evidence["value"])).tolist() == by_column.tolist()
        if moved:
            with pytest.raises(CreditError, match="value has 128 numbers, one for each row, and"):
                credit.run(rows, "critic", value=value)
        else:
            assert rows.gather(credit.run(rows, "critic", value=value)).tolist() == by_column.tolist()
