"""Tool calls in the order of a log: retries, series of failures, and loops, also of messages."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from credit.reports.call_loops import LONGEST, Loop, Steps, anew, covered, repeated
from credit.reports.empty_results import EmptyResults, empty_results
from credit.reports.event_errors import error_mask, status_mask
from credit.reports.event_texts import call_arguments
from credit.reports.message_loops import message_loops
from credit.reports.of_batch import OfBatch, kept
from credit.reports.outside_team import outside_team
from graphs.distinct_columns import distinct_columns
from graphs.event_graph import EdgeType, EventType
from graphs.structure.forest import real_edges
from graphs.traces.batch import Traces
from graphs.traces.record import is_cut

__all__ = ["Failures", "ToolCalls", "call_mask"]

_NOTHING = frozenset(("", "{}"))  # arguments of a call without any, or of a log without contents


@dataclasses.dataclass(frozen=True)
class Failures:
    """Errors of one agent and tool: of one call that failed again, whatever came between, or else in a row.

    Attributes:
      tool: its name; None for an error outside of tool calls.
      rows: of the events that the log calls errors, in order.
      same: how often the call failed with the same arguments before it succeeded; 1 in other runs.
      works: a later call of the tool by the agent has succeeded, whatever its arguments.
      recovered: one with the same arguments has; None where the log has no arguments of the last call that failed.
      left: one with the same arguments has no result (`ToolCalls.open`).
      place, streak: position of the first, from 1, among the errors in a row that it is one of, and how many these are,
        with those of calls that failed again.
    """

    tool: str | None
    rows: tuple[int, ...]
    same: int
    works: bool
    recovered: bool | None
    left: bool
    place: int
    streak: int


@kept
def call_mask(traces: Traces, *, of_team: bool = True) -> np.ndarray:
    """Whether an event is a call of a tool, by the team unless that is False, or a spawn by one: bool [real events].

    In a trace whose tools have results and no calls, each is both: one event for a call and what it gave.

    Args:
      traces: a batch.
      of_team: whether calls outside the team are left out.
    """
    kind = np.asarray(traces.graph.event_type)[: traces.sizes.events]
    by_tool = traces.events["tool"].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    called = kind == int(EventType.TOOL_CALL)
    calls = np.bincount(trace[called], minlength=traces.sizes.traces)
    called |= (kind == int(EventType.SPAWN)) & by_tool
    called |= (kind == int(EventType.TOOL_RESULT)) & by_tool & (calls == 0)[trace]
    mask: np.ndarray = called & ~outside_team(traces) if of_team else called
    return mask


class ToolCalls(OfBatch):
    """The tool calls of a batch, and spawns by a tool.

    Args:
      traces: what was read.
      of_team: whether those of a simulated user are left out, since they are not the team's (`outside_team`).

    Attributes:
      rows: of the calls, in order: int [calls].
      results, calls: of results that a call led to, and the call of each: int [results].
      retry: whether it is made again, arguments and all, after it failed: bool [calls].
      errors: whether the log calls an event an error: bool [number of real events].
      counted: the same, but that a call and its result, both called errors, count once: bool [number of real events].

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q"], trace=["a"], agent=["planner"], reward=[1.0])
      >>> ToolCalls(rows.traces).rows.tolist()
      []
    """

    def __init__(self, traces: Traces, *, of_team: bool = True) -> None:
        super().__init__(traces)
        graph, n = traces.graph, traces.sizes.events
        kind = np.asarray(graph.event_type)[:n]
        self._agent = np.asarray(graph.agent_ids)[:n]
        inside = ~outside_team(traces) if of_team else np.ones(n, bool)
        self.errors = error_mask(traces) & inside
        is_call = call_mask(traces, of_team=of_team)
        is_result = (kind == int(EventType.TOOL_RESULT)) & inside & ~is_call
        self._edges = senders, receivers = real_edges(graph)
        answers = np.flatnonzero(is_call[senders] & is_result[receivers])
        calls, results, self._loose = self._without_edges(is_call, is_result, senders[answers])
        calls, results = np.append(senders[answers], calls), np.append(receivers[answers], results)
        order = np.argsort(calls, kind="stable")  # whatever the order of edges
        self.results, self.calls = results[order], calls[order]
        action = np.asarray(graph.action_mask)
        # Of two calls that are actions the earlier one only came before.
        asks = np.flatnonzero(is_call[receivers])
        asks = asks[action[senders[asks]] & ~(is_call[senders[asks]] & action[receivers[asks]])]
        self._message = np.arange(n)  # that a call is of; a call of none counts as its own
        self._message[receivers[asks]] = -1
        np.maximum.at(self._message, receivers[asks], senders[asks])
        self.counted = self.errors.copy()
        self.counted[self.results[self.errors[self.calls]]] = False
        # Outcomes are results, calls without a result, and other errors: the result of a call tells how it went.
        outcome = is_call | is_result
        outcome[self.calls] = False
        outcome |= self.errors
        self._outcomes = np.flatnonzero(outcome)
        self.rows = np.flatnonzero(is_call)

    def _without_edges(self, is_call: np.ndarray, is_result: np.ndarray, told: np.ndarray) -> tuple[np.ndarray, ...]:
        """Calls, and the result that alone comes after each before the next one, of the same agent and tool.

        Only in traces in which no edge tells the call of a result. The last is of results that this leaves out: of
        calls that ran at once, whose order says nothing.
        """
        trace = np.asarray(self.traces.graph.trace_ids)[: len(is_call)]
        rows = np.flatnonzero((is_call | is_result) & ~np.isin(trace, trace[told]))
        rows = rows[np.lexsort([rows, self.tools[rows], self._agent[rows]])]
        of = np.stack([self._agent[rows], self.tools[rows]])
        goes_on = np.append((of[:, 1:] == of[:, :-1]).all(axis=0) & is_result[rows[1:]], False)  # with a result
        pair = np.flatnonzero(goes_on & is_call[rows] & (self.tools[rows] >= 0) & ~np.append(goes_on[1:], False))
        return rows[pair], rows[pair + 1], np.setdiff1d(rows[is_result[rows]], rows[pair + 1])

    @property
    def retry(self) -> np.ndarray:
        """Whether the last outcome of the same call of the agent was an error: bool [calls]."""
        return self._retries[0]

    @property
    def untold(self) -> list[int]:
        """Calls after an error of their tool that may be retries, but for arguments that the log lacks."""
        found: list[int] = self.rows[self._retries[1]].tolist()
        return found

    @functools.cached_property
    def empty(self) -> EmptyResults:
        """Results without an error that hold nothing."""
        worked = ~(self.errors[self.results] | self.errors[self.calls])
        results, of = np.unique(self.results[worked], return_index=True)
        return empty_results(self.traces, results, self.tools[self.calls[worked][of]])

    def retry_counts(self) -> np.ndarray:
        """Retries of each trace, NaN where calls lack the arguments to tell: float [traces]."""
        return self._where_told(self.rows[self.retry], self.untold)

    @property
    def unrecovered(self) -> np.ndarray:
        """The last error of each call of an agent, arguments and all, that failed and did not succeed later."""
        return self._failed_last[0]

    def unrecovered_counts(self) -> np.ndarray:
        """Such calls of each trace, NaN where calls lack the arguments to tell: float [traces].

        Of several errors of an agent and a tool, one without arguments may be of the same call as another.
        """
        return self._where_told(*self._failed_last[:2])

    @property
    def passed_over(self) -> np.ndarray:
        """Those of `unrecovered` after which another call of the tool by the agent succeeded."""
        return self._failed_last[2]

    @functools.cached_property
    def _failed_last(self) -> tuple[np.ndarray, list[int], np.ndarray]:
        """The errors that are `unrecovered`; those that may be, as a later success may be of the same call; and the
        `passed_over`."""
        rows, kind, said = self._of_failing
        ended = ~self.open[rows] | self.errors[rows]
        rows, kind, said = rows[ended], kind[ended], said[ended]
        wrong, named = self.errors[rows], said >= 0
        works, nameless = (np.full(kind.max(initial=-1) + 1, -1) for _ in range(2))  # last successes, by agent and tool
        np.maximum.at(works, kind[~wrong], rows[~wrong])
        np.maximum.at(nameless, kind[~wrong & ~named], rows[~wrong & ~named])
        call = distinct_columns(kind, np.where(named, said, -1 - rows)).of
        last = np.zeros(len(rows), np.int64)
        np.maximum.at(last, call, rows)
        failed = wrong & np.where(named, last[call] == rows, self.counted[rows])
        untold = failed & (np.where(named, nameless[kind], works[kind]) > rows)
        unrecovered = failed & ~untold
        several = np.bincount(kind, unrecovered, len(works)) > 1
        unknown: list[int] = rows[untold | (unrecovered & ~named & several[kind])].tolist()
        return rows[unrecovered], unknown, rows[unrecovered & (works[kind] > rows)]

    @functools.cached_property
    def _retries(self) -> tuple[np.ndarray, np.ndarray]:
        """Which calls are retries, and which may be; sorted out where it is asked for: costs need results alone."""
        rows, kind, said = self._of_failing
        n, wrong, call = len(self._agent), self.errors[rows], self.owners[rows]
        first, nameless = (np.full(kind.max(initial=-1) + 1, n) for _ in range(2))  # errors, by agent and tool
        np.minimum.at(first, kind[wrong], rows[wrong])
        np.minimum.at(nameless, kind[wrong & (said < 0)], rows[wrong & (said < 0)])
        retry, untold = self._after_failure(kind * (said.max(initial=0) + np.int64(2)) + said + 1), np.zeros(n, bool)
        untold[call] = (call > nameless[kind]) | ((said < 0) & (call > first[kind]))
        retry &= ~untold
        return retry[self.rows], untold[self.rows]

    def _after_failure(self, key: np.ndarray) -> np.ndarray:
        """Calls before which the last outcome of the same key was an error: bool [number of real events].

        Args:
          key: of each outcome of `_of_failing`: int [outcomes].
        """
        rows = self._of_failing[0]
        call, wrong = self.owners[rows], self.errors[rows]
        # Each call before its outcome, which for one without a result is its own row.
        key = np.concatenate([key, key])
        at, ends = np.concatenate([call * 2, rows * 2 + 1]), np.repeat([False, True], len(rows))
        failed = np.concatenate([wrong, wrong])
        order = np.lexsort([at, key])
        key, ends, failed = key[order], ends[order], failed[order]
        last = np.maximum.accumulate(np.where(ends, np.arange(len(key)), 0))
        before = np.append(0, last)[: len(key)]  # the outcome before; the first row where there is none
        again = (key[before] == key) & ends[before] & failed[before] & ~ends
        after = np.zeros(len(self._agent), bool)
        after[np.concatenate([call, call])[order][again]] = True
        return after

    @functools.cached_property
    def _of_failing(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Outcomes of agents with tools that failed for them: their rows, agent and tool, and what was called.

        The last is an integer of the call, equal where arguments are, -1 where the log has none, or a result does not
        say whose it is: int [outcomes] each.
        """
        call = self.owners[self._outcomes]
        tool, called = self.tools[call] + 1, np.isin(call, self.rows)
        _, kind = np.unique(self._agent[call] * (tool.max(initial=0) + np.int64(1)) + tool, return_inverse=True)
        fails = ((tool > 0) | called) & (np.bincount(kind, self.errors[self._outcomes]) > 0)[kind]
        said = np.full(len(call), -1, np.int64)
        said[fails & called] = self._said(call[fails & called])
        return self._outcomes[fails], kind[fails], said[fails]

    @functools.cached_property
    def _tool(self) -> list[str | None]:
        names: list[str | None] = self.traces.events["tool"].to_pylist()
        return names

    @functools.cached_property
    def tools(self) -> np.ndarray:
        """An integer for each name of a tool, -1 where an event has none: int [events]."""
        return _ids(self.traces.events["tool"])

    @functools.cached_property
    def owners(self) -> np.ndarray:
        """The call that an event is the result of, or the event itself: int [events]."""
        calls = np.arange(len(self._agent))
        calls[self.results] = self.calls
        return calls

    @functools.cached_property
    def open(self) -> np.ndarray:
        """Calls, no spawns, that `by_results` are open: without a result, a person's answer, or a status of their own.

        Such a call, as a run that was killed leaves one, neither failed nor succeeded: bool [number of real events].
        """
        traces, n = self.traces, len(self._agent)
        graph, trace = traces.graph, np.asarray(traces.graph.trace_ids)[:n]
        open_ = np.zeros(n, bool)
        open_[self.rows] = self.by_results[trace[self.rows]]
        open_ &= ~status_mask(traces, lambda word: not is_cut(word))
        open_ &= ~np.isin(trace, trace[self._loose])
        open_ &= np.asarray(graph.event_type)[:n] == int(EventType.TOOL_CALL)
        open_[self.calls] = False
        edge = np.asarray(graph.edge_type)[np.asarray(graph.edge_mask)]
        open_[self._edges[0][edge == int(EdgeType.RETURN)]] = False  # a person declined it, or answered
        return open_

    @functools.cached_property
    def by_results(self) -> np.ndarray:
        """Traces in which a call without a result has not ended: bool [traces].

        Calls of their format have results in these logs. A trace without any may be of other logs of that format, such
        as a table that was converted, whose calls end in their own rows: one that shows so by a call with a status or
        with seconds of its own, or with a later message of its agent.
        """
        traces, count = self.traces, self.traces.sizes.traces
        trace = np.asarray(traces.graph.trace_ids)[: len(self._agent)]
        formats = traces.traces["format"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        action, seconds = np.asarray(traces.graph.action_mask)[: len(self._agent)], traces.evidence.get("seconds")
        ended = status_mask(traces, lambda word: not is_cut(word))
        if seconds is not None:  # those of an action may be its model's
            ended |= seconds.mask[: len(ended)] & ~action
        says = np.flatnonzero(action & (np.asarray(traces.graph.event_type)[: len(ended)] == int(EventType.MESSAGE)))
        last = np.full(self._agent.max(initial=-1) + 1, -1)
        np.maximum.at(last, self._agent[says], says)
        ended |= np.arange(len(ended)) < last[self._agent]
        whole = np.bincount(trace[self.rows], ended[self.rows], count) > 0
        whole &= np.bincount(trace[self.calls], minlength=count) == 0
        found: np.ndarray = np.isin(formats, formats[trace[self.calls]]) & ~whole
        return found

    def call_of(self, row: int) -> int:
        """The call that an event is the result of, or the event itself."""
        return int(self.owners[row])

    def failures(self) -> list[Failures]:
        """Errors of a call again and in a row, in order of the first of them."""
        wrong = self.errors
        keys = {row: (int(self._agent[row]), self._tool[self.call_of(row)]) for row in self._outcomes.tolist()}
        rows, _, said = self._of_failing
        texts = dict(zip(rows.tolist(), said.tolist(), strict=True))
        runs: list[list[int]] = []
        last: dict[tuple[int, str | None], int] = {}  # the run in a row that goes on, by agent and tool
        again: dict[tuple[int, str | None, int], list[int]] = {}  # the errors of a call that goes on
        repeats: list[list[int]] = []
        works: dict[tuple[int, str | None], int] = {}  # the last success, by agent and tool
        mends: dict[tuple[int, str | None, int], int] = {}  # and by call
        opened: dict[tuple[int, str | None, int], int] = {}  # the last one without a result, by call
        for row, key in keys.items():
            call = (*key, texts.get(row, -1))
            if self.open[row] and not wrong[row]:
                opened[call] = row
                continue
            if not wrong[row]:
                works[key] = mends[call] = row
                last.pop(key, None)
                again.pop(call, None)
                continue
            run = runs[last[key]] if key in last and key[1] is not None else []
            if run and run[-1] == self.call_of(row):  # the call and its result are one error
                continue
            if not run:
                last[key] = len(runs)
                runs.append(run)
            run.append(row)
            if call[2] >= 0:
                if call not in again:
                    repeats.append(again.setdefault(call, []))
                again[call].append(row)
        repeats = [of for of in repeats if len(of) > 1]
        told = set(itertools.chain.from_iterable(repeats))
        places = {row: (place, len(run)) for run in runs for place, row in enumerate(run, 1)}
        found = []
        for of in [*repeats, *([row for row in run if row not in told] for run in runs)]:
            if of:
                key, text = keys[of[-1]], texts.get(of[-1], -1)
                recovered = mends.get((*key, text), -1) > of[-1] if text >= 0 else None
                same = len(of) if of[0] in told else 1
                worked = works.get(key, -1) > of[-1]
                left = text >= 0 and opened.get((*key, text), -1) > of[-1]
                found.append(Failures(key[1], tuple(of), same, worked, recovered, left, *places[of[0]]))
        return sorted(found, key=lambda run: run.rows[0])

    @functools.cached_property
    def loops(self) -> list[Loop]:
        """As `LOOP` has them, of calls and of messages, in order of the first."""
        return sorted([*self._told(self._repeats[1]), *self._exchanges], key=lambda loop: loop.rows[0])

    @functools.cached_property
    def _exchanges(self) -> list[Loop]:
        return message_loops(self.traces, call_mask(self.traces, of_team=False))

    @property
    def messages_again(self) -> np.ndarray:
        """Messages in later rounds of loops: their rows."""
        return np.unique([row for loop in self._exchanges for row in loop.again]).astype(np.int64)

    @functools.cached_property
    def persisted(self) -> list[Loop]:
        """What is no loop since rounds of it are retries alone: calls made again until they succeed, or not."""
        return self._told(self._repeats[2])

    def _told(self, found: np.ndarray) -> list[Loop]:
        """The stretches in order of the first call."""
        steps = self._repeats[0]
        rows, begin = steps.rows, steps.begin
        loops = []
        for start, stop, period in found.tolist():
            first, second = rows[begin[start] : begin[start + period]], rows[begin[start + period] : begin[stop]]
            tools = dict.fromkeys(str(self._tool[row]) for row in first.tolist())
            of_steps = tuple(rows[begin[start:stop]].tolist())
            loops.append(Loop(tuple(tools), of_steps, period, tuple(second.tolist())))
        return sorted(loops, key=lambda loop: loop.rows[0])

    @property
    def uncompared(self) -> list[int]:
        """First calls of steps that might be of a loop, by their tools, but whose arguments the log lacks."""
        steps, *_, lacking = self._repeats
        first: list[int] = steps.rows[steps.begin[lacking]].tolist()
        return first

    def loop_counts(self) -> np.ndarray:
        """Loops of each trace, NaN where calls lack the arguments to tell: float [traces]."""
        return self._where_told(np.array([loop.rows[0] for loop in self.loops], np.int64), self.uncompared)

    def calls_again(self) -> np.ndarray:
        """Calls of each trace in later rounds of loops, NaN where calls lack the arguments to tell: float [traces]."""
        return self._where_told(self._later, self.uncompared)

    @property
    def again(self) -> np.ndarray:
        """Whether a call is a retry, or in a later round of a loop: bool [calls]."""
        again: np.ndarray = self.retry | np.isin(self.rows, self._later)
        return again

    @property
    def asking(self) -> np.ndarray:
        """The action that asks for each call; the call itself where none does: int [calls]."""
        asking: np.ndarray = self._message[self.rows]
        return asking

    @property
    def _later(self) -> np.ndarray:
        """Calls in later rounds of loops: their rows."""
        steps, found, *_ = self._repeats
        rows: np.ndarray = steps.rows[covered(found, len(steps.agent), later=True)[steps.step]]
        return rows

    def _where_told(self, rows: np.ndarray, untold: list[int]) -> np.ndarray:
        """How many of the rows each trace has, NaN where it has one of `untold`."""
        n, trace = self.traces.sizes.traces, np.asarray(self.traces.graph.trace_ids)
        found, lacks = (np.bincount(trace[of], minlength=n) for of in (rows, np.asarray(untold, np.int64)))
        return np.where(lacks > 0, np.nan, found)

    @functools.cached_property
    def _repeats(self) -> tuple[Steps, np.ndarray, np.ndarray, np.ndarray]:
        """The steps, loops of them, what else of them is `repeated`, and steps that might be a loop by their tools.

        Of these the log lacks arguments.
        """
        time = self.traces.events["time"].to_numpy()
        answer = np.arange(len(time))
        answer[self.calls] = self.results

        def after(call: np.ndarray, row: np.ndarray) -> np.ndarray:
            """By the place of the result and, where stated, the times."""
            result = answer[call]
            told: np.ndarray = (result != call) & (result < row) & ~(time[result] > time[row])
            return told

        steps = Steps(self.rows, self._agent[self.rows], self._message[self.rows], after)
        tool = self.tools[steps.rows]
        # By their tools, so that only the records of these are looked up.
        by_tool = repeated(steps.keys(tool))
        maybe = covered(by_tool, len(steps.agent))
        asked = np.flatnonzero(maybe[steps.step])
        texts = self._said(steps.rows[asked])
        called = np.full(len(tool), -1, np.int64)
        called[asked] = np.where(texts < 0, -1, tool[asked] * (texts.max(initial=0) + np.int64(1)) + texts)
        keys = steps.keys(called)
        found, lacking = repeated(keys), np.flatnonzero(maybe & (keys < 0))

        def loops(found: np.ndarray, retries: np.ndarray) -> np.ndarray:
            return anew(found, np.bincount(steps.step, ~retries[steps.rows], len(steps.agent)) == 0)

        retries = np.zeros(len(time), bool)
        retries[self.rows[self.retry]] = True
        is_loop = loops(found, retries)
        if len(lacking):  # whatever the arguments, a call after one that failed is a retry of it, or another call
            by_tool = by_tool[loops(by_tool, self._after_failure(self._of_failing[1]))]
            lacking = lacking[covered(by_tool, len(steps.agent))[lacking]]
        return steps, found[is_loop], found[~is_loop], lacking

    def _said(self, calls: np.ndarray) -> np.ndarray:
        """An integer for what each call executes, equal where that is; -1 where the log has none: int [calls].

        That is its arguments, or else the reference of its content, which is the same where the content is.
        """
        said = _ids(self.traces.events["content_ref"].take(calls))
        ids: dict[str, int] = {}
        texts = self._arguments(calls)
        found = np.array([-1 if text is None else ids.setdefault(text, len(ids)) for text in texts], np.int64)
        return np.where(found >= 0, found + said.max(initial=-1) + 1, said)

    def _arguments(self, calls: np.ndarray) -> list[str | None]:
        """The arguments of each call; None where the log has none.

        An empty text or object is an argument where another call of a log of that format and system states one. Where
        all are empty, contents may have been kept out of the log.
        """
        traces = self.traces
        texts = call_arguments(traces, calls, LONGEST)
        if _NOTHING.isdisjoint(texts):
            return texts
        names = zip(*(traces.traces[name].to_pylist() for name in ("format", "system")), strict=True)
        number: dict[tuple[str, str], int] = {}
        of_trace = np.array([number.setdefault(of, len(number)) for of in names], np.int64)
        log = of_trace[np.asarray(traces.graph.trace_ids)[: len(self._agent)]]
        stated = list(zip(log[calls].tolist(), texts, strict=True))
        doubtful = {of for of, text in stated if text in _NOTHING}
        doubtful -= {of for of, text in stated if text and text not in _NOTHING}
        rest = self.rows[np.isin(log[self.rows], [*doubtful])]
        others = zip(log[rest].tolist(), call_arguments(traces, rest, LONGEST), strict=True)
        doubtful -= {of for of, text in others if text and text not in _NOTHING}
        return [None if text in _NOTHING and of in doubtful else text for of, text in stated]


def _ids(names: pa.ChunkedArray) -> np.ndarray:
    """An integer for each name; -1 where it is null or empty: int [names]."""
    encoded = names.combine_chunks().dictionary_encode()
    ids = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    empty = pc.index(encoded.dictionary, "").as_py()
    return np.where(ids == empty, -1, ids) if empty >= 0 else ids
