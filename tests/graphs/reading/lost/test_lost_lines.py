"""A trace that is spread over lines is never read without one of them, nor without what a line of it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.event_types import EventType
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.traces.limits import Limits

from ..samples import OPENHANDS, SAMPLES


def action(number: int, kind: str = "run", **more: Any) -> dict[str, Any]:
    return {"id": number, "timestamp": "2026-01-01T00:00:00", "source": "agent", "action": kind, "cause": None} | more


def result(number: int, cause: int | None) -> dict[str, Any]:
    return {"id": number, "timestamp": "2026-01-01T00:00:00", "source": "agent", "observation": "run", "cause": cause}


def lines(folder: Path, values: list[Any]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in values))
    return path


def kinds(traces: Traces) -> list[str]:
    return [EventType(int(kind)).name.lower() for kind in traces.graph.event_type[: traces.sizes.events]]


def refused(path: Path, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(NothingReadError) as caught:
        read(path, **options)
    return [(problem.kind, problem.trace) for problem in caught.value.problems]


STREAMS = {
    "openhands": [action(0), result(1, 0), action(2, "finish")],
    "autogen": SAMPLES["autogen messages"].values,
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_with_a_line_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    """It was read without the line."""
    values = STREAMS[name]
    whole = read(lines(tmp_path, values))
    assert whole.problems == ()
    for at in (1, len(values) - 1):
        cut = [*values[:at], json.dumps(values[at])[:-1], *values[at + 1 :]]
        assert refused(lines(tmp_path, cut)) == [("bad-json", ""), ("lost-row", "log")]
    long = values[0] | {"note": "x" * 4000}
    found = refused(lines(tmp_path, [*values, long]), limits=Limits(record_bytes=3000))
    assert ("lost-row", "log") in found


def test_a_word_in_the_arguments_of_an_action_makes_no_row_of_it(tmp_path: Path) -> None:
    """The action was taken for a row of another trace, and the stream was read without it and its result."""
    for args in ({"command": "history"}, {"history": [1]}):
        traces = read(lines(tmp_path, [action(0, args=args), result(1, 0), action(2, "finish")]))
        assert traces.problems == () and kinds(traces) == ["message", "tool_call", "tool_result", "stop"]


def test_a_word_in_a_message_makes_no_result_of_it(tmp_path: Path) -> None:
    values = SAMPLES["autogen messages"].values
    whole = read(lines(tmp_path, values))
    named = [values[0] | {"metadata": {"messages": "2"}}, *values[1:]]
    traces = read(lines(tmp_path, named))
    assert traces.problems == () and kinds(traces) == kinds(whole)


@pytest.mark.parametrize("cause", [9, 0])
def test_an_observation_of_no_open_action_refuses_the_history(tmp_path: Path, cause: int) -> None:
    """It was left out."""
    assert refused(lines(tmp_path, [action(0), result(1, 0), result(2, cause)])) == [("unknown-tool-call", "log")]


def test_an_observation_of_an_action_without_a_tool_is_none(tmp_path: Path) -> None:
    think = [action(0, "think"), result(1, 0), action(2, "message", source="user"), result(3, 2)]
    assert kinds(read(lines(tmp_path, think))) == ["message", "human_intervention"]


def test_a_pair_that_holds_no_event_refuses_the_row(tmp_path: Path) -> None:
    """The text was left out."""
    pairs = [[action(0), result(1, 0)], [action(2), "lost"]]
    assert refused(lines(tmp_path, [OPENHANDS | {"history": pairs}])) == [("bad-type", "log/1")]
    traces = read(lines(tmp_path, [OPENHANDS | {"history": [pairs[0], [action(2), None]]}]))
    assert kinds(traces) == ["message", "tool_call", "tool_result", "message", "tool_call"]
