"""Which agents the difference of a cost between two sides comes from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from credit.metrics.event_costs import Prices, event_costs, token_counts
from credit.metrics.logged_prices import logged_prices
from credit.reports.tasks import task_ids
from credit.reports.trace_numbers import TraceMetric
from credit.sides.chosen_sides import Sides
from credit.sides.side_rows import SideDifference, corrected_rows
from credit.sides.side_tests import compare_metric
from graphs.structure.host_ids import ranked
from graphs.task_means import ROUNDING
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models

__all__ = ["BY_AGENT", "AgentDifference", "agent_differences", "agents_of_costs", "side_weights"]

BY_AGENT = (("money", "logged_money", "input_tokens"), ("tokens",))
"""Costs whose difference is told by agent, of each kind the first that is known of both sides and of their agents: a
model that was swapped is found by money, and an agent that says more by tokens, which may be cheap."""
LEAST_PART = 0.05
"""Part of the cost of a trace from which an agent's own change of it is told."""


@dataclasses.dataclass(frozen=True)
class AgentDifference:
    """What an agent adds to a cost of a trace on two sides.

    Attributes:
      agent: its name.
      first, second: means over the tasks compared, of means over their traces; 0 of a trace without the agent.
      difference: second − first. Those of all agents add up to that of the cost.
      models: of each side, those of its actions, in the order of names.
      of_models, of_tokens, of_tools: of money, what other models, other numbers of tokens, and tools and all else add
        to the difference, which is their sum; None of another cost, and where a number of tokens or a price is not
        known: the logged cost has those of `logged_prices`.
      of_calls: of of_tokens, what other numbers of calls add; the tokens of a call add the rest.
      cached: of money, the part of the tokens read that came from a cache on each side; None where it read none.
      calls, read, generated: its calls with tokens in a trace on each side, in the same means, and their tokens; 0
        where one is not known.
      test: of its own cost of a trace, within tasks as of any metric. Its p is corrected by Holm's method, for agents
        alone; None of one that has too little of the cost to be told.
      stands_out: whether its own cost changed beyond chance, by `LEAST_PART` of the whole or more.
    """

    agent: str
    first: float
    second: float
    difference: float
    models: tuple[list[str], list[str]]
    of_models: float | None = None
    of_tokens: float | None = None
    of_tools: float | None = None
    of_calls: float | None = None
    cached: tuple[float, float] | None = None
    calls: tuple[float, float] = (0.0, 0.0)
    read: tuple[float, float] = (0.0, 0.0)
    generated: tuple[float, float] = (0.0, 0.0)
    test: SideDifference | None = None
    stands_out: bool = False


def agent_differences(
    traces: Traces,
    cost: np.ndarray,
    value: np.ndarray,
    side: np.ndarray,
    task: np.ndarray,
    kinds: np.ndarray | None = None,
) -> list[AgentDifference]:
    """The difference of a cost as a sum over agents, the largest part first: the traces are those that
    `side_differences` compares. Empty where the costs of events are not those of the traces.

    An agent's money is a sum over kinds of tokens, of their number n times their mean price p, which its models make.
    A kind adds (p₂ − p₁) (n₁ + n₂) / 2 by other models and (n₂ − n₁) (p₁ + p₂) / 2 by other numbers: the mean of both
    orders in which prices and numbers might have changed, so that no side comes first. A kind that one side has none
    of has no price there, and keeps that of the other. Numbers are calls times tokens of a call, and are split alike.

    Args:
      traces: what was read.
      cost: of each event: float64 [events].
      value: of each trace, NaN where it is not known: float64 [traces].
      side: 0 or 1 of each trace, -1 for none: int [traces].
      task: of each trace: int [traces].
      kinds: of `EventCosts`, where the cost is money.

    Reference: Shapley 1953, A value for n-person games.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["s", "t", "t"], agent=["a", "a", "b"], reward=[1.0] * 3)
      >>> found = agent_differences(
      ...     rows.traces, np.array([2.0, 3.0, 4.0]), np.array([2.0, 7.0]), np.array([0, 1]), np.zeros(2))
      >>> [(one.agent, one.first, one.second, one.difference) for one in found]
      [('b', 0.0, 4.0, 4.0), ('a', 2.0, 3.0, 1.0)]
    """
    graph, n, m = traces.graph, traces.sizes.events, traces.sizes.traces
    trace, (names, name) = np.asarray(graph.trace_ids)[:n], ranked(traces.agents["name"].to_pylist())
    weights = side_weights(value, side, task)
    kept = weights.any(axis=0)
    total = np.bincount(trace, cost, m)
    if not np.allclose(total[kept], value[kept], rtol=ROUNDING, atol=0):
        return []
    (model_names, model), acts = event_models(traces), np.asarray(graph.action_mask)[:n]
    read, generated = (token_counts(traces, counted) for counted in ("input_tokens", "tokens"))
    counts = np.array([np.where((read > 0) | (generated > 0), 1.0, read + generated), read, generated])
    means, sums, counted = [], [], []
    models: list[list[set[str]]] = []
    for weight in weights:
        events = np.flatnonzero(weight[trace] > 0)
        agent, of_event = name[np.asarray(graph.agent_ids)[events]], weight[trace[events]]
        means.append(np.bincount(agent, of_event * cost[events], len(names)))
        counted.append(np.stack([np.bincount(agent, of_event * of[events], len(names)) for of in counts]))
        if kinds is not None:
            flat = kinds[:, :, events].reshape(-1, len(events))
            sums.append(np.stack([np.bincount(agent, of_event * row, len(names)) for row in flat]))
        models.append([set() for _ in names])
        acting = acts[events]
        for number, which in np.unique(np.stack([agent[acting], model[events][acting]]), axis=1).T.tolist():
            models[-1][number] |= {model_names[which]} - {""}
    calls = np.nan_to_num([of[0] for of in counted])
    parts = _parts(sums[0], sums[1], calls) if sums else [()] * len(names)
    of_calls = np.nan_to_num(np.stack(counted, axis=2)).transpose(1, 0, 2).tolist()  # [agents, counts, sides]
    found = zip(
        names, *(mean.tolist() for mean in (*means, means[1] - means[0])), *models, parts, of_calls, strict=True
    )
    spent = [
        AgentDifference(agent, first, second, change, (sorted(before), sorted(after)), *of, **_counts(many))
        for agent, first, second, change, before, after, of, many in found
        if first or second
    ]
    return sorted(spent, key=lambda one: -abs(one.difference))


def _counts(many: list[list[float]]) -> dict[str, Any]:
    return {name: (first, second) for name, (first, second) in zip(("calls", "read", "generated"), many, strict=True)}


def side_weights(value: np.ndarray, side: np.ndarray, task: np.ndarray) -> np.ndarray:
    """How much each trace counts in the means of two sides that `side_differences` compares: float [2, traces].

    Args:
      value, side, task: as of `agent_differences`.
    """
    known = np.isfinite(value) & (side >= 0)
    shared = np.intersect1d(*(task[known & (side == one)] for one in (0, 1)))
    kept = known & np.isin(task, shared) if len(shared) else known
    weights = np.zeros((2, len(value)))
    for one, weight in enumerate(weights):
        rows = np.flatnonzero(kept & (side == one))
        tasks, of = np.unique(task[rows], return_inverse=True)
        weight[rows] = 1 / np.bincount(of)[of] / len(tasks)
    return weights


def _parts(first: np.ndarray, second: np.ndarray, calls: np.ndarray) -> list[tuple[Any, ...]]:
    """What models, tokens, tools and calls add for each agent, and what part it read from a cache, in the order of the
    fields, from numbers and money of each kind, the tools' last: float [10, agents] of each side; and from calls:
    float [2, agents]."""
    (n1, m1), (n2, m2) = (side.reshape(2, 5, -1)[:, :4] for side in (first, second))
    with np.errstate(divide="ignore", invalid="ignore"):
        p1, p2 = m1 / n1, m2 / n2
    p1, p2 = np.where(n1 == 0, p2, p1), np.where(n2 == 0, p1, p2)
    alike = np.abs(p2 - p1) <= ROUNDING * np.maximum(p1, p2)  # of one model, or none of the kind
    none = ((m1 == 0) & (m2 == 0)) | ((n1 == 0) & (n2 == 0))
    of_models = np.where(none | alike, 0.0, (p2 - p1) * (n1 + n2) / 2).sum(axis=0)
    of_kinds = np.where(none, 0.0, np.where(alike, m2 - m1, (n2 - n1) * (p1 + p2) / 2))
    of_tokens, of_tools = of_kinds.sum(axis=0), second[9] - first[9]
    at_means = [np.where(none, 0.0, n * (p1 + p2) / 2).sum(axis=0) for n in (n1, n2)]
    with np.errstate(divide="ignore", invalid="ignore"):
        cached = np.stack([n[2] / n[[0, 2, 3]].sum(axis=0) for n in (n1, n2)], axis=1)
        of_a_call = np.sum(at_means / calls, axis=0) / 2
    of_calls = np.where(calls.all(axis=0), (calls[1] - calls[0]) * of_a_call, of_tokens)
    found: list[tuple[Any, ...]] = []
    added = (of_models, of_tokens, of_tools, of_calls)
    for *of, part in zip(*(each.tolist() for each in (*added, cached)), strict=True):
        cache = None if math.isnan(sum(part)) else tuple(part)
        found.append((*[None] * len(of), cache) if math.isnan(sum(of)) else (*of, cache))
    return found


def agents_of_costs(
    traces: Traces,
    sides: Sides,
    rows: list[SideDifference],
    measured: dict[str, TraceMetric],
    prices: Prices | None,
) -> dict[str, tuple[AgentDifference, ...]]:
    """What agents add to the differences of `BY_AGENT` that are known, by their names, the own change of each tested.

    What one of several adds may be lost in what others do. Agents are tested whose part of the cost, over both sides,
    leaves room for a change of `LEAST_PART`: which these are does not depend on the side of a trace.

    Reference: Holm 1979; Tarone 1990.
    """
    compared, agents = {row.metric for row in rows}, dict[str, tuple[AgentDifference, ...]]()
    task, tests = task_ids(traces), dict[tuple[str, str], SideDifference]()
    for kind in BY_AGENT:
        for name in (name for name in kind if name in compared):
            costs = event_costs(traces, prices)
            cost, kinds = getattr(costs, name, None), costs.kinds if name == "money" else None
            if cost is None:  # the log states it
                cost, kinds = token_counts(traces, "money"), event_costs(traces, logged_prices(traces)).kinds
                if kinds is not None:
                    kinds[1, 4] = cost - kinds[1, :4].sum(axis=0)
            found = agent_differences(traces, cost, measured[name].value, sides.side, task, kinds)
            if len(found) > 1 or (found and found[0].of_models):
                agents[name] = tuple(found)
            if len(found) > 1:
                tests |= {(name, who): test for who, test in _tests(traces, cost, name, measured, sides, found)}
            if found:
                break
    for (name, who), tested in zip(tests, corrected_rows([*tests.values()], by_least=True), strict=True):
        whole = max(sum(one.first for one in agents[name]), sum(one.second for one in agents[name]))
        clear = tested.worth_telling and tested.rises == (tested.difference > 0)
        agents[name] = tuple(
            dataclasses.replace(one, test=tested, stands_out=clear and abs(one.difference) >= LEAST_PART * whole)
            if one.agent == who
            else one
            for one in agents[name]
        )
    return agents


def _tests(
    traces: Traces,
    cost: np.ndarray,
    metric: str,
    measured: dict[str, TraceMetric],
    sides: Sides,
    found: list[AgentDifference],
) -> Iterator[tuple[str, SideDifference]]:
    """The test of each agent that has enough of a cost, in the traces in which all of it is known."""
    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    names, name = ranked(traces.agents["name"].to_pylist())
    agent = name[np.asarray(traces.graph.agent_ids)[: traces.sizes.events]]
    whole = sum(one.first + one.second for one in found)
    for one in found:
        if one.first + one.second >= LEAST_PART / 2 * whole:
            own = np.bincount(trace, np.where(agent == names.index(one.agent), cost, 0.0), traces.sizes.traces)
            own = np.where(np.isfinite(measured[metric].value), own, np.nan)
            row = compare_metric(metric, TraceMetric(own, measured[metric].reasons), sides.side, task_ids(traces))
            if row is not None:
                yield one.agent, row
