"""A tool that fails more often is named, whatever the sum of errors does."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest

from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_numbers import numbered
from credit.sides.chosen_sides import Sides
from credit.sides.compare_sides import compare_sides
from credit.sides.tool_failures import failing_tools, tool_failures
from graphs.event_types import EdgeType, EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

OWN = "errors per call, which have a test of their own: "


def drawn(seed: int, tasks: int, runs: int, rates: Mapping[str, tuple[float, float]]) -> tuple[Traces, np.ndarray]:
    """Runs of tasks on two sides, which call each tool a few times; a call fails at the rate of its side, more often in
    hard tasks."""
    rng, records, side = np.random.default_rng(seed), [], []
    hard = rng.lognormal(0, 0.5, tasks)
    for task, one, _ in ((t, s, k) for t in range(tasks) for s in (0, 1) for k in range(runs)):
        record = TraceRecord(f"t{len(records)}", f"q{task}", "log.jsonl", instances={"a": Agent()})
        record.event("m", EventType.MESSAGE, "a", action=True, tokens=1)
        for tool, rate in rates.items():
            for k in range(rng.integers(0, 5)):
                status = "error" if rng.random() < min(rate[one] * hard[task], 1) else "ok"
                call = record.event(f"{tool}{k}", EventType.TOOL_CALL, "a", action=True, tool=tool, tokens=1)
                answer = record.event(f"{tool}{k}r", EventType.TOOL_RESULT, "a", action=False, tool=tool, status=status)
                record.edge(call, answer, EdgeType.CAUSAL)
        record.rewards["team"] = 1.0
        records.append(record)
        side.append(one)
    return assemble(records), np.array(side)


def counted_calls(traces: Traces, calls: ToolCalls) -> tuple[np.ndarray, np.ndarray]:
    """How many calls each trace has, and how many of them failed."""
    trace = np.asarray(traces.graph.trace_ids)
    failed = [calls.errors[calls.results[calls.calls == row]].any() for row in calls.rows]
    return np.bincount(trace[calls.rows]), np.bincount(trace[calls.rows], failed).astype(int)


def test_a_tool_that_fails_more_often_is_told_where_another_one_fails_less() -> None:
    """5 failed calls of fetch_page became 89, and no sentence named it: those of web_search had fallen as far.

    "Up: errors per call of fetch_page" beside "errors: within chance": one is of calls, the other of a trace.
    """
    traces, side = drawn(0, 16, 3, {"fetch_page": (0.03, 0.4), "web_search": (0.4, 0.05), "read_note": (0.1, 0.1)})
    sides = Sides(("old", "new"), side, ("old", "new"))
    found = compare_sides(traces, sides, with_costs(traces, trace_metrics(traces)))
    assert not next(row for row in found.rows if row.metric == "errors").stands_out
    calls, trace = ToolCalls(traces), np.asarray(traces.graph.trace_ids)
    tool, told = traces.events["tool"].to_pylist(), []
    for name in ("web_search", "fetch_page"):
        of = [[row for row in calls.rows if tool[row] == name and side[trace[row]] == one] for one in (0, 1)]
        wrong = [sum(calls.errors[calls.results[calls.calls == row]].any() for row in rows) for rows in of]
        shares = [
            f"{some} of {len(rows)} ({100 * some / len(rows):.0f} %)" for some, rows in zip(wrong, of, strict=True)
        ]
        told.append(f"{name} {' to '.join(shares)}")
    assert {*found.by_tool().removeprefix(OWN).split("; ")} == {*told}
    assert (
        "up: errors per call of fetch_page" in found.changed()
        and "down: errors per call of web_search" in found.changed()
    )
    head = " ".join(found.in_short())  # of counts that stand below: "3 % to 47 %" were means over tasks
    assert all(f"Errors per call of {one.replace(' ', ': ', 1)}." in head for one in told)
    rows = found.of_tools()  # a tool without a change had no row, so that nobody saw how far it was looked at
    assert [row.mark for row in rows] == ["*", "*", ""] and rows[2].name == "errors per call of read_note"
    assert rows[2].would_be_seen not in (None, "") and not any(row.is_other for row in rows)
    assert found.by_tool() in found.origin() and f"E{found.by_tool()[1:]}." in found.lines()
    assert {one["tool"]: one["stands_out"] for one in found.as_json()["tools"]} == {
        "fetch_page": True, "web_search": True, "read_note": False}  # fmt: skip


def test_a_tool_that_the_row_of_errors_names_stands_once_in_the_answer() -> None:
    traces, side = drawn(1, 20, 3, {"fetch_page": (0.03, 0.5), "web_search": (0.1, 0.1)})
    sides = Sides(("old", "new"), side, ("old", "new"))
    found = compare_sides(traces, sides, with_costs(traces, trace_metrics(traces)))
    assert "up: errors of tool fetch_page" in found.changed() and "per call" not in found.changed()
    assert found.by_tool().startswith(f"{OWN}fetch_page ")


@pytest.mark.parametrize(("cost", "said"), [("money", "money"), ("tokens", "tokens generated")])
def test_the_answer_says_where_to_look_and_then_what_it_costs(cost: str, said: str) -> None:
    """Behind the errors stood others of the same tool, and the cost was behind the mark of what is left out."""
    traces, side = drawn(1, 20, 3, {"fetch_page": (0.03, 0.5)})
    rng = np.random.default_rng(4)
    rising = {name: numbered(rng.lognormal(2 * side, 0.2)) for name in (cost, "wall_clock")}
    measured = with_costs(traces, trace_metrics(traces)) | rising
    told = compare_sides(traces, Sides(("old", "new"), side, ("old", "new")), measured).changed()
    assert f"up: errors of tool fetch_page, {said}, " in told


@pytest.mark.parametrize("name", ["tokens", "errors", "ended_early", "cost.usd"])
def test_a_tool_is_tested_as_a_share_whatever_it_is_called(name: str) -> None:
    """One that was called tokens was tested as an amount is, by ratios."""
    found = []
    for tool in (name, "web"):
        traces, side = drawn(3, 16, 3, {tool: (0.05, 0.3)})
        (one,) = tool_failures(traces, side, ToolCalls(traces), np.zeros(len(side), bool))
        found.append(one)
    assert (found[0].share, found[0].failed, found[0].tool) == (found[1].share, found[1].failed, name)


def test_counts_of_failed_calls_are_of_the_tasks_that_are_compared() -> None:
    """Clean runs of tasks of the new side alone made 14 to 45 % of shared tasks "14 % to 9 %"."""
    traces, side = drawn(2, 44, 3, {"run_sql": (0.1, 0.4)})
    task = np.repeat(np.arange(44), 6)
    calls, place = ToolCalls(traces), np.where((task >= 24) & (side == 0), -1, side)
    made, wrong = counted_calls(traces, calls)
    (one,) = tool_failures(traces, place, calls, np.zeros(len(side), bool))
    shared = np.all([np.bincount(task, made * (place == which)) > 0 for which in (0, 1)], axis=0)
    assert 20 < shared.sum() <= 24 and not shared[24:].any()
    of = [shared[task] & (side == which) for which in (0, 1)]
    assert one.calls == tuple(made[rows].sum() for rows in of)
    assert one.failed == tuple(wrong[rows].sum() for rows in of)


def test_shares_by_task_stand_beside_counts_that_go_the_other_way() -> None:
    """The new side fails more in every task, and calls the tool most where it hardly fails."""
    records, side = [], []
    for task, new in ((task, new) for task in range(24) for new in (0, 1)):
        easy = task < 12
        failed = (1 if easy else 12) + new
        record = TraceRecord(f"t{len(records)}", f"q{task}", "log.jsonl", instances={"a": Agent()})
        for k in range(20 * (10 if easy and new else 1)):
            status = "error" if k < failed * (10 if easy and new else 1) else "ok"
            _ = record.event(f"e{k}", EventType.TOOL_CALL, "a", action=True, tool="web", status=status)
        records.append(record)
        side.append(new)
    traces = assemble(records)
    found = tool_failures(traces, np.array(side), ToolCalls(traces), np.zeros(len(side), bool))
    assert failing_tools(found) == f"{OWN}web 156 of 480 (33 %) to 396 of 2640 (15 %), by task 33 % to 38 %"


@pytest.mark.slow
@pytest.mark.parametrize("even", [True, False])
def test_tools_of_sides_that_are_alike_have_a_star_in_one_of_twenty_comparisons_at_most(even: bool) -> None:
    """Six tools, some of which fail often and some hardly ever; sides are dealt anew within tasks."""
    rng, stars, times = np.random.default_rng(7), 0, 0
    rates = {f"tool{i}": (rate, rate) for i, rate in enumerate((0.02, 0.05, 0.1, 0.2, 0.3, 0.4))}
    for seed in range(8):
        traces, side = drawn(seed, 24, 3, rates)
        calls = ToolCalls(traces)
        for _ in range(50):
            dealt = rng.permuted(side.reshape(24, 6), axis=1).ravel() if even else rng.integers(0, 2, len(side))
            found = tool_failures(traces, dealt, calls, np.zeros(len(side), bool))
            stars += any(one.share.stands_out for one in found)
            times += 1
    assert 0.015 <= stars / times <= 0.055, stars / times


def test_a_cost_that_changed_is_in_the_answer_beside_failures() -> None:
    """Money had doubled, and stood behind the mark of what is left out after the failures of three tools."""
    rates = {f"fetch_the_{name}": (0.02, 0.5) for name in ("page", "note", "file")} | {"search": (0.5, 0.02)}
    traces, side = drawn(1, 30, 3, rates | {"read": (0.6, 0.05), "list": (0.6, 0.05)})
    rng = np.random.default_rng(4)
    rising = {name: numbered(rng.lognormal(2 * side, 0.2)) for name in ("logged_money", "tokens")}
    told = compare_sides(
        traces, Sides(("old", "new"), side, ("old", "new")), with_costs(traces, trace_metrics(traces)) | rising
    )
    up = told.changed().partition("up: ")[2].partition(";")[0]
    assert up.startswith("errors per call of fetch_the_") and up.endswith(", …")
    assert "logged cost" in up


def test_parts_are_corrected_together_in_head_and_table() -> None:
    """Of 84 logs in which only chance was, the head told a change in 15, and of 60 a table in 13, with other stars."""
    traces, side = drawn(0, 16, 3, {"fetch_page": (0.03, 0.4), "web_search": (0.1, 0.1)})
    found = compare_sides(
        traces, Sides(("old", "new"), side, ("old", "new")), with_costs(traces, trace_metrics(traces))
    )
    for p, told in ((0.03, False), (0.001, True)):
        failing = tuple(
            dataclasses.replace(one, share=dataclasses.replace(one.share, p=p)) if one.share.stands_out else one
            for one in found.failing
        )
        one = dataclasses.replace(found, failing=failing).together()
        assert bool(one.by_tool()) is told and any(row.mark == "*" for row in one.of_tools()) is told
        assert any("fetch_page" in line for line in one.in_short()) is told
