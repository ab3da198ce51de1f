"""Threads of LangGraph over steps, turns and sub-graphs; one that is not whole in its file is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from ..samples import RECORDINGS

HISTORY = (RECORDINGS / "langgraph_history.jsonl").read_text().splitlines()  # the newest first
STREAM = (RECORDINGS / "langgraph_team.jsonl").read_text().splitlines()
UUID = re.compile(r"[0-9a-f]{8}(?=-[0-9a-f]{4}-)")
RESULTS = [number for number, line in enumerate(STREAM) if '"task_result"' in line]


def event(kind: str, step: int, inside: tuple[str, ...] = (), **payload: Any) -> str:
    """A line of a debug stream."""
    time = "2026-01-01T00:00:00+00:00"
    return json.dumps([inside, {"step": step, "timestamp": time, "type": kind, "payload": payload}])


def made(step: int, own: str, follows: str | None, source: str = "loop", thread: str = "r") -> str:
    """A checkpoint of the graph itself."""
    config, parent = (
        {"configurable": {"thread_id": thread, "checkpoint_id": name}} if name else None for name in (own, follows)
    )
    metadata = {"source": source, "step": step}
    return event("checkpoint", step, config=config, parent_config=parent, values={}, metadata=metadata, tasks=[])


def begun(step: int, task: str, node: str, inside: tuple[str, ...] = (), given: tuple[Any, ...] = ()) -> str:
    """A task that begins."""
    return event("task", step, inside, id=task, name=node, input={"messages": given}, triggers=[])


def ended(step: int, task: str, node: str, *said: Any, inside: tuple[str, ...] = (), **more: Any) -> str:
    """The result of a task: AI messages with these ids, or messages as they are."""
    messages = [
        {"type": "ai", "content": one, "id": one, "tool_calls": []} if isinstance(one, str) else one for one in said
    ]
    return event("task_result", step, inside, id=task, name=node, result={"messages": messages}, **more)


START = [made(-1, "c0", None, "input"), made(0, "c1", "c0")]
TWO_STEPS = [
    *START, begun(1, "t1", "a"), ended(1, "t1", "a", "x"), made(1, "c2", "c1"),
    begun(2, "t2", "b"), ended(2, "t2", "b", "y"), made(2, "c3", "c2"),
]  # fmt: skip
OTHER = [re.sub(r'"([ct]\d)"', r'"s\1"', line).replace('"r"', '"s"') for line in TWO_STEPS]


def found(folder: Path, **files: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The traces of these files, and the kinds and traces of the problems."""
    folder.mkdir(exist_ok=True)
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    try:
        traces = read(folder)
    except NothingReadError as error:
        return [], [(problem.kind, problem.trace) for problem in error.problems]
    return traces.traces["trace"].to_pylist(), [(problem.kind, problem.trace) for problem in traces.problems]


@pytest.mark.parametrize("kept", [HISTORY[:3], [*HISTORY[:2], *HISTORY[3:]]])
def test_a_checkpoint_that_follows_none_of_the_log_refuses_its_thread(tmp_path: Path, kept: list[str]) -> None:
    assert found(tmp_path, run=kept) == ([], [("missing-parent", "run")])


def test_a_cut_thread_refuses_no_other_of_its_file(tmp_path: Path) -> None:
    other = [line.replace("run-1", "run-2").replace('id": "1f', 'id": "2f') for line in HISTORY]
    assert found(tmp_path, run=[*HISTORY[:3], *other]) == (["run/run-2"], [("missing-parent", "run/run-1")])


def test_a_thread_in_two_files_is_named_and_never_counts_twice(tmp_path: Path) -> None:
    newer, older = HISTORY[:3], HISTORY[3:]
    assert found(tmp_path / "pages", page1=newer, page2=older) == (["page2"], [("missing-parent", "page1")])
    twice = [("duplicate-trace", "late"), ("duplicate-trace", "early")]
    assert found(tmp_path / "exports", early=older, late=HISTORY) == ([], twice)
    assert found(tmp_path / "copies", first=HISTORY, second=HISTORY[::-1]) == (["first"], [("repeated-run", "second")])
    assert found(tmp_path / "streams", first=STREAM, second=STREAM) == (["first"], [("repeated-run", "second")])


def test_a_stream_without_its_first_lines_is_refused(tmp_path: Path) -> None:
    """Its first task was a trace by itself."""
    names, problems = found(tmp_path, run=STREAM[2:])
    assert names == [] and problems == [("missing-parent", "run/"), ("missing-parent", "run/run-1")]


@pytest.mark.parametrize("at", RESULTS)
def test_a_task_without_its_result_is_named(tmp_path: Path, at: int) -> None:
    assert found(tmp_path, run=STREAM[:at] + STREAM[at + 1 :]) == (["run"], [("unfinished-task", "run")])


def test_a_later_turn_of_a_thread_and_an_interrupted_task_are_no_fault(tmp_path: Path) -> None:
    turn = [UUID.sub(lambda match: match[0][::-1], line) for line in STREAM]
    pair = json.loads(turn[0])
    pair[1]["payload"]["parent_config"] = json.loads(STREAM[-1])[1]["payload"]["config"]
    turn[0] = json.dumps(pair)
    assert found(tmp_path / "files", run=STREAM, turn=turn) == (["run", "turn"], [])
    interrupted = [line for number, line in enumerate(STREAM) if number < RESULTS[-1]]
    assert found(tmp_path / "abandoned", run=[*interrupted, *turn])[1] == []


@pytest.mark.parametrize(("lines", "at", "thread"), [(TWO_STEPS, 5, "r"), (STREAM, 21, "run-1")])
def test_a_last_step_by_itself_is_refused(tmp_path: Path, lines: list[str], at: int, thread: str) -> None:
    """Its checkpoint, which follows one of another file, comes after its only tasks."""
    refused = [("missing-parent", "run-2/"), ("missing-parent", f"run-2/{thread}")]
    assert found(tmp_path, **{"run-1": lines[:at], "run-2": lines[at:]}) == (["run-1"], refused)


def test_a_last_step_by_itself_is_refused_beside_a_file_of_two_threads(tmp_path: Path) -> None:
    files = {"a": [*TWO_STEPS[:5], *OTHER], "b": TWO_STEPS[5:]}
    assert found(tmp_path, **files) == (["a/r", "a/s"], [("missing-parent", "b/"), ("missing-parent", "b/r")])


def test_a_checkpoint_alone_that_follows_one_of_another_file_is_named(tmp_path: Path) -> None:
    """No task belongs to it."""
    files = {"a": TWO_STEPS[:-1], "b": [*OTHER, TWO_STEPS[-1]]}
    assert found(tmp_path, **files) == (["a", "b/s"], [("missing-parent", "b/r")])


def saved(step: int, own: str, follows: str | None, source: str = "loop", says: str | None = None) -> str:
    """A checkpoint of a history, with a task that has said this."""
    config, parent = (
        {"configurable": {"thread_id": "r", "checkpoint_id": name}} if name else None for name in (own, follows)
    )
    result = {"messages": [{"type": "ai", "content": "", "id": says}]}
    return json.dumps({
        "values": {}, "next": [], "config": config, "metadata": {"source": source, "step": step}, "created_at": None,
        "parent_config": parent, "tasks": [{"id": f"t-{own}", "name": "p", "result": result}] if says else [],
    })  # fmt: skip


INPUT = saved(-1, "c0", None, "input")
Q = saved(1, "c2", "c1", says="q")


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([saved(3, "c4", "c2"), saved(1, "c2", None, says="q")], (2, "1")),
        ([saved(3, "c4", "c2"), Q, saved(0, "c1", "c0"), INPUT], (1, "3")),
        ([saved(3, "c4", None), saved(1, "c2", None, says="q"), saved(0, "c1", None), INPUT], (1, "3")),
    ],
)
def test_steps_that_were_not_saved_refuse_their_thread(tmp_path: Path, rows: list[str], place: tuple[int, str]) -> None:
    """With durability="exit" only the last step of each call of the graph is saved: what others did was not missed."""
    (tmp_path / "run.jsonl").write_text("\n".join(rows))
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path)
    (problem,) = caught.value.problems
    assert (problem.kind, problem.field, problem.line, problem.value) == ("missing-parent", "metadata.step", *place)
    assert "one more than" in problem.expected or "an input" in problem.expected


@pytest.mark.parametrize("parents", [True, False])
def test_turns_updates_copies_and_checkpointers_without_parents_are_no_gap(tmp_path: Path, parents: bool) -> None:
    follows = [None, "c0", "c1", "c2", "c3", "c4", "c5", "c4", "c7"] if parents else [None] * 9
    steps = [(-1, "input"), (0, "loop"), (1, "loop"), (2, "input"), (3, "loop"), (4, "update"), (5, "loop")]
    rows = [saved(step, f"c{i}", follows[i], source, f"m{i}") for i, (step, source) in enumerate(steps)]
    assert found(tmp_path / "turns", run=rows[::-1]) == (["run"], [])
    copied = [*rows[:5], saved(5, "c7", follows[7], "fork"), saved(6, "c8", follows[8], says="n")]
    assert found(tmp_path / "copy", run=copied[::-1]) == (["run"], [])
    assert found(tmp_path / "updated", run=[saved(0, "c0", None, "update"), saved(1, "c1", follows[1], says="n")]) == (
        ["run"],
        [],
    )


BOTH = [*START, begun(1, "t1", "a"), begun(1, "t2", "q"), ended(1, "t1", "a", "x")]
AGAIN = [made(0, "c1", "c0"), begun(1, "t1", "a"), begun(1, "t2", "q")]


def test_a_task_that_ended_beside_an_interrupted_one_is_no_fault(tmp_path: Path) -> None:
    """The graph that goes on names both tasks again, and gives the result of the interrupted one alone."""
    lines = [*BOTH, ended(1, "t2", "q", interrupts=[{"value": "ok?"}]), *AGAIN, ended(1, "t2", "q", "y")]
    assert found(tmp_path, run=[*lines, made(1, "c2", "c1")]) == (["run"], [])


@pytest.mark.parametrize("stopped", [{"interrupts": [{"value": "ok?"}]}, {"error": "ValueError()"}])
def test_a_task_that_runs_again_without_its_result_is_named(tmp_path: Path, stopped: dict[str, Any]) -> None:
    lines = [*BOTH, ended(1, "t2", "q", **stopped), *AGAIN, made(1, "c2", "c1")]
    assert found(tmp_path, run=lines) == (["run"], [("unfinished-task", "run")])


INNER = ("a:t1",)
HANDING = [
    *START, begun(1, "t1", "a"), begun(1, "u1", "i1", INNER), ended(1, "u1", "i1", "x", inside=INNER),
    begun(2, "u2", "i2", INNER),
]  # fmt: skip


def said(folder: Path, *result: Any) -> list[str]:
    """The events of a run whose sub-graph hands over, and whose outer task has this result."""
    folder.mkdir()
    (folder / "run.jsonl").write_text("\n".join([*HANDING, ended(1, "t1", "a", *result), made(1, "c2", "c1")]))
    traces = read(folder)
    assert traces.problems == ()
    return traces.events["event"].to_pylist()  # type: ignore[no-any-return]


def test_a_message_that_a_sub_graph_hands_over_is_kept(tmp_path: Path) -> None:
    """The outer task has the message in its result: `Command(graph=Command.PARENT)` leaves the inner one none."""
    assert said(tmp_path / "new", "h") == ["u1/0", "t1/0"]
    assert said(tmp_path / "state", "x", "h") == ["u1/0", "t1/1"]
    assert said(tmp_path / "text", {"type": "ai", "content": "x", "id": "own"}) == ["u1/0", "t1/0"]


def test_a_copy_of_what_a_sub_graph_said_is_no_event(tmp_path: Path) -> None:
    """A node that calls a graph often gives its last message on, as its own or as a person's."""
    for kind in ("ai", "human"):
        assert said(tmp_path / kind, {"type": kind, "content": "x", "id": None, "name": "expert"}) == ["u1/0"]


def test_a_message_that_gets_its_id_after_its_task_is_no_event_again(tmp_path: Path) -> None:
    call: dict[str, Any] = {"type": "ai", "content": "", "id": None, "tool_calls": [{"id": "k", "name": "f"}]}
    result = {"type": "tool", "content": "found", "id": None, "tool_call_id": "k"}
    text = {"type": "ai", "content": "so", "id": None}
    example = {"type": "ai", "content": "example", "id": None}  # the sub-graph was given it, and nobody said it
    lines = [
        *START, begun(1, "t1", "a"), begun(1, "u1", "i1", INNER, (example,)),
        ended(1, "u1", "i1", call, result, text, inside=INNER),
        ended(1, "t1", "a", *(m | {"id": f"m{i}"} for i, m in enumerate((example, call, result, text)))),
        made(1, "c2", "c1"),
    ]  # fmt: skip
    (tmp_path / "run.jsonl").write_text("\n".join(lines))
    traces = read(tmp_path)
    assert traces.problems == ()
    assert traces.events["event"].to_pylist() == ["u1/0", "u1/0/call-0", "u1/1", "u1/2"]


def test_the_answer_of_a_tool_that_hands_over_is_the_callers(tmp_path: Path) -> None:
    call = {"type": "ai", "content": "", "id": "x", "tool_calls": [{"id": "k", "name": "transfer"}]}
    result = {"type": "tool", "content": "transferred", "id": None, "tool_call_id": "k"}
    lines = [*HANDING[:4], ended(1, "u1", "i1", call, inside=INNER), HANDING[5], ended(1, "t1", "a", call, result)]
    (tmp_path / "run.jsonl").write_text("\n".join([*lines, made(1, "c2", "c1")]))
    traces = read(tmp_path)
    assert traces.problems == ()
    assert traces.events["event"].to_pylist() == ["u1/0", "u1/0/call-0", "t1/1"]
    names = traces.agents["agent"].to_pylist()
    assert {names[int(agent)] for agent in traces.graph.agent_ids[:3]} == {"a/i1"}


def test_a_result_inside_whose_task_began_outside_is_no_crash(tmp_path: Path) -> None:
    lines = [*START, begun(1, "t1", "a"), ended(1, "t1", "a", "x", inside=("b:t0",)), made(1, "c2", "c1")]
    assert found(tmp_path, run=lines) == (["run"], [("unfinished-task", "run")])


def test_a_task_whose_result_came_from_a_cache_is_no_failure(tmp_path: Path) -> None:
    """A node with a `CachePolicy` that has run before has a task and no result in an intact log."""
    (tmp_path / "run.jsonl").write_text("\n".join([*TWO_STEPS[:3], *TWO_STEPS[4:]]))
    (problem,) = read(tmp_path).problems
    assert (problem.kind, problem.is_failure) == ("unfinished-task", False)
