"""Which agents the difference of a cost between two sides comes from, and what did it in each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from credit.metrics.event_costs import Prices, event_costs, token_counts
from credit.metrics.logged_prices import logged_prices
from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from credit.reports.trace_numbers import TeamFacts, TraceMetric, numbered
from credit.sides.asked_metrics import ASKED, LEAST_SHARE, TOKENS
from credit.sides.chosen_sides import Sides
from credit.sides.side_rows import SideDifference, corrected_rows
from credit.sides.side_tests import compare_metric
from credit.sides.side_weights import side_weights
from credit.sides.side_words import MOST_NAMED, MOST_TOLD, MOST_WORDS, short, signed
from graphs.distinct_columns import distinct_columns
from graphs.structure.host_ids import ranked
from graphs.task_means import ROUNDING, fact_of
from graphs.text import counted, percent, printable, rounds_away
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models

__all__ = ["BY_AGENT", "AgentDifference", "agent_differences", "agents_of_change", "agents_of_costs"]

BY_AGENT = (("money", "logged_money", "input_tokens"), ("tokens",))
"""Costs whose difference is told by agent, of each kind the first that is known of both sides and of their agents: a
model that was swapped is found by money, and an agent that says more by tokens, which may be cheap."""
LEAST_PART = 0.05
"""Part of the cost of a trace from which an agent's own change of it is told."""
LEAST_CACHED = 0.1
"""By how much the part of an agent's tokens read that comes from a cache differs where that is told."""


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
      acting: the part of the traces in which it acts on each side, in the same means.
      test: of its own cost of a trace in which it acts, within tasks as of any metric. Its p is corrected by Holm's
        method, for agents alone; None of one that has too little of the cost to be told. Over all traces, with 0 where
        it does not act, who is asked would drown what a prompt that makes it write 1.5 times as much does.
      taking_part: of whether it acts in a trace, in the same family; None of one that acts in all.
      changed: whether its cost of a trace in which it acts changed beyond chance, by `LEAST_PART` of the cost of all
        agents in a trace or more.
      stands_out: whether its cost where it acts, or how often it does, changed beyond chance in the way of its
        difference, which is `LEAST_PART` of the whole unless it `changed`.
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
    acting: tuple[float, float] = (0.0, 0.0)
    test: SideDifference | None = None
    taking_part: SideDifference | None = None
    changed: bool = False
    stands_out: bool = False

    def raised(self, times: float, parts: int) -> AgentDifference:
        """The same with its tests raised."""
        test, taking_part = (None if of is None else of.raised(times, parts) for of in (self.test, self.taking_part))
        changed = self.changed and test is not None and test.worth_telling
        clear = any(
            of is not None and of.worth_telling and of.rises == (self.difference > 0) for of in (test, taking_part)
        )
        return dataclasses.replace(self, test=test, taking_part=taking_part, changed=changed,
                                   stands_out=self.stands_out and clear)  # fmt: skip

    @property
    def rises(self) -> bool | None:
        """Whether it has more of the cost, where it acts or in all; None of one that did not change beyond chance."""
        if self.changed and self.test is not None:
            return self.test.rises
        return self.difference > 0 if self.stands_out else None


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
    weights = side_weights(value, side, task, task_kinds(traces)[1])
    kept = weights.any(axis=0)
    total = np.bincount(trace, cost, m)
    if not np.allclose(total[kept], value[kept], rtol=ROUNDING, atol=0):
        return []
    (model_names, model), acts = event_models(traces), np.asarray(graph.action_mask)[:n]
    read, generated = (token_counts(traces, counted) for counted in ("input_tokens", "tokens"))
    counts = np.array([np.where((read > 0) | (generated > 0), 1.0, read + generated), read, generated])
    means, sums, counted, acting = [], [], [], []
    acting_agent, acting_in = _acting(traces, cost)
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
        acting.append(np.bincount(acting_agent, weight[acting_in], len(names)))
        chosen = acts[events]
        for number, which in distinct_columns(agent[chosen], model[events][chosen]).columns.T.tolist():
            models[-1][number] |= {model_names[which]} - {""}
    calls = np.nan_to_num([of[0] for of in counted])
    parts = _parts(sums[0], sums[1], calls) if sums else [()] * len(names)
    of_calls = np.nan_to_num(np.stack(counted, axis=2)).transpose(1, 0, 2).tolist()  # [agents, counts, sides]
    found = zip(
        names, *(mean.tolist() for mean in (*means, means[1] - means[0])), *models, parts, of_calls,
        np.stack(acting, axis=1).tolist(), strict=True,
    )  # fmt: skip
    spent = [
        AgentDifference(agent, first, second, change, (sorted(before), sorted(after)), *of, **_counts([*many, share]))
        for agent, first, second, change, before, after, of, many, share in found
        if first or second
    ]
    return sorted(spent, key=lambda one: -abs(one.difference))


def _counts(many: list[list[float]]) -> dict[str, Any]:
    return {
        name: (first, second)
        for name, (first, second) in zip(("calls", "read", "generated", "acting"), many, strict=True)
    }


def _acting(traces: Traces, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each agent, in the order of names, with each trace in which it acts, or costs something: int [pairs] of both."""
    graph, n, m = traces.graph, traces.sizes.events, traces.sizes.traces
    _, name = ranked(traces.agents["name"].to_pylist())
    rows = np.flatnonzero(np.asarray(graph.action_mask)[:n] | (cost > 0))
    agent, trace = name[np.asarray(graph.agent_ids)[rows]], np.asarray(graph.trace_ids)[rows]
    pairs = np.unique(agent * np.int64(m) + trace)
    return pairs // m, pairs % m


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
    facts: TeamFacts,
) -> dict[str, tuple[AgentDifference, ...]]:
    """What agents add to the differences of `BY_AGENT` that are known, by their names, the own change of each tested.

    What one of several adds may be lost in what others do. Agents are tested whose part of the cost, over both sides,
    leaves room for a change of `LEAST_PART`: which these are does not depend on the side of a trace.

    Reference: Holm 1979; Tarone 1990.
    """
    compared, agents = {row.metric for row in rows}, dict[str, tuple[AgentDifference, ...]]()
    tests: list[tuple[str, str, str, SideDifference, Hashable]] = []
    costs = event_costs(traces, prices)
    for kind in BY_AGENT:
        for name in (name for name in kind if name in compared):
            cost, kinds = getattr(costs, name, None), costs.kinds if name == "money" else None
            if cost is None:  # the log states it
                cost, kinds = token_counts(traces, "money"), event_costs(traces, logged_prices(traces)).kinds
                if kinds is not None:
                    kinds[1, 4] = cost - kinds[1, :4].sum(axis=0)
            found = agent_differences(traces, cost, measured[name].value, sides.side, task_ids(traces), kinds)
            if len(found) > 1 or (found and found[0].of_models):
                agents[name] = tuple(found)
            if len(found) > 1:
                tests += [(name, *test) for test in _tests(traces, cost, name, measured[name], sides.side, found)]
            if found:
                break
    corrected = corrected_rows([test for *_, test, _ in tests], [fact for *_, fact in tests], by_least=True)
    tested: dict[tuple[str, str], dict[str, SideDifference]] = {}
    for (name, who, what, *_), row in zip(tests, corrected, strict=True):
        tested.setdefault((name, who), {})[what] = row
    for name, of in agents.items():
        least = LEAST_PART * max(sum(one.first for one in of), sum(one.second for one in of))
        agents[name] = tuple(_judged(one, least, **tested.get((name, one.agent), {})) for one in of)
    return agents


def _judged(
    one: AgentDifference, least: float, test: SideDifference | None = None, taking_part: SideDifference | None = None
) -> AgentDifference:
    """The agent with its tests, and whether it changed by the least part of a cost."""
    own = 0.0 if test is None else test.second - test.first
    changed = test is not None and test.worth_telling and test.rises == (own > 0) and abs(own) >= least
    clear = any(of is not None and of.worth_telling and of.rises == (one.difference > 0) for of in (test, taking_part))
    return dataclasses.replace(one, test=test, taking_part=taking_part, changed=changed,
                               stands_out=clear and (changed or abs(one.difference) >= least))  # fmt: skip


def _tests(
    traces: Traces,
    cost: np.ndarray,
    metric: str,
    known: TraceMetric,
    side: np.ndarray,
    found: list[AgentDifference],
) -> Iterator[tuple[str, str, SideDifference, Hashable]]:
    """The tests of each agent that has enough of a cost, in the traces in which all of it is known: its name, which
    test it is, the test, and what it is of."""
    trace, task = np.asarray(traces.graph.trace_ids)[: traces.sizes.events], task_ids(traces)
    _, kind = task_kinds(traces)
    names, name = ranked(traces.agents["name"].to_pylist())
    agent, pairs = name[np.asarray(traces.graph.agent_ids)[: traces.sizes.events]], _acting(traces, cost)
    whole = sum(one.first + one.second for one in found)
    for one in found:
        if one.first + one.second >= LEAST_PART / 2 * whole:
            number = names.index(one.agent)
            own = np.bincount(trace, np.where(agent == number, cost, 0.0), traces.sizes.traces)
            acts = np.zeros(traces.sizes.traces, bool)
            acts[pairs[1][pairs[0] == number]] = True
            unknown = ~np.isfinite(known.value), "its cost is not known"
            numbers = {
                "test": (metric, numbered(own, unknown, (~acts, "the agent does not act"))),
                "taking_part": ("", numbered(acts.astype(np.float64), unknown)),
            }
            for what, (called, of) in numbers.items():
                row = compare_metric(called, of, side, task, kind)
                if row is not None and (what == "test" or min(one.acting) < 1):
                    value = of.value[side >= 0]
                    untested = row.p is None and row.here is None
                    yield one.agent, what, row, (metric, number, what) if untested else fact_of(value)


def agents_of_change(row: SideDifference, parts: Sequence[AgentDifference], alone: Sequence[Sequence[str]]) -> str:
    """Which agents one difference comes from; "" of none.

    Args:
      row: of a cost.
      parts: what each agent adds to it, the largest first.
      alone: as of `ComparedSides`.
    """
    parts = [one for one in parts if one.difference]
    if not row.difference or not parts:
        return ""
    large = sum(abs(one.difference) >= LEAST_SHARE * abs(row.difference) for one in parts)
    named = max(large, 1) if large <= MOST_TOLD or large == len(parts) == MOST_TOLD + 1 else MOST_TOLD
    chance = "" if row.worth_telling else f", {row.says(brief=True)}"
    head = f"{ASKED[row.metric]} of a trace {signed(row.difference)}{chance}, by agent: "
    split: set[int] = set()
    told = sorted(
        (place for place in range(named) if _why(parts[place], row.metric)),
        key=lambda at: (not parts[at].stands_out, not parts[at].of_models),
    )
    sure = max((place for place in range(named) if parts[place].stands_out), default=0)
    for place in told:
        needed = parts[place].stands_out and row.metric not in TOKENS and _swapped(parts[place])
        least = max(place, *split, sure) + 1
        for fewer in range(named, least - 1, -1):  # what another model does, before the least agents
            words = f"{head}{_named(row.metric, parts, fewer, {*split, place}, alone)}".split()
            if len(words) <= MOST_WORDS + len(chance.split()) or (needed and fewer == least):
                named, split = fewer, {*split, place}
                break
    return head + _named(row.metric, parts, named, split, alone)


def _named(
    cost: str, parts: Sequence[AgentDifference], named: int, split: set[int], alone: Sequence[Sequence[str]]
) -> str:
    """So many agents by name, some of them with why, and the sum of others."""
    whole = sum(one.difference for one in parts)
    told = [f"{printable(one.agent, 60)} {signed(one.difference, whole)}{'*' * one.stands_out}" for one in parts]
    of = [f"{told[i]} ({_why(parts[i], cost)})" if i in split else told[i] for i in range(named)]
    own = [i for i in range(named, len(parts)) if any(parts[i].agent in agents for agents in alone)][:MOST_NAMED]
    of += [told[i] for i in own]
    rest = [one.difference for i, one in enumerate(parts) if i >= named and i not in own]
    if not rounds_away(sum(rest), whole):
        together = " together" if len(rest) > 1 else ""
        of.append(f"{counted(len(rest), 'other')}{together} {signed(sum(rest), whole)}")
    return ", ".join(of)


def _swapped(one: AgentDifference) -> str:
    """The models of an agent on both sides; "" where they are the same, or a side has none."""
    before, after = (" + ".join(printable(name, 60) for name in names) for names in one.models)
    return f"{before} to {after}" if before and after and before != after else ""


def _why(one: AgentDifference, cost: str) -> str:
    """What models, calls, tokens and tools add to the difference of an agent, the largest part first, without those
    below `LEAST_SHARE` of it; else what part of its tokens read came from a cache; else how its calls and their tokens
    changed, where it differs beyond chance; "" where nothing did it. Other models are named in any case."""
    swapped = _swapped(one)
    if not one.of_models:
        first, second = one.cached or (0.0, 0.0)
        cached = f"{percent(first)} to {percent(second)} of reads cached"
        why = cached if abs(second - first) >= LEAST_CACHED else _by_calls(one, cost) if one.stands_out else ""
        named = f"{swapped}{' at the same prices' * (one.of_models is not None)}"
        return ", ".join(filter(None, (why, named if swapped and one.stands_out and cost not in TOKENS else "")))
    models = swapped or f"other parts of {' + '.join(printable(name, 60) for name in one.models[0])}"
    parts, calls = {models: one.of_models, "tools": one.of_tools or 0.0}, _times(one)
    if one.of_tokens and one.of_calls and calls and abs(math.log(calls)) >= LEAST_SHARE:
        parts |= {f"calls ×{short(calls)}": one.of_calls, "tokens per call": one.of_tokens - one.of_calls}
    else:
        parts["tokens"] = one.of_tokens or 0.0
    told = sorted(parts.items(), key=lambda part: -abs(part[1]))
    most = told[0][1]
    return ", ".join(
        f"{name} {signed(part, most)}" for name, part in told if abs(part) >= LEAST_SHARE * abs(most) or name == swapped
    )


def _times(one: AgentDifference) -> float:
    """By what an agent's calls were multiplied; 0 where a side has none."""
    return one.calls[1] / one.calls[0] if min(one.calls) > 0 else 0.0


def _by_calls(one: AgentDifference, cost: str) -> str:
    """By what its calls were multiplied, and the tokens of one: a cost of tokens is the product of both. Money is that
    of a price, too, and has the tokens read: those generated have a sentence of their own, which is not enough where
    other models may seem the reason."""
    calls = _times(one)
    times = {"calls": calls}
    for name, both in (("read", one.read), ("generated", one.generated)):
        times[f"tokens {name} per call"] = both[1] / both[0] / calls if min(calls, *both) > 0 else 1.0
    moved = [name for name, by in times.items() if by > 0 and abs(math.log(by)) >= LEAST_SHARE]
    if calls and not moved and _swapped(one):
        return "calls and tokens as before"
    asked = "generated" if cost == "tokens" else "" if _swapped(one) else "read"
    told = [f"{name} ×{short(times[name])}" for name in moved if name == "calls" or asked in name]
    return ", ".join(told if not told or "calls" in moved else ["calls as before", *told])
