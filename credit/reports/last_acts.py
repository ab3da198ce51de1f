"""Where in its runs an event stands: what is among the last that is done there may follow from failing."""

from __future__ import annotations

import functools

import numpy as np

from credit.reports.clock import first_of_each
from credit.reports.endings import ended_early
from credit.reports.outside_team import outside_team
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_numbers import TeamFacts
from graphs.dealing import dealt
from graphs.task_means import LEVEL
from graphs.traces.batch import Traces

__all__ = ["LastActs"]

NEARLY, PART, LEAST = 0.9, 3, 3
"""The part of runs that is nearly all, what part of a run its end is at most, one in so many acts, and the runs that it
takes to say so."""


class LastActs:
    """What is done last in runs.

    Args:
      traces: what was read.
      calls: its tool calls.
    """

    def __init__(self, traces: Traces, calls: ToolCalls) -> None:
        self._traces, self._calls = traces, calls

    @functools.cached_property
    def _facts(self) -> TeamFacts:
        return TeamFacts.of(self._traces)

    @functools.cached_property
    def _acts(self) -> np.ndarray:
        """Actions of the team."""
        return np.flatnonzero(self._facts.action & ~outside_team(self._traces))

    @functools.cached_property
    def _places(self) -> dict[bool, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Moments of calls, or else of actions, in order, how many there are up to the end of each run, and in it."""
        found, n = {}, self._traces.sizes.traces
        for of_calls, steps in ((True, self._calls.rows), (False, self._acts)):
            whole = np.bincount(self._facts.trace[steps], minlength=n)
            found[of_calls] = np.sort(self._facts.clock.at[steps]), np.cumsum(whole), whole
        return found

    @functools.cached_property
    def _ended(self) -> np.ndarray:
        """Whether each run comes to its end: where one is cut short, its last act says nothing."""
        return ~ended_early(self._traces)[0]

    def with_these(self, rows: np.ndarray) -> np.ndarray:
        """The events, the calls that they are results of, and the results and the actions of these calls.

        Args:
          rows: of the events.
        """
        calls, owners = self._calls, self._calls.owners[rows]
        beside = calls.results[np.isin(calls.calls, owners)], calls.asking[np.isin(calls.rows, owners)]
        return np.unique(np.concatenate([rows, owners, *beside]))

    def told(self, rows: np.ndarray, failed: np.ndarray, succeeded: np.ndarray) -> str:
        """That events are the last acts in nearly all runs with one, and of failed runs more often than of succeeded
        ones beyond chance, in words; "" where they are not.

        Those are the last of a run of which nothing comes after the first but calls of the same tool, or what comes
        only after these; nobody joins the run later, and most of it is before them. Of what is no call, actions of
        agents are in place of calls of tools.

        Args:
          rows: of the events, or of the results of calls.
          failed, succeeded: which runs count: bool [traces].

        Examples:
          >>> import credit
          >>> agents = ["lead", "lead", "lead", "closer"] * 4 + ["lead"] * 16
          >>> runs = np.repeat(list("abcdefgh"), 4).tolist()
          >>> _, _, rows = credit.from_columns(group=["q"] * 32, trace=runs, agent=agents, reward=[1.0] * 32)
          >>> failed = np.arange(8) < 4
          >>> found = np.array([3, 7, 11, 15])
          >>> LastActs(rows.traces, ToolCalls(rows.traces)).told(found, failed, ~failed)
          'the last action in 4 of 4 such runs: it may follow from failing'
        """
        among = failed | succeeded
        trace, graph, n = self._facts.trace, self._traces.graph, self._traces.sizes.traces
        rows = rows[among[trace[rows]]]
        owners, runs = self._calls.owners[rows], len(np.unique(trace[rows]))
        if runs < LEAST:
            return ""
        of_calls, moment = bool(np.isin(owners, self._calls.rows).all()), self._facts.clock.at
        places, until, whole = self._places[of_calls]
        left = until[trace[owners]] - np.searchsorted(places, moment[owners])
        # Of most this tells, and looks at their events alone.
        if len(np.unique(trace[owners[PART * left <= whole[trace[owners]]]])) < NEARLY * runs:
            return ""
        first = np.full(n, np.iinfo(np.int64).max)
        np.minimum.at(first, trace[owners], moment[owners])
        steps = self._calls.rows if of_calls else self._acts
        kind = self._calls.tools + 1 if of_calls else np.asarray(graph.agent_name_ids)[self._facts.agent]
        later = moment[steps] >= first[trace[steps]]
        # What comes in no run but after it, a reaction, leaves it among the last.
        many = int(kind.max()) + 1
        code = trace * many + kind
        found, of = np.unique(code[steps], return_inverse=True)
        after = np.bincount(of, ~later, len(found)) == 0
        every, its = (np.bincount(found % many, weights) for weights in (None, after))
        other = later & ~np.isin(code[steps], code[owners]) & (its < NEARLY * every)[kind[steps]]
        goes_on = np.bincount(trace[steps[other]], minlength=n) > 0
        if of_calls:
            joins = first_of_each(self._facts.agent, self._acts, moment, graph.num_agents)
            joins = joins[joins >= 0]
            goes_on[trace[joins[moment[joins] > first[trace[joins]]]]] = True
        left = np.bincount(trace[steps], later, n)
        last = (first < np.iinfo(np.int64).max) & self._ended & ~goes_on & (PART * left <= whole)
        if last.sum() < NEARLY * runs:
            return ""
        more = failed.any() and succeeded.any() and last[failed].mean() > last[succeeded].mean()
        if not more or dealt(last[among] * 1.0, failed[among], np.zeros(int(among.sum()), np.int64)).p / 2 >= LEVEL:
            return ""
        noun = "call" if of_calls else "action"
        which = f"the last {noun}" if (left[last] <= 1).all() else f"among the last {noun}s"
        return f"{which} in {last.sum()} of {runs} such runs: it may follow from failing"
