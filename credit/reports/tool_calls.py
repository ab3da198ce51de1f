"""Tool calls in the order of a log: retries, series of failures, and repeated calls."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from credit.reports.event_errors import error_mask
from credit.reports.event_texts import call_arguments
from credit.reports.outside_team import outside_team
from graphs.event_graph import EventType
from graphs.structure.forest import real_edges
from graphs.traces.batch import Traces

__all__ = ["LOOP", "PERIOD", "Failures", "Loop", "ToolCalls", "call_mask", "repeated"]

LOOP, PERIOD = 3, 5
"""A loop is a step, or up to `PERIOD` steps in one order, that an agent takes `LOOP` times in a row or more. A step is
the calls that one message asks for at once, with their arguments. A call that began after the result of the one before
begins a new step. So does a call that no message asks for. Where agents call each other by turns, each has a loop. Of
steps drawn evenly from m, a part of (1 − 1/m) / m^(2p) begin a loop of p steps by chance: with ten, one in 111 for
p = 1 and one in 11,000 for p = 2."""

LONGEST = 100_000  # characters of arguments that are compared


@dataclasses.dataclass(frozen=True)
class Failures:
    """Errors of one agent and tool: of one call that failed again, whatever came between, or else in a row.

    Attributes:
      tool: its name; None for an error outside of tool calls.
      rows: of the events that the log calls errors, in order.
      same: how often the call failed with the same arguments before it succeeded; 1 in other runs.
      recovered: a later call of the tool by the agent has succeeded, whatever its arguments.
      mended: one with the same arguments has; None where the log has no arguments of the last call that failed.
      place, streak: position of the first, from 1, among the errors in a row that it is one of, and how many these are,
        with those of calls that failed again.
    """

    tool: str | None
    rows: tuple[int, ...]
    same: int
    recovered: bool
    mended: bool | None
    place: int
    streak: int


@dataclasses.dataclass(frozen=True)
class Loop:
    """Steps that an agent repeats in one order, as `LOOP` has it.

    Attributes:
      tools: of the calls of one round.
      rows: of the first call of each step, in order.
      times: how many whole rounds there are.
      again: rows of all calls after the first round.
    """

    tools: tuple[str, ...]
    rows: tuple[int, ...]
    times: int
    again: tuple[int, ...]


def call_mask(traces: Traces, *, of_team: bool = True) -> np.ndarray:
    """Whether an event is a call of a tool, by the team unless that is False, or a spawn by one: bool [real events]."""
    kind = np.asarray(traces.graph.event_type)[: traces.sizes.events]
    by_tool = traces.events["tool"].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    called = (kind == int(EventType.TOOL_CALL)) | ((kind == int(EventType.SPAWN)) & by_tool)
    mask: np.ndarray = called & ~outside_team(traces) if of_team else called
    return mask


class ToolCalls:
    """The tool calls of a batch, and spawns by a tool.

    Args:
      traces: what was read.
      of_team: whether those of a simulated user are left out, since they are not the team's (`outside_team`).

    Attributes:
      rows: of the calls, in order: int [calls].
      results, calls: of results that a call led to, and the call of each: int [results].
      retry: whether the previous outcome of its tool, for the same agent, was an error: bool [calls].
      errors: whether the log calls an event an error: bool [number of real events].
      counted: the same, but that a call and its result, both called errors, count once: bool [number of real events].

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q"], trace=["a"], agent=["planner"], reward=[1.0])
      >>> ToolCalls(rows.traces).rows.tolist()
      []
    """

    def __init__(self, traces: Traces, *, of_team: bool = True) -> None:
        graph, n = traces.graph, traces.sizes.events
        kind = np.asarray(graph.event_type)[:n]
        self._traces = traces
        self._agent = np.asarray(graph.agent_ids)[:n]
        inside = ~outside_team(traces) if of_team else np.ones(n, bool)
        self.errors = error_mask(traces) & inside
        is_call, is_result = call_mask(traces, of_team=of_team), (kind == int(EventType.TOOL_RESULT)) & inside
        senders, receivers = real_edges(graph)
        answers = np.flatnonzero(is_call[senders] & is_result[receivers])
        answers = answers[np.argsort(senders[answers], kind="stable")]  # whatever the order of edges
        self.results, self.calls = receivers[answers], senders[answers]
        action = np.asarray(graph.action_mask)
        # Of two calls that are actions the earlier one only came before.
        asks = is_call[receivers] & action[senders] & ~(is_call[senders] & action[receivers])
        self._message = np.arange(n)  # that a call is of; a call of none counts as its own
        self._message[receivers[asks]] = -1
        np.maximum.at(self._message, receivers[asks], senders[asks])
        self.counted = self.errors.copy()
        self.counted[self.results[self.errors[self.calls]]] = False
        # Outcomes are results, calls without a result, and other errors: the result of a call tells how it went.
        outcome = is_call | is_result
        outcome[self.calls] = False
        outcome |= self.errors
        self._outcome = outcome
        self._outcomes = np.flatnonzero(outcome)
        self.rows = np.flatnonzero(is_call)

    @functools.cached_property
    def retry(self) -> np.ndarray:
        """Sorted out where it is asked for: costs need results alone."""
        asked, failing = self._outcome.copy(), np.zeros(self._agent.max(initial=-1) + 1, bool)
        asked[self.rows], failing[self._agent[self.errors]] = True, True
        asked &= failing[self._agent]  # only after an error of its own does an agent try again
        return self._after_error(np.flatnonzero(asked), self._outcome)[self.rows]

    def _after_error(self, rows: np.ndarray, outcome: np.ndarray) -> np.ndarray:
        """The rows before which the last outcome of their agent and tool is an error: bool [events]."""
        tools = self._traces.events["tool"].combine_chunks().dictionary_encode().indices.fill_null(-1)
        tool = tools.to_numpy(zero_copy_only=False).astype(np.int64)[rows] + 1
        key = self._agent[rows] * (tool.max(initial=0) + 1) + tool
        order = np.argsort(key, kind="stable")
        key, rows = key[order], rows[order]
        last = np.maximum.accumulate(np.where(outcome[rows], np.arange(len(rows)), 0))
        before = np.append(0, last)[: len(rows)]  # of an earlier row; the first row itself where there is none
        after = np.zeros(len(outcome), bool)
        after[rows] = (key[before] == key) & outcome[rows[before]] & self.errors[rows[before]]
        after[rows[:1]] = False
        return after

    @functools.cached_property
    def _tool(self) -> list[str | None]:
        names: list[str | None] = self._traces.events["tool"].to_pylist()
        return names

    @functools.cached_property
    def _call_of(self) -> dict[int, int]:
        return dict(zip(self.results.tolist(), self.calls.tolist(), strict=True))

    def call_of(self, row: int) -> int:
        """The call that an event is the result of, or the event itself."""
        return self._call_of.get(row, row)

    def failures(self) -> list[Failures]:
        """Errors of a call again and in a row, in order of the first of them."""
        wrong = self.errors
        keys = {row: (int(self._agent[row]), self._tool[row]) for row in self._outcomes.tolist()}
        tried = {key for row, key in keys.items() if wrong[row] and key[1] is not None}
        texts = self._arguments(row for row, key in keys.items() if key in tried)
        runs: list[list[int]] = []
        last: dict[tuple[int, str | None], int] = {}  # the run in a row that goes on, by agent and tool
        again: dict[tuple[int, str | None, str], list[int]] = {}  # the errors of a call that goes on
        repeated: list[list[int]] = []
        works: dict[tuple[int, str | None], int] = {}  # the last success, by agent and tool
        mends: dict[tuple[int, str | None, str], int] = {}  # and by call
        for row, key in keys.items():
            call = (*key, texts.get(row, ""))
            if not wrong[row]:
                works[key] = mends[call] = row
                last.pop(key, None)
                again.pop(call, None)
                continue
            run = runs[last[key]] if key in last and key[1] is not None else []
            if run and run[-1] == self._call_of.get(row):  # the call and its result are one error
                continue
            if not run:
                last[key] = len(runs)
                runs.append(run)
            run.append(row)
            if call[2]:
                if call not in again:
                    repeated.append(again.setdefault(call, []))
                again[call].append(row)
        repeated = [rows for rows in repeated if len(rows) > 1]
        told = set(itertools.chain.from_iterable(repeated))
        places = {row: (place, len(run)) for run in runs for place, row in enumerate(run, 1)}
        found = []
        for rows in [*repeated, *([row for row in run if row not in told] for run in runs)]:
            if rows:
                key, text = keys[rows[-1]], texts.get(rows[-1], "")
                mended = mends.get((*key, text), -1) > rows[-1] if text else None
                same = len(rows) if rows[0] in told else 1
                recovered = works.get(key, -1) > rows[-1]
                found.append(Failures(key[1], tuple(rows), same, recovered, mended, *places[rows[0]]))
        return sorted(found, key=lambda run: run.rows[0])

    @functools.cached_property
    def loops(self) -> list[Loop]:
        """As `LOOP` has them, in order of the first call."""
        return self._repeats[0]

    @property
    def uncompared(self) -> list[int]:
        """First calls of steps that might be of a loop, by their tools, but whose arguments the log lacks."""
        return self._repeats[1]

    def loop_counts(self) -> np.ndarray:
        """Loops of each trace, NaN where calls lack the arguments to tell: float [traces]."""
        return self._where_compared([loop.rows[0] for loop in self.loops])

    def calls_again(self) -> np.ndarray:
        """Calls of each trace in later rounds of loops, NaN where calls lack the arguments to tell: float [traces]."""
        return self._where_compared(sorted({row for loop in self.loops for row in loop.again}))

    def _where_compared(self, rows: list[int]) -> np.ndarray:
        n, trace = self._traces.sizes.traces, np.asarray(self._traces.graph.trace_ids)
        found, lacking = (np.bincount(trace[np.array(of, np.int64)], minlength=n) for of in (rows, self.uncompared))
        return np.where(lacking > 0, np.nan, found)

    @functools.cached_property
    def _repeats(self) -> tuple[list[Loop], list[int]]:
        answer = dict(zip(self.calls.tolist(), self.results.tolist(), strict=True))
        time = self._traces.events["time"].to_numpy().astype(np.float64)

        def came_after(call: int, row: int) -> bool:
            """Whether a call began after the result of the one before, by its place and, where stated, its time."""
            result = answer.get(call, row)
            return result < row and not time[result] > time[row]

        latest: dict[tuple[int, int], list[int]] = {}  # the step that goes on, by agent and message
        agents: dict[int, list[list[int]]] = {}
        for row in self.rows.tolist():
            agent = int(self._agent[row])
            step = latest.get((agent, int(self._message[row])))
            if step is None or came_after(step[-1], row):
                step = latest[agent, int(self._message[row])] = []
                agents.setdefault(agent, []).append(step)
            step.append(row)

        def known(step: list[int], names: Mapping[int, str | None] | list[str | None]) -> bool:
            return all(names[row] for row in step)

        maybe: list[list[int]] = []  # by their tools, so that only the records of these are looked up
        for steps in agents.values():
            keys = [frozenset(self._tool[row] for row in step) if known(step, self._tool) else i
                    for i, step in enumerate(steps)]  # fmt: skip
            within = {i for start, stop, _ in repeated(keys) for i in range(start, stop)}
            maybe += [steps[i] for i in sorted(within)]
        texts = dict.fromkeys(self.rows.tolist(), "") | self._arguments(itertools.chain.from_iterable(maybe))
        loops = []
        for steps in agents.values():
            said = [frozenset((self._tool[row], texts[row]) for row in step) if known(step, texts) else i
                    for i, step in enumerate(steps)]  # fmt: skip
            for start, stop, period in repeated(said):
                tools = dict.fromkeys(str(self._tool[row]) for step in steps[start : start + period] for row in step)
                rows = tuple(step[0] for step in steps[start:stop])
                again = tuple(itertools.chain.from_iterable(steps[start + period : stop]))
                loops.append(Loop(tuple(tools), rows, (stop - start) // period, again))
        return sorted(loops, key=lambda loop: loop.rows[0]), [step[0] for step in maybe if not known(step, texts)]

    def _arguments(self, rows: Iterable[int]) -> dict[int, str]:
        """What each call executes, or the call that a result answers, as text; "" where the log has none.

        That is its arguments, or else the reference of its content, which is the same where the content is.
        """
        calls = {row: self.call_of(row) for row in rows}
        own = np.array(sorted(set(calls.values()) & set(self.rows.tolist())), np.int64)
        said = zip(
            call_arguments(self._traces, own, LONGEST),
            self._traces.events["content_ref"].take(own).to_pylist(),
            strict=True,
        )
        texts = dict(zip(own.tolist(), (text or ref or "" for text, ref in said), strict=True))
        return {row: texts.get(call, "") for row, call in calls.items()}


def repeated(keys: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """Stretches in which each key is the one before it by a period, over `LOOP` periods or more: start, stop, period.

    Examples:
      >>> repeated("xababab"), repeated("aaaa"), repeated("abab")
      ([(1, 7, 2)], [(0, 4, 1)], [])
    """
    found: list[tuple[int, int, int]] = []
    for period in range(1, PERIOD + 1):
        start = 0
        for same, pairs in itertools.groupby(zip(keys, keys[period:], strict=False), lambda pair: pair[0] == pair[1]):
            length = len(list(pairs))
            stop = start + length + period
            # A stretch of a shorter period has the longer one, too.
            if same and length >= (LOOP - 1) * period and not any(a <= start and stop <= b for a, b, _ in found):
                found.append((start, stop, period))
            start += length
    return found
