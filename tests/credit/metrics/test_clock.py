"""Who is alive, first and last by the clock: one run in three formats, whose readers order events differently."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.metrics.event_metrics import team_course, team_events
from credit.metrics.trace_metrics import UNTYPED, trace_metrics
from credit.reports.clock import clock
from credit.reports.durations import durations
from credit.reports.endings import ended_early
from credit.reports.event_facts import EventFacts
from credit.reports.trace_numbers import TeamFacts
from graphs.event_types import EdgeType, EventType
from graphs.logs import read
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord
from tests.recordings.spans import agent, chat, span, spans_request, tool, write_lines

START = 1_700_000_000.0
# Agent, what it does, begin and end. x and y work at once, and y is asked again while x still works.
RUN: list[tuple[str, str, float, float]] = [
    ("planner", "call", 0, 2),
    ("x", "call", 2, 4.3),
    ("y", "call", 2, 3),
    ("y", "tool", 3, 5.1),
    ("x", "tool", 4.3, 8.7),
    ("y", "call", 5.1, 6),
    ("reviewer", "call", 8.7, 9),
]
AGENTS = ("planner", "x", "y", "reviewer")
SPANS = {name: (min(r[2] for r in RUN if r[0] == name), max(r[3] for r in RUN if r[0] == name)) for name in AGENTS}


def native(path: Path, number: int = 0) -> Path:
    events: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []
    last: dict[str, str] = {}
    for n, (who, what, begin, end) in enumerate(RUN):
        kind, seconds = (
            ("message", {"seconds": end - begin, "tokens": 9}) if what == "call" else ("tool_call", {"tool": "search"})
        )
        action = what == "call"
        event = {"id": f"e{n}", "t": START + begin, "type": kind, "agent": who, "action": action} | seconds
        events.append(event)
        before = {"x": "e0", "y": "e0", "reviewer": last.get("x", "")}.get(who) if who not in last else last[who]
        edges += [{"src": before, "dst": f"e{n}", "type": "causal"}] if before else []
        last[who] = f"e{n}"
        if what == "tool":
            answer = {"id": f"e{n}r", "t": START + end, "type": "tool_result", "agent": who, "action": False}
            events.append(answer | {"tool": "search"})
            edges.append({"src": f"e{n}", "dst": f"e{n}r", "type": "return"})
            last[who] = f"e{n}r"
    edges.append({"src": "e5", "dst": "e6", "type": "message"})
    events.sort(key=lambda event: event["t"])
    line: dict[str, Any] = {"schema_version": "1.0", "trace_id": f"native{number}", "task_id": f"q{number}"}
    line |= {"events": events, "edges": edges, "rewards": {"team": 1.0}}
    path.write_text(json.dumps(line) + "\n")
    return path


def otlp(path: Path) -> Path:
    number = {name: n + 2 for n, name in enumerate(AGENTS)}
    spans = [span(1, 0, START, START + 9, {}, name="run")]
    spans += [agent(number[name], 1, START + b, START + e, name) for name, (b, e) in SPANS.items()]
    for n, (who, what, begin, end) in enumerate(RUN):
        make = chat if what == "call" else tool
        spans.append(make(10 + n, number[who], START + begin, START + end))
    return write_lines(path, spans_request(spans))


def langsmith(path: Path, number: int = 0) -> Path:
    def run(name: str, parent: str | None, kind: str, begin: float, end: float, node: str) -> str:
        times = {
            "start_time": f"2023-11-14T22:13:{20 + begin:09.6f}Z",
            "end_time": f"2023-11-14T22:13:{20 + end:09.6f}Z",
        }
        where: dict[str, Any] = {"trace_id": t, "parent_run_id": None if parent is None else t + parent}
        where |= {"extra": {"metadata": {"langgraph_node": node}}, "reference_example_id": f"q{number}"}
        return json.dumps({"id": f"{t}{name}", "name": name, "run_type": kind, "completion_tokens": 9} | times | where)

    t = f"langsmith{number}"
    lines = [run("", None, "chain", 0, 9, "")]
    lines += [run(name, "", "chain", *SPANS[name], name) for name in AGENTS]
    lines += [
        run(f"{who}{n}", who, "llm" if what == "call" else "tool", begin, end, who)
        for n, (who, what, begin, end) in enumerate(RUN)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


FORMS = {"native": native, "otlp": otlp, "langsmith": langsmith}
BY_HAND = {"team_peak": 2.0, "team_mean": (1 + 2 * 6 + 1 + 1) / 9, "team_births": 3.0, "team_deaths": 3.0}


def by_hand(traces: Traces) -> dict[str, float]:
    found = trace_metrics(traces)
    return {name: float(found[name].value[0]) for name in BY_HAND}


@pytest.mark.parametrize("form", FORMS)
def test_one_run_has_one_team_in_every_format(form: str, tmp_path: Path) -> None:
    """The reader of LangSmith writes agent after agent: three that worked at once were never more than one."""
    traces = read(FORMS[form](tmp_path / "log.jsonl"))
    assert by_hand(traces) == pytest.approx(BY_HAND)
    # Formats of model calls do not say which of them are about the team: 0 of its tokens were.
    assert trace_metrics(traces)["protocol_overhead"].reasons == [UNTYPED]
    course = [(point.births, point.deaths, point.size) for point in team_course(traces)]
    assert course == [(1, 0, 1), *[(3, 1, 2)] * 6, *[(4, 3, 1)] * 2, (4, 4, 1)]


def test_sides_of_two_formats_have_one_team_and_say_that_their_formats_differ(tmp_path: Path) -> None:
    """Of the same runs "team peak 2.07 to 1" was called a change of the team."""
    for form, write in (("native", native), ("langsmith", langsmith)):
        (tmp_path / form).mkdir()
        lines = [write(tmp_path / "one.jsonl", number).read_text() for number in range(8)]
        (tmp_path / form / "log.jsonl").write_text("".join(lines))
    (tmp_path / "one.jsonl").unlink()
    folders = [str(tmp_path / form) for form in ("native", "langsmith")]
    printed = CliRunner().invoke(cli, ["metrics", *folders, "--sides", ",".join(folders), "--json"])
    assert printed.exit_code == 0, printed.output
    sides = json.loads(printed.stdout)
    assert {row["metric"]: row["difference"] for row in sides["differences"] if row["difference"]} == {}
    assert {*BY_HAND} <= {*sides["same"]}
    assert "the sides differ in format, too" in sides["but"]
    assert "The sides differ in format (langsmith), too." in sides["caveats"]


def test_agents_that_hand_over_are_not_there_at_once() -> None:
    """The next one begins at the moment at which the last one ends, but for the rounding of its clock."""
    record = TraceRecord("t", "q", "log.jsonl", instances={name: Agent() for name in "ab"}, rewards={"team": 1.0})
    for time, name in ((0.0, "a"), (2.0, "a"), (3.999_999_5, "b"), (6.0, "b")):
        record.event(f"{name}{time}", EventType.MESSAGE, name, action=True, time=START + time, seconds=2.0)
    assert team_events(assemble([record])).size.tolist() == [1, 1, 1, 1]


def test_calls_that_run_at_once_are_of_a_team_of_two() -> None:
    """One event of each agent was one moment, and no two moments meet."""
    record = TraceRecord("t", "q", "log.jsonl", instances={name: Agent() for name in "ab"}, rewards={"team": 1.0})
    for time, name in ((0.0, "a"), (1.0, "b")):
        record.event(name, EventType.MESSAGE, name, action=True, time=time, seconds=5.0)
    assert team_events(assemble([record])).size.tolist() == [1, 2]


def test_an_event_is_no_earlier_than_its_causes_and_without_times_rows_are_the_order() -> None:
    """The second machine's clock is 100 s behind."""
    record = TraceRecord("t", "q", "log.jsonl", instances={name: Agent() for name in "ab"}, rewards={"team": 1.0})
    at = [
        record.event(name, EventType.MESSAGE, name[0], action=True, time=time)
        for name, time in (("a", 100.0), ("a2", 102.0), ("b", 1.0), ("b2", 3.0))
    ]
    for cause, effect in itertools.pairwise(at):
        record.edge(cause, effect, EdgeType.CAUSAL)
    facts = EventFacts(assemble([record]))
    assert clock(facts, durations(facts)).at.tolist() == [0, 1, 1, 1]
    untimed = TraceRecord("t", "q", "log.jsonl", instances={name: Agent() for name in "ab"}, rewards={"team": 1.0})
    for name, time in (("a", 5.0), ("b", math.nan), ("a2", 1.0)):
        untimed.event(name, EventType.MESSAGE, name[0], action=True, time=time)
    facts = EventFacts(assemble([untimed]))
    assert [moments.tolist() for moments in clock(facts, durations(facts))] == [[0, 1, 2]] * 4
    assert team_events(facts.traces).size.tolist() == [1, 2, 1]


def test_the_answer_is_the_action_that_ends_last_and_a_trace_ends_in_the_call_that_began_last() -> None:
    """The rows of LangSmith end with the agent that began last: its side work was the answer, and a call that was cut
    off before it was none.
    """
    record = TraceRecord("t", "q", "log.jsonl", instances={name: Agent() for name in "ab"}, rewards={"team": 1.0})
    start = record.event("start", EventType.MESSAGE, "a", action=True, time=0.0, seconds=1.0)
    answer = record.event("answer", EventType.MESSAGE, "a", action=True, time=1.0, seconds=9.0)
    aside = record.event("aside", EventType.MESSAGE, "b", action=True, time=2.0, seconds=1.0)
    record.edge(start, answer, EdgeType.CAUSAL)
    record.edge(start, aside, EdgeType.MESSAGE)
    facts = TeamFacts(assemble([record]))
    assert facts.reaching_answer[:2].tolist() == [True, False]

    def cut(second: float) -> list[bool]:
        record = TraceRecord("t", "q", "log.jsonl", instances={name: Agent() for name in "ab"}, rewards={"team": 1.0})
        at = [
            record.event(name, kind, who, action=kind == EventType.MESSAGE, time=time, tool=tool)
            for name, kind, who, time, tool in (
                ("a", EventType.MESSAGE, "a", 0.0, None), ("call", EventType.TOOL_CALL, "a", 5.0, "web"),
                ("b", EventType.MESSAGE, "b", 1.0, None), ("other", EventType.TOOL_CALL, "b", 2.0, "web"),
                ("result", EventType.TOOL_RESULT, "b", 3.0, "web"), ("b2", EventType.MESSAGE, "b", second, None),
            )
        ]  # fmt: skip
        for cause, effect in ((0, 1), (0, 2), (2, 3), (3, 4), (4, 5)):
            record.edge(at[cause], at[effect], EdgeType.CAUSAL)
        early: list[bool] = ended_early(assemble([record]))[0].tolist()
        return early

    assert cut(4.0) == [True] and cut(6.0) == [False]
