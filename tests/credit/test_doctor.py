"""`credit doctor`: statistics of small logs by hand, refusals, and planted faults."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.bench.doctor_trial import doctor_trials
from credit.bench.planted_faults import FAULTS, healthy_team, plant
from credit.cli import cli
from credit.doctor.team_checks import BEHAVIOUR, CHECKS, Finding, examine
from credit.doctor.team_work import NO_PAIR, NO_TWO, TeamWork
from credit.doctor.verdicts import _trend, collusion, drift
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.judged_traces import judged_traces
from credit.reports.missing_lines import LACKING
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_numbers import UNREAD
from graphs.errors import CreditError
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord
from graphs.worlds import TeamWorld


def event(name: str, kind: str, agent: str, time: float, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "agent": agent, "t": time} | more


def edges(*texts: str) -> list[dict[str, str]]:
    return [dict(zip(("src", "dst", "type"), text.split(), strict=True)) for text in texts]


TEAM = [
    event("d", "orchestrator_decision", "boss", 0),
    event("s1", "spawn", "boss", 0, to="w1", action=False), event("s2", "spawn", "boss", 0, to="w2", action=False),
    event("a1", "tool_call", "w1", 1, tool="web", content_ref="x"), event("a2", "message", "w1", 2, content_ref="m"),
    event("b1", "tool_call", "w2", 3, tool="web", content_ref="x"), event("b2", "message", "w2", 4, content_ref="m"),
    event("z", "aggregate", "boss", 5),
]  # fmt: skip
STARTS = ("d s1 causal", "d s2 causal", "s1 a1 spawn", "s2 b1 spawn", "a1 a2 causal", "b1 b2 causal")
LOGS: dict[str, tuple[tuple[str, ...], dict[str, float | str]]] = {
    "one after another by their times only": (
        (*STARTS, "a2 z return", "b2 z return"),
        {"serial_collapse": 0, "pseudo_parallelism": 1, "duplicated_work": 1, "communication_padding": 1 / 2,
         "free_riding": 0, "aggregation_leakage": 0, "dominant_agent": (2 / 6 - 1 / 3) / (2 / 3), "tool_spam": 0},
    ),
    "one waits, and the other's work is not read": (
        (*STARTS, "a2 b1 message", "d z temporal"),
        {"serial_collapse": 1, "pseudo_parallelism": NO_TWO,
         "free_riding": 2 / 3, "aggregation_leakage": 1},
    ),
    "without edges": (
        (),
        {"serial_collapse": "the log states no edge between its agents", "communication_padding": 1 / 2,
         "aggregation_leakage": "the log states no edge between its agents"},
    ),
}  # fmt: skip


def read(folder: Path, *lines: dict[str, Any]) -> Traces:
    (folder / "log.jsonl").write_text("".join(json.dumps({"schema_version": "1.0"} | line) + "\n" for line in lines))
    traces = credit.read(folder / "log.jsonl")
    noted = {"several-versions", "repeated-rows"}  # a log written by a rule stands again after its period
    assert {problem.kind for problem in traces.problems} <= noted
    return traces


@pytest.mark.parametrize("name", LOGS)
def test_numbers_of_a_trace_by_hand(name: str, tmp_path: Path) -> None:
    links, expected = LOGS[name]
    line = {"trace_id": "t", "task_id": "q", "events": TEAM, "edges": edges(*links), "rewards": {"team": 1.0}}
    work = TeamWork(read(tmp_path, line | {"costs": {}}))
    for check, wanted in expected.items():
        value, reasons = BEHAVIOUR[check](work)
        assert (reasons[0] or float(value[0])) == (wanted if isinstance(wanted, str) else pytest.approx(wanted)), check


def test_an_agent_that_is_asked_again_after_its_sibling_waited(tmp_path: Path) -> None:
    """Its last action comes after all of the sibling's, so the two seemed to run at once."""
    asked = ["w1", "w2", "w1", "w3", "w2", "w1"]
    events = [event("d", "orchestrator_decision", "boss", 0)]
    links = []
    for i, name in enumerate(asked):
        events += [event(f"q{i}", "spawn" if name not in asked[:i] else "message", "boss", 0, to=name),
                   event(f"a{i}", "message", name, 0), event(f"r{i}", "return", name, 0, to="boss")]  # fmt: skip
        links += [f"{f'r{i - 1}' if i else 'd'} q{i} causal", f"q{i} a{i} spawn", f"a{i} r{i} causal"]
    line = {"trace_id": "t", "task_id": "q", "events": events, "edges": edges(*links), "rewards": {"team": 1.0}}
    work = TeamWork(read(tmp_path, line | {"costs": {}}))
    assert work.serial_collapse().value.tolist() == [1]
    at_once = [link for link in links if "q2" not in link.split()[1]] + ["d q2 causal"]  # w1 goes on beside w2
    work = TeamWork(read(tmp_path, line | {"costs": {}, "edges": edges(*at_once)}))
    assert work.serial_collapse().value.tolist() == [4 / 5]


def test_a_crew_whose_agents_are_started_one_after_another_is_no_runtime_at_fault(tmp_path: Path) -> None:
    """Every crew that works in turn was found to run at once by halves, at p 5e-39."""

    def crew(number: int, second: float, asked: float) -> dict[str, Any]:
        events = [event("d", "orchestrator_decision", "boss", 0),
                  event("s1", "spawn", "boss", 0, to="w1", action=False),
                  event("a1", "message", "w1", 1), event("a2", "message", "w1", 3),
                  event("s2", "spawn", "boss", asked, to="w2", action=False),
                  event("b1", "message", "w2", second), event("b2", "message", "w2", second + 2)]  # fmt: skip
        links = edges("d s1 causal", "d s2 causal", "s1 a1 spawn", "s2 b1 spawn")
        return one(number, number // 4, events=events, edges=links)

    in_turn = [crew(i, 3, 3) for i in range(8)]
    pipeline = found(read(tmp_path, *in_turn))["pseudo_parallelism"]
    assert (pipeline.found, pipeline.p) == (None, None) and pipeline.words.startswith("looks like a pipeline")
    rounded = found(read(tmp_path, *(crew(i, 3, 3 - 2e-7) for i in range(8))))["pseudo_parallelism"]
    assert (rounded.found, rounded.p) == (None, None)  # times since 1970: it was found at p 2e-23
    asked_at_once = found(read(tmp_path, *(crew(i, 3, 0) for i in range(8))))["pseudo_parallelism"]
    assert asked_at_once.found and asked_at_once.mean == 1
    assert not asked_at_once.words.endswith("others")  # none is left: "0 of 0 others" stood there
    skewed = found(read(tmp_path, *in_turn, crew(8, 2.9, 2.9)))["pseudo_parallelism"]
    assert skewed.mean == 0 and skewed.tasks == 1  # of clocks that differ by a tenth of a second
    now_and_then = found(read(tmp_path, *in_turn, crew(8, 2, 2)))["pseudo_parallelism"]
    assert now_and_then.found and now_and_then.tasks == 3 and now_and_then.mean == pytest.approx(2 / 3)


def test_agents_that_nobody_started_are_not_said_to_be_unable_to_run_at_once(tmp_path: Path) -> None:
    """Two that ran beside each other, by the times that make a speed-up of 8/5."""
    events = [event(*each, seconds=2) for each in (
        ("a1", "message", "a", 1), ("b1", "message", "b", 2), ("a2", "message", "a", 3), ("b2", "message", "b", 4)
    )]  # fmt: skip
    line = one(0, 0, events=[event("d", "message", "c", 0), *events], edges=edges("d a1 message", "d b1 message"))
    traces = read(tmp_path, line)
    assert trace_metrics(traces)["speed_up"].value.tolist() == [pytest.approx(8 / 5)]
    assert found(traces)["pseudo_parallelism"].words == NO_PAIR


def test_an_agent_runs_until_its_last_call_ends(tmp_path: Path) -> None:
    """Its sibling began while that call ran, and was said to have waited for it."""
    events = [event("d", "orchestrator_decision", "boss", 0),
              *(event(f"s{i}", "spawn", "boss", 0, to=f"w{i}", action=False) for i in (1, 2)),
              event("a1", "message", "w1", 1, seconds=1), event("a2", "message", "w1", 2, seconds=9),
              event("b1", "message", "w2", 3, seconds=1), event("b2", "message", "w2", 4, seconds=1)]  # fmt: skip
    line = one(0, 0, events=events, edges=edges("d s1 causal", "d s2 causal", "s1 a1 spawn", "s2 b1 spawn"))
    assert TeamWork(read(tmp_path, line)).pseudo_parallelism().value.tolist() == [0]


@pytest.mark.parametrize(
    ("of_w1", "of_w2", "wanted"),
    [("xm", "xm", 1), ("xx", "yy", 0), ("xxy", "x", 3 / 4), ("xym", "xnn", 2 / 6)],
    ids=["the same", "each repeats itself", "all of three and one have x, once y", "x"],
)
def test_duplicated_work_is_what_a_sibling_has_too(tmp_path: Path, of_w1: str, of_w2: str, wanted: float) -> None:
    """Of two siblings that did all the same, half was called repeated, and seven tenths was hardly above the limit."""
    said = [(name, text) for name, texts in (("w1", of_w1), ("w2", of_w2)) for text in texts]
    events = [*TEAM[:3], *(event(f"e{i}", "message", name, 1, content_ref=text) for i, (name, text) in enumerate(said))]
    line = {"trace_id": "t", "task_id": "q", "events": events, "edges": edges("d s1 causal"), "rewards": {"team": 1.0}}
    work = TeamWork(read(tmp_path, line | {"costs": {}}))
    assert work.duplicated_work().value.tolist() == [pytest.approx(wanted)]


def one(number: int, task: int, **more: Any) -> dict[str, Any]:
    calls = [event(f"e{i}", "tool_call", "a", i, tool="web", content_ref="same") for i in range(4)]
    return {"trace_id": f"t{number}", "task_id": f"q{task}", "events": calls, "edges": edges("e0 e1 causal"),
            "rewards": {"team": float(number % 2)}, "costs": {}} | more  # fmt: skip


def found(traces: Traces) -> dict[str, Finding]:
    return {finding.check: finding for finding in examine(traces, credit.run(traces, "rloo"))}


def test_of_several_reasons_each_says_of_how_many_traces_it_is(tmp_path: Path) -> None:
    """That all times are equal was said of all traces, where it held for two of three."""
    lines = [
        {"trace_id": f"t{k}", "task_id": "q", "rewards": {"team": k},
         "events": [event("0", "message", "a", first), event("1", "message", "b", second)]}
        for k, (first, second) in enumerate(((5, 5), (5, 5), (1, 2)))
    ]  # fmt: skip
    words = found(read(tmp_path, *lines))["pseudo_parallelism"].words
    assert words == "all times of the trace are equal (2 traces); the log states no edge between its agents (1 trace)"


def test_one_task_is_not_enough_for_a_test_and_two_are(tmp_path: Path) -> None:
    lines = [one(i, i // 4) for i in range(8)]
    few, enough = found(read(tmp_path, *lines[:4])), found(read(tmp_path, *lines))
    assert few["tool_spam"].found is None and "too few tasks" in few["tool_spam"].words
    assert enough["tool_spam"].found and enough["tool_spam"].mean == 3 / 4
    assert enough["tool_spam"].as_json()["mean"] == 3 / 4  # words stood here in place of the number
    assert enough["tool_spam"].p == pytest.approx(0.05**2)
    assert enough["tool_spam"].traces == tuple(f"t{i}" for i in range(8))


def test_traces_that_lack_lines_are_in_no_check_of_what_agents_do(tmp_path: Path) -> None:
    """Traces that metrics refuse by name counted as whole."""
    lost = {"metrics": {"lost_parts": 1, "unlogged_calls": 1}}
    lines = [one(i, i // 4, **(lost if i < 8 else {})) for i in range(16)]
    cut = found(read(tmp_path, *lines))
    assert cut["tool_spam"].traces == tuple(f"t{i}" for i in range(8, 16)) and cut["tool_spam"].tasks == 2
    assert cut["idle_groups"].tasks == 4, "outcomes are whole"
    alone = found(read(tmp_path, *lines[:8]))
    assert {alone[name].words for name in BEHAVIOUR} == {LACKING}
    read(tmp_path, *lines)
    shown = CliRunner().invoke(cli, ["doctor", str(tmp_path)])
    assert "The log lacks lines of 8 traces" in shown.stdout


def test_who_reached_the_end_is_not_known_of_traces_that_end_early(tmp_path: Path) -> None:
    """All agents but the one that ran into its limit of tokens were to be started no more."""
    events = [event("d", "orchestrator_decision", "boss", 0), event("s1", "spawn", "boss", 0, to="w1", action=False),
              event("a1", "message", "w1", 1), event("s2", "spawn", "boss", 2, to="w2", action=False),
              event("a2", "message", "w2", 3)]  # fmt: skip
    end, links = event("z", "message", "boss", 4), edges("d s1 causal", "s1 a1 spawn", "d s2 causal", "s2 a2 spawn")
    whole = {"events": [*events, end], "edges": [*links, *edges("a1 z message", "a2 z message")]}
    short = {"events": events, "edges": links}
    limited, failed = ({"metrics": {name: 1.0}} for name in ("ended_at_limit", "ended_in_error"))
    lines = [one(i, i // 4, **((short | (limited if i % 2 else failed)) if i < 12 else whole)) for i in range(16)]
    cut = found(read(tmp_path, *lines))["free_riding"]
    assert (cut.found, cut.mean, cut.shown, cut.tasks) == (None, 0, 0, 1)
    said = CliRunner().invoke(cli, ["doctor", str(tmp_path)]).stdout
    assert "6 of 16 traces stop at a limit" in said and "6 of 16 traces end in an error of the API" in said
    assert "free_riding counts no trace that ends early (here 12)" in said
    told = json.loads(CliRunner().invoke(cli, ["doctor", str(tmp_path), "--json"]).stdout)["endings"]
    assert [(end["traces"], end["event"]) for end in told] == [(6, "a2"), (6, "a2")]
    read(tmp_path, *(line | {"metrics": {}} for line in lines))
    assert "ends early" not in CliRunner().invoke(cli, ["doctor", str(tmp_path)]).stdout


def test_an_agent_whose_work_nobody_reads_is_named_with_its_traces_and_cost(tmp_path: Path) -> None:
    """Traces were listed, and a mean over tasks; neither the agent, nor in how many, nor what it cost."""
    starts = ("d s1 causal", "s1 a1 spawn", "d s2 causal", "s2 a2 spawn", "a2 z message")
    events = [event("d", "orchestrator_decision", "boss", 0), event("s1", "spawn", "boss", 0, to="w1", action=False),
              event("a1", "message", "w1", 1), event("s2", "spawn", "boss", 2, to="w2", action=False),
              event("a2", "message", "w2", 3), event("z", "message", "boss", 4)]  # fmt: skip
    for one_event in events:
        one_event |= {"tokens": 20, "model": "m"} if one_event.get("action", True) else {}
    read(tmp_path, *(one(i, i // 2, events=events, edges=edges(*starts, *["a1 z message"] * (i % 4 == 0)))
                     for i in range(32)))  # fmt: skip
    told = "w1 in 24 of 32 traces: the last action does not depend on what it did; 19 % of the tokens generated (480)"
    assert f"\n  {told}.\n" in CliRunner().invoke(cli, ["doctor", str(tmp_path)]).stdout
    plain = json.loads(CliRunner().invoke(cli, ["doctor", str(tmp_path), "--json"]).stdout)
    (idle,) = plain["idle_agents"]
    assert (idle["agent"], idle["traces"], idle["of_traces"]) == ("w1", 24, 32)
    lost = "19 % of the tokens generated (480) went into w1 in 24 of 32 traces, where the last action does not depend"
    prices = tmp_path.parent / "prices.csv"
    prices.write_text("model,input,output\nm,0,1000000\n")
    for more, cost in ((), "tokens generated"), (("--prices", str(prices)), "money at the given prices"):
        said = CliRunner().invoke(cli, ["summary", str(tmp_path), *more]).stdout
        assert lost.replace("tokens generated", cost) in said, said
        assert f"; 19 % of the {cost} (480)." in CliRunner().invoke(cli, ["doctor", str(tmp_path), *more]).stdout
    read(tmp_path, *(one(i, i // 2, events=events, edges=edges(*starts, "a1 z message")) for i in range(32)))
    assert "went into w1" not in CliRunner().invoke(cli, ["summary", str(tmp_path)]).stdout


def test_an_agent_whose_work_may_pass_through_files_is_not_idle(tmp_path: Path) -> None:
    """A coder whose files a tester ran was to be started no more: no edge says that a file was read."""
    starts = ("d s1 causal", "s1 a1 spawn", "d s2 causal", "s2 a2 spawn")
    events = [*TEAM[:3], event("a1", "message", "w1", 1), event("a2", "message", "w2", 3)]
    end = event("z", "message", "boss", 4)

    def lines(*links: str, ended: bool = True) -> list[dict[str, Any]]:
        return [
            one(i, i // 4, events=[*events, end] if ended else events, edges=edges(*starts, *links)) for i in range(16)
        ]

    hidden = lines(ended=False)
    for team in (hidden, lines("d z causal"), lines("d a1 message", "d a2 message", ended=False)):
        traces = read(tmp_path, *team)
        assert (found(traces)["free_riding"].found, found(traces)["free_riding"].words) == (None, UNREAD)
        assert set(trace_metrics(traces)["useful_agents"].reasons) == {UNREAD}
    one_read = read(tmp_path, *lines("a2 z message"))
    assert found(one_read)["free_riding"].found and found(one_read)["free_riding"].mean == pytest.approx(1 / 3)
    handed_on = read(tmp_path, *lines("a1 a2 message", ended=False))
    assert found(handed_on)["free_riding"].mean == 0
    both = [line | {"trace_id": f"h{i}", "task_id": f"h{i // 4}"} for i, line in enumerate(hidden)]
    read(tmp_path, *lines("a2 z message"), *both)
    said = CliRunner().invoke(cli, ["doctor", str(tmp_path)]).stdout
    assert f"free_riding counts no trace (here 16) in which {UNREAD}." in said


def test_who_is_missing_from_a_trace_without_some_lines_did_not_stay_away(tmp_path: Path) -> None:
    """Eight failed traces of each task, the judge kind where b took part. Where half lack lines, b may be in those."""

    def line(number: int, lacks: bool) -> dict[str, Any]:
        who = "b" if number % 2 else "a"
        rewards = {"team": float(number % 9 == 8), "judge": float(who == "b")}
        events = [event("e0", "message", "a", 0), event("e1", "message", who, 1)]
        lost = {"metrics": {"lost_parts": 1, "unlogged_calls": 1}} if lacks and who == "a" else {}
        return one(number, number // 9, events=events, edges=[]) | {"rewards": rewards} | lost

    whole, cut = (
        found(read(tmp_path, *(line(i, lacks) for i in range(90))))["verifier_collusion"] for lacks in (False, True)
    )
    assert whole.found and whole.words.startswith("judge is higher on failed traces of agent b")
    assert cut.found is None


def test_tool_spam_is_the_calls_in_later_rounds_of_the_loops_that_a_summary_counts(tmp_path: Path) -> None:
    """Editing, running the tests and editing again was spam, "found" in twelve sessions of a team that worked."""

    def spam(*calls: str) -> tuple[float, float]:
        events = [event(f"e{i}", "tool_call", "a", i, tool="web", content_ref=call) for i, call in enumerate(calls)]
        traces = read(tmp_path, one(0, 0, events=events))
        return float(TeamWork(traces).tool_spam().value[0]), float(ToolCalls(traces).loop_counts()[0])

    assert spam(*itertools.chain.from_iterable((f"edit {i}", "pytest") for i in range(6))) == (0, 0)
    assert spam("x", "x", "y", "x") == (0, 0) and spam("y", "x", "x", "x") == (2 / 4, 1)
    assert spam(*"xyxyxy") == (4 / 6, 1) and spam(*"xyxyxyx") == (5 / 7, 1) and spam(*"xxxyyy") == (4 / 6, 2)
    lacking = [event(f"e{i}", "tool_call", "a", i, tool="web") for i in range(3)]
    assert TeamWork(read(tmp_path, one(0, 0, events=lacking))).tool_spam().reasons == [
        "the log has no arguments of calls"
    ]
    other = [one(i, i // 4) for i in range(12)]
    for line in other:
        for number, call in enumerate(line["events"]):
            call["content_ref"] = f"edit {number}" if number % 2 else "pytest"
    assert found(read(tmp_path, *other))["tool_spam"].found is False


def test_loops_of_single_traces_are_no_habit_and_are_not_said_to_be_absent(tmp_path: Path) -> None:
    """A summary named the loops of a sixth of the traces as the leading cause, and doctor said "not found"."""
    lines = [one(i, i // 4) for i in range(48)]
    for line in lines[:4] + [one for i, one in enumerate(lines) if i % 4]:
        for number, call in enumerate(line["events"]):
            call["content_ref"] = f"{line['trace_id']} {number}"
    finding = found(read(tmp_path, *lines))["tool_spam"]
    assert (finding.found, finding.verdict, finding.alone, finding.shown) == (False, "in 11 traces", 11, 0)
    assert finding.traces == tuple(f"t{i}" for i in range(4, 48, 4)) and finding.as_json()["verdict"] == "in 11 traces"
    said = CliRunner().invoke(cli, ["doctor", str(tmp_path)]).stdout
    assert re.search(r"tool_spam +in 11 traces ", said) and "in traces: so many show it" in said
    assert "tool_spam: 0 of 12 tasks above 0.35" in said and "See t4, t8, t12, …" in said
    assert "; 11 of 11 traces that show it failed, and 13 of 37 others. See" in said
    more = [event(f"x{i}", "tool_call", "a", 9 + i, tool="web", content_ref=f"{i}") for i in range(20)]
    short = [line | {"events": [*line["events"], *more]} for line in lines]
    assert found(read(tmp_path, *short))["tool_spam"].verdict == "in 11 traces", "a loop is one among many calls, too"


def test_an_agent_alone_pads_no_communication(tmp_path: Path) -> None:
    """Sessions of one agent that said the same now and then were "found", where `credit metrics` refused the number."""
    said = [event(f"m{i}", "message", "a", i, content_ref="next") for i in range(4)]
    heard = [*said, event("b", "message", "b", 9, content_ref="?")]
    alone, team = (read(tmp_path, *(one(i, i // 4, events=events, edges=[]) for i in range(12)))
                   for events in (said, heard))  # fmt: skip
    words = "the trace has no second agent, who could read a message"
    assert (found(alone)["communication_padding"].found, found(alone)["communication_padding"].words) == (None, words)
    assert set(trace_metrics(alone)["message_redundancy"].reasons) == {words}
    assert found(team)["communication_padding"].found


def session(folder: Path, name: str, before: str) -> None:
    """A session of Claude Code whose sub-agent makes one call four times, with words before each or without."""

    def spoken(agent: str | None, number: int, role: str, *content: dict[str, Any]) -> str:
        message = {"role": role, "content": list(content)} | ({"id": f"{agent}{number}"} if role == "assistant" else {})
        line = {"sessionId": name, "type": role, "uuid": f"{name}{agent}{number}", "isSidechain": bool(agent),
                "parentUuid": f"{name}{agent}{1 if number == 20 else number - 1}" if number else None,
                "version": "2.1.39", "timestamp": f"2026-01-05T09:00:{number:02}.000Z", "message": message}  # fmt: skip
        return json.dumps(line | ({"agentId": agent} if agent else {})) + "\n"

    def text(words: str) -> dict[str, Any]:
        return {"type": "text", "text": words}

    def call(number: int, tool: str, **asked: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": f"{tool}{number}", "name": tool, "input": asked}

    def result(number: int, tool: str) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": f"{tool}{number}", "content": "no"}

    own = [spoken("s", 0, "user", text("test"))]
    for i in range(4):
        said = [text(before)] if before else []
        own += [spoken("s", 2 * i + 1, "assistant", *said, call(i, "Bash", command="npx jest", description=f"try {i}")),
                spoken("s", 2 * i + 2, "user", result(i, "Bash"))]  # fmt: skip
    own += [spoken("s", 9, "assistant", text("It fails.")), spoken("s", 10, "assistant", text("It fails again."))]
    lines = [
        spoken(None, 0, "user", text("go")),
        spoken(None, 1, "assistant", call(0, "Task", subagent_type="tester", prompt="test")),
        spoken(None, 20, "user", result(0, "Task")).replace(
            '"message"', '"toolUseResult": {"agentId": "s"}, "message"'
        ),
        spoken(None, 21, "assistant", text("Done.")),
    ]
    (folder / name / "subagents").mkdir(parents=True)
    (folder / name / "subagents" / "agent-s.jsonl").write_text("".join(own))
    (folder / f"{name}.jsonl").write_text("".join(lines))


@pytest.mark.parametrize(("before", "part"), [("", 0), ("Once more.", 3 / 6)])
def test_a_call_made_again_without_a_word_is_no_message_that_pads(tmp_path: Path, before: str, part: float) -> None:
    """A retried command was tool spam, and padding as well: the model call that only made it counted as a message."""
    session(tmp_path, "p", before)
    traces = credit.read(tmp_path)
    work = TeamWork(traces)
    assert traces.sizes.traces == 1 and work.tool_spam().value[0] > 0.5
    assert work.communication_padding().value.tolist() == [pytest.approx(part)]
    assert trace_metrics(traces)["message_redundancy"].value.tolist() == [pytest.approx(part)]


def test_what_could_run_at_once_is_not_known_where_edges_have_no_order() -> None:
    """A crew that works one after another by design was told to look at its runtime."""
    advice = [CHECKS[name].advice for name in ("serial_collapse", "pseudo_parallelism")]
    assert all("a pipeline by design is no fault" in words for words in advice)
    assert "does not show what could run at once" in advice[1]


def test_advice_says_first_what_a_person_with_agents_can_do() -> None:
    """A lead who trains nothing was told to put a price on tokens."""
    for check in CHECKS.values():
        to_do, *training = check.advice.split("When training: ")
        assert to_do and not any(word in to_do for word in ("reward", "channel", "pay ", "price", "train on", "clip"))
        assert all(training)


@pytest.mark.slow
def test_a_fault_is_found_where_what_is_printed_is_above_its_limit() -> None:
    """`found` stood beside a statistic of 0.5 and a limit of 0.75: of half of the tasks it was 1."""
    seen = set()
    for seed in range(4):
        rng, level = np.random.default_rng(seed), (0.05, 0.3)[seed % 2]
        team = TeamWorld("harness", agents=4, events=80, kind="bernoulli")
        healthy = healthy_team(rng, team, (4, 12, 24)[seed % 3])
        for fault in sorted(FAULTS):
            planted = plant(fault, rng, healthy) or healthy
            some = 4 * int(rng.integers(1, len(healthy) // 4 + 1))  # traces of so many tasks, four each
            traces = assemble([*planted[:some], *healthy[some:]])
            for finding in examine(traces, credit.run(traces, "rloo"), level=level):
                if finding.found is None:
                    continue
                assert finding.statistic is not None
                if finding.p is not None:
                    assert finding.found == (finding.p <= level), finding
                if finding.limit is not None:
                    assert finding.found == (finding.statistic > finding.limit), finding
                seen.add((finding.check, finding.found, finding.limit is None))
    both = [name for name in CHECKS if {(name, True), (name, False)} <= {one[:2] for one in seen}]
    assert {"dominant_agent", "free_riding", "tool_spam", "idle_groups", "verdict_disagreement"} <= {*both}, both
    assert {name for name, _, by_p in seen if by_p} <= {"verifier_drift", "verifier_collusion"}


def test_facts_of_groups_are_named(tmp_path: Path) -> None:
    lines = [one(i, i // 4, evidence={"policy_version": int(i == 0)}) for i in range(40)]
    for i in (0, 1, 2, 3):
        lines[i]["rewards"] = {"team": 0.0}
    lines[39]["rewards"] = {"team": 1000.0}
    findings = found(read(tmp_path, *lines))
    assert findings["mixed_groups"].words == "1 of 10 groups: q0 has policy versions 0, 1"
    assert findings["idle_groups"].words == "1 of 10 groups: outcomes are equal in 1"
    assert findings["idle_groups"].found is False
    assert findings["exploding_advantages"].traces[0] == "t39"


@pytest.mark.slow
def test_verdicts_that_rise_are_found_and_others_not(tmp_path: Path) -> None:
    def lines(rising: bool, count: int) -> list[dict[str, Any]]:
        rng = np.random.default_rng(3)
        drawn = rng.random(count)
        return [
            one(i, i // 4, evidence={"policy_version": i // 4}) | {"rewards": {
                "team": float(i % 2), "judge": float(drawn[i] < (i / count if rising else 0.5))}}
            for i in range(count)
        ]  # fmt: skip

    logs = (lines(False, 280), lines(True, 160), lines(False, 160))
    plain, rising, few = (found(read(tmp_path, *log))["verifier_drift"] for log in logs)
    assert plain.found is False and rising.found and "rises with policy_version" in rising.words
    few_words = "none found in 80 traces of one kind, failed or not, and fewer than 120 often hide one"
    assert few.found is None and few.words == few_words


@pytest.mark.parametrize("graded", [False, True])
def test_verdicts_are_of_traces_that_failed_in_the_words_of_the_summary(graded: bool, tmp_path: Path) -> None:
    """All traces below the greatest outcome failed here, where a summary of the log had a cut for each task."""

    def line(number: int) -> dict[str, Any]:
        task, run = divmod(number, 8)
        outcome = task % 2 + run / 8 if graded else float(run > 3)
        rewards = {"team": outcome, "judge": task / 12 + float(run % 2) if run < 4 else 0.5 + (-1) ** run / 9}
        who = "b" if run % 2 else "a"
        events = [event("e0", "message", "a", 0), event("e1", "message", who, 1)]
        return one(number, task, events=events, edges=[], evidence={"policy_version": task}) | {"rewards": rewards}

    traces = read(tmp_path, *map(line, range(96)))
    judged, kind = judged_traces(traces), "worse" if graded else "failed"
    which = " (than others of their task)" if graded else ""
    assert judged.kinds[0] == kind and judged.failed[:96].reshape(12, 8).tolist() == [[True] * 4 + [False] * 4] * 12
    favoured, rising = (found(traces)[f"verifier_{check}"] for check in ("collusion", "drift"))
    assert favoured.found and favoured.words == f"judge is higher on {kind} traces{which} of agent b"
    assert rising.words == f"judge of traces that {'did ' * graded}{kind}{which} rises with policy_version"
    assert not judged.succeeded[collusion(traces).rows].any() and not judged.succeeded[drift(traces).rows].any()


def test_tasks_with_more_failed_traces_count_more_for_drift(tmp_path: Path) -> None:
    """The sums of residuals are −2, −1/2, 0, 1/2, 2, so r = 9 / √(10 · 8.5); of their means it is 3 / √10."""
    passed = [(0, 0, 0, 0), (0,), (0, 1), (1,), (1, 1, 1, 1)]
    rows = [(task, verdict, 0.0) for task, verdicts in enumerate(passed) for verdict in verdicts] + [(4, 1, 1.0)]
    lines = [
        one(i, task, evidence={"policy_version": task}) | {"rewards": {"team": outcome, "judge": float(verdict)}}
        for i, (task, verdict, outcome) in enumerate(rows)
    ]
    finding = found(read(tmp_path, *lines))["verifier_drift"]
    assert finding.statistic == pytest.approx(9 / 85**0.5)


NUMBERS = np.random.default_rng(7)
AMOUNTS = {
    "halves": np.repeat([0.0, 1.0], 4),
    "a third": np.repeat([0.0, 1.0], [5, 3]),
    "three values": np.array([0.0, 0, 0, 1, 1, 2, 2, 2]),
    "any": NUMBERS.normal(size=8),
    "one far off": np.array([0.1, 0.4, 0.2, 0.7, 0.3, 0.9, 0.5, 40.0]),
}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("amount", AMOUNTS.values(), ids=AMOUNTS.keys())
def test_the_test_for_drift_is_right_over_every_order_of_the_tasks(amount: np.ndarray, tied: bool) -> None:
    """Over all 40,320 orders of eight tasks: a small p is hardly below the part of orders that are as far off.

    By Student's distribution, that of halves was a sixth of it: 0.0047 of 0.029.
    """
    time = np.array([0, 1, 1, 2, 3, 5, 5, 900.0]) if tied else np.arange(8.0)
    rank = np.array([1, 2.5, 2.5, 4, 5, 6.5, 6.5, 8]) if tied else np.arange(8) + 1.0
    drawn = amount[np.array(list(itertools.permutations(range(8))))]
    off = np.abs((drawn - amount.mean()) @ (rank - rank.mean())).round(9)
    _, first, size = np.unique(off, return_index=True, return_counts=True)
    true = size[::-1].cumsum()[::-1] / len(off)
    some = np.unique(np.linspace(0, len(first) - 1, 100).astype(int))
    found = [_trend(time, drawn[row]) for row in first[some]]
    ratio = np.array([p for _, p in found]) / true[some]
    assert (ratio[true[some] < 0.1] > 0.85).all() and (ratio > 0.35).all()
    assert [r for r, _ in found] == pytest.approx([np.corrcoef(rank, drawn[row])[0, 1] for row in first[some]])


def test_the_test_for_collusion_is_right_where_agent_and_verdict_are_rare(tmp_path: Path) -> None:
    """The agent is in one of eight failed traces of a task, and the verifier passes one: in four of five tasks, that
    one. Chance does as much in 0.11 % of cases; a normal test said 0.005 %."""
    rows = [(task, trace) for task in range(5) for trace in range(8)]
    lines = [
        one(i, task) | {"rewards": {"team": 0.0, "judge": float(trace == (1 if task == 4 else 0))},
                        "model": "rare" if trace == 0 else "common", "group": f"g{task}"}
        for i, (task, trace) in enumerate(rows)
    ]  # fmt: skip
    lines += [one(99, 9) | {"rewards": {"team": 1.0, "judge": 1.0}, "model": "common"}]
    found = collusion(read(tmp_path, *lines))
    chance = sum(math.comb(5, k) * (1 / 8) ** k * (7 / 8) ** (5 - k) for k in (4, 5))
    assert found.p == pytest.approx(2 * chance)  # two models were looked at


def of_two_versions(rng: np.random.Generator, favours: str = "") -> Traces:
    """Forty tasks, three to six runs of each version. The later one has another checker and calls agent b more often.
    The checker knows version and outcome alone, or passes what `favours` took part in."""
    records = []
    for task, version in itertools.product(range(40), (0, 1)):
        for run in range(int(rng.integers(3, 7))):
            who, good = "b" if rng.random() < (0.2, 0.6)[version] else "a", rng.random() < 0.4
            passes = good or rng.random() < (0.2, 0.9)[version] or who == favours
            rewards = {"team": float(good), "checker": float(passes)}
            record = TraceRecord(f"{task}-{version}-{run}", f"q{task}", "x", instances={"a": Agent(), "b": Agent()},
                                 rewards=rewards, system=f"v{version}")  # fmt: skip
            record.evidence = {"policy_version": 40 * version + task}
            for agent in {"a", who}:
                record.event(f"e{agent}", EventType.MESSAGE, agent, action=True)
            records.append(record)
    return assemble(records)


@pytest.mark.slow
def test_a_checker_that_changed_with_the_version_favours_no_agent_that_came_with_it() -> None:
    """`verifier_collusion` was found in nearly all such logs, and drift: runs of both versions were compared."""
    rng, draws = np.random.default_rng(5), 100
    worlds = [of_two_versions(rng) for _ in range(draws)]
    assert sum(collusion(world).p <= 0.05 for world in worlds) <= 0.08 * draws
    assert sum(drift(world).p <= 0.05 for world in worlds) <= 0.08 * draws
    favoured = [collusion(of_two_versions(rng, "b")) for _ in range(20)]
    assert sum(one.p <= 0.05 and one.words.endswith("of agent b") for one in favoured) >= 18


def test_an_agent_that_is_in_all_traces_of_a_version_cannot_be_told_from_it(tmp_path: Path) -> None:
    rows = [(task, run) for task in range(8) for run in range(6)]
    lines = [
        one(i, task, events=[event("e", "message", "ab"[run % 2], 0)], edges=[], system="ab"[run % 2])
        | {"rewards": {"team": float(run > 3), "judge": float(run % 2)}}
        for i, (task, run) in enumerate(rows)
    ]  # fmt: skip
    told = collusion(read(tmp_path, *lines))
    assert np.isnan(told.p)
    assert (
        told.words == "no agent or model is in some failed traces and not in others of 5 tasks, of one system and model"
    )
    alike = collusion(read(tmp_path, *(line | {"system": "a"} for line in lines)))
    assert alike.p < 0.01 and alike.words == "judge is higher on failed traces of agent b"


def test_no_order_of_few_tasks_is_rarer_than_it_is() -> None:
    assert _trend(np.arange(5), np.arange(5.0))[1] == pytest.approx(2 / 120, rel=0.1)
    assert _trend(np.arange(8), AMOUNTS["halves"])[1] == pytest.approx(2 / 70, rel=0.1)
    assert np.isnan(_trend(np.arange(7), np.full(7, 0.1))).all()


def test_the_level_and_the_batch_are_checked(tmp_path: Path) -> None:
    traces = read(tmp_path, one(0, 0), one(1, 0))
    with pytest.raises(CreditError, match="level is 2"):
        examine(traces, level=2)
    _, _, rows = credit.from_columns(group=["q"] * 900, trace=["a"] * 900, reward=[1.0] * 900)
    with pytest.raises(CreditError, match="credit has shape"):
        examine(traces, credit.run(rows, "discounted_return"))


@pytest.mark.parametrize(
    ("groups", "rewards", "words"),
    [("qr", {"team": 1.0}, "each trace is alone"), ("qq", {}, "no trace has an outcome")],
)
def test_single_runs_and_logs_without_outcomes_have_no_idle_groups(
    groups: str, rewards: dict[str, float], words: str
) -> None:
    records = [TraceRecord(f"t{i}", q, "x", instances={"a": Agent()}, rewards=rewards) for i, q in enumerate(groups)]
    for record in records:
        record.event("e", EventType.MESSAGE, "a", action=True)
    finding = next(finding for finding in examine(assemble(records)) if finding.check == "idle_groups")
    assert finding.found is None and finding.words.startswith(words)


@pytest.mark.parametrize("trains", [False, True])
def test_groups_of_which_people_labelled_one_trace_teach_nothing_to_trainers_alone(trains: bool) -> None:
    """ "45 of 64 groups: fewer than two traces with an outcome" was found in each log of which people rate a part."""
    records = []
    for i in range(40):
        rewards = {"team": float(i % 4)} if i < 8 or i % 4 == 0 else {}
        record = TraceRecord(f"t{i}", f"q{i // 4}", "x", instances={"a": Agent()}, rewards=rewards)
        record.event("e", EventType.MESSAGE, "a", action=True)
        if trains:
            record.evidence["policy_version"] = 1
        records.append(record)
    finding = next(finding for finding in examine(assemble(records)) if finding.check == "idle_groups")
    assert (finding.found, finding.tasks) == ((True, 10) if trains else (False, 2))
    if not trains:
        alone = next(one for one in examine(assemble(records[8:])) if one.check == "idle_groups")
        assert alone.found is None and alone.words.startswith("no two runs of one task under one policy have an")


def test_each_check_has_a_planted_fault() -> None:
    assert FAULTS.keys() == CHECKS.keys()


@pytest.mark.slow
def test_planted_faults_are_found_in_worlds_of_another_seed() -> None:
    *_, (_, trials) = doctor_trials(5, worlds=2, agents=(3, 9), events=(60, 120))
    assert sum(trial.false_alarms for trial in trials) == 0
    missed = {trial.check for trial in trials if trial.found < trial.planted}
    assert len(missed) <= 1, missed


def test_logs_with_a_planted_fault_are_read_whole_where_agents_start_late() -> None:
    rng = np.random.default_rng(0)
    for form in ("centralized", "swarm", "hierarchical", "harness"):
        records = healthy_team(rng, TeamWorld(form, agents=9, events=130, kind="bernoulli"), 2)
        for fault in FAULTS:
            planted = plant(fault, rng, records)
            noted = {"several-versions"} if fault == "mixed_groups" else set()
            assert planted is None or {problem.kind for problem in assemble(planted).problems} <= noted, (form, fault)
