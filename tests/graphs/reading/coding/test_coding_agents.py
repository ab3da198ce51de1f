"""OpenHands, SWE-agent, Codex and Harbor: who acts, what is joined from other files, and what is left out."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credit.metrics.cost_summary import cost_rows
from credit.reports.event_texts import event_texts
from credit.reports.tool_calls import ToolCalls
from graphs.errors import NothingReadError
from graphs.event_types import EventType
from graphs.logs import read
from graphs.traces.batch import Traces

from ..samples import OPENCODE, OPENHANDS, RECORDINGS, SAMPLES, SWE_AGENT, codex


def shape(traces: Traces, row: int = 0) -> list[tuple[str, str]]:
    names = traces.agents["name"].to_pylist()
    graph = traces.graph
    of = [i for i in range(traces.sizes.events) if graph.trace_ids[i] == row]
    return [(EventType(int(graph.event_type[i])).name.lower(), names[int(graph.agent_ids[i])]) for i in of]


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def test_openhands_actions_of_one_response_are_one_call(tmp_path: Path) -> None:
    traces = read(SAMPLES["openhands"].write(tmp_path))
    assert shape(traces) == [
        ("human_intervention", "agent"), ("orchestrator_decision", "agent"), ("tool_call", "agent"),
        ("tool_call", "agent"), ("tool_result", "agent"), ("tool_result", "agent"),
        ("orchestrator_decision", "agent"), ("spawn", "agent"), ("message", "delegate"), ("tool_call", "delegate"),
        ("tool_result", "delegate"), ("return", "delegate"), ("stop", "agent"),
    ]  # fmt: skip
    assert np.asarray(traces.reward)[:2].tolist() == [1, 0]
    assert traces.traces["group"].to_pylist() == ["repo__repo-1"] * 2
    assert traces.evidence["tokens"].amounts.tolist() == [4, 4]
    assert traces.traces.select(["model", "system"]).to_pylist()[0] == {"model": "m", "system": "CodeActAgent"}
    assert traces.events["tool"].to_pylist()[4:6] == ["read", "bash"]  # as `cause` says, not in order


def test_a_model_of_openhands_stream_is_that_of_its_responses(tmp_path: Path) -> None:
    stream = SAMPLES["openhands stream"]
    path = stream._replace(
        values=json.loads(json.dumps(stream.values).replace('{"id": "r1"}', '{"id": "r1", "model": "m"}'))
    )
    traces = read(path.write(tmp_path))
    assert traces.traces["model"].to_pylist() == ["m"]
    row = SAMPLES["openhands"]  # whose settings may spell the model in another way
    path = row._replace(
        values=json.loads(json.dumps(row.values).replace('{"id": "r1"}', '{"id": "r1", "model": "v/m"}'))
    )
    traces = read(path.write(tmp_path / "row"))
    assert set(traces.traces["model"].to_pylist()) == {"m"} and set(traces.events["model"].to_pylist()) == {None}


def test_openhands_tests_count_before_the_models_own_judgement(tmp_path: Path) -> None:
    row = OPENHANDS | {"success": True, "test_result": {"report": {"resolved": False}}}
    assert float(read(write(tmp_path / "output.jsonl", row)).reward[0]) == 0
    paired = OPENHANDS | {"history": [[{"action": "message"}, {"observation": "null"}],
                                      [{"action": "run"}, {"observation": "run"}]]}  # fmt: skip
    assert [kind for kind, _ in shape(read(write(tmp_path / "output.jsonl", paired)))] == [
        "human_intervention", "message", "tool_call", "tool_result",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "place", [lambda code: {"exit_code": code}, lambda code: {"extras": {"exit_code": code}},
              lambda code: {"extras": {"metadata": {"exit_code": code}}}]
)  # fmt: skip
def test_openhands_commands_fail_by_their_exit_code(place: Callable[[Any], dict[str, Any]], tmp_path: Path) -> None:
    """In the three places of its versions, as number or text; -1 says that the command has not ended."""
    pairs = [[{"action": "run"}, {"observation": "run"} | place(code)] for code in ("0", 0, -1, 2, "127")]
    row = OPENHANDS | {"history": [[{"action": "message"}, {"observation": "null"}], *pairs]}
    statuses = read(write(tmp_path / "output.jsonl", row)).events["status"].to_pylist()
    assert statuses[3::3] == [None, None, None, "error", "error"]


@pytest.mark.parametrize(
    ("kind", "content", "failed"),
    [("run_ipython", "[Your proposed edit has introduced new syntax error(s). Please", True),
     ("run_ipython", "[No exact match found in /w/a.py for\n```\nx\n```\n]\n[Jupyter", True),
     ("run_ipython", "ERROR: File /w/a.py not found.\n", True),
     ("run_ipython", f"1\n{'-' * 75}\nNameError    Traceback (most recent call last)\nCell In[1], line 2", True),
     ("run_ipython", "[File: /w/a.py (9 lines total after edit)]\nERROR: 1", False),
     ("run_ipython", "2|Traceback (most recent call last)", False), ("run_ipython", None, False),
     ("edit", "ERROR:\nNo replacement was performed", True), ("edit", "The file has been edited.", False),
     ("read", "ERROR: a line of a file", False), ("run", "ERROR:\nprinted by a command that ended with 0", False)],
)  # fmt: skip
def test_openhands_rejected_edits_are_errors(kind: str, content: str | None, failed: bool, tmp_path: Path) -> None:
    """Edits and cells have no status and no exit code: what OpenHands writes of them says whether they failed."""
    pairs = [[{"action": kind}, {"observation": kind, "content": content}]]
    row = OPENHANDS | {"history": [[{"action": "message"}, {"observation": "null"}], *pairs]}
    traces = read(write(tmp_path / "output.jsonl", row))
    assert traces.events["status"].to_pylist()[-1] == ("error" if failed else None)


@pytest.mark.parametrize(("code", "status"), [(None, None), (0, None), (2, "error")])
def test_a_command_fails_by_its_exit_code_where_the_tool_is_said_to_have_succeeded(
    code: int | None, status: str | None, tmp_path: Path
) -> None:
    """opencode calls such a call "completed", Gemini CLI and Copilot CLI call it a success, OpenHands' SDK no error."""
    session = json.loads(json.dumps(OPENCODE))
    (tool,) = [part for message in session["messages"] for part in message["parts"] if part["type"] == "tool"]
    tool |= {"tool": "bash", "state": tool["state"] | {"status": "completed", "metadata": {"exit": code}}}
    assert read(write(tmp_path / "opencode.json", session)).events["status"].to_pylist()[-1] == status
    output = "Output: x\nExit Code: 7\n" + ("" if code is None else f"Exit Code: {code}\n") + "Process Group PGID: 1"
    answer = {"functionResponse": {"response": {"output": output if code is not None else "Output: x"}}}
    call = {"name": "run_shell_command", "status": "success", "args": {}, "result": [answer]}
    message = {"id": "m", "type": "gemini", "content": "", "toolCalls": [call]}
    head = {"sessionId": "s", "projectHash": "h", "messages": [message]}
    assert read(write(tmp_path / "gemini.json", head)).events["status"].to_pylist()[-1] == status
    for name, kind, change in (
        ("copilot-cli", "type", {"data": {"toolCallId": "t1", "success": True, "shellExecution": {"exitCode": code}}}),
        ("openhands-sdk", "kind", {"observation": {"kind": "TerminalObservation", "exit_code": code}}),
    ):
        sample = SAMPLES[name]
        ends = ("tool.execution_complete", "ObservationEvent")
        values = [value | change if value[kind] in ends else value for value in sample.values]
        results = read(sample._replace(values=values).write(tmp_path / name)).events
        assert {row["status"] for row in results.to_pylist() if row["tool"] and row["status"]} == {status} - {None}


@pytest.mark.parametrize(
    ("name", "summary"),
    [("codex", {"timestamp": "2026-11-26T17:26:53Z", "type": "compacted", "payload": {"message": "so far"}}),
     ("copilot-cli", {"id": "z", "timestamp": "2026-11-26T17:26:53Z", "type": "session.compaction_complete",
                      "data": {"success": True}}),
     ("openhands-sdk", {"id": "z", "timestamp": "2026-11-26T17:26:53", "source": "environment",
                        "kind": "Condensation", "summary": "so far", "llm_response_id": "r9"})],
)  # fmt: skip
def test_a_model_that_sums_up_a_long_session_leaves_sums_of_tokens_as_lower_bounds(
    name: str, summary: dict[str, Any], tmp_path: Path
) -> None:
    """Its call is no step of an agent, and no event has its tokens."""
    sample = SAMPLES[name]
    before, after = (read(sample._replace(values=values).write(tmp_path)) for values in
                     (sample.values, [*sample.values, summary]))  # fmt: skip
    assert "metrics.unlogged_calls" not in before.evidence
    assert after.evidence["metrics.unlogged_calls"].amounts.tolist() == [1]
    assert shape(after) == shape(before)


def test_openhands_calls_of_other_code_are_other_calls(tmp_path: Path) -> None:
    """Older versions write `code` beside `action`; every call of the tool was "same arguments"."""
    pairs = [[{"action": "run_ipython", "code": f"edit({i})"}, {"observation": "run_ipython"}] for i in range(5)]
    row = OPENHANDS | {"history": [[{"action": "message"}, {"observation": "null"}], *pairs]}
    calls = ToolCalls(traces := read(write(tmp_path / "output.jsonl", row)))
    assert calls.loops == [] and event_texts(traces, calls.rows, 20) == [f"edit({i})" for i in range(5)]


def test_openhands_rows_of_an_attempt_count_once_and_two_verdicts_not_at_all(tmp_path: Path) -> None:
    rows = [OPENHANDS | {"instance_id": f"repo-{number}"} for number in range(3)]
    output, attempt = tmp_path / "output.jsonl", tmp_path / "output.critic_attempt_1.jsonl"
    output.write_text("".join(json.dumps(row) + "\n" for row in rows))
    attempt.write_text("".join(json.dumps(row, indent=None, sort_keys=True) + "\n" for row in rows[:2]))
    traces = read(output, attempt)
    assert traces.traces["trace"].to_pylist() == ["output/1", "output/2", "output/3"]
    assert [(p.kind, p.is_failure) for p in traces.problems] == [("repeated-run", False)] * 2
    attempt.write_text(json.dumps(rows[0] | {"success": False}) + "\n")
    assert read(output, attempt).traces["trace"].to_pylist() == ["output/2", "output/3"]


def test_an_openhands_stream_that_lacks_an_event_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = [json.dumps(event) + "\n" for event in SAMPLES["openhands stream"].values[0]]
    path.write_text("".join(lines))
    whole = read(path).events.num_rows
    path.write_text("".join(lines) + lines[-1][:-9])
    assert read(path).events.num_rows == whole, "the last line is still being written"
    path.write_text("".join([*lines[:3], lines[3][:-9] + "\n", *lines[4:]]))
    with pytest.raises(NothingReadError, match="mend or delete line 4"):
        read(path)


def test_swe_agent_is_joined_with_its_evaluation(tmp_path: Path) -> None:
    for run in ("a", "b"):
        for name in ("repo__repo-1", "repo__repo-2"):
            write(tmp_path / run / name / f"{name}.traj", SWE_AGENT | {"environment": f"{run}/{name}"})
    results = {"resolved": ["repo__repo-1"], "generated": ["repo__repo-1", "repo__repo-2"]}
    write(tmp_path / "a" / "results.json", results)
    write(tmp_path / "b" / "report.json", {"resolved_ids": [], "submitted_ids": ["repo__repo-1"]})
    prediction = {"instance_id": "repo__repo-1", "model_name_or_path": "m", "model_patch": ""}
    write(tmp_path / "b" / "preds.json", {"repo__repo-1": prediction})
    traces = read(tmp_path)
    assert traces.problems == ()
    assert repr(np.asarray(traces.reward)[:4].tolist()) == "[1.0, 0.0, 0.0, nan]"
    assert traces.traces["task"].to_pylist() == ["repo__repo-1", "repo__repo-2"] * 2
    assert traces.traces["model"].to_pylist() == [None, None, "m", None]
    assert [kind for kind, _ in shape(traces)] == ["message", "tool_call", "tool_result"] * 2
    assert traces.events["tool"].to_pylist()[:6] == [None, "ls", "ls", None, "submit", "submit"]


def test_swe_agent_steps_with_equal_times_are_one_run(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = copy.deepcopy(SAMPLES["swe-agent"].values[0]["trajectory"])
    timed = SWE_AGENT | {"trajectory": [step | {"execution_time": 0.25} for step in steps]}
    for run in ("a", "b"):
        write(tmp_path / run / "repo__repo-1.traj", timed)
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["a/repo__repo-1"]
    assert [problem.kind for problem in traces.problems] == ["repeated-run"]


def test_swe_agent_and_mini_of_another_name_are_one_run_where_times_tell_it(tmp_path: Path) -> None:
    """The instance is the file's name, and `x (1).traj` was a further instance."""
    for name in ("swe_agent/sums-1/sums-1.traj", "mini_swe_agent.traj.json"):
        folder = tmp_path / name.partition("/")[0].partition(".")[0]
        folder.mkdir()
        for copied in ("x", "x (1)"):
            suffix = ".traj.json" if name.endswith(".json") else ".traj"
            (folder / f"{copied}{suffix}").write_bytes((RECORDINGS / name).read_bytes())
        traces = read(folder)
        assert traces.sizes.traces == 1 and [problem.kind for problem in traces.problems] == ["repeated-run"], name


def test_swe_agent_files_without_times_are_one_run_where_all_is_equal(tmp_path: Path) -> None:
    for run in ("a", "b", "c"):
        write(tmp_path / run / "repo__repo-1.traj", SWE_AGENT | ({"environment": "c"} if run == "c" else {}))
    write(tmp_path / "c" / "repo__repo-1 copy.traj", SWE_AGENT)
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["a/repo__repo-1", "c/repo__repo-1"]
    assert [problem.kind for problem in traces.problems] == ["repeated-run"] * 2


def test_swe_agent_results_of_a_leaderboard_are_of_the_run_above_their_folder(tmp_path: Path) -> None:
    """SWE-bench's `experiments` keeps RUN/results/results.json beside RUN/trajs: no trajectory had an outcome. A fork
    of the harness writes `resolved` beside `submitted_ids`, which no format was known by."""
    for run, results in {
        "a": {"no_generation": [], "generated": ["repo__repo-1"], "resolved": ["repo__repo-1"]},
        "b": {"total_instances": 1, "submitted_ids": ["repo__repo-1"], "resolved": [], "unresolved_ids": []},
    }.items():
        write(tmp_path / run / "trajs" / "repo__repo-1.traj", SWE_AGENT | {"environment": run})
        write(tmp_path / run / "results" / "results.json", results)
    traces = read(tmp_path)
    assert traces.problems == () and traces.reward[:2].tolist() == [1, 0]


def test_swe_agent_results_that_cannot_be_read_refuse_their_folder(tmp_path: Path) -> None:
    for run in ("a", "b"):
        write(tmp_path / run / "repo__repo-1.traj", SWE_AGENT | {"environment": run})
        write(tmp_path / run / "results.json", {"resolved": ["repo__repo-1"], "generated": ["repo__repo-1"]})
    results = tmp_path / "a" / "results.json"
    results.write_text(results.read_text()[:-4])
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["b/repo__repo-1"]
    assert [(p.kind, p.trace) for p in traces.problems] == [("bad-json", ""), ("lost-row", "a/repo__repo-1")]


def test_codex_before_payloads_reads_as_the_session_does_today(tmp_path: Path) -> None:
    """The same items with and without envelopes are the same events, edges and human texts."""
    old, new = (read(SAMPLES[name].write(tmp_path / name)) for name in ("codex before payloads", "codex"))
    assert old.problems == ()
    assert old.traces.select(["trace", "group", "model", "system"]).to_pylist() == [
        {"trace": "s-2", "group": "s-2", "model": None, "system": "codex"}
    ]
    for name in ("event_type", "action_mask", "agent_ids", "senders", "receivers", "edge_type"):
        assert np.array_equal(getattr(old.graph, name), getattr(new.graph, name)), name
    assert old.events["event"].to_pylist()[0] == "4"
    assert not {"tokens", "input_tokens"} & old.evidence.keys()


def test_a_codex_line_without_its_payload_refuses_the_session(tmp_path: Path) -> None:
    """Such a line is no bare item: the first line says of which form a session is."""
    values = copy.deepcopy(SAMPLES["codex"].values)
    values[5] = values[5]["payload"] | {"timestamp": values[5]["timestamp"]}
    path = SAMPLES["codex"]._replace(values=values).write(tmp_path)
    with pytest.raises(NothingReadError) as caught:
        read(path)
    assert [(p.kind, p.line) for p in caught.value.problems] == [("missing-field", 6)]


def test_codex_as_it_writes_today() -> None:
    """Recorded with Codex CLI 0.169.0: lines of further types hold nothing new, and tokens are told twice."""
    path = RECORDINGS / "codex_session.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    items = [line["payload"] for line in lines if line["type"] == "response_item"]
    usage = [line["payload"]["usage"] for line in lines if line["type"] == "token_usage_record"]
    traces = read(path)
    assert traces.problems == ()
    assert shape(traces) == [
        ("human_intervention", "codex"), ("message", "codex"), ("tool_call", "codex"), ("tool_result", "codex"),
        ("message", "codex"),
    ]  # fmt: skip
    called = [item["name"] for item in items if item["type"] == "function_call"]
    assert traces.events["tool"].to_pylist()[2:4] == called * 2 == ["exec_command"] * 2
    for name, key in (("tokens", "output_tokens"), ("input_tokens", "input_tokens")):
        assert traces.evidence[name].amounts.tolist() == [one[key] for one in usage]
    (session,) = (line["payload"] for line in lines if line["type"] == "session_meta")
    assert traces.traces.select(["trace", "model", "system"]).to_pylist() == [
        {"trace": session["id"], "model": "tiny", "system": f"codex {session['cli_version']}"}
    ]


def test_codex_usage_and_humans(tmp_path: Path) -> None:
    traces = read(SAMPLES["codex"].write(tmp_path))
    assert [kind for kind, _ in shape(traces)] == [
        "human_intervention", "message", "tool_call", "tool_result", "message",
    ]  # fmt: skip
    assert traces.evidence["tokens"].array[:5].tolist() == [-1, 4, -1, -1, 2]
    assert traces.evidence["input_tokens"].amounts.tolist() == [9, 19]
    assert traces.traces.select(["trace", "model", "system"]).to_pylist() == [
        {"trace": "s-1", "model": "m", "system": "codex 0.50.0"}
    ]
    assert traces.events["event"].to_pylist()[1] == "5"


TRAJECTORY = {
    "schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "terminus", "model_name": "m"},
    "steps": [{"step_id": 1, "source": "user", "message": "go"}, {"step_id": 2, "source": "agent", "message": "x"}],
}  # fmt: skip


PARENT, CHILD = "019ff89e-995b-7bf0-a2b5-a7f941be16f9", "019ff8a1-156e-7450-85ba-2fd266aea519"


def fork(turn: str, **meta: Any) -> list[dict[str, Any]]:
    """A sub-agent's rollout that begins with a copy of its parent's, and goes on with a turn of its own."""
    copied = [line for line in SAMPLES["codex"].values if line["type"] != "session_meta"]
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    of_parent = codex("session_meta", 6, id=PARENT, cli_version="0.145.0")
    return [
        codex("session_meta", 6, **{"id": CHILD, "cli_version": "0.145.0", "source": spawned} | meta),
        of_parent,
        *copied,
        codex("event_msg", 7, type="task_started", turn_id=turn),
        codex("turn_context", 7, model="n", turn_id=turn),
        codex("response_item", 8, type="function_call", name="shell", arguments="{}", call_id="d"),
        codex("response_item", 9, type="function_call_output", call_id="d", output="x"),
        codex("event_msg", 9, type="token_count", info={"last_token_usage": {"input_tokens": 5, "output_tokens": 1}}),
    ]


@pytest.mark.parametrize("more", [{}, {"forked_from_id": PARENT}, {"parent_thread_id": PARENT, "source": "x"}])
def test_a_codex_sub_agent_has_no_acts_of_the_session_that_it_was_forked_from(
    more: dict[str, Any], tmp_path: Path
) -> None:
    """It had its parent's id and copies of its parent's calls: a folder with both read neither."""
    path = tmp_path / "rollout-child.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in fork("019ff8a1-1600-7000-8000-000000000000", **more)))
    traces = read(path)
    assert shape(traces) == [("message", "codex"), ("tool_call", "codex"), ("tool_result", "codex")]
    assert traces.traces.select(["trace", "model"]).to_pylist() == [{"trace": CHILD, "model": "n"}]
    assert traces.evidence["tokens"].amounts.tolist() == [1]
    (note,) = traces.problems
    assert (note.kind, note.value, note.is_failure) == ("lone-subagent", PARENT, False)


def test_a_codex_sub_agent_is_joined_to_the_session_that_started_it(tmp_path: Path) -> None:
    """It was a trace of its own, and the note of its end was a human's text."""
    own = "019ff8a1-1600-7000-8000-000000000000"
    note = (
        f'<subagent_notification>\n{{"agent_path": "{CHILD}", "status": {{"errored": "x"}}}}\n</subagent_notification>'
    )
    output = json.dumps({"agent_id": CHILD, "nickname": "Mill"})
    parent = [
        codex("session_meta", 0, id=PARENT, cli_version="0.145.0"),
        codex("response_item", 1, type="function_call", name="spawn_agent", arguments="{}", call_id="s"),
        codex("response_item", 2, type="function_call_output", call_id="s", output=output),
        codex("event_msg", 3, type="token_count", info={"last_token_usage": {"input_tokens": 9, "output_tokens": 4}}),
        codex("response_item", 10, type="message", role="user", content=[{"type": "input_text", "text": note}]),
        codex("response_item", 11, type="message", role="assistant", content=[]),
    ]
    for name, lines in (("parent", parent), ("child", fork(own)), ("copy", fork(own))):
        (tmp_path / f"rollout-{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    traces = read(tmp_path)
    assert traces.problems == () and traces.traces["trace"].to_pylist() == [PARENT]
    assert shape(traces) == [
        ("orchestrator_decision", "codex"), ("spawn", "codex"), ("message", "subagent"), ("tool_call", "subagent"),
        ("tool_result", "subagent"), ("return", "subagent"), ("orchestrator_decision", "codex"),
    ]  # fmt: skip
    assert traces.evidence["tokens"].amounts.tolist() == [4, 1]


@pytest.mark.parametrize(
    ("name", "file", "old", "new"),
    [
        ("codex", "rollout-2026-11-26T17-26-53-*", '"role": "assistant"', '"role": 5'),
        ("opencode", "sub-agent.json", '"role": "assistant"', '"role": 5'),
        ("cline", "agent_*", '"role": "assistant"', '"role": 5'),
        ("gemini_cli", "*/*.jsonl", '"type": "gemini"', '"type": 5'),
    ],
)
def test_a_trace_is_not_read_without_a_sub_agent_that_cannot_be_read(
    name: str, file: str, old: str, new: str, tmp_path: Path
) -> None:
    shutil.copytree(RECORDINGS / name, tmp_path / name)
    (path,) = (tmp_path / name).glob(file)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path / name)
    assert [problem.kind for problem in caught.value.problems] == ["bad-type", "lost-row"]


SUB_AGENTS = {"codex": "rollout-2026-11-26T17-26-53-*", "opencode": "sub-agent.json", "cline": "agent_*",
              "gemini_cli": "*/*.jsonl"}  # fmt: skip
"""By recording of a team, the file of its sub-agent."""


def recorded_team(name: str, folder: Path) -> Path:
    """The file of the sub-agent in a copy of a recording."""
    shutil.copytree(RECORDINGS / name, folder / name)
    (path,) = (folder / name).glob(SUB_AGENTS[name])
    return path


@pytest.mark.parametrize("name", SUB_AGENTS)
def test_two_contents_of_a_sub_agents_session_refuse_the_trace_that_it_is_a_part_of(name: str, tmp_path: Path) -> None:
    """The file that sorts last was read, or the lead without its sub-agent."""
    path = recorded_team(name, tmp_path)
    whole = read(tmp_path / name)
    further = path.with_name(f"zz-{path.name}")
    further.write_bytes(path.read_bytes())
    assert shape(read(tmp_path / name)) == shape(whole)
    text = path.read_text()
    other = "".join(text.splitlines(keepends=True)[:-1]) + text.splitlines()[0] if path.suffix == ".jsonl" else (
        text.replace("assistant", "user")
    )  # fmt: skip
    assert other != text
    further.write_text(other)
    with pytest.raises(NothingReadError, match=r"its copies .* differ, so neither is read") as caught:
        read(tmp_path / name)
    assert {problem.kind for problem in caught.value.problems} == {"duplicate-trace"}
    assert {problem.file for problem in caught.value.problems} > {str(path), str(further)}


@pytest.mark.parametrize("name", SUB_AGENTS)
def test_a_sub_agent_without_a_file_is_named_and_a_file_that_may_be_its_own_refuses_the_trace(
    name: str, tmp_path: Path
) -> None:
    """The lead alone had the credit, and nothing said so."""
    path = recorded_team(name, tmp_path)
    text = path.read_bytes()
    path.unlink()
    traces = read(tmp_path / name)
    (note,) = traces.problems
    assert (note.kind, note.is_failure, note.count) == ("missing-subagent", False, 1)
    assert traces.traces["trace"].to_pylist() == [note.trace]
    row = cost_rows(traces, "trace")[0]
    assert row.tokens.missing and row.lacks_lines, "its counts are lower bounds"
    (tmp_path / name / "rewards.csv").write_bytes(b"")  # a name that no session has
    assert read(tmp_path / name).traces["trace"].to_pylist() == [note.trace]
    key = b'"id": ' if name in ("codex", "opencode") else b'"sessionId": '
    nameless = text.replace(key, key + b'5, "was": ', 1)
    for damage in (b"\0" * len(text), b"", b"{}\n", b"[]", b"null", text[:99], b"\0\0" + text, nameless):
        path.write_bytes(damage)
        with pytest.raises(NothingReadError) as caught:
            read(tmp_path / name)
        problems = [problem for problem in caught.value.problems if problem.file == str(path)]
        assert ("lost-row", note.trace) in [(problem.kind, problem.trace) for problem in problems], damage


@pytest.mark.parametrize("behind", [1, -1])
@pytest.mark.parametrize("name", ["codex", "gemini_cli"])
def test_a_cut_file_of_a_sub_agent_that_has_returned_is_not_still_being_written(
    name: str, behind: int, tmp_path: Path
) -> None:
    """The trace was read without what the sub-agent did, and the note said that its log would grow."""
    path = recorded_team(name, tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:behind]) + lines[behind][:30])
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path / name)
    assert [(problem.kind, problem.file) for problem in caught.value.problems] == [
        ("bad-json", str(path)), ("lost-row", str(path))
    ]  # fmt: skip


def test_the_file_of_a_sub_agent_at_work_may_still_be_written(tmp_path: Path) -> None:
    path = recorded_team("gemini_cli", tmp_path)
    (lead,) = (tmp_path / "gemini_cli").glob("*.jsonl")
    text = lead.read_text()
    assert '"status": "success"' in text
    lead.write_text(text.replace('"status": "success"', '"status": "executing"'))
    path.write_bytes(path.read_bytes()[:-30])
    assert [problem.kind for problem in read(tmp_path / "gemini_cli").problems] == ["unfinished-line"]


def test_a_trace_that_lacks_no_sub_agent_stays_beside_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for name in SUB_AGENTS:
        recorded_team(name, tmp_path)
    (tmp_path / "empty.json").write_bytes(b"")
    traces = read(tmp_path)
    assert traces.sizes.traces == 4 and [problem.kind for problem in traces.problems] == ["empty-file"]


def test_a_file_of_codex_whose_content_stands_twice_is_read_once(tmp_path: Path) -> None:
    """Its calls and tokens counted twice."""
    path = recorded_team("codex", tmp_path)
    whole = read(tmp_path)
    for text in (path.read_text() * 2, path.read_text() * 3 + path.read_text().partition("\n")[0] + "\n"):
        path.write_text(text)
        again = read(tmp_path)
        assert shape(again) == shape(whole)
        assert again.evidence["tokens"].amounts.tolist() == whole.evidence["tokens"].amounts.tolist()


def test_a_codex_fork_without_a_turn_of_its_own_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rollout-child.jsonl"
    lines = fork("019ff89e-9a00-7000-8000-000000000000", forked_from_id=PARENT)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(NothingReadError, match="several-sessions"):
        read(path)


@pytest.mark.parametrize(
    "name", ["codex", "codex before payloads", "gemini-cli", "gemini-cli before lines", "copilot-cli"]
)
def test_two_sessions_in_one_file_are_refused(name: str, tmp_path: Path) -> None:
    """Those of Codex, Gemini CLI and Copilot CLI were one trace, under the id of the first or the last."""
    path = SAMPLES[name].write(tmp_path)
    (path,) = [path] if path.is_file() else path.iterdir()
    session, text = read(path).traces["trace"].to_pylist()[0], path.read_text()
    path.write_text(f"{text}\n{text.replace(session, 'another')}")
    with pytest.raises(NothingReadError) as raised:
        read(path)
    (problem,) = raised.value.problems
    assert (problem.kind, problem.trace, problem.value) == ("several-sessions", session, "'another'")


@pytest.mark.parametrize(
    ("first", "then"), [("codex before payloads", "codex"), ("fork", "codex"), ("codex", "fork"), ("fork", "fork 2")]
)
def test_codex_sessions_of_two_kinds_in_one_file_are_refused(first: str, then: str, tmp_path: Path) -> None:
    own = "019ff8a1-1600-7000-8000-000000000000"
    kinds = {"fork": fork(own), "fork 2": fork(own, id="019ff8a1-157e-7450-85ba-2fd266aea519")}
    lines = [line for name in (first, then) for line in (kinds.get(name) or SAMPLES[name].values)]
    path = tmp_path / "rollout-1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(NothingReadError, match="several-sessions"):
        read(path)


def cline_session(name: str, text: str, *tasks: str) -> dict[str, Any]:
    """A session of Cline in which the agent gets a text and hands out tasks; of a sub-agent where its name has "__"."""
    agent = "subagent" if "__" in name else "lead"
    calls = [{"type": "tool_use", "id": f"{name}-{i}", "name": "spawn_agent", "input": {"task": task}}
             for i, task in enumerate(tasks)]  # fmt: skip
    messages = [{"id": f"{name}-u", "role": "user", "content": [{"type": "text", "text": text}]},
                {"id": f"{name}-a", "role": "assistant", "content": calls}]  # fmt: skip
    return {"version": 1, "updated_at": "x", "agent": agent, "sessionId": name, "messages": messages}


@pytest.mark.parametrize(
    ("sessions", "traces", "lone"),
    [
        ([("lead", "go", "a", "b"), ("lead__1", "a"), ("lead__2", "b")], {"lead"}, []),
        ([("lead", "go", "a"), ("lead__1", "a", "b"), ("lead__2", "b")], {"lead"}, []),  # a sub-agent's sub-agent
        ([("lead", "go", "a"), ("lead__1", "a"), ("lead__1", "a")], {"lead"}, []),  # a copy of its file
        ([("lead", "go", "a"), ("lead", "go", "a"), ("lead__1", "a")], {"lead"}, []),
        # Two calls of one task: which of them started which session is not known.
        ([("lead", "go", "a", "a"), ("lead__1", "a"), ("lead__2", "a")], {"lead", "lead__1", "lead__2"}, ["lead"] * 2),
        ([("lead__1", "a")], {"lead__1"}, ["lead"]),
        ([("lead__1", "a", "b"), ("lead__2", "b", "a")], {"lead__1"}, ["lead__2"]),  # each started the other
    ],
)  # fmt: skip
def test_sub_agents_of_cline_are_joined_by_their_task(
    sessions: list[tuple[str, ...]], traces: set[str], lone: list[str], tmp_path: Path
) -> None:
    for number, session in enumerate(sessions):
        (tmp_path / f"{number}.messages.json").write_text(json.dumps(cline_session(*session)))
    found = read(tmp_path)
    assert set(found.traces["trace"].to_pylist()) == traces
    assert [problem.value for problem in found.problems if problem.kind == "lone-subagent"] == lone
    assert int(found.graph.action_mask.sum()) == len(set(sessions))  # each session has one call
    assert not any(problem.is_failure for problem in found.problems)


def test_what_cline_keeps_beside_a_session_is_passed_over(tmp_path: Path) -> None:
    session = cline_session("lead", "go")
    write(tmp_path / "lead.messages.json", session)
    write(tmp_path / "lead.compaction.json", session | {"messages": session["messages"][:1]})
    write(tmp_path / "lead.json", {"version": 1, "session_id": "lead", "messages_path": "x", "status": "completed"})
    traces = read(tmp_path)
    assert traces.problems == () and len(traces.ignored) == 2 and traces.sizes.events == 2


def trial(folder: Path, name: str, **result: Any) -> None:
    agent = {"name": "terminus", "version": "2", "model_info": {"name": "m", "provider": "p"}}
    whole = {"task_name": "hello", "trial_name": name, "source": "tb", "config": {}, "agent_info": agent}
    write(folder / name / "result.json", whole | result)
    write(folder / name / "config.json", {"task": {"path": "x"}, "trial_name": name, "agent": {}})


def test_a_harbor_job_is_joined(tmp_path: Path) -> None:
    job = tmp_path / "job"
    write(job / "result.json", {"id": "j", "n_total_trials": 3, "stats": {}})
    write(job / "config.json", {"jobs_dir": "jobs", "agents": [], "n_attempts": 2})
    trial(job, "hello__a", verifier_result={"rewards": {"reward": 1.0, "style": 0.5}})
    trial(job, "hello__b", verifier_result={"reward": 0.0})
    trial(job, "hello__c", verifier_result=None)
    write(job / "hello__a" / "agent" / "trajectory.json", TRAJECTORY)
    write(job / "hello__b" / "agent" / "trajectory.json", TRAJECTORY)
    write(tmp_path / "alone.json", TRAJECTORY | {"session_id": "other"})
    traces = read(tmp_path)
    assert [(problem.kind, problem.is_failure) for problem in traces.problems] == [("no-events", False)]
    rows = {row["trace"]: row for row in traces.traces.to_pylist()}
    assert set(rows) == {"hello__a", "hello__b", "other"}
    assert rows["hello__a"]["task"] == "tb/hello" and rows["hello__a"]["model"] == "p/m"
    assert rows["hello__a"]["format"] == "harbor" and rows["other"]["format"] == "atif"
    of = dict(zip(traces.traces["trace"].to_pylist(), np.asarray(traces.reward).tolist(), strict=False))
    assert (of["hello__a"], of["hello__b"]) == (1.0, 0.0) and np.isnan(of["other"])


def test_a_folder_that_mixes_formats_reads_in_one_call(tmp_path: Path) -> None:
    for name in ("verifiers", "spans of strands", "rollouts of verl", "tau2-bench", "langfuse", "openhands", "codex"):
        SAMPLES[name].write(tmp_path / name.replace(" ", "-"))
    traces = read(tmp_path)
    assert [problem for problem in traces.problems if problem.is_failure] == []
    assert set(traces.traces["format"].to_pylist()) == {
        "verifiers", "spans", "rollouts", "tau2-bench", "langfuse", "openhands", "codex",
    }  # fmt: skip


def test_a_command_of_codex_that_failed_is_an_error(tmp_path: Path) -> None:
    """The exit code stands in JSON or in lines above the command's own output, which may claim what it likes.

    A call that Codex could not make has no code, only words of Codex. What a person declined is no failure.
    """
    outputs = [
        json.dumps({"output": "1 failed", "metadata": {"exit_code": 1}}),
        json.dumps({"output": "fine", "metadata": {"exit_code": 0}}),
        "Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno\n",
        "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nProcess exited with code 1\n",
        "Process exited",
        "apply_patch verification failed: Failed to find expected lines in a.py:\nx",
        'exec_command failed for `/bin/x`: CreateProcess { message: "no" }',
        "exec_command failed: UnknownProcess",
        "execution error: Io(Os { code: 2 })",
        "write_stdin failed: Unknown process id 3",
        "failed to parse function arguments: missing field `cmd`",
        "unsupported custom tool call: look",
        "exec command rejected by user",
        'err: "user rejected MCP tool call"',
        "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nexecution error: x",
    ]
    lines = SAMPLES["codex"].values
    start = next(i for i, line in enumerate(lines) if line["payload"].get("type") == "function_call")
    called, answered = lines[start], next(x for x in lines if x["payload"].get("type") == "function_call_output")
    lines = lines[:start]
    for number, output in enumerate(outputs):
        for line, more in ((called, {"id": f"i{number}"}), (answered, {"output": output})):
            lines.append(line | {"payload": line["payload"] | {"call_id": f"c{number}"} | more})
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    traces = read(path)
    results = np.asarray(traces.graph.event_type)[: traces.sizes.events] == EventType.TOOL_RESULT
    status = [one for one, is_result in zip(traces.events["status"].to_pylist(), results, strict=True) if is_result]
    assert status == ["error", None, "error", None, None, *["error"] * 7, *[None] * 3]


ANSWER = {"content": [{"type": "text", "text": "no such row"}], "isError": True}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("ended", "status"),
    [({"type": "mcp_tool_call_end", "call_id": "c", "result": {"Ok": ANSWER}}, "error"),
     ({"type": "mcp_tool_call_end", "call_id": "c", "result": {"Ok": ANSWER | {"isError": False}}}, None),
     ({"type": "mcp_tool_call_end", "call_id": "c", "result": {"Err": "tool call error: timed out"}}, "error"),
     ({"type": "mcp_tool_call_end", "call_id": "c", "result": {"Err": "user rejected MCP tool call"}}, None),
     ({"type": "mcp_tool_call_end", "call_id": "other", "result": {"Ok": ANSWER}}, None),
     ({"type": "item_completed", "item": {"type": "McpToolCall", "id": "c", "status": "failed"}}, "error"),
     ({"type": "item_completed", "item": {"type": "McpToolCall", "id": "c", "status": "completed",
                                          "result": ANSWER}}, "error"),
     ({"type": "item_completed", "item": {"type": "McpToolCall", "id": "c", "status": "completed"}}, None),
     ({"type": "item_completed", "item": {"type": "CommandExecution", "id": "c", "status": "failed"}}, None)],
)  # fmt: skip
def test_an_mcp_call_of_codex_fails_by_the_event_that_ends_it(
    ended: dict[str, Any], status: str | None, is_first: bool, tmp_path: Path
) -> None:
    """The text of its answer says nothing; a command's does, perhaps long after the call's output."""
    lines = copy.deepcopy(SAMPLES["codex"].values)
    at = next(i for i, line in enumerate(lines) if line["payload"].get("type") == "function_call_output")
    lines.insert(at if is_first else at + 1, codex("event_msg", 4, **ended))
    traces = read(SAMPLES["codex"]._replace(values=lines).write(tmp_path))
    results = np.asarray(traces.graph.event_type) == EventType.TOOL_RESULT
    assert [traces.events["status"].to_pylist()[i] for i in np.flatnonzero(results)] == [status]


def test_an_mcp_answer_that_is_a_whole_output_of_codex_states_its_error(tmp_path: Path) -> None:
    lines = copy.deepcopy(SAMPLES["codex"].values)
    (output,) = [line["payload"] for line in lines if line["payload"].get("type") == "function_call_output"]
    for is_error in (True, False):
        output["output"] = json.dumps(ANSWER | {"isError": is_error})
        status = read(SAMPLES["codex"]._replace(values=lines).write(tmp_path)).events["status"].to_pylist()
        assert ("error" in status) is is_error
