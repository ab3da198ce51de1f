"""A tool or a model that much of the wall clock goes into is named, with the seconds of one call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_numbers import TeamFacts
from credit.reports.where_time_goes import where_time_goes
from credit.sides.call_times import call_times
from graphs.logs import read
from tests.credit.cli.logs import run, trace, write

TOOLS = ("search_kb", "get_profile", "track_parcel")


def timed(
    path: Path,
    seconds: Callable[[str, int], float],
    model: Callable[[str, int], float] = lambda agent, i: 1.0,
    tasks: int = 60,
) -> Path:
    """60 runs of two versions in which one of three agents calls its tool twice, with what each call takes."""
    rng, lines = np.random.default_rng(0), []
    for i in range(60):
        agent, tool = f"agent{i % 3}", TOOLS[i % 3]
        events: list[dict[str, Any]] = [{"id": "s", "type": "human_intervention", "agent": "user", "t": 0}]
        edges, now = [], 0.0
        for k, name in enumerate(["router", agent, agent]):
            now += model(name, i) * np.exp(0.2 * rng.normal())
            events.append({"id": f"m{k}", "type": "message", "agent": name, "t": now, "tokens": 20})
            edges.append({"src": f"r{k - 1}" if k > 1 else f"m{k - 1}" if k else "s", "dst": f"m{k}",
                          "type": "temporal"})  # fmt: skip
            if k:
                events.append({"id": f"c{k}", "type": "tool_call", "agent": name, "tool": tool, "t": now})
                now += seconds(tool, i) * np.exp(0.2 * rng.normal())
                events.append({"id": f"r{k}", "type": "tool_result", "agent": name, "tool": tool, "t": now})
                edges.append({"src": f"m{k}", "dst": f"c{k}", "type": "temporal"})
                edges.append({"src": f"c{k}", "dst": f"r{k}", "type": "return"})
        line = trace(f"t{i}", f"q{i % tasks}", float(i % 5 > 0), events=events, edges=edges, system=f"v{i % 2}")
        lines.append(line | {"costs": {}})
    return write(path, lines)


def slow(tool: str, i: int) -> float:
    return 8.7 if tool == "search_kb" else 0.7


def test_a_slow_tool_is_named_with_the_seconds_of_a_call(tmp_path: Path) -> None:
    """A call of it took twelve times what others do, and nothing in the summary said so."""
    found = json.loads(run("summary", timed(tmp_path / "x.jsonl", slow), "--json").stdout)
    (told,) = [one["told"] for one in found["findings"] if one["name"] == "Where time goes"]
    assert "of the wall clock goes into calls of search_kb, " in told and " in the 20 traces with one: " in told
    assert "seconds a call (median; other tools 0.7" in told and told == f"{found['slowest']}."
    printed = run("summary", tmp_path / "x.jsonl").stdout.replace("\n", " ")
    assert printed.count("goes into calls of search_kb") == 1


def test_a_slow_model_is_named_and_none_of_like_ones(tmp_path: Path) -> None:
    log = timed(tmp_path / "x.jsonl", lambda tool, i: 0.7, lambda agent, i: 9.0 if agent == "agent1" else 1.0)
    told = json.loads(run("summary", log, "--json").stdout)["slowest"]
    assert "goes into model calls of agent1, " in told and "calls of search_kb" not in told
    alike = timed(tmp_path / "y.jsonl", lambda tool, i: 0.7)
    assert json.loads(run("summary", alike, "--json").stdout)["slowest"] == ""


def test_a_tool_that_is_slow_in_fewer_than_half_its_calls_is_named(tmp_path: Path) -> None:
    """A tool took 13 % of all time, ten times others on average, and no sentence said so: its median was low."""
    log = timed(tmp_path / "x.jsonl", lambda tool, i: 21.0 if tool == "search_kb" and i % 9 < 3 else 0.7)
    told = json.loads(run("summary", log, "--json").stdout)["slowest"]
    assert re.search(r"of the wall clock goes into calls of search_kb, \d+ % in the 20 traces with one: [6-9]\.", told)
    assert re.search(r" seconds a call \(mean; other tools 0\.7\d?\); one call in ten took over 2\d$", told)


def test_tools_of_one_long_tail_are_not_named(tmp_path: Path) -> None:
    """Of 100 logs whose tools all take log-normal seconds, of σ = 1, none may have a slow tool."""
    traces, rng, named = read(timed(tmp_path / "x.jsonl", lambda tool, i: 0.7)), np.random.default_rng(3), 0
    calls, took = ToolCalls(traces), TeamFacts(traces).durations
    for _ in range(100):
        event = np.where(took.event > 0, rng.lognormal(2.0, 1.0, len(took.event)), took.event)
        wall = np.bincount(np.asarray(traces.graph.trace_ids)[: len(event)], event, traces.sizes.traces)
        drawn = took._replace(event=event, begun=took.end - event, wall=wall)
        named += "calls of" in where_time_goes(traces, calls, drawn)
    assert named == 0


def test_whose_the_longest_event_is_stands_beside_it(tmp_path: Path) -> None:
    """13 seconds stood where to look first, and not of what."""
    log = timed(tmp_path / "x.jsonl", lambda tool, i: 0.7 if i % 5 else 8.7 + (tool == "track_parcel"), tasks=12)
    told = run("summary", log).stdout.replace("\n", " ")
    assert re.search(r"Longest event in seconds: [\d.]+ \(a call of \w+\) in this failed trace, on average 10", told)
    assert "The difference in longest event in seconds is spread over tools and agents." in told
    log = timed(
        tmp_path / "x.jsonl", lambda tool, i: 0.7, lambda agent, i: 1.0 if i % 5 or agent != "router" else 9.0, tasks=12
    )
    told = run("summary", log).stdout.replace("\n", " ")
    assert " (a model call of router) in this failed trace" in told
    assert "The difference in longest event in seconds is mostly of model calls by router (" in told


def test_costs_have_the_seconds_of_a_call(tmp_path: Path) -> None:
    """The sums of a tool that is called often, and of a slow one, were alike."""
    log = timed(tmp_path / "x.jsonl", slow)
    rows = {by: {row["unit"]: row["call_seconds"] for row in
                 json.loads(run("costs", log, "--by", by, "--json").stdout)["costs"]}
            for by in ("tool", "agent", "system")}  # fmt: skip
    assert rows["tool"]["search_kb"] == pytest.approx(8.7, rel=0.2)
    assert rows["tool"]["get_profile"] == pytest.approx(0.7, rel=0.2)
    assert rows["tool"]["no tool"] == pytest.approx(1, rel=0.2) == rows["agent"]["agent0"]
    printed = run("costs", log, "--by", "tool").stdout
    assert "seconds of work  seconds a call  1 in 10 over  errors" in printed
    assert "seconds a call: median of calls, of tool or model; 1 in 10 over: what a tenth exceed" in printed
    tail = timed(tmp_path / "y.jsonl", lambda tool, i: 21.0 if tool == "search_kb" and i % 9 < 3 else 0.7)
    (row,) = (one for one in json.loads(run("costs", tail, "--by", "tool", "--json").stdout)["costs"]
              if one["unit"] == "search_kb")  # fmt: skip
    assert row["call_seconds"] < 1 and row["slow_call_seconds"] > 20
    assert "seconds a call" not in run("costs", log, "--by", "system").stdout


def test_a_tool_that_became_slow_is_told_between_sides(tmp_path: Path) -> None:
    """Where the clock of all runs hardly moved, no sentence had the tool whose calls took three times as long."""
    log = timed(tmp_path / "x.jsonl", lambda tool, i: 2.0 if i % 2 and tool == "search_kb" else 0.7)
    told = json.loads(run("metrics", log, "--sides", "system", "--json").stdout)
    row = next(one for one in told["call_seconds"] if one["name"] == "search_kb")
    assert row["is_told"] and not row["of_model"] and 0.3 < row["part"] < 0.8
    assert (row["seconds"]["first"], row["seconds"]["second"]) == pytest.approx((0.7, 2.2), rel=0.2)
    assert [one["name"] for one in told["call_seconds"] if one["is_told"]] == ["search_kb"]
    assert re.search(r"^seconds per call, which have a test of their own: search_kb 0\.\d+ to 2\.\d+$", told["by_call"])
    assert told["by_call"] in told["origin"] and "seconds of wall clock" in told["changed"]
    findings = json.loads(run("summary", log, "--sides", "system", "--json").stdout)["findings"]
    (change,) = (one["told"] for one in findings if one["name"].startswith("What changed"))
    assert re.search(r" Seconds per call of search_kb: 0\.\d+ to 2\.\d+\.", change)


def test_a_change_that_takes_little_of_the_clock_is_no_sentence(tmp_path: Path) -> None:
    log = timed(tmp_path / "x.jsonl", lambda tool, i: (0.02 if i % 2 else 0.01) if tool == "search_kb" else 0.7)
    told = json.loads(run("metrics", log, "--sides", "system", "--json").stdout)
    row = next(one for one in told["call_seconds"] if one["name"] == "search_kb")
    assert row["seconds"]["p"] < 0.05 and not row["is_told"] and told["by_call"] == ""


@pytest.mark.slow
def test_calls_of_sides_that_are_alike_stand_out_in_one_of_twenty_comparisons_at_most(tmp_path: Path) -> None:
    traces, rng, found = read(timed(tmp_path / "x.jsonl", slow)), np.random.default_rng(4), 0
    calls, took, none = ToolCalls(traces), TeamFacts(traces).durations, np.zeros(traces.sizes.traces, bool)
    for _ in range(400):
        side = rng.integers(2, size=traces.sizes.traces)
        found += any(one.seconds.stands_out for one in call_times(traces, side, calls, took, none))
    assert found / 400 < 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5
