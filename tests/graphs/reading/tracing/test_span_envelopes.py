"""Where the spans of a dump stand: lines, lists, wrappers and objects in a row give the same events and places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError, Problem
from graphs.logs import read
from graphs.traces.limits import Limits


def span(trace: int, number: int, **more: Any) -> str:
    given = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[{"role": "user", "content": "a: \\"b\\""}]'}
    return json.dumps(
        {"trace_id": f"{trace:032x}", "span_id": f"{number:016x}", "parent_span_id": None, "name": "chat",
         "start_time": number, "end_time": number + 1, "attributes": given} | more
    )  # fmt: skip


def read_lines(path: Path, lines: list[str], end: str = "\n", **options: Any) -> Any:
    path.write_text(end.join(lines) + end)
    return read(path, **options)


FAULTS = {
    "two in a line": (span(8, 1) + " " + span(8, 2), "bad-json"),
    "cut in two": (span(8, 1)[:50], "bad-json"),
    "no span": ('{"span_id": 3}', "bad-id"),
    "a wrong type": (span(8, 1, name=7), "bad-type"),
    "no UTF-8": (span(8, 1, name="@@"), "not-utf-8"),
    "too deep": (span(8, 1, attributes={"a": json.loads("[" * 300 + "]" * 300)}), "too-deep"),
}


def problems_of(path: Path, **options: Any) -> list[Problem]:
    try:
        return list(read(path, format="spans", **options).problems)
    except NothingReadError as error:
        return list(error.problems)


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("at", [0, 40])
def test_a_fault_is_named_with_its_line(tmp_path: Path, name: str, at: int) -> None:
    fault, kind = FAULTS[name]
    lines = [span(7, number + 1) for number in range(60)]
    lines.insert(at, fault)
    (tmp_path / "spans.jsonl").write_bytes("\n".join(lines).encode().replace(b"@@", b"\xff"))
    problems = problems_of(tmp_path / "spans.jsonl")
    assert [(problem.kind, problem.line) for problem in problems if problem.kind != "lost-row"] == [(kind, at + 1)]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n", "\n \t"])
def test_blanks_between_lines(tmp_path: Path, end: str) -> None:
    lines = [span(trace, number) for trace in (1, 2) for number in range(1, 1500)]
    traces = read_lines(tmp_path / "spans.jsonl", lines, end)
    assert (traces.problems, traces.sizes.events) == ((), 2998)
    text = (tmp_path / "spans.jsonl").read_bytes()
    for i in (0, 1, 1499, 2997):
        start, line = traces.events["offset"][i].as_py(), traces.events["line"][i].as_py()
        assert text[start:].lstrip().startswith(lines[i].encode())
        assert text[:start].count(b"\n") == line - 1


@pytest.mark.study
def test_lists_and_objects_in_a_row_are_as_lines(tmp_path: Path) -> None:
    spans = [json.loads(span(trace, number)) for trace in (1, 2) for number in range(1, 900)]
    found = read_lines(tmp_path / "lines.jsonl", [json.dumps(one) for one in spans])
    for indent in (None, 1):
        for wrapped in (spans, {"spans": spans}, {"data": {"spans": spans}}, [spans[:7], {"trace": spans[7:]}]):
            (tmp_path / "list.json").write_text(json.dumps(wrapped, indent=indent))
            traces = read(tmp_path / "list.json")
            assert traces.problems == ()
            assert traces.events["event"].equals(found.events["event"])
            whole = (tmp_path / "list.json").read_bytes()
            for i in (0, 6, 7, 1000, 1797):
                start = traces.events["offset"][i].as_py()
                assert whole[start:].startswith(json.dumps(spans[i], indent=indent).encode()[:20].split(b"\n")[0])
                assert whole[:start].count(b"\n") == traces.events["line"][i].as_py() - 1
    (tmp_path / "row.json").write_text("\n".join(json.dumps(one, indent=2) for one in spans))
    traces = read(tmp_path / "row.json")
    assert (traces.problems, traces.sizes.events) == ((), len(spans))
    assert traces.events["line"].to_pylist()[:2] == [1, 1 + json.dumps(spans[0], indent=2).count("\n") + 1]


def test_limits_of_lines(tmp_path: Path) -> None:
    lines = [span(7, number + 1) for number in range(100)]
    lines[50] = span(8, 51, name="n" * 1000)
    for limits in (Limits(record_bytes=1000), Limits(record_bytes=10**6, string_bytes=900), Limits(depth=2)):
        lines[60] = span(9, 61, kind=[[[1]]]) if limits.depth == 2 else span(7, 61)
        (tmp_path / "spans.jsonl").write_text("\n".join(lines))
        expected = ("too-deep", 61) if limits.depth == 2 else ("too-large", 51)
        problems = problems_of(tmp_path / "spans.jsonl", limits=limits)
        assert [(problem.kind, problem.line) for problem in problems if problem.kind != "lost-row"] == [expected]


@pytest.mark.parametrize("name", ["annotations", "evaluations", "trace"])
def test_an_argument_that_an_agent_chose_is_no_evaluation(tmp_path: Path, name: str) -> None:
    """Tracers write the arguments of a function as attributes by their names; `annotations` set a reward of 5."""
    scores = {family: {"0": {family[:-1]: {"name": "reward", "score": 5}}} for family in ("annotations", "evaluations")}
    tool = {"openinference.span.kind": "TOOL", name: scores.get(name, scores)}
    chosen = span(7, 2, parent_span_id=f"{1:016x}", attributes=tool)
    traces = read_lines(tmp_path / "spans.jsonl", [span(7, 1), chosen])
    assert "event_reward" not in traces.evidence and np.isnan(traces.reward[0]) and traces.problems == ()
