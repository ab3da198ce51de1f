"""Seconds that belong to nobody, and of effects without a time: one function for every command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.metrics.cost_summary import Amount, cost_rows
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.durations import _ended_before
from credit.reports.trace_list import trace_rows
from credit.reports.trace_numbers import TeamFacts
from credit.reports.triage import triage
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord


def team(call_time: float = math.nan) -> Traces:
    """A call at 0 that calls a tool, whose result comes at 4; a person at 100, who is answered at 103."""
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("main")}, rewards={"team": 1.0})
    record.event("x", EventType.MESSAGE, "a", action=True, time=0.0)
    record.event("c", EventType.TOOL_CALL, "a", action=False, time=call_time)
    record.event("r", EventType.TOOL_RESULT, "a", action=False, time=4.0)
    record.event("h", EventType.HUMAN_INTERVENTION, "a", action=False, time=100.0)
    record.event("y", EventType.MESSAGE, "a", action=True, time=103.0)
    record.edge(0, 1, 4)
    record.edge(1, 2, 5)
    return assemble([record])


@pytest.mark.parametrize("seed", range(4))
def test_the_latest_end_before_an_event_is_that_of_a_slow_reading(seed: int) -> None:
    """Over instances and traces, with times that run backwards or are equal, and an instance without times."""
    rng = np.random.default_rng(seed)
    of, time = rng.integers(0, 6, 80), np.round(rng.random(80) * 9 + (seed > 1) * np.arange(80))
    time[of == 3] = np.nan
    for end in (time, time + np.round(rng.random(80) * 20)):
        found = _ended_before(of, time, end)
        for row in np.flatnonzero(of != 3).tolist():
            earlier = (of == of[row]) & ((time < time[row]) | ((time == time[row]) & (np.arange(80) < row)))
            assert found[row] == end[earlier].max(initial=-np.inf)


def test_the_time_until_a_person_steps_in_belongs_to_nobody() -> None:
    traces = team(0.0)
    found = TeamFacts(traces).durations
    assert found.event.tolist() == [0, 0, 4, 0, 3] and found.wall.tolist() == [7]
    assert found.absent.tolist() == [0, 0, 0, 96, 0]
    assert [row.seconds for row in triage(traces).agents] == [7]
    assert [row.seconds.total for row in cost_rows(traces)] == [7]


@pytest.mark.parametrize(("stated", "edge", "seconds"), [(None, False, None), (4.0, False, 4), (None, True, 7)])
def test_an_agent_that_follows_nothing_took_unknown_seconds(
    stated: float | None, edge: bool, seconds: float | None
) -> None:
    """`reviewer 24.8 seconds` of 302: its first event in a trace, which no edge joins to a cause, counted 0."""
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("a"), "b": Agent("b")}, rewards={"team": 1.0})
    for name, agent, time, own in (("x", "a", 0.0, None), ("y", "a", 2.0, None), ("z", "b", 9.0, stated)):
        record.event(name, EventType.MESSAGE, agent, action=True, time=time, seconds=own)
    record.edge(0, 1, 0)
    if edge:
        record.edge(1, 2, 0)
    traces = assemble([record])
    rows = {row.unit: row.seconds for row in cost_rows(traces)}
    assert rows["a"] == Amount(2, 0) and rows["b"] == Amount(seconds, int(seconds is None))
    workloads = {row.agent: row.seconds for row in triage(traces).agents}
    np.testing.assert_equal(workloads, {"a": 2, "b": math.nan if seconds is None else seconds})


def test_what_is_known_of_an_agent_that_follows_nothing_is_a_lower_bound() -> None:
    """It wrote a call for 3 seconds, and then again for 5; how long it had been at work before is in no log."""
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("a"), "b": Agent("b")}, rewards={"team": 1.0})
    record.event("x", EventType.MESSAGE, "a", action=True, time=0.0)
    record.event("y", EventType.MESSAGE, "b", action=True, time=10.0)
    record.event("c", EventType.TOOL_CALL, "b", action=False, time=13.0)
    record.event("z", EventType.MESSAGE, "b", action=True, time=18.0)
    record.event("w", EventType.MESSAGE, "a", action=True, time=20.0)
    record.edge(1, 2, 4)
    record.edge(3, 4, 0)
    traces = assemble([record])
    assert {row.unit: row.seconds for row in cost_rows(traces)}["b"] == Amount(8, 1)
    assert [(row.seconds, row.lacks_seconds) for row in triage(traces).agents if row.agent == "b"] == [(8, True)]
    speed = trace_metrics(traces)["speed_up"]
    assert speed.reasons == ["an event has no `seconds`, and no cause that says when it began"]


@pytest.mark.parametrize("edge", [False, True])
def test_agents_without_an_edge_between_them_may_have_waited(edge: bool) -> None:
    """Two agents in turn, 10 seconds each: the later events of a table took 20, and 50 seconds were ≥ 80 of work."""
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("a"), "b": Agent("b")}, rewards={"team": 1.0})
    for i in range(6):
        record.event(f"e{i}", EventType.MESSAGE, "ab"[i % 2], action=True, time=10.0 * (i + 1))
    for i in range(5 if edge else 0):
        record.edge(i, i + 1, 0)
    traces = assemble([record])
    found = TeamFacts(traces).durations
    assert found.wall.tolist() == [50]
    np.testing.assert_equal(found.event, [0] + 5 * [10 if edge else math.nan])
    rows = {row.unit: row.seconds for row in cost_rows(traces)}
    assert rows == ({"a": Amount(20, 0), "b": Amount(30, 0)} if edge else {"a": Amount(20, 2), "b": Amount(20, 3)})


def test_one_event_is_not_called_equal_times() -> None:
    records = [TraceRecord(f"t{k}", "q", "log.jsonl", instances={"a": Agent()}) for k in (1, 2)]
    for record, count in zip(records, (1, 2), strict=True):
        for number in range(count):
            record.event(str(number), EventType.MESSAGE, "a", action=True, time=5.0)
    assert TeamFacts(assemble(records)).durations.reasons == [
        "the trace has one event, so no time passes", "all times of the trace are equal",
    ]  # fmt: skip


def written_by_blocks(*, seconds: float | None = None) -> Traces:
    """A call, written at 2, whose two tool calls are written at 3 and 6; the first tool ends at 4, the second at 8."""
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("main")}, rewards={"team": 1.0})
    record.event("h", EventType.HUMAN_INTERVENTION, "a", action=False, time=0.0)
    record.event("x", EventType.MESSAGE, "a", action=True, time=2.0, seconds=seconds)
    record.event("c", EventType.TOOL_CALL, "a", action=False, time=3.0, tool="f")
    record.event("d", EventType.TOOL_CALL, "a", action=False, time=6.0, tool="g")
    record.event("r", EventType.TOOL_RESULT, "a", action=False, time=4.0, tool="f")
    record.event("s", EventType.TOOL_RESULT, "a", action=False, time=8.0, tool="g")
    for cause, effect, kind in ((0, 1, 0), (1, 2, 4), (1, 3, 4), (2, 4, 5), (3, 5, 5)):
        record.edge(cause, effect, kind)
    return assemble([record])


def test_until_a_tool_is_called_the_model_writes() -> None:
    found = TeamFacts(written_by_blocks()).durations
    assert found.event.tolist() == [0, 2 + 1 + 2, 0, 0, 1, 2] and found.wall.tolist() == found.work.tolist() == [8]
    assert found.added.tolist() == [0, 2, 1, 2, 1, 2]  # a path through the first tool does not wait for the second
    by_tool = {row.unit: row.seconds.total for row in cost_rows(written_by_blocks(), "tool")}
    assert by_tool == {"no tool": 5, "f": 1, "g": 2}


def test_where_a_call_states_its_seconds_the_time_to_its_tools_is_nobodys() -> None:
    found = TeamFacts(written_by_blocks(seconds=0.5)).durations
    assert found.event.tolist() == [0, 0.5, 0, 0, 1, 2] and found.wall.tolist() == [8]
    assert TeamFacts(written_by_blocks(seconds=10)).durations.wall.tolist() == [12]  # from 0 to the end at 2 + 10


def answered(*, seconds: float | None) -> Traces:
    """A call from 0 on; a person steps in at 10; a call at 12."""
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("main")}, rewards={"team": 1.0})
    record.event("x", EventType.MESSAGE, "a", action=True, time=0.0, seconds=seconds)
    record.event("h", EventType.HUMAN_INTERVENTION, "a", action=False, time=10.0)
    record.event("y", EventType.MESSAGE, "a", action=True, time=12.0, seconds=seconds)
    return assemble([record])


@pytest.mark.parametrize("pair", ["dc", "cd"])
def test_agents_at_once_do_not_wait_for_each_other(pair: str, tmp_path: Path) -> None:
    """Both worked ten seconds a round; the row that stood first had them, and its neighbour's were unknown."""
    row = {"trace": "t", "group": "q", "reward": 1.0}
    rows = [
        {**row, "agent": agent, "time": 10.0 * k, "id": f"{agent}{k}", "context": f"round {k}"}
        for k in range(3)
        for agent in pair
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    traces = credit.read(path)
    seconds = dict(zip(traces.events["event"].to_pylist(), TeamFacts(traces).durations.event.tolist(), strict=True))
    assert seconds == {f"{agent}{k}": 10.0 * (k > 0) for k in range(3) for agent in "cd"}


def test_a_person_is_waited_for_from_the_end_of_what_ran_before() -> None:
    assert TeamFacts(answered(seconds=None)).durations.absent.tolist() == [0, 10, 0]
    found = TeamFacts(answered(seconds=4.0)).durations
    assert found.absent.tolist() == [0, 6, 0] and found.event.tolist() == [4, 0, 4] and found.wall.tolist() == [10]


def at_work(*, person: tuple[float, float | None], other: bool = False) -> Traces:
    """A worker's tool runs from 0 to 600; a person steps in, perhaps two; the lead answers at 700, after 50 seconds."""
    people = {"b": Agent("b", parent="a"), "h": Agent("h"), "i": Agent("i")}
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("a"), **people}, rewards={"team": 1.0})
    record.event("s", EventType.SPAWN, "a", action=True, time=0.0, to="b")
    record.event("c", EventType.TOOL_CALL, "b", action=True, time=0.0, tool="f")
    for name in "hi" if other else "h":
        record.event(name, EventType.HUMAN_INTERVENTION, name, action=False, time=person[0], seconds=person[1])
    record.event("r", EventType.TOOL_RESULT, "b", action=False, time=600.0, tool="f")
    record.event("y", EventType.MESSAGE, "a", action=True, time=650.0, seconds=50.0)
    end = len(record.ids) - 1
    for cause, effect in ((0, 1), (1, end - 1), (end - 1, end), *((i, end) for i in range(2, end - 1))):
        record.edge(cause, effect, 1)
    return assemble([record])


@pytest.mark.parametrize(
    ("person", "other", "wall"),
    [
        ((300.0, None), False, 700),
        ((300.0, 100.0), True, 700),
        ((300.0, 320.0), True, 680),
        ((640.0, None), False, 660),
    ],
    ids=["while a tool runs", "two of them", "longer than the tool runs", "after it"],
)
def test_nobody_is_waited_for_while_somebody_works(
    person: tuple[float, float | None], other: bool, wall: float
) -> None:
    """The wall clock lacked 300 seconds in which a tool ran: one worker seemed to be two, on a path longer than it."""
    facts = TeamFacts(at_work(person=person, other=other))
    assert facts.durations.wall.tolist() == [wall] and facts.durations.work.tolist() == [650]
    assert facts.seconds_on_path[0] <= wall


KINDS = (EventType.MESSAGE, EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.SPAWN, EventType.HUMAN_INTERVENTION)


def drawn(rng: np.random.Generator) -> TraceRecord:
    """A trace of two agents whose times, kinds, seconds and edges mean nothing."""
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("a"), "b": Agent("b", parent="a")})
    for i in range(int(rng.integers(1, 12))):
        kind = KINDS[int(rng.integers(5))]
        own = float(rng.integers(0, 6)) if rng.random() < 0.4 else None
        to = {"to": "c"} if kind is EventType.SPAWN else {}
        record.event(f"e{i}", kind, "ab"[int(rng.integers(2))], action=kind is EventType.MESSAGE and rng.random() < 0.7,
                     time=float(rng.integers(0, 20)), seconds=own, **to)  # fmt: skip
        for cause in range(i):
            if rng.random() < 0.2:
                record.edge(cause, i, 0)
    return record


def in_words(record: TraceRecord) -> list[float]:
    """What each event took, sentence by sentence: slow and obvious."""
    n, kinds, times = len(record.ids), [EventType(kind) for kind in record.types], record.times
    stated = [*record.columns.get("seconds", []), *[None] * n][:n]
    end = [time + (own or 0) for time, own in zip(times, stated, strict=True)]
    edges = list(zip(record.senders, record.receivers, strict=True))
    took = [0.0] * n
    for e in range(n):
        causes = [end[s] for s, r in edges if r == e]
        same = [i for i in range(n) if record.agents[i] == record.agents[e]]
        if not any(r == e and record.agents[s] == record.agents[e] for s, r in edges):  # `TeamFacts.causes`
            causes += [end[i] for i in same if i < e][-1:]
        if kinds[e] is not EventType.TOOL_RESULT:
            causes += [end[i] for i in same if (times[i], i) < (times[e], e)]
            if not record.actions[e]:
                for child, agent in record.instances.items():
                    ends = [end[i] for i in range(n) if record.agents[i] == child]
                    if agent.parent == record.agents[e] and ends and max(ends) <= times[e]:
                        causes.append(max(ends))
        interval = max(0.0, times[e] - max(causes)) if causes else 0.0
        works = record.actions[e] or kinds[e] is EventType.TOOL_RESULT
        since = max([end[i] for i in range(n) if (times[i], i) < (times[e], e)], default=-math.inf)
        linked = any(record.agents[s] != record.agents[r] for s, r in edges)
        asked = [s for s, r in edges if r == e and record.actions[s] and record.agents[s] == record.agents[e]]
        is_effect = not record.actions[e] and kinds[e] in (EventType.TOOL_CALL, EventType.SPAWN, EventType.MESSAGE)
        own = stated[e]
        if own is not None:
            took[e] += own
        elif works and ((not causes and times[e] > min(times)) or (causes and not linked and since > max(causes))):
            took[e] = math.nan
        elif not (asked and is_effect):
            took[e] += interval
        if asked and is_effect and stated[asked[-1]] is None:
            took[asked[-1]] += interval
    return [0.0 if kind is EventType.HUMAN_INTERVENTION else s for kind, s in zip(kinds, took, strict=True)]


def test_random_traces_take_what_the_words_say() -> None:
    rng, compared = np.random.default_rng(7), 0
    for _ in range(80):
        record = drawn(rng)
        words, found = in_words(record), TeamFacts(assemble([record])).durations
        if not found.reasons[0]:
            compared += 1
            np.testing.assert_array_equal(found.event, words)
            assert bool(np.all(found.added >= 0))
    assert compared > 60


def test_what_took_the_same_took_the_same_on_any_date() -> None:
    """`longest wait in seconds 0.01000007 against 0.01000013, failed has more 37 %`, where every wait was 10 ms."""
    rng = np.random.default_rng(11)
    for _ in range(30):
        record, found = drawn(rng), []
        ticks, own = record.times, record.columns.get("seconds", [])
        for date in (0, 1_772_442_600_123_457, 1_793_000_000_999_999):  # microseconds
            record.times = [(date + 10_000 * tick) / 1e6 for tick in ticks]
            record.columns["seconds"] = [None if held is None else held / 100 for held in own]
            found.append(TeamFacts(assemble([record])).durations)
        for one in found[1:]:
            for name in ("event", "added", "absent", "idle", "wall", "work"):
                np.testing.assert_array_equal(getattr(one, name), getattr(found[0], name), name)


def serial_pipeline() -> Traces:
    """A root that makes no call starts one agent after the other; the first ends with a tool's result."""
    record = TraceRecord("t", "q", "log.jsonl", rewards={"team": 1.0})
    record.instances = {"root": Agent("root"), "a": Agent("a", parent="root"), "b": Agent("b", parent="root")}
    times = (("sa", EventType.SPAWN, "root", 0.0), ("x", EventType.MESSAGE, "a", 50.0),
             ("c", EventType.TOOL_CALL, "a", 50.0), ("r", EventType.TOOL_RESULT, "a", 60.0),
             ("ra", EventType.RETURN, "a", 60.0), ("sb", EventType.SPAWN, "root", 60.0),
             ("y", EventType.MESSAGE, "b", 90.0), ("rb", EventType.RETURN, "b", 90.0))  # fmt: skip
    at = {name: record.event(name, kind, who, action=name in "xy", time=time) for name, kind, who, time in times}
    for cause, effect in (("sa", "x"), ("x", "c"), ("c", "r"), ("x", "ra"), ("sa", "sb"), ("sb", "y"), ("y", "rb")):
        record.edge(at[cause], at[effect], 0)
    return assemble([record])


def test_where_nothing_runs_at_once_the_seconds_of_all_events_are_the_wall_clock() -> None:
    found = TeamFacts(serial_pipeline()).durations
    assert found.event.tolist() == [0, 50, 0, 10, 0, 0, 30, 0] and found.work.tolist() == found.wall.tolist() == [90]


def test_an_effect_without_a_time_has_that_of_its_cause() -> None:
    assert TeamFacts(team()).durations.event.tolist() == [0, 0, 4, 0, 3]
    assert np.isnan(TeamFacts(_untimed_action()).durations.event).all()


@pytest.mark.parametrize("times", ["none", "positions", "another unit", "one missing"])
@pytest.mark.parametrize(
    ("call", "result", "expected"),
    [
        (None, 0.5, [1.5, 0, 0.5, 2.5]),
        (0.5, None, [1.5, 0.5, 0, 2.5]),
        (None, None, [1.5, 0, math.nan, 2.5]),
    ],
)
def test_stated_seconds_count_whatever_the_times_are(
    times: str, call: float | None, result: float | None, expected: list[float]
) -> None:
    """Every call stated its seconds, and `costs` said that the log had the number of none."""
    at = {"none": [math.nan] * 4, "one missing": [0.0, 1, 2, math.nan]}
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("main")}, rewards={"team": 1.0})
    record.metrics |= {"wall_clock_s_unstated": 1.0} if times == "positions" else {}
    record.costs |= {"wall_clock_s": 900.0} if times == "another unit" else {}
    of_kinds = [(EventType.MESSAGE, 1.5), (EventType.TOOL_CALL, call), (EventType.TOOL_RESULT, result)]
    for place, (kind, seconds) in enumerate([*of_kinds, (EventType.MESSAGE, 2.5)]):
        action = kind == EventType.MESSAGE
        record.event(f"e{place}", kind, "a", action=action, time=at.get(times, [0, 1, 2, 3])[place], seconds=seconds)
    traces = assemble([record])
    found = TeamFacts(traces).durations
    np.testing.assert_array_equal(found.event, expected)
    assert found.reasons != [""] and np.isnan(found.work).all() and np.isnan(found.wall).all()
    (row,) = cost_rows(traces)
    assert (row.seconds.total, row.seconds.missing) == (np.nansum(expected), int(math.isnan(expected[2])))
    record.columns = {}  # no call states any
    assert np.isnan(TeamFacts(assemble([record])).durations.event).all()


def _untimed_action() -> Traces:
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("main")}, rewards={"team": 1.0})
    record.event("x", EventType.MESSAGE, "a", action=True, time=0.0)
    record.event("y", EventType.MESSAGE, "a", action=True)
    record.event("z", EventType.MESSAGE, "a", action=True, time=2.0)
    return assemble([record])


def test_traces_are_listed_with_their_seconds_and_sorted_by_them(tmp_path: Path) -> None:
    for name, last in (("a", 5), ("b", 9)):
        events = [{"id": f"e{t}", "t": t, "type": "message", "agent": "x"} for t in (0, last)]
        record = {"trace_id": name, "task_id": "q", "events": events, "rewards": {"team": 1.0}}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"schema_version": "1.0"} | record))
    assert [row["wall_clock"] for row in trace_rows(credit.read(tmp_path))] == [5, 9]
    shown = CliRunner().invoke(cli, ["traces", str(tmp_path), "--sort", "wall_clock"]).stdout.splitlines()
    assert [line.split()[0] for line in shown[1:3]] == ["b", "a"] and "wall clock" in shown[0]
