"""Reading Claude Code sessions: calls, effects, agents inline and in files of their own, and what is refused."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphs.errors import NothingReadError, Problem
from graphs.event_graph import EdgeType, EventType
from graphs.readers import read
from graphs.readers.claude_code import read as read_claude
from graphs.readers.claude_code import sniff
from graphs.readers.source import Source
from graphs.record import TraceRecord

Line = dict[str, Any]
SESSION = "s-1"


class Log:
    """Lines of one file, each hanging on the one before it in its thread."""

    def __init__(self, *, agent: str | None = None) -> None:
        self.lines: list[Line] = []
        self.agent = agent
        self.last: dict[bool, str | None] = {False: None, True: None}

    def add(self, kind: str, message: Any, *, side: bool = False, root: bool = False, **more: Any) -> Line:
        uuid = f"u{len(self.lines)}-{self.agent}"
        line: Line = {
            "parentUuid": None if root else self.last[side],
            "isSidechain": side or self.agent is not None,
            "sessionId": SESSION,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-02-01T{len(self.lines) // 60 % 24:02d}:{len(self.lines) % 60:02d}:00.500Z",
            "message": message,
        }
        if self.agent is not None:
            line["agentId"] = self.agent
        self.last[side] = uuid
        self.lines.append(line | more)
        return self.lines[-1]

    def human(self, text: str, **more: Any) -> Line:
        return self.add("user", {"role": "user", "content": text}, **more)

    def reply(self, name: str, *blocks: Any, out: int = 1, **more: Any) -> Line:
        usage = {
            "input_tokens": 1,
            "cache_read_input_tokens": 10,
            "cache_creation_input_tokens": 100,
            "output_tokens": out,
        }
        message = {"id": name, "model": "m", "role": "assistant", "content": list(blocks), "usage": usage}
        return self.add("assistant", message, **more)

    def result(self, use: str, *, error: bool = False, **more: Any) -> Line:
        block = {"type": "tool_result", "tool_use_id": use, "content": "x", "is_error": error}
        return self.add("user", {"role": "user", "content": [block]}, **more)

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return path


def text(words: str = "hm") -> Line:
    return {"type": "text", "text": words}


def use(use_id: str, name: str = "Bash", **given: Any) -> Line:
    return {"type": "tool_use", "id": use_id, "name": name, "input": given}


def task(use_id: str, prompt: str, role: str = "explorer") -> Line:
    return use(use_id, "Task", prompt=prompt, subagent_type=role)


def inline() -> Log:
    """A session that starts two agents at once, whose lines interleave, and a third start that is refused."""
    log = Log()
    log.human("do it")
    log.reply("c1", text(), out=3)
    log.reply("c1", task("t1", "look left"), out=5)
    log.reply("c1", task("t2", "look right", "reader"), out=4)
    log.reply("c1", task("t3", "look up"))
    log.human("look right", side=True, root=True)
    right = log.lines[-1]["uuid"]
    log.human("look left", side=True, root=True)
    left = log.lines[-1]["uuid"]
    log.reply("r1", use("x2"), side=True, parentUuid=right)
    log.reply("l1", use("x1"), side=True, parentUuid=left)
    a = log.lines[-2]["uuid"]
    b = log.lines[-1]["uuid"]
    log.result("x1", side=True, parentUuid=b)
    c = log.lines[-1]["uuid"]
    log.result("x2", side=True, parentUuid=a)
    log.reply("r2", text("right"), side=True)
    log.reply("l2", text("left"), side=True, parentUuid=c)
    log.result("t3", error=True, toolUseResult="InputValidationError")
    log.result("t2", toolUseResult={"totalTokens": 9})
    log.result("t1", toolUseResult={"totalTokens": 9})
    log.reply("c2", text("done"), out=7)
    return log


def files(folder: Path) -> tuple[Path, Path]:
    """A session with one sub-agent in a file of its own."""
    log = Log()
    log.human("do it")
    log.reply("c1", task("t1", "look"))
    progress = {"type": "agent_progress", "agentId": "a7", "prompt": "look"}
    log.lines.append({"type": "progress", "uuid": "p", "sessionId": SESSION, "parentToolUseID": "t1", "data": progress})
    log.result("t1", toolUseResult={"agentId": "a7", "status": "completed"})
    log.reply("c2", text("done"))
    child = Log(agent="a7")
    child.human("look")
    child.reply("k1", use("x1"), out=2)
    child.result("x1")
    child.reply("k2", text("seen"), out=2)
    main = log.write(folder / f"{SESSION}.jsonl")
    return main, child.write(folder / SESSION / "subagents" / "agent-a7.jsonl")


def items(*paths: Path) -> list[TraceRecord | Problem]:
    return list(read_claude([Source(str(path), path) for path in paths]))


def only(*paths: Path) -> TraceRecord:
    (record,) = items(*paths)
    assert isinstance(record, TraceRecord), record
    return record


def edges(record: TraceRecord) -> set[tuple[str, str, str]]:
    assert all(s < r for s, r in zip(record.senders, record.receivers, strict=True))
    found = [
        (record.ids[s], record.ids[r], EdgeType(kind).name.lower())
        for s, r, kind in zip(record.senders, record.receivers, record.edge_types, strict=True)
    ]
    assert len(set(found)) == len(found)
    return set(found)


def column(record: TraceRecord, name: str) -> list[Any]:
    values = record.columns.get(name, [])
    return values + [None] * (len(record.ids) - len(values))


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


def test_places_and_times(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    record = only(main)
    place = {name: (record.files[i], record.lines[i], record.offsets[i]) for i, name in enumerate(record.ids)}
    for name, path, line in (("c1", main, 2), ("c2", main, 5), ("k1", child, 2), ("x1.result", child, 3)):
        start = sum(len(part) for part in path.read_bytes().splitlines(keepends=True)[: line - 1])
        assert place[name] == (str(path), line, start)
    traces = read(main)
    calls = dict(zip(traces.events["event"].to_pylist(), range(traces.sizes.events), strict=True))
    assert json.loads(traces.raw(calls["k2"]))["message"]["id"] == "k2"
    assert [float(t) for t in traces.graph.time[: traces.sizes.events]] == [60 * m for m in (0, 1, 1, 1, 1, 2, 3, 3, 4)]


@pytest.mark.parametrize("both", [True, False])
def test_a_sub_agent_in_its_own_file(tmp_path: Path, both: bool) -> None:
    """Whether its file is among the sources or only lies in the session's folder."""
    main, child = files(tmp_path)
    record = only(*((child, main) if both else (main,)))
    assert record.ids == ["u0-None", "c1", "t1", "k1", "x1", "x1.result", "k2", "t1.return", "c2"]
    assert record.agents == ["main"] * 3 + ["a7"] * 5 + ["main"]
    assert ("t1", "k1", "spawn") in edges(record) and ("k2", "t1.return", "causal") in edges(record)
    assert record.instances["a7"].parent == "main"


def test_a_folder_gives_one_trace_for_a_session_and_its_agents(tmp_path: Path) -> None:
    files(tmp_path)
    traces = read(tmp_path)
    assert (traces.sizes.traces, traces.problems) == (1, ())


def test_a_sub_agents_file_elsewhere_is_known_by_its_lines(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    moved = child.rename(tmp_path / "moved.jsonl")
    assert "k1" in only(main, moved).ids


def test_links_by_result_alone_and_by_prompt_alone(tmp_path: Path) -> None:
    main, _ = files(tmp_path)
    lines = [json.loads(line) for line in main.read_text().splitlines()]
    by_result = [line for line in lines if line["type"] != "progress"]
    by_prompt = copy.deepcopy(by_result)
    del by_prompt[2]["toolUseResult"]
    for variant in (by_result, by_prompt):
        main.write_text("".join(json.dumps(line) + "\n" for line in variant))
        record = only(main)
        assert "k1" in record.ids and record.agents[record.ids.index("k1")] == "a7"


def test_a_dangling_spawn_has_an_agent_without_calls(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    child.unlink()
    record = only(main)
    assert record.ids == ["u0-None", "c1", "t1", "t1.return", "c2"]
    assert record.agents[3] == "a7" and record.instances["a7"].role == "explorer"
    assert {("t1", "t1.return", "spawn"), ("t1.return", "c2", "return")} < edges(record)
    assert "a7" in read(main).agents["agent"].to_pylist()


def test_an_orphan_is_named(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    main.unlink()
    (problem,) = items(child)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.file) == ("orphan-subagent", str(child))


def test_an_agent_that_nothing_started_is_named_and_the_session_reads(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    stray = Log(agent="warm")
    stray.human("Warmup")
    stray.reply("w1", text())
    path = stray.write(child.parent / "agent-warm.jsonl")
    record, problem = items(main)
    assert isinstance(record, TraceRecord) and isinstance(problem, Problem)
    assert "w1" not in record.ids and "k1" in record.ids
    assert (problem.kind, problem.file, problem.trace) == ("unlinked-subagent", str(path), SESSION)


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


def test_an_agent_that_is_woken_again(tmp_path: Path) -> None:
    log = Log()
    log.reply("c1", task("t1", "look"))
    log.result("t1", toolUseResult={"agentId": "a7"})
    log.reply("c2", task("t2", "look again"))
    log.result("t2", toolUseResult={"agentId": "a7"})
    child = Log(agent="a7")
    for round_, prompt in enumerate(("look", "look again")):
        child.human(prompt)
        child.reply(f"k{round_}", text())
    main = log.write(tmp_path / f"{SESSION}.jsonl")
    child.write(tmp_path / SESSION / "subagents" / "agent-a7.jsonl")
    record = only(main)
    assert record.ids == ["c1", "t1", "k0", "t1.return", "c2", "t2", "k1", "t2.return"]
    assert {("t2", "k1", "spawn"), ("k0", "k1", "temporal"), ("k1", "t2.return", "causal")} < edges(record)
    assert read(main).problems == ()


def test_an_agent_in_the_background_is_answered_by_a_tool_result(tmp_path: Path) -> None:
    main, _ = files(tmp_path)
    lines = [json.loads(line) for line in main.read_text().splitlines()]
    lines[3]["toolUseResult"]["status"] = "async_launched"
    main.write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = only(main)
    assert record.types[record.ids.index("t1.result")] == EventType.TOOL_RESULT
    assert EventType.RETURN not in record.types and "k1" in record.ids


def test_agents_nest_deeper_than_pythons_stack(tmp_path: Path) -> None:
    log, depth = Log(), 2_000
    log.reply("c0", task("t0", "p0"))
    for level in range(depth):
        log.human(f"p{level}", side=True, root=True)
        log.reply(f"c{level + 1}", task(f"t{level + 1}", f"p{level + 1}"), side=True)
    record = only(log.write(tmp_path / "x.jsonl"))
    assert sum(record.actions) == depth + 1
    assert len(record.instances) == depth + 1


def test_agents_that_start_each_other_in_a_ring_are_named(tmp_path: Path) -> None:
    log = Log()
    log.reply("c1", text())
    for mine, other in (("p", "q"), ("q", "p")):
        log.human(mine, side=True, root=True)
        log.reply(f"k{mine}", task(f"t{mine}", other), side=True)
    record, *problems = items(log.write(tmp_path / "x.jsonl"))
    assert isinstance(record, TraceRecord) and record.ids == ["c1"]
    assert [p.kind for p in problems if isinstance(p, Problem)] == ["unlinked-subagent"] * 2


def test_what_the_harness_says_is_no_event(tmp_path: Path) -> None:
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
    assert only(log.write(tmp_path / "x.jsonl")).ids == ["u0-None", "c1"]


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


def broken(place: tuple[Any, ...], value: Any) -> Log:
    log = inline()
    target: Any = log.lines
    for step in place[:-1]:
        target = target[step]
    if value is ...:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return log


BAD: dict[str, tuple[tuple[Any, ...], Any, str, str]] = {
    "a line that is no object": ((1,), [1], "bad-type", "content"),
    "type": ((1, "type"), 5, "bad-type", "type"),
    "no type": ((1, "type"), ..., "missing-field", "type"),
    "uuid": ((1, "uuid"), 5, "bad-type", "uuid"),
    "same uuid": ((1, "uuid"), "u0-None", "duplicate-id", "uuid"),
    "parent": ((1, "parentUuid"), 5, "bad-type", "parentUuid"),
    "session": ((1, "sessionId"), 5, "bad-type", "sessionId"),
    "agent": ((1, "agentId"), 5, "bad-type", "agentId"),
    "sidechain": ((1, "isSidechain"), "no", "bad-type", "isSidechain"),
    "meta": ((1, "isMeta"), 1, "bad-type", "isMeta"),
    "summary": ((1, "isCompactSummary"), 1, "bad-type", "isCompactSummary"),
    "api error": ((1, "isApiErrorMessage"), 1, "bad-type", "isApiErrorMessage"),
    "time": ((1, "timestamp"), 5, "bad-type", "timestamp"),
    "no time": ((1, "timestamp"), "yesterday", "bad-type", "timestamp"),
    "message": ((1, "message"), "x", "bad-type", "message"),
    "no message": ((1, "message"), ..., "missing-field", "message"),
    "no call id": ((1, "message", "id"), ..., "missing-field", "message.id"),
    "call id": ((1, "message", "id"), 5, "bad-type", "message.id"),
    "model": ((1, "message", "model"), 5, "bad-type", "message.model"),
    "content": ((1, "message", "content"), 5, "bad-type", "message.content"),
    "no content": ((1, "message", "content"), ..., "missing-field", "message.content"),
    "block": ((1, "message", "content", 0), 5, "bad-type", "message.content[0]"),
    "block type": ((1, "message", "content", 0, "type"), 5, "bad-type", "message.content[0].type"),
    "text": ((1, "message", "content", 0, "text"), 5, "bad-type", "message.content[0].text"),
    "tool id": ((2, "message", "content", 0, "id"), 5, "bad-type", "message.content[0].id"),
    "no tool id": ((2, "message", "content", 0, "id"), ..., "missing-field", "message.content[0].id"),
    "tool name": ((2, "message", "content", 0, "name"), 5, "bad-type", "message.content[0].name"),
    "no tool name": ((2, "message", "content", 0, "name"), ..., "missing-field", "message.content[0].name"),
    "usage": ((1, "message", "usage"), 5, "bad-type", "message.usage"),
    "tokens": ((1, "message", "usage", "output_tokens"), "5", "bad-type", "message.usage.output_tokens"),
    "tokens below 0": ((1, "message", "usage", "output_tokens"), -5, "out-of-range", "message.usage.output_tokens"),
    "huge tokens": ((1, "message", "usage", "input_tokens"), 2**40, "out-of-range", "message.usage.input_tokens"),
    "error flag": ((13, "message", "content", 0, "is_error"), 5, "bad-type", "message.content[0].is_error"),
    "answered id": ((13, "message", "content", 0, "tool_use_id"), 5, "bad-type", "message.content[0].tool_use_id"),
    "no answered id": (
        (13, "message", "content", 0, "tool_use_id"),
        ...,
        "missing-field",
        "message.content[0].tool_use_id",
    ),
    "unknown tool use": ((13, "message", "content", 0, "tool_use_id"), "zz", "unknown-tool-use", "tool_use_id"),
    "another agent's": ((13, "message", "content", 0, "tool_use_id"), "x1", "unknown-tool-use", "tool_use_id"),
    "answered twice": ((13, "message", "content", 0, "tool_use_id"), "t2", "duplicate-id", "events[14].id"),
    "started agent": ((14, "toolUseResult", "agentId"), 5, "bad-type", "toolUseResult.agentId"),
    "started status": ((14, "toolUseResult", "status"), 5, "bad-type", "toolUseResult.status"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_and_other_sessions_read(tmp_path: Path, name: str) -> None:
    place, value, kind, field = BAD[name]
    bad = broken(place, value).write(tmp_path / "bad.jsonl")
    good = Log()
    good.human("hello")
    for line in good.lines:
        line["sessionId"] = "good"
    traces = read(bad, good.write(tmp_path / "good.jsonl"))
    assert traces.traces["trace"].to_pylist() == ["good"]
    (problem,) = traces.problems
    expected_line = place[0] + 1 + (kind == "duplicate-id" and field != "uuid")
    assert (problem.kind, problem.field, problem.file, problem.line) == (kind, field, str(bad), expected_line)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((2, "message", "content", 0, "input"), "not an object"),
        ((2, "message", "content", 0, "input"), ...),
        ((2, "message", "content", 0, "input", "prompt"), [1]),
        ((2, "message", "content", 0, "input", "subagent_type"), 5),
    ],
)
def test_what_a_model_wrote_wrongly_is_no_fault_of_the_log(tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    read_, *rest = items(broken(place, value).write(tmp_path / "x.jsonl"))
    assert isinstance(read_, TraceRecord)
    assert [p.kind for p in rest if isinstance(p, Problem)] in ([], ["unlinked-subagent"])


def test_a_cut_line_is_named(tmp_path: Path) -> None:
    path = inline().write(tmp_path / "x.jsonl")
    path.write_bytes(path.read_bytes()[:-30])
    (problem,) = items(path)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.line) == ("bad-json", len(inline().lines))


def test_a_damaged_sub_agents_file_is_named_in_its_own_place(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    child.write_bytes(child.read_bytes()[:-30])
    (problem,) = items(main)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.file, problem.line) == ("bad-json", str(child), 4)


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ([{"type": "summary", "summary": "x", "leafUuid": "y"}], "empty-trace"),
        ([{"type": "user", "parentUuid": None, "message": {"content": "hi"}}], "missing-field"),
        ([{"type": "user", "sessionId": SESSION, "isMeta": True, "message": {"content": "hi"}}], "empty-trace"),
    ],
)
def test_files_without_a_session(tmp_path: Path, lines: list[Line], kind: str) -> None:
    log = Log()
    log.lines = lines
    path = log.write(tmp_path / "x.jsonl")
    with pytest.raises(NothingReadError) as caught:
        read(path, format="claude-code")
    assert [(problem.kind, problem.file) for problem in caught.value.problems] == [(kind, str(path))]


@pytest.mark.parametrize(
    ("head", "ours"),
    [
        (b"", False),
        (b"{}", False),
        (b"\n" * 65536, False),
        (b'{"trace_id": "a", "events": []}', False),
        (b'{"type": "summary", "summary": "x", "leafUuid": "y"}', True),
        (b'{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{"content":"cut', True),
        (b'{"broken": \n{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user"}\n', True),
        (b'{"text": "\\"parentUuid\\": 1, \\"isSidechain\\": 1, \\"sessionId\\": \\"1\\""}', False),
    ],
)
def test_sniffing(head: bytes, ours: bool) -> None:
    assert sniff(head) is ours


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


PLACES = [place for place in places(inline().lines) if place]
VALUES = st.sampled_from(
    [..., None, True, -1, 10**30, 2.5, "", "x", "t1", "u5-None", "main", "c1", [], [None], {}, {"type": "tool_use"}]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3))
def test_any_change_reads_or_is_named(tmp_path: Path, changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    log = inline()
    for place, value in changes:
        target: Any = log.lines
        try:
            for step in place[:-1]:
                target = target[step]
            if value is ...:
                del target[place[-1]]
            else:
                target[place[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    good = Log()
    good.human("hello")
    good.lines[0]["sessionId"] = "good"
    traces = read(log.write(tmp_path / "x.jsonl"), good.write(tmp_path / "good.jsonl"), format="claude-code")
    assert "good" in traces.traces["trace"].to_pylist()
    assert traces.sizes.traces == 2 or traces.problems


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(len(inline().lines))))
def test_lines_in_any_order_read_or_are_named(tmp_path: Path, order: list[int]) -> None:
    log = inline()
    log.lines = [log.lines[i] for i in order]
    for item in items(log.write(tmp_path / "x.jsonl")):
        if isinstance(item, TraceRecord):
            assert all(s < r for s, r in zip(item.senders, item.receivers, strict=True))
