"""Spans that the OTLP reader refuses, each by its kind and field, and what they leave readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import Problem
from graphs.formats import otlp
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

from .span_records import make, read_files, read_one, refused


def test_a_missing_parent_above_everything_is_a_caller_outside(tmp_path: Path) -> None:
    record = read_one(tmp_path, [make.chat(1, 99, 0, 1), make.chat(2, 99, 2, 3)])
    assert len(record.ids) == 2


def test_lost_spans_between_are_refused_where_no_span_is_an_agent(tmp_path: Path) -> None:
    lost = [make.span(1, 0, 0, 9, {}), make.chat(2, 1, 1, 2), make.chat(3, 99, 3, 4)]
    problem = refused(tmp_path, lost)
    assert (problem.kind, problem.value) == ("missing-parent", repr(make.span_id(99)))
    harmless = make.span(3, 99, 3, 4, {"http.request.method": "GET"})
    assert len(read_one(tmp_path, [*lost[:2], harmless]).ids) == 1


@pytest.mark.parametrize(
    ("change", "kind", "field"),
    [
        ({"traceId": "AAAAAAAAAAAAAAAAAAAAAA=="}, "bad-id", "traceId"),
        ({"traceId": "0" * 32}, "bad-id", "traceId"),
        ({"spanId": "xyz"}, "bad-id", "spanId"),
        ({"parentSpanId": "12"}, "bad-id", "parentSpanId"),
        ({"parentSpanId": make.span_id(1)}, "parent-cycle", "parentSpanId"),
        ({"startTimeUnixNano": "-5"}, "bad-time", "startTimeUnixNano"),
        ({"endTimeUnixNano": 1.5}, "bad-type", "endTimeUnixNano"),
        ({"attributes": {"key": "value"}}, "bad-type", "attributes"),
        ({"attributes": [{"key": 3}]}, "bad-type", "attributes[0].key"),
        ({"attributes": make.pairs({"gen_ai.operation.name": 3})}, "bad-attribute", "gen_ai.operation.name"),
        (
            {"attributes": make.pairs({"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": -1})},
            "bad-attribute",
            "gen_ai.usage.output_tokens",
        ),
        ({"attributes": make.pairs({"orchestration_credit.x": 1})}, "bad-mark", "orchestration_credit.x"),
        ({"name": [1]}, "bad-type", "name"),
    ],
)
def test_a_bad_span_refuses_its_trace_and_no_other(
    tmp_path: Path, change: dict[str, Any], kind: str, field: str
) -> None:
    other = make.chat(1, 0, 0, 1, trace="f" * 32)
    found = read_files(tmp_path, make.spans_request([make.chat(1, 0, 0, 1) | change, other]))
    problems = [item for item in found if isinstance(item, Problem)]
    records = [item for item in found if isinstance(item, TraceRecord) and item.unread is None]
    assert [(problem.kind, problem.field) for problem in problems] == [(kind, field)]
    assert [record.trace_id for record in records] == ["f" * 32]
    assert problems[0].line == 1


def test_duplicate_span_ids_are_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, [make.chat(1, 0, 0, 1), make.chat(1, 0, 2, 3)]).kind == "duplicate-span"


def test_a_call_inside_the_tool_call_that_it_asked_for_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, [make.tool(1, 0, 0, 9, "c"), make.chat(2, 1, 1, 2, ("c",))]).kind == "cycle"


def test_traces_of_other_software_are_one_problem_a_file(tmp_path: Path) -> None:
    http = [make.span(1, 0, 0, 1, {"http.request.method": "GET"}, trace=digit * 32) for digit in "abc"]
    record, problem = read_files(tmp_path, make.spans_request([*http, make.chat(1, 0, 0, 1)]))
    assert isinstance(record, TraceRecord) and isinstance(problem, Problem)
    assert problem.kind == "no-agent-spans" and "3" in problem.value


def test_a_broken_line_leaves_the_others(tmp_path: Path) -> None:
    line = json.dumps(make.spans_request([make.chat(1, 0, 0, 1)]))
    path = tmp_path / "a.jsonl"
    path.write_text(line[:40] + "\n" + line + "\n")
    source = Source("a", path)
    (record,) = otlp.read([source])
    assert isinstance(record, TraceRecord) and record.line == 2
    assert [(lost.problem.kind, lost.problem.line) for lost in source.lost.values()] == [("bad-json", 1)]


@pytest.mark.slow
def test_very_deep_spans_and_values(tmp_path: Path) -> None:
    chain = [make.agent(i, i - 1, i, 9000 - i, f"a{i}") for i in range(1, 3001)]
    assert len(read_one(tmp_path, [*chain, make.chat(3001, 3000, 4000, 4001)]).instances) == 3000
    deep = (
        '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"' + make.TRACE + '","attributes":[{"key":"k","value":'
    )
    path = tmp_path / "deep.jsonl"
    path.write_text(deep + '{"arrayValue":{"values":[' * 20000 + "]}}" * 20000 + "}]}]}]}]}")
    source = Source("deep", path)
    problems = [*otlp.read([source]), *(lost.problem for lost in source.lost.values())]
    assert [problem.kind for problem in problems if isinstance(problem, Problem)] == ["too-deep"]
