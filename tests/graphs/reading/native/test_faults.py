"""Every fault of a trace has a name, a file and a line, and harms no other trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphs.logs import read

from .native_faults import FAULTS, changed, only_problem, trace


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_a_name_and_a_place_and_harms_no_neighbour(name: str, tmp_path: Path) -> None:
    kind, field, make = FAULTS[name]
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join([json.dumps(trace("before")), "", make(), json.dumps(trace("behind"))]))
    traces = read(file)
    (problem,) = (one for one in traces.problems if one.is_failure)
    assert (problem.kind, problem.file, problem.line) == (kind, str(file), 3)
    assert field in problem.field
    assert problem.value and problem.expected
    assert traces.traces["trace"].to_pylist() == ["before", "behind"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_first_line_does_not_hide_the_format(name: str, tmp_path: Path) -> None:
    kind, _, make = FAULTS[name]
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join([make(), json.dumps(trace("behind"))]))
    traces = read(file)
    assert [(p.kind, p.line) for p in traces.problems if p.is_failure] == [(kind, 1)]
    assert traces.traces["trace"].to_pylist() == ["behind"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_list_of_traces(name: str, tmp_path: Path) -> None:
    kind, _, make = FAULTS[name]
    file = tmp_path / "log.json"
    file.write_text("[\n" + ",\n".join([json.dumps(trace("before")), make()]) + "\n]")
    traces = read(file)
    line = 4 if name == "truncated in the middle" else 3  # where the list's bracket stands in the object's place
    assert [(p.kind, p.line) for p in traces.problems] == [(kind, line)]
    assert traces.traces["trace"].to_pylist() == ["before"]


def test_the_offending_value_is_quoted(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    file.write_text(changed("events", 2, "value", to="very high")())
    assert str(only_problem(file)) == (
        f"{file}:1: trace 'a': events[2].value is 'very high'; expected a number or null, got a text [bad-type]"
    )


def test_malformed_json_over_many_lines_tells_the_line(tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    text = json.dumps(trace(), indent=1)
    line = text[: text.index('"type": "tool_call"')].count("\n") + 1
    file.write_text(text.replace('"type": "tool_call"', '"type": tool_call', 1))
    problem = only_problem(file)
    assert (problem.kind, problem.line) == ("bad-json", line)
    file.write_text("\n" + text[:-20])
    problem = only_problem(file)
    assert (problem.kind, problem.line) == ("bad-json", 1 + text[:-20].count("\n") + 1)


def test_two_traces_of_an_id_are_both_refused(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(json.dumps(trace(name, reward)) for name, reward in (("a", 1), ("b", 2), ("a", 3))))
    traces = read(file)
    assert [(p.kind, p.line, p.trace) for p in traces.problems] == [
        ("duplicate-trace", 3, "a"),
        ("duplicate-trace", 1, "a"),
    ]
    assert f"{file}:1" in traces.problems[0].value
    assert traces.reward[:1].tolist() == [2]
