"""A small log of every format, those of `samples` and those with builders of their own."""

from __future__ import annotations

import copy
import json
from typing import Any

from .coding.claude_code.logs import Log
from .native.logs import extended_trace
from .samples import HEADS, RECORDINGS, WEAVE, Sample, recorded
from .test_format_faults import LOGS

__all__ = ["ALL"]

PHOENIX = json.loads((RECORDINGS / "spans_phoenix.json").read_text())
TAU = {"task_id": 3, "trial": 0, "reward": 1.0, "info": {}, "traj": [{"role": "user", "content": "hello"}]}


def session() -> list[Any]:
    log = Log()
    log.human("hello")
    log.reply("m1")
    return [line | {"sessionId": "claude-1"} for line in log.lines]


def two_examples() -> list[Any]:
    """The recorded evaluation of Weave with two of its four examples, and without the run beside it."""
    calls = [call for call in WEAVE if call["trace_id"] == WEAVE[0]["trace_id"]]
    without = {call["id"] for call in calls if "predict_and_score" in call["op_name"]}
    without -= set(sorted(without)[:2])
    for _ in calls:  # from callers to what they called
        without |= {call["id"] for call in calls if call.get("parent_id") in without}
    rest = [copy.deepcopy(call) for call in calls if call["id"] not in without]
    (root,) = (call for call in rest if not call.get("parent_id"))
    root["summary"]["status_counts"] = {"success": len(rest), "error": 0}
    return rest


ALL: dict[str, Sample] = HEADS | {
    name: Sample(name.split()[0], "log.jsonl", log if isinstance(log, list) else [log], isinstance(log, list))
    for name, log in LOGS.items()
} | {
    "native": Sample("native", "log.jsonl", [extended_trace()]),
    "tau-bench": Sample("tau-bench", "log.json", [[TAU, TAU | {"trial": 1}]], lines=False),
    "claude-code": Sample("claude-code", "log.jsonl", session()),
    "otlp of gen_ai": Sample("otlp", "log.jsonl", recorded("team_genai.jsonl")),
    "otlp of openinference": Sample("otlp", "log.jsonl", recorded("team_openinference.jsonl")),
    "weave, an evaluation": Sample("weave", "calls.jsonl", two_examples()),
    "spans of phoenix, recorded": Sample("spans", "log.json", [PHOENIX], lines=False),
    "codex, recorded": Sample("codex", "log.jsonl", recorded("codex_session.jsonl")),
    "autogen of magentic-one": Sample("autogen", "log.json", recorded("magentic_one_result.json"), lines=False),
}  # fmt: skip
"""A log of each format."""
