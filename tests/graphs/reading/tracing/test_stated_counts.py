"""How many records a log says that a trace has: a trace that has fewer was read without a word."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from graphs.logs import read
from graphs.traces.batch import Traces

from ..all_formats import ALL


def said(traces: Traces) -> list[tuple[str, str, str]]:
    return [(one.field, one.value, one.expected) for one in traces.problems if one.kind == "missing-part"]


@pytest.mark.parametrize("stated", [2, 3, 4])
@pytest.mark.parametrize("key", ["trace_metadata", "request_metadata"])
def test_mlflow_states_how_many_spans_a_trace_has(stated: int, key: str, tmp_path: Path) -> None:
    sample = ALL["spans of mlflow"]
    values = copy.deepcopy(sample.values)
    values[0]["info"][key] = {"mlflow.trace.sizeStats": json.dumps({"total_size_bytes": 9, "num_spans": stated})}
    traces = read(sample._replace(values=values).write(tmp_path))
    expected = [("mlflow.trace.sizeStats", "4 spans", "as many at hand: 3 are")]
    assert traces.sizes.traces == 1 and said(traces) == expected * (stated > 3)


@pytest.mark.parametrize("name", ["weave", "weave, an evaluation"])
def test_weave_states_how_many_calls_a_call_began(name: str, tmp_path: Path) -> None:
    sample = ALL[name]
    assert not said(read(sample.write(tmp_path)))
    parents = {call.get("parent_id") for call in sample.values}
    leaf = next(call for call in sample.values if call["id"] not in parents and call.get("parent_id"))
    rest = [call for call in sample.values if call is not leaf]
    of_trace = sum(call["trace_id"] == leaf["trace_id"] for call in rest)
    (problem,) = said(read(sample._replace(values=rest).write(tmp_path)))
    assert problem == ("summary.status_counts", f"{of_trace + 1} calls", f"as many at hand: {of_trace} are")
