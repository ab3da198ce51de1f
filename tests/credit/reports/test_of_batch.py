"""What a batch says is worked out once: a summary sorted out its tool calls twice, and facts of its teams ten times."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.reports.clock import TimedFacts
from credit.reports.endings import ended_early
from credit.reports.event_errors import error_mask
from credit.reports.event_facts import EventFacts
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.missing_lines import silent_agents
from credit.reports.outside_team import outside_team
from credit.reports.task_kinds import every_kind
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import ToolCalls, call_mask
from credit.reports.trace_list import has_statuses
from credit.reports.trace_numbers import TeamFacts
from graphs.traces.batch import Traces

TOOLS = [{"id": f"{i}", "type": "tool_call", "agent": "a", "tool": "sh", "status": "error"} for i in range(3)]
LINES = [json.dumps({"trace_id": f"t{i}", "task_id": "q", "events": TOOLS, "edges": [], "rewards": {"team": i % 2}})
         for i in range(4)]  # fmt: skip


@pytest.mark.parametrize("command", ["summary log.jsonl", "report log.jsonl -o page.html"])
def test_a_command_sorts_out_a_batch_once(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, facts, calls = list[tuple[str, Traces]](), EventFacts.__init__, ToolCalls.__init__

    def counting_facts(self: EventFacts, traces: Traces) -> None:
        made.append((type(self).__name__, traces))
        facts(self, traces)

    def counting_calls(self: ToolCalls, traces: Traces, *, of_team: bool = True) -> None:
        made.extend([("ToolCalls", traces)] * of_team)
        calls(self, traces, of_team=of_team)

    monkeypatch.setattr(EventFacts, "__init__", counting_facts)
    monkeypatch.setattr(ToolCalls, "__init__", counting_calls)
    monkeypatch.chdir(tmp_path)
    Path("log.jsonl").write_text("\n".join(LINES))
    result = CliRunner().invoke(cli, command.split())
    assert result.exit_code == 0, result.output
    counts = Counter((name, id(traces)) for name, traces in made)
    assert {name for name, _ in counts} >= {"ToolCalls", "TeamFacts"} and {*counts.values()} == {1}


@pytest.mark.parametrize(
    "fact", [call_mask, error_mask, every_kind, failed_model_calls, has_statuses, outside_team, silent_agents, task_ids]
)
def test_a_fact_is_worked_out_once_and_not_written_to(fact: Callable[[Traces], Any], tmp_path: Path) -> None:
    """A summary of a small log asked 36 times who is outside the team, and worked it out each time."""
    (tmp_path / "log.jsonl").write_text("\n".join(LINES))
    traces = credit.read(tmp_path)
    found = fact(traces)
    assert fact(traces) is found and fact(credit.read(tmp_path)) is not found
    array = found[1] if isinstance(found, tuple) else found
    with pytest.raises(ValueError, match="read-only"):
        array[0] = array[0]


def test_events_have_one_clock(tmp_path: Path) -> None:
    """What asks how traces end worked out another."""
    (tmp_path / "log.jsonl").write_text("\n".join(LINES))
    traces = credit.read(tmp_path)
    ended_early(traces)
    assert TeamFacts.of(traces).clock is TimedFacts.of(traces).clock is traces.kept[TimedFacts].clock


def test_what_was_worked_out_is_no_part_of_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("\n".join(LINES))
    traces = credit.read(tmp_path)
    found = ToolCalls.of(traces)
    assert ToolCalls.of(traces) is found and not pickle.loads(pickle.dumps(traces)).kept
