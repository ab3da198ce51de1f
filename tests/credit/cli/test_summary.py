"""`credit summary`, `traces` and `show`: who matters, and what to look at where nobody knows the outcome."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import credit
from credit.cli.logs.summary_by import _print_suspects
from credit.reports.triage import Suspect
from credit.reports.who_matters import who_matters
from graphs.task_means import LEAST_OF_BOTH

from .logs import GOOD, run, trace, write


def tool_log(
    name: str, task: str, reward: float | None, tools: list[tuple[str, str | None]], *, linked: bool = False
) -> dict[str, Any]:
    """One agent whose actions are messages, each with a tool call and its result, which may say whose it is."""
    events: list[dict[str, Any]] = []
    edges = []
    for i, (tool, status) in enumerate(tools):
        events.append({"id": f"m{i}", "type": "message", "agent": "main", "action": True, "tokens": 10 + i})
        call = {"id": f"c{i}", "type": "tool_call", "agent": "main", "tool": tool, "action": False}
        events.append(call | {"arguments": {"of": tool}})
        result = {"id": f"r{i}", "type": "tool_result", "agent": "main", "tool": tool, "action": False}
        events.append(result | ({"status": status} if status else {}))
        edges += [{"src": f"m{i}", "dst": f"c{i}", "type": "tool_dependency"}]
        edges += [{"src": f"c{i}", "dst": f"r{i}", "type": "return"}] * linked
    return trace(name, task, reward, events=events, edges=edges)


def scored_calls(log: Path, tasks: int, scale: float = 1.0) -> dict[str, Any]:
    """Traces of a task, and random outcomes without a step: search one to three times, book or not. Units by tool."""
    rng = np.random.default_rng(0)
    lines = []
    for task in range(tasks):
        for k in range(4):
            tools = [("search", None)] * int(rng.integers(1, 4)) + [("book", None)] * int(rng.integers(0, 2))
            line = tool_log(f"t{task}{k}", f"q{task}", scale * float(rng.integers(0, 3)), tools)
            for event in line["events"]:
                if event["type"] == "message":
                    event["counterfactual_reward"] = scale * float(rng.integers(-2, 1))
            lines.append(line)
    write(log, lines)
    told = json.loads(run("summary", log, "--by", "tool", "-m", "difference_reward", "--json").stdout)
    return {row["name"]: row for row in told["units"]}


@pytest.mark.slow
def test_means_and_intervals_are_those_of_a_slow_reading(tmp_path: Path) -> None:
    log = tmp_path / "x.jsonl"
    rows = scored_calls(log, 12)
    traces = credit.read(log)
    table = credit.table(traces, credit.run(traces, "difference_reward")).to_pylist()
    trace_of: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for i, row in enumerate(table):
        if row["type"] == "tool_call":
            earned = (traces.events["tool"][i].as_py(), table[i - 1]["advantage"])
            trace_of.setdefault(row["group"], {}).setdefault(row["trace"], []).append(earned)
    assert set(rows) == {"search", "book"}
    for tool, row in rows.items():
        means, differences = [], []
        for of_task in trace_of.values():
            split = [([a for t, a in calls if t == tool], [a for t, a in calls if t != tool])
                     for calls in of_task.values()]  # fmt: skip
            own = [np.mean(mine) for mine, _ in split if mine]
            apart = [np.mean(mine) - np.mean(rest) for mine, rest in split if mine and rest]
            means += [np.mean(own)] if own else []
            differences += [np.mean(apart)] if apart else []
        assert row["tasks"] == len(means) and row["advantage"] == pytest.approx(np.mean(means), abs=1e-6)
        assert row["difference"] == pytest.approx(np.mean(differences), abs=1e-6)
        quantile = {11: 2.2010, 10: 2.2281, 9: 2.2622}[len(differences) - 1]  # a table of Student's t
        n, stderr = len(differences), np.std(differences, ddof=1) / math.sqrt(len(differences))
        moment = np.mean((differences - np.mean(differences)) ** 3) / np.std(differences) ** 3
        a = moment * (n * (n - 1)) ** 0.5 / (n - 2) / (6 * n**0.5)
        one_side, both_sides = min(differences) >= 0 or max(differences) <= 0, min(differences) < 0 < max(differences)
        away = one_side and (a > 0) == (min(differences) >= 0)
        # Hall's: t + 2 a t² + 4/3 a² t³ + a is Student's, where all differences and their tail are on one side of 0;
        # where they are on both, its first term, and Student's if that reaches farther.
        (t,) = [root.real for root in np.roots([4 / 3 * a**2, 2 * a, 1, a + quantile]) if abs(root.imag) < 1e-9]
        first = -quantile - max(a, 0) * (1 + 2 * quantile**2)
        t = t if away else first if both_sides else -quantile
        assert row["high"] - row["difference"] == pytest.approx(-t * stderr, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("by", "names"), [("agent", {"boss", "solver"}), ("turn", {"turn 0", "turn 1"}),
                                           ("type", {"orchestrator_decision", "message"})])  # fmt: skip
def test_units_are_named(good: Path, by: Any, names: set[str]) -> None:
    traces = credit.read(good)
    units = who_matters(traces, credit.run(traces, "rloo"), by)
    assert {unit.name for unit in units} == names
    told = json.loads(run("summary", good, "--by", by, "--json").stdout)
    assert {unit["name"] for unit in told["units"]} == names
    with pytest.raises(credit.CreditError, match="by is 'team'; expected one of agent, role"):
        who_matters(traces, credit.run(traces, "rloo"), "team")  # type: ignore[arg-type]


@pytest.mark.slow
def test_what_is_known_comes_first_and_turns_stand_in_order(tmp_path: Path) -> None:
    lines = []
    for task in range(9):
        tools = [("plain", None), ("good", None), ("plain", None)] + [("once", None)] * (task == 0)
        line = tool_log(f"t{task}", f"q{task}", 0.0, tools)
        for i, event in enumerate(e for e in line["events"] if e["type"] == "message"):
            event["counterfactual_reward"] = -1.0 - task / 10 if i == 1 else -0.1 * (i == 3)
        lines.append(line)
    log = write(tmp_path / "x.jsonl", lines)
    options = ("-m", "difference_reward", "--json")
    units = json.loads(run("summary", log, "--by", "tool", *options).stdout)["units"]
    assert sorted(unit["name"] for unit in units[:2]) == ["good", "plain"] and units[2]["name"] == "once"
    assert [unit["stands_out"] for unit in units] == [True, True, False]
    assert {unit["name"] for unit in units if unit["low"] and unit["low"] > 0} == {"good"} and units[-1]["low"] is None
    turns = json.loads(run("summary", log, "--by", "turn", *options).stdout)["units"]
    assert [unit["name"] for unit in turns] == [f"turn {i}" for i in range(len(turns))]


@pytest.mark.slow
def test_an_interval_needs_eight_tasks_with_a_signal(tmp_path: Path) -> None:
    assert all(row["low"] is None and row["stands_out"] is False for row in scored_calls(tmp_path / "x", 7).values())
    rows = scored_calls(tmp_path / "y", 12)
    assert all(row["low"] is not None for row in rows.values())
    assert {name: row["rest"] for name, row in rows.items()} == {"search": "book", "book": "search"}
    text = run("summary", tmp_path / "y", "--by", "tool", "-m", "difference_reward").stdout
    starred = any(line.rstrip().endswith("*") for line in text.splitlines())
    assert (
        "* beyond chance: p < 0.05, corrected for all rows, two that are each other's rest as one" in text
    ) == starred
    small = scored_calls(tmp_path / "z", 12, 1e-4)  # a table held "+0.000" and "+0.000 to +0.000" of such rewards
    text = run("summary", tmp_path / "z", "--by", "tool", "-m", "difference_reward").stdout
    printed = text.partition("Who earned the reward")[2].splitlines()
    for name, row in small.items():
        _, _, _, _, advantage, difference, low, _, high, *_ = next(line for line in printed if name in line).split()
        cells, keys = (advantage, difference, low, high), ("advantage", "difference", "low", "high")
        assert [*map(float, cells)] == pytest.approx([row[key] for key in keys], rel=0.6) and low != high


@pytest.mark.slow
def test_noise_has_no_star_and_a_broadcast_no_interval(tmp_path: Path) -> None:
    """Six sessions, each its own task, three good and three bad: `main` had +0.296 to +0.749 *."""
    lines = [tool_log(f"t{i}", f"q{i}", float(i % 2), [("edit", None)] * (3 + 40 * (i == 1))) for i in range(6)]
    log = write(tmp_path / "x.jsonl", lines)
    told = json.loads(run("summary", log, "-m", "discounted_return", "--json").stdout)
    assert all(unit["low"] is None and unit["difference"] is None for unit in told["units"])
    assert "No trace has actions of a second agent" in run("summary", log, "-m", "discounted_return").stdout
    good = write(tmp_path / "y.jsonl", GOOD)
    said, hints = run("summary", good).stdout.split("\n\n")[-2:]
    assert said.startswith("Nothing in the log tells what one agent did from what another did. By rloo ")
    assert hints.splitlines()[0] == "To do more" and "`credit choose` names" in hints


@pytest.mark.slow
def test_summary_and_choose_have_one_reading_of_rewards_at_events(tmp_path: Path) -> None:
    """`summary` said that nothing tells actions apart, of a log whose rewards at events `choose` said do."""
    lines = []
    for k in range(4):
        events = [
            {"id": f"e{i}", "type": "message", "agent": "ab"[i % 2], "turn": i, "action": True, "event_reward": paid}
            for i, paid in enumerate([0.0, -0.1, 0.2][: 2 + k % 2])
        ]
        lines.append(trace(f"t{k}", "q", float(k > 1), events=events, edges=[]))
    log = write(tmp_path / "x.jsonl", lines)
    assert "only rewards at events tell the actions of a trace apart" in run("choose", log).stdout
    said = "differ at most by who took part, turns or length. Rewards at events tell actions apart: `--method turn_base"
    assert f"\nBy rloo agents {said}" in run("summary", log).stdout
    assert f"By rloo they {said}" in run("why", log, "t0", "e1").stdout
    printed = run("summary", log, "-m", "turn_baseline").stdout
    none = "By turn_baseline no agent is compared with the rest of its traces: ended traces count as 0 at later turns, "
    assert f"\n{none}so " in printed
    assert "Ended traces" not in printed


def test_numbers_that_average_out_are_not_called_one_number(tmp_path: Path) -> None:
    """Of `turn_baseline`, which compares at each turn, it said that all actions of a trace have one number."""
    lines = []
    for k, paid in enumerate([1.0, -1.0, -1.0, 1.0]):
        events = [
            {
                "id": f"e{i}",
                "type": "message",
                "agent": "ab"[i],
                "turn": i,
                "action": True,
                "event_reward": paid * (1 - i),
            }
            for i in range(2)
        ]
        lines.append(trace(f"t{k}", "q", float(k > 1), events=events, edges=[]))
    said = run("summary", write(tmp_path / "x.jsonl", lines), "-m", "turn_baseline").stdout
    why = "numbers differ within a trace, but average out over the traces of each task."
    assert f"\nBy turn_baseline no agent differs from the rest of its traces: {why}\n" in said


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
    assert first["why"] == "error of search; the same call succeeded later"
    assert any("the same call of search 4 times in a row" in row["why"] for row in plain["suspects"])
    printed = run("summary", log).stdout
    assert "No trace has an outcome" in printed and "--rewards" in printed and "Look at these first" in printed
    assert "loops: the same call and arguments, or up to 5 in one order, 3 or more times in a row" in printed


def test_traces_without_credit_are_triaged_beside_those_with_it(tmp_path: Path) -> None:
    """Of 14 traces with 4 outcomes the other 10 vanished, and so did all where each trace is its own task."""
    failing = [("edit", "error: full"), ("edit", None)]
    lines = [tool_log(f"t{i:02d}", f"q{i % 2 if i < 4 else i}", float(i < 2) if i < 4 else None, failing)
             for i in range(14)]  # fmt: skip
    log = write(tmp_path / "x.jsonl", lines)
    told = json.loads(run("summary", log, "--json").stdout)
    assert len(told["units"]) == 1 and told["traces_without_credit"] == 10
    assert (told["agents"][0]["traces"], told["agents"][0]["events"]) == (14, 84)
    assert told["tools"][0] == {
        "tool": "edit",
        "traces": 14,
        "calls": 28,
        "errors": 14,
        "retries": 14,
        "loops": 0,
        "empty": None,
        "seconds": None,
        "lacks_lines": False,
        "lacks_traces": False,
        "lacks_empty": True,
    }
    (suspect,) = told["suspects"]
    assert (suspect["trace"], suspect["traces"]) == ("t02", 14)  # not that of a trace that succeeded
    printed = run("summary", log).stdout
    assert "10 of 14 traces have no credit because they have no outcome.\n" in printed
    alone = [line | {"task_id": line["trace_id"], "rewards": {"team": float(i % 2)}} for i, line in enumerate(lines)]
    printed = run("summary", write(tmp_path / "y.jsonl", alone)).stdout
    tail = printed.split("all traces:")[-1].split("\n\n")[1:]
    assert len(tail) == 1 and "\nNo two traces share a task, so no action has credit: `--groups FILE`" in tail[0]
    assert "advantage" not in tail[0] and "credit choose" not in tail[0] and "Look at these first" in printed
    assert "pass outcomes" not in printed
    whole = write(tmp_path / "z.jsonl", lines[:4])
    full = json.loads(run("summary", whole, "--all", "--json").stdout)
    assert full["traces_without_credit"] == 0
    assert [suspect["outcome"] for suspect in full["suspects"]] == [0, 0, 1, 1]  # errors only: nothing pads the list
    assert "Look at these first" in run("summary", whole).stdout
    lonely = [*lines[:8], *(line | {"task_id": "q9", "rewards": {"team": 1.0}} for line in lines[8:9])]
    printed = run("summary", write(tmp_path / "w.jsonl", lonely)).stdout
    assert "5 of 9 traces have no credit; 4 of these have no outcome.\n" in printed


def test_what_was_asked_comes_before_why_no_action_has_credit(tmp_path: Path) -> None:
    """Half a page on a method that nobody had asked for stood above errors and differences."""
    lines = [tool_log(f"t{i}", f"q{i}", float(i % 2), [("edit", None if i % 2 else "error: full")]) for i in range(20)]
    printed = run("summary", write(tmp_path / "x.jsonl", lines)).stdout
    parts = ("What went wrong most:\n", "Look at these first", "Failed against", "Work by agent", "To do more")
    places = [printed.index(f"\n{part}") for part in (*parts, "No two traces share a task, so no action has credit")]
    assert places == sorted(places) and printed.startswith("In short\nWhat failed:\n  10 of 20 traces with")


def test_errors_that_are_not_named_are_counted(tmp_path: Path) -> None:
    """Of 19 errors some stood there, and nothing said that there were more."""
    bad = [tool_log(f"t{i}", f"q{i}", None, [("edit", "error: full")]) for i in range(13)]
    log = write(tmp_path / "x.jsonl", bad)
    assert "… and 12 more; `--all` names them" in run("summary", log).stdout
    assert json.loads(run("summary", log, "--json").stdout)["suspects_left_out"] == 12
    assert len(json.loads(run("summary", log, "--json", "--all").stdout)["suspects"]) == 13


def test_tokens_are_pointed_out_only_where_nothing_went_wrong(tmp_path: Path) -> None:
    """`generated 40 tokens` stood under "Look at these first", below the errors."""
    good = tool_log("a", "q", None, [("edit", None)])
    printed = run("summary", write(tmp_path / "x.jsonl", [good])).stdout
    assert "\nMost tokens were generated here:\n" in printed and "Look at these" not in printed
    assert printed.count("these logs do not state errors") == 1, "it stood there twice"
    assert "\nLook first:\n  Nothing stands out: these logs do not state errors, and there is no loop.\n\n" in printed
    bad = tool_log("b", "q", None, [("edit", "error: full")])
    printed = run("summary", write(tmp_path / "y.jsonl", [good, bad])).stdout
    assert "generated" not in printed.partition("Look at these first")[2].partition("Work by agent")[0]


@pytest.mark.slow
def test_what_a_method_makes_of_turns_ranks_no_agents(tmp_path: Path) -> None:
    """A reviewer who joins late, in successes as in failures, had +0.392, +0.270 to +0.513 * by turn_baseline."""
    lines = []
    for task in range(12):
        for k in range(6):
            joins, works = k % 3 == 0, (task + k) % 2
            events = [{"id": f"e{i}", "type": "message", "agent": "main", "turn": i, "action": True} for i in range(6)]
            if joins:
                events += [{"id": "r", "type": "message", "agent": "reviewer", "turn": 6, "action": True}]
            lines.append(trace(f"t{task}{k}", f"q{task}", float(works), events=events, edges=[]))
    log = write(tmp_path / "x.jsonl", lines)
    for method in ("turn_baseline", "dr_mas", "rloo"):
        told = json.loads(run("summary", log, "-m", method, "--json").stdout)["units"]
        assert [unit["name"] for unit in told] == ["main", "reviewer"]
        assert not any(unit["stands_out"] or unit["signal"] or unit["difference"] for unit in told)
        printed = run("summary", log, "-m", method).stdout
        assert "\nNothing in the log tells what one agent did" in printed and "0.000" not in printed
        assert "Who earned the reward" not in printed
    why = run("why", log, "t00", "r").stdout
    assert "tells what one of these actions did from" in why and "*  " not in why
    assert not any(one["stands_out"] for one in json.loads(run("why", log, "t00", "r", "--json").stdout)["actions"])
    for line in lines:
        for event in line["events"]:
            event["event_reward"] = float(event["agent"] == "reviewer")
    write(log, lines)
    for method in ("turn_baseline", "mt_grpo"):  # the reviewer's traces are longer
        found = json.loads(run("summary", log, "-m", method, "--json").stdout)
        assert not any(unit["signal"] for unit in found["units"]) and found["note"].startswith("Ended traces ")
    said = run("summary", log, "-m", "mt_grpo").stdout.split("\n\n")[-2]
    assert said.startswith("By mt_grpo no agent is compared with the rest of its")


@pytest.mark.slow
def test_groups_of_partly_labelled_logs_take_no_answer_away(tmp_path: Path) -> None:
    """Seven tasks with both kinds and five without were compared between the five: nothing had failed there."""
    lines = []
    for task in range(12):
        for k in range(4):
            works = float(task >= 7 or k % 2)
            tools = [("edit", None if works else "error: full")] * 4 + [("edit", None)] * k
            lines.append(tool_log(f"t{task}.{k}", f"q{task}", works, tools))
    found = json.loads(run("summary", write(tmp_path / "x.jsonl", lines), "--json").stdout)["failed_against_succeeded"]
    assert (found["within"], found["tasks"], found["failed"], found["succeeded"]) == (True, 7, 14, 34)
    errors = next(row for row in found["rows"] if row["what"] == "errors")
    assert errors["stands_out"] and (errors["failed"], errors["succeeded"], errors["low"]) == (4, 0, None)


def test_a_person_says_what_a_success_is(tmp_path: Path) -> None:
    """Of graded outcomes all up to the median counted as failed, without a word."""
    log = write(tmp_path / "x.jsonl", [tool_log(f"t{i}", "q", i / 10, [("edit", None)] * i) for i in range(1, 10)])
    printed = run("summary", log).stdout
    assert "What failed:\n  4 of 9 traces with an outcome are below 0.5, the median.\n" in printed
    assert "`--success-at` takes what you call a success." in printed.partition("To do more")[2]
    even = write(tmp_path / "even.jsonl", [tool_log(f"t{i}", "q", i / 10, [("edit", None)] * i) for i in range(1, 5)])
    assert "2 of 4 traces with an outcome are below 0.3, the next above the median 0.25." in run("summary", even).stdout
    assert "7 of 9 traces with an outcome failed" in run("summary", log, "--success-at", 0.8).stdout
    assert "9 of 9 traces with an outcome failed" in run("summary", log, "--success-at", 2).stdout
    least = write(
        tmp_path / "least.jsonl", [tool_log(f"t{i}", "q", i // 5, [("edit", None)] * (i + 1)) for i in range(9)]
    )
    assert "5 of 9 traces with an outcome failed" in run("summary", least).stdout  # the median is 0
    assert "the next where none is below it" in " ".join(run("summary", "--help").stdout.split())
    log = write(log, [tool_log(f"t{i}", "q", 1 - i / 10, [("edit", None)] * i) for i in range(1, 10)])
    first = [
        json.loads(run("summary", log, *at, "--json").stdout)["suspects"][0]["trace"]
        for at in ((), ("--success-at", 0.25))
    ]
    assert first == ["t6", "t8"]


@pytest.mark.slow
def test_failed_traces_stand_against_succeeded_ones(tmp_path: Path) -> None:
    """Sessions that share no task: the failed half has two errors each, the others at most one."""
    lines = []
    for i in range(24):
        bad = 2 if i % 2 == 0 else int(i % 3 == 0)
        tools = [("edit", "error: full")] * bad + [("edit", None)] * (2 + i // 2 % 3)
        lines.append(tool_log(f"t{i}", f"q{i}", float(i % 2), tools))
    log = write(tmp_path / "x.jsonl", lines)
    found = json.loads(run("summary", log, "--json").stdout)["failed_against_succeeded"]
    assert (found["failed"], found["succeeded"], found["within"], found["tasks"]) == (12, 12, False, 24)
    by = {row["what"]: row for row in found["rows"]}
    assert (by["errors"]["failed"], by["errors"]["succeeded"]) == (2, pytest.approx(1 / 3))
    assert by["errors"]["chance"] == 1 and by["errors"]["stands_out"]
    assert found["rows"][0]["stands_out"] and "agents" not in by  # one each: it says nothing
    assert by["edit, then edit"]["chance"] == pytest.approx(by["tool calls"]["chance"])
    failed = "12 of 24 traces with an outcome failed, 50 % (95 % interval 31 to 69 %)."
    assert found["headline"].startswith(f"{failed} More in failed ones: errors (")
    printed = run("summary", log).stdout
    assert printed.startswith(f"In short\nWhat failed:\n  {failed}\n")
    counts = "12 traces failed (outcome below 1), 12 succeeded."
    assert f"\nFailed against succeeded\n{counts} Compared between 24 tasks, one number each" in printed
    assert f"–: fewer than 8 tasks differ, or {LEAST_OF_BOTH} are there, or all alike" in printed
    once = sum(row["same_as"] == "" for row in found["rows"])
    assert f"* beyond chance: p < 0.05, corrected for the {once} numbers looked at" in printed
    row = next(line for line in printed.splitlines() if line.startswith("errors  "))
    assert row.split()[1:5] == ["2", "0.333", "100", "%"] and row.rstrip().endswith("*")
    few = run("summary", write(tmp_path / "y.jsonl", lines[:6])).stdout
    assert "Too few for a test" in few and "*  " not in few
    same = [line | {"rewards": {"team": 1.0}} for line in lines]
    assert (
        "All outcomes are equal, 1: nothing tells failed from succeeded traces."
        in run("summary", write(tmp_path / "z.jsonl", same)).stdout
    )
    told = json.loads(run("summary", tmp_path / "z.jsonl", "--json").stdout)["failed_against_succeeded"]
    assert (told["failed"], told["succeeded"], told["equal"]) == (0, 0, 1)  # it said that all had failed


@pytest.mark.parametrize(("tasks", "found"), [(8, False), (9, True)])
def test_a_perfect_separation_of_nine_tasks_stands_out(tasks: int, found: bool, tmp_path: Path) -> None:
    """Six errors and more in each failed trace and none beside it, in nine of nine tasks: none "differs" was told."""
    lines = [
        tool_log(
            f"t{i}",
            f"q{i // 2}",
            float(i % 2),
            [("edit", None if i % 2 else "error: full")] * (6 + i % 8) + [("test", None)] * (1 if i % 2 else 3 + i % 3),
            linked=True,
        )
        for i in range(2 * tasks)
    ]
    log = write(tmp_path / "x.jsonl", lines)
    rows = json.loads(run("summary", log, "--json").stdout)["failed_against_succeeded"]["rows"]
    tested = [row for row in rows if row["p"] is not None and not row["same_as"]]
    assert len(tested) >= 7 and all(row["stands_out"] == found for row in tested)
    assert all(row["p"] == pytest.approx(len(tested) * 2 / 2**tasks) for row in tested)
    said = f"{tasks} tasks are too few to tell {len(tested)} numbers apart from chance."
    assert (said in run("summary", log).stdout) != found


def test_what_rests_on_one_task_comes_last(tmp_path: Path) -> None:
    """A tool of one task of ten: its 100 % stood above numbers of all ten, which had an interval."""
    lines = []
    for i in range(40):  # in nine of ten tasks one of two failed traces has one more edit
        tools: list[tuple[str, str | None]] = [("edit", None)] * (2 if i % 4 == 0 and i else 1)
        lines.append(tool_log(f"t{i}", f"q{i // 4}", float(i % 2), [*tools, ("rare" if i in (0, 2) else "test", None)]))
    log = write(tmp_path / "x.jsonl", lines)
    rows = json.loads(run("summary", log, "--json").stdout)["failed_against_succeeded"]["rows"]
    known = [row["low"] is not None for row in rows]
    assert known == sorted(known, reverse=True) and set(known) == {True, False}
    rest = [row["tasks"] for row in rows if row["low"] is None]
    assert rest == sorted(rest, reverse=True) and rest[-1] == 1
    printed = run("summary", log).stdout
    assert "failed has more  tasks that differ  95 % interval" in printed


def test_errors_are_unknown_where_no_trace_of_a_format_has_a_status(tmp_path: Path) -> None:
    """SWE-agent states no status: its failed traces counted as free of errors, so that failed ones had fewer."""
    failing = [("edit", "error: full"), ("edit", None)]
    lines = [tool_log(f"t{i}", f"q{i}", 1.0, failing if i % 2 else [("edit", None)] * (2 + i), linked=True)
             for i in range(10)]  # fmt: skip
    lines.append(tool_log("f", "f", 0.0, failing, linked=True))
    log = write(tmp_path / "x.jsonl", lines)
    silent = [{"action": "ls", "observation": "SyntaxError", "response": "I look", "thought": "", "state": {}}]
    for i in range(10):
        (tmp_path / f"s{i}.traj").write_text(json.dumps({"environment": "e", "trajectory": silent, "info": {}}))
    (tmp_path / "rewards.csv").write_text(
        "trace,reward\n" + "".join(f"{line['trace_id']},{line['rewards']['team']}\n" for line in lines)
        + "".join(f"s{i},0\n" for i in range(10))
    )  # fmt: skip
    command = ["summary", log, *tmp_path.glob("*.traj"), "--rewards", tmp_path / "rewards.csv"]
    found = json.loads(run(*command, "--json").stdout)
    by = {row["what"]: row for row in found["failed_against_succeeded"]["rows"]}
    assert (by["errors"]["failed"], by["errors"]["succeeded"], by["errors"]["chance"]) == (1, 0.5, 0.75)
    assert by["retries"]["chance"] == 0.75 and by["events"]["failed"] < by["events"]["succeeded"]
    table = (tmp_path / "rewards.csv").read_text().replace("f,0.0", "f,1.0")  # all that failed are of SWE-agent
    (tmp_path / "rewards.csv").write_text(table)
    printed, told = run(*command).stdout, json.loads(run(*command, "--json").stdout)["failed_against_succeeded"]
    row = next(row for row in told["rows"] if row["what"] == "errors")
    assert (row["failed"], row["succeeded"], row["chance"]) == (None, pytest.approx(6 / 11), None)
    assert "nan" not in printed


def test_what_all_traces_cost_stands_below_the_triage(tmp_path: Path) -> None:
    """`summary` had tokens by agent and no sum, no money, and no prices to work it out with."""
    events = [{"id": f"e{i}", "t": 2 * i, "type": "message", "agent": "main", "tokens": 1000, "input_tokens": 5000}
              for i in range(3)]  # fmt: skip
    events.insert(0, {"id": "h", "t": 0, "type": "human_intervention", "agent": "main"})
    costs = {"money": 0.25, "wall_clock_s": 4.0}
    lines = [trace(name, "q", None, events=events, edges=[], costs=costs, model="big") for name in "ab"]
    log, table = write(tmp_path / "x.jsonl", lines), tmp_path / "prices.csv"
    table.write_text("model,input,output\nbig,1,10\nbigg,1,1\n")
    stated = "costs.money, logged of all 2 traces: 0.5"
    shown = run("summary", log).stdout.splitlines()
    assert "all traces: 6,000 tokens generated, 30,000 read, 8 seconds of work" in shown and stated in shown
    shown = run("summary", log, "--prices", table).stdout.splitlines()
    assert "all traces: 6,000 tokens generated, 30,000 read, 8 seconds of work, 0.09 money at the given prices" in shown
    told = json.loads(run("summary", log, "--prices", table, "--json").stdout)
    assert (
        told["total"]["money"] == {"total": pytest.approx(0.09), "missing": 0}
        and told["stated"]["money"]["total"] == 0.5
    )
    write(log, [lines[0] | {"metrics": {"lost_parts": 1, "unlogged_calls": 1}}, lines[1] | {"model": "bog"}])
    shown = run("summary", log, "--prices", table).stdout.splitlines()
    money = "≥ 8 seconds of work, ≥ 0.045 money at the given prices"
    assert f"all traces: ≥ 6,000 tokens generated, ≥ 30,000 read, {money}" in shown
    assert "no row of the table prices these models: bog" in shown


def test_triage_counts_by_tool(tmp_path: Path) -> None:
    tools = [("search", None), ("search", "error: no such page"), ("search", None), ("search", None), ("book", None)]
    log = write(tmp_path / "x.jsonl", [tool_log("a", "q", None, tools, linked=True),
                                       tool_log("b", "q", None, [("book", None)])])  # fmt: skip
    search, book = json.loads(run("summary", log, "--json").stdout)["tools"]
    assert search == {
        "tool": "search",
        "traces": 1,
        "calls": 4,
        "errors": 1,
        "retries": 1,
        "loops": 1,
        "empty": None,
        "seconds": None,
        "lacks_lines": False,
        "lacks_traces": False,
        "lacks_empty": True,
    }
    assert book == {
        "tool": "book",
        "traces": 2,
        "calls": 2,
        "errors": 0,
        "retries": 0,
        "loops": 0,
        "empty": None,
        "seconds": None,
        "lacks_lines": False,
        "lacks_traces": False,
        "lacks_empty": True,
    }
    printed = run("summary", log, "--by", "tool").stdout
    rows = printed.partition("\nWork by tool\n")[2].splitlines()
    assert [row.split()[0] for row in rows[:3]] == ["tool", "search", "book"]
    assert "--by turn needs credit" in run("summary", log, "--by", "turn").stdout


def test_choose_leads_to_the_triage_where_no_outcome_is_known(tmp_path: Path, good: Path) -> None:
    log = write(tmp_path / "x.jsonl", [tool_log("a", "q", None, [("book", None)])])
    printed = run("choose", log).stdout
    assert printed.splitlines()[0] == f"to look at: credit summary {log}" and "no trace has an outcome" in printed
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
    assert wrong.exit_code == 1
    assert "event is 'r44'; expected the id of an event of trace 'a', or its number from 0 to 26" in wrong.stderr


def test_the_event_at_which_a_run_stops_at_a_limit_says_so(tmp_path: Path) -> None:
    """ "The run stops at a limit" led to a message like any other, which said nothing of one."""
    ended = tool_log("a", "q", None, [("search", None)] * 4) | {"metrics": {"ended_at_limit": 1.0}}
    log = write(tmp_path / "x.jsonl", [ended])
    command = next(line for line in run("summary", log).stdout.splitlines() if line.startswith("run: credit "))
    printed = run(*command.split()[2:]).stdout
    assert printed.partition("→")[2].count("the run stops at a limit") == 1 == printed.count("a limit")


def test_a_number_is_a_place_where_ids_are_numbers_too(tmp_path: Path) -> None:
    """In tau-bench's logs ids are numbers: the number that the triage prints led to another event."""
    events = [{"id": str(i + 1), "type": "message", "agent": "a", "t": i} for i in range(4)]
    log = write(tmp_path / "x.jsonl", [trace("t", "q", 1.0, events=events, edges=[])])
    marked = {option: next(line for line in run("show", log, option, "2").stdout.splitlines() if "→" in line)
              for option in ("--around", "--number")}  # fmt: skip
    assert marked["--around"].startswith("→ 1 ") and marked["--number"].startswith("→ 2 ")
    assert run("show", log, "--around", "2", "--number", "2").exit_code != 0


def test_an_id_that_a_table_cut_is_taken_where_one_trace_begins_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("258c7280-ae70-4798", "258c7280-ae71-0000", "short")
    log = write(tmp_path / "x.jsonl", [tool_log(name, "q", None, [("book", "error: full")]) for name in names])
    printed = run("summary", log, "--all").stdout
    cut = re.search(r"^(258c7280-ae70\S*…)", printed, re.MULTILINE)
    assert cut is not None and "the same with its trace, whole or as cut by …, and --number #" in printed
    for begin in (cut[1], "258c7280-ae70"):
        assert "trace 258c7280-ae70-4798: events" in run("show", log, "--trace", begin, "--around", 1).stdout
    for wrong, text in (
        ("258c7280…", "2 traces have ids like '258c7280…'"),
        ("258c7280", "2 traces have ids like '258c7280'"),
        ("9…", "No trace '9…'"),
    ):
        refused = run("show", log, "--trace", wrong)
        assert refused.exit_code == 1 and text in refused.stderr
    same = [f"gpt-4o-airline-train-{i}" for i in range(3)]  # they were all cut to gpt-4o-airlin…
    failing = write(tmp_path / "z.jsonl", [tool_log(name, "q", None, [("book", "error: full")]) for name in same])
    for columns in ("120", "70"):
        monkeypatch.setenv("COLUMNS", columns)
        printed = run("summary", failing, "--all").stdout
        cuts = re.findall(r"^(gpt\S*…\S*)", printed, re.MULTILINE)
        assert len(set(cuts)) == 3, printed
        for cut_so, name in zip(cuts, same, strict=True):
            assert f"trace {name}: events" in run("show", failing, "--trace", cut_so, "--around", 1).stdout
    alone = write(tmp_path / "y.jsonl", [tool_log("only", "q", None, [("book", "error: full"), ("book", None)])])
    header = next(line for line in run("summary", alone).stdout.splitlines() if "why" in line)
    assert "trace" not in header


def test_a_long_name_of_a_tool_is_whole_in_json_and_leaves_room_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was cut after 24 characters in both, and the table's column at 44 in the widest terminal."""
    tool = "mcp__github__create_pull_request_review"
    events = [{"id": "m", "type": "message", "agent": "a"},
              {"id": "c", "type": "tool_call", "agent": "a", "tool": tool},
              {"id": "r", "type": "tool_result", "agent": "a", "tool": tool, "status": "error"}]  # fmt: skip
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": events, "edges": []}))
    (found,) = json.loads(run("summary", log, "--json").stdout)["suspects"]
    assert found["tool"] == tool and found["why"] == f"error of {tool}; no later call of it succeeded"
    monkeypatch.setenv("COLUMNS", "180")
    assert "error of mcp__github__create_pul…; no later call of it succeeded" in run("summary", log).stdout


def test_the_head_cuts_long_ids_so_that_show_takes_them(tmp_path: Path) -> None:
    """An id of 36 characters stood in each of the first lines."""
    ids = [f"{number:08d}-8e66-4b0c-94f5-48ff0e9fd6af" for number in range(4)]
    logs = [tool_log(name, f"q{i}", 0.0, [("web", "error")]) for i, name in enumerate(ids)]
    log = write(tmp_path / "x.jsonl", logs)
    line = next(line for line in run("summary", log).stdout.splitlines() if line.startswith("  See event "))
    assert line.endswith(" of trace 00000000-8e66…") and ids[0] not in line
    assert ids[0] in run("show", log, "--trace", line.split()[-1]).stdout


@pytest.mark.parametrize("columns", ["50", "80", "100", "200"])
def test_an_error_is_read_at_any_width_before_the_arguments_of_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """At 80 columns neither text nor number was left of rows whose tool has a name; arguments came before the error."""
    error, lines = "No module 'numpy'", []
    for i in range(4):
        record = tool_log(f"django-{i}", f"q{i // 2}", float(i % 2), [("execute_bash", "error")])
        for event in record["events"]:
            asked = {"arguments": {"command": f"cd /testbed/{i} && pytest {'long ' * 90}"}}
            event |= {"tool_call": asked, "tool_result": {"text": error}}.get(event["type"], {})
        record["edges"].append({"src": "c0", "dst": "r0", "type": "tool_dependency"})
        lines.append(record)
    log = write(tmp_path / "x.jsonl", lines)
    assert json.loads(run("summary", log, "--json").stdout)["suspects"][0]["text"].startswith(f"{error} ← cd /testbed")
    monkeypatch.setenv("COLUMNS", columns)
    printed = run("summary", log, "--all").stdout.partition("Look at these first")[2].partition("The first one")[0]
    read = " ".join(printed.split())  # rich 13 has a column less than rich 15, and breaks lines elsewhere
    assert read.count(error) == 4 and "error of execute_b" in read
    head, row = printed.splitlines()[1:3]
    assert columns == "50" or (
        head.split()[:4] == ["trace", "outcome", "#", "agent"]
        and head.split("agent")[1].split()[0] == "failed"
        and row.split()[2] == "2"
    )


@pytest.mark.parametrize("columns", [50, 80, 120, 200])
def test_the_last_words_of_a_reason_are_read_at_any_width(columns: int) -> None:
    """It was cut after 44 characters, before `then had no result`: a run that was killed in the call."""
    why = "error of shell; the same call failed 2 times, then had no result"
    for text, words in (("", why), ("1 failed ← pytest", "had no result")):  # a text beside it stands in the first line
        row = Suspect("t0", "e", "main", "shell", 3, why, 0.0, text, 2)
        printed = io.StringIO()
        assert not _print_suspects(Console(width=columns, file=printed), (row, row), ["t0"])
        assert " ".join(printed.getvalue().split()).count(words) == 2


def test_suspects_have_the_names_of_their_agents(tmp_path: Path) -> None:
    record = tool_log("a", "q", None, [("book", "error: full")])
    agents = {event["agent"] for event in record["events"]}
    record["agents"] = [{"id": agent, "name": f"named {agent}"} for agent in sorted(agents)]
    log = write(tmp_path / "x.jsonl", [record])
    assert json.loads(run("summary", log, "--json").stdout)["suspects"][0]["agent"] == "named main"


def test_an_unknown_number_of_errors_is_no_0(tmp_path: Path) -> None:
    """Logs that state no status, as those of SWE-agent, had 0 errors in triage and lists."""
    log = write(tmp_path / "x.jsonl", [tool_log("a", "q", None, [("book", None)] * 3)])
    told = json.loads(run("summary", log, "--json").stdout)
    assert (told["agents"][0]["errors"], told["agents"][0]["retries"], told["tools"][0]["errors"]) == (None,) * 3
    row = next(line for line in run("summary", log).stdout.splitlines() if line.startswith("main"))
    assert row.split()[5:7] == ["–", "–"]


def test_a_file_gets_whole_ids(tmp_path: Path) -> None:
    """They were folded at 120 columns."""
    name = "run-" + "x" * 150
    log = write(tmp_path / "x.jsonl", [tool_log(name, "q", None, [("book", None)])])
    assert any(line.startswith(name) for line in run("traces", log).stdout.splitlines())


def test_traces_lists_ids_sizes_and_errors(good: Path, tmp_path: Path) -> None:
    rows = json.loads(run("traces", good, "--json").stdout)["traces"]
    assert [row["trace"] for row in rows] == ["a", "b", "c", "d", "e"]
    assert rows[0] | {"file": ""} == {
        "trace": "a", "group": "q", "reward": 1.0, "events": 3, "actions": 2, "agents": 2, "errors": None, "tokens": 7,
        "actions_with_tokens": 1, "wall_clock": None, "lacks_lines": False, "system": None, "begin": None,
        "format": "native", "file": "", "line": 1,
    }  # fmt: skip
    assert {row["trace"] for row in json.loads(run("traces", good, "--group", "r", "--json").stdout)["traces"]} == {
        "c",
        "d",
    }
    wrong = run("traces", good, "--group", "rr")
    assert wrong.exit_code == 1 and "No group 'rr'. Did you mean r?" in wrong.output


def test_an_error_of_a_call_and_its_result_is_one_in_every_table(tmp_path: Path) -> None:
    """`traces` counted two where `summary`, `costs` and the page count one."""
    events = [{"id": kind, "type": kind, "agent": "a", "tool": "web", "action": kind == "tool_call", "status": "error"}
              for kind in ("tool_call", "tool_result")]  # fmt: skip
    edges = [{"src": "tool_call", "dst": "tool_result", "type": "tool_dependency"}]
    log = write(tmp_path / "x.jsonl", [trace("t", "q", 1.0, events=events, edges=edges)])
    (row,) = json.loads(run("traces", log, "--json").stdout)["traces"]
    told = json.loads(run("summary", log, "--json").stdout)["agents"]
    total = json.loads(run("costs", log, "--json").stdout)["total"]
    assert row["errors"] == told[0]["errors"] == total["errors"]["total"] == 1


def test_agents_without_errors_and_tokens_are_ordered_by_their_actions_and_the_top_ones_shown(tmp_path: Path) -> None:
    """A log of 80 experts listed them as they came."""
    names = [f"expert-{i}" for i in range(20)]
    events = [
        {"id": f"{name}/{j}", "type": "message", "agent": name} for i, name in enumerate(names) for j in range(i + 1)
    ]
    log = write(tmp_path / "x.jsonl", [trace("t", "q", None, events=events, edges=[])])
    shown = run("summary", log).stdout.splitlines()
    assert [line.split()[0] for line in shown if line.startswith("expert")] == names[:4:-1]
    assert "… and 5 more agents; `--all` shows them" in shown
    assert sum(line.startswith("expert") for line in run("summary", log, "--all").stdout.splitlines()) == 20


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
    result = plain["events"][2]
    assert (result["status"], result["text"]) == ("error", "no such page")
    assert plain["events"][1]["causes"] == [[0, "tool_dependency"]]


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
    assert unit.advantage == 0 and not unit.stands_out


@pytest.mark.slow
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


def test_a_session_without_an_error_has_none(tmp_path: Path) -> None:
    """Formats that state errors have 0 of them in logs without any; of others nothing is known."""
    recordings = Path(__file__).parents[2] / "recordings"
    for name, errors in (("claude_code", 0), ("codex", 0), ("swe_agent", None)):
        told = json.loads(run("summary", recordings / name, "--json").stdout)
        assert {agent["errors"] for agent in told["agents"]} == {errors}, name


def test_what_stands_out_is_first_and_a_refusal_of_the_method_last(tmp_path: Path) -> None:
    """A refusal stood first, though `traces with reviewer` had a star, and its 11 copies stood in 11 rows."""
    lines = []
    for i in range(40):
        reviewed = i % 2 if i % 8 else 1  # one success in four is reviewed, too
        events = [{"id": "m", "type": "message", "agent": "main"}]
        events += [{"id": "r", "type": "tool_call", "agent": "reviewer", "tool": "look", "action": False}] * reviewed
        events += [{"id": "s", "type": "message", "agent": "reviewer"}] * reviewed
        lines.append(trace(f"t{i}", f"q{i // 4}", float(i % 2 == 0), events=events, edges=[]))
    log = write(tmp_path / "x.jsonl", lines)
    shown = run("summary", log).stdout.splitlines()
    assert shown[0] == "In short"
    last = shown.index("To do more")
    assert shown[last - 2].startswith("Nothing in the log tells what one agent") and last > len(shown) - 4
    rows = [line for line in shown if line.endswith("*")]
    assert len(rows) == 1 and rows[0].startswith("traces with reviewer ")
    start = "Same information as traces with reviewer: "
    (at,) = [i for i, line in enumerate(shown) if line.startswith(start)]
    assert {"events", "agents", "calls of look"} <= set(shown[at].removeprefix(start).rstrip(".").split("; "))
    assert at > shown.index(rows[0])  # below the table whose row it is about
