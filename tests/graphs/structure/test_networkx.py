"""The round trip over NetworkX loses nothing; graphs that users build are read or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs.errors import CreditError, NothingReadError
from graphs.event_graph import EdgeType, EventType
from graphs.invariants import validate
from graphs.logs import read
from graphs.padding import unpad
from graphs.structure.networkx_graphs import from_networkx, to_networkx
from graphs.structure.prefix import pack, select_trace
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import TraceRecord

Records = Callable[..., list[TraceRecord]]


def same_graph(one: Traces, other: Traces, *, names: bool = True, evidence: bool = True) -> None:
    left = {"agent_name_ids", "agent_role_ids", "group_ids"} if not names else set[str]()
    left |= {"cluster_ids", "trainable_mask", "joint_mask"} if not evidence else set()  # come from columns of the log
    for name, values in vars(one.graph).items():
        if name not in left:
            np.testing.assert_array_equal(getattr(other.graph, name), values, err_msg=name)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(12))
def test_round_trip_of_a_batch_of_one_is_exact(random_records: Records, seed: int) -> None:
    for record in random_records(seed):
        one = assemble([record])
        other = assemble([from_networkx(to_networkx(one.graph, one, record.trace_id))])
        same_graph(one, other)
        assert other.events.equals(one.events)
        assert other.agents.equals(one.agents)
        assert other.traces.equals(one.traces)
        np.testing.assert_array_equal(other.reward, one.reward)
        assert other.evidence.keys() == one.evidence.keys()
        for name, evidence in one.evidence.items():
            np.testing.assert_array_equal(other.evidence[name].array, evidence.array, err_msg=name)


def test_round_trip_out_of_a_larger_batch(random_records: Records) -> None:
    records = random_records(3)
    batch = assemble(records)
    for index, record in enumerate(records):
        one = assemble([record])
        other = assemble([from_networkx(to_networkx(batch.graph, batch, index))])
        same_graph(one, other)
        assert other.events.equals(one.events)
        np.testing.assert_array_equal(other.evidence["value"].array, one.evidence["value"].array)


def test_round_trip_of_arrays_alone(random_records: Records) -> None:
    batch = assemble(random_records(5))
    for index, record in enumerate(random_records(5)):
        alone = assemble([from_networkx(to_networkx(batch.graph, trace=index))])
        same_graph(assemble([record]), alone, evidence=False)


def test_nodes_and_edges_carry_names(random_records: Records) -> None:
    record = random_records(1)[0]
    batch = assemble([record])
    graph = to_networkx(batch.graph, batch, 0)
    assert list(graph) == record.ids
    assert graph.nodes["e0"]["type"] == EventType(record.types[0]).name.lower()
    assert graph.number_of_edges() == len(record.senders)
    assert graph.graph["rewards"] == record.rewards
    assert nx.is_directed_acyclic_graph(graph)


def test_two_edges_between_the_same_events_stay_two() -> None:
    record = TraceRecord("t", "g", "f")
    record.event("a", EventType.MESSAGE, "x", action=True)
    record.event("b", EventType.MESSAGE, "x", action=True)
    record.edge(0, 1, EdgeType.TEMPORAL)
    record.edge(0, 1, EdgeType.CAUSAL)
    back = from_networkx(to_networkx(assemble([record]).graph))
    assert back.edge_types == [EdgeType.TEMPORAL, EdgeType.CAUSAL]


def own_graph(**about: Any) -> nx.DiGraph:
    graph = nx.DiGraph(trace="mine", **about)
    graph.add_node("late", type="message", agent="b", colour="red")
    graph.add_node("early", type="spawn", agent="a")
    graph.add_edge("early", "late", type="spawn")
    return graph


def test_a_graph_of_ones_own_is_read_with_causes_first() -> None:
    traces = assemble(
        [from_networkx(own_graph(rewards={"team": 1}, agents={"b": {"role": "worker", "parent": "a"}, "a": {}}))]
    )
    assert traces.events["event"].to_pylist() == ["early", "late"]
    assert traces.graph.senders[0] == 0 and traces.graph.receivers[0] == 1
    assert traces.graph.action_mask[:2].all()
    assert traces.reward[0] == 1
    assert traces.agents["role"].to_pylist() == ["worker", "a"]


def test_a_cycle_is_refused_when_assembled() -> None:
    graph = own_graph()
    graph.add_edge("late", "early")
    with pytest.raises(NothingReadError, match="cycle"):
        assemble([from_networkx(graph)])


BAD: dict[str, tuple[Callable[[nx.DiGraph], object], str]] = {
    "no trace": (lambda g: g.graph.pop("trace"), "trace of the graph is None"),
    "a group that is no string": (lambda g: g.graph.update(group=3), "group of the graph is 3"),
    "rewards that are no mapping": (lambda g: g.graph.update(rewards=[1]), "rewards of the graph"),
    "a reward that is no number": (
        lambda g: g.graph.update(rewards={"team": "1"}),
        r"rewards.team of the graph is '1'",
    ),
    "agents that are no mapping": (lambda g: g.graph.update(agents=["a"]), "agents of the graph"),
    "an agent that is no mapping": (lambda g: g.graph.update(agents={"a": "b"}), "description of agent 'a'"),
    "a node without a type": (lambda g: g.nodes["early"].pop("type"), "type of node 'early' is None"),
    "a node of an unknown type": (
        lambda g: g.nodes["early"].update(type="thought"),
        "type of node 'early' is 'thought'",
    ),
    "a node without an agent": (lambda g: g.nodes["late"].pop("agent"), "agent of node 'late' is None"),
    "an action that is a number": (lambda g: g.nodes["late"].update(action=1), "action of node 'late' is 1"),
    "a time that is a string": (lambda g: g.nodes["late"].update(time="now"), "time of node 'late'"),
    "evidence that is a string": (lambda g: g.nodes["late"].update(value="0.5"), "value of node 'late'"),
    "text that is a list": (lambda g: g.nodes["late"].update(tool=[]), "tool of node 'late'"),
    "trust that is a number": (lambda g: g.nodes["late"].update(trusted=1), "trusted of node 'late'"),
    "an unknown edge type": (lambda g: g.edges["early", "late"].update(type="x"), "type of edge 'early' -> 'late'"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_attribute_is_named(case: str) -> None:
    break_it, message = BAD[case]
    graph = own_graph()
    break_it(graph)
    with pytest.raises(CreditError, match=message):
        from_networkx(graph)


def test_a_trace_that_is_not_there_is_refused(random_records: Records) -> None:
    batch = assemble(random_records(0))
    with pytest.raises(CreditError, match="No trace 'nobody'"):
        to_networkx(batch.graph, batch, "nobody")
    with pytest.raises(CreditError, match="trace is 99"):
        to_networkx(batch.graph, batch, 99)
    with pytest.raises(CreditError, match="expected an index"):
        to_networkx(batch.graph, trace="t0")


@pytest.mark.parametrize("folder", ["tau_bench_airline", "claude_code_inline", "claude_code_subagent_files"])
def test_real_logs_survive_the_round_trip(shared_data: Path, folder: str) -> None:
    batch = read(shared_data / folder)
    validate(batch.graph)
    for index in range(min(8, batch.sizes.traces)):
        graph = to_networkx(batch.graph, batch, index)
        other = assemble([from_networkx(graph)])
        assert other.events["event"].to_pylist() == list(graph)
        packed = unpad(pack(select_trace(batch.graph, index)))
        for name, values in vars(unpad(other.graph)).items():
            if not name.endswith(("name_ids", "role_ids", "group_ids")):  # labels are numbered anew
                np.testing.assert_array_equal(values, getattr(packed, name), err_msg=name)
