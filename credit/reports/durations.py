"""How long each event took: as the log states it, else the time since the latest of its causes ended."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import numpy as np

from credit.reports.event_facts import EventFacts
from credit.reports.outside_team import outside_team
from graphs.event_types import EventType
from graphs.joint_rewards import turn_ends
from graphs.structure.host_ids import among, by_id
from graphs.traces.batch import Traces
from graphs.traces.clock_units import LONGEST
from graphs.traces.record import SPANNED

__all__ = [
    "AT_ONCE",
    "UNSTATED",
    "Durations",
    "begins",
    "busy_seconds",
    "date_text",
    "durations",
    "part_later",
    "positions",
]

UNSTATED = "_unstated"
"""Ends the metric by which the survey's form marks a cost that its log did not state, and wrote as 0."""

IN_SECONDS = (0.5, 1.01)
"""Of the stated wall clock, the least and the greatest part that times in seconds may span. A run may take time before
its first event and after its last one; it cannot take less than its events span, but for rounding."""


AT_ONCE = 0.25
"""Neither side follows the other if each begins later in this part of the pairs of traces, or more."""
LATEST = 1e11
"""A time above it is no date in seconds: the year would be 5138. In milliseconds every date since 1973 is above it."""
DIGITS = 6
"""Decimals of seconds that are told: float64 rounds those since 1970 by up to 1.2e-7, so that equal waits differed."""
EARLIEST = 1e8
"""A time below it, of March 1973, is no date: clocks of runs begin at 0."""


class Durations(NamedTuple):
    """Seconds by real event and real trace; NaN where a trace has a reason, but for what `event` has without times.

    Attributes:
      event: float64 [events], seconds that each event took; NaN where its begin is not known (`durations`). Where a
        trace has a reason: what the log states, NaN of another action or result of a tool, and 0 of the rest; NaN of
        all where it states none.
      least: float64 [events], what is known where `event` is not: an action's writing of its calls, and what passed
        since the end of all others.
      work: float64 [traces], the sum of `event`; NaN where one of them is, or a trace has a reason.
      added: float64 [events], the part of them after all causes of the event had ended, by which a path grows.
      absent: float64 [events], seconds in which a person, real or simulated, was waited for or spoke and nobody of the
        team was at work, at the event by which one stepped in.
      idle: float64 [events], seconds in which nothing of the trace ran before the event began, where the log states how
        long its actions took: a tool runs until its result, and waiting for a person is left out. What rounding may
        leave (`_rounding`) is 0. NaN in other traces.
      begun, time, end: float64 [events], when what an event took began, its time, and when it ended.
      wall: float64 [traces], the wall clock, stated or from the first event or span to the last end, without `absent`.
      reasons: why a trace has none; "" where it has.
    """

    event: np.ndarray
    least: np.ndarray
    work: np.ndarray
    added: np.ndarray
    absent: np.ndarray
    idle: np.ndarray
    begun: np.ndarray
    time: np.ndarray
    end: np.ndarray
    wall: np.ndarray
    reasons: list[str]


def begins(traces: Traces) -> np.ndarray:
    """The date at which each trace begins, in seconds since 1970, NaN where the log has none: float64 [traces]."""
    first = np.full(traces.sizes.traces, np.inf)
    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    np.fmin.at(first, trace, traces.events["time"].to_numpy().astype(np.float64))
    dates: np.ndarray = np.where((first >= EARLIEST) & (first <= LATEST), first, np.nan)
    return dates


def part_later(begin: np.ndarray, side: np.ndarray) -> float:
    """In what part of the pairs of traces with dates the one of the second side begins later; NaN without dates.

    Args:
      begin: of each trace, in seconds.
      side: 0 or 1 of each trace, -1 for none.
    """
    first, second = (np.sort(begin[(side == one) & np.isfinite(begin)]) for one in (0, 1))
    if not len(first) or not len(second):
        return np.nan
    before = np.searchsorted(first, second, "left") + np.searchsorted(first, second, "right")
    return float(before.mean()) / (2 * len(first))


def date_text(seconds: float) -> str:
    """A date of `begins`, in UTC; one without a zone counts as such.

    Args:
      seconds: since 1970.

    Examples:
      >>> date_text(1_700_000_000)
      '2023-11-14T22:13:20Z'
    """
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def durations(facts: EventFacts) -> Durations:
    """Seconds that each event took; `TeamFacts.durations` has them of a batch.

        end(e) = t(e) + seconds(e)                   seconds(e): as the log states it, else 0
        d(e) = seconds(e) where stated, else max(0, t(e) − max over c of end(c))

    An interval that no event states belongs to the event that ends it. c are the causes of e: the logged edges into it.
    An agent instance does one thing at a time: c are also the earlier events of its instance, unless e is the result of
    a tool. And what is no action, such as a spawn, may wait for agents that were spawned before: c are also the last
    events of those that ended by then. Without any c, d(e) = 0 at the first time of the trace; later on it is unknown
    of an action or a tool's result. So it is where the trace has no edge between agents and another one was at work
    since: waiting for it is not told from working beside it, as in a table, but in a joint turn. The time since the
    latest end is known.

    What an action calls or starts has no d(e): its model was writing until then, so the interval is the action's.
    Where the action's seconds are stated, the interval is nobody's. So is all time before the latest end(c), which was
    waiting. So is the time until a person steps in, real or simulated (`outside_team`), and d(e) = 0 there. Clocks that
    run backwards give 0.

    An effect without a time, such as a call of a tool beside its result, has the latest end of its causes.

    A trace has no durations but those that it states (`Durations.event`) if another event lacks a time, if no time
    passes, if the log says that its times are positions (`metrics.wall_clock_s_unstated`, in the survey's form), or if
    `costs.wall_clock_s` shows that the times are in another unit: they span more than it, or less than half of it.
    Times above `LATEST` are dates in another unit, too, and those further apart than `LONGEST` are of no one clock.

    Args:
      facts: of the batch.

    Examples:
      >>> from credit.reports.trace_numbers import TeamFacts
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()}, rewards={"team": 1.0})
      >>> _ = [record.event(name, 3, "a", action=True, time=time) for name, time in (("x", 0.0), ("y", 2.5))]
      >>> seconds = TeamFacts(assemble([record])).durations
      >>> seconds.event[:2].tolist(), seconds.wall[:1].tolist()
      ([0.0, 2.5], [2.5])
    """
    traces, trace, kind = facts.traces, facts.trace, facts.kind
    n, m = len(trace), traces.sizes.traces
    time = traces.events["time"].to_numpy().astype(np.float64, copy=True)
    told = traces.evidence.get("seconds")
    own = np.full(n, np.nan) if told is None else np.where(told.mask[:n], told.array[:n], np.nan).astype(np.float64)
    length = np.zeros(n) if told is None else np.nan_to_num(own)
    senders, receivers = facts.causes
    lent = np.flatnonzero((np.isnan(time) & ~facts.action)[receivers])
    lenders, borrowers = senders[lent], receivers[lent]
    while (given := ~np.isnan(time[lenders]) & np.isnan(time[borrowers])).any():
        time[borrowers[given]] = -np.inf
        np.maximum.at(time, borrowers[given], (time + length)[lenders[given]])
    end = time if told is None else time + length
    person = (kind == int(EventType.HUMAN_INTERVENTION)) | outside_team(traces)

    low, high = facts.of_traces(np.fmin, time, np.inf), facts.of_traces(np.fmax, end, -np.inf)
    span = high - low  # minus infinity without a time
    whole = np.fmax(span, _of_traces(traces, f"metrics.{SPANNED}"))
    stated = _of_traces(traces, "costs.wall_clock_s")
    known = np.isfinite(stated) & (stated > 0)
    untimed = np.bincount(trace[np.isnan(time)], minlength=m) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(known, whole / stated, 1.0)
    reasons = np.select(
        [
            untimed,
            positions(traces),
            (span <= 0) & (np.bincount(trace, minlength=m) < 2),
            span <= 0,
            high > LATEST,
            span > LONGEST,
            (part < IN_SECONDS[0]) | (part > IN_SECONDS[1]),
        ],
        [
            "an event has no time",
            "the log says that its times are positions",
            "the trace has one event, so no time passes",
            "all times of the trace are equal",
            "the times are dates in a smaller unit than seconds",
            "a time is years after another of the trace: they are of no one clock",
            "the times and costs.wall_clock_s do not agree: the times are not in seconds",
        ],
        "",
    )
    usable = reasons == ""

    latest = _begun(facts, time, end)
    np.fmax.at(latest, receivers, end[senders])
    works = facts.action | (kind == int(EventType.TOOL_RESULT))
    waits_untold = works & np.isnan(own) & np.isfinite(latest) & _unlinked(facts)[trace]
    if waits_untold.any():
        since, turn = _ended_before(trace, time, end), turn_ends(traces.graph)[:n]
        before = np.full(n, np.inf)
        np.fmin.at(before, turn, since)
        since = np.minimum(since, before[turn])  # nobody waits for those who act at once
        waits_untold &= since > latest
        latest[waits_untold] = since[waits_untold]
    interval = np.where(np.isfinite(latest), np.maximum(time - latest, 0), 0.0)  # that the event ends
    effect, caller = _asked(facts)
    interval[effect[~np.isnan(own[caller])]] = 0.0
    event = np.where(np.isnan(own), interval, own)
    added = np.where(np.isnan(own), interval, np.minimum(own, np.maximum(end - latest, 0)))
    event[effect] = length[effect]
    np.add.at(event, caller, interval[effect])
    least = np.nan_to_num(event)
    begins_untold = works & np.isnan(own) & np.isneginf(latest) & (time > low[trace])
    event[begins_untold | waits_untold] = np.nan  # since when is in no log
    event[person] = least[person] = added[person] = 0.0
    idle = _idle(facts, time, end.copy(), ~np.isnan(own))
    rounding = _rounding(trace, time - low[trace], own, float(np.spacing(np.fmax.reduce(time, initial=0.0))))
    unit = 10.0 ** np.ceil(np.log10(rounding))
    idle = np.where(idle <= rounding, 0.0, np.round(idle / unit) * unit)
    idle[person] = 0.0
    absent: np.ndarray = np.zeros(n)
    waits: np.ndarray = np.zeros(m)
    begun = np.where(np.isnan(own), time - interval, time)
    begun[effect] = (time - interval)[effect]  # its caller was writing
    if person.any():
        absent[person] = _waited(np.stack([begun, time, end]), trace, person, usable[trace])
        waits = np.bincount(trace, absent, m)
    if not usable.all():
        unusable = ~usable[trace]
        least[unusable] = 0.0
        for numbers in (event, added, absent, idle, begun):
            numbers[unusable] = np.nan
        event = np.where(unusable, _untimed(facts, own, person), event)
    wall = np.where(usable, np.where(known, stated, whole) - waits, np.nan)
    for numbers in (event, least, added, absent, idle, wall):
        np.round(numbers, DIGITS, out=numbers)
    work = np.round(np.where(usable, np.bincount(trace, event, m), np.nan), DIGITS)
    return Durations(event, least, work, added, absent, idle, begun, time, end, wall, reasons.tolist())


def _unlinked(facts: EventFacts) -> np.ndarray:
    """The traces of several agents without an edge between two, so that nothing tells who waited: bool [traces]."""
    m, senders, receivers = facts.traces.sizes.traces, *facts.edges
    agents = np.bincount(np.asarray(facts.traces.graph.agent_trace)[: facts.traces.sizes.agents], minlength=m)
    across = facts.agent[senders] != facts.agent[receivers]
    unlinked: np.ndarray = (agents > 1) & (np.bincount(facts.trace[senders[across]], minlength=m) == 0)
    return unlinked


def _untimed(facts: EventFacts, stated: np.ndarray, person: np.ndarray) -> np.ndarray:
    """`Durations.event` of traces whose times do not count. A tool took what its call states, or else its result."""
    trace, m = facts.trace, facts.traces.sizes.traces
    told = ~np.isnan(stated)
    called = facts.kind == int(EventType.TOOL_CALL)
    of_calls = np.bincount(trace[called & ~told], minlength=m) == 0
    of_calls &= np.bincount(trace[called], minlength=m) > 0
    works = facts.action | ((facts.kind == int(EventType.TOOL_RESULT)) & ~of_calls[trace])
    silent = np.bincount(trace[told], minlength=m) == 0
    found = np.where(told, stated, np.where(works | silent[trace], np.nan, 0.0))
    return np.where(person & ~silent[trace], 0.0, found)


def _idle(facts: EventFacts, time: np.ndarray, end: np.ndarray, stated: np.ndarray) -> np.ndarray:
    """`Durations.idle`, of all events.

    Args:
      facts: of the batch.
      time, end: of each event; `end` is changed.
      stated: whether the log states its seconds; changed.
    """
    (senders, receivers), kind, trace = facts.edges, facts.kind, facts.trace
    called, answers = kind == int(EventType.TOOL_CALL), kind == int(EventType.TOOL_RESULT)
    runs = np.flatnonzero(called[senders] & answers[receivers])
    np.fmax.at(end, senders[runs], time[receivers[runs]])
    stated[senders[runs]] = True
    unstated = np.zeros(facts.traces.sizes.traces, bool)
    unstated[trace[np.flatnonzero(facts.action & ~stated)]] = True
    if unstated.all():
        return np.full(len(time), np.nan)
    before = _ended_before(trace, time, end)
    since = np.where(np.isneginf(before), 0.0, np.maximum(time - before, 0))
    return np.where(unstated[trace], np.nan, since)


def _rounding(trace: np.ndarray, time: np.ndarray, seconds: np.ndarray, slack: float) -> np.ndarray:
    """What rounding may leave between two events one after the other, of the trace of each event: float64 [events].

    It is what floats leave, and half a unit of the last digit of seconds that are written with fewer than times.

    Args:
      trace: of each event.
      time: seconds since the first time of the trace.
      seconds: as the log states them, in float32; NaN where it does not.
      slack: what float64 leaves of a time.
    """
    units, sizes = np.zeros((2, trace.max(initial=-1) + 1)), np.nan_to_num(seconds).astype(np.float32)
    of_floats = 2 * slack + np.zeros(len(trace)), np.spacing(np.abs(sizes)).astype(np.float64)
    for unit, numbers, left in zip(units, (time, seconds), of_floats, strict=True):
        if np.isnan(numbers).all():
            continue
        for digits in range(DIGITS, -1, -1):
            odd = np.abs(numbers * 10.0**digits - np.round(numbers * 10.0**digits)) > left * 10.0**digits
            unit[np.bincount(trace, odd, len(unit)) == 0] = 10.0**-digits  # NaN is not odd
        unit[np.bincount(trace, ~np.isnan(numbers), len(unit)) == 0] = 0.0
    bound = np.where(units[1] > units[0], units[0] + units[1] / 2, 10.0**-DIGITS)
    np.fmax.at(bound, trace, np.sum(of_floats, axis=0))
    found: np.ndarray = bound[trace]
    return found


def _asked(facts: EventFacts) -> tuple[np.ndarray, np.ndarray]:
    """Events that an action of their instance called, sent or started, and that action: int [effects] each."""
    (senders, receivers), agent, action = facts.edges, facts.agent, facts.action
    effect = ~action & among(facts.kind, (EventType.TOOL_CALL, EventType.SPAWN, EventType.MESSAGE))
    made = np.flatnonzero(action[senders] & effect[receivers])
    made = made[agent[senders[made]] == agent[receivers[made]]]
    caller = np.full(len(agent), -1)
    np.maximum.at(caller, receivers[made], senders[made])  # the latest, whatever the order of edges
    asked = np.flatnonzero(caller >= 0)
    return asked, caller[asked]


def _begun(facts: EventFacts, time: np.ndarray, end: np.ndarray) -> np.ndarray:
    """When the instance of each event was last busy; of what is no action, also when one that it spawned ended.

    float64 [events]; minus infinity at results of tools, which work beside their agent, and where nothing was before.
    """
    graph, agent = facts.traces.graph, facts.agent
    parent = np.asarray(graph.agent_parent)[: facts.traces.sizes.agents]
    ended = np.full(len(parent), -np.inf)
    np.fmax.at(ended, agent, end)
    children = np.flatnonzero((parent != np.arange(len(parent))) & np.isfinite(ended))
    begun = _ended_before(agent, time, end)
    result, starts = facts.kind == int(EventType.TOOL_RESULT), np.zeros(graph.num_agents, bool)
    starts[parent[children]] = True
    freed = np.flatnonzero(starts[agent] & ~facts.action & ~result)
    waited = _latest_until(parent[children], ended[children], agent[freed], time[freed])
    begun[freed] = np.fmax(begun[freed], waited)
    begun[result] = -np.inf
    return begun


def busy_seconds(trace: np.ndarray, begun: np.ndarray, end: np.ndarray, count: int) -> np.ndarray:
    """The seconds of each trace in which at least one of some events ran: float64 [count].

    Args:
      trace, begun, end: of each of these events.
      count: of traces.

    Examples:
      >>> busy_seconds(np.zeros(3, int), np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 6.0]), 1).tolist()
      [4.0]
    """
    since = np.fmax(begun, _ended_before(trace, begun, end))
    return np.bincount(trace, np.maximum(end - since, 0), count)


def _ended_before(of: np.ndarray, time: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The latest end of the events of the same instance, or trace, that come before each in time: float64 [events].

    Minus infinity where none does. Events of one time come in the order of the log. Ends that are NaN, in traces that
    have no durations, are passed over.
    """
    order = by_id(of)
    ids, times = of[order], time[order]
    same = ids[1:] == ids[:-1]
    if np.any((times[1:] < times[:-1]) & same):  # most logs are in the order of time
        order = np.lexsort((time, of))
    greatest = time[order]  # up to here among the events of the same id
    if end is not time:
        ends = np.empty(len(end), np.complex128)  # NumPy orders complex numbers by the real part, then by the other
        ends.real, ends.imag = ids, end[order]
        greatest = np.fmax.accumulate(ends).imag
    latest = np.full(len(end), -np.inf)
    latest[order[1:]] = np.where(same, greatest[:-1], -np.inf)
    return latest


def _latest_until(owner: np.ndarray, when: np.ndarray, agent: np.ndarray, time: np.ndarray) -> np.ndarray:
    """The latest `when` of each event's agent that is no later than the event; minus infinity without one."""
    who, at = np.concatenate([owner, agent]), np.concatenate([when, time])
    order = np.lexsort((np.arange(len(who)) >= len(owner), at, who))
    last = np.maximum.accumulate(np.where(order < len(owner), np.arange(len(order)), -1))
    found = np.empty(len(order))
    found[order] = np.where((last >= 0) & (who[order[last]] == who[order]), at[order[last]], -np.inf)
    return found[len(owner) :]


def _waited(times: np.ndarray, trace: np.ndarray, person: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Seconds of each person's event, and since all before it had ended, that no event of the team spans.

    Args:
      times: float64 [3, events]: when what an event took began, its time, and its end.
      trace, person, usable: [events].
    """
    begun, time, end = times
    before = _ended_before(trace, time, end)
    low, high = np.where(np.isneginf(before), time, before)[person], end[person]
    team = np.flatnonzero(~person & usable & (end > begun))
    at = np.concatenate([begun[team], end[team], low, high])
    of = np.concatenate([trace[team], trace[team], trace[person], trace[person]])
    change = np.repeat([1, -1, 0], [len(team), len(team), 2 * len(low)])
    order = np.lexsort((at, of))
    busy, passed = np.cumsum(change[order])[:-1] > 0, np.diff(at[order])
    spanned = np.empty(len(at))
    spanned[order] = np.append(0.0, np.cumsum(np.where(busy, passed, 0.0)))
    until, since = spanned[2 * len(team) :].reshape(2, -1)[::-1]
    waited = np.maximum(high - low, 0) - np.maximum(until - since, 0)
    return np.asarray(np.maximum(waited, 0))


def positions(traces: Traces) -> np.ndarray:
    """The traces whose times are positions, as the survey's form writes them where the log has none: bool [traces]."""
    found: np.ndarray = _of_traces(traces, f"metrics.wall_clock_s{UNSTATED}") == 1
    return found


def _of_traces(traces: Traces, name: str) -> np.ndarray:
    """A number of each real trace, NaN where the log has none."""
    stated = traces.evidence.get(name)
    m = traces.sizes.traces
    return np.full(m, np.nan) if stated is None else np.asarray(stated.array, np.float64)[:m]
