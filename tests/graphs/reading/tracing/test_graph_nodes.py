"""One run of LangGraph with the usual node `tools`, as each tracing system keeps it: the same agents do the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.event_graph import EdgeType, EventType
from graphs.logs import read

SECOND = 1_000_000_000


class Run(NamedTuple):
    """A run of LangChain: its number, that of its parent (0 for none), name, kind and node, and whether it failed.

    Its metadata may state the super-step of the node, and the names of nodes that it waited for.
    """

    number: int
    parent: int
    name: str
    kind: str
    node: str = ""
    failed: bool = False
    step: int = 0
    waited: str = ""

    @property
    def metadata(self) -> dict[str, Any]:
        steps = {"langgraph_step": self.step, "langgraph_triggers": [self.waited or f"branch:to:{self.node}"]}
        return {"langgraph_node": self.node} | (steps if self.step else {})


def node(number: int, name: str, parent: int = 1) -> Run:
    return Run(number, parent, name, "chain", name)


TEAM = [
    Run(1, 0, "LangGraph", "chain"),
    node(2, "planner"), Run(3, 2, "model", "llm", "planner"),
    node(4, "coder"), Run(5, 4, "model", "llm", "coder"),
    node(6, "tools"), Run(7, 6, "run_tests", "tool", "tools", failed=True),
    node(8, "coder"), Run(9, 8, "model", "llm", "coder"),
    node(10, "tool_node"), Run(11, 10, "edit", "tool", "tool_node"),
    node(12, "reviewer"), Run(13, 12, "model", "llm", "reviewer"),
]  # fmt: skip
ASKED = [
    Run(1, 0, "LangGraph", "chain"),
    node(2, "boss"), Run(3, 2, "model", "llm", "boss"),
    node(4, "tools"), Run(5, 4, "ask", "tool", "tools"),
    node(6, "worker", 5), Run(7, 6, "model", "llm", "worker"),
    node(8, "boss"), Run(9, 8, "model", "llm", "boss"),
]  # fmt: skip

TWICE = [
    Run(1, 0, "lead", "agent"),
    node(2, "planner"), Run(3, 2, "model", "llm", "planner"),
    node(4, "planner"), Run(5, 4, "model", "llm", "planner"),
    Run(6, 1, "model", "llm"),
]  # fmt: skip


STEPS = [
    Run(1, 0, "LangGraph", "chain"),
    Run(2, 1, "planner", "chain", "planner", step=1), Run(3, 2, "model", "llm", "planner", step=1),
    Run(4, 1, "coder", "chain", "coder", step=2), Run(5, 4, "model", "llm", "coder", step=2),
    Run(6, 1, "tester", "chain", "tester", step=2), Run(7, 6, "model", "llm", "tester", step=2),
    Run(8, 1, "router", "chain", "router", step=3),
    Run(9, 1, "tools", "chain", "tools", step=3), Run(10, 9, "run_tests", "tool", "tools", step=3),
    Run(11, 1, "coder", "chain", "coder", step=4), Run(12, 11, "model", "llm", "coder", step=4),
    Run(13, 1, "judge", "chain", "judge", step=5, waited="join:planner+coder:judge"),
    Run(14, 13, "inner", "chain", "inner", step=1), Run(15, 14, "model", "llm", "inner", step=1),
    Run(16, 13, "inner 2", "chain", "inner 2", step=2), Run(17, 16, "model", "llm", "inner 2", step=2),
]  # fmt: skip
"""A graph with nodes side by side, one without a model, one that waits for an early one, and one that is a graph."""


def stamp(number: int) -> str:
    return f"2026-11-20T10:00:{number:02}.000000"


def langsmith(runs: list[Run]) -> Iterator[Any]:
    for run in runs:
        yield {
            "id": str(run.number), "trace_id": "1", "parent_run_id": str(run.parent) if run.parent else None,
            "dotted_order": stamp(run.number), "name": run.name, "run_type": run.kind,
            "error": "AssertionError" if run.failed else None, "extra": {"metadata": run.metadata},
        }  # fmt: skip


def langfuse(runs: list[Run], tool: str = "TOOL", agent: str = "SPAN") -> Iterator[Any]:
    kinds = {"llm": "GENERATION", "tool": tool, "chain": "SPAN"}
    for run in runs:
        yield {
            "id": str(run.number), "traceId": "t", "name": run.name, "startTime": f"{stamp(run.number)}Z",
            "type": agent if run.name in ("coder", "boss") else kinds[run.kind],
            "parentObservationId": str(run.parent) if run.parent else None, "projectId": "p",
            "level": "ERROR" if run.failed else "DEFAULT", "metadata": run.metadata,
        }  # fmt: skip


def openinference(runs: list[Run], agents: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    for run in runs:
        kind = "AGENT" if run.name in agents else run.kind.upper()
        known = {"openinference.span.kind": kind, "metadata": json.dumps(run.metadata)}
        yield {
            "traceId": f"{1:032x}", "spanId": f"{run.number:016x}",
            "parentSpanId": f"{run.parent:016x}" if run.parent else "", "name": run.name,
            "startTimeUnixNano": str(run.number * SECOND), "endTimeUnixNano": str(run.number * SECOND + SECOND // 2),
            "status": {"code": 2 if run.failed else 1},
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in known.items()],
        }  # fmt: skip


def otlp(runs: list[Run], agents: tuple[str, ...] = ()) -> Iterator[Any]:
    yield {"resourceSpans": [{"scopeSpans": [{"spans": list(openinference(runs, agents))[::-1]}]}]}


def phoenix(runs: list[Run]) -> Iterator[Any]:
    for run in runs:
        yield {
            "name": run.name, "context": {"trace_id": f"{1:032x}", "span_id": f"{run.number:016x}"},
            "parent_id": f"{run.parent:016x}" if run.parent else None, "span_kind": run.kind.upper(),
            "start_time": f"{stamp(run.number)}+00:00", "end_time": f"{stamp(run.number)}+00:00",
            "status_code": "ERROR" if run.failed else "OK",
            "attributes": {"metadata": run.metadata},
        }  # fmt: skip


def mlflow(runs: list[Run]) -> Iterator[Any]:
    kinds = {"llm": "CHAT_MODEL"}
    spans = [
        {
            "name": run.name, "trace_id": f"{1:032x}", "span_id": f"{run.number:016x}",
            "parent_span_id": f"{run.parent:016x}" if run.parent else None,
            "start_time_unix_nano": run.number * SECOND, "end_time_unix_nano": run.number * SECOND + 1,
            "status": {"code": "STATUS_CODE_ERROR" if run.failed else "STATUS_CODE_OK"},
            "attributes": {
                "mlflow.spanType": json.dumps(kinds.get(run.kind, run.kind.upper())),
                "metadata": json.dumps(run.metadata),
            },
        }
        for run in runs
    ]  # fmt: skip
    yield {"info": {"trace_id": "tr-1"}, "data": {"spans": spans}}


def braintrust(runs: list[Run]) -> Iterator[Any]:
    for run in runs:
        yield {
            "id": f"row{run.number}", "span_id": str(run.number), "root_span_id": "1",
            "span_parents": [str(run.parent)] if run.parent else None, "metrics": {"start": float(run.number)},
            "span_attributes": {"name": run.name, "type": {"chain": "task"}.get(run.kind, run.kind)},
            "metadata": {"metadata": run.metadata}, "error": "AssertionError" if run.failed else None,
        }  # fmt: skip


def weave(runs: list[Run]) -> Iterator[Any]:
    for run in runs:
        kind = {"weave": {"kind": run.kind}} if run.kind != "chain" else {}
        yield {
            "id": str(run.number), "trace_id": "t", "parent_id": str(run.parent) if run.parent else None,
            "op_name": f"weave:///e/p/op/langchain.{run.kind.capitalize()}.{run.name}:d", "summary": {}, "inputs": {},
            "started_at": f"{stamp(run.number)}Z", "exception": "AssertionError" if run.failed else None,
            "attributes": kind | {"lc_name": run.name},
            "output": {"outputs": [{}], "extra": {"metadata": run.metadata}},
        }  # fmt: skip


FORMATS: dict[str, Callable[[list[Run]], Iterator[Any]]] = {
    "langsmith": langsmith,
    "langsmith, by times": lambda runs: (
        {("start_time" if key == "dotted_order" else key): value for key, value in run.items()}
        for run in langsmith(runs)
    ),
    "langfuse": langfuse,
    "langfuse, spans alone": lambda runs: json.loads(  # in which the name of the node alone tells a tool
        json.dumps([*langfuse(runs, tool="SPAN")]).replace("tool_node", "tools")
    ),
    "langfuse, agents": lambda runs: langfuse(runs, agent="AGENT"),
    "otlp": otlp,
    "otlp, agents": lambda runs: otlp(runs, agents=("coder", "boss")),
    "phoenix": phoenix,
    "mlflow": mlflow,
    "braintrust": braintrust,
    "weave": weave,
}
TELL_TOOLS = [name for name in FORMATS if name != "langfuse, spans alone"]


def acts(tmp_path: Path, log: Iterator[Any]) -> list[str]:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in log))
    traces = read(path)
    assert not [problem for problem in traces.problems if problem.is_failure]
    names, kinds = traces.agents["name"].to_pylist(), np.asarray(traces.graph.event_type)
    columns = zip(kinds, traces.graph.agent_ids, traces.events["status"].to_pylist(), strict=False)
    calls = ("message", "orchestrator_decision")
    said = [(EventType(int(kind)).name.lower(), names[int(agent)], status) for kind, agent, status in columns]
    return [f"{name} {'calls' if kind in calls else kind}{' error' * (s == 'error')}" for kind, name, s in said]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", FORMATS)
def test_what_runs_in_the_node_tools_belongs_to_the_agent_that_asked(tmp_path: Path, name: str, order: int) -> None:
    """In LangSmith's logs an agent `workflow` used all tools, and the coder none."""
    assert acts(tmp_path, FORMATS[name](TEAM[::order])) == [
        "planner calls",
        "coder calls", "coder tool_call", "coder tool_result error",
        "coder calls", "coder tool_call", "coder tool_result",
        "reviewer calls",
    ]  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_an_agent_that_a_tool_of_that_node_runs_is_started_by_who_asked(tmp_path: Path, name: str) -> None:
    """The node `tools` was an agent, since a model call lies below it."""
    assert acts(tmp_path, FORMATS[name](ASKED)) == [
        "boss calls", "boss spawn", "worker calls", "worker return", "boss calls",
    ]  # fmt: skip


KILLED = [
    Run(1, 0, "LangGraph", "chain"),
    node(2, "reviewer"), Run(3, 2, "model", "llm", "reviewer"),
    node(4, "coder"), Run(5, 4, "model", "llm", "coder"),
    node(6, "reviewer"), Run(7, 6, "run_tests", "tool", "reviewer"),
]  # fmt: skip


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", TELL_TOOLS)
def test_a_node_that_calls_a_model_elsewhere_runs_its_own_tools(tmp_path: Path, name: str, order: int) -> None:
    """The call before the tool was not logged, as where the run was killed: the tool was of the coder."""
    assert acts(tmp_path, FORMATS[name](KILLED[::order])) == [
        "reviewer calls", "coder calls", "reviewer tool_call", "reviewer tool_result",
    ]  # fmt: skip


def test_it_calls_a_model_in_another_trace_of_the_log(tmp_path: Path) -> None:
    other = [
        {
            **run,
            "id": f"b{run['id']}",
            "trace_id": "b",
            "parent_run_id": run["parent_run_id"] and f"b{run['parent_run_id']}",
        }
        for run in langsmith(KILLED[:3])
    ]
    assert acts(tmp_path, iter([*langsmith([KILLED[0], *KILLED[3:]]), *other])) == [
        "coder calls", "reviewer tool_call", "reviewer tool_result", "reviewer calls",
    ]  # fmt: skip


@pytest.mark.parametrize("name", TELL_TOOLS)
def test_a_node_of_tools_that_calls_a_model_once_does_not_run_its_own(tmp_path: Path, name: str) -> None:
    once = [
        *TEAM,
        node(14, "tools"), Run(15, 14, "model", "llm", "tools"),
        node(16, "coder"), Run(17, 16, "model", "llm", "coder"),
        node(18, "tools"), Run(19, 18, "edit", "tool", "tools"),
    ]  # fmt: skip
    acted = acts(tmp_path, FORMATS[name](once))
    assert acted[-4:] == ["tools calls", "coder calls", "coder tool_call", "coder tool_result"]
    assert acted[2] == "coder tool_call"


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", ["otlp", "phoenix", "mlflow"])
def test_an_agent_is_started_by_its_earliest_span(tmp_path: Path, name: str, order: int) -> None:
    """With the newest span first the later visit was the spawn: "use-before-spawn"."""
    assert acts(tmp_path, FORMATS[name](TWICE[::order])) == [
        "lead spawn", "planner calls", "planner return", "lead calls", "planner calls", "planner return",
        "lead calls",
    ]  # fmt: skip


def links(tmp_path: Path, log: Iterator[Any]) -> set[tuple[int, int, str]]:
    """The edges between events of different spans, by the numbers of the spans."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in log))
    traces = read(path)
    assert not [problem for problem in traces.problems if problem.is_failure]
    numbers = [int(name.split(".")[0], 16 if len(name) >= 16 else 10) for name in traces.events["event"].to_pylist()]
    count = traces.sizes.edges
    columns = (np.asarray(column)[:count] for column in (traces.graph.senders, traces.graph.receivers))
    kinds = [EdgeType(int(kind)).name.lower() for kind in np.asarray(traces.graph.edge_type)[:count]]
    ends = [[numbers[event] for event in column] for column in columns]
    assert len(set(zip(*ends, kinds, strict=True))) == count
    return {edge for edge in zip(*ends, kinds, strict=True) if edge[0] != edge[1]}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", FORMATS)
def test_a_node_follows_those_of_the_super_step_before(tmp_path: Path, name: str, order: int) -> None:
    """Nodes that ran one after another had no edge between them, whatever their metadata stated."""
    assert links(tmp_path, FORMATS[name](STEPS[::order])) == {
        (3, 5, "message"), (3, 7, "message"),  # side by side, after the planner
        (7, 10, "tool_dependency"),  # `tools` is of the node that called a model last
        (10, 12, "causal"), (5, 12, "temporal"), (7, 12, "message"),  # behind the router stand both
        (12, 15, "message"), (3, 15, "message"),  # it waited for the planner
        (15, 17, "temporal"),
    }  # fmt: skip
    without = [run._replace(step=0) for run in STEPS]
    assert {kind for _, _, kind in links(tmp_path, FORMATS[name](without[::order]))} <= {
        "tool_dependency", "temporal", "causal",
    }  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_a_graph_that_runs_again_under_one_parent_begins_anew(tmp_path: Path, name: str) -> None:
    again = [run._replace(number=run.number + 6, parent=run.parent + 6 * (run.parent > 1)) for run in STEPS[1:5]]
    log = [run._replace(waited="") for run in [*STEPS[:5], *again]]
    assert links(tmp_path, FORMATS[name](log)) == {
        (3, 5, "message"), (3, 9, "temporal"), (9, 11, "message"), (5, 11, "temporal"),
    }  # fmt: skip


def test_more_edges_between_visits_than_fit_are_refused_in_words(tmp_path: Path) -> None:
    """Two steps of a thousand visits are a log of a megabyte, and a million edges."""
    wide = [Run(1, 0, "LangGraph", "chain")]
    for number in range(2, 4004, 2):
        step, node = (1 if number < 2004 else 2), f"n{number}"
        wide += [Run(number, 1, node, "chain", node, step=step), Run(number + 1, number, "m", "llm", node, step=step)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in otlp(wide)))
    with pytest.raises(NothingReadError) as caught:
        read(path)
    assert [problem.kind for problem in caught.value.problems] == ["too-many"]
    assert "at most 1000000 edges between visits to nodes" in str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
def test_a_model_call_that_failed_is_an_error(tmp_path: Path, name: str) -> None:
    """It was one as OTLP, and none elsewhere."""
    runs = [run._replace(failed=run.kind == "llm" and run.node == "planner") for run in TEAM]
    said = acts(tmp_path, FORMATS[name](runs))
    assert said[0] == "planner calls error" and sum("error" in one for one in said) == 1


@pytest.mark.parametrize("name", FORMATS)
def test_an_agent_below_a_tool_is_one_of_its_own_though_its_name_is_the_callers(tmp_path: Path, name: str) -> None:
    """As Braintrust it was taken for a turn of the outer one. As OTLP its start did not name the tool."""
    runs = [run._replace(name="boss", node="boss") if run.name == "worker" else run for run in ASKED]
    runs = [run._replace(node="boss") if run.node == "worker" else run for run in runs]
    assert acts(tmp_path, FORMATS[name](runs)) == [
        "boss calls", "boss spawn", "boss calls", "boss return", "boss calls",
    ]  # fmt: skip
    traces = read(tmp_path / "log.jsonl")
    assert traces.sizes.agents == 2 and traces.events["tool"].to_pylist()[1] == "ask"


@pytest.mark.parametrize("name", TELL_TOOLS)
def test_a_model_call_inside_a_tool_did_not_ask_for_the_next_tool(tmp_path: Path, name: str) -> None:
    """As OTLP it had."""
    runs = [
        Run(1, 0, "LangGraph", "chain"), node(2, "coder"), Run(3, 2, "model", "llm", "coder"),
        Run(4, 2, "summarize", "tool", "coder"), Run(5, 4, "model", "llm", "coder"), Run(6, 2, "edit", "tool", "coder"),
    ]  # fmt: skip
    drawn = links(tmp_path, FORMATS[name](runs))
    assert {edge for edge in drawn if edge[2] == "tool_dependency"} == {
        (3, 4, "tool_dependency"), (3, 6, "tool_dependency"),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["langfuse", "langsmith, by times", "braintrust", "weave"])
def test_nodes_that_began_in_one_millisecond_are_in_the_order_of_their_steps(tmp_path: Path, name: str) -> None:
    """APIs list the newest first, so that the coder followed nobody."""
    visits = [Run(1, 0, "LangGraph", "chain")]
    for step, agent in enumerate(("planner", "coder", "writer"), 1):
        of = Run(2 * step, 1, agent, "chain", agent, step=step)
        visits += [of, Run(2 * step + 1, 2 * step, "m", "llm", agent, step=step)]
    text = json.dumps(list(FORMATS[name](visits[::-1])))
    for number in range(2, 8):
        text = text.replace(stamp(number), stamp(2)).replace(f'"start": {number}.0', '"start": 2.0')
    assert links(tmp_path, iter(json.loads(text))) == {(3, 5, "message"), (5, 7, "message")}
