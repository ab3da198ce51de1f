"""Sub-agents, inline and in files of their own: who spawned whom, and who is left over."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from credit.metrics.cost_summary import cost_rows
from graphs.errors import Problem
from graphs.event_graph import EventType
from graphs.logs import read
from graphs.traces.record import TraceRecord

from .logs import SESSION, Log, edges, files, items, only, task, text


@pytest.mark.parametrize("both", [True, False])
def test_a_sub_agent_in_its_own_file(tmp_path: Path, both: bool) -> None:
    """Whether its file is among the sources or only lies in the session's folder."""
    main, child = files(tmp_path)
    record = only(*((child, main) if both else (main,)))
    assert record.ids == ["u0-None", "c1", "t1", "k1", "x1", "x1.result", "k2", "t1.return", "c2"]
    assert record.agents == ["main"] * 3 + ["a7"] * 5 + ["main"]
    assert ("t1", "k1", "spawn") in edges(record) and ("k2", "t1.return", "causal") in edges(record)
    assert record.instances["a7"].parent == "main"


def test_a_folder_gives_one_trace_for_a_session_and_its_agents(tmp_path: Path) -> None:
    files(tmp_path)
    traces = read(tmp_path)
    assert (traces.sizes.traces, traces.problems) == (1, ())


def test_a_file_of_summaries_beside_a_session_is_no_failure(tmp_path: Path) -> None:
    files(tmp_path)
    (tmp_path / "summaries.jsonl").write_text('{"type": "summary", "summary": "x", "leafUuid": "y"}\n')
    traces = read(tmp_path, format="claude-code")
    (problem,) = traces.problems
    assert traces.sizes.traces == 1 and (problem.kind, problem.is_failure) == ("no-events", False)


def test_a_sub_agents_file_elsewhere_is_known_by_its_lines(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    moved = child.rename(tmp_path / "moved.jsonl")
    assert "k1" in only(main, moved).ids


def test_links_by_result_alone_and_by_prompt_alone(tmp_path: Path) -> None:
    main, _ = files(tmp_path)
    lines = [json.loads(line) for line in main.read_text().splitlines()]
    by_result = [line for line in lines if line["type"] != "progress"]
    by_prompt = copy.deepcopy(by_result)
    del by_prompt[2]["toolUseResult"]
    for variant in (by_result, by_prompt):
        main.write_text("".join(json.dumps(line) + "\n" for line in variant))
        record = only(main)
        assert "k1" in record.ids and record.agents[record.ids.index("k1")] == "a7"


def test_a_dangling_spawn_has_an_agent_without_calls(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    child.unlink()
    record, note = items(main)
    assert isinstance(record, TraceRecord) and isinstance(note, Problem) and not note.is_failure
    assert (note.kind, note.trace, note.value, note.count) == ("missing-subagent", record.trace_id, "'a7'", 1)
    assert record.ids == ["u0-None", "c1", "t1", "t1.return", "c2"]
    assert record.agents[3] == "a7" and record.instances["a7"].role == "explorer"
    assert {("t1", "t1.return", "spawn"), ("t1.return", "c2", "return")} < edges(record)
    traces = read(main)
    assert "a7" in traces.agents["agent"].to_pylist() and traces.problems == (note,)


@pytest.mark.parametrize("lines", [3, 4, 5])
def test_a_missing_sub_agent_makes_sums_lower_bounds_whether_or_not_it_returned(lines: int, tmp_path: Path) -> None:
    main, child = files(tmp_path)
    child.unlink()
    main.write_bytes(b"".join(main.read_bytes().splitlines(keepends=True)[:lines]))
    traces = read(main)
    assert [problem.kind for problem in traces.problems] == ["missing-subagent"]
    (row,) = cost_rows(traces, "trace")
    assert row.tokens.missing == 1 and row.lacks_lines
    assert ("main", lines < 4) in {
        (one.unit, one.lacks_lines) for one in cost_rows(traces)
    }  # it has returned in line 4


def test_a_missing_sub_agent_does_not_refuse_its_session_for_a_line_of_another(tmp_path: Path) -> None:
    """Only a file of the agent's name would be that agent's; a line of another session never is."""
    main, child = files(tmp_path)
    child.unlink()
    other = main.read_text().replace(SESSION, "s-2").replace("c1", "d1").replace("c2", "d2")
    (tmp_path / "s-2.jsonl").write_text(other.replace("{", "", 1))
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == [SESSION]
    assert "missing-subagent" in [problem.kind for problem in traces.problems]


def test_an_orphan_is_named(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    main.unlink()
    (problem,) = items(child)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.file) == ("orphan-subagent", str(child))


def test_an_agents_file_that_is_named_alone_is_read(tmp_path: Path) -> None:
    """It held "no message"."""
    main, child = files(tmp_path)
    main.unlink()
    traces = read(child)
    assert [problem for problem in traces.problems if problem.is_failure] == []
    assert traces.sizes.agents == 1 and traces.graph.action_mask.any()
    assert traces.traces["trace"].to_pylist()[0].endswith("/a7")


def test_an_agent_that_nothing_started_is_named_and_the_session_reads(tmp_path: Path) -> None:
    main, child = files(tmp_path)
    stray = Log(agent="warm")
    stray.human("Warmup")
    stray.reply("w1", text())
    path = stray.write(child.parent / "agent-warm.jsonl")
    record, problem = items(main)
    assert isinstance(record, TraceRecord) and isinstance(problem, Problem)
    assert "w1" not in record.ids and "k1" in record.ids
    assert (problem.kind, problem.file, problem.trace) == ("unlinked-subagent", str(path), SESSION)


def test_an_agent_that_is_woken_again(tmp_path: Path) -> None:
    log = Log()
    log.reply("c1", task("t1", "look"))
    log.result("t1", toolUseResult={"agentId": "a7"})
    log.reply("c2", task("t2", "look again"))
    log.result("t2", toolUseResult={"agentId": "a7"})
    child = Log(agent="a7")
    for round_, prompt in enumerate(("look", "look again")):
        child.human(prompt)
        child.reply(f"k{round_}", text())
    main = log.write(tmp_path / f"{SESSION}.jsonl")
    child.write(tmp_path / SESSION / "subagents" / "agent-a7.jsonl")
    record = only(main)
    assert record.ids == ["c1", "t1", "k0", "t1.return", "c2", "t2", "k1", "t2.return"]
    assert {("t2", "k1", "spawn"), ("k0", "k1", "temporal"), ("k1", "t2.return", "causal")} < edges(record)
    assert read(main).problems == ()


def test_an_agent_in_the_background_is_answered_by_a_tool_result(tmp_path: Path) -> None:
    main, _ = files(tmp_path)
    lines = [json.loads(line) for line in main.read_text().splitlines()]
    lines[3]["toolUseResult"]["status"] = "async_launched"
    main.write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = only(main)
    assert record.types[record.ids.index("t1.result")] == EventType.TOOL_RESULT
    assert EventType.RETURN not in record.types and "k1" in record.ids


def test_agents_nest_deeper_than_pythons_stack(tmp_path: Path) -> None:
    log, depth = Log(), 2_000
    log.reply("c0", task("t0", "p0"))
    for level in range(depth):
        log.human(f"p{level}", side=True, root=True)
        log.reply(f"c{level + 1}", task(f"t{level + 1}", f"p{level + 1}"), side=True)
    record = only(log.write(tmp_path / "x.jsonl"))
    assert sum(record.actions) == depth + 1
    assert len(record.instances) == depth + 1


def test_agents_that_start_each_other_in_a_ring_are_named(tmp_path: Path) -> None:
    log = Log()
    log.reply("c1", text())
    for mine, other in (("p", "q"), ("q", "p")):
        log.human(mine, side=True, root=True)
        log.reply(f"k{mine}", task(f"t{mine}", other), side=True)
    record, *problems = items(log.write(tmp_path / "x.jsonl"))
    assert isinstance(record, TraceRecord) and record.ids == ["c1"]
    assert [p.kind for p in problems if isinstance(p, Problem)] == ["unlinked-subagent"] * 2
