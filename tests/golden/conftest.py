"""The rows of an oracle as a batch of `credit.from_columns`, which must equal the graph written down event by event."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import credit
from graphs import EventGraph, unpad
from graphs.traces.schema import EVENT_EVIDENCE


def by_hand(
    *, trace: list, group: list, agent: list, reward: Any = None, row_reward: Any = None, evidence: Any = None
) -> tuple:
    """Rows whose traces stand together, without padding."""
    traces, groups, names = list(dict.fromkeys(trace)), list(dict.fromkeys(group)), list(dict.fromkeys(agent))
    pairs = list(zip(trace, agent, strict=True))
    instances = list(dict.fromkeys(pairs))
    n = len(trace)
    graph = EventGraph(
        event_type=np.full(n, int(credit.EventType.MESSAGE), np.int32),
        action_mask=np.ones(n, bool),
        event_mask=np.ones(n, bool),
        time=np.full(n, np.nan, np.float32),
        trace_ids=np.array([traces.index(t) for t in trace], np.int32),
        agent_ids=np.array([instances.index(pair) for pair in pairs], np.int32),
        turn_ids=np.cumsum([i > 0 and pairs[i] != pairs[i - 1] for i in range(n)]).astype(np.int32),
        senders=np.zeros(0, np.int32),
        receivers=np.zeros(0, np.int32),
        edge_type=np.zeros(0, np.int32),
        edge_mask=np.zeros(0, bool),
        agent_name_ids=np.array([names.index(a) for _, a in instances], np.int32),
        agent_role_ids=np.array([names.index(a) for _, a in instances], np.int32),
        agent_parent=np.arange(len(instances), dtype=np.int32),
        agent_trace=np.array([traces.index(t) for t, _ in instances], np.int32),
        agent_mask=np.ones(len(instances), bool),
        group_ids=np.array([groups.index(group[trace.index(t)]) for t in traces], np.int32),
        trace_mask=np.ones(len(traces), bool),
    )
    outcome = np.zeros(len(traces), np.float32)
    if reward is not None:
        outcome[:] = [reward[trace.index(t)] for t in traces]
    arrays = {}
    for name, column in (evidence or {}).items():
        if EVENT_EVIDENCE[name].kind == "float":
            arrays[name] = np.array([np.nan if x is None else x for x in column], np.float32)
        elif EVENT_EVIDENCE[name].kind == "count":
            arrays[name] = np.array([-1 if x is None else x for x in column], np.int32)
        else:
            distinct = list(dict.fromkeys(x for x in column if x is not None))
            arrays[name] = np.array([-1 if x is None else distinct.index(x) for x in column], np.int32)
    event_reward = None if row_reward is None else np.array(row_reward, np.float32)
    return graph, outcome, event_reward, arrays


@pytest.fixture
def batch() -> Callable[..., tuple]:
    """Graph, outcome, event rewards, evidence and the place of each row.

    Both ways give the same arrays, so that a method's numbers on one are its numbers on the other.
    """

    def built(**columns: Any) -> tuple:
        graph, outcome, rows = credit.from_columns(**columns)
        evidence = {name: values for name, values in rows.evidence.items() if name != "event_reward"}
        expected = by_hand(**columns)
        n, traces = expected[0].num_events, expected[0].num_traces
        rewards = None if rows.event_reward is None else rows.event_reward[:n]
        # What a turn is, which traces share a beginning and who acts at once, tests of definitions and graphs say.
        real = dataclasses.replace(unpad(graph), turn_ids=expected[0].turn_ids, cluster_ids=None, joint_mask=None)
        found = real, outcome[:traces], rewards, {name: values[:n] for name, values in evidence.items()}
        jax.tree.map(np.testing.assert_array_equal, found, expected)
        np.testing.assert_array_equal(rows.event, np.arange(n))
        return graph, outcome, rows.event_reward, evidence, rows.event

    return built


@pytest.fixture(scope="session")
def oracle() -> Callable[[str], dict]:
    """A case of `oracles.json` by its name."""
    cases = {c["name"]: c for c in json.loads((Path(__file__).parent / "oracles.json").read_text())["cases"]}
    return cases.__getitem__
