"""A JSON list of records is read as its records are, one a line: a fault refuses its own trace alone."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.formats import FORMATS
from graphs.logs import read

from .all_formats import ALL, TAU
from .native.logs import extended_trace
from .samples import RESULT, TAU2

Outcome = tuple[list[str], list[str]]


def outcome(path: Path, text: str, format: str) -> Outcome:
    """Ids of the traces that are read, and the kinds of what was refused."""
    path.write_text(text)
    try:
        traces = read(path, format=format)
    except NothingReadError as error:
        return [], sorted(problem.kind for problem in error.problems if problem.is_failure)
    found = traces.traces["trace"].to_pylist()
    return found, sorted(problem.kind for problem in traces.problems if problem.is_failure)


RUNS: dict[str, list[Any]] = {
    "native": [extended_trace() | {"trace_id": f"t{number}"} for number in range(6)],
    "tau-bench": [TAU | {"trial": number} for number in range(6)],
    "verifiers": [RESULT | {"example_id": number} for number in range(6)],
}


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("format", RUNS)
def test_a_fault_in_a_list_of_runs_refuses_one_of_them(tmp_path: Path, format: str, indent: int | None) -> None:
    """One NaN, and a cut at 70 %, lost all runs of a file."""
    runs, path = RUNS[format], tmp_path / "log.json"
    whole, none = outcome(path, json.dumps(runs, indent=indent), format)
    assert len(whole) == 6 and not none
    for value in (math.nan, -math.inf):
        faulty = [*runs[:3], runs[3] | {"reward": value}, *runs[4:]]
        assert outcome(path, json.dumps(faulty, indent=indent), format) == (whole[:3] + whole[4:], ["non-finite"])
        (problem,) = [p for p in read(path, format=format).problems if p.is_failure]
        assert problem.field == ("reward" if problem.trace == "t3" else "[3].reward")
        assert problem.value == ("NaN" if math.isnan(value) else "-Infinity")
        if indent:
            line = path.read_text().splitlines()[problem.line - 1]
            assert problem.value in line
    text = json.dumps(runs, indent=indent)
    found = outcome(path, text[: len(text) * 7 // 10], format)
    assert found == (whole[:4], ["bad-json"])
    for wrong, kept in ((text[:-1], 6), (text + "]", 6), (text[:-1] + ",]", 6), (text[:20], 0)):
        assert outcome(path, wrong, format) == (whole[:kept], ["bad-json"])


_EVENT = {"event": "model", "output": {"choices": [{"message": {}}], "usage": {"output_tokens": 2}}}
_SAMPLES = [
    {"id": f"q{at}", "epoch": 1, "input": "hi", "scores": {"match": {"value": 0.5}}, "events": [_EVENT]}
    for at in range(6)
]
OBJECTS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "inspect-ai": (
        {"version": 2, "status": "success", "eval": {"task": "quiz"}, "samples": _SAMPLES},
        "samples",
        {"stats": {"nested": {"samples": [1]}}},
    ),
    "tau2-bench": (
        TAU2 | {"simulations": [TAU2["simulations"][0] | {"trial": at} for at in range(6)]},  # type: ignore[index]
        "simulations",
        {"later": 1},
    ),
}


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("format", OBJECTS)
def test_a_fault_in_a_run_of_an_object_that_holds_a_list_refuses_one_of_them(
    tmp_path: Path, format: str, indent: int | None
) -> None:
    """One NaN in a sample, a cut at the end of a file, or a metric that is NaN lost all runs of it."""
    (log, key, behind), path = OBJECTS[format], tmp_path / "log.json"
    whole, none = outcome(path, json.dumps(log, indent=indent), format)
    assert len(whole) == 6 and not none
    for more in ({}, behind):
        runs = log[key]
        faulty = [*runs[:3], runs[3] | {"planted": [math.nan]}, *runs[4:]]
        text = json.dumps(log | {key: faulty} | more, indent=indent)
        assert outcome(path, text, format) == (whole[:3] + whole[4:], ["non-finite"])
        (problem,) = [p for p in read(path, format=format).problems if p.is_failure]
        assert problem.field == f"{key}[3].planted[0]" and problem.value == "NaN"
        assert not indent or "NaN" in text.splitlines()[problem.line - 1]
    text = json.dumps({"first": math.nan} | log | {"last": math.inf}, indent=indent)
    assert outcome(path, text, format) == (whole, ["non-finite"])
    text = json.dumps(log, indent=indent)
    assert outcome(path, text[: text.index("}", len(text) * 8 // 10)], format)[1] == ["bad-json"]
    assert read(path, format=format).traces["trace"].to_pylist() == whole[: len(read(path, format=format).traces)]
    for wrong, kept in ((text[:-1], 6), (text + "]", 6), (text[:20], 0)):
        assert outcome(path, wrong, format) == (whole[:kept], ["bad-json"])


@pytest.mark.sampled(others="slow")
@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("name", [name for name, log in ALL.items() if log.lines])
def test_a_list_with_a_fault_leaves_what_its_records_leave_as_lines(tmp_path: Path, name: str) -> None:
    """Also where records are parts of traces: none is read without one of its records."""
    log = ALL[name]
    path, values = tmp_path / log.file, log.values
    whole = outcome(path, log.text, log.format)
    if outcome(path, json.dumps(values), log.format) != whole or not all(isinstance(value, dict) for value in values):
        return  # the format has no lists
    for at in range(len(values)):
        faulty = [value | {"planted": math.nan} if number == at else value for number, value in enumerate(values)]
        lines = outcome(path, "".join(json.dumps(value) + "\n" for value in faulty), log.format)
        assert outcome(path, json.dumps(faulty), log.format) == lines
        begun = values[: at + 1]
        left, _ = outcome(path, json.dumps(begun)[:-9], log.format)
        of_lines, _ = outcome(path, "".join(json.dumps(value) + "\n" for value in begun)[:-9], log.format)
        assert set(left) <= set(of_lines) and not (left and FORMATS[log.format].holds == "parts")
