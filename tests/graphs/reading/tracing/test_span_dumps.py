"""Spans in other envelopes than OTLP: ids, times and attributes of each, and one team in all of them."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.errors import NothingReadError
from graphs.event_types import EventType
from graphs.logs import detect, read
from graphs.traces.batch import Traces
from graphs.writers import native

from ..samples import PHOENIX, RECORDINGS, SAMPLES, STRANDS, TRACE


def shape(traces: Traces) -> list[tuple[str, str]]:
    names = dict(enumerate(traces.agents["name"].to_pylist()))
    graph = traces.graph
    return [
        (EventType(int(graph.event_type[i])).name.lower(), names[int(graph.agent_ids[i])])
        for i in range(traces.sizes.events)
    ]


TEAM = [("message", "lead"), ("tool_call", "lead"), ("tool_result", "lead")]


@pytest.mark.parametrize("name", [name for name in SAMPLES if name.startswith("spans")])
def test_the_envelope_does_not_matter(tmp_path: Path, name: str) -> None:
    traces = read(SAMPLES[name].write(tmp_path))
    agent = "invoke_agent" if name in ("spans of phoenix", "spans of mlflow") else "lead"  # they name the span only
    assert shape(traces) == [(kind, agent) for kind, _ in TEAM]
    assert traces.evidence["tokens"].amounts.tolist() == [4]
    assert traces.traces["trace"].to_pylist() == [f"tr-{TRACE}" if name == "spans of mlflow" else TRACE]
    if name != "spans of phoenix":
        assert float(traces.reward[0]) == 0.5
    if name != "spans of mlflow":
        assert traces.traces["model"].to_pylist() == ["m"]


def test_the_console_exporter_prints_one_object_after_another() -> None:
    path = RECORDINGS / "spans_console.json"
    assert detect(path.read_bytes()) == "spans"
    traces = read(path)
    assert traces.problems == ()
    assert shape(traces) == [
        ("orchestrator_decision", "lead"), ("tool_call", "lead"), ("tool_result", "lead"), ("spawn", "lead"),
        ("message", "worker"), ("return", "worker"), ("orchestrator_decision", "lead"),
    ]  # fmt: skip
    assert float(traces.reward[0]) == 0.75
    assert traces.evidence["tokens"].amounts.tolist() == [3, 5, 7]
    assert traces.events["line"].to_pylist()[0] == 1
    broken = path.read_text().replace('"kind"', '"kind', 1)
    with pytest.raises(NothingReadError) as caught:  # the only trace lacks a span
        read_text(broken)
    assert [problem.kind for problem in caught.value.problems] == ["bad-json", "lost-row"]


def test_any_agent_calls_its_model_calls_otherwise() -> None:
    """Recorded with any-agent: `call_llm` is its operation, ids are numbers, and so is the parent's."""
    traces = read(RECORDINGS / "spans_any_agent.json")
    assert traces.problems == ()
    assert shape(traces) == [(kind, "any_agent") for kind in ("message", "tool_call", "tool_result", "message")]
    assert traces.evidence["tokens"].amounts.tolist() == [3, 5]
    assert traces.traces["model"].to_pylist() == ["tiny"]


def test_ag2_is_read_by_its_own_telemetry() -> None:
    """Recorded with AG2 1.x: a worker that is a tool of the lead is spawned, and usage told twice counts once."""
    traces = read(RECORDINGS / "spans_ag2.json")
    assert traces.problems == ()
    assert shape(traces) == [
        ("orchestrator_decision", "lead"), ("spawn", "lead"), ("message", "worker"), ("tool_call", "worker"),
        ("tool_result", "worker"), ("message", "worker"), ("return", "worker"), ("orchestrator_decision", "lead"),
    ]  # fmt: skip
    assert traces.evidence["tokens"].amounts.tolist() == [5, 7]


def test_mlflow_exports_ids_in_base64_and_feedback_on_the_trace(tmp_path: Path) -> None:
    """Recorded with MLflow; an id in base64 may begin like a prefix that other dumps put before theirs."""
    path = RECORDINGS / "spans_mlflow.json"
    assert detect(path.read_bytes()) == "spans"
    text = path.read_text()
    trace, span = (json.loads(text)["data"]["spans"][0][name] for name in ("trace_id", "span_id"))
    for prefix in ("", "tr", "0x"):
        log = tmp_path / f"{prefix}.json"
        log.write_text(text.replace(trace, prefix + trace[len(prefix) :]).replace(span, prefix + span[len(prefix) :]))
        traces = read(log)
        assert traces.problems == ()
        assert shape(traces) == [
            ("orchestrator_decision", "lead"), ("tool_call", "lead"), ("tool_result", "lead"), ("spawn", "lead"),
            ("message", "worker"), ("return", "worker"), ("orchestrator_decision", "lead"),
        ]  # fmt: skip
        assert float(traces.reward[0]) == 0.75
        assert traces.evidence["tokens"].amounts.tolist() == [3, 5, 7]


def test_a_trace_has_the_id_that_mlflow_gives_it(tmp_path: Path) -> None:
    """Tables of groups and outcomes, which come from MLflow, named no trace that was read."""
    log = json.loads((RECORDINGS / "spans_mlflow.json").read_text())
    name = log["info"]["trace_id"]
    (tmp_path / "groups.csv").write_text(f"trace,group\n{name},ticket\n")
    traces = read(RECORDINGS / "spans_mlflow.json", groups=tmp_path / "groups.csv")
    assert traces.problems == () and traces.traces["task"].to_pylist() == ["ticket"]
    log["data"]["spans"][2]["name"] = 5  # a span that cannot be read is of the same trace
    (tmp_path / "log.json").write_text(json.dumps(log))
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path / "log.json")
    assert [(problem.kind, problem.trace) for problem in caught.value.problems] == [("bad-type", name)]


@pytest.mark.parametrize(
    ("outputs", "model", "requested"),
    [({"model": "small"}, "small", "big"), ({"model": "big"}, "big", None), ("done", "big", None)],
)
def test_mlflow_names_the_model_of_a_call(outputs: Any, model: str, requested: str | None, tmp_path: Path) -> None:
    """Its calls had no model, so that no table of prices said what they cost."""
    log = json.loads((RECORDINGS / "spans_mlflow.json").read_text())
    called = [span for span in log["data"]["spans"] if span["name"] == "model"]
    for span in called:
        span["attributes"] |= {"mlflow.llm.model": '"big"', "mlflow.spanOutputs": json.dumps(outputs)}
    (tmp_path / "log.json").write_text(json.dumps(log))
    traces = read(tmp_path / "log.json")
    assert traces.traces["model"].to_pylist() == [model]
    assert traces.events["requested_model"].drop_null().to_pylist() == [requested] * 3 * (requested is not None)


def assessed(folder: Path, *changes: dict[str, Any]) -> Path:
    """MLflow's recording, whose reward of 0.75 is there once for each of the changes to it."""
    log = json.loads((RECORDINGS / "spans_mlflow.json").read_text())
    (reward,) = log["info"]["assessments"]
    log["info"]["assessments"] = [reward | change for change in changes]
    path = folder / "log.json"
    path.write_text(json.dumps(log))
    return path


@pytest.mark.parametrize("old", [{"valid": False}, {}, {"valid": None}])
def test_an_overridden_assessment_of_mlflow_is_no_reward(tmp_path: Path, old: dict[str, Any]) -> None:
    """The one that a word overrode was the reward, and one that a number overrode refused the trace."""
    first = {"assessment_id": "a", **old}
    second = {"assessment_id": "b", "overrides": "a", "valid": True}
    by_number = read(assessed(tmp_path, first, second | {"feedback": {"value": 0.25}}))
    assert by_number.problems == () and float(by_number.reward[0]) == 0.25
    by_word = read(assessed(tmp_path, first, second | {"feedback": {"value": "no"}}))
    assert [p.kind for p in by_word.problems] == ["worded-outcomes"] and float(by_word.reward[0]) == 0


def test_an_assessment_of_mlflow_that_is_not_valid_is_no_reward(tmp_path: Path) -> None:
    assert np.isnan(read(assessed(tmp_path, {"valid": False})).reward[0])


@pytest.mark.parametrize("value", ["0.75", "1", "true", "False", pytest.param(10**400, id="huge")])
def test_an_assessment_of_mlflow_with_another_number_is_named(tmp_path: Path, value: Any) -> None:
    """There was no reward, nor of a truth in quotes, and a number too large for a float ended the reading."""
    with pytest.raises(NothingReadError) as caught:
        read(assessed(tmp_path, {"feedback": {"value": value}}))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.field) == ("bad-attribute", "trace.evaluations.0.evaluation.score")
    by_word = read(assessed(tmp_path, {"feedback": {"value": "yes"}}))
    assert [p.kind for p in by_word.problems] == ["worded-outcomes"] and float(by_word.reward[0]) == 1


def read_text(text: str) -> Traces:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dump.json")
        path.write_text(text)
        return read(path)


def test_phoenix_exports_a_row_a_span(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for one in PHOENIX["data"]:
        llm = one["attributes"]["llm"]
        rows.append(
            {"context.trace_id": one["context"]["trace_id"], "context.span_id": one["context"]["span_id"],
             "parent_id": one["parent_id"], "name": one["name"], "span_kind": one["span_kind"],
             "start_time": one["start_time"], "end_time": one["end_time"], "status_code": "OK",
             "attributes.llm.token_count.completion": llm["token_count"]["completion"],
             "attributes.llm.output_messages": llm["output_messages"], "attributes.llm.model_name": "m"}
        )  # fmt: skip
    path = tmp_path / "spans.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    traces = read(path)
    assert traces.problems == ()
    assert shape(traces) == [(kind, "invoke_agent") for kind, _ in TEAM]
    assert traces.traces["format"].to_pylist() == ["spans"]


def test_phoenix_gives_what_it_was_sent(tmp_path: Path) -> None:
    """Recorded with Phoenix' server and client: its two exports are one trace, and its spans count as they stand."""
    pages = json.loads((RECORDINGS / "spans_phoenix.json").read_text())["data"]
    rows = pq.read_table(RECORDINGS / "spans_phoenix.parquet").to_pylist()
    kinds = [span["span_kind"] for span in pages]
    assert sorted(kinds) == sorted(row["span_kind"] for row in rows)
    calls = sorted((span for span in pages if span["span_kind"] == "LLM"), key=lambda span: str(span["start_time"]))
    tokens = [call["attributes"]["llm.token_count.completion"] for call in calls]
    tools = {span["context"]["span_id"]: span["attributes"].get("tool.name", span["name"])
             for span in pages if span["span_kind"] == "TOOL" and not span["name"].startswith("handoff")}  # fmt: skip
    own = [read(RECORDINGS / f"spans_phoenix.{suffix}") for suffix in ("json", "parquet")]
    for traces in own:
        assert traces.problems == ()
        assert traces.traces.select(["trace", "model", "format"]).to_pylist() == [
            {"trace": pages[0]["context"]["trace_id"], "model": "tiny", "format": "spans"}
        ]
        assert traces.evidence["tokens"].amounts.tolist() == tokens == [3, 5, 7]
        assert int(traces.graph.action_mask.sum()) == len(calls)
        named = dict(zip(traces.events["event"].to_pylist(), traces.events["tool"].to_pylist(), strict=True))
        assert {name: named[name] for name in tools} == tools
        assert shape(traces) == [
            ("orchestrator_decision", "triage"), ("tool_call", "triage"), ("tool_result", "triage"),
            ("orchestrator_decision", "triage"), ("spawn", "triage"), ("message", "writer"),
        ]  # fmt: skip
    columns = ("event", "time", "tool", "status")
    assert own[0].events.select(columns).equals(own[1].events.select(columns))
    for name in ("senders", "receivers", "edge_type", "turn_ids", "agent_parent"):
        assert getattr(own[0].graph, name).tolist() == getattr(own[1].graph, name).tolist()
    native.write(own[0], tmp_path / "native.jsonl")
    again = read(tmp_path / "native.jsonl")
    assert again.problems == () and shape(again) == shape(own[0])


def test_strands_calls_an_agent_as_a_tool(tmp_path: Path) -> None:
    """Recorded with Strands: cycles of its loop are structure, and a tool that runs an agent spawns it."""
    traces = read(RECORDINGS / "spans_strands.json")
    assert traces.problems == ()
    assert shape(traces) == [
        ("orchestrator_decision", "lead"), ("spawn", "lead"), ("message", "worker"), ("tool_call", "worker"),
        ("tool_result", "worker"), ("message", "worker"), ("return", "worker"), ("orchestrator_decision", "lead"),
    ]  # fmt: skip
    text, at, spans = (RECORDINGS / "spans_strands.json").read_text(), 0, list[Any]()
    while at < len(text):
        span, at = json.JSONDecoder().raw_decode(text, at)
        at += 1  # the end of its line
        spans.append(span)
    calls = [one["attributes"] for one in spans if one["name"] == "chat"]
    output = [call["gen_ai.usage.output_tokens"] for call in calls]
    assert len(spans) == 12 and output == [4, 3, 5, 7]
    assert traces.evidence["tokens"].amounts.tolist() == output  # usage told again by agents counts once


def test_ids_and_times_however_written(tmp_path: Path) -> None:
    first = {**STRANDS[0], "trace_id": int(TRACE, 16), "start_time": "2026-01-01T00:00:00Z"}
    second = {**STRANDS[2], "span_id": "0x0000000000000001", "end_time": "2026-01-01T01:00:01+01:00"}
    path = tmp_path / "spans.json"
    path.write_text(json.dumps([first, second]))
    traces = read(path)
    assert shape(traces) == [("message", "lead")]
    assert traces.events["time"].to_pylist() == [1_767_225_600.0]
    path.write_text(json.dumps([{**first, "start_time": "soon"}, *STRANDS]))
    problem = read_problem(path)
    assert (problem.kind, problem.field) == ("bad-time", "start_time")


@pytest.mark.parametrize("field", ["start_time", "end_time"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_time_before_1970_refuses_its_trace(tmp_path: Path, field: str, at: int) -> None:
    """A date became an unknown time, where a number was refused."""
    path = tmp_path / "spans.json"
    other = [{**span, "trace_id": "1" * 32} for span in STRANDS]
    for value in ("1969-12-31T23:59:59Z", "1970-01-01T00:00:00+01:00", -1, -0.5):
        path.write_text(json.dumps([*STRANDS[:at], {**STRANDS[at], field: value}, *STRANDS[at + 1 :], *other]))
        traces = read(path)
        assert traces.traces["trace"].to_pylist() == ["1" * 32]
        failures = [problem for problem in traces.problems if problem.is_failure]
        assert [(problem.kind, problem.field, problem.trace) for problem in failures] == [("bad-time", field, TRACE)]


def test_times_of_parquet_files_of_phoenix(tmp_path: Path) -> None:
    """A number with a fraction, and what is no time, were unknown times."""
    ids = {"name": ["x"], "span_kind": ["LLM"], "parent_id": pa.array([None], pa.string())}
    ids |= {"context.trace_id": [TRACE], "context.span_id": ["1" * 16]}
    path = tmp_path / "spans.parquet"
    for start, time in ((1_767_225_600.5, 1_767_225_600.5), (None, None)):
        pq.write_table(pa.table({**ids, "start_time": pa.array([start], pa.float64())}), path)
        assert read(path).events["time"].to_pylist() == [time]
    pq.write_table(pa.table({**ids, "start_time": [True]}), path)
    problem = read_problem(path)
    assert (problem.kind, problem.field, problem.value) == ("bad-type", "start_time", "True")


def read_problem(path: Path) -> Any:
    with pytest.raises(NothingReadError) as caught:
        read(path)
    return caught.value.problems[0]


@pytest.mark.parametrize("cut", [60, 150])
def test_an_indented_first_line_that_is_no_json_refuses_its_trace(tmp_path: Path, cut: int) -> None:
    """What stood before the first line that begins with a brace was passed over."""
    lines = [
        json.dumps({"trace_id": trace * 32, "span_id": str(number) * 16, "name": "c", "start_time": number + 1,
                    "end_time": number + 2, "attributes": {"gen_ai.operation.name": "chat"}})
        for number, trace in enumerate("aaab", start=1)
    ]  # fmt: skip
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(["  " + lines[0][:cut], *lines[1:]]))
    traces = read(path)
    assert traces.traces["trace"].to_pylist() == ["b" * 32]
    assert [(problem.kind, problem.line, problem.trace) for problem in traces.problems] == [
        ("bad-json", 1, ""), ("lost-row", 1, "a" * 32),
    ]  # fmt: skip
    path.write_text("\n".join(["  " + json.dumps(json.loads(lines[0]), indent=1), *lines[1:]]))
    assert (read(path).problems, read(path).sizes.events) == ((), 4)


def test_a_trace_keeps_the_dashes_of_its_id(tmp_path: Path) -> None:
    """Printed without them, an id was not found in the product that had shown it."""
    written = str(uuid.UUID(hex=TRACE)).upper()
    spans = [span | {"trace_id": written} for span in STRANDS]
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(spans))
    assert read(path).traces["trace"].to_pylist() == [written.lower()]
