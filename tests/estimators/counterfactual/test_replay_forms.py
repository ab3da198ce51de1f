"""Logs of replays and of independent traces, drawn by seed and written in every form: against plain Python.

A world knows the draw and the situation of every decision. A form tells part of that in ids. Whatever the form, the
traces that share a draw are one sample, and siblings are compared in the situation that the ids name.
"""

from __future__ import annotations

import copy
import csv
import dataclasses
import functools
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.integrations import RowAdvantages
from credit.replay.prefixes.shared_prefixes import shared_prefixes, with_siblings
from credit.replay.run_planning import plan_replays
from credit.replay.run_results import Results
from credit.replay.sibling_traces import lines_with_siblings
from graphs.writers import native

Choice = tuple[int, ...]


@dataclasses.dataclass
class Step:
    """A decision of a trace: what was chosen before, who chose what, which draw that was, and what it earned."""

    history: tuple[Choice, ...]
    agents: list[str]
    choice: Choice
    draw: str
    earned: float


@dataclasses.dataclass
class Played:
    task: str
    name: str
    steps: list[Step]
    outcome: float

    @property
    def total(self) -> float:
        return self.outcome + sum(step.earned for step in self.steps)


class Drawn:
    """Independent traces of some tasks, and replays from any decision of any of them, replays included."""

    def __init__(self, seed: int, replays: bool = True, joint: bool = True) -> None:
        self.rng, self.draws, self.seed, self.joint = np.random.default_rng(seed), 0, seed, joint
        self.traces: list[Played] = []
        for task in "pqr"[: self.rng.integers(1, 4)]:
            mine = [self.play(task, []) for _ in range(self.rng.integers(2, 5))]
            for _ in range(int(self.rng.integers(1, 6)) if replays else 0):
                source = mine[self.rng.integers(len(mine))]
                mine.append(self.play(task, source.steps[: self.rng.integers(len(source.steps))]))
            self.traces += [mine[i] for i in self.rng.permutation(len(mine))]
        self.own_nodes = bool(seed % 2)  # agents of a joint turn have a node each; without a context, in one order
        self.rows = [
            (trace, k, agent)
            for trace in self.traces
            for k, step in enumerate(trace.steps)
            for agent in (step.agents if self.own_nodes else self.rng.permutation(step.agents).tolist())
        ]

    def play(self, task: str, frozen: list[Step]) -> Played:
        steps = list(frozen)
        while True:
            history = tuple(step.choice for step in steps)
            rule = np.random.default_rng([self.seed, ord(task), *itertools.chain(*history), 9 * len(history)])
            agents = ["planner", "worker", "critic"][: rule.integers(2, 4)]
            agents = agents if self.joint and rule.random() < 0.4 else [str(rule.choice(agents))]
            choice = tuple(self.rng.integers(0, 2, len(agents)).tolist())
            self.draws += 1
            earned = round(float(self.rng.normal()), 3)
            steps.append(Step(history, agents, choice, f"d{self.draws}", earned))
            if len(steps) == 3 or self.rng.random() < 0.2:
                name = f"{task}{self.draws}"
                return Played(task, name, steps, round(float(self.rng.normal()), 3))

    def clusters(self) -> list[int]:
        """The first trace of each one's cluster: traces that share a draw, and those that share one with them."""
        label = list(range(len(self.traces)))
        of = [{step.draw for step in trace.steps} for trace in self.traces]
        for i, j in itertools.product(range(len(of)), repeat=2):
            if of[i] & of[j]:
                low, high = sorted((label[i], label[j]))
                label = [low if x == high else x for x in label]
        return label


# --- What ids tell ----------------------------------------------------------------------------------------------------


def frozen(trace: Played, k: int) -> str:
    """The prefix that was frozen: the draw before; at first the task."""
    return trace.steps[k - 1].draw if k else trace.task


def situation(trace: Played, k: int) -> str:
    return f"{trace.task}{trace.steps[k].history}"


def columns_of(drawn: Drawn, form: str) -> dict[str, list[Any]]:
    """Evidence by row. A form is keys by "+"; "fan" tells contexts where traces branched only."""
    passing: dict[str, set[str]] = {}
    for trace in drawn.traces:
        for k in range(len(trace.steps)):
            passing.setdefault(frozen(trace, k), set()).add(trace.name)
    keys, own = form.split("+"), drawn.own_nodes
    columns: dict[str, list[Any]] = {}
    for trace, k, agent in drawn.rows:
        step = trace.steps[k]
        branched = k > 0 and len(passing[frozen(trace, k)]) > 1
        told = {
            "context": frozen(trace, k),
            "fan": frozen(trace, k) if branched else None,
            "situation": situation(trace, k),
            "node": f"{step.draw}/{agent}" if own else step.draw,
            "fan_node": (f"{step.draw}/{agent}" if own else step.draw) if branched else None,
            "alternative": f"{step.choice[step.agents.index(agent)]}",
            "sibling_parent": frozen(trace, k) if branched else None,
        }
        for key in keys:
            columns.setdefault({"fan": "context", "situation": "context", "fan_node": "node"}.get(key, key), []).append(
                told[key]
            )
    return columns


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
REPLAYED = [
    "context",
    "fan",
    "node",
    "sibling_parent",
    "context+node",
    "fan+fan_node",
    "fan+node",
    "context+node+alternative",
    "context+sibling_parent",
    "node+sibling_parent",
    "situation+node+alternative",
    "situation+node+alternative+sibling_parent",
]


# --- Plain numbers ----------------------------------------------------------------------------------------------------


class Tree:
    """The draws of a context, and those that follow a draw, looked up trace by trace."""

    def __init__(self, drawn: Drawn, context: Callable[[Played, int], str]) -> None:
        self.traces, self.context = drawn.traces, context

    def through(self, draw: str) -> list[tuple[Played, int]]:
        return [(t, k) for t in self.traces for k, step in enumerate(t.steps) if step.draw == draw]

    def value(self, draw: str, discount: float, earned: bool) -> float:
        """The mean over what follows: ends of traces, and contexts, each the mean over its draws that follow this."""
        children: list[float] = []
        below: dict[str, set[str]] = {}
        for t, k in self.through(draw):
            if k + 1 == len(t.steps):
                children.append(t.outcome if earned else t.total)
            else:
                below.setdefault(self.context(t, k + 1), set()).add(t.steps[k + 1].draw)
        children += [
            discount * mean([self.value(d, discount, earned) for d in sorted(draws)]) for draws in below.values()
        ]
        trace, k = self.through(draw)[0]
        return mean(children) + (trace.steps[k].earned if earned else 0)

    def rivals(self, context: str) -> list[str]:
        return sorted(
            {t.steps[k].draw for t in self.traces for k in range(len(t.steps)) if self.context(t, k) == context}
        )

    def c3(self, trace: Played, k: int) -> float | None:
        own, rivals = trace.steps[k].draw, self.rivals(self.context(trace, k))
        others = [self.value(d, 1, False) for d in rivals if d != own]
        return self.value(own, 1, False) - mean(others) if others else None

    def magrpo(self, trace: Played, k: int) -> float | None:
        rivals = {d: self.value(d, 0.9, True) for d in self.rivals(self.context(trace, k))}
        return rivals[trace.steps[k].draw] - mean(list(rivals.values())) if len(rivals) > 1 else None


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def rloo(drawn: Drawn, cluster: list[int]) -> list[float | None]:
    """Each trace against the mean over the other clusters of its task of their means."""
    out: list[float | None] = []
    for i, trace in enumerate(drawn.traces):
        others: dict[int, list[float]] = {}
        for j, other in enumerate(drawn.traces):
            if other.task == trace.task and cluster[j] != cluster[i]:
                others.setdefault(cluster[j], []).append(other.total)
        out.append(trace.total - mean([mean(x) for x in others.values()]) if others else None)
    return out


# --- Doors ------------------------------------------------------------------------------------------------------------


def table(drawn: Drawn) -> dict[str, list[Any]]:
    names = ("group", "trace", "agent", "reward", "event_reward")
    rows = [
        (t.task, t.name, agent, t.outcome, t.steps[k].earned if agent == t.steps[k].agents[-1] else 0.0)
        for t, k, agent in drawn.rows
    ]
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def from_columns(drawn: Drawn, evidence: dict[str, list[Any]]) -> credit.Traces:
    return credit.from_columns(**table(drawn), evidence=evidence)[2].traces


def from_lines(drawn: Drawn, evidence: dict[str, list[Any]], folder: Path) -> credit.Traces:
    records: dict[str, Any] = {}
    given = table(drawn)
    for i, (trace, k, agent) in enumerate(drawn.rows):
        head = {"trace_id": trace.name, "task_id": trace.task, "rewards": {"team": trace.outcome}, "events": []}
        record = records.setdefault(trace.name, head | {"edges": []})
        at = len(record["events"])
        record["edges"] += [{"src": f"e{at - 1}", "dst": f"e{at}", "type": "causal"}] if at else []
        event = {"id": f"e{at}", "type": "message", "agent": agent}
        event |= {"event_reward": given["event_reward"][i], "content_ref": str(trace.steps[k].choice)}
        record["events"].append(event | {k: column[i] for k, column in evidence.items() if column[i] is not None})
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records.values()))
    return credit.read(folder / "log.jsonl")


def from_table(drawn: Drawn, evidence: dict[str, list[Any]], folder: Path) -> credit.Traces:
    given = table(drawn) | evidence
    with (folder / "log.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(given)
        writer.writerows(zip(*given.values(), strict=True))
    return credit.read(folder / "log.csv")


@functools.cache
def of_rows(method: str) -> RowAdvantages:
    return RowAdvantages(method)


def found(traces: credit.Traces, method: str) -> list[float | None]:
    result, n = credit.run(traces, method), traces.sizes.events
    valid = np.asarray(result.valid)[:n].tolist()
    return [x if ok else None for x, ok in zip(np.asarray(result.advantage)[:n].tolist(), valid, strict=True)]


def same(one: list[float | None], other: list[float | None]) -> None:
    assert [x is None for x in one] == [x is None for x in other]
    np.testing.assert_allclose([x or 0 for x in one], [x or 0 for x in other], rtol=1e-4, atol=1e-5)


def clusters_in(traces: credit.Traces) -> list[int]:
    ids = traces.graph.cluster_ids
    return list(range(traces.sizes.traces)) if ids is None else np.asarray(ids)[: traces.sizes.traces].tolist()


@pytest.mark.parametrize("form", REPLAYED)
@pytest.mark.parametrize("seed", SEEDS)
def test_traces_that_share_a_draw_are_one_sample_in_every_form(form: str, seed: int) -> None:
    drawn = Drawn(seed)
    traces = from_columns(drawn, columns_of(drawn, form))
    assert clusters_in(traces) == drawn.clusters()
    by_trace = dict(zip((t.name for t in drawn.traces), rloo(drawn, drawn.clusters()), strict=True))
    same(found(traces, "rloo"), [by_trace[t.name] for t, _, _ in drawn.rows])


TREES = ("context+node", "context+node+alternative", "situation+node+alternative")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("method", "form"),
    [
        *(("c3", form) for form in TREES),
        *(("magrpo", form) for form in TREES),
        ("c3", "fan+fan_node"),
    ],
)
def test_siblings_are_compared_where_the_ids_say(method: str, form: str, seed: int, tmp_path: Path) -> None:
    """At every door of logs: columns, native lines and a table."""
    drawn, evidence, wanted = siblings_of(method, form, seed)
    for traces in (
        from_columns(drawn, evidence),
        from_lines(drawn, evidence, tmp_path),
        from_table(drawn, evidence, tmp_path),
    ):
        assert clusters_in(traces) == drawn.clusters()
        same(found(traces, method), wanted)


def siblings_of(method: str, form: str, seed: int) -> tuple[Drawn, dict[str, list[Any]], list[float | None]]:
    """A world, what the form tells of it, and what its rows should get."""
    drawn = Drawn(100 + seed)
    evidence = columns_of(drawn, form)
    tree = Tree(drawn, situation if form.startswith("situation") else frozen)
    wanted = [getattr(tree, method)(t, k) for t, k, _ in drawn.rows]
    if "fan" in form:
        wanted = [x if c is not None else None for x, c in zip(wanted, evidence["context"], strict=True)]
    return drawn, evidence, wanted


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:method 'c3' answers only")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("method", "form"), [*itertools.product(("c3", "magrpo"), TREES), ("c3", "fan+fan_node")])
def test_siblings_of_rows_of_a_trainer_are_compared_where_the_ids_say(method: str, form: str, seed: int) -> None:
    drawn, evidence, wanted = siblings_of(method, form, seed)
    given = table(drawn)
    order = np.random.default_rng(seed).permutation(len(drawn.rows))
    shuffled = {name: [column[i] for i in order] for name, column in (given | evidence).items()}
    result = of_rows(method)(
        **{name: shuffled[name] for name in ("group", "trace", "agent")},
        reward=np.array(shuffled["reward"], np.float32),
        event_reward=np.array(shuffled["event_reward"], np.float32),
        order=order,
        evidence={name: shuffled[name] for name in evidence},
    )
    numbers = [x if ok else None for x, ok in zip(result.advantages.tolist(), result.valid.tolist(), strict=True)]
    same(numbers, [wanted[i] for i in order])


@pytest.mark.parametrize("seed", range(12))
def test_contexts_that_are_no_frozen_prefixes_are_refused_and_no_others(seed: int) -> None:
    """Situations below draws that state no choice, and places named by their number alone."""
    drawn = Drawn(200 + seed)
    untold = columns_of(drawn, "situation+node")
    counted = columns_of(drawn, "node+alternative") | {"context": [f"{t.task}{k}" for t, k, _ in drawn.rows]}
    later = [(t, k) for t in drawn.traces for k in range(1, len(t.steps))]
    pairs = [(a, i, b, k) for (a, i), (b, k) in itertools.combinations(later, 2) if a.task == b.task]
    by_chance = any(
        a.steps[i].history == b.steps[k].history and a.steps[i - 1].draw != b.steps[k - 1].draw for a, i, b, k in pairs
    )
    unlike = any(i == k and a.steps[i].history != b.steps[k].history for a, i, b, k in pairs)
    for evidence, wrong in ((untold, by_chance), (counted, unlike)):
        if wrong:
            with pytest.raises(credit.CreditError, match="share a 'context', but"):
                from_columns(drawn, evidence)
        else:
            assert clusters_in(from_columns(drawn, evidence)) == drawn.clusters()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_credit_siblings_finds_is_taken_as_independent_traces(seed: int, tmp_path: Path) -> None:
    drawn = Drawn(300 + seed, replays=False, joint=False)
    traces = from_lines(drawn, {}, tmp_path)
    native.write(with_siblings(traces, shared_prefixes(traces)), tmp_path / "with.jsonl")
    known = credit.read(tmp_path / "with.jsonl")
    tree = Tree(drawn, situation)
    assert known.graph.cluster_ids is None
    same(found(known, "c3"), [tree.c3(t, k) for t, k, _ in drawn.rows])


def replayed(drawn: Drawn, traces: credit.Traces, seed: int, folder: Path) -> tuple[credit.Traces, Drawn]:
    """Runs of a plan for c3 as `credit replay` writes them, and the traces that they are."""
    rng = np.random.default_rng(seed)
    plan = plan_replays(traces, "c3", 4 * traces.sizes.events)
    plan = dataclasses.replace(plan, jobs=tuple(job for job in plan.jobs if rng.random() < 0.6))
    rewards = tuple({run: round(float(rng.normal()), 3) for run in range(2)} for _ in plan.jobs)
    none = (frozenset[int](),) * len(rewards)
    results = Results(rewards, none, {}, (0,) * len(rewards), ({},) * len(rewards))
    (folder / "with.jsonl").write_text("".join(line + "\n" for line in lines_with_siblings(traces, plan, results)))
    known = credit.read(folder / "with.jsonl")
    after = copy.deepcopy(drawn)
    by_name = {t.name: t for t in after.traces}
    for job, outcomes in zip(plan.jobs, rewards, strict=True):
        source, k = by_name[job.prefix.trace], int(str(job.prefix.decision)[1:])
        names = (f"{source.name}/e{k}/{i}" for i in itertools.count())
        names = (name for name in names if name not in by_name)
        for name, outcome in zip(names, outcomes.values(), strict=False):
            after.draws += 1
            step = dataclasses.replace(source.steps[k], draw=f"d{after.draws}", choice=(9,), earned=0.0)
            after.traces.append(Played(source.task, name, [*source.steps[:k], step], outcome))
    place = {name: i for i, name in enumerate(known.traces["trace"].to_pylist())}
    after.traces.sort(key=lambda t: place[t.name])
    return known, after


@pytest.mark.parametrize("form", ["", "alternative", "fan", "context+node", "situation+node+alternative"])
@pytest.mark.parametrize("seed", SEEDS)
def test_replays_of_a_log_and_of_its_replays_are_one_sample_with_it(form: str, seed: int, tmp_path: Path) -> None:
    drawn = Drawn(400 + seed, replays=form not in ("", "alternative"), joint=False)
    known = from_lines(drawn, columns_of(drawn, form) if form else {}, tmp_path)
    for again in range(2):
        known, drawn = replayed(drawn, known, 2 * seed + again, tmp_path)
        assert clusters_in(known) == drawn.clusters()


@pytest.mark.slow
def test_c3_has_the_increments_as_its_means_whatever_was_met_by_chance() -> None:
    """Every batch of three traces of two choices, and of a replay of the first from its second choice on."""
    rng = np.random.default_rng(5)
    first, second, worth = rng.uniform(0.2, 0.8), rng.uniform(0.2, 0.8, 2), rng.normal(size=(2, 2))
    group, trace, reward, evidence, facts = [], [], [], {k: [] for k in ("context", "node", "alternative")}, []
    for number, bits in enumerate(itertools.product((0, 1), repeat=7)):
        a, b, replay, *others = bits
        drawn = [((a, "a"), (b, "b")), ((a, "a"), (replay, "r")), ((others[0], "c"), (others[1], "d")),
                 ((others[2], "e"), (others[3], "f"))]  # fmt: skip
        draws = {name: (x, (first, second[path[0][0]])[k]) for path in drawn for k, (x, name) in enumerate(path)}
        chance = float(np.prod([p if x else 1 - p for x, p in draws.values()]))
        for i, path in enumerate(drawn):
            for k, (x, name) in enumerate(path):
                group.append(number)
                trace.append(f"{number}/{i}")
                reward.append(worth[path[0][0], path[1][0]])
                evidence["context"].append(f"{number}" if k == 0 else f"{number}/{path[0][0]}")
                evidence["node"].append(f"{number}/{name}")
                evidence["alternative"].append(str(x))
                facts.append((chance, tuple(y for y, _ in path[: k + 1]), name))
    traces = credit.from_columns(group=group, trace=trace, reward=reward, evidence=evidence)[2].traces
    value = {(x,): second[x] * worth[x, 1] + (1 - second[x]) * worth[x, 0] for x in (0, 1)}
    value |= {(x, y): worth[x, y] for x in (0, 1) for y in (0, 1)}
    value[()] = first * value[1,] + (1 - first) * value[0,]
    given = found(traces, "c3")
    for draw in "abrcdef":
        for path in {path for _, path, name in facts if name == draw}:
            rows = [(x, p) for (p, made, name), x in zip(facts, given, strict=True)
                    if (made, name) == (path, draw) and x is not None]  # fmt: skip
            expected = sum(x * p for x, p in rows) / sum(p for _, p in rows)
            assert expected == pytest.approx(value[path] - value[path[:-1]], abs=1e-5)
