"""Reading tau-bench result files: what becomes an event, which edges there are, and what is refused."""

from __future__ import annotations

import copy
import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear_time import assert_linear

from graphs.errors import NothingReadError, Problem
from graphs.event_graph import EdgeType, EventType
from graphs.formats.tau_bench import read as read_tau
from graphs.formats.tau_bench import sniff
from graphs.logs import read
from graphs.logs.read_logs import raw_record
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord


def call(name: str, call_id: str | None) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "policy"},
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "who are you?"},
    {"role": "user", "content": "Bob"},
    {"role": "assistant", "content": None, "tool_calls": [call("find", "a"), call("price", "b")]},
    {"role": "tool", "tool_call_id": "b", "name": "price", "content": "7"},
    {"role": "tool", "tool_call_id": "a", "name": "find", "content": "x"},
    {"role": "assistant", "content": "one moment", "tool_calls": [call("book", "a")]},
    {"role": "tool", "tool_call_id": "a", "name": "book", "content": "done"},
    {"role": "assistant", "content": "booked"},
    {"role": "user", "content": "###STOP###"},
]


def run(**changes: Any) -> dict[str, Any]:
    whole = {
        "task_id": 3,
        "trial": 0,
        "reward": 1.0,
        "info": {"task": {"instruction": "book"}, "reward_info": {"reward": 1.0, "info": {"r_actions": 0.5}}},
        "traj": copy.deepcopy(CHAT),
    }
    return whole | changes


def write(folder: Path, runs: Any, name: str = "runs.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(runs))
    return path


def items(path: Path) -> list[TraceRecord | Problem]:
    return list(read_tau([Source(str(path), path)]))


def only(path: Path) -> TraceRecord:
    (record,) = items(path)
    assert isinstance(record, TraceRecord), record
    return record


def test_events_of_a_chat(tmp_path: Path) -> None:
    record = only(write(tmp_path, [run()]))
    message, tool_call, result = EventType.MESSAGE, EventType.TOOL_CALL, EventType.TOOL_RESULT
    expected = [
        # id, type, agent, action, tool
        ("1", message, "user", False, None),
        ("2", message, "assistant", True, None),
        ("3", message, "user", False, None),
        ("4", tool_call, "assistant", True, "find"),
        ("4/call-1", tool_call, "assistant", False, "price"),
        ("5", result, "assistant", False, "price"),
        ("6", result, "assistant", False, "find"),
        ("7", message, "assistant", True, None),
        ("7/call-0", tool_call, "assistant", False, "book"),
        ("8", result, "assistant", False, "book"),
        ("9", message, "assistant", True, None),
        ("10", message, "user", False, None),
    ]
    tools = record.columns["tool"] + [None] * (len(record.ids) - len(record.columns["tool"]))
    assert list(zip(record.ids, record.types, record.agents, record.actions, tools, strict=True)) == expected
    assert {name: agent.role for name, agent in record.instances.items()} == {
        "user": "user_simulator",
        "assistant": "assistant",
    }
    assert record.trace_id == "runs/task-3/trial-0"
    assert record.group_id == "task-3"
    assert record.rewards == {"team": 1.0, "r_actions": 0.5}


def test_edges_of_a_chat(tmp_path: Path) -> None:
    record = only(write(tmp_path, [run()]))
    found = {
        (record.ids[s], record.ids[r], EdgeType(kind).name.lower())
        for s, r, kind in zip(record.senders, record.receivers, record.edge_types, strict=True)
    }
    assert len(found) == len(record.senders)
    assert found == {
        ("1", "2", "message"),
        ("2", "3", "message"),
        ("3", "4", "message"),
        ("2", "4", "temporal"),
        ("4", "4/call-1", "tool_dependency"),
        ("4", "6", "return"),
        ("4/call-1", "5", "return"),
        ("5", "7", "causal"),
        ("6", "7", "causal"),
        ("4", "7", "temporal"),
        ("7", "7/call-0", "tool_dependency"),
        ("7/call-0", "8", "return"),
        ("8", "9", "causal"),
        ("7", "9", "temporal"),
        ("9", "10", "message"),
    }


def test_results_without_ids_answer_in_order(tmp_path: Path) -> None:
    chat = [
        {"role": "assistant", "content": None, "tool_calls": [call("a", None), call("b", None)]},
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "2"},
    ]
    record = only(write(tmp_path, [run(traj=chat)]))
    assert record.columns["tool"] == ["a", "b", "a", "b"]


def test_an_empty_reply_is_still_an_action(tmp_path: Path) -> None:
    record = only(write(tmp_path, [run(traj=[{"role": "assistant", "content": None}])]))
    assert (record.types, record.actions) == ([EventType.MESSAGE], [True])


def test_a_run_without_reward_reads(tmp_path: Path) -> None:
    one = run()
    del one["reward"], one["info"]
    assert only(write(tmp_path, [one])).rewards == {}
    assert only(write(tmp_path, [run(reward=None, info=None)])).rewards == {}


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_places_are_those_of_the_messages(tmp_path: Path, indent: int | None) -> None:
    """Line and offset of each event, also where the same text stood before in the file."""
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([run(), run(trial=1)], indent=indent))
    data = path.read_bytes()
    for record in items(path):
        assert isinstance(record, TraceRecord)
        for event_id, line, offset in zip(record.ids, record.lines, record.offsets, strict=True):
            message = CHAT[int(event_id.split("/")[0])]
            found, _ = json.JSONDecoder().raw_decode(data[offset:].decode())
            assert found == message
            assert line == 1 + data[:offset].count(b"\n")
    first, second = items(path)
    assert isinstance(first, TraceRecord) and isinstance(second, TraceRecord)
    assert max(first.offsets) < second.offset < min(second.offsets)


def test_raw_gives_the_message_again(tmp_path: Path) -> None:
    traces = read(write(tmp_path, [run()]))
    assert json.loads(raw_record(traces, 1)) == CHAT[2]


def test_compressed_files_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.json.gz"
    path.write_bytes(gzip.compress(json.dumps([run()]).encode()))
    assert read(path).traces["trace"].to_pylist() == ["runs/task-3/trial-0"]


def test_one_task_in_two_files_is_one_group_unless_it_differs(tmp_path: Path) -> None:
    same = write(tmp_path, [run()], "a.json")
    more = write(tmp_path, [run(traj=CHAT[:-1])], "b.json")
    other = write(tmp_path, [run(info={"task": {"instruction": "refund"}})], "c.json")
    traces = read(same, more, other, group_by=("task",))
    assert traces.traces["group"].to_pylist() == ["task-3", "task-3", "c/task-3"]
    traces = read(same, more, other)  # a file is of one model, which the format does not name
    assert traces.traces["group"].to_pylist() == ["task-3 [a]", "task-3 [b]", "c/task-3"]
    assert traces.problems == ()


def test_files_of_one_name_in_two_folders_are_two_systems_and_tasks_that_differ_are_never_one_group(
    tmp_path: Path,
) -> None:
    for folder, instruction in (("large", "book"), ("small", "refund"), ("other", "cancel")):
        (tmp_path / folder).mkdir()
        infos = [{"task": {"instruction": text}, "user_cost": folder} for text in (instruction, "one more")]
        runs = [run(info=info, trial=i) for i, info in enumerate(infos)]
        write(tmp_path / folder, runs, "airline.json")
    traces = read(tmp_path, group_by=("task",))
    assert traces.problems == ()
    assert "small/airline/task-3/trial-1" in traces.traces["trace"].to_pylist()
    assert set(traces.traces["system"].to_pylist()) == {f"{folder}/airline" for folder in ("large", "small", "other")}
    groups: dict[str, set[str]] = {}
    for trace, group in zip(*(traces.traces[k].to_pylist() for k in ("trace", "group")), strict=True):
        text = "one more" if trace.endswith("trial-1") else trace.split("/")[0]
        groups.setdefault(group, set()).add(text)
    assert all(len(texts) == 1 for texts in groups.values()), groups
    assert len(set(read(tmp_path).traces["group"].to_pylist())) == 6


BAD = {
    "task_id": (run(task_id=[1]), "bad-type", "[1].task_id"),
    "trial": (run(trial=None), "bad-type", "[1].trial"),
    "reward": (run(reward="1"), "bad-type", "reward"),
    "info": (run(info=[]), "bad-type", "info"),
    "reward_info": (run(info={"reward_info": 3}), "bad-type", "info.reward_info"),
    "r_actions": (
        run(info={"reward_info": {"info": {"r_actions": "x"}}}),
        "bad-type",
        "info.reward_info.info.r_actions",
    ),
    "instruction": (run(info={"task": {"instruction": 3}}), "bad-type", "info.task.instruction"),
    "traj": (run(traj={}), "bad-type", "traj"),
    "traj null": (run(traj=None), "bad-type", "traj"),
    "no traj": ({k: v for k, v in run().items() if k != "traj"}, "missing-field", "traj"),
    "no task": ({k: v for k, v in run().items() if k != "task_id"}, "missing-field", "[1].task_id"),
    "no trial": ({k: v for k, v in run().items() if k != "trial"}, "missing-field", "[1].trial"),
    "run": (3, "bad-type", "[1]"),
    "message": (run(traj=[5]), "bad-type", "traj[0]"),
    "role": (run(traj=[{"role": 5}]), "bad-type", "traj[0].role"),
    "no role": (run(traj=[{}]), "missing-field", "traj[0].role"),
    "unknown role": (run(traj=[{"role": "judge"}]), "bad-value", "traj[0].role"),
    "content": (run(traj=[{"role": "user", "content": 5}]), "bad-type", "traj[0].content"),
    "tool_calls": (run(traj=[{"role": "assistant", "tool_calls": 5}]), "bad-type", "traj[0].tool_calls"),
    "function": (
        run(traj=[{"role": "assistant", "tool_calls": [{"function": 5}]}]),
        "bad-type",
        "traj[0].tool_calls[0].function",
    ),
    "no name": (
        run(traj=[{"role": "assistant", "tool_calls": [{"function": {}}]}]),
        "missing-field",
        "traj[0].tool_calls[0].function.name",
    ),
    "call id": (
        run(traj=[{"role": "assistant", "tool_calls": [{"id": 5, "function": {"name": "f"}}]}]),
        "bad-type",
        "traj[0].tool_calls[0].id",
    ),
    "result id": (run(traj=[{"role": "tool", "tool_call_id": 5}]), "bad-type", "traj[0].tool_call_id"),
    "unknown result": (
        run(traj=[*CHAT[:5], {"role": "tool", "tool_call_id": "zz"}]),
        "unknown-tool-call",
        "traj[5].tool_call_id",
    ),
    "second result": (run(traj=[*CHAT[:6], CHAT[5]]), "unknown-tool-call", "traj[6].tool_call_id"),
    "result without call": (run(traj=[{"role": "tool"}]), "unknown-tool-call", "traj[0].tool_call_id"),
    "no event": (run(traj=[]), "empty-trace", "events"),
    "only system": (run(traj=CHAT[:1]), "empty-trace", "events"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_run_is_named_and_the_others_read(tmp_path: Path, name: str) -> None:
    bad, kind, field = BAD[name]
    path = tmp_path / "runs.json"
    path.write_text("[\n" + ",\n".join(json.dumps(one) for one in (run(), bad, run(trial=1))) + "\n]")
    traces = read(path)
    assert traces.traces["trace"].to_pylist() == ["runs/task-3/trial-0", "runs/task-3/trial-1"]
    (problem,) = traces.problems
    assert (problem.kind, problem.field, problem.file, problem.line) == (kind, field, str(path), 3)


def test_a_conversation_with_two_rewards_is_read_from_neither_file(tmp_path: Path) -> None:
    paths = [write(tmp_path, [run(), run(trial=1)], "a.json"), write(tmp_path, [run(reward=0.0)], "b.json")]
    traces = read(*paths)
    assert traces.traces["trace"].to_pylist() == ["a/task-3/trial-1"]
    assert [problem.kind for problem in traces.problems] == ["duplicate-trace"] * 2


def test_a_partial_copy_under_another_name_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path, [run(), run(trial=1)], "a.json")
    (tmp_path / "b.json").write_text(json.dumps([run()], indent=1, sort_keys=True))
    traces = read(path, tmp_path / "b.json")
    assert traces.traces["trace"].to_pylist() == ["a/task-3/trial-0", "a/task-3/trial-1"]
    assert [(problem.kind, problem.trace) for problem in traces.problems] == [("repeated-run", "b/task-3/trial-0")]


def test_a_bad_reward_in_a_file_of_one_line_names_its_run(tmp_path: Path) -> None:
    traces = read(write(tmp_path, [run(task_id=i // 4, trial=i % 4, reward=1.0 if i != 6 else "1") for i in range(8)]))
    (problem,) = traces.problems
    assert (problem.field, problem.line, problem.trace) == ("reward", 1, "runs/task-1/trial-2")
    (problem,) = read(write(tmp_path, [run(), run(trial=1), run(trial=None)])).problems
    assert (problem.field, problem.line, problem.trace) == ("[2].trial", 1, "")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (json.dumps([run()])[:-20], "bad-json"),
        (json.dumps([run(reward=float("nan"))]), "non-finite"),
        (json.dumps([run()]).replace("hello", "\\ud800"), "bad-json"),
        ('[{"traj": [' + "[" * 100_000 + "]" * 100_000 + "]}]", "too-deep"),
    ],
)
def test_a_damaged_file_is_one_problem(tmp_path: Path, text: str, kind: str) -> None:
    path = tmp_path / "runs.json"
    path.write_text(text)
    with pytest.raises(NothingReadError) as caught:
        read(path)
    assert [(problem.kind, problem.file) for problem in caught.value.problems] == [(kind, str(path))]


def test_text_that_is_not_utf_8_spoils_one_run(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_bytes(json.dumps([run(), run(trial=1)]).encode().replace(b"hello", b"\xff", 1))
    traces = read(path)
    assert [problem.kind for problem in traces.problems] == ["not-utf-8"]
    assert traces.traces["trace"].to_pylist() == ["runs/task-3/trial-1"]


@pytest.mark.parametrize(
    "head", [b"", b"[]", b"[1]", b"{}", b'{"traj": [{"role": "user"}]}', b'[{"history": []}]', b'[{"trajectory": []}]']
)
def test_other_content_is_not_taken(head: bytes) -> None:
    assert not sniff(head)


JSON_VALUES = st.sampled_from([None, True, -1, 10**30, 2.5, "", "x", [], [None], {}, {"role": "user"}])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


PLACES = [place for place in places(run()) if place]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), value=JSON_VALUES, delete=st.booleans())
@pytest.mark.study
def test_any_change_reads_or_is_named(tmp_path: Path, place: tuple[Any, ...], value: Any, delete: bool) -> None:
    changed: Any = run()
    target = changed
    for step in place[:-1]:
        target = target[step]
    if delete:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    traces = read(write(tmp_path, [run(trial="other"), changed]))
    assert traces.sizes.traces + len(traces.problems) == 2
    assert "runs/task-3/trial-other" in traces.traces["trace"].to_pylist()


@pytest.mark.slow
def test_the_real_file_learns_from_exactly_the_tasks_whose_trials_differ(shared_data: Path) -> None:
    from estimators import grpo, rloo

    path = shared_data / "tau_bench_airline" / "gpt-4o-airline.json"
    raw: dict[str, list[float]] = defaultdict(list)
    for one in json.loads(path.read_text()):
        raw[f"task-{one['task_id']}"].append(one["reward"])
    differing = {task for task, rewards in raw.items() if len(set(rewards)) > 1}
    assert len(raw) == 20 and {len(rewards) for rewards in raw.values()} == {4} and len(differing) == 11

    traces = read(path)
    assert traces.problems == ()
    groups = traces.traces["group"].to_pylist()
    found: dict[str, list[float]] = defaultdict(list)
    for group, reward in zip(groups, traces.reward[: traces.sizes.traces], strict=True):
        found[group].append(float(reward))
    assert found == raw

    graph = traces.graph
    for method in (rloo, grpo):
        credit = method(graph, traces.reward)
        advantage = np.asarray(credit.advantage)
        np.testing.assert_array_equal(np.asarray(credit.valid), graph.action_mask)
        of_event = [groups[t] for t in graph.trace_ids[graph.action_mask]]
        learning = {task for task, a in zip(of_event, advantage[graph.action_mask], strict=True) if a != 0}
        assert learning == differing
        assert not np.any(advantage[~graph.action_mask])


@pytest.mark.study
def test_many_open_calls_take_linear_time(tmp_path: Path) -> None:
    def prepare(n: int) -> Callable[[], object]:
        calls = [{"role": "assistant", "tool_calls": [call("f", f"c{i}")]} for i in range(n)]
        results = [{"role": "tool", "tool_call_id": f"c{i}"} for i in range(n)]
        (tmp_path / str(n)).mkdir()
        path = write(tmp_path / str(n), [run(traj=calls + results)])
        return lambda: answers(only(path), n)

    def answers(record: TraceRecord, n: int) -> None:
        pairs = zip(record.senders, record.receivers, record.edge_types, strict=True)
        assert {(s, r) for s, r, kind in pairs if kind == EdgeType.RETURN} == {(i, n + i) for i in range(n)}

    assert_linear(prepare, 50_000, runs=1)


def test_telling_the_format_takes_linear_time() -> None:
    for start, piece in ((b"", b" "), (b"[", b" "), (b"", b"[{")):
        assert not sniff(start + piece * (1 << 15))
        assert_linear(lambda n, start=start, piece=piece: lambda: sniff(start + piece * n), 1 << 15)


def test_answers_that_refuse_a_call_are_errors(tmp_path: Path) -> None:
    chat = copy.deepcopy(CHAT)
    chat[5]["content"] = "Error: no such flight"
    chat[6]["content"] = "Unknown action find"
    chat[8]["content"] = "The word Error: stands later"
    record = only(write(tmp_path, [run(traj=chat)]))
    status = dict(enumerate(record.columns["status"]))
    results = [i for i, kind in enumerate(record.types) if kind == EventType.TOOL_RESULT]
    assert [status.get(i) for i in results] == ["error", "error", None]
