"""Tool calls and spawns beside model calls with counts: a log is told how to say that these made them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.metrics.trace_costs import UNCOUNTED, with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.uncounted_calls import OF_TOOL_CALLS, uncounted_tool_calls
from graphs.logs import read

ONE, TWO = (
    f'{text} without a count of tokens: state "action", a key or column, as false if a model call made {them}'
    for text, them in (("1 tool call is an action", "it"), ("2 tool calls are actions", "them"))
)


def log(folder: Path, form: str, *kinds: str, action: bool | None = None) -> Path:
    """One trace: messages state tokens, calls of tools and "bare" messages do not."""
    events: list[dict[str, Any]] = []
    for place, kind in enumerate(kinds):
        event: dict[str, Any] = {"id": f"e{place}", "agent": "a", "type": "message" if kind == "bare" else kind}
        event |= {"tokens": 5, "input_tokens": 7} if kind == "message" else {}
        events.append(event | ({} if action is None or kind != "tool_call" else {"action": action}))
    of_trace: dict[str, Any] = {"trace_id": "t", "task_id": "q"}
    lines = [of_trace | {"schema_version": "1.0", "events": events, "edges": [], "rewards": {"team": 1}}]
    if form == "table":
        lines = [of_trace | {"reward": 1} | event for event in events]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "log.jsonl"


@pytest.mark.parametrize("form", ["native", "table"])
@pytest.mark.parametrize(
    ("kinds", "action", "reason", "said"),
    [
        (("message", "tool_call"), None, OF_TOOL_CALLS, ONE),
        (("message", "tool_call", "tool_call"), None, OF_TOOL_CALLS, TWO),
        (("message", "spawn"), None, OF_TOOL_CALLS, ONE.replace("tool call", "spawn")),
        (
            ("message", "tool_call", "spawn"),
            None,
            OF_TOOL_CALLS,
            TWO.replace("2 tool calls", "1 tool call and 1 spawn"),
        ),
        (("message", "tool_call"), False, "", ""),
        (("message", "tool_call"), True, OF_TOOL_CALLS, ONE),
        (("message", "tool_call", "bare"), None, UNCOUNTED, ONE),
        (("message", "bare"), None, UNCOUNTED, ""),
        (("bare", "tool_call"), None, UNCOUNTED, ""),  # no model call has a count, so that they are not told apart
        (("tool_call",), None, UNCOUNTED, ""),
    ],
)
def test_tool_calls_without_a_count_are_named_with_the_remedy(
    form: str, kinds: tuple[str, ...], action: bool | None, reason: str, said: str, tmp_path: Path
) -> None:
    """tokens were "not compared, because an action has no count", and nothing said that all 801 were tool calls."""
    if form == "table" and action is None and "message" in kinds:  # a table's model calls made them (`made_calls`)
        reason, said = reason if "bare" in kinds else "", ""
    path = log(tmp_path, form, *kinds, action=action)
    traces = read(path)
    measured = with_costs(traces, trace_metrics(traces), None)
    assert measured["tokens"].reasons == [reason]
    assert measured["protocol_overhead"].reasons == [reason]
    assert measured["input_tokens"].reasons == [reason if reason != UNCOUNTED else f"{UNCOUNTED} that it read"]
    assert int(uncounted_tool_calls(traces).sum()) == sum(map(int, re.findall(r"\d+", said)))
    for command in ("validate", "costs"):
        shown = " ".join(CliRunner().invoke(cli, [command, str(path)]).stdout.split())
        assert (said in shown) if said else ("if a model call made" not in shown), command
