"""Events of Agent Lightning come in the order of their times, whatever file and line they stand in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read


def event(kind: str, time: float | None, data: dict[str, Any]) -> dict[str, Any]:
    return {"event_type": kind, "rollout_id": "r", "attempt_id": "0", "timestamp": time, "data": data}


def request(time: float | None, model: str = "m") -> dict[str, Any]:
    choices = [{"message": {"content": "x"}}]
    return event("model_request", time, {"model": model, "request": {"messages": []}, "response": {"choices": choices}})


def reward(time: float | None, value: float) -> dict[str, Any]:
    return event("reward", time, {"value": value})


def span(name: str, number: int, start: float | None, **attributes: Any) -> dict[str, Any]:
    return {"rollout_id": "r", "attempt_id": "0", "sequence_id": number, "span_id": f"{number}/{start}/{attributes}",
            "name": name, "start_time": start, "attributes": attributes}  # fmt: skip


def write(folder: Path, **files: list[Any]) -> Path:
    for name, records in files.items():
        (folder / f"{name.replace('_', '-')}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    return folder


def outcome(folder: Path) -> tuple[float, list[float]]:
    traces = read(folder)
    assert {problem.kind for problem in traces.problems} <= {"earlier-outcome", "repeated-run"}
    return float(traces.reward[0]), traces.events["time"].to_pylist()


def outcome_times(folder: Path) -> list[float]:
    times: list[float] = read(folder).events["time"].to_pylist()
    return times


def refused(folder: Path) -> tuple[str, str, str, int]:
    with pytest.raises(NothingReadError) as caught:
        read(folder)
    (problem,) = caught.value.problems
    assert problem.trace == "r"
    return problem.kind, problem.field, Path(problem.file).name, problem.line


def unsettled(folder: Path) -> tuple[str, str, int]:
    """What takes the outcome away."""
    traces = read(folder)
    (problem,) = traces.problems
    assert (problem.kind, problem.trace) == ("unsettled-rewards", "r") and np.isnan(traces.reward[0])
    return problem.field, Path(problem.file).name, problem.line


@pytest.mark.parametrize("first", ["events_9", "events_09"])
def test_files_of_any_name_are_one_order(tmp_path: Path, first: str) -> None:
    """`events-10` sorts before `events-9`: the outcome was 0.0, and the calls were in reverse order."""
    pages = {first: [request(1.0), reward(2.0, 0.0)], "events_10": [request(3.0), reward(4.0, 1.0)]}
    assert outcome(write(tmp_path, **pages)) == (1.0, [1.0, 3.0])


def test_lines_of_two_writers_are_one_order(tmp_path: Path) -> None:
    """The outcome was 0.0, of the line that comes last."""
    assert outcome(write(tmp_path, log=[request(1.0), reward(4.0, 1.0), reward(2.0, 0.0)]))[0] == 1.0


@pytest.mark.parametrize("time", [None, 0.0])
def test_a_reward_without_a_time_is_the_last_by_lines_and_not_by_names_of_files(
    tmp_path: Path, time: float | None
) -> None:
    """The outcome was that of the file whose name comes last."""
    lines = [request(time), reward(time, 0.0), reward(time, 1.0)]
    assert outcome(write(tmp_path, log=lines))[0] == 1.0
    (tmp_path / "log.jsonl").unlink()
    for a, b in ((lines[:2], lines[2:]), (lines[2:], lines[:2]), ([request(1.0), lines[1]], [reward(3.0, 1.0)])):
        assert refused(write(tmp_path, a=a, b=b))[:3] == ("unordered-events", "timestamp", "a.jsonl")
    assert outcome(write(tmp_path, a=lines, b=lines[2:]))[0] == 1.0, "parts that agree, and a copied event"


@pytest.mark.parametrize("times", [(None, None), (1.0, None), (None, 2.0), (0.0, 2.0), (2.0, 2.0)])
def test_calls_of_two_files_without_an_order_are_refused(
    tmp_path: Path, times: tuple[float | None, float | None]
) -> None:
    """They stood in the order of the names of their files."""
    for first, second in ((0, 1), (1, 0)):
        pages = {name: [request(times[i], f"model-{i}")] for name, i in (("a", first), ("b", second))}
        pages["c"] = [reward(9.0, 1.0)]
        assert refused(write(tmp_path, **pages))[:2] == ("unordered-events", "timestamp")
    log = [request(times[0], "model-0"), request(times[1], "model-1"), reward(None, 1.0)]
    for file in tmp_path.iterdir():
        file.unlink()
    assert outcome(write(tmp_path, a=log))[0] == 1.0, "lines are an order"


def test_a_sole_reward_needs_no_time(tmp_path: Path) -> None:
    assert outcome(write(tmp_path, a=[reward(None, 1.0)], b=[request(1.0), request(2.0)])) == (1.0, [1.0, 2.0])


@pytest.mark.parametrize("starts", [(None, None), (1.0, 1.0)])
def test_call_spans_of_one_sequence_id_in_two_files_need_times(
    tmp_path: Path, starts: tuple[float | None, float | None]
) -> None:
    """They stood in the order of the names of their files."""
    calls = [span("openai.chat.completion", 1, start) | {"span_id": f"s{i}"} for i, start in enumerate(starts)]
    for pages in ({"a": calls[:1], "b": calls[1:]}, {"a": calls[1:], "b": calls[:1]}):
        assert refused(write(tmp_path, **pages))[:2] == ("unordered-events", "start_time")
    assert len(outcome_times(write(tmp_path, a=calls, b=[]))) == 2


def test_an_attempt_that_is_exported_twice_counts_once(tmp_path: Path) -> None:
    """Written with other blanks, its calls counted twice."""
    page = [request(1.0), request(2.0), reward(3.0, 1.0)]
    (tmp_path / "again.jsonl").write_text(json.dumps([dict(reversed(event.items())) for event in page], indent=1))
    assert outcome(write(tmp_path, log=page[:2])) == (1.0, [1.0, 2.0])


@pytest.mark.parametrize("time", [None, 0.0])
def test_files_whose_times_contradict_their_order_are_named(tmp_path: Path, time: float | None) -> None:
    pages = {"events_9": [request(1.0), reward(time, 0.0)], "events_10": [request(3.0), reward(4.0, 1.0)]}
    assert refused(write(tmp_path, **pages)) == ("unordered-events", "timestamp", "events-9.jsonl", 2)


def test_two_last_rewards_at_once_are_named(tmp_path: Path) -> None:
    """The outcome was that of the line that comes last."""
    path = write(tmp_path, log=[request(1.0), reward(2.0, 1.0), reward(2.0, 0.0)])
    assert unsettled(path) == ("data.value", "log.jsonl", 3)


def test_two_last_rewards_at_once_in_two_files_are_named(tmp_path: Path) -> None:
    """A log with one time throughout is ordered by its lines; those of two files are not."""
    path = write(tmp_path, a=[request(1.0), reward(1.0, 0.0)], b=[reward(1.0, 1.0)])
    assert unsettled(path) == ("data.value", "b.jsonl", 1)


def test_two_equal_last_rewards_are_one(tmp_path: Path) -> None:
    assert outcome(write(tmp_path, log=[request(1.0), reward(2.0, 1.0), reward(2.0, 1.0)]))[0] == 1.0


def test_an_event_without_a_time_hides_no_two_last_rewards(tmp_path: Path) -> None:
    """The outcome was that of the file, or line, that comes last."""
    lines = [request(1.0), request(None), reward(9.0, 9.0), reward(9.0, 3.0)]
    assert unsettled(write(tmp_path, a=lines)) == ("data.value", "a.jsonl", 4)
    assert refused(write(tmp_path, a=lines[:3], b=lines[3:])) == ("unordered-events", "timestamp", "a.jsonl", 2)


def test_the_last_reward_is_the_latest_though_another_event_has_no_time(tmp_path: Path) -> None:
    """The outcome was 3.0, of the line that comes last."""
    assert outcome(write(tmp_path, log=[request(1.0), reward(9.0, 9.0), request(None), reward(3.0, 3.0)]))[0] == 9.0


def test_rewards_that_neither_times_nor_lines_order_are_named(tmp_path: Path) -> None:
    """The outcome was 3.0, of the line that comes last."""
    path = write(tmp_path, log=[request(1.0), reward(9.0, 9.0), reward(None, 1.0), reward(3.0, 3.0)])
    assert refused(path) == ("unordered-events", "timestamp", "log.jsonl", 3)


def test_reward_spans_of_one_sequence_id_are_ordered_by_their_times(tmp_path: Path) -> None:
    """The outcome was 0.0, of the line that comes last."""

    late, early = (span("agentlightning.annotation", 2, start, reward=start - 2) for start in (3.0, 2.0))
    assert outcome(write(tmp_path, log=[span("openai.chat.completion", 1, 1.0), late, early]))[0] == 1.0


@pytest.mark.parametrize("time", [None, 0.0, 5.0])
def test_reward_spans_of_two_files_at_once_are_named(tmp_path: Path, time: float | None) -> None:
    """The outcome was that of the file whose name comes last."""
    call = span("openai.chat.completion", 0, time)
    low, high = (span("agentlightning.annotation", 0, time, reward=value) for value in (0.0, 1.0))
    pages = {"a": [call, low], "b": [high]}
    assert unsettled(write(tmp_path, **pages))[1] == "b.jsonl"
    assert outcome(write(tmp_path, a=[call, low, high], b=[high]))[0] == 1.0, "the same span in two files"
