"""A line that lost its beginning, or whose bytes are filled, refuses what it may be of: no trace is read without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from .test_lost_parts import LOGS

RECORDINGS = Path(__file__).parents[3] / "recordings"
TORN: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda line: b"\0" * len(line),
    "ones": lambda line: b"\xff" * len(line),
    "without its beginning": lambda line: line[20:],
    "without its first half": lambda line: line[len(line) // 2 :],
    "zeros first": lambda line: b"\0" * 30 + line[30:],
    "zeros last": lambda line: line[: len(line) // 2] + b"\0" * (len(line) - len(line) // 2),
    "zeros within": lambda line: line[:11] + b"\0" * (len(line) // 3) + line[11 + len(line) // 3 :],
    "ones within": lambda line: line[:11] + b"\xff" * 20 + line[31:],
}


def _requests() -> list[bytes]:
    """The spans of a recording, each in a request of its own, as a collector that sends them at once writes them."""
    whole = json.loads((RECORDINGS / "team_openinference.jsonl").read_text().splitlines()[0])
    return [
        json.dumps(
            {"resourceSpans": [{"resource": of_resource["resource"], "scopeSpans": [{"spans": [span]}]}]}
        ).encode()
        for of_resource in whole["resourceSpans"]
        for of_scope in of_resource["scopeSpans"]
        for span in of_scope["spans"]
    ]


def _rows() -> list[bytes]:
    rows = [("a", 1, 0.1), ("a", 1, 0.2), ("b", 0, 0.3), ("b", 0, 0.4)]
    return [json.dumps({"trace": t, "group": "q", "reward": r, "event_reward": x}).encode() for t, r, x in rows]


def _lines(name: str) -> list[bytes]:
    made = {"otlp": _requests, "table": _rows}
    if name in LOGS:
        return [json.dumps(part).encode() for part in LOGS[name]]
    return made[name]() if name in made else (RECORDINGS / name).read_bytes().splitlines()


def of_traces(path: Path) -> dict[str, tuple[Any, ...]]:
    """Of each trace that is read: its reward, its group, and the names of its events."""
    try:
        traces = read(path)
    except NothingReadError:
        return {}
    reward = np.asarray(traces.reward, np.float64).tolist()
    owner = np.asarray(traces.graph.trace_ids)[: len(traces.events)].tolist()
    event = traces.events["event"].to_pylist()
    rows = zip(traces.traces["trace"].to_pylist(), traces.traces["group"].to_pylist(), strict=True)
    return {
        name: (repr(reward[number]), group, [e for e, of in zip(event, owner, strict=True) if of == number])
        for number, (name, group) in enumerate(rows)
    }


@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize(
    "name",
    [*LOGS, "otlp", "table", "langsmith_team.jsonl", "openai_agents_team.jsonl", "agent_lightning_spans.jsonl"],
)
def test_no_trace_is_read_without_a_torn_line(tmp_path: Path, name: str, torn: str) -> None:
    path, lines = tmp_path / "log.jsonl", _lines(name)
    path.write_bytes(b"\n".join(lines) + b"\n")
    whole = of_traces(path)
    assert whole
    for number, line in enumerate(lines):
        path.write_bytes(b"\n".join([*lines[:number], TORN[torn](line), *lines[number + 1 :]]) + b"\n")
        found = of_traces(path)
        assert found == {trace: whole[trace] for trace in found}, number


@pytest.mark.parametrize(
    "row", [b"\0" * 24, b"\xff" * 24, b'{"trace": "\0\0\0', b'reward": 1}', b'": "b", "reward": 1}']
)
def test_a_torn_row_of_outcomes_leaves_no_outcome_of_the_log(tmp_path: Path, row: bytes) -> None:
    log, table = tmp_path / "log.jsonl", tmp_path / "outcomes.jsonl"
    log.write_text("".join(json.dumps({"trace": t, "group": "q", "reward": 1.0}) + "\n" for t in "abc"))
    table.write_bytes(b'{"trace": "a", "reward": 0}\n' + row + b'\n{"trace": "c", "reward": 0.5}\n')
    traces = read(log, rewards=table)
    np.testing.assert_array_equal(np.asarray(traces.reward)[:3], [0, np.nan, 0.5])
    assert [(problem.kind, problem.trace) for problem in traces.problems][1:] == [("lost-row", "b")]


def test_what_another_program_wrote_between_the_lines_is_of_no_trace(tmp_path: Path) -> None:
    path, lines = tmp_path / "log.jsonl", _lines("langsmith_team.jsonl")
    path.write_bytes(b"\n".join(lines) + b"\n")
    whole = of_traces(path)
    path.write_bytes(
        b"\n".join([*lines, b'12:00 INFO saved {"rows": 3}', b"Traceback (most recent call last):"]) + b"\n"
    )
    assert of_traces(path) == whole
