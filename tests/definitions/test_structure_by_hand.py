"""Structure of graphs, written out by hand: topologies, units of the levels, forests, order, paths, births, groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from graphs.event_graph import EventGraph
from graphs.event_types import ACTION_TYPES, KINDS, EdgeType, EventType
from graphs.levels import LEVELS, Name, key_ids, level_ids, pair_ids, unit_ids
from graphs.logs import read
from graphs.structure.critical_path import critical_path, critical_steps, main_agents, parallelism
from graphs.structure.forest import ancestors, descendants, spawn_forest, topological_levels
from graphs.structure.prefix import agent_births, pack, prefix, select_trace
from graphs.structure.topology import TOPOLOGIES, topology
from graphs.traces.batch import Traces
from graphs.traces.grouping import group_names

from .core import CASES, native


def batch(folder: Path, *logs: str) -> Traces:
    (folder / "log.jsonl").write_text("".join(logs))
    traces = read(folder / "log.jsonl")
    assert traces.problems == ()
    return traces


def test_numbers_of_types_which_of_them_are_actions_and_of_which_kind() -> None:
    assert " ".join(kind.name.lower() for kind in sorted(EventType)) == (
        "orchestrator_decision spawn despawn message tool_call tool_result return aggregate "
        "human_intervention safety_event stop"
    )
    assert " ".join(kind.name.lower() for kind in sorted(EdgeType)) == (
        "temporal causal spawn message tool_dependency return aggregate safety_flow"
    )
    assert [int(kind) for kind in EventType] == list(range(11))
    assert [int(kind) for kind in EdgeType] == list(range(8))
    assert {int(kind) for kind in ACTION_TYPES} == {0, 1, 2, 3, 4, 7, 10}
    kinds = {name: sorted(int(kind) for kind in types) for name, types in KINDS.items()}
    assert kinds == {"orchestrator": [0, 1, 2, 7, 10], "message": [3], "tool": [4]}


# Links in short: `a>b` a message of `a` to which `b` answers; `a+b` a spawn; `a-b` a return of `b` to `a`;
# `a~b` two messages that follow each other in time; `a!` a human who steps in at `a`; `a?` a tool's result of `a`;
# `a` a message of `a`.
FORMS: dict[str, tuple[str, str, str]] = {
    "nobody acts": ("a", "a?", "unknown"),
    "one member": ("a", "a a?", "single"),
    "a human before the first action": ("a", "a! a", "single"),
    "a human after the first action": ("a", "a a!", "harness"),
    "one member of two agents": ("a b", "a b?", "single"),
    "a hub with two workers of one role in one stage": ("m x/w<m y/w<m", "m+x m+y m-x m-y", "swarm"),
    "a hub with two workers of one role in two stages": ("m x/w<m y/w<m", "m+x m-x m+y m-y", "centralized"),
    "a hub with two workers of two roles in one stage": ("m x/v<m y/w<m", "m+x m+y m-x m-y", "centralized"),
    "a hub and a runtime": ("m x/w<m y/w<m", "m+x m+y m-x m-y m!", "harness"),
    "a hub that nothing spawned": ("m a b", "m>a a>m m>b b>m", "centralized"),
    "no hub, as one edge passes it by": ("m a b", "m>a a>b b>m", "mixed"),
    "edges of time do not pass a hub by": ("m a b", "m>a a~b", "mixed"),
    "nothing between two": ("a b", "a b", "mixed"),
    "two who answer each other": ("a b", "a>b b>a", "debate"),
    "two of whom one spawned the other": ("m x<m", "m+x m>x x>m", "centralized"),
    "spawns and returns are no talk": ("a b", "a+b a-b", "centralized"),
    "one edge of time is no talk": ("a b", "a>b b~a", "centralized"),
    "one of three does not talk": ("m x/a<m y/b<m z/c<m", "m+x m+y m+z x>y y>x", "debate"),
    "half of four do not talk": ("m x/a<m y/b<m z/c<m w/d<m", "m+x m+y m+z m+w x>y y>x", "centralized"),
    "a member below a member": ("m x<m y<x", "m+x x+y", "hierarchical"),
    "an instance below that does nothing": ("m x<m y<x", "m+x", "centralized"),
    "talk below": ("m x/a<m y/b<m z/c<x", "m+x m+y x+z x>y y>x", "mixed"),
    "talk with one above, over an instance between": ("m x<m y<x", "m+x x+y m>y y>m", "hierarchical"),
    "roles of all three kinds": ("p/Planner e/Coder c/Verifier", "p>e e>c", "planner_executor_critic"),
    "roles of two kinds": ("p/Planner e/Coder c/other", "p>e e>c", "mixed"),
    "a critic who does nothing": ("p/planner e/solver c/judge", "p>e c?", "centralized"),
    "roles of all three kinds, two below": ("p/architect e/worker<p c/reviewer<e", "p+e e+c", "mixed"),
}


def form(agents: str, links: str) -> str:
    """A log of the native format with these links."""
    events, edges = [], []
    signs = {
        ">": ("message", "message"),
        "+": ("spawn", "spawn"),
        "-": ("return", "return"),
        "~": ("message", "temporal"),
    }

    def add(agent: str, kind: str) -> str:
        events.append(f"{agent} {kind} e{len(events)}")
        return f"e{len(events) - 1}"

    for link in links.split():
        sign = next((sign for sign in signs if sign in link), "")
        if not sign:
            add(link.rstrip("!?"), {"!": "human_intervention", "?": "tool_result"}.get(link[-1], "message"))
            continue
        first, second = reversed(link.split(sign)) if sign == "-" else link.split(sign)
        kind, edge = signs[sign]
        cause = add(first, kind)
        edges.append(f"{cause}>{add(second, 'message')} {edge}")
    return native("t", agents, "\n".join(events), "\n".join(edges))


@pytest.mark.parametrize("name", FORMS)
def test_topology(name: str, tmp_path: Path) -> None:
    agents, links, expected = FORMS[name]
    traces = batch(tmp_path, form(agents, links))
    assert TOPOLOGIES[topology(traces.graph, traces.agents["role"].to_pylist())[0]] == expected


@jax.jit  # compiled once: each operation by itself would take a quarter of a second
def _ids(graph: EventGraph) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]:
    names: tuple[Name, ...] = ("agent_name", "role_name")
    return (
        {level: level_ids(graph, level) for level in LEVELS},
        {name: unit_ids(graph, name) for name in names},
        {(name, dense): key_ids(graph, name, dense=dense) for name in names for dense in (True, False)},
    )


def test_units_and_keys_of_the_levels(tmp_path: Path) -> None:
    """Three traces, two of one task; `w1` is a worker in the first and a critic in the second."""
    traces = batch(
        tmp_path,
        native(
            "t",
            "boss/lead w1/worker<boss w2/worker<boss",
            "boss message d\nw1 message m\nw2 message k\nw1 message n\nboss message j",
            "d>m message\nd>k message\nm>n causal\nn>j message\nk>j message",
        ),
        native(
            "u", "boss/lead w1/critic<boss", "boss message d\nw1 message m\nboss message z", "d>m message\nm>z message"
        ),
        native("v", "boss/lead", "boss message d", "", task_id="r"),
    )
    levels, units, keys = _ids(traces.graph)
    assert {level: np.asarray(ids)[:9].tolist() for level, ids in levels.items()} == {
        "trace": [0, 0, 0, 0, 0, 1, 1, 1, 2],
        "role": [0, 1, 1, 1, 0, 2, 3, 2, 4],
        "agent": [0, 1, 2, 1, 0, 3, 4, 3, 5],
        "turn": [0, 1, 2, 1, 3, 4, 5, 6, 7],
        "event": [0, 1, 2, 3, 4, 5, 6, 7, 8],
    }
    # Agents: boss, w1, w2 of the first trace, boss, w1 of the second, boss of the third, which has another task.
    assert np.asarray(units["agent_name"])[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert np.asarray(units["role_name"])[:6].tolist() == [0, 1, 1, 2, 3, 4]
    for dense in (True, False):
        assert np.asarray(keys["agent_name", dense])[:6].tolist() == [0, 1, 2, 0, 1, 3]
        assert np.asarray(keys["role_name", dense])[:6].tolist() == [0, 1, 1, 0, 2, 3]
    assert traces.traces["group"].to_pylist() == ["q", "q", "r"]


@jax.jit
def _pairs() -> tuple[jax.Array, jax.Array, jax.Array]:
    first, second, mask = np.array([2, 0, 2, 0, 1]), np.array([5, 7, 5, 1, 3]), np.array([1, 1, 1, 0, 1], bool)
    apart = pair_ids(np.array([0, 0, 1, 1, 1]), np.array([7, 9, 3, 3, 3]), np.ones(5, bool), 2)
    return pair_ids(first, second, mask), pair_ids(first, second, mask, 3), apart


def test_pairs_are_numbered_in_their_order_without_those_outside_the_mask() -> None:
    sorted_ids, ids_by_range, apart = _pairs()
    assert sorted_ids.tolist() == ids_by_range.tolist() == [2, 0, 2, 0, 1]
    assert apart.tolist() == [0, 2, 3, 3, 3]  # (0, 7), (0, 9), (1, 3): within a first number, ids keep their distances


def test_forest_and_order(tmp_path: Path) -> None:
    """`m` spawned `x` and `y`, `x` spawned `z`; `u` is a root of its own."""
    traces = batch(
        tmp_path,
        native(
            "t",
            "m x<m y<m z<x u",
            "m message e0\nx message e1\ny message e2\nz message e3\nu tool_result e4\nm message e5",
            "e0>e1 message\ne0>e2 message\ne1>e3 message\ne2>e3 message\ne4>e5 message",
        ),
        native("v", "m", "m message e0\nm message e1", ""),
    )
    graph = traces.graph
    forest = spawn_forest(graph)
    assert forest.is_root[:6].tolist() == [True, False, False, False, True, True]
    assert forest.root[:6].tolist() == [0, 0, 0, 0, 4, 5]
    assert forest.depth[:6].tolist() == [0, 1, 1, 2, 0, 0]
    assert forest.fan_out[:6].tolist() == [2, 1, 0, 0, 0, 0]
    assert [forest.children(agent).tolist() for agent in range(6)] == [[1, 2], [3], [], [], [], []]
    assert [level.tolist() for level in forest.levels()] == [[0, 4, 5], [1, 2], [3]]
    assert main_agents(graph)[:2].tolist() == [0, 5]  # no action of `u`
    assert topological_levels(graph)[:7].tolist() == [0, 1, 1, 2, 0, 1, 0]
    assert np.flatnonzero(descendants(graph, 0)).tolist() == [1, 2, 3]
    assert np.flatnonzero(descendants(graph, 1)).tolist() == [3]
    assert np.flatnonzero(ancestors(graph, 3)).tolist() == [0, 1, 2]
    assert np.flatnonzero(ancestors(graph, 5)).tolist() == [4]
    # Of two paths of three actions, the one whose events come first; with seconds, the longer one.
    assert np.flatnonzero(critical_path(graph).on_path).tolist() == [0, 1, 3, 6]
    seconds = np.zeros(graph.num_events)
    seconds[:7] = [1, 2, 5, 1, 3, 3.5, 0.5]
    longest = critical_path(graph, seconds)
    assert longest.length[:2].tolist() == [7, 0.5]
    assert np.flatnonzero(longest.on_path).tolist() == [0, 2, 3, 6]
    # Levels of actions: e0 and e5 on the first, of one agent; e1 and e2 on the second, of two; e3 on the
    # third. The second trace has two actions of one agent, without an edge.
    width = parallelism(graph)
    assert [column[:2].tolist() for column in width] == [[5, 2], [3, 1], [5 / 3, 2], [2, 2], [2, 1]]


def test_critical_steps(tmp_path: Path) -> None:
    """Stage 0: one decision and at most two messages of a worker. Stage 1: two actions of the boss."""
    graph = batch(tmp_path, CASES["two workers at once"][0]).graph
    steps = critical_steps(graph)
    assert (steps.steps[0], steps.stages[0], bool(steps.defined[0])) == (5, 2, True)
    stage = np.full(graph.num_events, -1)
    stage[[0, 3, 4, 7, 10, 11]] = [
        0,
        1,
        1,
        2,
        3,
        3,
    ]  # by stage, the boss acts 1, 0, 0, 2 times, a worker 0, 1, 1, 0 times
    stated = critical_steps(graph, stage)
    assert (stated.steps[0], stated.stages[0], bool(stated.defined[0])) == (5, 4, True)
    stage[7] = -1
    assert critical_steps(graph, stage).defined[0] == np.False_
    graph = batch(tmp_path, CASES["what begins a turn"][0]).graph
    assert (critical_steps(graph).steps[0], bool(critical_steps(graph).defined[0])) == (0, False)


def test_prefixes(tmp_path: Path) -> None:
    """A root is there from the first event, a worker from its spawn, one without spawn or event from the last event."""
    log = CASES["two workers at once"][0].replace('{"id": "w2"', '{"id": "idle", "parent": "boss"}, {"id": "w2"')
    second = native("u", "boss/lead w1/worker<boss", "w1 message m\nboss message j", "m>j message")
    traces = batch(tmp_path, log, second)
    graph = traces.graph
    assert traces.agents["agent"].to_pylist() == ["boss", "w1", "idle", "w2", "boss", "w1"]
    assert agent_births(graph)[:6].tolist() == [0, 1, 11, 2, 12, 12]
    before = {t: prefix(graph, 0, t) for t in (0, 1, 5, 11)}
    assert {t: np.flatnonzero(part.event_mask).tolist() for t, part in before.items()} == {
        t: list(range(t + 1)) for t in before
    }
    agents = {t: np.flatnonzero(part.agent_mask).tolist() for t, part in before.items()}
    assert agents == {0: [0], 1: [0, 1], 5: [0, 1, 3], 11: [0, 1, 2, 3]}
    edges = {t: int(np.sum(part.edge_mask)) for t, part in before.items()}
    assert edges == {0: 0, 1: 1, 5: 5, 11: 12}
    only = pack(select_trace(graph, 1))
    assert np.flatnonzero(only.event_mask).tolist() == [0, 1]
    assert (only.agent_ids[:2].tolist(), only.turn_ids[:2].tolist()) == ([1, 0], [0, 1])
    assert (only.senders[0], only.receivers[0], only.agent_parent[:2].tolist()) == (0, 1, [0, 0])


def test_names_of_groups() -> None:
    tasks = ["a", "a", "a", "b", "b", "c", "a [x]"]
    models = ["x", "y", "", "x", "x", "x", "z"]
    systems = ["h", "h", "h", "h", "i", "h", "h"]
    assert group_names(tasks, models, systems) == [
        "a [x]'", "a [y]", "a [unknown]", "b [h]", "b [i]", "c", "a [x]"
    ]  # fmt: skip
    assert group_names(tasks, models, systems, ("task",)) == tasks
    assert group_names(tasks, models, systems, ("model", "task"))[3:5] == ["b", "b"]
    assert group_names(tasks, models, systems, ("task", "system"))[:5] == ["a", "a", "a", "b [h]", "b [i]"]
    assert group_names(["a", "a"], ["x", "y"], ["h", "i"]) == ["a [x, h]", "a [y, i]"]
