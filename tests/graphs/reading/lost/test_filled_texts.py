"""Bytes that are no text refuse the line that they stand in, also where no decoder looks: they may swallow lines."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from .test_lost_parts import asked, event, feedback, observation, run, score, sdk_span
from .test_torn_lines import of_traces

LONG = "x" * 60


def _native(i: int) -> dict[str, Any]:
    events = [{"id": "e", "type": "message", "agent": "a"}]
    return {"trace_id": f"r{i}", "task_id": "q", "note": LONG, "events": events, "rewards": {"team": i}}


def _span(i: int) -> dict[str, Any]:
    given = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    span = {"traceId": f"{i // 2 + 1:032x}", "spanId": f"{i + 1:016x}", "name": "c", "startTimeUnixNano": str(i + 1)}
    return {"resourceSpans": [{"note": LONG, "scopeSpans": [{"spans": [span | {"attributes": given}]}]}]}


def _dumped(i: int) -> dict[str, Any]:
    given = {"gen_ai.operation.name": "chat"}
    return {"trace_id": f"{i // 2 + 1:032x}", "span_id": f"{i + 1:016x}", "name": "c", "kind": LONG, "start_time": i,
            "attributes": given}  # fmt: skip


def _session(i: int) -> dict[str, Any]:
    kind = "assistant" if i % 2 else "user"
    content = [{"type": "text", "text": LONG}] if i % 2 else LONG
    message = {"role": kind, "content": content, "id": f"m{i}", "usage": {"output_tokens": 100 + i}}
    return {"type": kind, "uuid": f"u{i}", "parentUuid": f"u{i - 1}" if i else None, "sessionId": "s", "note": LONG,
            "isSidechain": False, "userType": "external",
            "timestamp": f"2026-01-01T00:00:{i:02d}Z", "message": message}  # fmt: skip


LOGS: dict[str, list[dict[str, Any]]] = {
    "native": [_native(i) for i in range(5)],
    "otlp": [_span(i) for i in range(6)],
    "span dump": [_dumped(i) for i in range(6)],
    "langsmith": [
        part for t in "AB" for part in (run(f"{t}1", t, inputs={"x": LONG}), run(f"{t}2", t, f"{t}1", inputs=LONG),
                                        feedback("q", 1.0, f"{t}1") | {"note": LONG})
    ],
    "langfuse": [
        part for t in "AB" for part in (observation(f"{t}1", t) | {"output": LONG},
                                        observation(f"{t}2", t, f"{t}1") | {"output": LONG}, score("q", 1.0, t))
    ],
    "openai": [sdk_span(f"{t}{i}", t, f"{t}0" if i else None) | {"error": LONG} for t in "AB" for i in range(3)],
    "agent lightning": [
        part for r in "AB" for part in (asked(r), event("reward", r, value=0.0, note=LONG),
                                        asked(r) | {"note": LONG}, event("reward", r, value=1.0, note=LONG))
    ],
    "verl": [
        {"input": f"p{i // 2}", "output": f"o{i}", "gts": LONG, "score": i / 8, "step": 1, "uid": f"u{i // 2}"}
        for i in range(6)
    ],
    "claude code": [_session(i) for i in range(6)],
}  # fmt: skip


@pytest.mark.parametrize("fill", [b"\xff", b"\xc3", b"\x80"], ids=repr)
@pytest.mark.parametrize("name", LOGS)
def test_no_line_is_swallowed_by_bytes_that_are_no_text(tmp_path: Path, name: str, fill: bytes) -> None:
    """From within a text of one line to within the same text of a later one: as JSON, it is one line."""
    path, lines = tmp_path / "log.jsonl", [json.dumps(row).encode() for row in LOGS[name]]
    content = b"\n".join(lines) + b"\n"
    path.write_bytes(content)
    whole = of_traces(path)
    assert whole
    texts = [at for at in range(len(content)) if content.startswith(LONG.encode(), at)]
    for first, last in [*itertools.pairwise(texts), *zip(texts, texts[2:], strict=False)]:
        path.write_bytes(content[: first + 9] + fill * (last - first) + content[last + 9 :])
        found = of_traces(path)
        if name == "verl":  # rows are named by their lines, of which there are fewer
            assert set(map(str, found.values())) <= set(map(str, whole.values())), (first, last)
        else:
            assert found == {trace: whole[trace] for trace in found}, (first, last)


@pytest.mark.parametrize("name", LOGS)
def test_a_byte_that_is_no_text_in_a_key_is_named(tmp_path: Path, name: str) -> None:
    path, lines = tmp_path / "log.jsonl", [json.dumps(row).encode() for row in LOGS[name]]
    lines[1] = lines[1].replace(b'{"', b'{"v\xfflue": 1, "', 1)
    path.write_bytes(b"\n".join(lines) + b"\n")
    try:
        problems = read(path).problems
    except NothingReadError as error:
        problems = error.problems
    assert any(problem.kind == "not-utf-8" and problem.line == 2 for problem in problems)
