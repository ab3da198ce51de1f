"""Reading LangSmith's run trees: which chains are agents, hand-overs, usage, feedback, order, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import Problem
from graphs.event_graph import EdgeType, EventType
from graphs.formats.langsmith import read as read_runs
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.assembling import assemble
from graphs.traces.record import TraceRecord, check

RECORDED = Path(__file__).parents[3] / "recordings" / "langsmith_team.jsonl"


def run(
    run_id: str, kind: str, parent: str | None = None, name: str = "x", node: str = "", **more: Any
) -> dict[str, Any]:
    metadata = {"langgraph_node": node} if node else {}
    known = {"id": run_id, "name": name, "run_type": kind, "trace_id": "t", "parent_run_id": parent}
    return known | {"extra": {"metadata": metadata}} | more


ROOT = run("t", "chain")


def write(folder: Path, value: Any) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps(value))
    return path


def items(path: Path) -> list[TraceRecord | Problem]:
    return [check(i) if isinstance(i, TraceRecord) else i for i in read_runs([Source(str(path), path)])]


def only(path: Path) -> TraceRecord:
    (record,) = items(path)
    assert isinstance(record, TraceRecord), record
    return record


def shape(record: TraceRecord) -> list[tuple[str, str]]:
    pairs = zip(record.types, record.agents, strict=True)
    return [(EventType(kind).name.lower(), record.instances[agent].name) for kind, agent in pairs]


def edges(record: TraceRecord) -> set[tuple[int, int, str]]:
    found = zip(record.senders, record.receivers, record.edge_types, strict=True)
    return {(s, r, EdgeType(kind).name.lower()) for s, r, kind in found}


@pytest.mark.parametrize(
    ("outputs", "model", "requested"),
    [
        ({"generations": [[{"message": {"response_metadata": {"model_name": "small-2026"}}}]]}, "small-2026", "big"),
        ({"generations": [[{"message": {"kwargs": {"response_metadata": {"model_name": "big"}}}}]]}, "big", None),
        ({"llm_output": {"model_name": "small", "token_usage": {}}}, "small", "big"),
        ({"llm_output": None}, "big", "big"),
    ],
)
def test_a_call_has_the_model_of_its_answer(
    outputs: dict[str, Any], model: str, requested: str | None, tmp_path: Path
) -> None:
    """A call of "big" that a smaller model answered had the requested one's name and price."""
    call = run("a", "llm", "t", completion_tokens=5, outputs=outputs, extra={"metadata": {"ls_model_name": "big"}})
    traces = read(write(tmp_path, [ROOT, call]))
    assert traces.traces["model"].to_pylist() == [model]
    assert traces.events["requested_model"].to_pylist() == [requested]


def test_the_recorded_team() -> None:
    """A supervisor hands over to a researcher, and is visited again: one instance each."""
    record = only(RECORDED)
    assert shape(record) == [
        ("orchestrator_decision", "supervisor"),
        ("spawn", "supervisor"),
        ("message", "researcher"),
        ("tool_call", "researcher"),
        ("tool_result", "researcher"),
        ("message", "researcher"),
        ("orchestrator_decision", "supervisor"),
    ]
    assert edges(record) == {
        (0, 1, "causal"),
        (1, 2, "spawn"),
        (2, 3, "tool_dependency"),
        (3, 4, "return"),
        (4, 5, "causal"),
        (2, 5, "temporal"),
        (5, 6, "message"),
        (0, 6, "temporal"),
    }
    assert len(record.instances) == 2
    assert record.rewards == {"correct": 1.0} and assemble([record]).reward[0] == 1
    assert [t for t in record.columns["tokens"] if t is not None] == [5, 3, 4, 2]


def test_usage_is_read_from_model_calls_alone(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4}
    record = only(write(tmp_path, [ROOT | usage, run("a", "llm", "t", **usage), run("b", "llm", "t", **usage)]))
    assert record.columns["tokens"] == [4, 4] and record.columns["input_tokens"] == [10, 10]


def test_runs_stand_in_their_dotted_order(tmp_path: Path) -> None:
    """The API lists the newest run first."""
    calls = [run(name, "llm", "t", dotted_order=f"0t.{name}") for name in "cba"]
    assert only(write(tmp_path, [*calls, ROOT | {"dotted_order": "0t"}])).ids == ["a", "b", "c"]
    assert only(write(tmp_path, [*calls, ROOT])).ids == ["c", "b", "a"]


def test_nested_children_read_as_flat_runs(tmp_path: Path) -> None:
    inner = run("b", "llm", None) | {"trace_id": None}
    tree = ROOT | {
        "child_runs": [run("a", "chain", None, "solver", "solver") | {"trace_id": None, "child_runs": [inner]}]
    }
    record = only(write(tmp_path, {"runs": [tree]}))
    assert shape(record) == [("message", "solver")]


def test_a_run_that_stands_twice_counts_once(tmp_path: Path) -> None:
    """Nested in its parent, and again by itself."""
    child = run("a", "llm", "t", completion_tokens=4)
    record = only(write(tmp_path, [ROOT | {"child_runs": [child]}, child]))
    assert record.ids == ["a"] and record.columns["tokens"] == [4]


def test_nodes_that_call_no_model_and_nodes_inside_agents_are_none(tmp_path: Path) -> None:
    runs = [
        ROOT,
        run("n", "chain", "t", "solver", "solver"),
        run("m", "chain", "n", "agent", "agent"),
        run("c", "llm", "m"),
        run("k", "chain", "n", "tools", "tools"),
        run("f", "tool", "k", "search"),
    ]
    assert {name for _, name in shape(only(write(tmp_path, runs)))} == {"solver"}


def test_an_agent_below_a_tool_is_spawned_by_it(tmp_path: Path) -> None:
    runs = [
        ROOT,
        run("n", "chain", "t", "boss", "boss"),
        run("c", "llm", "n"),
        run("f", "tool", "n", "ask"),
        run("m", "chain", "f", "worker", "worker"),
        run("d", "llm", "m"),
        run("e", "llm", "n"),
    ]
    record = only(write(tmp_path, runs))
    assert [kind for kind, _ in shape(record)] == [
        "orchestrator_decision",
        "spawn",
        "message",
        "return",
        "orchestrator_decision",
    ]
    assert (3, 4, "return") in edges(record)


def test_feedback_finds_its_run(tmp_path: Path) -> None:
    root = ROOT | {"feedback_stats": {"quality": {"n": 2, "avg": 0.5}, "note": {"n": 1, "avg": None}}}
    given = [
        {"key": "step", "score": 0.25, "run_id": "a"},
        {"key": "step", "score": True, "run_id": "a"},
        {"key": "safe", "score": True, "run_id": None, "trace_id": "t"},
        {"key": "lost", "score": 1.0, "run_id": "zz"},
    ]
    record, problem = items(write(tmp_path, [root, run("a", "llm", "t"), *given]))
    assert isinstance(record, TraceRecord) and isinstance(problem, Problem)
    assert record.rewards == {"quality": 0.5, "safe": 1.0}  # two of them: which is the outcome, the user says
    assert record.columns["event_reward"] == [1.25]
    assert problem.kind == "orphan-feedback"


def test_runs_of_one_example_are_a_group(tmp_path: Path) -> None:
    runs = [ROOT | {"reference_example_id": "e"}, run("a", "llm", "t")]
    more = [run("u", "chain", reference_example_id="e"), run("b", "llm", "u")]
    path = write(tmp_path, runs + [one | {"trace_id": "u"} for one in more])
    assert read(path).traces["group"].to_pylist() == ["e", "e"]


def of_projects(folder: Path, projects: list[dict[str, Any]], metadata: list[dict[str, Any]] | None = None) -> Path:
    """A run of one example in each project, with metadata of its own."""
    return write(folder, [
        run(name, kind, parent, reference_example_id="e", trace_id=f"t{i}", **project)
        | ({"extra": {"metadata": metadata[i]}} if metadata else {})
        for i, project in enumerate(projects)
        for name, kind, parent in ((f"t{i}", "chain", None), (f"t{i}-call", "llm", f"t{i}"))
    ])  # fmt: skip


def test_runs_of_one_example_in_two_projects_are_two_groups(tmp_path: Path) -> None:
    """Each tries another version of the team: they were compared without a word."""
    path = of_projects(tmp_path, [{"session_name": name} for name in "ppq"])
    assert read(path).traces["group"].to_pylist() == ["e [p]", "e [p]", "e [q]"]
    assert set(read(path, group_by="task").traces["group"].to_pylist()) == {"e"}


NIGHTS = [{"session_id": f"43cc8666-5da6-4b3b-b881-a3506b1fb1e{i}"} for i in range(3)]


@pytest.mark.parametrize(
    ("projects", "metadata", "systems"),
    [
        (NIGHTS, None, [None] * 3),
        ([{"session_name": f"team-v2-1a2b3c4{i}"} | night for i, night in enumerate(NIGHTS)], None, ["team-v2"] * 3),
        (NIGHTS, [{"revision_id": name} for name in ("v1", "v1", "v2-3-gab12")], ["v1", "v1", "v2-3-gab12"]),
        ([{"session_name": "prod"}] * 2, [{"revision_id": "v1"}, {}], ["v1", "prod"]),
    ],
)
def test_each_night_of_an_experiment_is_no_version_of_the_team(
    projects: list[dict[str, Any]], metadata: list[dict[str, Any]] | None, systems: list[str | None], tmp_path: Path
) -> None:
    """200 groups of one, and a page that named ids: each run of an experiment is a project of its own."""
    assert read(of_projects(tmp_path, projects, metadata)).traces["system"].to_pylist() == systems


BAD = {
    "twice": ([ROOT, run("a", "llm", "t"), run("a", "llm", "t", error="x")], "duplicate-span", "id"),
    "scored twice": (
        [ROOT | {"feedback_stats": {"ok": {"avg": avg}}} for avg in (0.0, 1.0)] + [run("a", "llm", "t")],
        "duplicate-span",
        "id",
    ),
    "circle": ([run("a", "llm", "b"), run("b", "chain", "a")], "parent-cycle", "parent_run_id"),
    "empty": ([ROOT], "no-events", "events"),
}


@pytest.mark.parametrize("others", [[], [run("b", "llm", "t")]])
def test_runs_that_a_run_names_and_no_page_has_are_a_failure(tmp_path: Path, others: list[dict[str, Any]]) -> None:
    """A root without its runs was a note, as a run without events, and one without some of them whole."""
    good = run("g", "llm") | {"trace_id": "g", "child_run_ids": []}
    traces = read(write(tmp_path, [ROOT | {"child_run_ids": ["a", "b"]}, *others, good]))
    (problem,) = [problem for problem in traces.problems if problem.is_failure]
    assert (problem.kind, problem.trace, problem.value) == ("missing-part", "t", "'a'")
    assert traces.traces["trace"].to_pylist() == ["t"] * len(others) + ["g"]
    assert not [problem for problem in traces.problems if problem.kind == "no-events"]


def test_feedback_on_a_session_is_no_failure(tmp_path: Path) -> None:
    """A page of the API has it beside that on runs; it was an orphan, as feedback on a run that is missing."""
    of_session = {"key": "liked", "score": 1, "run_id": None, "trace_id": None, "session_id": "s"}
    (note,) = read(write(tmp_path, [run("g", "llm") | {"trace_id": "g"}, of_session])).problems
    assert (note.kind, note.is_failure) == ("no-events", False)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_trace_is_named_and_the_others_read(tmp_path: Path, name: str) -> None:
    runs, kind, field = BAD[name]
    good = run("g", "llm") | {"trace_id": "g"}
    traces = read(write(tmp_path, [*runs, good]))
    assert traces.traces["trace"].to_pylist() == ["g"]
    (problem,) = traces.problems
    assert (problem.kind, problem.field, problem.trace) == (kind, field, "t")
    assert problem.is_failure == (kind != "no-events")


@pytest.mark.parametrize(
    ("outputs", "failed"),
    [
        ({"output": {"type": "tool", "content": "Error: no such column", "status": "error"}}, True),
        ({"output": {"lc": 1, "kwargs": {"content": "Error: no such column", "status": "error"}}}, True),
        ({"output": {"type": "tool", "content": "3 rows", "status": "success"}}, False),
        ({"output": "error"}, False),
        (None, False),
    ],
)
def test_an_error_that_a_tool_handles_is_an_error_of_its_call(tmp_path: Path, outputs: Any, failed: bool) -> None:
    """Runs of tools with `handle_tool_error` have no `error`: the message that they return says so."""
    record = only(write(tmp_path, [ROOT, run("a", "tool", "t", "sql", outputs=outputs, error=None)]))
    assert ("error" in record.columns.get("status", [])) == failed
