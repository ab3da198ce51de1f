"""Whose errors a difference is: a tool's, an agent's, or those of a tool that one agent called."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.owners import owned_events, owners
from credit.reports.tool_calls import ToolCalls
from credit.sides.chosen_sides import Sides
from credit.sides.compare_sides import compare_sides
from credit.sides.side_comparison import SideComparison

Errors = dict[tuple[str, str], int]  # by agent and tool, "" outside of tool calls

TASKS = 30


def read(folder: Path, first: Errors, second: Errors, answered: bool = False) -> credit.Traces:
    """A trace of each task on two sides, with these errors, and a call of each pair that succeeds.

    Results are of an agent `env` where calls are answered.
    """
    lines = []
    for number, errors in enumerate((first, second) * TASKS):
        events: list[dict[str, Any]] = [{"id": "go", "type": "message", "agent": "lead"}]
        edges: list[dict[str, str]] = []

        def add(agent: str, tool: str, wrong: bool, events: list[Any] = events, edges: list[Any] = edges) -> None:
            kind = {"type": "tool_call", "tool": tool, "content_ref": f"{wrong}"} if tool else {"type": "message"}
            status, of = {"status": "error" if wrong else "ok"}, f"c{len(events)}"
            events.append({"id": of, "agent": agent} | kind | ({} if answered and tool else status))
            if answered and tool:
                events.append({"id": f"r{of}", "agent": "env", "type": "tool_result", "tool": tool} | status)
                edges.append({"src": of, "dst": f"r{of}", "type": "causal"})

        for agent, tool in first | second:
            for wrong in [True] * errors.get((agent, tool), 0) + [False]:
                add(agent, tool, wrong)
        lines.append({"trace_id": f"t{number}", "task_id": f"q{number // 2}", "system": f"v{number % 2 + 1}",
                      "events": events, "edges": edges, "rewards": {"team": float(number % 3 > 0)}})  # fmt: skip
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return credit.read(log)


PAIR, OF_MODELS = {("coder", "search"): 3, ("coder", "edit"): 1}, {("coder", ""): 3, ("coder", "edit"): 1}
TOOL = {("coder", "search"): 2, ("tester", "search"): 2, ("lead", "edit"): 1}
AGENT = {("coder", "search"): 2, ("coder", "edit"): 2, ("tester", "run"): 1}
NOBODY = {("coder", "search"): 1, ("tester", "edit"): 1, ("lead", "run"): 1}
FEW = {("coder", "search"): 9, ("tester", "edit"): 1, ("lead", "run"): 1}
LIMITED = {("coder", "search"): 5, ("coder", ""): 1, ("tester", ""): 1, ("lead", ""): 1}
KINDS = [
    (PAIR, "mostly of tool search by coder, then of tool edit by coder", [(0, 3), (0, 1)]),
    (TOOL, "mostly of tool search by several agents, then of tool edit by lead", [(0, 4), (0, 1)]),
    (AGENT, "mostly of agent coder with several tools, then of tool run by tester", [(0, 4), (0, 1)]),
    (NOBODY, "spread over tools and agents", []),
    (OF_MODELS, "mostly of model calls by coder, then of tool edit by coder", [(0, 3), (0, 1)]),
    (FEW, "mostly of tool search by coder", [(0, 9)]),
    (LIMITED, "mostly of tool search by coder, then of model calls by several agents", [(0, 5), (0, 3)]),
]


@pytest.mark.parametrize(("second", "told", "means"), KINDS)
@pytest.mark.parametrize("answered", [False, True])
def test_who_has_most_of_a_rise_is_named_and_else_that_it_is_spread(
    second: Errors, told: str, means: list[tuple[int, int]], answered: bool, tmp_path: Path
) -> None:
    """The third of a rise that was of model calls at a rate limit stood nowhere beside the tool that had most."""
    traces = read(tmp_path, {}, second, answered)
    calls, side = ToolCalls(traces), np.arange(2 * TASKS) % 2
    weights = np.stack([(side == one) / TASKS for one in (0, 1)])
    found = owners(traces, calls, owned_events(calls)["errors"], weights)
    assert found.told() == told
    assert [(round(one.first, 9), round(one.second, 9)) for one in (*found.named, *found.rest)] == means


@pytest.mark.parametrize(("more", "told"), [(5, "mostly of tool search by coder"), (3, "spread over tools and agents")])
def test_what_offsets_a_rise_makes_nobody_most_of_it(more: int, told: str, tmp_path: Path) -> None:
    """Of a rise by one error, of 5 and 3 more and 7 fewer, both who had more were "mostly", the lesser first."""
    first, second = {("lead", "run"): more + 2}, {("coder", "search"): more, ("tester", ""): 3}
    calls = ToolCalls(traces := read(tmp_path, first, second))
    weights = np.stack([(np.arange(2 * TASKS) % 2 == one) / TASKS for one in (0, 1)])
    assert owners(traces, calls, owned_events(calls)["errors"], weights).told() == told


def test_what_changed_says_whose_errors_rose_and_fell(tmp_path: Path) -> None:
    """`up: errors` named no tool and no agent; who failed more was told of failed and succeeded traces alone."""

    def told(first: Errors, second: Errors) -> tuple[str, str, list[str]]:
        traces = read(tmp_path, first, second)
        side = Sides(("v1", "v2"), np.arange(2 * TASKS) % 2, ("v1", "v2"))
        found = compare_sides(traces, side, with_costs(traces, trace_metrics(traces)))
        return found.changed(), found.origin(), found.lines()

    before, after = {("tester", "edit"): 1}, {("tester", "edit"): 1, ("coder", "search"): 3}
    said = "errors of a trace {}, mostly of tool search by coder ({}), as are unrecovered errors"
    for first, second, way, means, own in (
        (before, after, "up", "1 to 4", "0 to 3"), (after, before, "down", "4 to 1", "3 to 0"),
    ):  # fmt: skip
        changed, origin, lines = told(first, second)
        assert f"; {way}: errors of tool search by coder" in changed, changed
        whose = said.format(means, own)
        assert origin.startswith(whose) and any(line.startswith(whose.capitalize()) for line in lines), (origin, lines)
    wordy = "a tool whose name has so many words that no line of a headline has room for all of them, nor half"
    assert told({}, {("coder", wordy): 3, ("coder", "edit"): 0})[0].endswith(
        "; up: errors, unrecovered errors, tool calls"
    ), "plain"
    changed, origin, _ = told({}, NOBODY)
    assert "; up: errors" in changed and "errors of" not in changed
    assert origin.startswith("errors of a trace 0 to 3, spread over tools and agents")


def timed(folder: Path, takes: Callable[[int, str], tuple[float, float]]) -> SideComparison:
    """Two agents search in 20 tasks with a run of each side, from when and for how many seconds `takes` says."""
    lines, rng = [], np.random.default_rng(0)
    for i in range(40):
        events: list[dict[str, Any]] = [{"id": "go", "type": "message", "agent": "lead", "t": 0, "seconds": 0}]
        edges = []
        for agent in ("east", "west"):
            begin, took = takes(i % 2, agent)
            took *= rng.uniform(0.9, 1.1)
            call = {"type": "tool_call", "agent": agent, "tool": "search", "t": begin + 1, "status": "ok"}
            answer = call | {"type": "tool_result", "t": begin + 1 + took, "action": False}
            events += [call | {"id": f"{agent}c"}, answer | {"id": f"{agent}r"}]
            edges += [{"src": "eastr" if begin else "go", "dst": f"{agent}c", "type": "causal"}]
            edges += [{"src": f"{agent}c", "dst": f"{agent}r", "type": "causal"}]
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 2}", "events": events, "edges": edges, "rewards": {}})
    (log := folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    traces = credit.read(log)
    side = Sides(("old", "new"), np.arange(40) % 2, ("old", "new"))
    return compare_sides(traces, side, with_costs(traces, trace_metrics(traces)))


def test_where_seconds_went_is_told(tmp_path: Path) -> None:
    """Time-outs of 30 seconds made a trace take 112 in place of 71.9, and no sentence said which tool's they were."""
    slow = timed(tmp_path, lambda side, agent: (0, 30 if side and agent == "west" else 5))
    assert re.search(
        r"seconds of wall clock of a trace 6[.\d]* to 3\d[.\d]*, mostly of tool search by west", slow.origin()
    )
    assert "up: seconds of wall clock" in slow.changed() and "by west" not in slow.changed()
    after = timed(tmp_path, lambda side, agent: (12 * side if agent == "west" else 0, 10))
    assert "up: seconds of wall clock" in after.changed()
    assert "seconds" not in after.by_owner(), "one search after the other takes no longer, all together"


def test_a_lead_reads_which_calls_are_gone_and_not_of_seconds_that_hardly_changed(tmp_path: Path) -> None:
    """The lead began with 1.3 s of 74 s, and did not have the tool that nobody called any more."""
    lines, rng = [], np.random.default_rng(0)
    for i in range(40):
        end, events = 100 - 2 * (i % 2) + rng.uniform(0, 0.1), []
        for at, tool in enumerate(("search", "lookup")[: 2 - i % 2]):
            call = {"type": "tool_call", "agent": "lead", "tool": tool, "status": "ok"}
            events += [call | {"id": f"{tool}c", "t": at}, call | {"id": f"{tool}r", "type": "tool_result", "t": at}]
        events += [{"id": "end", "type": "message", "agent": "writer", "t": end}]
        edges = [{"src": one["id"], "dst": two["id"], "type": "causal"} for one, two in itertools.pairwise(events)]
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 2}", "events": events, "edges": edges, "rewards": {}})
    (log := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    traces = credit.read(log)
    side = Sides(("v1", "v2"), np.arange(40) % 2, ("v1", "v2"))
    found = compare_sides(traces, side, with_costs(traces, trace_metrics(traces)))
    assert found.origin() == "tool calls of a trace 2 to 1, mostly of tool lookup by lead (1 to 0)"
    assert any(line.startswith("Seconds of wall clock of a trace 100 to 98") for line in found.lines())
