"""Which errors and repeated calls of a log a person should look at first."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.reports.call_loops import LOOP, PERIOD, repeated
from credit.reports.endings import endings
from credit.reports.tool_calls import ToolCalls
from credit.reports.triage import triage
from graphs.traces.batch import Traces

Step = tuple[str, str, str | None, str | None]  # agent, tool, arguments, error


def read(folder: Path, *traces: list[Step], answered: bool = True) -> Traces:
    """Traces of calls, each followed by its result."""
    lines = []
    for number, steps in enumerate(traces):
        events: list[dict[str, Any]] = []
        edges = []
        for i, (agent, tool, arguments, error) in enumerate(steps):
            call = {"id": f"c{i}", "type": "tool_call", "agent": agent, "tool": tool}
            call |= {} if arguments is None else {"arguments": arguments}
            result = {"id": f"r{i}", "type": "tool_result", "agent": agent, "tool": tool, "text": error or "fine"}
            status = {"status": "error"} if error else {}
            events += [call, result | status] if answered else [call | status]
            edges += [{"src": f"c{i}", "dst": f"r{i}", "type": "causal"}] if answered else []
        lines.append({"trace_id": f"t{number}", "task_id": "q", "events": events, "edges": edges, "rewards": {}})
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return credit.read(log)


def test_a_result_without_a_call_is_its_own_call(tmp_path: Path) -> None:
    """36 errors of a tool stood beside "calls 0", without a retry or a loop: the log wrote one row for both."""
    steps: list[Step] = [("a", "test", "make", "1 failed"), ("a", "test", "make", None)]
    steps += [("a", "look", "x", None)] * 4 + [("b", "edit", "y", "no such file")]
    read(tmp_path, steps, steps[:2])
    alike = []
    for one in (False, True):
        rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
        for row in rows if one else ():
            calls = {event["id"][1:]: event for event in row["events"] if event["type"] == "tool_call"}
            row["events"] = [calls[event["id"][1:]] | event for event in row["events"] if event["id"][0] == "r"]
            row["edges"] = []
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = ToolCalls(traces := credit.read(tmp_path / "log.jsonl"))
        alike.append([(row.agent, row.calls, row.errors, row.retries, row.loops) for row in triage(traces).agents])
        assert (len(found.rows), int(found.counted.sum()), endings(traces)) == (9, 3, ())
    assert alike[0] == alike[1] == [("a", 8, 2, 2, 1), ("b", 1, 1, 0, 0)]


def test_errors_in_a_row_are_one_run_and_the_same_call_is_counted(tmp_path: Path) -> None:
    steps: list[Step] = [
        ("a", "test", "make", "1 failed"),
        ("a", "edit", "x", None),  # another tool does not end the run
        ("b", "test", "make", None),  # nor does another agent
        ("a", "test", "make -k", "1 failed"),
        ("a", "test", "make", "1 failed"),
        ("a", "test", "make", None),
        ("a", "test", "make", "1 failed"),
        ("a", "read", "y", "no such file"),
    ]
    runs = ToolCalls(read(tmp_path, steps)).failures()
    assert [(run.tool, run.rows, run.same, run.works) for run in runs] == [
        ("test", (1, 9), 2, True),
        ("test", (7,), 1, True),  # that of other arguments is told apart
        ("test", (13,), 1, False),
        ("read", (15,), 1, False),
    ]


@pytest.mark.parametrize("timed_out", [True, False])
@pytest.mark.parametrize(("arguments", "same"), [(None, False), ('{"q": "x"}', True), ('{"q": "%d"}', False)])
def test_calls_without_arguments_are_not_the_same_call(
    tmp_path: Path, arguments: str | None, same: bool, timed_out: bool
) -> None:
    """Spans of calls that all timed out: how they ended counted as what they were called with."""
    spans: list[dict[str, Any]] = []
    for k in range(4):
        said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
        if timed_out:
            said["error.type"] = "Timeout"
        if arguments is not None:
            said["gen_ai.tool.call.arguments"] = arguments % k if "%" in arguments else arguments
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
        times = {"startTimeUnixNano": str(10**18 + k * 10**9), "endTimeUnixNano": str(10**18 + k * 10**9 + 10**8)}
        status = {"code": 2, "message": "Timeout: no answer"} if timed_out else {"code": 1}
        span = {"traceId": "1" * 32, "spanId": f"{k + 2:016x}", "parentSpanId": f"{1:016x}", "name": "search"}
        spans.append(span | {"status": status, "attributes": attributes} | times)
    (tmp_path / "log.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    traces = credit.read(tmp_path / "log.json")
    calls = ToolCalls(traces)
    untold = arguments is None and not timed_out
    assert [(run.same, len(run.rows)) for run in calls.failures()] == [(4 if same else 1, 4)] * timed_out
    assert (len(calls.loops), bool(calls.uncompared)) == (int(same and not timed_out), untold)
    assert triage(traces).agents[0].loops == (None if untold else len(calls.loops))
    whys = [one.why for one in triage(traces).suspects]
    assert any("the same call failed 4 times" in why for why in whys) == (same and timed_out)


@pytest.mark.parametrize(
    ("ends", "loop"),
    [
        ("FFF", False),
        ("FFS", False),
        ("FFFFFF", False),
        ("FSS", False),
        ("SSS", True),
        ("FFSSS", True),
        ("SFSFSF", True),
    ],
)
@pytest.mark.parametrize("period", [1, 2])
def test_calls_made_again_until_they_succeed_are_no_loop(tmp_path: Path, ends: str, loop: bool, period: int) -> None:
    """Three attempts at a tool that failed counted as a loop did, which has the opposite cure."""
    steps: list[Step] = [
        ("a", f"get {k}", "x", "time-out" if end == "F" else None) for end in ends for k in range(period)
    ]
    calls = ToolCalls(read(tmp_path, steps))
    assert [len(calls.loops), len(calls.persisted)] == [int(loop), int(not loop)]
    assert calls.loop_counts().tolist() == [float(loop)] and all(one.times == len(ends) for one in calls.loops)
    kept_out = ToolCalls(read(tmp_path, [(agent, tool, None, error) for agent, tool, _, error in steps]))
    assert kept_out.loop_counts().tolist() == ([pytest.approx(np.nan, nan_ok=True)] if loop else [0])


def test_a_failure_before_a_loop_does_not_shorten_it(tmp_path: Path) -> None:
    steps: list[Step] = [("a", "read", "x", "not there"), ("a", "write", "x", None), *[("a", "read", "x", None)] * 3]
    assert [loop.times for loop in ToolCalls(read(tmp_path, steps)).loops] == [3]


def test_errors_in_a_row_count_those_of_a_call_that_failed_again(tmp_path: Path) -> None:
    """Of five errors the two of one call were left out: `first of 3 errors of sh in a row`, at the second."""

    def failed(calls: str) -> list[Step]:
        return [("a", "sh", call, "1 failed") for call in calls]

    traces = read(tmp_path, failed("abacd"), failed("bacad"), failed("aba"))
    assert [(one.trace, one.event, one.why) for one in triage(traces, most=None).suspects] == [
        ("t1", "r1", "error of sh; the same call failed 2 times"),
        ("t2", "r0", "error of sh; the same call failed 2 times"),
        ("t0", "r0", "error of sh; the same call failed 2 times"),
        ("t0", "r1", "number 2 of 5 errors of sh in a row"),
        ("t1", "r0", "first of 5 errors of sh in a row"),
        ("t2", "r1", "number 2 of 3 errors of sh in a row"),
    ]


def test_other_commands_neither_mend_a_call_nor_break_its_failures(tmp_path: Path) -> None:
    """Each `pytest -x` of a session was one of `shell`, "a later call succeeded", where only `ls` had."""
    ran: list[Step] = [("a", "shell", "pytest -x", "1 failed"), ("a", "shell", "ls", None)]
    mended: list[Step] = [("a", "shell", "make", "1 failed"), ("a", "shell", "ls", None), ("a", "shell", "make", None)]
    unknown: list[Step] = [("a", "shell", None, "1 failed"), ("a", "shell", None, None)]
    traces = read(tmp_path, ran * 3, ran, mended, unknown, [*mended[:2], *mended])
    assert [(one.trace, one.traces, one.why) for one in triage(traces).suspects] == [
        ("t0", 2, "error of shell; the same call failed 3 times"),  # however often it was made
        ("t4", 3, "error of shell; the same call failed 2 times, then succeeded"),
    ]
    assert sorted((one.trace, one.why) for one in triage(traces, most=None).suspects) == [
        ("t0", "error of shell; the same call failed 3 times"),
        ("t1", "error of shell; only other calls of it succeeded later"),
        ("t2", "error of shell; the same call succeeded later"),
        ("t3", "error of shell; a later call of the tool succeeded"),
        ("t4", "error of shell; the same call failed 2 times, then succeeded"),
    ]
    assert {run.rows for run in ToolCalls(traces).failures()} >= {(1, 5, 9)}


def test_calls_without_results_have_their_own_outcome(tmp_path: Path) -> None:
    steps: list[Step] = [("a", "test", "x", "no"), ("a", "test", "x", "no"), ("a", "test", "x", None)]
    calls = ToolCalls(read(tmp_path, steps, answered=False))
    (run,) = calls.failures()
    assert (run.rows, run.same, run.works) == ((0, 1), 2, True)
    assert calls.retry.tolist() == [False, True, True]


def test_a_call_that_a_killed_run_left_open_has_not_succeeded(tmp_path: Path) -> None:
    """Of a run that was killed in `pytest -x`, after two errors of it, the triage said that it succeeded."""
    fails: list[Step] = [("a", "shell", "pytest -x", "1 failed")] * 2
    for name, last in (("same", "pytest -x"), ("other", "ls")):
        path = tmp_path / name
        path.mkdir()
        read(path, [*fails, ("a", "shell", last, None)])
        log = json.loads((path / "log.jsonl").read_text())
        log["events"].pop()  # the last result
        log["edges"].pop()
        (path / "log.jsonl").write_text(json.dumps(log))
        traces = credit.read(path)
        (run,) = ToolCalls(traces).failures()
        assert (run.rows, run.same, run.works, run.recovered, run.left) == ((1, 3), 2, False, False, name == "same")
        end, suspect = triage(traces).suspects
        assert end.why == "the run ends in this call without a result"
        then = ", then had no result" if name == "same" else ""
        assert suspect.why == f"error of shell; the same call failed 2 times{then}"
        assert len(endings(traces)) == 1 and ToolCalls(traces).retry.tolist() == [False, True, name == "same"]


def test_a_failed_call_is_mended_by_the_same_call_alone(tmp_path: Path) -> None:
    """Other arguments, another agent and a success before it mend nothing; a success without arguments may be of it."""
    steps: list[Step] = [
        ("a", "get", "z", None),
        ("a", "get", "x", "time-out"),
        ("a", "get", "y", "time-out"),
        ("a", "get", "z", "time-out"),
        ("b", "get", "y", None),
        ("a", "get", "y", "time-out"),  # one call, however often it failed
        ("a", "get", "x", None),
        ("b", "sh", "x", "time-out"),
        ("b", "run", None, "time-out"),
    ]
    calls = ToolCalls(read(tmp_path, steps))
    assert calls.unrecovered.tolist() == [7, 11, 15, 17] and calls.unrecovered_counts().tolist() == [4]
    assert calls.passed_over.tolist() == [7, 11]  # a later call of `get` by `a` worked, none of `sh` by `b`
    again: list[Step] = [("b", "run", None, None), ("b", "run", None, "time-out"), ("b", "sh", None, "time-out")]
    for step in again:  # a success without arguments, or an error, may be of the call that failed
        assert np.isnan(ToolCalls(read(tmp_path, [*steps, step])).unrecovered_counts()).all()
    known = ToolCalls(read(tmp_path, [*steps[:8], ("b", "sh", "x", None)]))
    assert known.unrecovered.tolist() == [7, 11]
    assert ToolCalls(read(tmp_path, steps[:3], answered=False)).unrecovered_counts().tolist() == [2]


def test_a_retry_is_the_same_call_after_it_failed(tmp_path: Path) -> None:
    """Any next call of the tool was one: a path that was mended, or another file, after a file that was not there."""
    steps: list[Step] = [
        ("a", "test", "make", "1 failed"),
        ("a", "test", "make -k", None),  # other arguments
        ("b", "test", "make", None),  # another agent
        ("a", "sh", "make", None),  # another tool
        ("a", "test", "make", None),  # whatever came between
        ("a", "test", "make", "1 failed"),  # it had succeeded
        ("a", "test", "make", "2 failed"),
        ("a", "test", "make", None),
    ]
    one = read(tmp_path, steps)
    calls = ToolCalls(one)
    assert calls.retry.tolist() == [i in (4, 6, 7) for i in range(8)] and calls.untold == []
    found = triage(one)
    assert [(row.agent, row.retries) for row in found.agents] == [("a", 3), ("b", 0)]
    assert [(row.tool, row.retries) for row in found.tools] == [("test", 3), ("sh", 0)]
    # Traces are apart; where arguments are not known, neither are retries after an error.
    lacks: list[Step] = [("a", "sh", None, None), ("a", "test", None, "1 failed"), ("a", "sh", None, None)]
    several = read(tmp_path, steps[:1], steps[4:5], lacks, [*lacks, ("a", "test", "make", None)])
    counts = ToolCalls(several).retry_counts().tolist()
    assert counts[:3] == [0, 0, 0] and np.isnan(counts[3])
    found = triage(several)
    assert [(row.agent, row.retries) for row in found.agents] == [("a", None)]
    assert [(row.tool, row.retries) for row in found.tools] == [("test", None), ("sh", 0)]


@pytest.mark.parametrize("other", ["make", None, ""])
def test_empty_arguments_are_known_where_other_calls_of_the_log_have_some(tmp_path: Path, other: str | None) -> None:
    """They were unknown in spans, and known in LangSmith's runs. Where all are empty, contents may be kept out."""
    again: list[Step] = [("a", "test", "", "1 failed"), ("a", "test", "", None)]
    calls = ToolCalls(read(tmp_path, again, [("b", "sh", other, None)]))
    assert calls.retry.tolist() == [False, other == "make", False]
    assert calls.untold == ([] if other == "make" else [2])


def test_contents_kept_out_of_a_log_are_no_arguments(tmp_path: Path) -> None:
    """OpenInference writes one word in place of each: all calls of a tool were the same."""
    calls = ToolCalls(read(tmp_path, [("a", "test", "__REDACTED__", "1 failed"), ("a", "test", "__REDACTED__", None)]))
    assert calls.retry.tolist() == [False, False] and calls.untold == [2]


@pytest.mark.parametrize("seed", range(20))
def test_retries_are_those_of_a_plain_count_over_drawn_logs(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([9, seed])
    logs: list[list[Step]] = [
        [(rng.choice(["a", "b"]), rng.choice(["s", "t"]), rng.choice(["x", "y", "z"]),
          "no" if rng.random() < 0.4 else None) for _ in range(30)]
        for _ in range(3)
    ]  # fmt: skip
    calls = ToolCalls(read(tmp_path, *logs, answered=bool(seed % 2)))
    expected = []
    for steps in logs:
        failed: dict[tuple[str, ...], bool] = {}
        for agent, tool, arguments, error in steps:
            expected.append(failed.get((agent, tool, arguments), False))
            failed[agent, tool, arguments] = error is not None
    assert calls.retry.tolist() == expected and sum(expected) > 5


def test_a_call_and_its_result_are_one_error(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    events = [
        {"id": "c", "type": "tool_call", "agent": "a", "tool": "test", "status": "error"},
        {"id": "r", "type": "tool_result", "agent": "a", "tool": "test", "status": "error"},
    ]
    edges = [{"src": "c", "dst": "r", "type": "causal"}]
    log.write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": events, "edges": edges, "rewards": {}}))
    traces = credit.read(log)
    (run,) = ToolCalls(traces).failures()
    assert run.rows == (0,)
    found = triage(traces)
    assert found.agents[0].errors == found.tools[0].errors == 1  # the agent had two


def test_calls_with_other_arguments_are_no_loop(tmp_path: Path) -> None:
    different: list[Step] = [("a", "read", f"file {i}", None) for i in range(6)]
    broken: list[Step] = [("a", tool, "x", None) for tool in ("read", "read", "edit", "read", "read")]
    same: list[Step] = [("a", "read", text, None) for text in ("y", "x", "x", "x", "x", "z")]
    loops = ToolCalls(read(tmp_path, different, broken, same)).loops
    assert [(loop.tools, loop.rows, loop.times) for loop in loops] == [(("read",), (24, 26, 28, 30), 4)]


@pytest.mark.parametrize("empty", ["{}", ""])
def test_calls_of_no_arguments_are_the_same_where_the_log_states_some(empty: str, tmp_path: Path) -> None:
    """A log without contents, whose inputs are all `{}`, had a loop of each tool that was called three times."""
    nothing: list[Step] = [("a", "list", empty, None)] * 3
    calls = ToolCalls(read(tmp_path, nothing))
    assert calls.loops == [] and calls.uncompared and not calls.retry.any()
    other: list[Step] = [("a", "read", "x", None)]
    assert [loop.times for loop in ToolCalls(read(tmp_path, nothing, other)).loops] == [3]


@pytest.mark.parametrize("period", range(1, PERIOD + 1))
def test_calls_by_turns_are_a_loop(tmp_path: Path, period: int) -> None:
    """Reading and editing one file by turns, eleven times, was no loop: only a single call again was."""
    turns: list[Step] = [("a", f"tool {k}", f"x{k}", None) for k in range(period)]
    others: list[Step] = [("b", "poll", f"{i}", None) for i in range(2 * period)]  # another agent, meanwhile
    together = [step for pair in zip(turns * 3, others * 3, strict=False) for step in pair]
    fresh: list[Step] = [("a", f"tool {k % period}", f"{k}", None) for k in range(6 * period)]
    traces = read(tmp_path, turns * 2, turns * 3, together, turns * 3 + turns[:1], fresh)
    found = [(traces.graph.trace_ids[loop.rows[0]].item(), loop.tools, loop.times) for loop in ToolCalls(traces).loops]
    tools = tuple(f"tool {k}" for k in range(period))
    assert found == [(1, tools, 3), (2, tools, 3), (3, tools, 3 + (period == 1))]


def test_agents_that_hand_over_by_turns_are_a_loop_of_each(tmp_path: Path) -> None:
    hands: list[Step] = [("a", "to_b", "{}", None), ("b", "to_a", "{}", None)]
    stated: list[Step] = [("c", "read", "x", None)]  # so that `{}` is what a call states
    loops = ToolCalls(read(tmp_path, hands * 3, hands * 2, stated)).loops
    assert [(loop.tools, loop.times) for loop in loops] == [(("to_b",), 3), (("to_a",), 3)]


@pytest.mark.parametrize("choices", [2, 4, 10])
def test_steps_at_random_have_the_stated_number_of_loops(choices: int) -> None:
    draws, length = 40, 2000
    counts = [0] * (PERIOD + 1)
    for seed in range(draws):
        keys = np.random.default_rng((choices, seed)).integers(choices, size=length)
        for _, _, period in repeated(keys).tolist():
            counts[period] += 1
    for period, count in enumerate(counts[1:], 1):
        expected = draws * length * (1 - 1 / choices) / choices ** (2 * period)
        assert count <= expected + 5 * expected**0.5 + 1  # a loop of a shorter period is counted there
        assert period > 1 or count >= expected - 5 * expected**0.5


def plain_loops(agents: dict[str, list[frozenset[str] | None]]) -> list[tuple[str, int, int, int]]:
    """Agent, first step, steps and period of each loop; a step that is None equals no other."""
    found = []
    for agent, steps in agents.items():
        told: list[tuple[int, int]] = []
        for period in range(1, PERIOD + 1):
            same = [a is not None and a == b for a, b in zip(steps, steps[period:], strict=False)]
            start = 0
            for repeats, pairs in itertools.groupby(same):
                size = len(list(pairs))
                stop = start + size + period
                # A stretch of a shorter period has the longer one, too.
                if repeats and stop - start >= LOOP * period and not any(a <= start and stop <= b for a, b in told):
                    told.append((start, stop))
                    found.append((agent, start, stop - start, period))
                start += size
    return found


@pytest.mark.parametrize("seed", range(12))
def test_loops_are_those_of_a_plain_count(tmp_path: Path, seed: int) -> None:
    """Messages that ask for several calls, calls of no message, without arguments or results, agents by turns."""
    rng = np.random.default_rng(seed)
    events: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []
    steps: dict[str, list[frozenset[str] | None]] = {"a": [], "b": []}
    calls: dict[str, list[list[str]]] = {"a": [], "b": []}
    drawn: dict[str, list[tuple[tuple[str, str | None], ...]]] = {"a": [], "b": []}
    for turn in range(120):
        agent = "ab"[int(rng.integers(2))]
        asked: tuple[tuple[str, str | None], ...]
        if drawn[agent] and rng.random() < 0.75:  # what the agent did one to five steps ago
            asked = drawn[agent][-min(int(rng.choice([1, 2, 2, 3, 5])), len(drawn[agent]))]
        else:
            texts = [f"x{k}" for k in range(3)] + ([None] if rng.random() < 0.1 else [])
            asked = tuple(
                (f"tool{rng.integers(2)}", texts[int(rng.integers(len(texts)))]) for _ in range(rng.integers(1, 4))
            )
        drawn[agent].append(asked)
        by_message = bool(rng.integers(2))
        if by_message:
            events.append({"id": f"m{turn}", "type": "message", "agent": agent})
        made = []
        for k, (tool, text) in enumerate(rng.permutation(np.array(asked, object)).tolist()):
            name = f"c{turn}.{k}"
            said = {} if text is None else {"arguments": text}
            events.append({"id": name, "type": "tool_call", "agent": agent, "tool": tool} | said)
            made.append((name, None if text is None else f"{tool} {text}"))
            if by_message:
                edges.append({"src": f"m{turn}", "dst": name, "type": "causal"})
        for name, _ in made:
            if rng.random() < 0.8:
                events.append({"id": f"{name}.result", "type": "tool_result", "agent": agent})
                edges.append({"src": name, "dst": f"{name}.result", "type": "causal"})
        for names in [made] if by_message else [[one] for one in made]:
            keys = [key for _, key in names if key is not None]
            steps[agent].append(frozenset(keys) if len(keys) == len(names) else None)
            calls[agent].append([name for name, _ in names])
    (tmp_path / "log.jsonl").write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": events, "edges": edges}))
    traces = credit.read(tmp_path / "log.jsonl")
    names = traces.events["event"].to_pylist()
    given = [(tuple(names[row] for row in loop.rows), loop.times, {names[row] for row in loop.again})
             for loop in ToolCalls(traces).loops]  # fmt: skip
    expected = []
    for agent, start, size, period in plain_loops(steps):
        whole = calls[agent][start : start + size]
        again = {name for step in whole[period:] for name in step}
        expected.append((tuple(step[0] for step in whole), size // period, again))
    assert len(expected) > 3
    assert sorted(given, key=str) == sorted(expected, key=str)
    counted = set().union(*(again for _, _, again in expected))
    numbers = ToolCalls(traces).calls_again()
    assert np.isnan(numbers[0]) if ToolCalls(traces).uncompared else numbers[0] == len(counted)


def test_a_command_is_the_same_whatever_it_is_said_to_be_for(tmp_path: Path) -> None:
    """Coding agents describe each call anew: `make` five times was five calls."""
    words = ["Build", "Build again", "Try the build", "Once more"]
    forms = [
        [json.dumps({"command": "make", "description": word}) for word in words],
        [json.dumps({"justification": word, "cmd": ["make"]}) for word in words],
        [json.dumps({"command": "make"}), *(json.dumps({"description": word, "command": "make"}) for word in words)],
        [json.dumps({"command": f"make {word}", "description": "Build"}) for word in words],  # others
        [json.dumps({"subject": "Build", "description": word}) for word in words],  # a task is what it says
    ]
    traces = read(tmp_path, *([("a", "shell", text, None) for text in texts] for texts in forms))
    loops = ToolCalls(traces).loops
    found = [(traces.graph.trace_ids[loop.rows[0]].item(), loop.times) for loop in loops]
    assert found == [(0, 4), (1, 4), (2, 5)]
    failed: list[Step] = [("a", "shell", text, "1 failed") for text in forms[0]]
    (run,) = ToolCalls(read(tmp_path, failed)).failures()
    assert run.same == 4


def test_calls_of_one_message_are_made_at_once(tmp_path: Path) -> None:
    """Five searches that a message asked for were five calls in a row."""

    def asked(number: int, text: str) -> dict[str, Any]:
        return {"id": f"{number}", "function": {"name": "search", "arguments": text}, "type": "function"}

    def said(*messages: int) -> list[dict[str, Any]]:
        completion: list[dict[str, Any]] = []
        for times in messages:
            calls = [asked(len(completion) * 10 + i, "x") for i in range(times)]
            completion.append({"role": "assistant", "content": "", "tool_calls": calls})
            completion += [{"role": "tool", "tool_call_id": call["id"], "content": "no"} for call in calls]
        return completion

    rows = [{"example_id": i, "prompt": [], "completion": said(*sizes), "answer": "", "reward": 0.0}
            for i, sizes in enumerate(((5,), (2, 1, 2), (1, 4)))]  # fmt: skip
    log = tmp_path / "results.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (loop,) = ToolCalls(credit.read(log)).loops
    assert len(loop.rows) == loop.times == 3


def test_events_of_one_cause_are_one_row(tmp_path: Path) -> None:
    """All rows said `error of Bash; the same call failed 4 times`, 3 times, 2 times, and none what came next."""
    arguments = '{"command": "pytest -x %s", "timeout": %d}'
    same: list[list[Step]] = [
        [("a", "sh", arguments % ("a", 5 + k), f"1 failed in {k + n} s") for k in (0, 1)] for n in range(16)
    ]
    often: list[Step] = [("a", "sh", arguments % ("b", k), "1 failed") for k in (0, 1, 2)]
    other: list[Step] = [("a", "ls", "x", "no"), ("a", "sh", "x", None)]
    traces = read(tmp_path, *same, often, other)
    found = triage(traces)
    assert [(one.trace, one.traces, one.why, one.text) for one in found.suspects] == [
        ("t16", 17, "error of sh; the same call failed up to 3 times", "1 failed ← pytest -x b"),
        ("t17", 1, "error of ls; no later call of it succeeded", "no ← x"),
    ]
    assert found.left_out == 16 and triage(traces, most=1).left_out == 17
    every = triage(traces, most=None)
    assert [one.traces for one in every.suspects] == [1] * 18 and every.left_out == 0
    assert [one.why for one in every.suspects[:2]] == [f"error of sh; the same call failed {n} times" for n in (3, 2)]


def test_a_breakage_of_a_tool_in_a_run_is_one_row_with_all_its_errors(tmp_path: Path) -> None:
    """Two rows, "the same call failed up to 2 times" and "number 2 of up to 4 errors in a row", were one broken key."""

    def failed(agent: str, asked: str) -> list[Step]:
        return [(agent, "search", one, None if one == "!" else "401: bad key") for one in asked]

    traces = read(tmp_path, failed("a", "xxyz") + failed("b", "x!"), failed("a", "xyxz"), failed("a", "xy"))
    found = triage(traces)
    assert [(one.trace, one.event, one.agent, one.traces, one.why) for one in found.suspects] == [
        ("t1", "r0", "a", 3, "error of search; the same call failed 2 times; up to 4 errors in a run"),
        ("t0", "r4", "b", 1, "error of search; only other calls of it succeeded later"),
    ]
    every = triage(traces, most=None).suspects
    assert len(every) == 2 + found.left_out == 6, "all events are named where all are asked for"
    assert "number 3 of 4 errors of search in a row" in [one.why for one in every]


def test_one_trouble_is_one_row(tmp_path: Path) -> None:
    """An error, the same error with retries, and a loop that began at its other tool were rows of their own."""
    once: list[Step] = [("a", "book", "x", "409: taken")]
    round_: list[Step] = [("b", "open", "x", None), ("b", "next", "x", None)]
    runs = [once, once * 2, once * 3, round_ * 3, round_[::-1] * 4]
    found = triage(read(tmp_path, *runs))
    assert [(one.traces, one.why) for one in found.suspects] == [
        (3, "error of book; the same call failed up to 3 times"),
        (2, "the same 2 calls of open, next 3 times in a row"),
    ]


def test_the_first_suspect_is_the_call_that_failed_again(tmp_path: Path) -> None:
    benign: list[Step] = [("a", "read", "x", "no such file"), ("a", "read", "y", None)] + [("a", "poll", "z", None)] * 9
    final: list[Step] = [("a", "read", "x", None), ("a", "write", "x", "not allowed")]
    again: list[Step] = [
        ("a", "test", "make", "1 failed"),
        ("a", "test", "make", "2 failed"),
        ("a", "edit", "x", None),
        ("a", "test", "make", None),
    ]
    suspects = triage(read(tmp_path, benign, final, again)).suspects
    assert [(one.trace, one.event, one.why, one.text) for one in suspects] == [
        ("t2", "r0", "error of test; the same call failed 2 times, then succeeded", "1 failed ← make"),
        ("t1", "r1", "error of write; no later call of it succeeded", "not allowed ← x"),
        ("t0", "r0", "error of read; only other calls of it succeeded later", "no such file ← x"),
        ("t0", "c2", "the same call of poll 9 times in a row", "z"),
    ]


def test_a_real_session_begins_with_what_stopped_it(shared_data: Path) -> None:
    """Two sessions of Claude Code: in one, writing the file that was asked for was not permitted."""
    first = triage(credit.read(shared_data / "claude_code_inline")).suspects[0]
    assert (
        "requested permissions to write" in first.text and first.why == "error of Write; no later call of it succeeded"
    )
    first = triage(credit.read(shared_data / "claude_code_subagent_files")).suspects[0]
    # One of them has another time-out, and the call that succeeded, 20 events later, another description.
    assert first.why == "error of Bash; the same call failed 4 times, then succeeded; 5 errors in the run"
    assert (
        first.text.startswith("Exit code 1")
        and "← mix test test/spotter_web/live/project_review_live_test.ex" in first.text
    )


def test_long_arguments_that_a_result_repeats_leave_its_error(tmp_path: Path) -> None:
    """A record that says both, the call first, was cut within the arguments: nothing was left of the error."""
    called: dict[str, Any] = {"type": "tool_call", "agent": "a", "tool": "sh", "arguments": {"command": "x " * 300}}
    failed = called | {"type": "tool_result", "status": "error", "message": "boom", "id": "r"}
    record = {"trace_id": "t", "task_id": "q", "events": [called | {"id": "c"}, failed], "rewards": {},
              "edges": [{"src": "c", "dst": "r", "type": "causal"}]}  # fmt: skip
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(record))
    (one,) = triage(credit.read(log)).suspects
    assert one.text.startswith("boom ← x x ") and len(one.text) < 80


def test_calls_have_their_results_where_no_edge_tells(tmp_path: Path) -> None:
    """A log without edges had no retries, and its failed calls were loops and events outside of tool calls."""
    steps: list[Step] = [("a", "f", "x", "no"), ("b", "g", "y", None), ("a", "f", "x", "no"), ("a", "f", "x", None)]
    edged = read(tmp_path, steps)
    log = tmp_path / "log.jsonl"
    bare = json.loads(log.read_text()) | {"edges": []}
    order = [0, 2, 1, 3, 4, 5, 6, 7]  # agents run at once; one agent's call and its result follow one another
    bare["events"] = [bare["events"][i] for i in order]
    log.write_text(json.dumps(bare))
    loose = ToolCalls(credit.read(log))
    assert [order[row] for row in loose.owners] == [int(ToolCalls(edged).owners[row]) for row in order]
    assert loose.retry_counts().tolist() == [2.0] and not loose.open.any()


def test_calls_at_once_without_edges_have_no_results(tmp_path: Path) -> None:
    """Which of two results is which call's is not told, so neither call is open or has one."""
    read(tmp_path, [("a", "f", "x", "no"), ("a", "f", "z", None), ("a", "g", "x", None)])
    log = tmp_path / "log.jsonl"
    bare = json.loads(log.read_text()) | {"edges": []}
    bare["events"] = [bare["events"][i] for i in (0, 2, 1, 3, 4, 5)]
    log.write_text(json.dumps(bare))
    calls = ToolCalls(credit.read(log))
    assert calls.results.tolist() == [5] and calls.calls.tolist() == [4] and not calls.open.any()
