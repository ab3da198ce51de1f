"""One session: its events, edges, tokens, texts, places and times."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from credit.reports.endings import endings
from credit.sides.chosen_sides import Sides
from graphs.event_graph import EventType
from graphs.logs import read
from graphs.logs.read_logs import raw_record
from graphs.traces.record import TraceRecord

from .logs import SESSION, Log, column, edges, files, inline, items, only, task, text, use


def test_events_of_an_inline_session(tmp_path: Path) -> None:
    record = only(inline().write(tmp_path / "x.jsonl"))
    found = [
        (event_id, EventType(kind).name.lower(), agent, action)
        for event_id, kind, agent, action in zip(record.ids, record.types, record.agents, record.actions, strict=True)
    ]
    assert found == [
        ("u0-None", "human_intervention", "main", False),
        ("c1", "orchestrator_decision", "main", True),
        ("t1", "spawn", "main", False),
        ("t2", "spawn", "main", False),
        ("t3", "tool_call", "main", False),
        ("l1", "message", "t1", True),
        ("x1", "tool_call", "t1", False),
        ("x1.result", "tool_result", "t1", False),
        ("l2", "message", "t1", True),
        ("r1", "message", "t2", True),
        ("x2", "tool_call", "t2", False),
        ("x2.result", "tool_result", "t2", False),
        ("r2", "message", "t2", True),
        ("t3.result", "tool_result", "main", False),
        ("t2.return", "return", "t2", False),
        ("t1.return", "return", "t1", False),
        ("c2", "orchestrator_decision", "main", True),
    ]
    agents = {name: (agent.role, agent.parent) for name, agent in record.instances.items()}
    assert agents == {"main": ("main", ""), "t1": ("explorer", "main"), "t2": ("reader", "main")}
    assert (record.trace_id, record.group_id, record.rewards) == (SESSION, SESSION, {})


def test_edges_of_an_inline_session(tmp_path: Path) -> None:
    record = only(inline().write(tmp_path / "x.jsonl"))
    assert edges(record) == {
        ("u0-None", "c1", "causal"),
        ("c1", "t1", "causal"),
        ("c1", "t2", "causal"),
        ("c1", "t3", "tool_dependency"),
        ("t1", "l1", "spawn"),
        ("l1", "x1", "tool_dependency"),
        ("x1", "x1.result", "return"),
        ("x1.result", "l2", "causal"),
        ("l1", "l2", "temporal"),
        ("l2", "t1.return", "causal"),
        ("t2", "r1", "spawn"),
        ("r1", "x2", "tool_dependency"),
        ("x2", "x2.result", "return"),
        ("x2.result", "r2", "causal"),
        ("r1", "r2", "temporal"),
        ("r2", "t2.return", "causal"),
        ("t3", "t3.result", "return"),
        ("t3.result", "c2", "causal"),
        ("t2.return", "c2", "return"),
        ("t1.return", "c2", "return"),
        ("c1", "c2", "temporal"),
    }


def test_a_call_counts_its_tokens_once(tmp_path: Path) -> None:
    record = only(inline().write(tmp_path / "x.jsonl"))
    tokens = dict(zip(record.ids, column(record, "tokens"), strict=True))
    assert {name: count for name, count in tokens.items() if count is not None} == {
        "c1": 5, "c2": 7, "l1": 1, "l2": 1, "r1": 1, "r2": 1,
    }  # fmt: skip
    assert dict(zip(record.ids, column(record, "input_tokens"), strict=True))["c1"] == 111


def test_text_columns(tmp_path: Path) -> None:
    record = only(inline().write(tmp_path / "x.jsonl"))
    at = {event_id: i for i, event_id in enumerate(record.ids)}
    assert column(record, "to")[at["t1"]] == "t1" and column(record, "to")[at["t1.return"]] == "main"
    assert column(record, "tool")[at["x1"]] == column(record, "tool")[at["x1.result"]] == "Bash"
    assert column(record, "status")[at["t3.result"]] == "error"
    assert column(record, "status")[at["x1.result"]] is None


def test_a_call_that_a_person_declined_is_no_error(tmp_path: Path) -> None:
    """Triage named the tool as failing."""
    no = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    contents = (no, [{"type": "text", "text": no}], "Exit code 1", [{"type": "text", "text": "no such file"}])
    log = Log()
    log.human("go")
    for number, content in enumerate(contents):
        log.reply(f"m{number}", use(f"t{number}"))
        log.result(f"t{number}", error=True, content=content)
    record = only(log.write(tmp_path / "s.jsonl"))
    assert [status for status in column(record, "status") if status] == ["declined", "declined", "error", "error"]


def test_places_and_times(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    record = only(main)
    place = {name: (record.files[i], record.lines[i], record.offsets[i]) for i, name in enumerate(record.ids)}
    for name, path, line in (("c1", main, 2), ("c2", main, 5), ("k1", child, 2), ("x1.result", child, 3)):
        start = sum(len(part) for part in path.read_bytes().splitlines(keepends=True)[: line - 1])
        assert place[name] == (str(path), line, start)
    traces = read(main)
    calls = dict(zip(traces.events["event"].to_pylist(), range(traces.sizes.events), strict=True))
    assert json.loads(raw_record(traces, calls["k2"]))["message"]["id"] == "k2"
    assert [float(t) for t in traces.graph.time[: traces.sizes.events]] == [60 * m for m in (0, 1, 1, 1, 1, 2, 3, 3, 4)]


def test_compaction_is_no_agent_and_no_event(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    before = only(main).ids
    compaction = Log(agent="acompact-1")
    compaction.human("Your task is to create a summary")
    compaction.reply("z1", text())
    compaction.write(child.parent / "agent-acompact-1.jsonl")
    summary = Log()
    summary.human("This session is being continued", isCompactSummary=True, uuid="s")
    with main.open("a") as file:
        file.write(json.dumps(summary.lines[0]) + "\n")
    assert only(main).ids == before
    assert only(main).metrics == {"unlogged_calls": 1}  # of the model that wrote the summary, for sums of tokens


def test_what_the_harness_says_is_no_event_but_a_call_that_the_api_refused(tmp_path: Path) -> None:
    log = Log()
    log.human("hello")
    log.human("caveat", isMeta=True)
    log.reply("c1", text())
    line = log.reply("e1", text("API Error"))
    line["message"]["model"] = "<synthetic>"
    log.reply("e2", text("API Error"), isApiErrorMessage=True)
    log.lines += [
        {"type": "summary", "summary": "x", "leafUuid": "y"},
        {"type": "system", "subtype": "compact_boundary", "uuid": "z", "sessionId": SESSION},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "of a later version", "uuid": "zz"},
    ]
    record = only(log.write(tmp_path / "x.jsonl"))
    assert record.ids == ["u0-None", "c1", "e2"]
    assert record.columns["status"] == [None, None, "error"]


@pytest.mark.parametrize(
    ("words", "error", "limited"),
    [
        ("API Error: 529 Overloaded", True, False),
        ("API Error: Rate limit reached", True, False),
        ("Claude AI usage limit reached|1767610800", False, True),
        ("You've hit your weekly limit · resets 3pm", False, True),
        ("Prompt is too long", False, True),
    ],
)
def test_a_session_that_the_api_ended_says_so(tmp_path: Path, words: str, error: bool, limited: bool) -> None:
    """Sessions that died of an overloaded API, or at the limit of a plan, looked like any other."""
    log = Log()
    log.human("hello")
    log.reply("c1", text())
    log.reply("e1", text(words), isApiErrorMessage=True)
    log.human("still there?")
    record = only(log.write(tmp_path / "x.jsonl"))
    assert (record.error, "ended_at_limit" in record.metrics) == (words if error else "", limited)
    found = endings(read(tmp_path / "x.jsonl"))
    assert [one.traces for one in found] == [1] and ("error of the API" in found[0].words) == error
    log.reply("c2", text())  # a second try went on
    record = only(log.write(tmp_path / "y.jsonl"))
    assert not record.error and not record.metrics


def test_a_result_written_before_its_call_stands_behind_it(tmp_path: Path) -> None:
    log = Log()
    log.result("x1")
    log.reply("c1", use("x1"))
    log.reply("c2", text())
    record = only(log.write(tmp_path / "x.jsonl"))
    assert record.ids == ["c1", "x1", "x1.result", "c2"]
    assert ("x1.result", "c2", "causal") in edges(record)


def test_clocks_that_run_backwards_change_nothing(tmp_path: Path) -> None:
    log = inline()
    before = only(log.write(tmp_path / "x.jsonl"))
    clocks = [line["timestamp"] for line in log.lines]
    random.Random(0).shuffle(clocks)
    for line, clock in zip(log.lines, clocks, strict=True):
        line["timestamp"] = clock
    after = only(log.write(tmp_path / "x.jsonl"))
    assert after.ids == before.ids and edges(after) == edges(before)


def test_a_line_written_twice_counts_once(tmp_path: Path) -> None:
    log = inline()
    before = only(log.write(tmp_path / "x.jsonl")).ids
    log.lines.append(log.lines[-1])
    assert only(log.write(tmp_path / "x.jsonl")).ids == before


def test_a_session_takes_its_name_from_the_file_where_lines_disagree(tmp_path: Path) -> None:
    log = inline()
    log.lines[0]["sessionId"] = "an older one"
    assert only(log.write(tmp_path / f"{SESSION}.jsonl")).trace_id == SESSION
    assert only(log.write(tmp_path / "other.jsonl")).trace_id == "an older one"


def test_a_count_written_while_streaming_is_absent(tmp_path: Path) -> None:
    log = Log()
    log.human("go")
    for name, counts, stops in (
        ("early", (1, 1), (None, None)),
        ("grown", (1, 441), (None, None)),
        ("final", (28, 28), (None, "end_turn")),
        ("one", (9,), (None,)),
    ):
        for count, stop in zip(counts, stops, strict=True):
            log.reply(name, text(), out=count)["message"]["stop_reason"] = stop
    record = only(log.write(tmp_path / "x.jsonl"))
    tokens = dict(zip(record.ids, column(record, "tokens"), strict=True))
    assert {name: tokens[name] for name in ("early", "grown", "final", "one")} == {
        "early": None, "grown": 441, "final": 28, "one": None,
    }  # fmt: skip
    assert column(record, "input_tokens")[1:] == [111] * 4


def test_clear_begins_a_trace_of_its_own(tmp_path: Path) -> None:
    """What a model did without any of the earlier context was compared as the same run."""
    cleared = "<command-name>/clear</command-name>\n<command-message>clear</command-message>"
    log = Log()
    log.human(cleared)
    log.reply("c1", task("t1", "look"))
    log.human("look", side=True, root=True)
    log.reply("k1", text(), side=True)
    log.result("t1")
    log.human(f"what does {cleared} do?")
    log.human(cleared, root=True)
    log.reply("c2", use("x1"))
    log.result("x1")
    log.human(cleared, root=True)
    records = items(log.write(tmp_path / "s.jsonl"))
    assert all(isinstance(record, TraceRecord) for record in records)
    found = {r.trace_id: (r.ids, list(r.instances)) for r in records if isinstance(r, TraceRecord)}
    assert found == {
        SESSION: (["u0-None", "c1", "t1", "k1", "t1.return", "u5-None"], ["main", "t1"]),
        f"{SESSION}/clear-1": (["u6-None", "c2", "x1", "x1.result", "u9-None"], ["main"]),
    }


def test_the_version_that_a_session_states_is_a_side(tmp_path: Path) -> None:
    """Releases of Claude Code could not be compared without a table that says of which each session is."""
    for number, stated in enumerate((["2.1.39", "2.1.40"], ["2.0.9"], ["2.0.9"], [7], [])):
        log = Log()
        log.human("go")
        for k, version in enumerate(stated):
            log.reply(f"c{k}", text(), version=version)
        log.lines = [line | {"sessionId": f"s{number}"} for line in log.lines]
        log.write(tmp_path / f"s{number}.jsonl")
    traces = read(tmp_path)
    assert traces.traces["system"].to_pylist() == ["claude-code 2.1.39", *["claude-code 2.0.9"] * 2, None, None]
    _, sides = Sides.joined("system=claude-code 2.0.9,claude-code 2.1.39", traces)
    assert sides is not None and sides.side.tolist() == [1, 0, 0, -1, -1]
    assert Sides.joined("system", traces)[1] is not None
