"""Shares from logs: which teams occurred, what is refused, and how shares become credit of events."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import jax
import numpy as np
import pytest

from estimators.base import Reason
from estimators.shapley import (
    batch_shapley,
    leave_one_out,
    logged_coalitions,
    logged_values,
    plan_exact,
    plan_pairs,
    plan_walks,
    solve,
    spread,
    stack_plans,
)
from estimators.shapley.structured import (
    ideals,
    permission_coalitions,
    permission_of_worth,
    precedence_exact,
    team_parents,
)
from graphs.errors import CreditError
from graphs.event_graph import EventGraph, EventType
from graphs.levels import level_ids
from graphs.segment import segment_first
from graphs.worlds import World


def graph_of(teams: list[list[int]], groups: list[int], parents: dict[int, int] | None = None) -> EventGraph:
    """One trace for each team of agent names; each agent acts twice, then one tool result follows."""
    events: list[tuple[int, int, bool]] = []
    agents: list[tuple[int, int, int]] = []
    for trace, team in enumerate(teams):
        first = len(agents)
        for name in team:
            spawner = (parents or {}).get(name, name)
            agents.append((name, trace, first + team.index(spawner) if spawner in team else len(agents)))
        events += [(trace, first + k, True) for _ in range(2) for k in range(len(team))]
        events.append((trace, first, False))
    trace_ids, agent_ids, action = (np.array(column) for column in zip(*events, strict=True))
    name_ids, agent_trace, parent = (np.array(column, np.int32) for column in zip(*agents, strict=True))
    e, a, t = len(events), len(agents), len(teams)
    room = max(a, int(name_ids.max()) + 1)
    pad = room - a
    return EventGraph(
        event_type=np.where(action, EventType.MESSAGE, EventType.TOOL_RESULT).astype(np.int32),
        action_mask=action.astype(bool),
        event_mask=np.ones(e, bool),
        time=np.full(e, np.nan, np.float32),
        trace_ids=trace_ids.astype(np.int32),
        agent_ids=agent_ids.astype(np.int32),
        turn_ids=np.arange(e, dtype=np.int32),
        senders=np.zeros(0, np.int32),
        receivers=np.zeros(0, np.int32),
        edge_type=np.zeros(0, np.int32),
        edge_mask=np.zeros(0, bool),
        agent_name_ids=np.pad(name_ids, (0, pad)),
        agent_role_ids=np.pad(name_ids, (0, pad)),
        agent_parent=np.concatenate([parent, np.arange(a, room, dtype=np.int32) * 0]),
        agent_trace=np.pad(agent_trace, (0, pad)),
        agent_mask=np.arange(room) < a,
        group_ids=np.array(groups, np.int32),
        trace_mask=np.ones(t, bool),
    )


EVERY_TEAM = [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]]


def worth(team: list[int]) -> float:
    return float(sum(name + 1 for name in team) + (0 in team and 2 in team))


@pytest.mark.slow
def test_a_log_with_every_team_is_answered() -> None:
    graph = graph_of(EVERY_TEAM, [0] * 7)
    logged = logged_coalitions(graph, np.array([worth(t) for t in EVERY_TEAM]), 0)
    assert logged.units.tolist() == [0, 1, 2]
    plan = plan_exact(3)
    values, stderr = logged_values(plan, logged, empty=0.0)
    got = solve(plan, values.astype(np.float32), noise=stderr.astype(np.float32))
    np.testing.assert_allclose(got.share, [1.5, 2, 3.5], rtol=1e-6)
    assert np.isinf(np.asarray(got.stderr)).all()  # one trace of each team says nothing about its noise


def test_repeated_teams_average_and_their_spread_becomes_an_error() -> None:
    teams = EVERY_TEAM * 4
    noise = np.tile(np.repeat([1.0, -1.0], 7), 2)
    graph = graph_of(teams, [0] * len(teams))
    logged = logged_coalitions(graph, np.array([worth(t) for t in teams]) + noise, 0)
    np.testing.assert_allclose(logged.stderr, 2 / 3**0.5 / 2)  # sd of +1 +1 −1 −1 is 2/√3
    plan = plan_exact(3)
    values, stderr = logged_values(plan, logged, empty=0.0)
    got = solve(plan, values.astype(np.float32), noise=stderr.astype(np.float32))
    np.testing.assert_allclose(got.share, [1.5, 2, 3.5], rtol=1e-6)
    # Coefficients of a unit, coalitions not empty: 1/3, 1/6, 1/6, 1/3 with it and 1/6, 1/6, 1/3 without.
    squares = (1 + 1 + 4 + 4 + 1 + 1 + 4) / 36
    np.testing.assert_allclose(got.stderr, np.full(3, (squares / 3) ** 0.5), rtol=1e-5)


def test_a_log_without_the_needed_teams_is_refused_by_name() -> None:
    teams = [[0, 1, 2], [0, 1], [2]]
    logged = logged_coalitions(graph_of(teams, [0] * 3), np.ones(3), 0)
    with pytest.raises(CreditError, match=r"4 of 8 needed coalitions never occurred.*units \[0\]"):
        logged_values(plan_exact(3), logged, empty=0.0)
    with pytest.raises(CreditError, match="5 of 8"):
        logged_values(plan_exact(3), logged)


def test_other_groups_and_traces_without_reward_do_not_count() -> None:
    graph = graph_of([[0, 1], [0], [1], [0]], [0, 0, 1, 0])
    logged = logged_coalitions(graph, np.array([3.0, 1.0, 5.0, np.nan]), 0)
    assert logged.coalitions.tolist() == [[True, False], [True, True]]
    assert logged.value.tolist() == [1.0, 3.0] and logged.count.tolist() == [1, 1]
    with pytest.raises(CreditError, match="no trace with a reward"):
        logged_coalitions(graph, np.full(4, np.nan), 0)


def test_leave_one_out_answers_for_the_units_it_can() -> None:
    teams = [[0, 1, 2], [0, 1], [0, 2]]
    logged = logged_coalitions(graph_of(teams, [0] * 3), np.array([worth(t) for t in teams]), 0)
    effect, error = leave_one_out(logged)
    assert np.isnan(effect[0]) and effect[1:].tolist() == [2.0, 4.0]
    assert np.isinf(error[0])
    with pytest.raises(CreditError, match="never occurred"):
        leave_one_out(logged_coalitions(graph_of([[0], [1]], [0, 0]), np.ones(2), 0))


@pytest.mark.slow
def test_leave_one_out_is_no_share_of_the_total() -> None:
    """Documented counter-example: in a majority of three, nobody's removal from the whole team matters."""
    teams = EVERY_TEAM
    reward = np.array([float(len(t) >= 2) for t in teams])
    logged = logged_coalitions(graph_of(teams, [0] * 7), reward, 0)
    assert leave_one_out(logged)[0].tolist() == [0, 0, 0]
    values, _ = logged_values(plan_exact(3), logged, empty=0.0)
    np.testing.assert_allclose(solve(plan_exact(3), values.astype(np.float32)).share, np.full(3, 1 / 3), rtol=1e-6)


@pytest.mark.slow
def test_shares_become_credit_from_which_unit_totals_are_recovered() -> None:
    graph = graph_of([[0, 1, 2], [0, 1]], [0, 0])
    share = np.array([1.5, 2.0, 3.5, np.nan, 1.0], np.float32)
    credit = spread(graph, share, np.full(5, 0.1, np.float32), level="agent")
    assert credit.estimand == "share" and credit.unit == "agent"
    of_unit = np.asarray(credit.credit)[np.asarray(segment_first(level_ids(graph, "agent"), 5, graph.action_mask))]
    np.testing.assert_allclose(of_unit, [1.5, 2.0, 3.5, 0.0, 1.0])
    acts = np.asarray(graph.action_mask)
    assert (np.asarray(credit.reason)[~acts] == Reason.NOT_AN_ACTION).all()
    unknown = acts & (np.asarray(graph.agent_ids) == 3)
    assert (np.asarray(credit.reason)[unknown] == Reason.NO_EVIDENCE).all()
    assert np.asarray(credit.valid)[acts & ~unknown].all()
    with pytest.raises(ValueError, match="by ids of 'agent'"):
        spread(graph, share[:2], share[:2], level="agent")


@pytest.mark.slow
def test_a_world_whose_team_grew() -> None:
    """0 spawned 1 and 2, 1 spawned 3; each earns its worth if it works: both structured values by their definitions."""
    graph = graph_of([[0], [0, 1, 2, 3]], [0, 0], parents={1: 0, 2: 0, 3: 1})
    agents, parent = team_parents(graph, 1)
    assert agents.tolist() == [1, 2, 3, 4] and parent.tolist() == [0, 0, 0, 1]
    earned = np.array([1.0, 2.0, 4.0, 6.0])
    plan = plan_exact(4)
    values = permission_coalitions(parent, plan.coalitions) @ earned
    share = np.asarray(solve(plan, values.astype(np.float32)).share)
    # 0 alone 1; 1's two are shared by 0 and 1; 2's four by 0 and 2; 3's six by 0, 1 and 3.
    np.testing.assert_allclose(share, [1 + 1 + 2 + 2, 1 + 2, 2, 2], rtol=1e-5)
    np.testing.assert_allclose(permission_of_worth(parent, earned), share, rtol=1e-5)
    teams = ideals(parent)
    np.testing.assert_allclose(precedence_exact(parent, teams, teams @ earned), earned)
    by_agent = np.full(graph.num_agents, np.nan, np.float32)
    by_agent[agents] = share
    credit = spread(graph, by_agent, np.where(np.isnan(by_agent), np.inf, 0).astype(np.float32), level="agent")
    first = np.unique(np.asarray(graph.agent_ids), return_index=True)[1][1:]
    assert np.asarray(credit.credit)[first].sum() == pytest.approx(earned.sum())


@pytest.mark.study
def test_structured_values_in_a_world_whose_teams_grow_equal_their_definitions() -> None:
    """A lead and up to four workers; a team earns the square of the true increments of its members who work."""
    world = World(difficulties=(0.0, 0.5), group_size=4)
    episodes = world.sample(jax.random.key(5), 8)
    traces = world.traces(episodes, world.increments(episodes))
    graph = traces.graph
    increments = world.increments(episodes).flat(graph.num_events)
    of_agent = np.bincount(np.asarray(graph.agent_ids), increments, graph.num_agents)
    sizes = set()
    for trace in range(8):
        agents, parent = team_parents(graph, trace)
        n = len(agents)
        sizes.add(n)
        worth = of_agent[agents]

        def earned(working: np.ndarray, worth: np.ndarray = worth) -> float:
            return float(working @ worth) ** 2

        def works(unit: int, inside: tuple[int, ...], parent: np.ndarray = parent) -> bool:
            above = int(parent[unit])
            return unit in inside and (above == unit or works(above, inside, parent))

        permission, precedence, feasible = np.zeros(n), np.zeros(n), 0
        for order in itertools.permutations(range(n)):
            team = [np.array([works(unit, order[:k]) for unit in range(n)]) for k in range(n + 1)]
            gains = np.zeros(n)
            gains[list(order)] = np.diff([earned(working) for working in team])
            permission += gains / math.factorial(n)
            if all(works(unit, order[: k + 1]) for k, unit in enumerate(order)):  # nobody before its spawner
                precedence, feasible = precedence + gains, feasible + 1
        plan = plan_exact(n)
        values = np.array([earned(row) for row in permission_coalitions(parent, plan.coalitions)])
        np.testing.assert_allclose(solve(plan, values.astype(np.float32)).share, permission, rtol=2e-4, atol=2e-6)
        teams = ideals(parent)
        found = precedence_exact(parent, teams, np.array([earned(team) for team in teams]))
        np.testing.assert_allclose(found, precedence / feasible, rtol=1e-9, atol=1e-12)
    assert len(sizes) > 1


@pytest.mark.study
def test_a_world_log_answers_for_the_teams_that_occurred_and_refuses_the_others() -> None:
    """Workers come in order: {lead, worker 2} never occurs, so no Shapley value; each step of the order has one."""
    world = World(difficulties=(0.0,), group_size=400, max_workers=2, size_probabilities=(0.5, 0.5))
    traces = world.traces(world.sample(jax.random.key(1), 400))
    logged = logged_coalitions(traces.graph, traces.reward, 0)
    assert logged.coalitions.sum(1).tolist() == [2, 3] and logged.count.sum() == 400
    with pytest.raises(CreditError, match="of 8 needed coalitions never occurred"):
        logged_values(plan_exact(3), logged, empty=0.0)
    effect, error = leave_one_out(logged)
    assert np.isfinite(effect).tolist() == np.isfinite(error).tolist() == [False, False, True]
    reward = np.asarray(traces.reward)[:400]
    size = np.array([len(team_parents(traces.graph, trace)[0]) for trace in range(400)])
    assert effect[2] == pytest.approx(reward[size == 3].mean() - reward[size == 2].mean())
    chain = np.array([0, 0])  # the lead and its first worker as one, then the second worker
    step = precedence_exact(chain, ideals(chain), np.array([0.0, *logged.value]))
    np.testing.assert_allclose(step, [logged.value[0], effect[2]])


def test_units_of_the_plan_are_those_of_the_log() -> None:
    logged = logged_coalitions(graph_of([[0, 1]], [0]), np.ones(1), 0)
    with pytest.raises(ValueError, match="expected 2"):
        logged_values(plan_pairs(jax.random.key(0), 3, 20), logged)
    with pytest.raises(ValueError, match="'agent_name' or 'role_name'"):
        logged_coalitions(graph_of([[0, 1]], [0]), np.ones(1), 0, by=None)


@pytest.mark.slow
@pytest.mark.parametrize("level", [1e6, 1e12])
def test_a_constant_in_all_values_changes_no_share(level: float) -> None:
    """At 1e12 shares were 0 with errors of 0, and at 1e6 they were off: values were cut to single precision first."""
    plan, v = plan_exact(3), np.array([0.0, 0.5, 0.25, 1.0, 0.0, 0.5, 0.75, 2.0]) * (1 if level > 1e9 else 0.3)
    usual = solve(plan, v)
    for ends in ({}, {"empty": level + v[0], "full": level + v[-1]}):
        moved = solve(plan, v + level, **ends)
        np.testing.assert_allclose(moved.share, usual.share, atol=1e-6)
        assert float(moved.total) == pytest.approx(v[-1], abs=1e-6)
    batch = batch_shapley(graph_of([[0, 1, 2]], [0]), stack_plans([plan]), v[None] + level, np.arange(3)[None])
    np.testing.assert_allclose(np.unique(batch.credit[np.asarray(batch.valid)]), np.unique(usual.share), atol=1e-6)


@pytest.mark.study
def test_one_compiled_function_serves_a_batch_of_traces_of_different_size() -> None:
    teams = [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3]]
    graph = graph_of(teams, [0, 1])
    plans = [plan_walks(jax.random.fold_in(jax.random.key(0), t), len(team), 60) for t, team in enumerate(teams)]
    stacked = stack_plans(plans)
    values = np.full(stacked.row_mask.shape, np.nan, np.float32)
    alone = []
    for t, plan in enumerate(plans):
        n = plan.coalitions.shape[1]
        v = (plan.coalitions @ np.arange(1, n + 1) > n).astype(np.float32)
        values[t, : len(v)] = v
        alone.append(solve(plan, v))
    units = np.zeros(stacked.unit_mask.shape, np.int32)
    units[0], units[1, :4] = np.arange(6), np.arange(6, 10)
    credit = batch_shapley(graph, stacked, values, units)
    expected = np.concatenate([np.asarray(a.share) for a in alone])
    acts = graph.action_mask
    np.testing.assert_allclose(credit.credit[acts], expected[graph.agent_ids[acts]], atol=1e-6)
    errors = np.concatenate([np.asarray(a.stderr) for a in alone])
    np.testing.assert_allclose(credit.stderr[acts], errors[graph.agent_ids[acts]], rtol=1e-4, atol=1e-7)
    assert np.asarray(credit.valid)[acts].all()

    values[1, 3] = np.nan  # an evaluation of the second trace is missing: only that trace is refused
    refused = batch_shapley(graph, stacked, values, units)
    assert (np.asarray(refused.valid)[acts] == (graph.trace_ids[acts] == 0)).all()
    np.testing.assert_allclose(refused.credit[graph.trace_ids == 0], credit.credit[graph.trace_ids == 0])


@pytest.mark.slow
def test_the_realised_reward_takes_the_place_of_the_whole_team() -> None:
    graph = graph_of([[0, 1, 2]], [0])
    plan = stack_plans([plan_exact(3)])
    values = np.asarray(plan.coalitions.sum(-1), np.float32)
    credit = batch_shapley(
        graph, plan, values, np.arange(3, dtype=np.int32)[None], full=np.array([6.0]), empty=np.array([0.0])
    )
    np.testing.assert_allclose(credit.credit[:3], [2, 2, 2], rtol=1e-6)


@pytest.mark.slow
def test_the_example_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "shapley.md").read_text()
    exec(compile(text.split("```python")[1].split("```")[0], "docs/shapley.md", "exec"), {})
    assert "regression on pairs" in capsys.readouterr().out
