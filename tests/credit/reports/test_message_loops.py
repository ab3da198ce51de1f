"""Agents who send each other the same messages again are a loop; those who vote, debate or acknowledge are none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.reports.leading_causes import leading_causes
from credit.reports.tool_calls import ToolCalls
from credit.reports.triage import triage
from graphs.logs import read
from graphs.traces.batch import Traces

ASK, ANSWER = (
    ("boss", "Answer only with the JSON object, no prose."),
    ("coder", "The plan is to read the ledger first."),
)
THIRD = ("critic", "This is not an object of JSON yet.")
CALL, FAIL, USER = ("coder", "call"), ("coder", "fail"), ("user", "go on with this, please")

Step = tuple[str, str]


def trace(number: int, steps: list[Step], text: str = "text", won: float = 0.0) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    for place, (agent, said) in enumerate(steps):
        of: dict[str, Any] = {"id": f"e{place}", "agent": agent, "type": "message", "action": True}
        of["tokens"] = 10 if len(said) > 8 else 1
        if said == "call":
            of |= {"type": "tool_call", "action": False, "tool": "sql", "arguments": {"q": place}}
        elif said == "fail":
            of |= {"status": "error", "text": "429"}
        elif text:
            of[text] = said
        events.append(of | {"action": False} if agent == "user" else of)
    agents = [{"id": name, "name": name, "role": name} for name in dict.fromkeys(agent for agent, _ in steps)]
    record = {"trace_id": f"t{number}", "task_id": f"q{number // 4}", "agents": agents, "events": events}
    return record | {"edges": [], "rewards": {"team": won}}


def logs(folder: Path, records: list[dict[str, Any]]) -> Traces:
    (folder / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    traces = read(folder)
    assert traces.problems == ()
    return traces


@pytest.mark.parametrize(
    ("steps", "agents", "times"),
    [
        ([ASK, ANSWER] * 3, ("boss", "coder"), 3),
        ([("boss", "hello"), *[ASK, ANSWER] * 5, ASK], ("boss", "coder"), 5),
        ([ASK, ANSWER, THIRD] * 4, ("boss", "coder", "critic"), 4),
        ([ASK, FAIL, ANSWER] * 3, ("boss", "coder"), 3),  # a model call that failed is no message
        ([ASK, ("coder", "ok")] * 3, ("boss", "coder"), 3),
        ([ASK, ANSWER] * 2, (), 0),
        ([step for i in range(6) for step in (ASK, ("coder", f"Part {i} of the long report."))], (), 0),
        ([("boss", "continue"), ("coder", "ok")] * 6, (), 0),
        ([("boss", ASK[1]), ("coder", ASK[1])] * 6, (), 0),  # they agree
        ([ASK, FAIL] * 5, (), 0),  # asked again after it failed
        ([ASK, CALL, ANSWER] * 5, (), 0),  # of which each call has other arguments
        ([ASK, ANSWER, USER] * 5, (), 0),
        ([ASK] * 5, (), 0),
    ],
)
def test_a_loop_of_messages_by_hand(tmp_path: Path, steps: list[Step], agents: tuple[str, ...], times: int) -> None:
    """Two agents sent each other the same two texts 4 to 7 times, and there were 0 loops."""
    for text in ("text", "content_ref"):
        traces = logs(tmp_path, [trace(0, steps, text)])
        found = [(loop.agents, loop.times) for loop in ToolCalls(traces).loops]
        assert found == ([(agents, times)] if agents else [])
        assert {row.agent for row in triage(traces).agents if row.loops} == {*agents}
    assert ToolCalls(logs(tmp_path, [trace(0, steps, "")])).loops == []


def test_a_loop_of_messages_is_a_cause_with_an_event_and_a_cost(tmp_path: Path) -> None:
    """ "actions of coordinator 3.07 against 1" stood there alone, of an agent that did nothing wrong."""
    random, records = np.random.default_rng(0), []
    for number in range(48):
        won = float(number % 2)
        looping = not won and random.random() < 0.7
        steps = [("boss", f"Do task {number} now."), *[ASK, ANSWER] * (int(random.integers(4, 8)) if looping else 1)]
        records.append(trace(number, [*steps, ("coder", f"Done with {number}, all of it.")], won=won))
    bad = sum(len(one["events"]) > 4 for one in records)
    again = sum(len(one["events"]) - 4 for one in records)
    (cause,) = leading_causes(logs(tmp_path, records))
    assert cause.words == "loop of boss and coder: the same 2 messages up to 7 times in a row"
    assert (cause.failed, cause.succeeded, cause.beyond_chance, cause.text) == (bad, 0, True, ASK[1])
    said = CliRunner().invoke(cli, ["summary", str(tmp_path)]).stdout
    assert (
        f"Loop of boss and coder: the same 2 messages up to 7 times in a row (such as: {ASK[1]}) in {bad} of 24" in said
    )
    assert re.search(r"the same 2 messages of boss and coder up to 7 times in a row", said)
    assert re.search(rf"{again} messages are in later rounds of loops; they cost .+ \({again * 10:,}\)", said)


def worlds(random: np.random.Generator, kind: str) -> list[Step]:
    """One honest trace."""
    agents = ("ann", "bob", "cid")[: int(random.integers(2, 4))]
    if kind == "poll":  # what is voted on is not logged
        return [(name, str(random.choice(["yes", "no"]))) for _ in range(8) for name in agents]
    if kind == "acknowledged":
        steps = [
            [("boss", str(random.choice(["ok", "continue"]))), ("coder", f"Part {i}: {random.random()}")]
            for i in range(9)
        ]
        return [step for pair in steps for step in pair]
    if kind == "debate":  # each keeps its answer, or takes over that of another, until all agree
        held, steps = {name: str(random.choice([*"ABCD"])) for name in agents}, []
        for _ in range(8):
            steps += [(name, f"I think the right answer here is {held[name]}.") for name in agents]
            held = {name: str(random.choice([*held.values()])) for name in agents}
        return steps
    said = [f"This is stock phrase number {i}." for i in range(6)]
    return [(agents[i % 2], str(random.choice(said))) for i in range(20)]


@pytest.mark.parametrize(("kind", "most"), [("poll", 0), ("acknowledged", 0), ("phrases", 0.05), ("debate", 0.15)])
@pytest.mark.parametrize("text", ["text", pytest.param("content_ref", marks=pytest.mark.slow)])
def test_honest_logs_have_no_loops(tmp_path: Path, kind: str, most: float, text: str) -> None:
    random = np.random.default_rng()
    records = [trace(i, worlds(random, kind), text) for i in range(300)]
    loops = ToolCalls(logs(tmp_path, records)).loops
    assert len(loops) / 300 <= most
