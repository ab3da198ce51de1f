"""Healthy teams and the same teams with one fault planted, as records of logs: the worlds of `credit bench doctor`."""

from __future__ import annotations

import copy
import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs.event_types import EdgeType, EventType
from graphs.traces.record import TraceRecord
from graphs.worlds import FEWEST_AGENTS, Runs, TeamWorld

__all__ = [
    "FAULTS",
    "OF_REWARDS",
    "Generator",
    "Insertion",
    "Records",
    "copied",
    "drawn_team",
    "healthy_team",
    "insert",
    "plant",
]

Generator = np.random.Generator
Records = list[TraceRecord]

MODELS = ("alpha", "beta")
EACH = 4  # traces of a group


def drawn_team(rng: Generator, sizes: tuple[int, int], lengths: tuple[int, int]) -> TeamWorld:
    """A team of a drawn form, with a drawn number of agents and about a drawn number of events a trace.

    Hierarchies have 7 agents or more: in smaller ones the managers, one after another, have one worker each.
    """
    topology = str(rng.choice(sorted(FEWEST_AGENTS)))
    least = {"hierarchical": 7, "harness": 3}.get(topology, FEWEST_AGENTS[topology])
    agents = int(rng.integers(max(least, sizes[0]), max(least, sizes[0], sizes[1]) + 1))
    events = max(int(rng.integers(lengths[0], lengths[1] + 1)), 12 * agents + 20)
    return TeamWorld(topology, agents=agents, events=events, kind="bernoulli")


def healthy_team(rng: Generator, team: TeamWorld, tasks: int, models: int = 1) -> Records:
    """Traces of a team without a fault: for each task, four of each model.

    Chances of success lie between 0.3 and 0.7 by task, and are the same for all models. Up to a tenth of messages and
    tool calls repeat earlier ones. A verifier's verdict is the outcome, wrong in up to a fifth of traces. The version
    of the policy rises with the number of the task.
    """
    n = tasks * EACH * models
    task = np.repeat(np.arange(tasks), EACH * models)
    chance = rng.uniform(0.3, 0.7, tasks)
    reward = (rng.random(n) < chance[task]).astype(np.float32)
    numbers = np.arange(n, dtype=np.int32)
    everything = np.ones((n, team.decisions), bool)
    runs = Runs(
        trace=numbers, group=task.astype(np.int32), task=np.zeros(n, np.int32),
        seed=rng.integers(0, 2**32, n, dtype=np.uint32), choice=everything, present=everything,
        score=np.zeros(n, np.int32), reward=reward, greedy_reward=np.zeros(n, np.float32),
    )  # fmt: skip
    records = team.records(runs)
    repeats, wrong = rng.uniform(0, 0.1, 2), rng.uniform(0, 0.2)
    for i, record in enumerate(records):
        record.model = MODELS[i // EACH % models]
        record.evidence = {"policy_version": float(task[i])}
        flipped = rng.random() < wrong
        record.rewards["verifier"] = 1 - record.rewards["team"] if flipped else record.rewards["team"]
        contents: list[str | None] = [None] * len(record.ids)
        for kind, chance_of in zip((EventType.MESSAGE, EventType.TOOL_CALL), repeats, strict=True):
            rows = [j for j, found in enumerate(record.types) if found == kind]
            for place, j in enumerate(rows):
                earlier = rows[int(rng.integers(place))] if place and rng.random() < chance_of else None
                contents[j] = f"{i}/{j}" if earlier is None else contents[earlier]
        record.columns["content_ref"] = contents
    return records


def plant(fault: str, rng: Generator, records: Records) -> Records | None:
    """The same traces with the fault, a key of `FAULTS`; None where the team's form cannot have it."""
    planted = [copied(record) for record in records]
    return planted if FAULTS[fault](rng, planted) else None


class Insertion(NamedTuple):
    """An event to insert after the event at `after`, which causes it; nothing depends on it.

    `columns` are evidence and text by name, as `TraceRecord.event` takes them.
    """

    after: int
    kind: EventType
    agent: str
    action: bool
    columns: dict[str, Any]


def insert(record: TraceRecord, insertions: Sequence[Insertion]) -> None:
    """Insert events, those after one event in the order in which they are passed."""
    n, k = len(record.ids), len(insertions)
    after = np.array([insertion.after for insertion in insertions], np.int64)
    order = np.argsort(np.concatenate([np.arange(n), after]), kind="stable")  # an old event is before what it caused
    place = np.argsort(order)
    new = order.tolist()

    def merged(column: list[Any], cells: list[Any]) -> list[Any]:
        full = [*column, *[None] * (n - len(column)), *cells]
        return [full[j] for j in new]

    record.ids = merged(record.ids, [f"inserted-{i}" for i in range(k)])
    record.types = merged(record.types, [int(insertion.kind) for insertion in insertions])
    record.agents = merged(record.agents, [insertion.agent for insertion in insertions])
    record.actions = merged(record.actions, [insertion.action for insertion in insertions])
    record.times = merged(record.times, [record.times[insertion.after] for insertion in insertions])
    record.lines, record.offsets = [0] * (n + k), [0] * (n + k)
    for name in {*record.columns, *(name for insertion in insertions for name in insertion.columns)}:
        record.columns[name] = merged(
            record.columns.get(name, []), [insertion.columns.get(name) for insertion in insertions]
        )
    record.senders = [*place[record.senders].tolist(), *place[after].tolist()]
    record.receivers = [*place[record.receivers].tolist(), *place[n:].tolist()]
    record.edge_types = [*record.edge_types, *[int(EdgeType.CAUSAL)] * k]


def copied(record: TraceRecord) -> TraceRecord:
    """A copy whose lists and dictionaries are its own; the agents in them are shared, and never changed."""
    new = copy.copy(record)
    for name in record.__struct_fields__:
        part = getattr(record, name)
        if isinstance(part, list | dict):
            setattr(new, name, part.copy())
    new.columns = {name: list(column) for name, column in record.columns.items()}
    return new


def _members(record: TraceRecord) -> list[str]:
    """Agents that act, in order of their first action."""
    return list(dict.fromkeys(a for a, acts in zip(record.agents, record.actions, strict=True) if acts))


def _families(record: TraceRecord) -> list[list[str]]:
    """Members that one agent started, two or more, in order of their first action."""
    of: dict[str, list[str]] = {}
    for name in _members(record):
        parent = record.instances[name].parent
        if parent and parent != name:
            of.setdefault(parent, []).append(name)
    return [family for family in of.values() if len(family) > 1]


def _events_of(record: TraceRecord, agent: str) -> list[int]:
    return [j for j, name in enumerate(record.agents) if name == agent]


def _serial_collapse(rng: Generator, records: Records) -> bool:
    """Each sub-agent begins when the one before has ended."""
    for record in records:
        families = _families(record)
        if not families:
            return False
        for family in families:
            for former, latter in itertools.pairwise(family):
                last = max(j for j in _events_of(record, former) if record.actions[j])
                record.edge(last, _events_of(record, latter)[0], EdgeType.TEMPORAL)
        _reorder(record)
    return True


def _reorder(record: TraceRecord) -> None:
    """Put the events into an order in which every edge runs forward, the old order where edges leave it open."""
    n = len(record.ids)
    waiting, after = [0] * n, [list[int]() for _ in range(n)]
    for s, r in zip(record.senders, record.receivers, strict=True):
        waiting[r] += 1
        after[s].append(r)
    ready = [j for j in range(n) if not waiting[j]]
    order: list[int] = []
    while ready:
        j = heapq.heappop(ready)
        order.append(j)
        for r in after[j]:
            waiting[r] -= 1
            if not waiting[r]:
                heapq.heappush(ready, r)
    place = {old: new for new, old in enumerate(order)}
    for name in ("ids", "types", "agents", "actions"):
        setattr(record, name, [getattr(record, name)[j] for j in order])
    for name, column in record.columns.items():
        full = column + [None] * (n - len(column))
        record.columns[name] = [full[j] for j in order]
    record.senders = [place[s] for s in record.senders]
    record.receivers = [place[r] for r in record.receivers]


def _dominant_agent(rng: Generator, records: Records) -> bool:
    """One agent takes over nine tenths of the work that others do after it began; each keeps its first action."""
    for record in records:
        members = _members(record)
        if len(members) < 3:
            return False
        begins = {name: _events_of(record, name)[0] for name in members}
        early = [name for name in members if begins[name] <= len(record.ids) / 10] or members[:1]
        boss, first = early[int(rng.integers(len(early)))], set[str]()
        taken: dict[str, bool] = {}  # whether the last action of each agent went over, and its effects with it
        for j, name in enumerate(record.agents):
            if name not in members or name == boss:
                continue
            if record.actions[j]:
                taken[name] = j > begins[boss] and name in first and rng.random() < 0.95
                first.add(name)
            if taken.get(name):
                record.agents[j] = boss
    return True


def _free_riding(rng: Generator, records: Records) -> bool:
    """Nobody reads what a third of the members do."""
    for record in records:
        parents = {agent.parent for name, agent in record.instances.items() if agent.parent != name}
        last = max(j for j, acts in enumerate(record.actions) if acts)
        can = [name for name in _members(record) if name not in parents and name != record.agents[last]]
        if not can:
            return False
        idle = set(rng.choice(can, max(1, len(can) // 3), replace=False).tolist())
        _cut(record, [who in idle and other not in idle for who, other in _ends(record)])
    return True


def _ends(record: TraceRecord) -> list[tuple[str, str]]:
    """The agents of the two events of each edge."""
    return [(record.agents[s], record.agents[r]) for s, r in zip(record.senders, record.receivers, strict=True)]


def _cut(record: TraceRecord, gone: list[bool]) -> None:
    """Leave out some edges."""
    for name in ("senders", "receivers", "edge_types"):
        column = getattr(record, name)
        setattr(record, name, [cell for cell, cut in zip(column, gone, strict=True) if not cut])


def _pseudo_parallelism(rng: Generator, records: Records) -> bool:
    """Sub-agents do not wait for each other by their edges, but run one after another by their times."""
    for record in records:
        families = _families(record)
        if not any(sum(record.actions[j] for j in _events_of(record, name)) > 1 for f in families for name in f):
            return False
        for family in families:
            rows = [j for name in family for j in _events_of(record, name)]
            for j, time in zip(rows, sorted(record.times[j] for j in rows), strict=True):
                record.times[j] = time
    return True


def _duplicated_work(rng: Generator, records: Records) -> bool:
    """Seven tenths of what sub-agents write and call is what the first of them wrote and called."""
    for record in records:
        families = _families(record)
        if not families:
            return False
        contents = record.columns["content_ref"]
        for family in families:
            said = [
                [j for j in _events_of(record, name) if contents[j] is not None] for name in family
            ]  # messages and calls come in the same order in every sibling
            for rows in said[1:]:
                for j, model in zip(rows, said[0], strict=False):
                    if rng.random() < 0.7 and record.types[j] == record.types[model]:
                        contents[j] = contents[model]
                        record.columns["tool"][j] = record.columns["tool"][model]
    return True


def _communication_padding(rng: Generator, records: Records) -> bool:
    """Six tenths of messages repeat an earlier one."""
    for record in records:
        _repeat(rng, record, EventType.MESSAGE, 0.6)
    return True


def _repeat(rng: Generator, record: TraceRecord, kind: EventType, chance: float) -> None:
    contents = record.columns["content_ref"]
    rows = [j for j, found in enumerate(record.types) if found == kind]
    for place, j in enumerate(rows):
        if place and rng.random() < chance:
            contents[j] = contents[rows[int(rng.integers(place))]]


def _tool_spam(rng: Generator, records: Records) -> bool:
    """Every tool call is made again, twice."""
    for record in records:
        calls = [j for j, kind in enumerate(record.types) if kind == EventType.TOOL_CALL]
        if len(calls) < 2:
            return False
        again = [{name: record.columns[name][j] for name in ("content_ref", "tool")} for j in calls]
        insert(
            record,
            [
                Insertion(j, EventType.TOOL_CALL, record.agents[j], False, columns)
                for j, columns in zip(calls, again, strict=True)
                for _ in range(2)
            ],
        )
    return True


def _aggregation_leakage(rng: Generator, records: Records) -> bool:
    """Aggregations read nothing that sub-agents returned, in six tenths of them."""
    for record in records:
        joins = {j for j, kind in enumerate(record.types) if kind == EventType.AGGREGATE and rng.random() < 0.6}
        if EventType.AGGREGATE not in record.types:
            return False
        ends = zip(record.receivers, _ends(record), strict=True)
        _cut(record, [r in joins and who != other for r, (who, other) in ends])
    return True


def _verifier_drift(rng: Generator, records: Records) -> bool:
    """The verifier passes more and more failed traces, eight tenths of them in the end."""
    last = max(record.evidence["policy_version"] for record in records)
    for record in records:
        if rng.random() < 0.8 * record.evidence["policy_version"] / last and not record.rewards["team"]:
            record.rewards["verifier"] = 1.0
    return True


def _verifier_collusion(rng: Generator, records: Records) -> bool:
    """The verifier passes nine tenths of the failed traces of one model."""
    for record in records:
        if record.model == MODELS[1] and not record.rewards["team"] and rng.random() < 0.9:
            record.rewards["verifier"] = 1.0
    return True


def _verdict_disagreement(rng: Generator, records: Records) -> bool:
    """The verifier throws a coin."""
    for record in records:
        record.rewards["verifier"] = float(rng.integers(2))
    return True


def _idle_groups(rng: Generator, records: Records) -> bool:
    """In nine tenths of the groups all traces end alike."""
    groups = {(record.group_id, record.model): (rng.random() < 0.9, float(rng.random() < 0.5)) for record in records}
    for record in records:
        equal, outcome = groups[record.group_id, record.model]
        if equal:
            record.rewards["team"] = outcome
    return True


def _mixed_groups(rng: Generator, records: Records) -> bool:
    """A trace of each group is of the version before."""
    for record in records[::EACH]:
        record.evidence["policy_version"] += 1
    return True


def _exploding_advantages(rng: Generator, records: Records) -> bool:
    """One outcome is a hundred times as large as others."""
    records[int(rng.integers(len(records)))].rewards["team"] = 100.0
    return True


FAULTS: Mapping[str, Callable[[Generator, Records], bool]] = {
    "serial_collapse": _serial_collapse,
    "dominant_agent": _dominant_agent,
    "free_riding": _free_riding,
    "pseudo_parallelism": _pseudo_parallelism,
    "duplicated_work": _duplicated_work,
    "communication_padding": _communication_padding,
    "tool_spam": _tool_spam,
    "aggregation_leakage": _aggregation_leakage,
    "verifier_drift": _verifier_drift,
    "verifier_collusion": _verifier_collusion,
    "verdict_disagreement": _verdict_disagreement,
    "idle_groups": _idle_groups,
    "mixed_groups": _mixed_groups,
    "exploding_advantages": _exploding_advantages,
}
"""For each check of `credit doctor`, how its fault is planted; False where the team's form cannot have it."""

OF_REWARDS = frozenset(
    {"verifier_drift", "verifier_collusion", "verdict_disagreement", "idle_groups", "mixed_groups",
     "exploding_advantages"}
)  # fmt: skip
"""The faults of outcomes, verdicts and groups; the others are of what a team does."""
