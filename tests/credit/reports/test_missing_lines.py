"""Counts of a trace that lacks lines are lower bounds, everywhere that they are shown."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.ledger.channels import channel
from credit.metrics.candidate_values import candidate_values
from credit.metrics.cost_summary import cost_rows, group_costs, total_costs
from credit.metrics.decision_values import step_values
from credit.metrics.event_metrics import event_table, steps_of_decisions, team_course
from credit.metrics.run_card import run_card
from credit.metrics.trace_costs import costs_of_traces
from credit.metrics.trace_metrics import trace_metrics
from credit.metrics.untrusted_reach import untrusted_reach
from credit.reports.missing_lines import LACKING, lacking_events, lacking_traces
from credit.reports.outcome_differences import outcome_differences
from credit.sides.side_bounds import bounds_of_sides
from graphs.traces.batch import Traces
from tests.credit.cli.logs import run, trace, write
from tests.graphs.reading.coding.claude_code.logs import files

LOST = {"lost_parts": 1, "unlogged_calls": 1}


def line(name: str, *, failed: bool = True, times: int = 2, **more: Any) -> dict[str, Any]:
    """An agent that calls a tool, which fails, and has a worker."""
    events: list[dict[str, Any]] = []
    edges = []
    for i in range(times):
        events += [
            {"id": f"m{i}", "t": 3 * i, "type": "message", "agent": "main", "tokens": 5, "input_tokens": 50},
            {"id": f"c{i}", "t": 3 * i, "type": "tool_call", "agent": "main", "tool": "web", "action": False},
            {"id": f"r{i}", "t": 3 * i + 2, "type": "tool_result", "agent": "main", "tool": "web", "action": False},
        ]
        events[-1]["status"] = "error" if failed else "ok"
        edges += [{"src": f"m{i}", "dst": f"c{i}", "type": "tool_dependency"}]
        edges += [{"src": f"c{i}", "dst": f"r{i}", "type": "return"}]
    events.append(
        {"id": "w", "t": 9, "type": "message", "agent": "worker", "tokens": 1, "input_tokens": 2, "seconds": 0}
    )
    return trace(name, "q", None, events=events, edges=edges, costs={}, **more)


def read(folder: Path, *lines: dict[str, Any]) -> Traces:
    return credit.read(write(folder / "x.jsonl", list(lines)))


def bounds(shown: str, start: str) -> list[str]:
    """The cells of a row, with their marks."""
    return (
        next(row for row in shown.splitlines() if row.startswith(start))
        .replace("≥ ", "≥")
        .replace("0 seen", "0seen")
        .split()[1:]
    )


def test_of_few_traces_that_lack_lines_totals_alone_have_the_mark(tmp_path: Path) -> None:
    """Of 2 cut traces of 255 nearly every number of `costs` and `summary` had one, or was "0 seen"."""
    log = tmp_path / "x.jsonl"
    write(log, [line("a", metrics={"lost_parts": 1}), *(line(f"b{i}") for i in range(20))])
    few = "1 of 21 traces lacks lines: rows may have more"
    costs = run("costs", log).stdout
    rows = [row for row in costs.splitlines() if row.startswith(("main", "worker"))]
    assert len(rows) == 4 and not any("≥" in row or "0 seen" in row for row in rows) and costs.count(few) == 1
    assert sum("≥" in row for row in costs.splitlines() if row.startswith("total ")) == 2
    for by in ("agent", "tool"):
        shown = run("summary", log, "--by", by).stdout
        table = shown.partition(f"Work by {by}\n")[2].partition("\n\n")[0]
        assert table.count(few) == 1 and "0 seen" not in table and "≥" not in table, table
        assert "\nall traces: ≥ " in shown
    assert bounds(run("costs", log, "--by", "trace").stdout, "a")[0] == "≥7"


def test_a_side_without_cut_traces_has_no_mark(tmp_path: Path) -> None:
    """`2.3.1 ≥ 132 … ≥ 0.119` of a release of which each trace was whole: the last row was taken for a total."""
    log = tmp_path / "x.jsonl"
    cut = line("a", metrics=LOST, system="2.4.0")
    write(log, [cut, *(line(f"b{i}", system=("2.3.1", "2.4.0")[i % 2]) for i in range(30))])
    costs = run("costs", log, "--by", "system").stdout
    rows = {name: [row for row in costs.splitlines() if row.startswith(name)] for name in ("2.3.1", "2.4.0", "total")}
    assert len(rows["2.3.1"]) == 2 and not any("≥" in row for row in rows["2.3.1"])
    assert bounds(costs, "2.4.0")[:4] == ["≥112", "≥32", "≥176", "≥1,632"] and bounds(costs, "total")[0] == "≥217"
    assert rows["2.4.0"][1].split()[1] == "16" and "≥" in rows["2.4.0"][1]
    each = run("costs", log, "--by", "system,agent").stdout
    assert "≥" not in next(row for row in each.splitlines() if row.startswith("total of 2.3.1"))
    assert "≥" in next(row for row in each.splitlines() if row.startswith("total of 2.4.0"))


def test_no_tool_stands_for_a_model_call_that_is_in_no_event(tmp_path: Path) -> None:
    """Tokens of the tool that a cut trace called first were "–: not logged", of 289 calls; of six others 0."""
    log = tmp_path / "x.jsonl"
    write(log, [line("a", metrics=LOST), *(line(f"b{i}") for i in range(30))])
    costs = run("costs", log, "--by", "tool").stdout
    assert bounds(costs, "web")[2:4] == ["0", "0"] and "–" not in costs
    assert bounds(costs, "no tool")[3].startswith("≥")


def test_a_call_of_nobody_known_marks_the_total_alone(tmp_path: Path) -> None:
    """Which of several agents made a model call that is in no event is not known: the first one had the mark."""
    log = tmp_path / "x.jsonl"
    write(log, [line("a", metrics=LOST), *(line(f"b{i}") for i in range(30))])
    costs = run("costs", log).stdout
    rows = [row for row in costs.partition("\n\n")[0].splitlines()[1:] if "≥" in row]
    assert [row.split()[0] for row in rows] == ["total"], costs


def test_few_traces_without_numbers_of_two_sides_are_told_in_one_line(tmp_path: Path) -> None:
    """4 broken runs of 288 had 10 lines, and a second row of each sum."""
    some = [(side, i) for side in (0, 1) for i in range(60)]
    lines = [line(f"{side}.{i}", times=1 + i % 2 + side, system=f"v{side}", task_id=f"q{i % 20}") for side, i in some]
    log, cut = tmp_path / "x.jsonl", {"metrics": LOST}
    write(log, [lines[0] | cut, *lines[1:]])
    shown = run("metrics", log, "--sides", "system").stdout
    (told,) = (row for row in shown.splitlines() if "lines" in row or "of 60" in row)
    assert told.startswith("traces: 60 and 60; of fewer, ") and "(59 and 60: " in told and ", all traces" not in shown
    write(log, [*(line | cut for line in lines[:5]), *lines[5:]])
    assert "tokens, all traces" in run("metrics", log, "--sides", "system").stdout  # of 5 of 60 a sum has a bound


def test_every_count_has_the_mark(tmp_path: Path) -> None:
    """Tokens had one; the errors beside them looked whole."""
    traces = read(tmp_path, line("a", metrics=LOST), line("b"))
    assert lacking_traces(traces).tolist() == [True, False]
    assert lacking_events(traces).tolist() == [True] * 7 + [False] * 7
    rows = {row.unit: row for row in cost_rows(traces, "trace")}
    assert (rows["a"].lacks_lines, rows["b"].lacks_lines) == (True, False)
    assert total_costs(list(rows.values())).lacks_lines and not cost_rows(read(tmp_path, line("b")))[0].lacks_lines
    log = tmp_path / "x.jsonl"
    write(log, [line("a", metrics=LOST), line("b")])
    assert bounds(run("costs", log, "--by", "tool").stdout, "web")[:4] == ["≥8", "≥4", "0seen", "0seen"]
    assert bounds(run("costs", log, "--by", "tool").stdout, "web")[4:] == ["≥8", "2", "2", "≥4"]
    assert bounds(run("costs", log, "--by", "trace").stdout, "b") == ["7", "2", "11", "102", "5"]
    listed = run("traces", log).stdout
    assert bounds(listed, "a")[:8] == ["q", "–", "≥7", "≥3", "≥2", "≥11", "≥9", "≥2"]
    assert bounds(listed, "b")[:8] == ["q", "–", "7", "3", "2", "11", "9", "2"] and "≥: a part is not logged" in listed
    shown = run("summary", log).stdout
    assert bounds(shown, "main") == ["2", "≥12", "≥4", "≥4", "≥4", "–", "0seen", "≥20", "≥10"]
    assert bounds(run("summary", log, "--by", "tool").stdout, "web") == ["2", "≥4", "≥4", "–", "0seen", "≥8"]
    card = {row["item"]: row["value"] for row in json.loads(run("card", log, "--json").stdout)["lines"]}
    for item in ("tokens generated", "seconds of work", "tool calls"):
        assert card[f"{item} of a trace"].startswith("≥ "), item
    assert card["wall clock of a trace, seconds"].startswith("≥ ")
    assert np.isnan(channel(traces, "tool_calls").total[0]) and channel(traces, "tool_calls").total[1] == 2


def test_only_the_agent_whose_lines_are_missing_has_the_mark_where_events_show_it(tmp_path: Path) -> None:
    said = line("a", metrics={"lost_parts": 1})
    said["agents"] = [{"id": "main"}, {"id": "worker"}, {"id": "sub", "parent": "main"}]
    said["events"] += [{"id": "s", "t": 9, "type": "spawn", "agent": "main", "action": False},
                       {"id": "e", "t": 9, "type": "return", "agent": "sub", "action": False}]  # fmt: skip
    said["edges"] += [{"src": "s", "dst": "e", "type": "spawn"}]
    found = {row.unit: row.lacks_lines for row in cost_rows(read(tmp_path, said))}
    assert found == {"main": False, "worker": False, "sub": True}
    assert {row.lacks_lines for row in cost_rows(read(tmp_path, said), "tool")} == {True}  # it may have called any
    found = {
        row.unit: row.lacks_lines for row in cost_rows(read(tmp_path, said | {"metrics": LOST | {"lost_parts": 2}}))
    }
    assert set(found.values()) == {True}


def test_an_agent_that_lost_all_its_lines_of_a_trace_has_lower_bounds(tmp_path: Path) -> None:
    """A run that was cut before its reviewer: what the reviewer did, and in how many traces, looked whole."""
    reviewer = {"id": "v", "t": 12, "type": "tool_call", "agent": "reviewer", "tool": "tests", "tokens": 3}
    whole = line("b")
    whole["events"].append(reviewer)
    log = write(tmp_path / "x.jsonl", [line("a", metrics=LOST), whole])
    found = {row.unit: row.lacks_lines for row in cost_rows(credit.read(log))}
    assert found == {"main": True, "worker": True, "reviewer": True}
    shown = run("summary", log).stdout
    assert bounds(shown, "reviewer")[:3] == ["≥1", "≥1", "≥1"] and bounds(shown, "main")[0] == "2"
    assert bounds(run("summary", log, "--by", "tool").stdout, "tests")[:2] == ["≥1", "≥1"]
    assert {row.unit: row.lacks_lines for row in cost_rows(credit.read(log), "tool")}["tests"]
    assert not any(row.lacks_lines for row in cost_rows(credit.read(log), "trace") if row.unit == "b")


def test_a_trace_on_its_own_has_the_mark_at_all_counts(tmp_path: Path) -> None:
    """An agent whose lines were all lost had 0 events, and types of events looked whole."""
    said = line("a", metrics=LOST) | {"agents": [{"id": name} for name in ("main", "worker", "reviewer")]}
    shown = run("show", write(tmp_path / "x.jsonl", [said, line("b")]), "--trace", "a").stdout
    assert bounds(shown, "reviewer")[2:4] == ["0seen", "0seen"]
    assert bounds(shown, "message") == ["≥3", "≥3"] and "events (≥ 7)" in shown
    assert "≥" not in run("show", tmp_path / "x.jsonl", "--trace", "b").stdout


@pytest.mark.parametrize("of_child", [False, True])
def test_a_cut_line_touches_the_agent_of_its_file_alone(of_child: bool, tmp_path: Path) -> None:
    """It made the sums of all agents of its session lower bounds."""
    for name in ("s-1", "s-2"):
        main, child = files(tmp_path / name)
        for path in (main, child):
            said = path.read_text().replace('"s-1"', f'"{name}"')
            path.write_text(said.replace('"id": "c', f'"id": "{name}c').replace('"id": "k', f'"id": "{name}k'))
        if name == "s-2" and of_child:  # it still runs
            main.write_text("".join(main.read_text().splitlines(keepends=True)[:3]))
    cut = child if of_child else main
    cut.write_bytes(cut.read_bytes()[:-30])
    traces = credit.read(tmp_path)
    assert [problem.kind for problem in traces.problems] == ["unfinished-line"]
    found = {row.unit: row.lacks_lines for row in cost_rows(traces)}
    assert found == {"main": not of_child, "explorer": of_child}
    assert {row.lacks_lines for row in cost_rows(traces, "tool") if row.unit == "Bash"} == {of_child}
    assert {row.lacks_lines for row in cost_rows(traces, "trace")} == {True, False}
    whole = dataclasses.replace(traces, problems=())  # without the file, it may be anybody's
    assert all(row.lacks_lines for row in cost_rows(whole))


def test_counts_that_are_lower_bounds_are_not_compared(tmp_path: Path) -> None:
    traces = read(tmp_path, line("a", metrics=LOST), line("b", times=4), line("c", times=1))
    side = np.array([0, 0, 1])
    measured = costs_of_traces(traces)
    for name in ("errors", "tokens", "input_tokens", "tool_calls", "wall_clock"):
        assert measured[name].reasons == [LACKING, "", ""], name
    assert {name for name, metric in trace_metrics(traces).items() if metric.reasons[0] != LACKING} == {"success"}
    assert trace_metrics(traces)["team_peak"].reasons == [LACKING, "", ""]
    found = {row.metric: (row.first, row.second, row.whole) for row in bounds_of_sides(traces, measured, side)}
    assert found["errors"] == (3, 1, (False, True)) and found["tool_calls"] == (3, 1, (False, True))


@pytest.mark.parametrize("lost", [{}, LOST])
def test_failed_traces_without_some_lines_have_no_less_of_anything(lost: dict[str, int], tmp_path: Path) -> None:
    """A session that was cut off seemed to fail with fewer errors."""
    lines = [line(f"f{i}", metrics=lost) | {"rewards": {"team": 0.0}} for i in range(3)]
    lines += [line(f"s{i}", times=4) | {"rewards": {"team": 1.0}} for i in range(3)]
    found = {row.what: row.failed for row in outcome_differences(read(tmp_path, *lines)).rows}
    assert ("errors" in found) == (not lost)


def test_no_question_takes_a_trace_that_lacks_lines_as_whole(tmp_path: Path) -> None:
    """The team over time, critical steps, reach, edits, decisions, groups and the card counted it with the others."""
    lost = {"lost_parts": 1}
    chance = {"stop_propensity": 0.5, "propensity": 0.5, "trusted": False}

    def of(name: str, reward: float, **more: Any) -> dict[str, Any]:
        said = line(name, **more) | {"rewards": {"team": reward}}
        said["events"][0] |= chance
        said["edges"].append({"src": "m0", "dst": "w", "type": "message"})
        return said

    log = write(tmp_path / "x.jsonl", [of("a", 1.0, metrics=lost), *(of(name, 0.0) for name in "bcd")])
    traces = credit.read(log)
    assert {point.traces for point in team_course(traces)} == {3}
    assert steps_of_decisions(traces)[1][0] == LACKING
    table = event_table(traces).to_pylist()
    assert {row["births"] for row in table if row["trace"] == "a"} == {None}
    assert group_costs(traces).of_trace is None
    found = untrusted_reach(traces, credit.run(traces, "rloo"))[0]
    assert found.lacks_lines and found.credit_at_risk is None
    assert {row.reason for row in (*step_values(traces), *candidate_values(traces))} == {LACKING}
    with pytest.raises(credit.CreditError, match="lacks lines"):
        step_values(traces, cost="tool_calls")
    assert bounds(run("if-edited", log, "a", "m0").stdout, "events") == ["≥6"]
    assert bounds(run("if-edited", log, "b", "m0").stdout, "events") == ["6"]
    assert "lacks lines" in run("why", log, "a", "w").stdout and "lacks lines" not in run("why", log, "b", "w").stdout
    assert "not defined: the log lacks lines" in run("show", log, "--trace", "a").stdout
    card = {row.item: row.value for row in run_card(traces)}
    assert card["actions of a trace"].startswith("≥") and card["safety events"] == "0 seen"
    assert card["events"].startswith("message ≥ ")
    with pytest.raises(credit.CreditError, match="lines of every trace"):
        team_course(read(tmp_path, of("a", 1.0, metrics=lost)))
