"""Lines of JSON that are no export request: they were passed over, with the spans that they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from .span_records import make

RECORDED = Path(__file__).parents[4] / "recordings/team_genai.jsonl"


def request(trace: str, number: int) -> Any:
    return make.spans_request([make.chat(number, 0, number, number + 1, trace=trace * 32)])


def found(folder: Path, *lines: Any) -> tuple[list[str], list[tuple[str, int, str, str]]]:
    path = folder / "log.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    try:
        traces = read(path)
    except NothingReadError as error:
        names, problems = [], list(error.problems)
    else:
        names, problems = traces.traces["trace"].to_pylist(), list(traces.problems)
    return names, [(problem.kind, problem.line, problem.field, problem.trace[:1]) for problem in problems]


def snake(text: str) -> str:
    return text.replace("resourceSpans", "resource_spans").replace("scopeSpans", "scope_spans")


LOST = request("a", 2)
WRITTEN = json.dumps(LOST)
LINES = {
    "wrapped": ({"ts": 1, "message": LOST}, "content"),
    "docker": ({"log": WRITTEN + "\n", "stream": "stdout"}, "content"),
    "snake case": (snake(WRITTEN).replace("traceId", "trace_id"), "content"),
    "scopes": (WRITTEN.replace("scopeSpans", "scope_spans"), "resourceSpans[0].scope_spans"),
    "spans": (WRITTEN.replace('"spans"', '"span"'), "resourceSpans[0].scopeSpans[0].span"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_is_no_request_is_named_and_refuses_its_trace(tmp_path: Path, name: str) -> None:
    line, field = LINES[name]
    names, problems = found(tmp_path, request("a", 1), request("c", 1), line)
    assert problems[:2] == [("unknown-item", 3, field, ""), ("lost-row", 3, field, "a")]
    assert names == (["c" * 32] if name != "docker" else [])  # a text within a text states no id


def test_one_of_a_trace_that_is_not_at_hand_may_be_of_any(tmp_path: Path) -> None:
    names, problems = found(tmp_path, request("a", 1), {"message": request("b", 3)})
    assert (names, problems) == ([], [("unknown-item", 2, "content", ""), ("lost-row", 2, "content", "a")])


def test_a_file_that_is_no_request_is_named(tmp_path: Path) -> None:
    assert found(tmp_path, json.dumps({"message": LOST}, indent=1)) == ([], [("unknown-item", 1, "content", "")])


def test_a_wrapped_line_of_rewards_refuses_the_trace(tmp_path: Path) -> None:
    """It was read without its reward."""
    spans, rewards = RECORDED.read_text().splitlines()
    names, problems = found(tmp_path, spans, {"message": json.loads(rewards)})
    assert names == [] and [kind for kind, *_ in problems] == ["unknown-item", "lost-row"]


def test_requests_of_other_signals_and_without_records_are_no_fault(tmp_path: Path) -> None:
    others = [{"resourceMetrics": [{}]}, {"resourceProfiles": [{}]}, {}, {"resourceSpans": []}]
    empty = [{"resourceLogs": [{"resource": {"attributes": []}}]}, {"resourceSpans": [{"scopeSpans": [{"scope": {}}]}]}]
    assert found(tmp_path, request("a", 1), *others, *empty) == (["a" * 32], [])


def test_the_older_name_of_a_scope_is_read(tmp_path: Path) -> None:
    older = WRITTEN.replace("scopeSpans", "instrumentationLibrarySpans").replace('"scope"', '"instrumentationLibrary"')
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(request("a", 1)) + "\n" + older)
    traces = read(path)
    assert traces.problems == () and traces.sizes.events == 2


def test_records_under_the_older_and_the_newer_name_count_once(tmp_path: Path) -> None:
    """Exporters of 2022 wrote both, for receivers of either: the trace was refused for `duplicate-span`."""
    both = request("a", 1)
    (resource,) = both["resourceSpans"]
    resource["instrumentationLibrarySpans"] = [{"spans": one["spans"]} for one in resource["scopeSpans"]]
    assert found(tmp_path, both) == (["a" * 32], [])
    resource["scopeSpans"] = []
    assert found(tmp_path, both) == (["a" * 32], [])
