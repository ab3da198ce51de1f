"""A trace that lacks only its root is cut short beside whole ones, in every format of spans; alone, a note says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
