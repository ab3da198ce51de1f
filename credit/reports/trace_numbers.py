"""A number for each trace or the reason why it has none, and the facts about teams that such numbers rest on."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from credit.reports.clock import Clock, TimedFacts, first_of_each, last_of_each
from credit.reports.durations import Durations, busy_seconds
from credit.reports.endings import UNKNOWN_END, ended_early
from credit.reports.event_facts import EventFacts
from credit.reports.missing_lines import LACKING, lacking_traces
from credit.reports.tasks import untold_tasks
from graphs.event_types import EdgeType, EventType
from graphs.structure.host_ids import by_id
from graphs.structure.topology import TeamForms
from graphs.traces.batch import Traces

__all__ = [
    "AMOUNTS",
    "NO_ACTION",
    "STATED_COST",
    "UNLINKED",
    "UNREAD",
    "TeamCounts",
    "TeamFacts",
    "TraceMetric",
    "different",
    "divided",
    "is_amount",
    "numbered",
    "of_untold_tasks",
    "of_whole_traces",
]

NO_ACTION = "the trace has no action"
UNLINKED = "the log states no edge between its agents"
UNREAD = "no edge says that an agent read what another one did, as where they hand work over in files"

AMOUNTS = frozenset(
    {
        *("parallelism", "parallelism_seconds", "speed_up", "critical_steps", "signal_to_noise", "error_amplification"),
        *("team_peak", "team_mean", "team_births", "team_deaths"),
        *("errors", "unrecovered_errors", "loops", "tool_calls", "wall_clock"),
        *("tokens", "input_tokens", "money", "logged_money"),
    }
)
"""Metrics whose numbers are 0 or more without an end, so that a few tasks may have most of all.

No interval of such a mean holds whatever the distribution (Bahadur and Savage 1956): that of 40 tasks whose logarithms
have a standard deviation of 2 held 85 %, that of half as much again in 12 such tasks 75 %. So they have medians, and
ratios between sides.
"""
ROUNDED = 0.005
"""The part of 1 that three digits round away."""
STATED_COST = "costs."
"""How the names of costs begin that a log states of traces."""


def is_amount(metric: str) -> bool:
    """Whether it is one of `AMOUNTS`, as any cost that a log states is."""
    return metric in AMOUNTS or metric.startswith(STATED_COST)


class TraceMetric(NamedTuple):
    """A number for each real trace. `value` float64 [traces], NaN where `reasons` says why; "" elsewhere."""

    value: np.ndarray
    reasons: list[str]


class TeamCounts(NamedTuple):
    """Actions of each instance [A], and members (instances with an action) and actions of each trace [traces]."""

    acts: np.ndarray
    members: np.ndarray
    actions: np.ndarray


def numbered(value: np.ndarray, *refused: tuple[np.ndarray, str]) -> TraceMetric:
    """A metric without numbers where a mask holds; the words of the first such mask are the reason."""
    reasons = np.full(len(value), "", object)
    for mask, words in reversed(refused):
        reasons[mask] = words
    return TraceMetric(np.where(reasons == "", value, np.nan), reasons.tolist())


def divided(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below, and above itself where below is 0 or less."""
    quotient: np.ndarray = above / np.where(below > 0, below, 1)
    return quotient


class TeamFacts(EventFacts):
    """What metrics of a batch rest on. Each fact is worked out once, when it is first asked for.

    Args:
      traces: what was read.
    """

    @functools.cached_property
    def counts(self) -> TeamCounts:
        """Who acts, and how often."""
        graph, m = self.traces.graph, self.traces.sizes.traces
        chosen = np.flatnonzero(self.action)
        acts = np.bincount(self.agent[chosen], minlength=graph.num_agents)
        members = np.bincount(np.asarray(graph.agent_trace)[acts > 0], minlength=m)
        return TeamCounts(acts, members, np.bincount(self.trace[chosen], minlength=m))

    @functools.cached_property
    def unread(self) -> tuple[np.ndarray, str]:
        """The traces in which no message has a reader, so that none is one too many, and why: bool [traces]."""
        graph, sizes = self.traces.graph, self.traces.sizes
        agents = np.bincount(np.asarray(graph.agent_trace)[: sizes.agents], minlength=sizes.traces)
        return agents < 2, "the trace has no second agent, who could read a message"

    @functools.cached_property
    def debates(self) -> np.ndarray:
        """The traces that are debates: bool [traces]."""
        return self.forms.debates[: self.traces.sizes.traces]

    @functools.cached_property
    def forms(self) -> TeamForms:
        """The topologies, with all that it takes to tell them."""
        return TeamForms(self.traces.graph, self.traces.agents["role"].to_pylist())

    @property
    def durations(self) -> Durations:
        """How long each event took."""
        return TimedFacts.of(self.traces).durations

    @property
    def clock(self) -> Clock:
        """When each event begins and ends among those of its trace."""
        return TimedFacts.of(self.traces).clock

    @functools.cached_property
    def seconds_on_path(self) -> np.ndarray:
        """The greatest sum of seconds along a chain of causes, the least time on unlimited machines: float64 [traces].

        NaN where a trace has no seconds.
        """
        seconds = self.durations
        if np.isnan(seconds.work).all():
            return seconds.work
        longest = self.greatest(self.order.longest(np.nan_to_num(seconds.added))[0])
        return np.where(np.isnan(seconds.work), np.nan, longest)

    def in_turn(self, rows: np.ndarray) -> np.ndarray:
        """The traces whose times are known, and in which none of these events ran at once, but for seconds that three
        digits round away: bool [traces].

        A first event that states no seconds has the time since its cause, of which its instance may have waited while
        others worked. So it is left out where the instance is known to have worked later.

        Args:
          rows: of the events.
        """
        seconds, count = self.durations, self.traces.sizes.traces
        begun, time, end, trace = seconds.begun.copy(), seconds.time, seconds.end, self.trace[rows]
        first = first_of_each(self.agent, np.arange(len(time)), self.clock.at, self.traces.graph.num_agents)
        last = np.full(len(first), -np.inf)
        np.fmax.at(last, self.agent, end)
        goes_on = np.flatnonzero(first >= 0)
        goes_on = first[goes_on[last[goes_on] > time[first[goes_on]]]]
        begun[goes_on] = time[goes_on]
        work, busy = np.bincount(trace, (end - begun)[rows], count), busy_seconds(trace, begun[rows], end[rows], count)
        in_turn: np.ndarray = ~np.isnan(seconds.work) & (busy > 0) & (work - busy < ROUNDED * busy)
        return in_turn

    @functools.cached_property
    def linked(self) -> np.ndarray:
        """Traces with an edge from an agent that acts to another one, or over one that does not act: bool [traces].

        A simulated user who speaks to each of two agents links neither to the other.
        """
        acts, owner = self.counts.acts > 0, np.asarray(self.traces.graph.agent_trace)
        one, other = (self.agent[ends] for ends in self.edges)
        across = one != other
        one, other = one[across], other[across]
        # Of those who do not act: the first and the last agent whom each hears, and whom each tells.
        first, last = np.full((2, len(acts)), len(acts)), np.full((2, len(acts)), -1)
        for row, (here, there) in enumerate(((other, one), (one, other))):
            meets = ~acts[here] & acts[there]
            np.minimum.at(first[row], here[meets], there[meets])
            np.maximum.at(last[row], here[meets], there[meets])
        relays = (last >= 0).all(axis=0) & ((first[0] != last[1]) | (last[0] != first[1]))
        linked = np.zeros(self.traces.sizes.traces, bool)
        linked[owner[one[acts[one] & acts[other]]]] = True
        linked[owner[relays]] = True
        return linked

    @functools.cached_property
    def untold_shape(self) -> tuple[tuple[np.ndarray, str], ...]:
        """The traces whose edges do not tell what could run at once, with the reasons."""
        _, members, actions = self.counts
        bare = np.ones(len(members), bool)
        bare[self.trace[self.edges[0]]] = False
        apart = (members > 1) & ~self.linked, UNLINKED
        return (lacking_traces(self.traces), LACKING), ((actions > 1) & bare, "the log states no edges"), apart

    @functools.cached_property
    def unended(self) -> tuple[np.ndarray, str]:
        """The traces whose last action is not their answer, and why: bool [traces]."""
        return ended_early(self.traces)[0], UNKNOWN_END

    @functools.cached_property
    def work(self) -> tuple[np.ndarray, np.ndarray]:
        """Senders and receivers of edges over which work of an agent may reach another; a start hands none over."""
        senders, receivers = self.edges
        graph, kind = self.traces.graph, np.asarray(self.traces.graph.event_type)
        edge_type = np.asarray(graph.edge_type)[np.asarray(graph.edge_mask)]
        work = (edge_type != int(EdgeType.SPAWN)) & (kind[senders] != int(EventType.SPAWN))
        work &= (self.agent[senders] != self.agent[receivers]) & (self.counts.acts[self.agent[senders]] > 0)
        return senders[work], receivers[work]

    @functools.cached_property
    def hidden_work(self) -> tuple[np.ndarray, str]:
        """The traces in which no agent's last action reads what another one did, but what it was asked, and why those
        of several agents do not tell who is useful: bool [traces].
        """
        senders, receivers = self.work
        one, other = self.agent[senders], self.agent[receivers]
        start = np.zeros(len(self.agent), bool)
        start[receivers[np.asarray(self.traces.graph.agent_parent)[other] != one]] = True
        ends = self._last_actions(self.agent, self.traces.graph.num_agents)
        read = np.zeros(self.traces.sizes.traces, bool)
        read[self.trace[ends & self.order.reachable(start)]] = True
        return (self.counts.members > 1) & ~read, UNREAD

    @functools.cached_property
    def reaching_answer(self) -> np.ndarray:
        """Instances with a path of `causes` from one of their events to the last action of their trace: bool [A].

        What is not known of the traces that are `unended`, or whose agents have `hidden_work`.
        """
        answers = self._last_actions(self.trace, self.traces.sizes.traces)
        useful = np.zeros(self.traces.graph.num_agents, bool)
        useful[self.agent[self.order.reachable(answers, backward=True)]] = True
        return useful

    def _last_actions(self, ids: np.ndarray, count: int) -> np.ndarray:
        """The events that are the last action to be done of one of `count` traces or agents: bool [N]."""
        last = last_of_each(ids, np.flatnonzero(self.action), self.clock.done, count)
        found = np.zeros(len(ids), bool)
        found[last[last >= 0]] = True
        return found


def different(trace: np.ndarray, ids: np.ndarray, count: int) -> np.ndarray:
    """How many different ids each of `count` traces has: int [count]."""
    order = by_id(trace, ids)
    of_trace, ordered = trace[order], ids[order]
    new = np.ones(len(order), bool)
    new[1:] = (of_trace[1:] != of_trace[:-1]) | (ordered[1:] != ordered[:-1])
    return np.bincount(of_trace[new], minlength=count)


def of_whole_traces(metric: TraceMetric, lacking: np.ndarray) -> TraceMetric:
    """A number of what is in a trace, without the traces that lack lines: these have `LACKING` as the reason.

    Args:
      metric: of every trace.
      lacking: of `lacking_traces`.

    Examples:
      >>> of_whole_traces(TraceMetric(np.array([1.0, 0.5]), ["", ""]), np.array([True, False]))
      TraceMetric(value=array([nan, 0.5]), reasons=['the log lacks lines of the trace', ''])
    """
    reasons = [LACKING if lacks else why for lacks, why in zip(lacking, metric.reasons, strict=True)]
    return TraceMetric(np.where(lacking, np.nan, metric.value), reasons)


def of_untold_tasks(traces: Traces, metrics: Mapping[str, TraceMetric]) -> np.ndarray:
    """The runs of `untold_tasks`, where the metrics say which traces end early: bool [traces].

    Args:
      traces: what was read.
      metrics: of these, by name.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "b"], trace=["a", "b"], reward=[1.0, np.nan])
      >>> of_untold_tasks(rows.traces, {"ended_early": numbered(np.array([0.0, 1.0]))}).tolist()
      [False, True]
    """
    ends = metrics.get("ended_early")
    return np.zeros(traces.sizes.traces, bool) if ends is None else untold_tasks(traces, ends.value > 0)
