"""Agents are compared in the runs in which they act: who is asked would drown what one of them does more."""

from __future__ import annotations

import re

import numpy as np
import pytest

import credit
from credit.metrics.trace_costs import costs_of_traces
from credit.reports.trace_numbers import numbered
from credit.sides.chosen_sides import Sides
from credit.sides.compare_sides import compare_sides
from credit.sides.side_comparison import SideComparison

TEAM = ("billing", "shipping", "technical", "account")


def support(seed: int, more: dict[str, float], *, shared: bool = False, runs: int = 200) -> SideComparison:
    """A router asks one of four specialists, who write so many times the tokens on the second side."""
    rng = np.random.default_rng(seed)
    side = np.arange(runs) % 2
    rows: list[tuple[int, str, float]] = []
    for i in range(runs):
        name = TEAM[rng.integers(4)]
        wrote = 370 * np.exp(0.35 * rng.normal()) * (more.get(name, 1.0) if side[i] else 1.0)
        rows += [(i, "router", 25 * np.exp(0.1 * rng.normal())), (i, name, wrote)]
        rows += [(i, "checker", 50 * np.exp(0.1 * rng.normal()))]
    run, agent, tokens = zip(*rows, strict=True)
    task = [one // 8 if shared else one for one in run]
    _, _, columns = credit.from_columns(
        group=task, trace=list(run), agent=list(agent), reward=np.zeros(len(run)), tokens=np.ceil(tokens).astype(int)
    )
    measured = costs_of_traces(columns.traces) | {"success": numbered(np.ones(runs))}
    return compare_sides(columns.traces, Sides(("old", "new"), side, ("old", "new")), measured)


@pytest.mark.parametrize("shared", [False, True])
def test_a_specialist_that_writes_half_as_much_again_is_named(shared: bool) -> None:
    """`agents undecided` stood beside 366 to 565 tokens of every run with it, since it is asked in one of four."""
    found = support(1, {"technical": 1.55}, shared=shared, runs=400 if shared else 200)
    changed = [one for one in found.agents["tokens"] if one.changed]
    assert [one.agent for one in changed] == ["technical"] and changed[0].test is not None
    first, second = changed[0].test.first, changed[0].test.second
    assert 1.3 < second / first < 1.8 and 300 < first < 450
    told = f"technical writes more: {first:.0f} to {second:.0f} tokens a run in which it acts"
    assert f"{told} (calls ×1, tokens per call ×1." in found.by_agent()
    assert found.by_agent().endswith("; * beyond chance")
    short = f"technical writes {second / first:.2f}".rstrip("0")
    assert any(one.startswith(short) for one in found.in_short()) and told in found.origin()
    assert sum(one.difference for one in found.agents["tokens"]) == pytest.approx(
        next(row.difference for row in found.rows if row.metric == "tokens"))  # fmt: skip


def test_specialists_that_all_write_more_are_told_as_all() -> None:
    """The `*` stood at one of four, whose prompt was then rolled back alone."""
    found = support(2, dict.fromkeys(TEAM, 1.55))
    assert {one.agent for one in found.agents["tokens"] if one.changed} == {*TEAM}
    assert "all 4 agents that act in only some runs write more: " in found.by_agent()
    told = r"all 4 agents that act in only some runs write more where they act: \w+ 1\.\d+ times as much, "
    assert re.search(told, " ".join(found.in_short())), "names without sizes"
    three = support(2, dict.fromkeys(TEAM[1:], 1.6))
    assert "; 3 agents write more: " in three.by_agent()


def test_a_cost_that_changed_surely_is_told_with_its_size_without_one_that_is_not_shown() -> None:
    """`money: undecided` was all, where `metrics` had `tokens read ×1.22 *`."""
    rng, side = np.random.default_rng(4), np.arange(160) % 2
    _, _, columns = credit.from_columns(group=np.arange(160) // 4, trace=np.arange(160), reward=np.zeros(160))
    cost = {"money": 10 * np.exp(rng.normal(size=160)), "input_tokens": rng.uniform(90, 110, 160) * (1 + side / 4)}
    measured = {name: numbered(of) for name, of in cost.items()} | {"success": numbered(np.ones(160))}
    found = compare_sides(columns.traces, Sides(("old", "new"), side, ("old", "new")), measured).in_short()[1]
    assert re.search(r"^new takes 1\.2\d* times the tokens read in the typical task\.$", found), found


def test_an_agent_that_is_asked_more_often_is_told_by_the_runs_in_which_it_acts() -> None:
    """It writes as much as before in each of these, so its prompt is not what changed."""
    rng, runs = np.random.default_rng(3), 120
    side = np.arange(runs) % 2
    asked = rng.random(runs) < np.where(side, 0.8, 0.3)
    run = np.concatenate([np.arange(runs), np.flatnonzero(asked)])
    agent = np.array(["lead", "critic"])[(np.arange(len(run)) >= runs).astype(int)]
    _, _, columns = credit.from_columns(group=run, trace=run, agent=agent, reward=np.zeros(len(run)), tokens=100
                                        + rng.integers(20, size=len(run)))  # fmt: skip
    measured = costs_of_traces(columns.traces) | {"success": numbered(np.ones(runs))}
    found = compare_sides(columns.traces, Sides(("old", "new"), side, ("old", "new")), measured)
    critic = next(one for one in found.agents["tokens"] if one.agent == "critic")
    assert critic.stands_out and not critic.changed
    assert critic.taking_part is not None and critic.taking_part.stands_out
    assert critic.acting == pytest.approx([asked[side == one].mean() for one in (0, 1)])
    assert "more:" not in found.by_agent() and "critic +" in found.by_agent()


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_agents_of_sides_that_are_alike_stand_out_in_one_of_twenty_comparisons_at_most(shared: bool) -> None:
    worlds, found = 200, 0
    for seed in range(worlds):
        agents = support(seed, {}, shared=shared, runs=80).agents["tokens"]
        tests = [test for one in agents for test in (one.test, one.taking_part) if test is not None]
        found += any(test.stands_out for test in tests) or any(one.stands_out or one.changed for one in agents)
    assert found / worlds < 0.05 + 2 * (0.05 * 0.95 / worlds) ** 0.5
