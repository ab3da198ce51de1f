"""A span that does not state its trace refuses the trace that it is part of, which was read without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..lost.test_lost_parts import dumped, exported, found, scored

A, B = "a" * 32, "b" * 32


def below(own: int, trace: str, parent: int) -> dict[str, Any]:
    """A request of OTLP with a span below another."""
    request = exported(own, trace)
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["parentSpanId"] = f"{parent:016x}"
    return request


def without(request: dict[str, Any], **change: Any) -> dict[str, Any]:
    """The request, its records without a trace id or with another."""
    text = json.loads(json.dumps(request))
    for group in (*text.get("resourceSpans", ()), *text.get("resourceLogs", ())):
        for scope in (*group.get("scopeSpans", ()), *group.get("scopeLogs", ())):
            for record in (*scope.get("spans", ()), *scope.get("logRecords", ())):
                del record["traceId"]
                record |= change
    return text


CHANGES: list[dict[str, Any]] = [{}, {"traceId": None}, {"traceId": 5}, {"traceId": "a" * 31}]


@pytest.mark.parametrize("change", CHANGES)
def test_a_span_of_otlp_below_one_of_a_trace_is_part_of_it(tmp_path: Path, change: dict[str, Any]) -> None:
    log = [exported(1, "a"), below(2, "a", 1), exported(3, "b"), below(4, "b", 3)]
    assert found(tmp_path, log) == ([A, B], [])
    kind = "bad-type" if change == {"traceId": 5} else "bad-id"
    lost = [*log[:1], without(log[1], **change), *log[2:]]
    assert found(tmp_path, lost) == ([B], [(kind, ""), ("lost-row", A)])
    above = [without(log[0], **change), *log[1:]]
    assert found(tmp_path, above) == ([B], [(kind, ""), ("lost-row", A)])


@pytest.mark.parametrize("element", [{}, 5, None, {"name": "x"}])
@pytest.mark.parametrize("indent", [None, 1])
def test_what_is_no_span_in_a_request_of_one_trace_is_part_of_it(
    tmp_path: Path, element: Any, indent: int | None
) -> None:
    (tmp_path / "other.jsonl").write_text(json.dumps(exported(9, "b")))
    one, both = exported(1, "a"), exported(1, "a")
    spans = [request["resourceSpans"][0]["scopeSpans"][0]["spans"] for request in (one, both)]
    spans[0].append(element)
    assert [trace for _, trace in found(tmp_path, [json.dumps(one, indent=indent)], "log.json")[1]] == ["", A]
    spans[1].extend((element, exported(3, "c")["resourceSpans"][0]["scopeSpans"][0]["spans"][0]))
    assert len(found(tmp_path, [json.dumps(both, indent=indent)], "log.json")[0]) == 3


def test_an_evaluation_of_a_span_without_a_usable_trace_is_of_its_trace(tmp_path: Path) -> None:
    log = [exported(1, "a"), exported(3, "b"), scored("b")]
    lost = without(scored("a"), traceId=5, spanId=f"{1:016x}")
    assert found(tmp_path, [*log, lost]) == ([B], [("bad-type", ""), ("lost-row", A)])


def bare(own: int, trace: str, parent: int | None = None) -> dict[str, Any]:
    return dumped(own, trace) | {"parent_id": parent and f"{parent:016x}"}


def in_context(own: int, trace: str, parent: int | None = None) -> dict[str, Any]:
    span = bare(own, trace, parent)
    ids = {key: "0x" + span.pop(key) for key in ("trace_id", "span_id")}
    return span | {"context": ids}


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (bare, {"trace_id": None}),
        (bare, {"trace_id": [1]}),
        (bare, {"trace_id": "a" * 31}),
        (in_context, {"context": None}),
        (in_context, {"context": {}}),
        (in_context, {"context": {"trace_id": None, "span_id": "0x" + f"{2:016x}"}}),
        (in_context, {"context": 5}),
    ],
)
def test_a_span_of_a_dump_below_one_of_a_trace_is_part_of_it(
    tmp_path: Path, make: Callable[..., dict[str, Any]], change: dict[str, Any]
) -> None:
    log = [make(1, "a"), make(2, "a", 1), make(3, "b"), make(4, "b", 3)]
    assert found(tmp_path, log) == ([A, B], [])
    traces, problems = found(tmp_path, [log[0], log[1] | change, *log[2:]])
    assert traces == [B] and [trace for _, trace in problems] == ["", A]


def test_a_row_of_phoenix_without_a_trace_is_of_that_of_its_parent(tmp_path: Path) -> None:
    ids = [f"{i:016x}" for i in range(1, 5)]
    columns: dict[str, Any] = {
        "context.trace_id": [A, None, B, B], "context.span_id": ids, "parent_id": [None, ids[0], None, ids[2]],
        "name": ["chat"] * 4, "span_kind": ["LLM"] * 4, "start_time": [1, 2, 3, 4],
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "spans.parquet")
    assert found(tmp_path, [], "no.txt") == ([B], [("bad-id", ""), ("lost-row", A)])
