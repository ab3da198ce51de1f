"""How a team worked, as a number of each trace that is high where a fault shows: order, shares, repeats, dead ends."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from credit.metrics.message_contents import content_ids, team_messages, text_ids
from credit.reports.chosen_numbers import NO_ARGUMENTS, of_known_logs
from credit.reports.clock import first_of_each, last_of_each
from credit.reports.trace_numbers import NO_ACTION, UNLINKED, TeamFacts, TraceMetric, different, divided, numbered
from graphs.event_graph import EventType
from graphs.structure.host_ids import distinct, earlier_of_each
from graphs.traces.batch import Traces

__all__ = ["TeamWork"]

NO_CONTENT = "the log has no content that can be compared"
SERIAL = "looks like a pipeline, serial by design: no sub-agent starts before the one before it has ended"
NO_PAIR = "no agent started two others that act"
NO_TWO = "no two agents that one agent started, with two or more actions each, could run at once"
ROUNDED = 0.01  # of a span: times since 1970 are rounded, and a call that ends starts the next at that time
MOST_PAIRS = 500  # of a trace; each takes a bit of every event behind it


class _Pairs(NamedTuple):
    """Neighbours: their trace, the instances of the earlier and the later one, and between which events a path counts.

    Attributes:
      start, end: the last action of the earlier one, and the first event of the later one.
    """

    trace: np.ndarray
    earlier: np.ndarray
    later: np.ndarray
    start: np.ndarray
    end: np.ndarray


class _Neighbours(NamedTuple):
    """Neighbours, and whether they are in order."""

    pairs: _Pairs
    ordered: np.ndarray


class TeamWork:
    """The numbers of one batch. Each method is one number, in [0, 1], for each trace.

    Siblings are instances with an action that one instance started. Neighbours are two siblings, or turns of two,
    between whose beginnings none of a sibling began, the first `MOST_PAIRS` of a trace. They are in order if the first
    event of the later one has a path from the last action of the earlier one; others could run at once.

    Args:
      traces: what was read.
    """

    def __init__(self, traces: Traces) -> None:
        graph, n = traces.graph, traces.sizes.events
        self.traces, self.count = traces, traces.sizes.traces
        self.facts = facts = TeamFacts.of(traces)
        self.agent, self.trace, self.action = facts.agent, facts.trace, facts.action
        self.kind = np.asarray(graph.event_type)[:n]
        self.owner, self.parent = np.asarray(graph.agent_trace), np.asarray(graph.agent_parent)
        self.acts, self.members, self.actions = facts.counts
        self.apart = ((self.members > 1) & ~facts.linked, UNLINKED)

    def serial_collapse(self) -> TraceMetric:
        """Neighbouring turns in order / neighbouring turns. An agent may be asked again after its sibling."""
        (trace, *_), ordered = self._neighbours[0]
        pairs = np.bincount(trace, minlength=self.count)
        in_order = np.bincount(trace[ordered], minlength=self.count)
        return numbered(divided(in_order, pairs), (pairs == 0, NO_PAIR), self.apart)

    def pseudo_parallelism(self) -> TraceMetric:
        """Neighbours that were to run at once and did not, by their times / those that were.

        An instance runs from its first event to the end of its last one; one with a single action has no such span. Two
        were to run at once if both were started, by the events that caused their first, before either had ended by more
        than `ROUNDED` of the shorter span, or if two of their names ran beside each other, for half of it, in any
        trace. Clocks that differ make a little of that. Others, one always started when the other had ended, are a
        pipeline.
        """
        (trace, earlier, later, *_), ordered = self._neighbours[1]
        time = self.facts.durations.time
        begin, end = np.full(len(self.acts), np.inf), np.full(len(self.acts), -np.inf)
        np.fmin.at(begin, self.agent, time)
        np.fmax.at(end, self.agent, self.facts.durations.end)
        spans = (self.acts > 1) & (end > begin)
        free = ~ordered & spans[earlier] & spans[later]
        a, b, of = earlier[free], later[free], trace[free]
        shared = np.minimum(end[a], end[b]) - np.maximum(begin[a], begin[b])
        shorter = np.minimum(end[a] - begin[a], end[b] - begin[b])
        apart, beside = shared <= 0, 2 * shared >= shorter
        start, names = self._started(begin, time), text_ids(self.traces.agents["name"])
        both = np.sort([names[a], names[b]], axis=0).T @ [len(names) + 1, 1]
        asked_before = np.minimum(end[a], end[b]) - np.maximum(start[a], start[b])
        meant = (asked_before > ROUNDED * shorter) | np.isin(both, both[beside])
        pairs = np.bincount(of[meant], minlength=self.count)
        value = divided(np.bincount(of[meant], apart[meant], self.count), pairs)
        seconds = np.array(self.facts.durations.reasons, object)
        untimed = [(seconds == words, words) for words in {*seconds.tolist()} - {""}]
        none, few = (np.bincount(rows, minlength=self.count) == 0 for rows in (trace, of))
        return numbered(value, *untimed, self.apart, (none, NO_PAIR), (few, NO_TWO), (pairs == 0, SERIAL))

    def _started(self, begin: np.ndarray, time: np.ndarray) -> np.ndarray:
        """When another agent started each instance: the last of its events that caused the first; else `begin`."""
        senders, receivers = self.facts.edges
        first = first_of_each(self.agent, np.arange(len(time)), self.facts.clock.at, len(begin))
        causes = (receivers == first[self.agent[receivers]]) & (self.agent[senders] != self.agent[receivers])
        start = np.full(len(begin), -np.inf)
        np.fmax.at(start, self.agent[receivers[causes]], time[senders[causes]])
        return np.where(np.isfinite(start), start, begin)

    def duplicated_work(self) -> TraceMetric:
        """Messages and tool calls that a sibling has, too / those of agents with siblings: 1 where all do the same."""
        rows, ids = self._contents
        family = self.parent[self.agent]
        size = np.bincount(self.parent[self._siblings], minlength=len(self.acts))
        of_family = np.zeros(len(self.acts), bool)
        of_family[self._siblings] = True
        mine = of_family[self.agent[rows]] & (size[family[rows]] > 1)
        rows, ids = rows[mine], ids[mine]
        # One number for a family and a content; one for these and a sibling, so that each sibling counts once.
        key, of_row = np.unique(family[rows] * (ids.max(initial=0) + 2) + ids, return_inverse=True)
        mentions = distinct(of_row * len(self.acts) + self.agent[rows])
        shared = np.bincount(mentions // max(len(self.acts), 1), minlength=len(key))[of_row] > 1
        total = np.bincount(self.trace[rows], minlength=self.count)
        unknown = np.bincount(self.trace[rows][ids < 0], minlength=self.count) > 0
        value = divided(np.bincount(self.trace[rows], shared, self.count), total)
        return numbered(value, (total == 0, NO_PAIR), (unknown, NO_CONTENT))

    def dominant_agent(self) -> TraceMetric:
        """(s − 1/n) / (1 − 1/n), with s the greatest share of actions of one of n members."""
        most = np.zeros(self.count, self.acts.dtype)
        np.maximum.at(most, self.owner, self.acts)
        even = 1 / np.maximum(self.members, 1)
        value = (divided(most, self.actions) - even) / np.where(self.members > 1, 1 - even, 1)
        return numbered(value, (self.members < 3, "fewer than three agents act"))

    def free_riding(self) -> TraceMetric:
        """Members that no path leads from to the last action, or that wrote two messages or more and repeated others /
        members."""
        return self._part_of_members(self.unread | self.repeating)

    def unread_agents(self) -> TraceMetric:
        """Members that no path leads from to the last action / members: of `free_riding`, what needs no texts."""
        return self._part_of_members(self.unread)

    def _part_of_members(self, idle: np.ndarray) -> TraceMetric:
        value = divided(np.bincount(self.owner[idle], minlength=self.count), self.members)
        alone = (self.members < 2, "fewer than two agents act")
        return numbered(value, alone, self.facts.unended, self.apart, self.facts.hidden_work)

    @functools.cached_property
    def unread(self) -> np.ndarray:
        """Members that no path leads from to the last action: bool [A]."""
        unread: np.ndarray = (self.acts > 0) & ~self.facts.reaching_answer
        return unread

    @functools.cached_property
    def repeating(self) -> np.ndarray:
        """Members that wrote two messages or more and repeated others: bool [A]."""
        rows, ids = self._messages
        order = np.argsort(self.facts.clock.at[rows], kind="stable")
        rows, ids = (column[order][ids[order] >= 0] for column in (rows, ids))
        agent, trace = self.agent[rows], self.trace[rows]
        _, first, which = np.unique(trace * (ids.max(initial=0) + 2) + ids, return_index=True, return_inverse=True)
        echoed = np.bincount(agent, agent[first][which] != agent, len(self.acts))
        written = np.bincount(agent, minlength=len(self.acts))
        repeating: np.ndarray = (self.acts > 0) & (written > 1) & (echoed >= written)
        return repeating

    def communication_padding(self) -> TraceMetric:
        """Messages that repeat an earlier one of the trace / messages."""
        rows, ids = self._messages
        trace = self.trace[rows]
        total = np.bincount(trace, minlength=self.count)
        unknown = np.bincount(trace[ids < 0], minlength=self.count) > 0
        value = 1 - divided(different(trace, ids, self.count), total)
        few = (total < 2, "the team wrote fewer than two messages")
        return numbered(value, few, self.facts.unread, (unknown, NO_CONTENT))

    def tool_spam(self) -> TraceMetric:
        """Calls in later rounds of a loop, as `credit.reports.call_loops.LOOP` has it / calls."""
        calls = self.facts.calls
        total, again = np.bincount(self.trace[calls.rows], minlength=self.count), calls.calls_again()
        few = (total < 2, "the team made fewer than two tool calls")
        return of_known_logs(self.traces, numbered(divided(again, total), few, (np.isnan(again), NO_ARGUMENTS)))

    def aggregation_leakage(self) -> TraceMetric:
        """Aggregations that no work of another agent reached since the aggregation before / aggregations."""
        joins = (self.kind == int(EventType.AGGREGATE)) & self.action
        start = np.zeros(len(self.agent), bool)
        start[self.facts.work[1]] = True
        reached = self.facts.logged.reachable(start, ends=joins)
        total = np.bincount(self.trace[joins], minlength=self.count)
        value = divided(np.bincount(self.trace[joins & ~reached], minlength=self.count), total)
        alone = (self.members < 2, "fewer than two agents act")
        return numbered(value, (self.actions == 0, NO_ACTION), alone, self.apart, (total == 0, "nothing is aggregated"))

    @functools.cached_property
    def _siblings(self) -> np.ndarray:
        """Instances with an action that another instance started."""
        return np.flatnonzero((self.acts > 0) & (self.parent != np.arange(len(self.acts))))

    @functools.cached_property
    def _neighbours(self) -> tuple[_Neighbours, _Neighbours]:
        """Those of turns, and those of instances."""
        pairs = [self._pairs(unit) for unit in (np.asarray(self.traces.graph.turn_ids)[: len(self.agent)], self.agent)]
        trace, _, _, start, end = (np.concatenate(both) for both in zip(*pairs, strict=True))
        # Each pair of a trace has a bit, which spreads from the earlier one's last action along the edges.
        word, bit = np.divmod(earlier_of_each(trace), 64)
        mark, ordered = np.uint64(1) << bit.astype(np.uint64), np.zeros(len(trace), bool)
        for number in range(int(word.max(initial=-1)) + 1):
            now = word == number
            bits = np.zeros(len(self.agent), np.uint64)
            np.bitwise_or.at(bits, start[now], mark[now])
            ordered[now] = (self.facts.logged.spread(bits)[end[now]] & mark[now]) > 0
        turns = len(pairs[0].trace)
        return _Neighbours(pairs[0], ordered[:turns]), _Neighbours(pairs[1], ordered[turns:])

    def _pairs(self, unit: np.ndarray) -> _Pairs:
        """The neighbours among the units, which are turns or instances of events."""
        at, count = self.facts.clock.at, int(unit.max(initial=-1)) + 1
        first = first_of_each(unit, np.arange(len(unit)), at, count)
        last = last_of_each(unit, np.flatnonzero(self.action), at, count)
        owner = np.full(count, -1)
        owner[unit] = self.agent
        sibling = np.zeros(len(self.acts), bool)
        sibling[self._siblings] = True
        units = np.flatnonzero((last >= 0) & sibling[owner])
        units = units[np.lexsort((first[units], at[first[units]], self.parent[owner[units]]))]
        earlier, later = units[:-1], units[1:]
        pair = (self.parent[owner[earlier]] == self.parent[owner[later]]) & (owner[earlier] != owner[later])
        trace = self.owner[owner[earlier]]
        pair[pair] = earlier_of_each(trace[pair]) < MOST_PAIRS
        earlier, later = earlier[pair], later[pair]
        return _Pairs(trace[pair], owner[earlier], owner[later], last[earlier], first[later])

    @functools.cached_property
    def _messages(self) -> tuple[np.ndarray, np.ndarray]:
        """The messages of members as rows, and ids of what they say; −1 where that is not known."""
        rows = team_messages(self.traces)
        return rows, content_ids(self.traces, rows)

    @functools.cached_property
    def _contents(self) -> tuple[np.ndarray, np.ndarray]:
        """The messages and tool calls of members as rows, and ids of what they say; −1 where that is not known."""
        messages, said = self._messages
        calls = np.flatnonzero((self.kind == int(EventType.TOOL_CALL)) & (self.acts[self.agent] > 0))
        tools, ids = text_ids(self.traces.events["tool"].take(calls)), content_ids(self.traces, calls)
        done = np.where(ids < 0, -1, ids * (tools.max(initial=0) + 2) + tools + 1)
        rows = np.concatenate([messages, calls])
        ids = np.concatenate([said, np.where(done < 0, -1, done + said.max(initial=-1) + 1)])
        order = np.argsort(rows, kind="stable")
        return rows[order], ids[order]
