"""Small sessions, and what is read of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graphs.errors import Problem
from graphs.event_graph import EdgeType
from graphs.formats.claude_code import read as read_claude
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

__all__ = ["SESSION", "Line", "Log", "column", "edges", "files", "inline", "items", "only", "task", "text", "use"]

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

    def result(self, use: str, *, error: bool = False, content: Any = "x", **more: Any) -> Line:
        block = {"type": "tool_result", "tool_use_id": use, "content": content, "is_error": error}
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
