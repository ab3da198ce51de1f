"""Tools by which an agent asks a person: the result is the person's, and waiting for it is nobody's time."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from credit.metrics.cost_summary import cost_rows
from credit.reports.trace_numbers import TeamFacts
from graphs.event_types import EventType
from graphs.logs import read
from graphs.traces.batch import Traces

from ..samples import CLINE, CODEX, COPILOT, GEMINI, OPENCODE, SAMPLES
from .claude_code.logs import Log, use

ASKING = {
    "gemini-cli": (GEMINI, "read_file", "ask_user"),
    "copilot-cli": (COPILOT, "bash", "ask_user"),
    "cline": ([CLINE], "run_commands", "ask_followup_question"),
    "codex": (CODEX, "shell", "request_user_input"),
    "opencode": ([OPENCODE], "bash", "question"),
}
"""Of each format a log, a tool in it, and a tool by which its agents ask."""


def kinds(traces: Traces) -> list[str]:
    return [EventType(kind).name.lower() for kind in traces.graph.event_type[: traces.sizes.events].tolist()]


@pytest.mark.parametrize("name", ASKING)
def test_the_result_of_a_tool_that_asks_is_a_persons(name: str, tmp_path: Path) -> None:
    values, tool, asking = ASKING[name]
    sample = next(sample for sample in SAMPLES.values() if sample.values == values or list(sample.values) == values)
    plain = read(sample.write(tmp_path / "plain"))
    asked = json.loads(json.dumps(values).replace(f'"{tool}"', f'"{asking}"'))
    log = tmp_path / "asked" / sample.file
    log.parent.mkdir()
    log.write_text("\n".join(json.dumps(value) for value in asked))
    traces = read(log)
    assert kinds(traces) == [kind.replace("tool_result", "human_intervention") for kind in kinds(plain)]
    assert "tool_result" in kinds(plain) and traces.graph.senders.tolist() == plain.graph.senders.tolist()


def test_waiting_for_an_answer_is_nobodys_time(tmp_path: Path) -> None:
    log = Log()
    log.human("go", timestamp="2026-01-01T00:00:00Z")
    for number, tool in enumerate(("AskUserQuestion", "Bash")):
        log.reply(f"m{number}", use(f"t{number}", tool), timestamp=f"2026-01-01T00:0{2 * number}:05Z")
        log.result(f"t{number}", timestamp=f"2026-01-01T00:0{2 * number + 1}:05Z")
    traces = read(log.write(tmp_path / "s.jsonl"))
    assert [row.seconds.total for row in cost_rows(traces, "tool")] == [65, 0, 60]
    assert TeamFacts(traces).durations.wall.tolist() == [125]


def test_a_call_of_several_blocks_ends_with_the_last_one_before_its_tools(tmp_path: Path) -> None:
    """Each block is a line, written when it was there."""
    log = Log()
    log.human("go", timestamp="2026-01-01T00:00:00Z")
    for second, block in ((3, {"type": "thinking", "thinking": "x"}), (4, use("t")), (9, use("u"))):
        log.reply("m", block, timestamp=f"2026-01-01T00:00:0{second}Z")
    log.result("t", timestamp="2026-01-01T00:00:06Z")
    log.result("u", timestamp="2026-01-01T00:00:11Z")
    traces = read(log.write(tmp_path / "s.jsonl"))
    found = TeamFacts(traces).durations
    assert found.event.tolist() == [0, 4 + 3, 0, 0, 2, 2] and found.wall.tolist() == [11]


def test_opencode_states_when_a_tool_began_and_a_message_was_complete(tmp_path: Path) -> None:
    session = copy.deepcopy(OPENCODE)
    last = {"id": "msg_3", "role": "assistant", "time": {"created": 3100, "completed": 4600}, "modelID": "m"}
    session["messages"].append({"info": last, "parts": [{"id": "prt_5", "type": "text", "text": "done"}]})
    (tmp_path / "s.json").write_text(json.dumps(session))
    traces = read(tmp_path / "s.json")
    found = TeamFacts(traces).durations
    # A call from 2 on, whose tool runs from 2.5 to 3; one from 3.1 to 4.6.
    assert found.event.tolist() == pytest.approx([0, 1 + 0.5, 0, 0.5, 1.5])
    assert found.wall.tolist() == pytest.approx([3.6])


def test_codex_writes_each_item_when_it_is_complete(tmp_path: Path) -> None:
    traces = read(SAMPLES["codex"].write(tmp_path))
    # A text at 1; reasoning at 2 and a call at 3, whose output is at 4; a message at 5.
    assert TeamFacts(traces).durations.event.tolist() == [0, 2, 0, 1, 1]
