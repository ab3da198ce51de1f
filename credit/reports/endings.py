"""Traces that end before their work is done, as far as logs tell: in a call or result, at a limit or in an error."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Iterator

import numpy as np

from credit.reports.clock import TimedFacts, first_of_each, last_of_each
from credit.reports.event_errors import cut_answers
from credit.reports.judged_traces import JudgedTraces
from credit.reports.shown_example import example_kinds, shown_example
from credit.reports.tool_calls import ToolCalls
from graphs.errors import RUN_ERROR, RUN_LIMIT
from graphs.event_graph import EventType
from graphs.structure.host_ids import among, distinct
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.record import AT_LIMIT, CUT_SHORT, IN_ERROR

__all__ = [
    "ANSWER_CUT",
    "BROKEN_OFF",
    "CUT",
    "FAILED",
    "LAST",
    "LIMITED",
    "UNENDED",
    "UNKNOWN_END",
    "WITHHELD",
    "Ending",
    "ended_early",
    "endings",
    "ends",
    "lasts",
    "of_sides",
]

CUT, LIMITED = "traces that end in a call without a result", "traces that stop at a limit"
FAILED = "traces that end in an error of the run"
ANSWER_CUT = "traces that end in a cut answer"
UNENDED = "traces that lack spans above others, or the end of the root"
BROKEN_OFF = "traces that break off"
"""Ways to end early, as numbers of a trace that are 0 or 1."""

UNKNOWN_END = "the trace ends early, so the log does not tell what its end would have used"
"""Why a trace has no number of what reaches its end."""

_SAID = {
    CUT: (("ends", "end"), "in a tool call without a result: the run was cut short, or the call ended it"),
    LIMITED: (("stops", "stop"), "at a limit of tokens, turns, time or money, as the log says"),
    ANSWER_CUT: (("ends", "end"), "in an answer that was cut at a limit of tokens, as the log says"),
    UNENDED: (("lacks", "lack"), "spans above others, or the end of the root: probably cut short"),
    FAILED: (("ends", "end"), "in an error of the API, the environment or the harness, as the log says"),
    BROKEN_OFF: (
        ("breaks", "break"),
        "off where most others go on, in a result that no action read or without a stop: cut short, or at a limit",
    ),
}


LAST = {
    CUT: "the run ends in this call without a result",
    LIMITED: "the run stops at a limit",
    ANSWER_CUT: "the run ends in an answer that was cut at a limit of tokens",
    UNENDED: "the run lacks spans above others, or the end of the root",
    FAILED: "the run ends in an error of its own",
    BROKEN_OFF: "the run breaks off after this",
}
"""What is said of the event at which a trace ends so."""


WITHHELD = "withheld"
"""What stands in place of a value of the log where nobody is to see it."""
_WORDED = (LIMITED, FAILED)
"""Ends of which the log may have words of its own."""


@dataclasses.dataclass(frozen=True)
class Ending:
    """One way in which traces end early.

    Attributes:
      words: how many traces end so, of how many, and what it may mean, with one of them.
      traces: how many end so.
      failed, succeeded: of these; None where no outcomes tell failed from succeeded traces.
      trace, event: one of them, as of `shown_example`, and where.
      of_sides: how many of each side end so, where sides are compared; empty elsewhere.
    """

    words: str
    traces: int
    failed: int | None
    succeeded: int | None
    trace: str
    event: str
    of_sides: tuple[int, ...] = ()


def of_sides(rows: np.ndarray, side: np.ndarray | None) -> tuple[int, ...]:
    """How many of these traces are of each of two sides; nothing without sides.

    Examples:
      >>> of_sides(np.array([0, 2, 3]), np.array([0, 0, 1, -1])), of_sides(np.array([0]), None)
      ((1, 1), ())
    """
    return () if side is None else (int(np.sum(side[rows] == 0)), int(np.sum(side[rows] == 1)))


def endings(
    traces: Traces,
    judged: JudgedTraces | None = None,
    side: np.ndarray | None = None,
) -> tuple[Ending, ...]:
    """How traces end early; none where no trace does, or where the log does not tell.

    Args:
      traces: what was read.
      judged: which traces failed; None where no outcomes tell failed from succeeded traces.
      side: 0 or 1 of each trace, -1 for none, where sides are compared: int [traces].

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> endings(rows.traces)
      ()
    """
    found, kind = [], example_kinds(traces, side)
    for what, at, _ in ends(traces, ToolCalls.of(traces)):
        rows = at[at >= 0]
        if not len(rows):
            continue
        verbs, how = _SAID[what]
        count, sides, none = len(rows), "", np.zeros(traces.sizes.traces, bool)
        failing = none if judged is None else judged.failed
        first = int(
            rows[shown_example(rows.tolist(), np.asarray(traces.graph.trace_ids)[: traces.sizes.events], failing, kind)]
        )
        failed = passed = None
        if judged is not None:
            (failed, of_failed), (passed, of_passed) = (
                (int(np.sum(kind & (at >= 0))), int(kind.sum())) for kind in (judged.failed, judged.succeeded)
            )
            bad, good = judged.kinds
            others = f"{passed} of {of_passed} {good} ones"
            sides = f". These are {failed} of {of_failed} {bad} ones{judged.failing} and {others}"
        tool, event = traces.events["tool"][first].as_py(), traces.events["event"][first].as_py()
        name = traces.traces["trace"][int(traces.graph.trace_ids[first])].as_py()
        said = run_words(traces).get(name, "") if what in _WORDED else ""
        place = f"event {event}{f' of {tool}' if tool else ''}, trace {name}{f': {said}' if said else ''}"
        words = f"{count} of {counted(traces.sizes.traces, 'trace')} {verbs[count > 1]} {how}{sides}. Such as: {place}"
        found.append(Ending(words, count, failed, passed, name, event, of_sides(np.flatnonzero(at >= 0), side)))
    return tuple(found)


def ended_early(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """Whether a real trace ends early, in any of the ways of `ends`, and whether its log tells: bool [traces] each.

    Args:
      traces: what was read.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> [mask.tolist() for mask in ended_early(rows.traces)]
      [[False], [False]]
    """
    found = [(at >= 0, tells) for _, at, tells in ends(traces, ToolCalls.of(traces))]
    early, told = np.any(found, axis=0)
    return early, told


_met: weakref.WeakKeyDictionary[ToolCalls, list[tuple[str, np.ndarray, np.ndarray]]] = weakref.WeakKeyDictionary()
"""Ends by the calls of their batch: the causes of a summary ask six times."""


def ends(traces: Traces, calls: ToolCalls) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Ways to end early, with the event at which each trace does, -1 where none, and whether its log tells.

    Args:
      traces: what was read.
      calls: its tool calls; what is found is kept with them.
    """
    if calls not in _met:
        _met[calls] = [*_ends(traces, calls)]
    return _met[calls]


def _ends(traces: Traces, calls: ToolCalls) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """`ends`, anew.

    A trace ends in a call without a result if neither a person's answer to the call nor an action comes after it, by
    the clock of the log (`credit.reports.clock`). A log tells of such ends as `ToolCalls.by_results` has it, and a
    format of others where one is stated. What ended at a limit that its log puts into words ends in no cut answer.
    An error of the run stands at the event after the last action that the log calls an error. Without such an event it
    stands at that action.
    """
    graph, n = traces.graph, traces.sizes
    trace = np.asarray(graph.trace_ids)[: n.events]
    formats = traces.traces["format"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    times = TimedFacts.of(traces).clock
    moment, acts = times.at, np.flatnonzero(np.asarray(graph.action_mask)[: n.events])
    last = last_of_each(trace, acts, moment, n.traces)
    rows = np.flatnonzero(calls.open)
    after = last[trace[rows]]  # of equal moments the row counts
    rows = rows[(after < 0) | (moment[rows] > moment[after]) | ((moment[rows] == moment[after]) & (rows >= after))]
    at = first_of_each(trace, rows, moment, n.traces)
    yield CUT, at, calls.by_results
    final = last_of_each(trace, np.arange(n.events), times.done, n.traces)
    early = at >= 0
    cut = (last >= 0) & np.append(cut_answers(traces), False)[last]
    if cut.any():
        cut &= ~np.isin(np.array(traces.traces["trace"].to_pylist(), object), [*run_words(traces)])
    for what, metric in ((LIMITED, AT_LIMIT), (ANSWER_CUT, ""), (UNENDED, CUT_SHORT), (FAILED, IN_ERROR)):
        told = traces.evidence.get(f"metrics.{metric}")
        has = np.zeros(n.traces, bool) if told is None else told.array[: n.traces] > 0
        has = cut if what == ANSWER_CUT else has & ~cut if what == LIMITED else has
        early |= has
        where = np.where(last >= 0, last, final)
        if what == FAILED:
            wrong = last_of_each(trace, np.flatnonzero(calls.errors), times.done, n.traces)
            where = np.where((wrong >= 0) & (times.done[wrong] >= times.done[where]), wrong, where)
        yield what, np.where(has, where, -1), np.isin(formats, formats[has])
    off, tells = _break_off(traces, calls, formats, final, ~early & (last >= 0))
    yield BROKEN_OFF, np.where(off, final, -1), tells


def lasts(traces: Traces, calls: ToolCalls) -> dict[int, tuple[int, str, str]]:
    """Of each trace that ends early the event at which it does, in words how, by the first way of `ends`, and behind
    `: ` what its log says of it, or ""."""
    found: dict[int, tuple[int, str, str]] = {}
    said, names = run_words(traces), traces.traces["trace"].to_pylist()
    for what, at, _ in ends(traces, calls):
        for trace in np.flatnonzero(at >= 0).tolist():
            words = said.get(names[trace], "") if what in _WORDED else ""
            found.setdefault(trace, (int(at[trace]), LAST[what], f": {words}" if words else ""))
    return found


def run_words(traces: Traces) -> dict[str, str]:
    """By trace, what its log says of the error that ended the run, unless that is `WITHHELD`."""
    said = (one for one in traces.problems if one.kind in (RUN_ERROR, RUN_LIMIT))
    return {one.trace: one.value for one in said if one.value != WITHHELD}


def _break_off(
    traces: Traces, calls: ToolCalls, formats: np.ndarray, final: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the traces that do not end early otherwise break off, and of which others tell: bool [traces] each.

    A run that is killed while its model writes ends in the result before. Whole runs may end in one, too, as in that of
    a tool that submits, and to stop may be a choice. So others tell: at most half of the traces of a format with
    results, and with results of a tool, end in one; more than 4 of 5 of those with an agent that stops have a stop.
    """
    graph, n = traces.graph, traces.sizes
    trace, kind = np.asarray(graph.trace_ids)[: n.events], np.asarray(graph.event_type)[: n.events]
    rows, stop = np.flatnonzero(among(kind, (EventType.TOOL_RESULT, EventType.RETURN))), kind == int(EventType.STOP)
    of, (tells, stops, unread) = trace[rows], np.zeros((3, n.traces), bool)
    tells[of] = stops[trace[stop]] = True
    last = (final[of] == rows) & ~stops[of]
    unread[of[last]] = True

    def most(of: np.ndarray, key: np.ndarray, so: np.ndarray, part: float) -> np.ndarray:
        """Of traces with keys: those with a key of which more than a part in their format are so: int [found]."""
        code = (formats[of] * (key.max(initial=0) + np.int64(1)) + key) * n.traces + of
        kinds, of_kind = np.divmod(distinct(code), n.traces)
        every = np.bincount(kinds, others[of_kind])
        they = np.bincount(distinct(code[so & others[of]]) // n.traces, minlength=len(every))
        found: np.ndarray = of_kind[(they > part * every)[kinds]]
        return found

    for key in (np.zeros_like(rows), calls.tools[calls.owners[rows]] + 1) if unread.any() else ():
        tells[most(of, key, last, 0.5)] = False
    off = unread & tells
    if stops.any():
        name, of = np.asarray(graph.agent_name_ids)[: n.agents], np.asarray(graph.agent_trace)[: n.agents]
        ends = np.isin(name, name[np.asarray(graph.agent_ids)[: n.events][stop]])
        stopped = most(of[ends], name[ends], stops[of[ends]], 0.8)
        tells[stopped] = True
        off[stopped] = ~stops[stopped]
    return off & others, tells
