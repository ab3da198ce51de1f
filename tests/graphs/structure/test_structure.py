"""Structure against slow, obvious oracles of NetworkX, on random traces; padding and batching change nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import networkx as nx
import numpy as np
import pytest

from graphs.errors import CreditError
from graphs.event_graph import EdgeType, EventGraph, EventType
from graphs.invariants import validate
from graphs.padding import Sizes, pad, sizes, unpad
from graphs.structure.critical_path import critical_path, critical_steps, derived_stages, main_agents, parallelism
from graphs.structure.forest import ancestors, descendants, spawn_forest, topological_levels
from graphs.structure.prefix import agent_births, pack, prefix, select_trace
from graphs.structure.topology import TOPOLOGIES, topology
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

SEEDS = range(12)
Records = Callable[..., list[TraceRecord]]


@pytest.fixture(params=SEEDS)
def traces(request: pytest.FixtureRequest, random_records: Records) -> Traces:
    return assemble(random_records(request.param))


def digraphs(graph: EventGraph) -> Iterator[tuple[int, nx.DiGraph]]:
    """Each trace as a plain directed graph over positions in the batch."""
    for trace in np.flatnonzero(graph.trace_mask):
        oracle = nx.DiGraph()
        oracle.add_nodes_from(np.flatnonzero(graph.event_mask & (graph.trace_ids == trace)).tolist())
        for s, r, real in zip(graph.senders, graph.receivers, graph.edge_mask, strict=True):
            if real and graph.trace_ids[s] == trace:
                oracle.add_edge(int(s), int(r))
        yield int(trace), oracle


def paths(oracle: nx.DiGraph) -> Iterator[list[int]]:
    """Every path of a small graph that cannot be made longer at either end."""
    starts = [n for n in oracle if oracle.in_degree(n) == 0]
    ends = [n for n in oracle if oracle.out_degree(n) == 0]
    for start in starts:
        for end in ends:
            if start == end:
                yield [start]
            else:
                yield from nx.all_simple_paths(oracle, start, end)


def weighted_longest(oracle: nx.DiGraph, weight: np.ndarray) -> float:
    """Weight of the heaviest path, by NetworkX: an edge weighs what its end weighs, plus a source before all."""
    copy = oracle.copy()
    copy.add_edges_from(("source", n) for n in oracle)
    for _, receiver, data in copy.edges(data=True):
        data["weight"] = float(weight[receiver])
    return nx.dag_longest_path_length(copy, weight="weight")


# --- forest, order, reach ---------------------------------------------------------------------------------------------


def test_forest_is_that_of_networkx(traces: Traces) -> None:
    graph, forest = traces.graph, spawn_forest(traces.graph)
    tree = nx.DiGraph()
    for agent in np.flatnonzero(graph.agent_mask).tolist():
        tree.add_node(agent)
        if graph.agent_parent[agent] != agent:
            tree.add_edge(int(graph.agent_parent[agent]), agent)
    roots = [n for n in tree if tree.in_degree(n) == 0]
    assert np.flatnonzero(forest.is_root).tolist() == roots
    for root in roots:
        for agent, depth in nx.single_source_shortest_path_length(tree, root).items():
            assert (forest.depth[agent], forest.root[agent]) == (depth, root)
    for agent in tree:
        assert forest.children(agent).tolist() == sorted(tree.successors(agent))
        assert forest.fan_out[agent] == tree.out_degree(agent)
    padding = ~graph.agent_mask
    assert not forest.depth[padding].any() and not forest.fan_out[padding].any() and not forest.is_root[padding].any()


def test_a_deep_chain_of_spawns_has_its_depth() -> None:
    record = TraceRecord("t", "g", "f")
    record.instances = {f"a{i}": Agent(parent=f"a{i - 1}" if i else "") for i in range(300)}
    record.event("e", EventType.MESSAGE, "a299", action=True)
    forest = spawn_forest(assemble([record]).graph)
    assert forest.depth[:300].tolist() == list(range(300))
    assert set(forest.root[:300].tolist()) == {0}


def test_levels_are_topological_generations(traces: Traces) -> None:
    levels = topological_levels(traces.graph)
    for _, oracle in digraphs(traces.graph):
        for level, generation in enumerate(nx.topological_generations(oracle)):
            assert {int(levels[n]) for n in generation} == {level}
    assert not levels[~traces.graph.event_mask].any()


def test_position_is_a_topological_order(traces: Traces) -> None:
    for _, oracle in digraphs(traces.graph):
        assert all(s < r for s, r in oracle.edges)


def test_ancestors_and_descendants_are_those_of_networkx(traces: Traces) -> None:
    for _, oracle in digraphs(traces.graph):
        for event in oracle:
            assert set(np.flatnonzero(descendants(traces.graph, event)).tolist()) == nx.descendants(oracle, event)
            assert set(np.flatnonzero(ancestors(traces.graph, event)).tolist()) == nx.ancestors(oracle, event)


@pytest.mark.parametrize("event", [-1, 10_000])
def test_reach_of_no_event_is_refused(traces: Traces, event: int) -> None:
    with pytest.raises(CreditError, match="expected the position of a real event"):
        descendants(traces.graph, event)
    with pytest.raises(CreditError, match="expected the position of a real event"):
        ancestors(traces.graph, int(traces.graph.event_mask.sum()))


# --- critical path, parallelism ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["actions", "durations"])
def test_critical_path_is_the_longest(traces: Traces, kind: str) -> None:
    graph = traces.graph
    durations = np.random.default_rng(0).exponential(size=graph.num_events)
    weight = durations if kind == "durations" else graph.action_mask.astype(float)
    path = critical_path(graph, durations if kind == "durations" else None)
    for trace, oracle in digraphs(graph):
        assert path.length[trace] == pytest.approx(weighted_longest(oracle, weight))
        events = np.flatnonzero(path.on_path & (graph.trace_ids == trace)).tolist()
        assert nx.is_path(oracle, events)
        assert weight[events].sum() == pytest.approx(path.length[trace])
        assert oracle.in_degree(events[0]) == 0
    assert not path.on_path[~graph.event_mask].any()


def test_the_critical_path_ends_first_and_prefers_early_causes() -> None:
    record = TraceRecord("t", "g", "f")
    for i in range(6):
        record.event(f"e{i}", EventType.MESSAGE, "a", action=True)
    for s, r in [(0, 2), (1, 2), (1, 3), (2, 4), (3, 5)]:  # 0-2-4, 1-2-4 and 1-3-5 are equally long
        record.edge(s, r, EdgeType.CAUSAL)
    path = critical_path(assemble([record]).graph)
    assert np.flatnonzero(path.on_path).tolist() == [0, 2, 4]
    assert path.length[0] == 3


def test_weights_must_be_finite_and_not_negative(traces: Traces) -> None:
    weight = np.ones(traces.graph.num_events)
    weight[-1] = np.nan  # padding is not looked at
    critical_path(traces.graph, weight)
    for bad in (-1.0, np.nan, np.inf):
        weight[0] = bad
        with pytest.raises(CreditError, match="weight of event 0"):
            critical_path(traces.graph, weight)
    with pytest.raises(CreditError, match="weight has shape"):
        critical_path(traces.graph, weight[:3])


@pytest.mark.slow
@pytest.mark.sampled
def test_parallelism_counts_levels_of_actions(traces: Traces) -> None:
    graph, found = traces.graph, parallelism(traces.graph)
    for trace, oracle in digraphs(graph):
        level = {n: max(int(graph.action_mask[path[: path.index(n) + 1]].sum()) for path in paths(oracle) if n in path)
                 for n in oracle if graph.action_mask[n]}  # fmt: skip
        assert found.work[trace] == len(level)
        assert found.span[trace] == max(level.values(), default=0)
        rows = [[n for n in level if level[n] == k] for k in set(level.values())]
        assert found.width[trace] == max(map(len, rows), default=0)
        assert found.agents[trace] == max((len({int(graph.agent_ids[n]) for n in row}) for row in rows), default=0)
        closure = nx.transitive_closure_dag(oracle)
        for row in rows:  # actions of one level could run at once: none leads to another
            assert not any(closure.has_edge(a, b) for a in row for b in row)
        if level:
            assert found.average[trace] == pytest.approx(len(level) / max(level.values()))


# --- stages and critical steps ----------------------------------------------------------------------------------------


def stages_oracle(graph: EventGraph, trace: int, oracle: nx.DiGraph, main: int) -> dict[int, int]:
    """Most synchronisation points on any path to each event, by recursion over causes."""
    own = [n for n in sorted(oracle) if graph.agent_ids[n] == main]
    full = oracle.copy()
    full.add_edges_from(itertools.pairwise(own))
    stage: dict[int, int] = {}
    for n in sorted(full):
        waits = n in own and graph.action_mask[n]
        waits = waits and any(graph.agent_ids[c] != main for c in oracle.predecessors(n))
        stage[n] = max((stage[c] for c in full.predecessors(n)), default=0) + bool(waits)
    return stage


def steps_oracle(graph: EventGraph, stage: dict[int, int], main: int) -> int:
    total = 0
    for s in set(stage.values()):
        actions = [int(graph.agent_ids[n]) for n in stage if stage[n] == s and graph.action_mask[n]]
        subs = set(actions) - {main}
        total += actions.count(main) + max((actions.count(a) for a in subs), default=0)
    return total


@pytest.mark.parametrize("given", [False, True])
def test_critical_steps_sum_main_steps_and_the_longest_sub_agent(traces: Traces, given: bool) -> None:
    graph, main, derived = traces.graph, main_agents(traces.graph), derived_stages(traces.graph)
    stage = traces.evidence["stage"].array
    found = critical_steps(graph, stage) if given else critical_steps(graph)
    forest = spawn_forest(graph)
    for trace, oracle in digraphs(graph):
        acting = {int(forest.root[graph.agent_ids[n]]) for n in oracle if graph.action_mask[n]}
        assert found.defined[trace] == (len(acting) == 1)
        assert main[trace] == (acting.pop() if len(acting) == 1 else -1)
        if main[trace] < 0:
            assert found.steps[trace] == 0
            continue
        expected = stages_oracle(graph, trace, oracle, int(main[trace]))
        assert {n: int(derived[n]) for n in oracle} == expected
        used = {n: int(stage[n]) for n in oracle} if given else expected
        assert found.steps[trace] == steps_oracle(graph, used, int(main[trace]))
        assert found.stages[trace] == len({used[n] for n in used if graph.action_mask[n]})


def swarm_record() -> TraceRecord:
    """Main plans (1 step), two workers take 2 and 3 steps, main joins and starts one more (1 step), main stops."""
    record = TraceRecord("t", "g", "f", instances={"m": Agent(role="lead")})
    position = 0

    def add(agent: str, *causes: int, kind: EventType = EventType.MESSAGE, action: bool = True) -> int:
        nonlocal position
        record.event(f"e{position}", kind, agent, action=action)
        for cause in causes:
            record.edge(cause, position, EdgeType.CAUSAL)
        position += 1
        return position - 1

    plan = add("m", kind=EventType.ORCHESTRATOR_DECISION)
    ends = []
    for worker, steps in (("w1", 2), ("w2", 3)):
        record.instances[worker] = Agent(role="worker", parent="m")
        last = plan
        for _ in range(steps):
            last = add(worker, last)
        ends.append(add(worker, last, kind=EventType.RETURN, action=False))
    join = add("m", plan, *ends, kind=EventType.ORCHESTRATOR_DECISION)
    record.instances["w3"] = Agent(role="worker", parent="m")
    back = add("w3", add("w3", join), kind=EventType.RETURN, action=False)
    add("m", join, back, kind=EventType.STOP)
    return record


def test_critical_steps_by_hand() -> None:
    graph = assemble([swarm_record()]).graph
    found = critical_steps(graph)
    assert (found.steps[0], found.stages[0], found.defined[0]) == ((1 + 3) + (1 + 1) + 1, 3, True)
    assert derived_stages(graph)[:11].tolist() == [0] * 8 + [1] * 3
    assert critical_path(graph).length[0] == 1 + 3 + 1 + 1 + 1


def test_derived_stages_do_not_depend_on_the_logged_order_of_concurrent_events() -> None:
    record = swarm_record()
    order = [0, 4, 1, 5, 2, 3, 6, 7, 8, 9, 10, 11]  # the workers' events interleaved
    new = {old: i for i, old in enumerate(order)}
    shuffled = TraceRecord("t", "g", "f", instances=record.instances)
    for old in order:
        shuffled.event(record.ids[old], EventType(record.types[old]), record.agents[old], action=record.actions[old])
    for s, r, kind in zip(record.senders, record.receivers, record.edge_types, strict=True):
        shuffled.edge(new[s], new[r], EdgeType(kind))
    before, after = assemble([record]).graph, assemble([shuffled]).graph
    assert derived_stages(after)[: len(order)].tolist() == derived_stages(before)[order].tolist()
    assert critical_steps(after).steps[0] == critical_steps(before).steps[0]


def test_an_action_without_a_stage_leaves_critical_steps_undefined() -> None:
    graph = assemble([swarm_record()]).graph
    stage, mask = np.zeros(graph.num_events, np.int32), np.ones(graph.num_events, bool)
    mask[3] = False  # w1's return is no action
    assert critical_steps(graph, stage, mask).defined[0]
    mask[4] = False
    assert not critical_steps(graph, stage, mask).defined[0]
    with pytest.raises(CreditError, match="stage has shape"):
        critical_steps(graph, stage[:2])


# --- prefixes ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.sampled
def test_prefixes_grow_event_by_event_to_the_whole_trace(traces: Traces) -> None:
    graph = traces.graph
    for trace, oracle in digraphs(graph):
        positions = sorted(oracle)
        agents_before = np.zeros(graph.num_agents, bool)
        for t, last in enumerate(positions):
            part = prefix(graph, trace, t)
            validate(part, packed=False)
            assert np.flatnonzero(part.event_mask).tolist() == positions[: t + 1]
            kept = {
                (int(s), int(r))
                for s, r in zip(part.senders[part.edge_mask], part.receivers[part.edge_mask], strict=True)
            }
            assert kept == {(s, r) for s, r in oracle.edges if r <= last}
            assert not (agents_before & ~part.agent_mask).any()
            assert part.agent_mask[graph.agent_ids[positions[: t + 1]]].all()
            agents_before = part.agent_mask
            validate(pack(part))
        whole, alone = part, select_trace(graph, trace)
        for name, values in vars(alone).items():
            np.testing.assert_array_equal(getattr(whole, name), values)


def test_agents_exist_from_their_spawn_on() -> None:
    record = TraceRecord("t", "g", "f", instances={"m": Agent(), "w": Agent(parent="m"), "idle": Agent(parent="w")})
    record.event("before", EventType.MESSAGE, "m", action=True)
    record.event("spawn", EventType.SPAWN, "m", action=True)
    record.event("between", EventType.MESSAGE, "m", action=True)
    record.event("work", EventType.MESSAGE, "w", action=True)
    record.event("end", EventType.STOP, "m", action=True)
    record.edge(1, 3, EdgeType.CAUSAL)
    graph = assemble([record]).graph
    assert agent_births(graph)[:3].tolist() == [0, 1, 4]  # "idle" is only declared: not before the end
    assert [prefix(graph, 0, t).agent_mask.sum() for t in range(5)] == [1, 2, 2, 2, 3]


@pytest.mark.parametrize(("trace", "t"), [(-1, 0), (6, 0), (0, -1), (2, 1)])
def test_prefixes_outside_the_batch_are_refused(random_records: Records, trace: int, t: int) -> None:
    graph = assemble(random_records(0)).graph
    with pytest.raises(CreditError, match="expected"):
        prefix(graph, trace, t)


# --- padding and batching ---------------------------------------------------------------------------------------------


def per_event(graph: EventGraph) -> np.ndarray:
    return np.stack([topological_levels(graph), derived_stages(graph), critical_path(graph).on_path])


def per_trace(graph: EventGraph, roles: list[str]) -> np.ndarray:
    rows = [critical_path(graph).length, *parallelism(graph), *critical_steps(graph), topology(graph, roles)]
    return np.stack([np.asarray(row, np.float64) for row in rows])


def test_padding_changes_nothing(traces: Traces) -> None:
    graph, roles, real = traces.graph, traces.agents["role"].to_pylist(), sizes(traces.graph)
    wide = pad(graph, Sizes(graph.num_events + 9, graph.num_edges + 5, graph.num_agents + 3, graph.num_traces + 2))
    for other in (unpad(graph), wide):
        np.testing.assert_array_equal(per_event(other)[:, : real.events], per_event(graph)[:, : real.events])
        found = per_trace(other, roles)
        np.testing.assert_array_equal(found[:, : real.traces], per_trace(graph, roles)[:, : real.traces])
        assert not found[:, real.traces :].any()
        forest = spawn_forest(other).depth[: real.agents]
        np.testing.assert_array_equal(forest, spawn_forest(graph).depth[: real.agents])


@pytest.mark.slow
def test_a_batch_gives_what_its_traces_give_singly(random_records: Records) -> None:
    for seed in SEEDS:
        together = assemble(random_records(seed))
        events, found = per_event(together.graph), per_trace(together.graph, together.agents["role"].to_pylist())
        for trace, record in enumerate(random_records(seed)):
            single = assemble([record])
            own_mask = together.graph.trace_ids[: together.sizes.events] == trace
            np.testing.assert_array_equal(
                events[:, : together.sizes.events][:, own_mask], per_event(single.graph)[:, : single.sizes.events]
            )
            np.testing.assert_array_equal(
                found[:, trace], per_trace(single.graph, single.agents["role"].to_pylist())[:, 0]
            )
            packed = pack(select_trace(together.graph, trace))
            validate(packed)
            for name in ("event_type", "agent_ids", "turn_ids", "senders", "receivers", "agent_parent"):
                real = {
                    "senders": single.sizes.edges,
                    "receivers": single.sizes.edges,
                    "agent_parent": single.sizes.agents,
                }
                n = real.get(name, single.sizes.events)
                np.testing.assert_array_equal(getattr(packed, name)[:n], getattr(single.graph, name)[:n])


def test_every_class_is_named_once() -> None:
    assert len(set(TOPOLOGIES)) == len(TOPOLOGIES) == 9
