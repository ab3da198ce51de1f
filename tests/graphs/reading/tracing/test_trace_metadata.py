"""Keys that users give to traces: none is read unasked, and those that look as a release or a kind are named."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import credit
from graphs.traces.batch import Traces

ABOUT = [{"release": f"v{i // 3 + 1}", "kind": ("refund", "bug")[i % 2], "user": f"u{i}"} for i in range(6)]
WHEN = "2026-01-01T00:00:00Z"


def openai_agents(i: int, about: dict[str, Any]) -> list[dict[str, Any]]:
    """A trace and its two spans."""
    of = {"object": "trace.span", "trace_id": f"t{i}", "started_at": WHEN, "ended_at": WHEN, "error": None}
    call = {"type": "generation", "model": "m", "usage": {"input_tokens": 3, "output_tokens": 2}}
    return [
        {"object": "trace", "id": f"t{i}", "workflow_name": "w", "group_id": None, "metadata": about},
        of | {"id": f"a{i}", "parent_id": None, "span_data": {"type": "agent", "name": "x"}},
        of | {"id": f"b{i}", "parent_id": f"a{i}", "span_data": call},
    ]


def langfuse(i: int, about: dict[str, Any]) -> list[dict[str, Any]]:
    """A trace with its call, whose metadata are a text as a table keeps them."""
    call = {"id": f"o{i}", "traceId": f"t{i}", "type": "GENERATION", "name": "c", "startTime": WHEN, "model": "m"}
    of_log = {"timestamp": WHEN, "projectId": "p", "scores": [], "observations": [call]}
    return [{"id": f"t{i}", "metadata": json.dumps(about), **of_log}]


def langsmith(i: int, about: dict[str, Any]) -> list[dict[str, Any]]:
    """A root run with a call, of one project."""
    of = {"trace_id": f"t{i}", "start_time": WHEN, "end_time": WHEN, "session_name": "desk", "error": None}
    extra = {"metadata": {"ls_version": f"l{i // 3}", **about}}
    root = {"id": f"t{i}", "name": "desk", "run_type": "chain", "parent_run_id": None, "extra": extra}
    return [of | root, of | {"id": f"c{i}", "name": "call", "run_type": "llm", "parent_run_id": f"t{i}"}]


def otlp(i: int, about: dict[str, Any]) -> list[dict[str, Any]]:
    """A root span with the attributes of its resource."""
    texts = {"telemetry.sdk.version": f"1.{i // 3}", **{f"app.{key}": value for key, value in about.items()}}
    resource = {"attributes": [{"key": key, "value": {"stringValue": value}} for key, value in texts.items()]}
    own = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    span = {"traceId": f"{i + 1:032x}", "spanId": f"{i + 1:016x}", "name": "chat m",
            "startTimeUnixNano": str(10**18 + i), "endTimeUnixNano": str(10**18 + i + 9),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in own.items()]}  # fmt: skip
    return [{"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}]


def sdk(i: int, about: dict[str, Any]) -> list[dict[str, Any]]:
    """A root span with the attributes of its resource, as the SDK prints it."""
    resource = {"telemetry.sdk.version": f"1.{i // 3}", **{f"app.{key}": value for key, value in about.items()}}
    own = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    ids = {"trace_id": f"0x{i + 1:032x}", "span_id": f"0x{i + 1:016x}"}
    return [{"name": "chat m", "context": ids, "parent_id": None, "start_time": WHEN, "end_time": WHEN,
             "attributes": own, "resource": {"attributes": resource}}]  # fmt: skip


def mlflow(i: int, about: dict[str, Any]) -> list[dict[str, Any]]:
    """A trace with tags and metadata of its user, beside those that MLflow writes."""
    first, *rest = about.items()
    info = {"trace_id": f"tr-{i + 1:032x}", "tags": {"mlflow.traceName": f"n{i // 3}", **dict(rest)},
            "trace_metadata": {"mlflow.source.type": f"l{i // 3}", **dict([first])}}  # fmt: skip
    span = {"trace_id": base64.b64encode((i + 1).to_bytes(16)).decode(), "name": "chat", "parent_span_id": None,
            "span_id": base64.b64encode((i + 1).to_bytes(8)).decode(), "start_time_unix_nano": 10**18 + i,
            "end_time_unix_nano": 10**18 + i + 9, "attributes": {"mlflow.spanType": '"CHAT_MODEL"'}}  # fmt: skip
    return [{"info": info, "data": {"spans": [span]}}]


FORMATS = [(openai_agents, ""), (langfuse, ""), (langsmith, ""), (otlp, "app."), (sdk, "app."), (mlflow, "")]


def written(folder: Path, log: Callable[[int, dict[str, Any]], list[dict[str, Any]]]) -> Path:
    (folder / "log.jsonl").write_text("\n".join(json.dumps(row) for i in range(6) for row in log(i, ABOUT[i])))
    return folder / "log.jsonl"


def notes(traces: Traces) -> list[str]:
    return [one.expected for one in traces.problems if one.kind == "unread-metadata"]


@pytest.mark.parametrize(("log", "prefix"), FORMATS, ids=[log.__name__ for log, _ in FORMATS])
def test_keys_that_look_as_a_release_or_a_kind_are_named_and_read_where_asked(
    log: Callable[[int, dict[str, Any]], list[dict[str, Any]]], prefix: str, tmp_path: Path
) -> None:
    """Releases and kinds stood in each trace, and the user was told to write them into a table by hand."""
    path = written(tmp_path, log)
    traces = credit.read(path)
    option = f"--columns {'task_kind'}={prefix}kind,system={prefix}release"
    (expected,) = notes(traces)
    assert {*option.split()[1].split(",")} == {*expected.split("--columns ")[1].split(",")}
    assert not {"refund", "v1"} & {*traces.traces["task_kind"].to_pylist(), *traces.traces["system"].to_pylist()}
    asked = credit.read(path, columns={"system": f"{prefix}release", "task_kind": f"{prefix}kind"})
    assert asked.traces["system"].to_pylist() == [of["release"] for of in ABOUT]
    assert asked.traces["task_kind"].to_pylist() == [of["kind"] for of in ABOUT]
    assert not asked.problems and not notes(asked)


@pytest.mark.parametrize(("log", "prefix"), FORMATS, ids=[log.__name__ for log, _ in FORMATS])
def test_tasks_of_metadata_are_named_and_read_where_asked(
    log: Callable[[int, dict[str, Any]], list[dict[str, Any]]], prefix: str, tmp_path: Path
) -> None:
    """`--columns group=ticket` read the log as a table, though kinds and releases were taken from the same metadata."""
    about = [{"ticket_id": f"T{i % 6}", "user_id": f"u{i % 6}", "question": f"q{i % 2}"} for i in range(12)]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(row) for i, stated in enumerate(about) for row in log(i, stated)))
    option = f"--columns group={prefix}ticket_id"
    assert notes(credit.read(path)) == [f"`group`: read with {option}"]
    traces = credit.read(path, columns={"group": f"{prefix}ticket_id"})
    assert not traces.problems and traces.traces["task"].to_pylist() == [of["ticket_id"] for of in about]
    names = traces.traces["trace"].to_pylist()
    assert not credit.read(path, groups=dict.fromkeys(names, "q")).problems  # which says it


def test_a_column_of_tables_is_blamed_and_no_key_of_metadata(tmp_path: Path) -> None:
    """The kind was said to be no column, with the hint "Did you mean id?"; the turn was at fault."""
    path = written(tmp_path, langfuse)
    with pytest.raises(credit.NothingReadError) as caught:
        credit.read(path, columns={"task_kind": "kind", "turn": "round"})
    (problem,) = caught.value.problems
    assert (problem.kind, problem.field, problem.value) == ("missing-column", "columns", "'turn=round'")
    assert "group, task_kind, system alone" in problem.expected and "langfuse" in problem.expected


def test_a_key_that_no_trace_has_is_a_problem(tmp_path: Path) -> None:
    path = written(tmp_path, openai_agents)
    (problem,) = [one for one in credit.read(path, columns={"system": "relase"}).problems if one.is_failure]
    assert problem.kind == "absent-metadata" and "traces: kind, name, release, user;" in problem.expected
    assert problem.expected.endswith("; a table with columns `trace` and `system` goes to --groups")


@pytest.mark.parametrize("log", [openai_agents, langfuse, langsmith, mlflow])
def test_a_kind_may_be_the_name_of_traces_or_their_tag(
    log: Callable[[int, dict[str, Any]], list[dict[str, Any]]], tmp_path: Path
) -> None:
    """Only metadata could be: `task_kind=name` was a key that no trace has."""
    rows = [row for i in range(6) for row in log(i, ABOUT[i])]
    heads = [row for row in rows if log is mlflow or row.get("object") == "trace" or row.get("id", "")[:1] == "t"]
    for i, head in enumerate(heads):
        name = {openai_agents: "workflow_name", mlflow: "mlflow.traceName"}.get(log, "name")
        (head["info"]["tags"] if log is mlflow else head).update({name: ABOUT[i]["kind"]})
        head["tags"] = [ABOUT[i]["release"], *["desk"] * (i == 5)]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    named = credit.read(path, columns={"task_kind": "name"})
    assert named.traces["task_kind"].to_pylist() == [of["kind"] for of in ABOUT]
    assert not any(one.is_failure for one in named.problems)
    if log in (langfuse, langsmith):  # none is the kind of a trace of two
        tagged = credit.read(path, columns={"task_kind": "tags"}).traces["task_kind"].to_pylist()
        assert tagged == [of["release"] for of in ABOUT[:5]] + [None]


def test_a_log_of_which_every_trace_is_refused_has_its_keys_of_metadata(tmp_path: Path) -> None:
    """Behind 347 traces that a cut line refused stood that none has the key."""
    path = written(tmp_path, openai_agents)
    path.write_text(path.read_text() + '\n{"object": "trace.sp')
    with pytest.raises(credit.NothingReadError) as caught:
        credit.read(path, columns={"system": "release"})
    assert {problem.kind for problem in caught.value.problems if problem.is_failure} == {"bad-json", "lost-row"}


def test_a_table_that_states_kinds_needs_no_note(tmp_path: Path) -> None:
    path = written(tmp_path, openai_agents)
    (tmp_path / "kinds.csv").write_text("trace,task_kind\nt0,refund\n")
    assert not notes(credit.read(path, groups=tmp_path / "kinds.csv"))
