"""A trace that lacks only its root is cut short beside whole ones, in every format of spans; alone, a note says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.event_types import EventType
from graphs.logs import read

from ..samples import RECORDINGS

FIELDS = {  # by recording: the keys of a trace, and of a parent
    "braintrust_spans.jsonl": ("root_span_id", "span_parents"),
    "langsmith_team.jsonl": ("trace_id", "parent_run_id"),
    "openai_agents_team.jsonl": ("trace_id", "parent_id"),
    "weave_calls.jsonl": ("trace_id", "parent_id"),
}


def recorded(name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A recorded trace with one root; and the same run under another id, as a kill that lost the root leaves it."""
    trace, parent = FIELDS[name]
    listed = [json.loads(line) for line in (RECORDINGS / name).read_text().splitlines()]
    by_trace: dict[str, list[dict[str, Any]]] = {}
    for record in listed:
        if trace in record and "run_id" not in record:  # feedback of LangSmith
            by_trace.setdefault(record[trace], []).append(record)
    roots = {id: [record for record in spans if not record.get(parent)] for id, spans in by_trace.items()}
    chosen = next(id for id in by_trace if len(by_trace[id]) > 3 and "Evaluation" not in json.dumps(by_trace[id]))
    assert len(roots[chosen]) == 1
    killed = [record | {trace: "killed"} for record in by_trace[chosen] if record.get(parent)]
    killed = [record for record in killed if not record.get("scores")]  # no scorer ran
    return by_trace[chosen], killed


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("orphans", ["keep", "refuse"])
def test_a_lost_root_beside_a_whole_trace_is_named(name: str, orphans: str, tmp_path: Path) -> None:
    """A killed run was read as a finished one that something outside the log had called."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for spans in recorded(name) for record in spans))
    traces = read(path, orphans=orphans)
    (note,) = [problem for problem in traces.problems if problem.trace == "killed"]
    assert (note.kind, note.is_failure) == (("missing-parent", True) if orphans == "refuse" else ("cut-short", False))
    assert traces.sizes.traces == (1 if orphans == "refuse" else 2)


@pytest.mark.parametrize("name", FIELDS)
def test_where_no_trace_has_a_root_a_note_says_what_cannot_be_told(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in recorded(name)[1]))
    notes = read(path).problems
    assert [(note.kind, note.trace) for note in notes if not note.is_failure] == [("outside-caller", "killed")]
    assert "looks the same" in notes[0].expected


END = {
    "braintrust_spans.jsonl": ("metrics", "end"),
    "langsmith_team.jsonl": ("end_time",),
    "weave_calls.jsonl": ("ended_at",),
}


@pytest.mark.parametrize("name", END)
def test_a_root_without_an_end_beside_one_with_it_is_named(name: str, tmp_path: Path) -> None:
    """LangSmith posts a root at its start: a killed run kept it, `pending`, and looked like a finished one."""
    trace, parent = FIELDS[name]
    whole, _ = recorded(name)
    killed: list[dict[str, Any]] = [json.loads(json.dumps(record)) | {trace: "killed"} for record in whole]
    for record in killed:
        if not record.get(parent):
            *around, last = END[name]
            (record[around[0]] if around else record)[last] = None
    path = tmp_path / "log.jsonl"
    for records, kinds in ((whole + killed, ["cut-short"]), (killed, [])):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        notes = [problem for problem in read(path).problems if problem.trace == "killed"]
        assert [note.kind for note in notes] == kinds
        assert all("has no end" in note.value for note in notes)


def test_what_a_killed_run_called_has_no_result(tmp_path: Path) -> None:
    """An empty result was written for a tool that was still running, and the run called one that broke off later."""
    whole, _ = recorded("langsmith_team.jsonl")
    open_tool = next(record for record in whole if record["name"] == "search")
    killed = [record | {"trace_id": "killed"} for record in json.loads(json.dumps(whole))]
    for record in killed:
        if record["id"] == open_tool["id"] or not record.get("parent_run_id"):
            record["end_time"] = None
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in whole + killed))
    traces = read(path)
    results = [0, 0]
    kinds, of = traces.graph.event_type[: traces.sizes.events], traces.graph.trace_ids[: traces.sizes.events]
    for kind, number in zip(kinds.tolist(), of.tolist(), strict=True):
        results[number] += kind == int(EventType.TOOL_RESULT)
    ids = traces.traces["trace"].to_pylist()
    assert results[ids.index("killed")] == results[1 - ids.index("killed")] - 1


def team_of_weave(killed: str) -> list[dict[str, Any]]:
    """A lead with two agents that work at once, each with a model call and a tool; the one that is killed ends not."""
    calls: list[dict[str, Any]] = []

    def call(name: str, parent: str, kind: str, *, ends: bool) -> None:
        second = len(calls)
        calls.append(
            {
                "id": name,
                "trace_id": "t",
                "parent_id": parent or None,
                "op_name": name,
                "started_at": f"2026-01-01T00:00:{second:02}Z",
                "ended_at": f"2026-01-01T00:01:{second:02}Z" if ends else None,
                "attributes": {"weave": {"kind": kind}},
            }
        )

    call("lead", "", "agent", ends=True)
    call("plan", "lead", "llm", ends=True)
    for agent in ("left", "right"):
        call(agent, "lead", "agent", ends=agent != killed)
        call(f"{agent} model", agent, "llm", ends=True)
        call(f"{agent} tool", agent, "tool", ends=agent != killed)
    return calls


def test_of_two_agents_at_once_the_killed_one_does_not_return(tmp_path: Path) -> None:
    """The root had ended, so the agent that was killed had a return, and its tool a result, without a word."""
    events: dict[str, list[str]] = {}
    for killed in ("", "right"):
        path = tmp_path / f"{killed}.jsonl"
        path.write_text("".join(json.dumps(call) + "\n" for call in team_of_weave(killed)))
        traces = read(path)
        events[killed] = traces.events["event"].to_pylist()
        notes = [(problem.kind, problem.value) for problem in traces.problems]
        assert notes == ([("cut-short", "\"the agent's span 'right' has no end\"")] if killed else [])
    assert sorted(set(events[""]) - set(events["right"])) == ["right tool.result", "right.return"]
    assert len(events[""]) == len(events["right"]) + 2
