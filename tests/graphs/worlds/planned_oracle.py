"""The true values of a planned world: from its parameters and the order of a log, by going through every completion."""

from __future__ import annotations

import math

from graphs.traces.record import TraceRecord
from graphs.worlds import Additive, Bernoulli, Episodes, Pivotal, World


def probability(world: World, task: int, at_zero: float) -> float:
    return 1 / (1 + math.exp(world.difficulties[task] - math.log(at_zero / (1 - at_zero))))


def mean_outcome(world: World, score: int) -> float:
    if isinstance(world.outcome, Additive):
        return world.outcome.scale * score
    if isinstance(world.outcome, Bernoulli):
        return 1 / (1 + math.exp(-world.outcome.slope * (score - world.outcome.centre)))
    return world.outcome.good if score else world.outcome.bad


def weight(world: World, agent: str, call: int) -> int:
    """What a good decision adds to the score: the lead's are plan, aggregation and stop."""
    if isinstance(world.outcome, Pivotal):
        return int(agent == "worker-0" and call == world.calls - 1)
    if agent == "lead":
        return (world.plan_weight, world.aggregate_weight, 0)[call]
    return world.call_weights[call]


def good_probability(world: World, task: int, plan: bool, agent: str, call: int) -> float:
    if agent == "lead":
        return (
            probability(world, task, world.good_plan),
            probability(world, task, world.good_aggregate),
            1.0,
        )[call]
    return probability(world, task, world.good_call[int(plan)])


def cost(world: World) -> int:
    return 0 if isinstance(world.outcome, Pivotal) else world.worker_cost


def expectation(world: World, task: int, plan: bool, pending: list[tuple[str, int]], score: int) -> float:
    """E[R] when these decisions are still to be taken, by going through all their outcomes."""
    if not pending:
        return mean_outcome(world, score)
    (agent, call), rest = pending[0], pending[1:]
    p, w = good_probability(world, task, plan, agent, call), weight(world, agent, call)
    bad = expectation(world, task, plan, rest, score)
    return p * expectation(world, task, plan, rest, score + w) + (1 - p) * bad


def decisions(world: World, size: int) -> list[tuple[str, int]]:
    calls = [(f"worker-{w}", c) for w in range(size) for c in range(world.calls)]
    return [*calls, ("lead", 1), ("lead", 2)]


def after_plan(world: World, task: int, size: int, plan: bool) -> float:
    score = plan * weight(world, "lead", 0) - cost(world) * size
    return expectation(world, task, plan, decisions(world, size), score)


def plan_probability(world: World, task: int, size: int, plan: bool) -> float:
    p = probability(world, task, world.good_plan)
    return world.size_probabilities[size - 1] * (p if plan else 1 - p)


def start_value(world: World, task: int) -> float:
    return sum(
        plan_probability(world, task, size, plan) * after_plan(world, task, size, plan)
        for size in range(1, world.max_workers + 1)
        for plan in (False, True)
    )


def qualities(world: World, episodes: Episodes, row: int, record: TraceRecord) -> list[tuple[str, int, bool]]:
    """The trace's actions in log order: agent, number among the agent's own, quality drawn."""
    calls: dict[str, int] = {}
    found = []
    for agent, action in zip(record.agents, record.actions, strict=True):
        if not action:
            continue
        call = calls.get(agent, 0)
        calls[agent] = call + 1
        own = (0, -2, -1) if agent == "lead" else range(1 + int(agent[-1]) * world.calls, world.layout.decisions)
        slot = own[call]
        found.append((agent, call, bool(episodes.good[row, slot])))
    return found


def true_values(world: World, episodes: Episodes, row: int, record: TraceRecord) -> list[float]:
    """E[R] before each action, and after the last."""
    task, size = int(episodes.task[row]), int(episodes.size[row])
    actions = qualities(world, episodes, row, record)
    plan = actions[0][2]
    values = [start_value(world, task)]
    pending, score = decisions(world, size), plan * weight(world, "lead", 0) - cost(world) * size
    values.append(expectation(world, task, plan, pending, score))
    for agent, call, good in actions[1:]:
        pending = [d for d in pending if d != (agent, call)]
        score += good * weight(world, agent, call)
        values.append(expectation(world, task, plan, pending, score))
    return values
