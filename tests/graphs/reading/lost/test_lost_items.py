"""Items that are JSON and lack what tells their trace or kind: they were taken for others, and something was lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.logs import read

from .test_lost_parts import LOGS, found, observation, run, score, sdk_span, write

CHAT = {"gen_ai.operation.name": "chat"}


def channels(folder: Path) -> dict[str, list[float]]:
    evidence = read(folder).evidence
    return {name: evidence[name].amounts.tolist() for name in evidence if name.startswith("rewards.")}


def test_a_score_that_a_trace_of_langfuse_names_only_makes_no_other_the_outcome(tmp_path: Path) -> None:
    """The other one was the only channel, and so the outcome."""
    trace = {
        "id": "t",
        "projectId": "p",
        "timestamp": "2026-01-01T00:00:00Z",
        "scores": [score("q", 1.0, "t"), "s-r-t"],
    }
    log = {"trace": trace, "observations": [observation("o", "t", "x")]}
    assert found(tmp_path, [log]) == (["t"], [("missing-part", "t")])
    assert channels(tmp_path) == {"rewards.q": [1.0]}
    (tmp_path / "scores.json").write_text(json.dumps({"data": [score("r", 0.0, "t")], "meta": {}, "projectId": "p"}))
    assert found(tmp_path, [log]) == (["t"], [])
    assert channels(tmp_path) == {"rewards.q": [1.0], "rewards.r": [0.0]}
    (tmp_path / "scores.json").unlink()
    for wrong in (0.5, True, None, [score("r", 0.0, "t")], ""):
        log["trace"] = trace | {"scores": [score("q", 1.0, "t"), wrong]}
        traces, problems = found(tmp_path, [log])
        assert traces == [] and len(problems) == 1, wrong


def test_an_observation_that_a_trace_of_langfuse_names_only_is_missed(tmp_path: Path) -> None:
    named = {"id": "t", "timestamp": "2026-01-01T00:00:00Z", "observations": ["o", "lost"], "scores": []}
    page = {"data": [named], "meta": {"page": 1}, "projectId": "p"}
    (tmp_path / "page.json").write_text(json.dumps(page))
    assert found(tmp_path, [observation("o", "t", "x")]) == (["t"], [("missing-part", "t")])


def test_an_observation_of_langfuse_without_a_time_is_no_score(tmp_path: Path) -> None:
    """It was taken for a score without a value, and lost."""
    untimed = {key: value for key, value in observation("A3", "A", "A1").items() if key != "startTime"}
    traces = read(write(tmp_path, [*LOGS["langfuse"], untimed]))
    assert traces.problems == () and traces.events["event"].to_pylist().count("A3") == 1


def test_a_run_of_langsmith_without_its_trace_is_none_of_its_own(tmp_path: Path) -> None:
    """It was a trace, and the trace of the run above it was read without it."""
    untold = run("A3", "", "A1")
    assert found(tmp_path, [*LOGS["langsmith"], untold | {"trace_id": None}]) == (
        ["B"],
        [("missing-field", ""), ("lost-row", "A")],
    )


def test_a_span_of_agent_lightning_without_an_id_is_no_attempt(tmp_path: Path) -> None:
    """It was taken for the record of an attempt: its reward was lost, and the one before it was the outcome."""

    def span(number: int, name: str, **attributes: Any) -> dict[str, Any]:
        return {"rollout_id": "r", "attempt_id": "a", "sequence_id": number, "span_id": f"s{number}", "parent_id": None,
                "trace_id": "t", "name": name, "attributes": attributes, "start_time": 0.0, "end_time": 1.0,
                "status": {"status_code": "OK"}}  # fmt: skip

    def reward(number: int, amount: float) -> dict[str, Any]:
        return span(number, "agentlightning.annotation", **{"agentlightning.reward.0.value": amount})

    log = [span(1, "openai.chat.completion"), reward(2, 0.0), reward(3, 1.0)]
    assert float(read(write(tmp_path, log)).reward[0]) == 1.0
    for lost in ({"span_id": None}, {"span_id": None, "status": None}):
        assert found(tmp_path, [*log[:2], log[2] | lost]) == ([], [("unknown-item", "r")])


def test_an_event_of_openhands_that_is_neither_action_nor_observation_refuses_its_trace(tmp_path: Path) -> None:
    """It was left out, an action among them."""
    event_of = {"timestamp": "2026-01-01T00:00:00", "source": "agent", "cause": None}
    stream = [{"id": 0, "action": "run", **event_of}, {"id": 1, "observation": "run", **event_of, "cause": 0}]
    assert found(tmp_path, stream) == (["log"], [])
    assert found(tmp_path, [*stream, {"id": 2, **event_of}]) == ([], [("missing-field", "log")])


def test_an_event_of_openhands_that_stands_twice_counts_not_twice(tmp_path: Path) -> None:
    """A second model call was made of it."""
    first = {"id": 0, "timestamp": "2026-01-01T00:00:00", "source": "agent", "cause": None, "action": "think"}
    assert found(tmp_path, [first, first | {"id": 1}]) == (["log"], [])
    assert found(tmp_path, [first, first]) == ([], [("duplicate-id", "log")])


@pytest.mark.parametrize(
    "fault", [{"start_time": True}, {"parent_id": True}, {"attributes": 5}, {"status": 7}, {"start_time": -1}]
)
@pytest.mark.parametrize("own", ["ab" * 16, "AB" * 16, int("ab" * 16, 16)])
def test_a_span_of_a_dump_with_a_fault_refuses_its_trace(tmp_path: Path, fault: dict[str, Any], own: str | int) -> None:
    """The trace was read without it where the fault was in a type, or the id was in capitals."""
    other = {"trace_id": "cd" * 16, "span_id": f"{9:016x}", "name": "chat", "attributes": CHAT}
    spans = [{"context": {"trace_id": own, "span_id": f"{i:016x}"}, "name": "chat", "attributes": CHAT} for i in (1, 2)]
    for lines in ([*spans, other], [{"spans": [*spans, other]}]):
        assert found(tmp_path, lines) == (["ab" * 16, "cd" * 16], [])
    faulty = spans[1] | fault
    for lines in ([spans[0], faulty, other], [{"spans": [spans[0], faulty, other]}]):
        traces, ((_, trace),) = found(tmp_path, lines)
        assert traces == ["cd" * 16] and trace == "ab" * 16


def phoenix(rows: int, **columns: Any) -> pa.Table:
    """Calls of two traces in turn, as Phoenix exports them."""
    base = {
        "name": ["chat"] * rows,
        "span_kind": ["LLM"] * rows,
        "parent_id": [None] * rows,
        "context.trace_id": ["ab" * 16, "CD" * 16] * (rows // 2),
        "context.span_id": [f"{i + 1:016x}" for i in range(rows)],
        "status_code": ["OK"] * rows,
        "start_time": list(range(1, rows + 1)),
    }
    return pa.table(base | columns)


@pytest.mark.parametrize("column", ["name", "parent_id", "status_code", "start_time"])
def test_a_row_of_phoenix_with_a_fault_refuses_its_trace(tmp_path: Path, column: str) -> None:
    """The trace was read without the row."""
    pq.write_table(phoenix(6), tmp_path / "spans.parquet")
    assert found(tmp_path, [], "no.txt") == (["ab" * 16, "cd" * 16], [])
    wrong: Any = True if column == "start_time" else 5
    for at, left in ((4, "cd" * 16), (5, "ab" * 16)):
        cells = [wrong if row == at else None for row in range(6)]
        pq.write_table(phoenix(6, **{column: cells}), tmp_path / "spans.parquet")
        traces, problems = found(tmp_path, [], "no.txt")
        assert traces == [left] and [kind for kind, _ in problems] == ["bad-type"]


def test_an_export_of_phoenix_that_breaks_off_gives_no_trace(tmp_path: Path) -> None:
    """Of 3,000 rows, 1,023 were read as a whole trace."""
    path = tmp_path / "spans.parquet"
    pq.write_table(phoenix(3000), path, row_group_size=1000, use_dictionary=False)
    content = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(2).column(4).data_page_offset
    content[start + 40 : start + 400] = b"\xff" * 360
    path.write_bytes(content)
    traces, problems = found(tmp_path, [], "no.txt")
    assert traces == [] and [kind for kind, _ in problems] == ["bad-row", "lost-row", "lost-row"]


def test_a_step_of_atif_that_stands_twice_counts_not_twice(tmp_path: Path) -> None:
    """A second model call was made of it."""
    steps = [{"step_id": 1, "source": "user", "message": "go"}, {"step_id": 2, "source": "agent", "message": "x"}]
    log = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": steps}
    assert found(tmp_path, [log]) == (["s"], [])
    assert found(tmp_path, [log | {"steps": [*steps, steps[1]]}]) == ([], [("duplicate-id", "s")])


@pytest.mark.parametrize("lost", [5, None, "A3", [], {}, {"id": "A3", "name": "x"}])
def test_an_element_that_is_no_part_refuses_the_trace_that_holds_it(tmp_path: Path, lost: Any) -> None:
    """It was named alone, or taken for a trace without events, and the trace was read without it."""
    logs: list[Callable[[Any], dict[str, Any]]] = [
        lambda more: run("A1", "A", child_runs=[run("A2", "A", "A1"), *more]),
        lambda more: {"object": "trace", "id": "A", "spans": [sdk_span("A1", "A"), sdk_span("A2", "A", "A1"), *more]},
        lambda more: {"trace": {"id": "A", "projectId": "p"}, "observations": [observation("A1", "A", "x"), *more]},
    ]
    for log in logs:
        assert found(tmp_path, [log([])]) == (["A"], [])
        assert found(tmp_path, [log([lost])])[0] == []


def test_an_observation_of_langfuse_without_its_trace_is_none_of_its_own(tmp_path: Path) -> None:
    """It was a trace without events, which is no fault, and its trace was read without it."""
    untold = {key: value for key, value in observation("A3", "A", "A1").items() if key != "traceId"}
    for one in (untold, untold | {"traceId": None}):
        assert found(tmp_path, [*LOGS["langfuse"], one]) == (["B"], [("missing-field", ""), ("lost-row", "A")])
        log = {"trace": {"id": "A", "projectId": "p"}, "observations": [observation("A1", "A", "x"), one]}
        assert found(tmp_path, [log]) == ([], [("missing-field", "A")])
