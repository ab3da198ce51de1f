"""`credit summary`, `traces` and `show`: who matters, and what to look at where nobody knows the outcome."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.reports.who_matters import who_matters

from .logs import GOOD, run, trace, write


def tool_log(name: str, task: str, reward: float | None, tools: list[tuple[str, str | None]]) -> dict[str, Any]:
    """One agent whose actions are messages, each with a tool call and its result."""
    events: list[dict[str, Any]] = []
    edges = []
    for i, (tool, status) in enumerate(tools):
        events.append({"id": f"m{i}", "type": "message", "agent": "main", "action": True, "tokens": 10 + i})
        events.append({"id": f"c{i}", "type": "tool_call", "agent": "main", "tool": tool, "action": False})
        result = {"id": f"r{i}", "type": "tool_result", "agent": "main", "tool": tool, "action": False}
        events.append(result | ({"status": status} if status else {}))
        edges += [{"src": f"m{i}", "dst": f"c{i}", "type": "tool_dependency"}]
    return trace(name, task, reward, events=events, edges=edges)


def test_means_and_intervals_are_those_of_a_slow_reading(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for task in range(5):
        for k in range(4):
            tools = [("search", None)] * int(rng.integers(1, 4)) + [("book", None)] * int(rng.integers(0, 2))
            lines.append(tool_log(f"t{task}{k}", f"q{task}", float(rng.integers(0, 3)), tools))
    log = write(tmp_path / "x.jsonl", lines)
    rows = {row["name"]: row for row in json.loads(run("summary", log, "--by", "tool", "--json").stdout)["units"]}
    traces = credit.read(log)
    table = credit.table(traces, credit.rloo(traces.graph, traces.reward)).to_pylist()
    by_tool: dict[str, dict[str, list[float]]] = {}
    for i, row in enumerate(table):
        if row["type"] == "tool_call":
            tool = traces.events["tool"][i].as_py()
            by_tool.setdefault(tool, {}).setdefault(row["group"], []).append(table[i - 1]["advantage"])
    assert set(rows) == set(by_tool) == {"search", "book"}
    for tool, tasks in by_tool.items():
        every = [a for values in tasks.values() for a in values]
        mean = sum(every) / len(every)
        assert rows[tool]["actions"] == len(every) and rows[tool]["tasks"] == len(tasks)
        assert rows[tool]["advantage"] == pytest.approx(mean, abs=1e-6)
        squares = sum((sum(v) - mean * len(v)) ** 2 for v in tasks.values())
        error = math.sqrt(squares * len(tasks) / (len(tasks) - 1)) / len(every)
        quantile = {2: 4.3027, 3: 3.1824, 4: 2.7764}[len(tasks) - 1]  # a table of Student's t
        assert rows[tool]["high"] - mean == pytest.approx(quantile * error, rel=1e-3)


@pytest.mark.parametrize(("by", "names"), [("agent", {"boss", "solver"}), ("turn", {"turn 0", "turn 1"}),
                                           ("type", {"orchestrator_decision", "message"})])  # fmt: skip
def test_units_are_named(good: Path, by: Any, names: set[str]) -> None:
    traces = credit.read(good)
    units = who_matters(traces, credit.run(traces, "rloo"), by)
    assert {unit.name for unit in units} == names
    printed = run("summary", good, "--by", by).stdout
    assert all(name in printed for name in names) and "over tasks" in printed
    with pytest.raises(credit.CreditError, match="by is 'team'; expected one of agent, role"):
        who_matters(traces, credit.run(traces, "rloo"), "team")  # type: ignore[arg-type]


def test_what_is_known_comes_first_and_turns_stand_in_order(tmp_path: Path) -> None:
    lines = []
    for task in range(6):
        for k in range(2):
            tools = [("plain", None)] * 2 + [("good" if k else "bad", None)] + [("once", None)] * (task == k == 0)
            lines.append(tool_log(f"t{task}{k}", f"q{task}", float(k), tools))
    log = write(tmp_path / "x.jsonl", lines)
    units = json.loads(run("summary", log, "--by", "tool", "--json").stdout)["units"]
    assert [unit["name"] for unit in units] == ["bad", "good", "plain", "once"]
    assert [unit["excludes_zero"] for unit in units] == [True, True, False, False]
    assert abs(units[-1]["advantage"]) > abs(units[-2]["advantage"]) and units[-1]["low"] is None
    turns = json.loads(run("summary", log, "--by", "turn", "--json").stdout)["units"]
    assert [unit["name"] for unit in turns] == [f"turn {i}" for i in range(len(turns))]


def test_the_interval_of_one_task_is_unknown(tmp_path: Path) -> None:
    log = write(tmp_path / "x.jsonl", GOOD[:2])
    (row, _) = json.loads(run("summary", log, "--json").stdout)["units"]
    assert row["tasks"] == 1 and row["low"] is None and row["excludes_zero"] is False


def test_an_interval_needs_three_tasks_with_a_signal(tmp_path: Path) -> None:
    lines = []
    for task in range(4):  # the last one teaches nothing
        for k in range(3):
            tools = [("search", None)] * 2 + [("good", None)] * (k == 2 and task < 2) + [("plain", None)] * (k + 1)
            lines.append(tool_log(f"t{task}{k}", f"q{task}", float(k == 2 and task < 3), tools))
    log = write(tmp_path / "x.jsonl", lines)
    units = {u["name"]: u for u in json.loads(run("summary", log, "--by", "tool", "--json").stdout)["units"]}
    assert {name: (unit["tasks"], unit["signal"]) for name, unit in units.items()} == {
        "search": (4, 3), "good": (2, 2), "plain": (4, 3),
    }  # fmt: skip
    assert units["good"]["advantage"] == 1 and units["good"]["low"] is None  # of two tasks it would be thirteen wide
    assert units["search"]["low"] is None and units["search"]["advantage"] == 0  # 0 by construction in every task
    assert units["plain"]["low"] is not None and not units["plain"]["excludes_zero"]
    printed = run("summary", log, "--by", "tool").stdout
    assert "+0.000 to +0.000" not in printed and "fewer than 3 with a signal" in printed


def test_logs_without_outcomes_are_triaged(tmp_path: Path) -> None:
    tools = [("search", None), ("search", "error: no such page"), ("search", None), ("search", None), ("book", None)]
    log = write(tmp_path / "x.jsonl", [tool_log("a", "q", None, tools), tool_log("b", "q", None, [("book", None)])])
    plain = json.loads(run("summary", log, "--json").stdout)
    (main,) = plain["agents"]
    counts = {name: main[name] for name in ("traces", "calls", "errors", "retries", "loops", "tokens")}
    assert counts == {
        "traces": 2,
        "calls": 6,
        "errors": 1,
        "retries": 1,
        "loops": 1,
        "tokens": 10 + 11 + 12 + 13 + 14 + 10,
    }
    first = plain["suspects"][0]
    assert (first["trace"], first["event"], first["position"]) == ("a", "r1", 5)
    assert first["why"] == "error of search; a later call succeeded"
    assert any("4 calls of search in a row" in row["why"] for row in plain["suspects"])
    printed = run("summary", log).stdout
    assert "No trace has an outcome" in printed and "--rewards" in printed and "Look at these first" in printed


def test_triage_counts_by_tool(tmp_path: Path) -> None:
    tools = [("search", None), ("search", "error: no such page"), ("search", None), ("search", None), ("book", None)]
    log = write(tmp_path / "x.jsonl", [tool_log("a", "q", None, tools), tool_log("b", "q", None, [("book", None)])])
    search, book = json.loads(run("summary", log, "--json").stdout)["tools"]
    assert search == {"tool": "search", "traces": 1, "calls": 4, "errors": 1, "retries": 1, "loops": 1}
    assert book == {"tool": "book", "traces": 2, "calls": 2, "errors": 0, "retries": 0, "loops": 0}
    printed = run("summary", log, "--by", "tool").stdout
    assert printed.index("search") < printed.index("book") < printed.index("Look at these first")
    assert "--by turn needs outcomes" in run("summary", log, "--by", "turn").stdout


def test_choose_leads_to_the_triage_where_no_outcome_is_known(tmp_path: Path, good: Path) -> None:
    log = write(tmp_path / "x.jsonl", [tool_log("a", "q", None, [("book", None)])])
    printed = run("choose", log).stdout
    assert printed.splitlines()[-1] == f"to look at: credit summary {log}" and "no trace has an outcome" in printed
    assert "to look at:" not in run("choose", good).stdout


def test_show_around_an_event(tmp_path: Path) -> None:
    tools = [("search", None)] * 4 + [("book", "error: full")] + [("book", None)] * 4
    log = write(tmp_path / "x.jsonl", [tool_log("a", "q", None, tools)])
    command = next(line for line in run("summary", log).stdout.splitlines() if line.startswith("run: credit "))
    assert command.endswith("--trace a --around r4")
    printed = run(*command.split()[2:]).stdout
    assert "trace a: events 9 to 19 of 27" in printed and "m2 " not in printed
    assert next(line for line in printed.splitlines() if line.startswith("→")).split()[1:3] == ["14", "main"]
    assert run("show", log, "--around", 14).stdout == printed
    assert "events 0 to 5 of 27" in run("show", log, "--around", "m0").stdout
    wrong = run("show", log, "--around", "r44")
    assert wrong.exit_code == 1 and "event is 'r44'; expected an id of the trace, or a number below 27" in wrong.stderr


def test_an_id_that_a_table_cut_is_taken_where_one_trace_begins_so(tmp_path: Path) -> None:
    names = ("258c7280-ae70-4798", "258c7280-ae71-0000", "short")
    log = write(tmp_path / "x.jsonl", [tool_log(name, "q", None, [("book", "error: full")]) for name in names])
    printed = run("summary", log).stdout
    cut = re.search(r"^(258c7280-ae70\S*…)", printed, re.MULTILINE)
    assert cut is not None and "with a row's trace, whole or as cut by …, and its number" in printed
    assert "trace 258c7280-ae70-4798: events" in run("show", log, "--trace", cut[1], "--around", 1).stdout
    for wrong, text in (
        ("258c7280…", "2 traces begin with '258c7280'"),
        ("258c7280-ae70", "Did you mean 258c7280-ae70-4798"),
        ("9…", "No trace '9…'"),
    ):
        refused = run("show", log, "--trace", wrong)
        assert refused.exit_code == 1 and text in refused.stderr
    alone = write(tmp_path / "y.jsonl", [tool_log("only", "q", None, [("book", "error: full"), ("book", None)])])
    header = next(line for line in run("summary", alone).stdout.splitlines() if "why" in line)
    assert "trace" not in header


def test_suspects_have_the_names_of_their_agents(tmp_path: Path) -> None:
    record = tool_log("a", "q", None, [("book", "error: full")])
    agents = {event["agent"] for event in record["events"]}
    record["agents"] = [{"id": agent, "name": f"named {agent}"} for agent in sorted(agents)]
    log = write(tmp_path / "x.jsonl", [record])
    assert json.loads(run("summary", log, "--json").stdout)["suspects"][0]["agent"] == "named main"


def test_traces_lists_ids_sizes_and_errors(good: Path, tmp_path: Path) -> None:
    rows = json.loads(run("traces", good, "--json").stdout)["traces"]
    assert [row["trace"] for row in rows] == ["a", "b", "c", "d", "e"]
    assert rows[0] | {"file": ""} == {
        "trace": "a", "group": "q", "reward": 1.0, "events": 3, "actions": 2, "agents": 2, "errors": 0, "tokens": 7,
        "actions_with_tokens": 1,
        "format": "native", "file": "", "line": 1,
    }  # fmt: skip
    assert {row["trace"] for row in json.loads(run("traces", good, "--group", "r", "--json").stdout)["traces"]} == {
        "c",
        "d",
    }
    wrong = run("traces", good, "--group", "rr")
    assert wrong.exit_code == 1 and "No group 'rr'. Did you mean r?" in wrong.output


def test_near_names_of_traces(tmp_path: Path) -> None:
    log = write(tmp_path / "x.jsonl", [trace("run/task-10/trial-0", "q", 1.0), trace("run/task-2/trial-0", "q", 0.0)])
    wrong = run("show", log, "--trace", "task-10")
    assert wrong.exit_code == 1 and "No trace 'task-10'. Did you mean run/task-10/trial-0?" in wrong.output


def test_near_names_of_traces_have_the_same_number(tmp_path: Path) -> None:
    """`trace-8` was answered with 78, 68 and 58, which share more letters with it than 000008 does."""
    log = write(tmp_path / "x.jsonl", [trace(f"trace-{i:06d}", "q", 1.0) for i in range(90)])
    for name in ("trace-8", "trace8", "trial-8", "TRACE-08", "8"):
        assert f"No trace {name!r}. Did you mean trace-000008 or " in run("show", log, "--trace", name).output, name
    assert "Did you mean trace-000080 or " in run("show", log, "--trace", "trace-80").output


def test_show_lists_tools_status_and_text(tmp_path: Path) -> None:
    tools = [("search", "error: no such page")] + [("book", None)] * 9
    log = write(tmp_path / "x.jsonl", [tool_log("a", "q", 1.0, tools)])
    short, every = run("show", log).stdout, run("show", log, "--events").stdout
    assert "search" in short and "…" in short and len(every.splitlines()) > len(short.splitlines())
    plain = json.loads(run("show", log, "--json").stdout)
    assert [event["event"] for event in plain["events"]][:3] == ["m0", "c0", "r0"] and len(plain["events"]) == 30
    assert plain["events"][2]["status"] == "error: no such page" and plain["events"][1]["causes"] == [
        [0, "tool_dependency"]
    ]


def test_show_quotes_the_text_of_real_logs(shared_data: Path) -> None:
    plain = json.loads(run("show", shared_data / "tau_bench_airline", "--json").stdout)
    assert any("flight" in event["text"] for event in plain["events"])
    assert all("\x1b" not in event["text"] for event in plain["events"])


def test_a_mean_that_is_zero_but_for_rounding_does_not_exclude_zero() -> None:
    """A unit with as many actions in every trace has mean advantage 0 by rloo, whatever is rounded."""
    reward = [10.1, 10.7, 10.3, 10.2, 10.9, 10.4]
    graph, outcome, rows = credit.from_columns(
        group=["q"] * 3 + ["r"] * 3, trace=list("abcdef"), agent=["lead"] * 6, reward=reward
    )
    (unit,) = who_matters(rows.traces, credit.rloo(graph, outcome))
    assert unit.advantage == 0 and not unit.excludes_zero


def test_show_prints_and_draws_one_trace(good: Path, tmp_path: Path) -> None:
    result = run("show", good, "--trace", "b")
    assert result.exit_code == 0, result.output
    assert "boss" in result.stdout and "solver" in result.stdout
    pytest.importorskip("matplotlib")
    plot = tmp_path / "b.svg"
    assert run("show", good, "--trace", "b", "--plot", plot, "--method", "rloo").exit_code == 0
    assert b"<svg" in plot.read_bytes()


@pytest.mark.slow
def test_demo_writes_and_compares(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run("demo", "-o", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    assert json.loads(run("validate", "--json", tmp_path / "demo" / "traces.jsonl").stdout)["traces"] > 0
    assert (tmp_path / "demo" / "advantages.parquet").stat().st_size > 0
