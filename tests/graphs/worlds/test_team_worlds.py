"""Scripted teams: they are what their name says, and what they say about their own credit is true."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from pathlib import Path

import jax
import networkx as nx
import numpy as np
import pytest

from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.logs import read
from graphs.padding import unpad
from graphs.structure.topology import TOPOLOGIES, topology
from graphs.traces.batch import Traces
from graphs.traces.record import check
from graphs.worlds import FEWEST_AGENTS, KINDS, Additive, Bernoulli, Pivotal, Runs, TeamWorld
from graphs.writers import native, otlp

FORMS = tuple(FEWEST_AGENTS)
TASKS = (0.0, 0.0)  # worlds of one shape, six traces at a time: few compilations


def small_world(kind: str, seed: int) -> TeamWorld:
    """A world of at most eleven decisions; its form, chances and weights are random."""
    rng = np.random.default_rng(100 * [*KINDS].index(kind) + seed)
    forms = [f for f in FORMS if not (kind == "padding" and f in ("planner_executor_critic", "debate"))]
    form = forms[rng.integers(len(forms))]
    # Four are enough for a second wave, or a second manager.
    agents = max(FEWEST_AGENTS[form], 4 if kind == "padding" else 2 if kind == "free_rider" else 1)
    links = {"bottleneck": Pivotal(0.8, 0.3), "pivotal": Pivotal(0.9, 0.2), "bernoulli": Bernoulli(0.7, 1.5)}
    events = 10
    while True:
        try:
            return TeamWorld(
                form,
                agents=agents,
                events=events,
                kind=kind,
                difficulties=tuple(rng.normal(size=2)),
                group_size=2,
                good=rng.uniform(0.2, 0.8),
                spawn=1.0 if kind == "poisoned" else rng.uniform(0.3, 0.9),
                weights=tuple(int(w) for w in rng.integers(-2, 4, 5)),
                links=2,
                link=links.get(kind, Additive(0.7, 0.5)),
            )
        except CreditError:
            assert events < 30
            events += 1


# The oracle goes through all completions and counts a score from the words of the documentation.


@functools.lru_cache(maxsize=1)
def descendants(world: TeamWorld) -> set[int]:
    graph = nx.DiGraph(zip(world.script.senders.tolist(), world.script.receivers.tolist(), strict=True))
    return set(nx.descendants(graph, int(world.script.events[world.rule.marked])))


def score(world: TeamWorld, x: tuple[bool, ...]) -> int:
    script, n = world.script, len(x)
    agent = [int(script.agents[e]) for e in script.events]
    spawned = [script.on[e] < 0 or x[script.on[e]] for e in script.events]
    stop = [script.types[e] == EventType.STOP for e in script.events]
    weight = [0 if stop[d] else world.weights[d % len(world.weights)] for d in range(n)]
    good = [d for d in range(n) if x[d] and spawned[d]]
    if world.kind == "pivotal":
        return int(world.rule.marked in good)
    if world.kind == "bottleneck":
        end = int(np.flatnonzero(world.rule.weight)[0])
        return int(end in good and int(world.rule.gate[end]) in good)
    if world.kind == "free_rider":
        return sum(weight[d] for d in good if agent[d] != world.rule.marked)
    if world.kind == "padding":
        by_choice = sorted({agent[d] for d in range(n) if script.on[script.events[d]] >= 0})
        cost = sum(1 for a in by_choice if x[script.agent_on[a]])
        return sum(weight[d] for d in good if agent[d] not in by_choice[1::2]) - cost
    if world.kind == "poisoned" and world.rule.marked not in good:
        reached = descendants(world)
        good = [d for d in good if int(script.events[d]) not in reached]
    return sum(weight[d] for d in good)


def mean_outcome(world: TeamWorld, x: tuple[bool, ...]) -> float:
    link, z = world.outcome, score(world, x)
    if isinstance(link, Additive):
        return link.scale * z
    if isinstance(link, Bernoulli):
        return 1 / (1 + math.exp(-link.slope * (z - link.centre)))
    return link.good if z else link.bad


@functools.lru_cache(maxsize=1)
def completions(world: TeamWorld) -> tuple[np.ndarray, np.ndarray]:
    """All choices [2^D, D] and the expected outcome of each."""
    everything = list(itertools.product((False, True), repeat=world.decisions))
    return np.array(everything), np.array([mean_outcome(world, x) for x in everything])


def enumerated(world: TeamWorld, task: int, choice: np.ndarray, present: np.ndarray) -> list[float]:
    """E[R | first j decisions as in this trace] for all j."""
    p = world.chance[task]
    table, mean = completions(world)
    chance = np.where(table, p, 1 - p).prod(axis=1)
    values = []
    agree = np.ones(len(table), bool)
    for j in range(len(p) + 1):
        values.append(float(chance[agree] @ mean[agree] / chance[agree].sum()))
        if j < len(p) and present[j]:
            agree &= table[:, j] == choice[j]
    return values


def verify(world: TeamWorld, seed: int) -> None:
    runs = world.sample(jax.random.key(seed), 6)
    truth, records = world.increments(runs), world.records(runs)
    for i, record in enumerate(records):
        present = np.asarray(runs.present[i])
        values = enumerated(world, int(runs.task[i]), np.asarray(runs.choice[i]), present)
        expected = np.zeros(len(record.ids))
        expected[record.actions] = np.diff(values)[present]
        mask = truth.event_mask[i]
        np.testing.assert_allclose(truth.increments[i][mask], expected, atol=1e-12)
        np.testing.assert_allclose(truth.expected[i], values[0], atol=1e-12)
        np.testing.assert_allclose(runs.reward[i] - truth.outcome[i], values[-1], atol=1e-6)
        assert not expected[[not a for a in record.actions]].any()


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_increments_are_those_of_all_completions(kind: str) -> None:
    for seed in range(2):
        verify(small_world(kind, seed), seed)


@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
def test_increments_are_those_of_all_completions_in_thirty_worlds(kind: str) -> None:
    for seed in range(30):
        verify(small_world(kind, seed), seed)


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
def test_increments_are_those_of_running_again(kind: str) -> None:
    world, runs_each = small_world(kind, 2), 4000
    runs = world.sample(jax.random.key(1), 6)
    truth = world.increments(runs)
    for i in range(2):
        taken = np.flatnonzero(runs.present[i])
        acted = np.flatnonzero(np.array(world.records(runs)[i].actions))
        for t in range(0, len(taken), 3):
            p = float(world.chance[int(runs.task[i]), taken[t]])
            means, variance = [], 1e-12
            for choice in (False, True):
                key = jax.random.fold_in(jax.random.key(9), 1000 * i + 10 * t + choice)
                again = np.asarray(world.rerun(key, runs, i, t, choice, runs_each), np.float64)
                means.append(again.mean())
                variance += again.var() / runs_each
            estimate = (bool(runs.choice[i, taken[t]]) - p) * (means[1] - means[0])
            assert abs(truth.increments[i][acted[t]] - estimate) < 5 * math.sqrt(variance) + 1e-6


@pytest.mark.slow
def test_running_again_keeps_the_past() -> None:
    world = TeamWorld("swarm", agents=6, events=40, spawn=0.5, difficulties=TASKS, link=Additive(1.0, 0.0))
    runs = world.sample(jax.random.key(0), 6)
    for i in range(4):
        last = int(np.sum(runs.present[i])) - 2  # the stop is certain
        chosen = bool(runs.choice[i, np.flatnonzero(runs.present[i])[last]])
        same = world.rerun(jax.random.key(1), runs, i, last, chosen, 4000)
        np.testing.assert_array_equal(same, np.full(4000, runs.reward[i]))
    for trace, t, word in ((6, 0, "trace"), (0, 99, "t is")):
        with pytest.raises(CreditError, match=word):
            world.rerun(jax.random.key(1), runs, trace, t, True, 1)


def teams(form: str) -> list[TeamWorld]:
    fewest = FEWEST_AGENTS[form]
    return [
        TeamWorld(form, agents=agents, events=events, spawn=spawn, difficulties=TASKS)
        for agents, events, spawn in ((fewest, 12, 1.0), (fewest + 5, 60, 0.5), (14, 70, 0.5))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sampled
def test_a_team_is_what_it_is_called(form: str) -> None:
    for world in teams(form):
        traces = world.traces(world.sample(jax.random.key(3), 6))
        found = topology(traces.graph, traces.agents["role"].to_pylist())[:6]
        assert {TOPOLOGIES[code] for code in found} == {form}
        sizes = np.bincount(np.asarray(traces.graph.trace_ids)[: traces.sizes.events])
        assert sizes.max() <= world.events
        assert world.spawn < 1 or set(sizes) == {world.events}
        assert len(world.script.names) == world.agents + (form == "harness")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sampled
def test_the_bare_graph_is_that_of_the_log_written_and_read(form: str, tmp_path: Path) -> None:
    world = teams(form)[1]
    runs = world.sample(jax.random.key(4), 6)
    records = world.records(runs)
    assert all(check(record) is record for record in records)  # nothing refused, nothing put into another order
    traces = world.traces(runs, world.increments(runs))
    native.write(traces, tmp_path / "traces.jsonl")
    otlp.write(traces, tmp_path / "otlp")
    again, spans = read(tmp_path / "traces.jsonl"), read(tmp_path / "otlp")
    bare, logged = world.graph(runs), unpad(traces.graph)
    for field in dataclasses.fields(bare):
        wanted = getattr(traces.graph, field.name)
        for back in (again, spans):
            np.testing.assert_array_equal(getattr(back.graph, field.name), wanted, err_msg=field.name)
        np.testing.assert_array_equal(getattr(bare, field.name), getattr(logged, field.name), err_msg=field.name)
        if getattr(bare, field.name) is not None:
            assert getattr(bare, field.name).dtype == getattr(logged, field.name).dtype
    np.testing.assert_array_equal(again.reward, traces.reward)
    for name, evidence in traces.evidence.items():
        np.testing.assert_array_equal(again.evidence[name].array, evidence.array, err_msg=name)


def spread(world: TeamWorld, runs: Runs, agent: int) -> float:
    """The largest increment of an agent's decisions."""
    truth, present = world.increments(runs), world.present(runs)
    rows = [np.abs(truth.increments[i][: present[i].sum()]) for i in range(len(present))]
    agents = [world.script.agents[p] for p in present]
    return max(float(r[a == agent].max(initial=0)) for r, a in zip(rows, agents, strict=True))


@pytest.mark.slow
def test_free_riders_and_padding_earn_nothing_and_a_poisoned_message_takes_all_that_follows() -> None:
    key = jax.random.key(5)
    riding = TeamWorld("swarm", agents=6, events=40, kind="free_rider", difficulties=TASKS)
    runs = riding.sample(key, 6)
    assert spread(riding, runs, riding.rule.marked) == 0 < spread(riding, runs, riding.rule.marked - 1)
    padded = TeamWorld("swarm", agents=6, events=40, kind="padding", spawn=0.5, difficulties=TASKS)
    runs = padded.sample(key, 6)
    idle = np.unique(padded.script.agents[padded.script.on >= 0])[2]  # after the lead, who spawns: every second one
    assert spread(padded, runs, int(idle)) == 0 < spread(padded, runs, int(idle) - 1)
    poisoned = TeamWorld("debate", agents=3, events=40, kind="poisoned", difficulties=TASKS)
    runs = poisoned.sample(key, 6)
    source = poisoned.rule.marked
    truth = poisoned.increments(runs)
    below = poisoned.script.events[poisoned.rule.gate == source][:-1]  # the last is the stop
    bad = ~np.asarray(runs.choice[:, source])
    assert bad.any() and not truth.increments[bad][:, below].any()
    assert np.abs(truth.increments[~bad][:, below]).min() == 0.5
    worth = 1 + 0.5 * len(below)  # its own weight, and half of all that it lets count
    np.testing.assert_allclose(np.abs(truth.increments[:, poisoned.script.events[source]]), 0.5 * worth)


def test_a_trace_does_not_depend_on_the_others() -> None:
    world = TeamWorld("centralized", agents=6, events=40, spawn=0.5, difficulties=(-0.5, 0.5), group_size=4)
    parts = [world.sample(jax.random.key(5), 6, first=first) for first in (0, 6, 12)]
    later = world.sample(jax.random.key(5), 6, first=9)
    for field in dataclasses.fields(Runs):
        many = np.concatenate([getattr(part, field.name) for part in parts])
        np.testing.assert_array_equal(getattr(later, field.name), many[9:15])
        assert field.name in ("trace", "greedy_reward") or len(np.unique(many, axis=0)) > 1
    assert len({r.costs["tokens"] for part in parts for r in world.records(part)}) > 9


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("group_size", 0),
        ("difficulties", ()),
        ("good", 1.0),
        ("spawn", 0.0),
        ("weights", (0.5,)),
        ("links", 0),
        ("spawn_cost", -1),
        ("link", Bernoulli()),
    ],
)
def test_a_world_names_the_parameter_that_is_wrong(field: str, value: object) -> None:
    with pytest.raises(CreditError, match=rf"TeamWorld\.{field} is "):
        dataclasses.replace(TeamWorld(), **{field: value})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topology": "ring"}, "topology is 'ring'"),
        ({"agents": 301}, "agents is 301"),
        ({"agents": 2}, "agents is 2"),
        ({"events": 12}, "events is 12"),
        ({"kind": "luck"}, "kind is 'luck'"),
        ({"kind": "bottleneck", "links": 99}, "links is 99"),
        ({"kind": "poisoned", "spawn": 0.5}, "spawn is 0.5"),
        ({"kind": "padding", "agents": 3}, "spawns no agent by choice"),
        ({"topology": "harness", "agents": 1, "kind": "free_rider"}, "two that always act"),
    ],
)
def test_a_team_that_cannot_be_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(CreditError, match=words):
        TeamWorld(**options)


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("form", FORMS)
def test_the_largest_team_and_the_longest_trace(form: str) -> None:
    world = TeamWorld(form, agents=300, events=100_000, spawn=0.5)
    assert len(world.script.types) == 100_000
    runs = world.sample(jax.random.key(0), 2)
    truth = world.increments(runs)
    np.testing.assert_allclose(truth.expected + truth.increments.sum(1) + truth.outcome, runs.reward, atol=1e-3)


@pytest.mark.study
def test_a_team_of_three_hundred_is_written_read_assigned_composed_and_drawn(tmp_path: Path) -> None:
    import credit

    world = TeamWorld("swarm", agents=300, events=4000, group_size=4)
    runs = world.sample(jax.random.key(0), 4)
    truth = world.increments(runs)
    native.write(world.traces(runs, truth), tmp_path / "team.jsonl")
    traces: Traces = read(tmp_path / "team.jsonl")
    assert (traces.sizes.events, traces.sizes.agents) == (16_000, 1200)
    total = credit.rloo(traces.graph, traces.reward)
    value = traces.evidence["value"].array
    claim = credit.gae(traces.graph, traces.reward, value=value, lambda_=0.0)
    expected = np.zeros(traces.graph.num_traces, np.float32)
    expected[:4] = truth.expected
    ledger = credit.compose(traces.graph, traces.reward, [total, claim], expected=expected)
    assert ledger.coverage > 0.999  # the critic is right, so nothing is left unexplained
    figure = credit.plot.draw_trace(traces, 0, np.asarray(ledger.increments))
    figure.savefig(tmp_path / "team.png")
    assert (tmp_path / "team.png").stat().st_size > 10_000
