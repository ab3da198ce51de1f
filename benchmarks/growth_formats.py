"""How time and memory grow with a log of another project, whole and damaged: `credit validate` on each format.

    python benchmarks/growth_formats.py [--from 100000] [--to 1000000] [--formats NAME ...] [--output FILE]

A log has a third as many traces as lines, three lines each. "files" is a folder of native logs instead, a trace of
three events in each, a hundredth as many as lines. Three states are read: whole; "cut", where every hundredth line, or
file, lost its last byte, so that its trace is refused; and "torn", where it lost its first 20, so that it may be of
many traces, and in most formats nothing is left to read (exit code 2). Each size is read in a process of its own that
has imported the library and read a log of a hundred lines before (`growth.py`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import growth

SMALL, LINES = growth.SMALL, 3
EVERY = 100
"""One line of so many is damaged."""
STATES: dict[str, slice] = {"whole": slice(None), "cut": slice(-1), "torn": slice(20, None)}
"""What is left of a damaged line."""
Rows = list[dict[str, Any]]


def otlp(trace: int) -> Rows:
    """An agent's span, a model call and a score, each in a request of its own."""
    own = {"traceId": f"{trace + 1:032x}"}
    operations = (
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "solver"},
        {"gen_ai.operation.name": "chat"},
    )
    spans = [
        {"spanId": f"{2 * trace + i + 1:016x}", "parentSpanId": f"{2 * trace + 1:016x}" if i else "", "name": "step",
         "startTimeUnixNano": str(10**18 + i), "endTimeUnixNano": str(10**18 + 9 - i),
         "attributes": _attributes(given), **own}
        for i, given in enumerate(operations)
    ]  # fmt: skip
    score = [*_attributes({"gen_ai.evaluation.name": "team"}), _number("gen_ai.evaluation.score.value", trace % 3)]
    record = {"eventName": "gen_ai.evaluation.result", "attributes": score, **own}
    requests: Rows = [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]} for span in spans]
    return [*requests, {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}]


def _attributes(given: dict[str, str]) -> Rows:
    return [{"key": key, "value": {"stringValue": value}} for key, value in given.items()]


def _number(key: str, value: float) -> dict[str, Any]:
    return {"key": key, "value": {"doubleValue": float(value)}}


def span_dump(trace: int) -> Rows:
    """Spans as OpenTelemetry's SDK prints them, one a line."""
    return [
        {"trace_id": f"{trace + 1:032x}", "span_id": f"{LINES * trace + i + 1:016x}", "name": "step",
         "parent_id": f"{LINES * trace + 1:016x}" if i else None, "start_time": i, "end_time": 9 - i,
         "attributes": {"gen_ai.operation.name": "chat" if i else "invoke_agent", "gen_ai.agent.name": "solver"}}
        for i in range(LINES)
    ]  # fmt: skip


def langsmith(trace: int) -> Rows:
    """A chain, a model call and a feedback."""
    root = f"{trace + 1:032x}"
    runs: Rows = [
        {"id": own, "name": "solver", "run_type": kind, "start_time": "2026-01-01T00:00:00Z", "parent_run_id": parent,
         "trace_id": root}
        for own, kind, parent in ((root, "chain", None), (f"{trace + 1:031x}c", "llm", root))
    ]  # fmt: skip
    return [*runs, {"id": f"f{trace}", "run_id": root, "key": "team", "score": float(trace % 3)}]


def langfuse(trace: int) -> Rows:
    """A span, a generation and a score."""
    own = {"traceId": f"t{trace}"}
    observations: Rows = [
        {"id": f"o{trace}.{i}", "type": kind, "name": "solver", "startTime": f"2026-01-01T00:00:0{i}Z",
         "parentObservationId": f"o{trace}.0" if i else None, **own}
        for i, kind in enumerate(("SPAN", "GENERATION"))
    ]  # fmt: skip
    return [*observations, {"id": f"s{trace}", "name": "team", "value": float(trace % 3), **own}]


def openai_agents(trace: int) -> Rows:
    """A trace, an agent's span and a generation."""
    own, data = {"trace_id": f"trace_{trace}"}, ({"type": "agent", "name": "solver"}, {"type": "generation"})
    spans: Rows = [
        {"object": "trace.span", "id": f"span_{trace}.{i}", "parent_id": f"span_{trace}.0" if i else None,
         "started_at": f"2026-01-01T00:00:0{i}Z", "ended_at": "2026-01-01T00:00:09Z", "span_data": data[i], **own}
        for i in range(2)
    ]  # fmt: skip
    return [{"object": "trace", "id": own["trace_id"], "workflow_name": "team", "group_id": None}, *spans]


def agent_lightning(trace: int) -> Rows:
    """Two calls and a reward."""
    own = {"rollout_id": f"r{trace}", "attempt_id": f"a{trace}", "trace_id": f"{trace + 1:032x}", "parent_id": None}
    calls: Rows = [
        {**own, "sequence_id": i, "span_id": f"{LINES * trace + i:016x}", "name": "openai.chat.completion",
         "attributes": {"gen_ai.response.id": f"x{i}"}, "start_time": i}
        for i in (1, 2)
    ]  # fmt: skip
    reward = {"agentlightning.reward.0.name": "team", "agentlightning.reward.0.value": float(trace % 3)}
    last = {"sequence_id": 3, "span_id": f"{LINES * trace + 3:016x}", "name": "agentlightning.annotation"}
    return [*calls, {**own, **last, "attributes": reward, "start_time": 3}]


def table(trace: int) -> Rows:
    """Three steps."""
    return [
        {"trace": f"t{trace}", "group": f"q{trace // 4}", "agent": f"a{i}", "reward": float(trace % 3)}
        for i in range(LINES)
    ]


def native(trace: int) -> dict[str, Any]:
    """A trace in one line."""
    return next(growth.many_traces(LINES)) | {"trace_id": f"t{trace}", "task_id": f"q{trace // 4}"}


def lines_of(name: str, size: int, left: slice) -> Iterator[bytes]:
    """A log's lines, of which every hundredth is damaged."""
    if name == "csv":
        yield b"trace,group,agent,reward\n"
    rows = itertools.chain.from_iterable(map(ROWS[name], range(size // LINES)))
    for number, row in enumerate(rows):
        line = ",".join(map(str, row.values())) if name == "csv" else json.dumps(row)
        yield line.encode()[left if number % EVERY == EVERY // 2 else slice(None)] + b"\n"


ROWS: dict[str, Callable[[int], Rows]] = {
    "otlp": otlp,
    "span dump": span_dump,
    "langsmith": langsmith,
    "langfuse": langfuse,
    "openai agents": openai_agents,
    "agent lightning": agent_lightning,
    "csv": table,
    "json lines": table,
}
FORMATS = [*ROWS, "files"]


def written(name: str, size: int, left: slice, log: Path) -> Path:
    """A log of a format and a size; or a folder of small native logs."""
    log.parent.mkdir(parents=True)
    if name != "files":
        with log.open("wb") as file:
            file.writelines(lines_of(name, size, left))
        return log
    log.mkdir()
    for number in range(size // EVERY):
        content = json.dumps(native(number)).encode()
        (log / f"{number}.jsonl").write_bytes(content[left if number % EVERY == EVERY // 2 else slice(None)])
    return log


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="least", type=int, default=100_000, help="Lines of the smallest log.")
    parser.add_argument("--to", dest="most", type=int, default=1_000_000, help="Lines of the largest.")
    parser.add_argument("--formats", nargs="*", default=FORMATS, choices=FORMATS)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "reading_growth.json")
    given = parser.parse_args()
    sizes = [given.least]
    while sizes[-1] * 10 <= given.most:
        sizes.append(sizes[-1] * 10)
    rows: list[dict[str, Any]] = []
    for name in given.formats:
        for state, left in STATES.items():
            with tempfile.TemporaryDirectory() as folder:
                file = "log" if name == "files" else "log.csv" if name == "csv" else "log.jsonl"
                logs = {size: written(name, size, left, Path(folder) / str(size) / file) for size in (SMALL, *sizes)}
                row = growth.grown("validate", "traces", logs, Path(folder), warm=1)
            rows.append({"format": name, "state": state, **row})
            print(json.dumps(rows[-1]), flush=True)
            growth.write_report(given.output, sizes, 1, rows)


if __name__ == "__main__":
    main()
