"""A corpus in numbers: traces, groups, rewards, agents, and which groups carry a training signal."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from credit.reports.amounts import Amounts, amounts_of, far_from_outcomes
from credit.reports.missing_lines import lacking_traces
from credit.reports.own_outcomes import are_odd, odd_traces, of_agents, remedy_channel
from credit.reports.tasks import runs_without_task
from credit.reports.trace_list import actions_with_tokens, counted_tokens
from credit.reports.trace_numbers import TeamFacts
from credit.reports.trace_returns import (
    UNRESOLVED,
    acting,
    agents_apart,
    distinguishable,
    group_differences,
    returns,
)
from credit.reports.uncounted_calls import uncounted_tool_calls
from graphs.distinct_columns import distinct_columns
from graphs.errors import Problem
from graphs.event_types import EventType
from graphs.look_alikes import look_alikes
from graphs.problem_log import count_kinds
from graphs.replay_clusters import replays_elsewhere
from graphs.traces.batch import Traces

__all__ = ["Spread", "Survey", "Tally", "divided_tasks", "groups_of_task", "survey"]

Counts = collections.Counter[str]


@dataclasses.dataclass(frozen=True)
class Spread:
    """Least, median and greatest of some counts, and their sum."""

    least: int
    median: float
    greatest: int
    total: int

    @classmethod
    def of(cls, units: Mapping[int, int]) -> Spread:
        """The spread, from how many units have each count; at least one has one."""
        values = sorted(units)
        below = list(itertools.accumulate(units[value] for value in values))
        low, high = (values[bisect.bisect_right(below, rank)] for rank in ((below[-1] - 1) // 2, below[-1] // 2))
        return cls(values[0], (low + high) / 2, values[-1], sum(value * units[value] for value in values))

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
      traces, groups, events, actions, agents: how many were read; agents are instances with an action.
      formats: traces of each format.
      group_sizes: for each size of a group, how many groups have it.
      teaching: groups with traces of different returns; only from these do group-relative methods learn.
      outcomes_apart: those among `teaching` whose traces have different outcomes, too; the others differ by rewards at
        events alone.
      equal: groups of several traces between whose returns methods, in single precision, see no difference, each with
        the greatest; group-relative credit is exactly 0 there, or refused.
      unresolved: those among `equal` whose returns differ in the log, each with why methods see no difference.
      rounded: those among `teaching` whose differences of returns, or baselines, single precision changes by more than
        1 %.
      singletons: groups of one trace: there is nothing to compare it with.
      without_task: runs that name no task (`runs_without_task`). Each is alone in its group.
      mixed: groups whose traces are of several models or systems, with those; none by default (`group_by`).
      divided: tasks with several groups, since their traces are of several models or systems.
      unscored_groups: groups of several traces of which fewer than two have an outcome and an action.
      unscored: traces without an outcome, their own or of an agent.
      of_agents: how many traces have no outcome and agents with outcomes of their own (`agent_reward`).
      odd: those traces where they are left out, as of `credit.reports.own_outcomes.said_of_odd`.
      idle: traces with an outcome and without an action, which enter no baseline.
      masked: traces with an outcome and tokens of which the masks train none; they enter baselines, as in the trainers.
      stale: traces of an older policy than the newest of their group, each with both versions.
      replays: how many traces share a choice with another one of their group, as replays of one prefix do.
      elsewhere: traces without an independent one in their group, each with a trace of another group that shares an id
        of a choice (`graphs.replay_clusters.replays_elsewhere`).
      reward_channels: for each reward channel of the log, how many traces have it.
      by_people: for each that people gave, of how many traces the log says so.
      agents_per_trace, actions_per_trace, events_per_agent: spreads of counts.
      tokens_per_trace: of tokens generated, over the traces that log them; None where none does.
      actions_with_tokens: how many `trace_list.actions_with_tokens` has; `tokens_per_trace` sums over these only.
      tool_calls_without_tokens, spawns_without_tokens: as of `uncounted_tool_calls`.
      traces_with_tokens, stated_tokens: traces whose log states the tokens of the whole, and their sum.
      evidence: for each key of evidence (`graphs.traces.schema`), how many events or traces have it.
      statuses: for each word of a status (`graphs.traces.statuses`), how many events have it, the most frequent first.
      far: keys of evidence in the unit of outcomes whose numbers lie far from these, with both ranges.
      alike: names of groups, and of agents or roles, that differ only in case, blanks or Unicode's form.
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
    outcomes_apart: int
    equal: dict[str, float]
    unresolved: dict[str, str]
    rounded: tuple[str, ...]
    singletons: tuple[str, ...]
    without_task: int
    mixed: dict[str, tuple[str, ...]]
    divided: int
    unscored_groups: tuple[str, ...]
    unscored: tuple[str, ...]
    of_agents: int
    odd: dict[str, str]
    idle: tuple[str, ...]
    masked: tuple[str, ...]
    stale: dict[str, tuple[int, int]]
    replays: int
    elsewhere: dict[str, str]
    reward_channels: dict[str, int]
    by_people: dict[str, int]
    agents_per_trace: Spread
    actions_per_trace: Spread
    events_per_agent: Spread
    tokens_per_trace: Spread | None
    actions_with_tokens: int
    tool_calls_without_tokens: int
    spawns_without_tokens: int
    traces_with_tokens: int
    stated_tokens: int
    evidence: dict[str, int]
    statuses: dict[str, int]
    far: dict[str, str]
    alike: tuple[str, ...]
    problems: tuple[Problem, ...]
    ignored: tuple[str, ...]

    @property
    def problem_kinds(self) -> dict[str, int]:
        """How many problems there are of each kind, most frequent first."""
        return count_kinds(self.problems)

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs, every problem included."""
        return dataclasses.asdict(self) | {"problem_kinds": self.problem_kinds}


def survey(traces: Traces) -> Survey:
    """Count what was read, and sort groups into those with and without a training signal.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=[0, 0, 1], trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> survey(rows.traces).teaching, survey(rows.traces).singletons
      (1, ('1',))
    """
    return Tally.of(traces).survey(traces.problems, traces.ignored)


class Group(NamedTuple):
    """The counts of one group in a tally."""

    name: str
    place: tuple[str, int]
    """File and line of its first trace."""
    traces: int
    scored: int
    """Traces with an outcome and an action."""
    greatest: float
    apart: bool
    """Whether methods see a difference of returns."""
    outcomes_apart: bool
    """Whether they see one of outcomes alone."""
    unresolved: str
    """Why they see none where there is one, or another one, a key of `UNRESOLVED`; "" elsewhere."""
    policies: tuple[str, ...]
    """The models and systems, where they are several."""


@dataclasses.dataclass(frozen=True)
class Tally:
    """Counts that add up over batches of whole groups, from which a survey is made.

    Attributes:
      counts: numbers of traces, events, actions, agents, actions and traces with tokens, tokens that the logs state of
        whole traces, and traces of agents with outcomes.
      formats, channels, by_people, evidence, statuses: how many traces or events have each.
      spreads: for each spread of a survey, how many units have each count.
      groups: the groups.
      unscored: ids of traces without an outcome, with their places.
      idle: ids of traces with an outcome and without an action, with their places.
      masked: ids of traces with an outcome and tokens of which the masks train none, with their places.
      stale: ids of traces of an older policy than the newest of their group, with their places, and both versions.
      elsewhere: ids of traces that share a choice with a trace of another group, with their places, and that trace.
      groups_of_task: names of the groups of each task.
      amounts: numbers of evidence, and under "" those of outcomes.
      names: of agents and of roles.
    """

    counts: Counts
    formats: Counts
    channels: Counts
    by_people: Counts
    evidence: Counts
    statuses: Counts
    spreads: dict[str, collections.Counter[int]]
    groups: list[Group]
    unscored: list[tuple[str, tuple[str, int]]]
    alone: list[tuple[str, tuple[str, int], str]]
    idle: list[tuple[str, tuple[str, int]]]
    masked: list[tuple[str, tuple[str, int]]]
    stale: list[tuple[str, tuple[str, int], tuple[int, int]]]
    elsewhere: list[tuple[str, tuple[str, int], str]]
    groups_of_task: dict[str, set[str]]
    amounts: dict[str, Amounts]
    names: dict[str, None]

    @classmethod
    def of(cls, traces: Traces) -> Tally:
        """The counts of one batch."""
        graph, n = traces.graph, traces.sizes
        trace = np.asarray(graph.trace_ids[: n.events])
        agent = np.asarray(graph.agent_ids[: n.events])
        places = list(zip(traces.traces["file"].to_pylist(), traces.traces["line"].to_pylist(), strict=True))
        names = traces.traces["trace"].to_pylist()
        earned, acted, own = returns(traces), acting(traces), of_agents(traces)
        alone, odd = own & ~np.isfinite(earned), odd_traces(traces)
        agents_scored = own & ~odd
        acts, members, actions = TeamFacts.of(traces).counts
        numbers = {"traces": n.traces, "events": n.events, "agents": int(members.sum()), "actions": int(actions.sum())}
        numbers["of both"] = int(np.sum(own & ~alone))
        channel = remedy_channel(traces, alone) if alone.any() else ""
        numbers["actions with tokens"] = int(np.sum(actions_with_tokens(traces)))
        numbers["tool calls without tokens"] = int(np.sum(uncounted_tool_calls(traces, EventType.TOOL_CALL)))
        numbers["spawns without tokens"] = int(np.sum(uncounted_tool_calls(traces, EventType.SPAWN)))
        whole = traces.evidence["costs.tokens"].amounts if "costs.tokens" in traces.evidence else np.zeros(0)
        numbers |= {"without a task": int(runs_without_task(traces).sum()), "replays": _replays(traces)}
        numbers |= {"traces with tokens": len(whole), "stated tokens": int(whole.sum())}
        spreads = {
            "agents_per_trace": members,
            "actions_per_trace": actions,
            "events_per_agent": np.bincount(agent, minlength=len(acts))[acts > 0],
            "tokens_per_trace": _tokens(traces, trace),
        }
        channels = {name: len(traces.evidence[f"rewards.{name}"].rows) for name in traces.reward_channels}
        return cls(
            counts=collections.Counter(numbers),
            formats=collections.Counter(traces.traces["format"].to_pylist()),
            channels=collections.Counter(channels),
            by_people=collections.Counter(traces.by_people),
            evidence=collections.Counter({name: len(e.rows) for name, e in traces.evidence.items() if "." not in name}),
            statuses=_statuses(traces),
            spreads={name: collections.Counter(counts.tolist()) for name, counts in spreads.items()},
            groups=_groups(traces, (np.isfinite(earned) | agents_scored) & acted, places),
            unscored=[(names[row], places[row]) for row in np.flatnonzero(~np.isfinite(earned) & ~own).tolist()],
            alone=[(names[row], places[row], channel) for row in np.flatnonzero(alone).tolist()],
            idle=[(names[row], places[row]) for row in np.flatnonzero(np.isfinite(earned) & ~acted).tolist()],
            masked=[(names[row], places[row]) for row in np.flatnonzero(np.isfinite(earned) & _masked(traces, trace))],
            stale=[(names[row], places[row], versions) for row, versions in _stale(traces)],
            elsewhere=[
                (names[row], places[row], names[other])
                for row, other in replays_elsewhere(graph, np.isfinite(np.asarray(traces.reward))).tolist()
            ],
            groups_of_task=groups_of_task(traces),
            amounts=amounts_of(traces),
            names=dict.fromkeys(name for of in ("name", "role") for name in traces.agents[of].unique().to_pylist()),
        )

    def add(self, other: Tally) -> None:
        """Add the counts of another batch, whose groups are not among these."""
        for listed, others in (
            (self.counts, other.counts),
            (self.formats, other.formats),
            (self.channels, other.channels),
            (self.by_people, other.by_people),
            (self.evidence, other.evidence),
            (self.statuses, other.statuses),
        ):
            listed.update(others)
        for name, counts in other.spreads.items():
            self.spreads[name].update(counts)
        self.groups.extend(other.groups)
        self.unscored.extend(other.unscored)
        self.alone.extend(other.alone)
        self.idle.extend(other.idle)
        self.masked.extend(other.masked)
        self.stale.extend(other.stale)
        self.elsewhere.extend(other.elsewhere)
        for task, groups in other.groups_of_task.items():
            self.groups_of_task.setdefault(task, set()).update(groups)
        for name, amounts in other.amounts.items():
            self.amounts[name] = amounts.joined(self.amounts[name]) if name in self.amounts else amounts
        self.names.update(other.names)

    def in_order(self, files: Sequence[str]) -> Tally:
        """The same counts, with groups and traces in the order of the files and their lines."""
        rank = {file: number for number, file in enumerate(files)}

        def at(place: tuple[str, int]) -> tuple[int, int]:
            return rank[place[0]], place[1]

        return dataclasses.replace(
            self,
            groups=sorted(self.groups, key=lambda group: at(group.place)),
            unscored=sorted(self.unscored, key=lambda trace: at(trace[1])),
            alone=sorted(self.alone, key=lambda trace: at(trace[1])),
            idle=sorted(self.idle, key=lambda trace: at(trace[1])),
            masked=sorted(self.masked, key=lambda trace: at(trace[1])),
            stale=sorted(self.stale, key=lambda trace: at(trace[1])),
            elsewhere=sorted(self.elsewhere, key=lambda trace: at(trace[1])),
        )

    def survey(self, problems: Iterable[Problem], ignored: Iterable[str]) -> Survey:
        """The corpus in numbers."""
        scored = self.counts["traces"] - len(self.unscored) - len(self.alone)
        odd = are_odd(len(self.alone), self.counts["of both"], scored)
        comparable = [group for group in self.groups if group.traces > 1 and group.scored > 1]
        equal = {group.name: group.greatest for group in comparable if not group.apart}
        sizes = collections.Counter(group.traces for group in self.groups)
        spreads = {name: Spread.of(counts) for name, counts in self.spreads.items() if counts}
        return Survey(
            traces=self.counts["traces"],
            groups=len(self.groups),
            events=self.counts["events"],
            actions=self.counts["actions"],
            agents=self.counts["agents"],
            formats=dict(self.formats),
            group_sizes=dict(sorted(sizes.items())),
            teaching=sum(group.apart for group in comparable),
            outcomes_apart=sum(group.apart and group.outcomes_apart for group in comparable),
            equal=equal,
            unresolved={g.name: UNRESOLVED[g.unresolved] for g in comparable if g.unresolved and not g.apart},
            rounded=tuple(group.name for group in comparable if group.unresolved == "coarse"),
            singletons=tuple(group.name for group in self.groups if group.traces == 1),
            without_task=self.counts["without a task"],
            mixed={group.name: group.policies for group in self.groups if len(group.policies) > 1},
            divided=sum(len(groups) > 1 for groups in self.groups_of_task.values()),
            unscored_groups=tuple(group.name for group in self.groups if group.traces > 1 and group.scored < 2),
            unscored=tuple(name for name, _ in self.unscored),
            of_agents=len(self.alone),
            odd={name: channel for name, _, channel in self.alone} if odd else {},
            idle=tuple(name for name, _ in self.idle),
            masked=tuple(name for name, _ in self.masked),
            stale={name: versions for name, _, versions in self.stale},
            replays=self.counts["replays"],
            elsewhere={name: other for name, _, other in self.elsewhere},
            reward_channels=dict(self.channels),
            by_people=dict(self.by_people),
            agents_per_trace=spreads["agents_per_trace"],
            actions_per_trace=spreads["actions_per_trace"],
            events_per_agent=spreads.get("events_per_agent", Spread(0, 0.0, 0, 0)),  # nobody may act
            tokens_per_trace=spreads.get("tokens_per_trace"),
            actions_with_tokens=self.counts["actions with tokens"],
            tool_calls_without_tokens=self.counts["tool calls without tokens"],
            spawns_without_tokens=self.counts["spawns without tokens"],
            traces_with_tokens=self.counts["traces with tokens"],
            stated_tokens=self.counts["stated tokens"],
            evidence=dict(self.evidence),
            statuses=dict(sorted(self.statuses.items(), key=lambda of: (-of[1], of[0]))),
            far=far_from_outcomes(dict(sorted(self.amounts.items()))),
            alike=(*look_alikes(group.name for group in self.groups), *look_alikes(sorted(self.names))),
            problems=tuple(problems),
            ignored=tuple(ignored),
        )


def _replays(traces: Traces) -> int:
    """How many traces share a choice with another one of their group."""
    graph, n = traces.graph, traces.sizes.traces
    if graph.cluster_ids is None:
        return 0
    alike = distinct_columns(np.asarray(graph.group_ids)[:n], np.asarray(graph.cluster_ids)[:n]).counts
    return int(alike[alike > 1].sum())


def _stale(traces: Traces) -> Iterator[tuple[int, tuple[int, int]]]:
    """The traces of an older policy than the newest of their group, with both versions."""
    version = traces.evidence.get("policy_version")
    if version is not None:
        group = np.asarray(traces.graph.group_ids)[version.rows]
        newest = np.full(traces.graph.num_traces, -1.0)
        np.maximum.at(newest, group, version.amounts)
        for row, own, most in zip(version.rows.tolist(), version.amounts.tolist(), newest[group].tolist(), strict=True):
            if own < most:
                yield row, (int(own), int(most))


def _statuses(traces: Traces) -> Counts:
    """How many events have each word of a status."""
    found = traces.events["status"].drop_null().value_counts()
    return collections.Counter({one["values"]: one["counts"] for one in found.to_pylist() if one["values"]})


def _groups(traces: Traces, scored: np.ndarray, places: list[tuple[str, int]]) -> list[Group]:
    """The groups in the order of their ids; `scored`: the traces with an outcome and an action."""
    group = np.asarray(traces.graph.group_ids[: traces.sizes.traces])
    size = np.bincount(group)
    with_outcome = np.bincount(group, scored, len(size))
    differences = group_differences(traces)
    outcome = np.asarray(traces.reward[: traces.sizes.traces], np.float64)
    with_own = scored & np.isfinite(outcome)
    _, outcomes_apart = distinguishable(outcome[with_own], group[with_own], len(size))
    of_names = agents_apart(traces)
    differences = differences._replace(apart=differences.apart | of_names)
    outcomes_apart = outcomes_apart | of_names
    first = np.unique(group, return_index=True)[1].tolist()
    policies = _policies(traces)
    names = traces.traces["group"].to_pylist()
    return [
        Group(str(names[row]), places[row], int(a), int(b), float(c), bool(d), bool(f), e, policies[names[row]])
        for row, a, b, c, d, e, f in zip(first, size, with_outcome, *differences, outcomes_apart, strict=True)
    ]


def _policies(traces: Traces) -> dict[str, tuple[str, ...]]:
    """The models and systems of each group; what a run that lacks lines does not state is no second one."""
    mixtures: dict[str, dict[tuple[str, str], None]] = {}
    cut: dict[str, dict[tuple[str, str], None]] = {}
    table = traces.traces.select(["group", "model", "system"]).to_pydict()
    rows = zip(table["group"], table["model"], table["system"], lacking_traces(traces).tolist(), strict=True)
    for group, model, system, lacks in rows:
        (cut if lacks else mixtures).setdefault(group, {})[model or "", system or ""] = None
    for group, policies in cut.items():
        whole = mixtures.setdefault(group, {})
        whole |= {policy: None for policy in policies if not any(_fits(policy, other) for other in whole)}
    return {group: tuple(", ".join(filter(None, policy)) or "unknown" for policy in policies)
            for group, policies in mixtures.items()}  # fmt: skip


def _fits(policy: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether all that a policy states is so of another one."""
    return all(mine in ("", its) for mine, its in zip(policy, other, strict=True))


def divided_tasks(traces: Traces) -> int:
    """How many tasks have several groups, because models or systems differ.

    Args:
      traces: a batch.
    """
    return sum(len(groups) > 1 for groups in groups_of_task(traces).values())


def groups_of_task(traces: Traces) -> dict[str, set[str]]:
    """Names of the groups of each task.

    Args:
      traces: a batch.
    """
    groups: dict[str, set[str]] = {}
    for task, group in zip(traces.traces["task"].to_pylist(), traces.traces["group"].to_pylist(), strict=True):
        groups.setdefault(task, set()).add(group)
    return groups


def _masked(traces: Traces, trace: np.ndarray) -> np.ndarray:
    """The traces whose log has tokens and whose masks train none of them: bool [T]."""
    if traces.tokens is None:
        return np.zeros(traces.sizes.traces, bool)
    logged = np.bincount(trace, np.diff(traces.tokens.offsets), minlength=traces.sizes.traces)
    trained = np.bincount(trace, traces.tokens.generated, minlength=traces.sizes.traces)
    masked: np.ndarray = (logged > 0) & (trained == 0)
    return masked


def _tokens(traces: Traces, trace: np.ndarray) -> np.ndarray:
    """Tokens of each trace that logs them, int64."""
    tokens = traces.evidence.get("tokens")
    if tokens is None or not tokens.mask.any():
        return np.zeros(0, np.int64)
    stated = np.flatnonzero(counted_tokens(traces))
    total = np.bincount(trace[stated], tokens.array[stated])
    sums: np.ndarray = total[np.bincount(trace[stated]) > 0].astype(np.int64)
    return sums
