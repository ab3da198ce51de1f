"""Control variates with fitted coefficients, enumerated where the policy decides when to stop, with replays."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import credit
from credit.bench.bias import x64
from credit.bench.enumeration import fan_outs
from estimators.composition.coefficients import _spreads
from estimators.composition.control import control_advantage
from graphs.worlds.micro.examples import MICRO

WORLD = MICRO["stop-rewards"]
OTHERS = 100
"""Groups of two traces that the coefficients are fitted on, drawn once."""


def rows_of(members: list[int], group: list[str], fan: list[int | None], at: int) -> dict[str, list]:
    """Columns of traces of the world; siblings of one fan share their choices up to decision `at`."""
    found: dict[str, list] = {name: [] for name in ("group", "trace", "reward", "context", "node", "state", "choice")}
    for t, (member, name, number) in enumerate(zip(members, group, fan, strict=True)):
        for step in range(int((WORLD.state[member] >= 0).sum())):
            branches = number is not None and step == at
            found["group"].append(name)
            found["trace"].append(f"{name}-{t}")
            found["reward"].append(float(WORLD.total[member]))
            found["context"].append(f"{name}-{number}" if branches else None)
            found["node"].append(f"{name}-{number}-{t}" if branches else None)
            found["state"].append(int(WORLD.state[member, step]))
            found["choice"].append(int(WORLD.choice[member, step]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("at", [pytest.param(0, marks=pytest.mark.study), 1])
def test_coefficients_that_are_fitted_leave_the_gradient_exact(at: int) -> None:
    """Whatever the other groups drew: claims are centred and wrong, and β is not 0."""
    rng = np.random.default_rng(at)
    wrong = rng.normal(size=WORLD.policy.shape) * (WORLD.policy > 0)
    wrong = wrong - (WORLD.policy * wrong).sum(axis=1, keepdims=True)
    drawn = rng.choice(len(WORLD.ends), 2 * OTHERS, p=WORLD.probabilities())
    others = rows_of(drawn.tolist(), [f"other-{t // 2}" for t in range(2 * OTHERS)], [None] * 2 * OTHERS, at)
    draws = fan_outs(WORLD, 2, at, 2)
    pushed, largest = np.zeros(WORLD.policy.shape), 0.0
    with x64():
        for chance, members, weight, context in zip(
            draws.chance, draws.members, draws.weight, draws.evidence["context"], strict=True
        ):
            real = members >= 0
            fan = [None if number < 0 else int(number) for number in context[real, at]]
            own = rows_of(members[real].tolist(), ["q"] * int(real.sum()), fan, at)
            columns = {name: own[name] + others[name] for name in own}
            state, choice = np.array(columns.pop("state")), np.array(columns.pop("choice"))
            evidence = {name: columns.pop(name) for name in ("context", "node")}
            graph, reward, rows = credit.from_columns(**columns, evidence=evidence, events=512, traces=256, agents=256)
            amount = np.zeros(graph.num_events)
            amount[rows.event] = wrong[state, choice]
            claim = credit.claim(graph, amount, estimand="increment", source="c", centred=True, own_outcome=False)
            made = control_advantage(graph, reward.astype(np.float64), [claim])
            n = len(own["group"])
            assert made.credit.valid[rows.event[:n]].all()
            advantage = np.asarray(rows.gather(made.credit.advantage))[:n]
            steps = (WORLD.state[members[real]] >= 0).sum(axis=1)
            share = np.concatenate([weight[t, :length] for t, length in zip(np.flatnonzero(real), steps, strict=True)])
            np.add.at(pushed, (state[:n], choice[:n]), chance * share * advantage)
            largest = max(largest, float(np.abs(np.asarray(made.beta)[0, : int(real.sum())]).max()))
    assert largest > 0.01
    # the rewards of a batch are single precision; those of this world are exact in it
    np.testing.assert_allclose(WORLD.through_scores(pushed), WORLD.gradient(), atol=1e-7)


def outcomes(replays: bool) -> tuple[credit.EventGraph, np.ndarray, np.random.Generator]:
    """120 traces of one or two actions in groups of 1 to 4, of which some share a first choice."""
    rng = np.random.default_rng(0)
    group = np.sort(rng.integers(0, 45, 120))
    graph, reward, _ = credit.from_columns(
        group=np.repeat(group, 2), trace=np.repeat(np.arange(120), 2), reward=np.repeat(rng.normal(size=120), 2)
    )
    if replays:
        cluster = np.arange(graph.num_traces)
        again = np.flatnonzero((np.diff(group) == 0) & (rng.random(119) < 0.3)) + 1
        for trace in again:
            cluster[trace] = cluster[trace - 1]
        graph = dataclasses.replace(graph, cluster_ids=cluster.astype(np.int32))
    return graph, np.array(reward), rng


@pytest.mark.slow
@pytest.mark.parametrize("replays", [False, True])
def test_the_spread_of_the_others_is_that_of_a_loop(replays: bool) -> None:
    graph, reward, _ = outcomes(replays)
    member = np.arange(graph.num_traces) < 120
    member[::7] = False
    found = [
        np.asarray(part)
        for part in _spreads(graph, np.where(member, reward, 0).astype(np.float32), member, graph.group_ids)
    ]
    cluster = np.arange(graph.num_traces) if graph.cluster_ids is None else np.asarray(graph.cluster_ids)
    for t in np.flatnonzero(member):
        mine = [u for u in np.flatnonzero(member) if graph.group_ids[u] == graph.group_ids[t]]
        samples = {c: np.mean([reward[u] for u in mine if cluster[u] == c]) for c in {cluster[u] for u in mine}}
        left = [mean for c, mean in samples.items() if c != cluster[t]]
        assert found[2][t] == len(left)
        assert found[3][t] == pytest.approx(np.var(left, ddof=1) if len(left) > 1 else 0, rel=1e-5, abs=1e-7)


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("replays", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_no_reward_however_large_enters_its_own_coefficient(replays: bool, size: float) -> None:
    """A reward 1,000 times the spread of the others was taken off a sum of squares and set that spread to 0."""
    graph, reward, rng = outcomes(replays)
    amount = np.where(graph.action_mask, rng.normal(size=graph.num_events), 0)
    moved = 0
    for t in range(0, 120, 5):
        kin = np.arange(len(reward)) == t if graph.cluster_ids is None else graph.cluster_ids == graph.cluster_ids[t]
        beta = []
        for own in (0.5, size):
            claims = np.where(kin[graph.trace_ids], own * amount, amount)
            made = credit.claim(graph, claims, estimand="increment", source="c", centred=True, own_outcome=False)
            beta.append(np.asarray(control_advantage(graph, np.where(kin, own, reward), [made]).beta)[0, t])
        assert beta[0] == beta[1]
        moved += beta[0] != 0
    assert moved > 5
