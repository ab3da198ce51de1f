"""A corpus in numbers: traces, groups, rewards, agents, and which groups carry a training signal."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np

from credit.reports.trace_list import counted_tokens
from graphs.errors import Problem
from graphs.traces.batch import Traces

__all__ = ["Spread", "Survey", "distinguishable", "divided_tasks", "returns", "survey"]


@dataclasses.dataclass(frozen=True)
class Spread:
    """Least, median and greatest of some counts, and their sum."""

    least: int
    median: float
    greatest: int
    total: int

    @classmethod
    def of(cls, counts: np.ndarray) -> Spread:
        """The spread of at least one count."""
        return cls(int(counts.min()), float(np.median(counts)), int(counts.max()), int(counts.sum()))

    def __str__(self) -> str:
        """In words."""
        if self.least == self.greatest:
            return str(self.least)
        return f"{self.least} to {self.greatest}, median {self.median:g}"


@dataclasses.dataclass(frozen=True)
class Survey:
    """A corpus in numbers.

    Every group is one of four: `teaching`, `equal`, `singletons` or `unscored_groups`.

    Attributes:
      traces, groups, events, actions, agents: how many were read.
      formats: traces of each format.
      group_sizes: for each size of a group, how many groups have it.
      teaching: groups with traces of different returns; only from these do group-relative methods learn.
      equal: groups of several traces that all have the same return in single precision, each with that return;
        group-relative credit is exactly 0 there.
      singletons: groups of one trace: there is nothing to compare it with.
      mixed: groups whose traces are of several models or systems, with those; none by default (`group_by`).
      divided: tasks with several groups, since their traces are of several models or systems.
      unscored_groups: groups of several traces of which fewer than two have an outcome.
      unscored: traces without an outcome.
      reward_channels: for each reward channel of the log, how many traces have it.
      agents_per_trace, actions_per_trace, events_per_agent: spreads of counts.
      tokens_per_trace: of tokens generated, over the traces that log them; None where none does.
      actions_with_tokens: actions whose number of tokens the logs have; `tokens_per_trace` sums over these only.
      evidence: for each key of evidence (`graphs.traces.schema`), how many events or traces have it.
      problems: what was refused or did not fit, and why.
      ignored: files passed over, because their names are not those of logs.
    """

    traces: int
    groups: int
    events: int
    actions: int
    agents: int
    formats: dict[str, int]
    group_sizes: dict[int, int]
    teaching: int
    equal: dict[str, float]
    singletons: tuple[str, ...]
    mixed: dict[str, tuple[str, ...]]
    divided: int
    unscored_groups: tuple[str, ...]
    unscored: tuple[str, ...]
    reward_channels: dict[str, int]
    agents_per_trace: Spread
    actions_per_trace: Spread
    events_per_agent: Spread
    tokens_per_trace: Spread | None
    actions_with_tokens: int
    evidence: dict[str, int]
    problems: tuple[Problem, ...]
    ignored: tuple[str, ...]

    @property
    def problem_kinds(self) -> dict[str, int]:
        """How many problems there are of each kind, most frequent first."""
        return count_kinds(self.problems)

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs, every problem included."""
        return dataclasses.asdict(self) | {"problem_kinds": self.problem_kinds}


def count_kinds(problems: tuple[Problem, ...]) -> dict[str, int]:
    """How many problems there are of each kind, most frequent first."""
    kinds: collections.Counter[str] = collections.Counter()
    for problem in problems:
        kinds[problem.kind] += problem.count
    return dict(kinds.most_common())


def returns(traces: Traces) -> np.ndarray:
    """The return of each real trace, outcome plus its rewards at events; NaN where there is no outcome: float64."""
    n = traces.sizes
    total = np.asarray(traces.reward[: n.traces], np.float64).copy()
    step = traces.evidence.get("event_reward")
    if step is not None:
        trace = np.asarray(traces.graph.trace_ids[: n.events])
        total += np.bincount(trace, np.where(step.mask, step.array, 0)[: n.events], n.traces)
    return total


def distinguishable(values: np.ndarray, key: np.ndarray, keys: int) -> tuple[np.ndarray, np.ndarray]:
    """The greatest number of each key, and whether methods, which compute in single precision, see any difference.

    XLA takes numbers below the least normal one for 0, differences included.
    """
    smallest = np.finfo(np.float32).tiny
    with np.errstate(over="ignore", invalid="ignore"):  # returns beyond single precision are alike: no method takes any
        single = values.astype(np.float32)
        single[np.abs(single) < smallest] = 0
        most, least = np.full(keys, -np.inf, np.float32), np.full(keys, np.inf, np.float32)
        np.maximum.at(most, key, single)
        np.minimum.at(least, key, single)
        return most, most - least >= smallest


def survey(traces: Traces) -> Survey:
    """Count what was read, and sort groups into those with and without a training signal.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=[0, 0, 1], trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> survey(rows.traces).teaching, survey(rows.traces).singletons
      (1, ('1',))
    """
    graph, n = traces.graph, traces.sizes
    trace = np.asarray(graph.trace_ids[: n.events])
    agent = np.asarray(graph.agent_ids[: n.events])
    group = np.asarray(graph.group_ids[: n.traces])
    action = np.asarray(graph.action_mask[: n.events])
    earned = returns(traces)
    scored = np.isfinite(earned)
    size = np.bincount(group)
    with_outcome = np.bincount(group, scored, len(size))
    most, apart = distinguishable(earned[scored], group[scored], len(size))

    names = np.empty(len(size), object)
    names[group] = traces.traces["group"].to_pylist()
    comparable = (size > 1) & (with_outcome > 1)
    equal = comparable & ~apart
    sizes, counts = np.unique(size, return_counts=True)
    trace_names = traces.traces["trace"]
    return Survey(
        traces=n.traces,
        groups=len(size),
        events=n.events,
        actions=int(action.sum()),
        agents=n.agents,
        formats=dict(collections.Counter(traces.traces["format"].to_pylist())),
        group_sizes={int(k): int(v) for k, v in zip(sizes, counts, strict=True)},
        teaching=int(np.sum(comparable & ~equal)),
        equal={str(names[i]): float(most[i]) for i in np.flatnonzero(equal)},
        singletons=tuple(map(str, names[size == 1])),
        mixed=_mixed(traces),
        divided=divided_tasks(traces),
        unscored_groups=tuple(map(str, names[(size > 1) & ~comparable])),
        unscored=tuple(trace_names.take(np.flatnonzero(~scored)).to_pylist()),
        reward_channels={
            name.removeprefix("rewards."): len(e.rows)
            for name, e in traces.evidence.items()
            if name.startswith("rewards.")
        },
        agents_per_trace=Spread.of(np.bincount(graph.agent_trace[: n.agents], minlength=n.traces)),
        actions_per_trace=Spread.of(np.bincount(trace[action], minlength=n.traces)),
        events_per_agent=Spread.of(np.bincount(agent, minlength=n.agents)),
        tokens_per_trace=_tokens(traces, trace),
        actions_with_tokens=int(np.sum(action & counted_tokens(traces))),
        evidence={name: len(e.rows) for name, e in traces.evidence.items() if "." not in name},
        problems=traces.problems,
        ignored=traces.ignored,
    )


def _mixed(traces: Traces) -> dict[str, tuple[str, ...]]:
    """Groups whose traces are of several models or systems, with those."""
    mixtures: dict[str, dict[str, None]] = {}
    table = traces.traces.select(["group", "model", "system"]).to_pydict()
    for group, model, system in zip(table["group"], table["model"], table["system"], strict=True):
        mixtures.setdefault(group, {})[", ".join(filter(None, (model, system))) or "unknown"] = None
    return {group: tuple(policies) for group, policies in mixtures.items() if len(policies) > 1}


def divided_tasks(traces: Traces) -> int:
    """How many tasks have several groups, because models or systems differ."""
    pairs = set(zip(traces.traces["task"].to_pylist(), traces.traces["group"].to_pylist(), strict=True))
    return sum(count > 1 for count in collections.Counter(task for task, _ in pairs).values())


def _tokens(traces: Traces, trace: np.ndarray) -> Spread | None:
    tokens = traces.evidence.get("tokens")
    if tokens is None or not tokens.mask.any():
        return None
    stated = tokens.mask[: len(trace)]
    total = np.bincount(trace[stated], tokens.array[: len(trace)][stated])
    return Spread.of(total[np.unique(trace[stated])])
