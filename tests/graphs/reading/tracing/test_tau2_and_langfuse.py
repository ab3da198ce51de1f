"""tau2-bench: greeting, two sides with tools. Langfuse: parts over files, LangGraph's nodes, scores."""

from __future__ import annotations

import copy
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credit.metrics.cost_summary import Amount, cost_rows, stated_sums, total_costs
from credit.metrics.event_costs import Price, Prices, event_costs
from credit.reports.trace_list import counted_tokens, trace_rows
from credit.reports.triage import triage
from graphs.errors import NothingReadError
from graphs.event_types import EventType
from graphs.logs import read
from graphs.traces.batch import Traces

from ..samples import LANGFUSE, OBSERVATIONS, SAMPLES, TAU2, observation


def shape(traces: Traces) -> list[tuple[str, str, bool]]:
    names = traces.agents["name"].to_pylist()
    graph = traces.graph
    return [
        (EventType(int(graph.event_type[i])).name.lower(), names[int(graph.agent_ids[i])], bool(graph.action_mask[i]))
        for i in range(traces.sizes.events)
    ]


def write(folder: Path, value: object, name: str = "log.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(value))
    return path


def test_only_the_assistants_own_messages_are_actions(tmp_path: Path) -> None:
    traces = read(SAMPLES["tau2-bench"].write(tmp_path))
    assert shape(traces) == [
        ("message", "assistant", False), ("message", "user", False), ("tool_call", "user", False),
        ("tool_result", "user", False), ("message", "assistant", True), ("tool_call", "assistant", False),
        ("tool_result", "assistant", False), ("message", "assistant", True), ("message", "user", False),
    ]  # fmt: skip
    assert traces.traces.select(["trace", "task", "model", "system"]).to_pylist() == [
        {"trace": "results/task-8/trial-2", "task": "air/task-8", "model": "m", "system": "llm_agent"}
    ]
    assert float(traces.reward[0]) == 0.5
    assert float(read(tmp_path / "results.json", reward="DB").reward[0]) == 1
    assert traces.evidence["tokens"].amounts.tolist() == [9, 4, 2]
    assert counted_tokens(traces).nonzero()[0].tolist() == [4, 7]  # the team's
    assert traces.events["status"].to_pylist()[6] == "error"


def test_a_first_message_that_a_model_wrote_is_an_action(tmp_path: Path) -> None:
    results = copy.deepcopy(TAU2)
    results["simulations"][0]["messages"][0]["usage"] = {"completion_tokens": 3}
    assert shape(read(write(tmp_path, results)))[0] == ("message", "assistant", True)


def test_calls_and_errors_of_the_simulated_user_are_not_the_teams(tmp_path: Path) -> None:
    """Its failed calls were errors of the team, and it had a row of work."""
    results = copy.deepcopy(TAU2)
    results["simulations"][0]["messages"][2]["error"] = True
    traces = read(write(tmp_path, results))
    assert trace_rows(traces)[0]["errors"] == 1  # the assistant's
    found = triage(traces)
    assert [(row.agent, row.calls, row.errors) for row in found.agents] == [("assistant", 1, 1)]
    assert [(row.tool, row.calls, row.errors) for row in found.tools] == [("find", 1, 1)]
    assert [suspect.agent for suspect in found.suspects] == ["assistant"]
    assert event_costs(traces).tool_calls.sum() == 1
    rows = cost_rows(traces, "tool")
    of_tools = {(row.unit, row.outside): (row.tool_calls, row.errors.total) for row in rows}
    assert of_tools == {("find", False): (1, 1), ("no tool", False): (0, 0), ("user", True): (1, 1)}
    assert (total_costs(rows).tool_calls, total_costs(rows).errors.total) == (1, 1)


def test_what_the_simulated_user_cost_has_its_own_name(tmp_path: Path) -> None:
    """The reader left out the user's tokens and money, as if a run cost the agent's alone."""
    results = copy.deepcopy(TAU2)
    results["simulations"][0] |= {"agent_cost": 0.25, "user_cost": 0.125}
    traces = read(write(tmp_path, results))
    assert stated_sums(traces) == {"money": Amount(0.25, 0), "user_money": Amount(0.125, 0)}
    rows = cost_rows(traces, "model", Prices({"m": Price(2e6, 0), "u": Price(5e6, 0)}))
    found = {(row.unit, row.outside): (row.tokens.total, row.money.total) for row in rows}
    assert found == {("m", False): (6, 140), ("user", True): (9, 5)}
    assert (total_costs(rows).tokens.total, total_costs(rows).money.total) == (6, 140)
    run = {"task_id": 3, "trial": 0, "traj": [{"role": "user", "content": "hello"}], "info": {"user_cost": 0.5}}
    assert stated_sums(read(write(tmp_path, [run], "tau.json"))) == {"user_money": Amount(0.5, 0)}


@pytest.mark.parametrize(
    ("place", "value", "kind"),
    [((4, "id"), "other", "unknown-tool-call"), ((2, "id"), "other", "unknown-tool-call"),
     ((6, "role"), "judge", "bad-value"), ((3, "usage"), {"completion_tokens": -1}, "out-of-range")],
)  # fmt: skip
def test_a_bad_simulation_is_named(tmp_path: Path, place: tuple[int, str], value: object, kind: str) -> None:
    results = copy.deepcopy(TAU2)
    bad = copy.deepcopy(results["simulations"][0]) | {"trial": 3}
    bad["messages"][place[0]][place[1]] = value
    results["simulations"].append(bad)
    traces = read(write(tmp_path, results))
    assert traces.sizes.traces == 1
    assert [problem.kind for problem in traces.problems] == [kind]


def test_a_partial_copy_of_results_counts_nothing_twice_and_two_rewards_not_at_all(tmp_path: Path) -> None:
    simulation: dict[str, Any] = SAMPLES["tau2-bench"].values[0]["simulations"][0]
    simulations = [simulation | {"id": f"s{trial}", "trial": trial} for trial in range(3)]
    whole = write(tmp_path, TAU2 | {"simulations": simulations}, "a.json")
    copies = write(tmp_path, TAU2 | {"simulations": simulations[:2]}, "b.json")
    traces = read(whole, copies)
    assert traces.traces["trace"].to_pylist() == [f"a/task-8/trial-{trial}" for trial in range(3)]
    assert [problem.kind for problem in traces.problems] == ["repeated-run"] * 2
    write(tmp_path, TAU2 | {"simulations": [simulations[0] | {"reward_info": {"reward": 1.0}}]}, "b.json")
    assert read(whole, copies).traces["trace"].to_pylist() == ["a/task-8/trial-1", "a/task-8/trial-2"]


TEAM = [
    ("message", "lead", True), ("tool_call", "lead", False), ("tool_result", "lead", False), ("message", "lead", True),
]  # fmt: skip


def test_simulations_in_files_of_their_own_are_read_with_their_results(tmp_path: Path) -> None:
    """A folder of the format "dir" was refused: its results have no simulations."""
    (simulation,) = TAU2["simulations"]
    own = simulation | {"start_time": "x", "termination_reason": "user_stop"}
    whole = read(write(tmp_path, TAU2 | {"simulations": [own]}, "whole.json"))
    (tmp_path / "run" / "simulations").mkdir(parents=True)
    write(tmp_path / "run" / "simulations", own, "x.json")
    with pytest.raises(NothingReadError, match="missing-result"):
        read(tmp_path / "run")
    write(tmp_path / "run", {key: value for key, value in TAU2.items() if key != "simulations"}, "results.json")
    parts = read(tmp_path / "run")
    assert parts.problems == () and shape(parts) == shape(whole)
    row, expected = parts.traces.to_pylist()[0], whole.traces.to_pylist()[0]
    assert [row[key] for key in ("group", "model", "system")] == [expected[key] for key in ("group", "model", "system")]
    assert parts.reward[0] == 0.5
    assert read(tmp_path).sizes.traces == 1  # the run in both formats


def test_langfuse_scores(tmp_path: Path) -> None:
    traces = read(SAMPLES["langfuse"].write(tmp_path))
    assert shape(traces) == TEAM
    assert float(traces.reward[0]) == 0.5
    assert traces.evidence["event_reward"].array[:2].tolist()[0] == 0.25
    assert traces.evidence["tokens"].amounts.tolist() == [4, 3]
    assert traces.traces["model"].to_pylist() == ["m"]


@pytest.mark.parametrize(
    ("of_trace", "of_root", "of_others", "system"),
    [
        ({"version": "v2", "release": "9f3"}, {"version": "v1"}, {}, "v2"),
        ({"version": None, "release": "9f3"}, {"version": "v1"}, {}, "9f3"),
        ({}, {"version": "", "release": "9f3"}, {"version": "of a tool"}, "9f3"),
        ({}, {}, {"version": "of a tool"}, None),
    ],
)
def test_the_version_of_a_langfuse_trace_is_its_system(
    tmp_path: Path, of_trace: dict[str, str], of_root: dict[str, str], of_others: dict[str, str], system: str | None
) -> None:
    """`--sides system` found none, and people wrote a table of what each trace states itself."""
    ids = {one["id"] for one in OBSERVATIONS}
    rows = [one | (of_others if one["parentObservationId"] in ids else of_root) for one in OBSERVATIONS]
    trace = LANGFUSE["trace"] | of_trace | {"observations": rows}
    traces = read(write(tmp_path, LANGFUSE | {"trace": trace, "observations": rows}))
    assert traces.problems == () and traces.traces["system"].to_pylist() == [system]


def exported() -> list[dict[str, Any]]:
    """The rows of an export of the user interface: columns of the trace, and one for each score of the project."""
    of_trace = {"traceName": "run", "traceTags": ["x"], "input": [1, 2], "comments": []}
    scores: dict[str, dict[str, list[Any]]] = {"o2": {"step": [0.25]}, "o1": {"solved": [0.5], "mood": ["good"]}}
    empty = {"step": None, "solved": None, "mood": None}
    return [row | {"metadata": {"k": 1}} | of_trace | empty | scores.get(row["id"], {}) for row in OBSERVATIONS]


def as_csv(folder: Path, rows: list[dict[str, Any]]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with (folder / "export.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            cells = [row.get(name) for name in names]
            writer.writerow(json.dumps(c) if isinstance(c, list | dict) else "" if c is None else c for c in cells)
    return folder / "export.csv"


def test_an_observation_that_stands_twice_counts_once(tmp_path: Path) -> None:
    """As in Langfuse's own download of a trace, which holds each in the trace and beside it."""
    download = LANGFUSE | {"trace": LANGFUSE["trace"] | {"observations": OBSERVATIONS}}
    traces = read(write(tmp_path, download))
    assert traces.problems == () and shape(traces) == TEAM and float(traces.reward[0]) == 0.5


def test_a_row_that_stands_twice_with_other_scores_refuses_its_trace(tmp_path: Path) -> None:
    rows = exported()
    write(tmp_path, rows, "a.json")
    write(tmp_path, rows[:2], "b.json")
    traces = read(tmp_path)
    assert traces.problems == () and traces.evidence["event_reward"].array[0] == 0.25
    write(tmp_path, [row | {"step": [0.5]} for row in rows if row["id"] == "o2"], "b.json")
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path)
    assert [(problem.kind, problem.trace) for problem in caught.value.problems] == [("duplicate-span", "t")]


@pytest.mark.parametrize("column", ["statusMessage", "name", "traceName", "userId", "version", "release", "output"])
def test_no_text_that_an_agent_can_cause_is_a_score(tmp_path: Path, column: str) -> None:
    """A tool that failed with the message "[5]" had a score of 5 in a table's column for messages."""
    rows = [row | ({column: "[5]"} if row["id"] in ("o1", "o2") else {}) for row in exported()]
    traces = read(as_csv(tmp_path, rows))
    assert traces.reward_channels == read(as_csv(tmp_path, exported())).reward_channels
    assert traces.evidence["event_reward"].amounts.tolist() == [0.25]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_exports_of_langfuses_interface_have_scores_in_columns(tmp_path: Path, form: str) -> None:
    path = tmp_path / "export.jsonl"
    if form == "csv":
        path = as_csv(tmp_path, exported())
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in exported()))
    traces, api = read(path), read(SAMPLES["langfuse"].write(tmp_path / "api"))
    assert traces.problems == () and shape(traces) == TEAM
    assert traces.traces["format"].to_pylist() == ["langfuse"]
    assert float(traces.reward[0]) == 0.5 and {"rewards.mood", "rewards.input"}.isdisjoint(traces.evidence)
    for name in ("event_reward", "tokens", "input_tokens"):
        assert np.array_equal(traces.evidence[name].array, api.evidence[name].array, equal_nan=True)
    for name in ("senders", "receivers", "edge_type"):
        assert np.array_equal(getattr(traces.graph, name), getattr(api.graph, name))


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 131_073, 3_000_000])
def test_a_long_text_of_a_langfuse_table_makes_no_observation(tmp_path: Path, size: int) -> None:
    """131,072 characters is where Python's reader of CSV stops, and goes on within the quoted text."""
    whole = read(as_csv(tmp_path, exported())).events["event"].to_pylist()
    rows = exported()
    rows[1] |= {"input": "x" * size + "\n" + ",".join(["forged"] * len(rows[0])) + '\n"'}
    traces = read(as_csv(tmp_path, rows))
    assert traces.problems == () and traces.events["event"].to_pylist() == whole


def test_faults_of_a_langfuse_table_are_named_by_their_line(tmp_path: Path) -> None:
    rows = exported()
    for change, kind, field in (
        ({"startTime": "noon"}, "bad-type", "startTime"), ({"usageDetails": "many"}, "bad-type", "usageDetails"),
        ({"id": None}, "missing-field", "id"),
    ):  # fmt: skip
        path = as_csv(tmp_path, [*rows[:1], rows[1] | change, *rows[2:]])
        with pytest.raises(NothingReadError) as caught:
            read(path)
        assert [(p.kind, p.line, p.field) for p in caught.value.problems] == [(kind, 3, field)]
    path = as_csv(tmp_path, rows)
    path.write_text(path.read_text() + 'x,"y\n')
    with pytest.raises(NothingReadError) as caught:
        read(path)
    assert caught.value.problems[0].kind == "bad-csv"


def test_a_langfuse_trace_may_be_spread_over_pages(tmp_path: Path) -> None:
    write(tmp_path, {"data": OBSERVATIONS[:2], "meta": {"page": 1}}, "1.json")
    write(tmp_path, {"data": OBSERVATIONS[2:], "meta": {"page": 2}}, "2.json")
    write(tmp_path, {"data": LANGFUSE["trace"]["scores"], "meta": {"page": 1}}, "scores.json")
    traces = read(tmp_path)
    assert traces.problems == () and shape(traces) == TEAM and float(traces.reward[0]) == 0.5


_OF_SCORES: dict[str, Any] = {"userId": "u", "tags": [], "environment": "production"}


@pytest.mark.parametrize("version", [2, 3])
def test_pages_of_scores_are_read_as_the_api_gives_them(tmp_path: Path, version: int) -> None:
    """`trace` without an id, which each score of the second version holds, refused the whole log."""
    write(tmp_path, {"data": OBSERVATIONS, "meta": {"page": 1}}, "1.json")
    scores = [{**score, "trace": _OF_SCORES} for score in LANGFUSE["trace"]["scores"]]
    of_session = {"id": "x", "sessionId": "s", "name": "liked", "value": 1, "dataType": "NUMERIC", "trace": _OF_SCORES}
    if version == 3:
        subjects = {"kind": "trace", "id": "t"}, {"kind": "observation", "id": "o2", "traceId": "t"}
        of_session = {**of_session, "subject": {"kind": "session", "id": "s"}}
        scores = [{**score, "subject": subject} for score, subject in zip(scores, subjects, strict=True)]
        for score in (*scores, of_session):
            for key in ("traceId", "observationId", "sessionId", "trace"):
                score.pop(key, None)
    write(tmp_path, {"data": [*scores, of_session], "meta": {"cursor": "c"}}, "scores.json")
    traces = read(tmp_path)
    assert [problem.kind for problem in traces.problems] == ["no-events"]  # the score of a session
    assert shape(traces) == TEAM and float(traces.reward[0]) == 0.5
    assert traces.evidence["event_reward"].amounts.tolist() == [0.25]


@pytest.mark.parametrize("part", [{"observations": ["o1"]}, {"htmlPath": "/project/p/traces/t"}])
def test_pages_that_name_no_project_are_told_by_their_records(tmp_path: Path, part: dict[str, object]) -> None:
    """A page of traces was of no format, since its items name no trace by `traceId`."""
    write(tmp_path, {"data": OBSERVATIONS, "meta": {"page": 1}}, "1.json")
    page = [{"id": "t", "timestamp": "2026-01-01T00:00:00.000Z", "version": "v3"} | part]
    write(tmp_path, {"data": page, "meta": {"page": 1}}, "traces.json")
    write(tmp_path, {"data": [], "meta": {"page": 2, "totalItems": 1, "totalPages": 1}}, "end.json")
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(one) + "\n" for one in LANGFUSE["trace"]["scores"]))
    traces = read(tmp_path)
    assert traces.problems == () and shape(traces) == TEAM and float(traces.reward[0]) == 0.5
    assert traces.traces["system"].to_pylist() == ["v3"]


def test_a_download_without_a_project_is_told_by_its_content(tmp_path: Path) -> None:
    """It was told to have its records elsewhere than at the top, while `format="langfuse"` read it."""
    log = json.loads(json.dumps(LANGFUSE | {"observations": OBSERVATIONS}))
    for part in (log["trace"], *log["observations"]):
        part.pop("projectId", None)
    assert shape(read(write(tmp_path, log))) == TEAM


def test_langgraph_nodes_are_agents_and_tools_belong_to_the_one_before(tmp_path: Path) -> None:
    def node(name: str, start: int, of: str, kind: str = "SPAN", parent: str | None = "root") -> dict[str, object]:
        return observation(f"{of}{start}", kind, of, parent, start, metadata={"langgraph_node": name})

    spans = [
        node("", 0, "LangGraph", parent=None) | {"id": "root", "metadata": {}},
        node("agent", 1, "agent"), node("agent", 2, "model", "GENERATION", "agent1"),
        node("tools", 3, "tools"), node("tools", 4, "search", parent="tools3"),
        node("agent", 5, "agent"), node("agent", 6, "model", "GENERATION", "agent5"),
    ]  # fmt: skip
    traces = read(write(tmp_path, {"trace": LANGFUSE["trace"] | {"scores": []}, "observations": spans[::-1]}))
    assert shape(traces) == [(kind, "agent", action) for kind, _, action in TEAM]
    assert traces.sizes.agents == 1 and np.isnan(traces.reward[0])


def test_steps_of_langgraph_js_in_the_node_tools_are_no_tools(tmp_path: Path) -> None:
    """In a public trace of LangGraph.js two channel writes were tool calls of the agent."""
    node = {"metadata": {"langgraph_node": "tools"}}
    log = [
        observation("agent", "SPAN", "agent", None, 1, metadata={"langgraph_node": "agent"}),
        observation("call", "GENERATION", "model", "agent", 2),
        observation("tools", "SPAN", "tools", None, 3, **node),
        observation("tool", "SPAN", "get_weather", "tools", 4, **node),
        observation("write", "SPAN", "ChannelWrite<branch:to:agent>", "tools", 5, **node),
    ]
    traces = read(write(tmp_path, {"trace": {"id": "t"}, "observations": log}))
    assert [kind for kind, _, _ in shape(traces)] == ["message", "tool_call", "tool_result"]


def test_the_creation_of_an_agent_is_its_run_and_a_span_that_answers_a_tool_call_is_a_tool(tmp_path: Path) -> None:
    """In public traces of Koog an agent seemed to start another one, with a run's id as its name, and used no tools."""

    def stated(attributes: dict[str, str]) -> dict[str, object]:
        return {"metadata": {"attributes": {f"gen_ai.{name}": value for name, value in attributes.items()}}}

    run = "6f8d2449-33ed-4c7c-82e7-5410e34ee4e6"
    log = [
        observation("made", "AGENT", "agent.f9f77d1a-437f-4ba6-890e-b592a50cbd21", None, 1)
        | stated({"operation.name": "create_agent"}),
        observation("ran", "AGENT", f"run.{run}", "made", 2)
        | stated({"operation.name": "invoke_agent", "conversation.id": run}),
        observation("call", "GENERATION", "llm.chat", "ran", 3),
        observation("node", "SPAN", "node.nodeExecuteTool", "ran", 4),
        observation("tool", "SPAN", "tool.Bye", "node", 5) | stated({"tool.call.id": "c1", "tool.name": "Bye"}),
    ]
    traces = read(write(tmp_path, {"trace": {"id": "t"}, "observations": log}))
    assert shape(traces) == [("message", "run", True), ("tool_call", "run", False), ("tool_result", "run", False)]
    assert traces.events["tool"].to_pylist()[1] == "Bye"


def test_langfuse_faults(tmp_path: Path) -> None:
    for change, kind in (
        ({"parentObservationId": "o4"}, "parent-cycle"), ({"id": "o2"}, "duplicate-span"),
        ({"startTime": 5}, "bad-type"),
    ):  # fmt: skip
        value = {"trace": LANGFUSE["trace"], "observations": [OBSERVATIONS[0] | change, *OBSERVATIONS[1:]]}
        with pytest.raises(NothingReadError) as caught:
            read(write(tmp_path, value))
        assert caught.value.problems[0].kind == kind


def test_pieces_that_only_other_formats_attach_say_so(tmp_path: Path) -> None:
    """`orphans="root"` did nothing, and nothing said so."""
    cut = LANGFUSE | {"observations": [*OBSERVATIONS, observation("x", "GENERATION", "model", "gone", 3)]}
    for orphans in ("keep", "root"):
        traces = read(write(tmp_path, cut), orphans=orphans)
        notes = [problem for problem in traces.problems if problem.kind == "cut-short"]
        assert len(notes) == 1 and not notes[0].is_failure and "unknown" in traces.agents["name"].to_pylist()
        assert ("works for otlp and spans alone" in notes[0].expected) is (orphans == "root")
    with pytest.raises(NothingReadError, match="missing-parent"):
        read(write(tmp_path, cut), orphans="refuse")


def test_a_killed_run_without_its_root_is_cut_short_beside_whole_ones(tmp_path: Path) -> None:
    """Spans of it seemed to be of a caller outside the log, and the run seemed to have ended."""
    whole = [observation("agent", "AGENT", "lead", None, 1), observation("call", "GENERATION", "model", "agent", 2)]
    killed = [observation("later", "GENERATION", "model", "lost", 3) | {"traceId": "killed"}]
    (tmp_path / "alone").mkdir()
    assert [note.kind for note in read(write(tmp_path / "alone", killed)).problems] == ["outside-caller"]
    traces = read(write(tmp_path, [*whole, *killed]))
    (note,) = traces.problems
    assert (note.kind, note.trace, note.is_failure) == ("cut-short", "killed", False) and traces.sizes.traces == 2
