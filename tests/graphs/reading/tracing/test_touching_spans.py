"""Steps of which each begins at the instant at which the last one ended: the order of the records tells nothing."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from graphs.logs import read

from .test_graph_nodes import FORMATS, Run, node, stamp

TIMES = {1: (0, 6), 2: (0, 6), 3: (0, 1), 4: (1, 2), 5: (2, 2), 6: (2, 3), 7: (3, 4), 8: (4, 5), 9: (5, 6)}
"""Of each run the seconds of its start and its end. Run 5 takes no time."""
KINDS = {3: "llm", 4: "tool", 5: "tool", 6: "tool", 7: "llm", 8: "tool", 9: "llm"}
RUNS = [Run(1, 0, "LangGraph", "chain"), node(2, "coder"), *(Run(n, 2, "m", k, "coder") for n, k in KINDS.items())]
APART = ("langsmith", "langfuse, spans alone")
"""Runs of the one state their order, and a tool of the other is known by the node `tools` alone."""
STARTS, ENDS = ("start_time", "startTime", "started_at"), ("end_time", "endTime", "ended_at")


def timed(value: Any, number: int = 0) -> Any:
    """The records, each with the start and the end that `TIMES` has of its span."""
    if isinstance(value, list):
        return [timed(one, number) for one in value]
    if not isinstance(value, dict):
        return value
    context = value.get("context", {})
    named = next((v for v in (value.get(k) for k in ("spanId", "span_id", "id")) if v), context.get("span_id"))
    if isinstance(named, str) and named.lstrip("0").isdecimal():
        number = int(named)
    if number not in TIMES:
        return {key: timed(one, number) for key, one in value.items()}
    zone = "+00:00" if context else "" if "run_type" in value else "Z"
    moments = [stamp(seconds) + zone for seconds in TIMES[number]]
    found = {key: timed(one, number) for key, one in value.items()}
    for names, moment in zip((STARTS, ENDS), moments, strict=True):
        found |= {name: moment for name in names if STARTS[names.index(name)] in value}
    for i, key in enumerate(("start", "end")):
        nanoseconds = (TIMES[number][i] + 1) * 10**9
        if f"{key}TimeUnixNano" in value:
            found[f"{key}TimeUnixNano"] = str(nanoseconds)
        if f"{key}_time_unix_nano" in value:
            found[f"{key}_time_unix_nano"] = nanoseconds
    if "metrics" in value:
        found["metrics"] = {"start": TIMES[number][0] + 1.0, "end": TIMES[number][1] + 1.0}
    return found


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in APART])
def test_what_ended_comes_before_what_begins_at_that_instant(tmp_path: Path, name: str) -> None:
    """In OTLP a result stood behind the call that had read it, where its span was logged later."""
    orders = set[tuple[str, ...]]()
    for place, runs in enumerate((RUNS, RUNS[::-1], [*RUNS[1::2], *RUNS[::2]], [*RUNS[:3], *RUNS[:2:-1]])):
        path = tmp_path / f"{place}.jsonl"
        path.write_text("".join(json.dumps(timed(value)) + "\n" for value in FORMATS[name](runs)))
        traces = read(path)
        assert not [problem for problem in traces.problems if problem.is_failure]
        orders.add(tuple(traces.events["event"].to_pylist()))
    (order,) = orders
    steps = [int(event.split(".")[0], 16 if len(event) >= 16 else 10) for event in order]
    assert [step for step, _ in itertools.groupby(steps)] == list(KINDS)
