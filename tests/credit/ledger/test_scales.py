"""Scales that divide advantages: from whole traces, with a floor; the gradient where agents come and go."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
from credit.bench.bias import x64
from credit.bench.enumeration import fan_outs, independent
from credit.bench.stacked_batches import Batches, stack
from credit.ledger.from_methods import compose_claims
from estimators.base import Reason
from estimators.composition.control import control_advantage
from estimators.composition.scaling import LARGEST, PRIOR_TRACES, agent_scale
from graphs.event_graph import KINDS
from graphs.worlds import World
from graphs.worlds.micro.examples import MICRO

pytestmark = pytest.mark.optimised


def slow_scale(rows: list[tuple[int, int, str, float]]) -> list[tuple[float, int]]:
    """The formula of `agent_scale`, one row at a time; rows are (group, trace, name, advantage)."""
    out = []
    for group, trace, name, _ in rows:
        mine = [row for row in rows if row[0] == group]
        members = {row[1] for row in mine}
        whole = np.mean([np.mean([a**2 for _, t, _, a in mine if t == u]) for u in members])
        holders = {row[1] for row in mine if row[2] == name}
        others = [np.mean([a**2 for _, t, k, a in mine if t == u and k == name]) for u in holders - {trace}]
        square = (sum(others) + PRIOR_TRACES * whole) / (len(holders) - 1 + PRIOR_TRACES)
        out.append((max(np.sqrt(square), max(abs(row[3]) for row in mine) / LARGEST), len(holders)))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_scale_is_the_root_mean_square_over_other_traces_shrunk_to_the_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trace = np.sort(rng.integers(0, 12, 60))
    name = rng.choice(["lead", "worker", "rare"], 60, p=[0.5, 0.45, 0.05])
    graph, _, rows = credit.from_columns(group=trace % 3, trace=trace, agent=name, reward=np.zeros(60))
    values = rng.normal(size=60) * 10.0 ** rng.integers(-3, 3, 60)
    flat = np.full(graph.num_events, np.nan, np.float32)
    flat[rows.event] = values
    made = agent_scale(graph, flat, np.asarray(graph.action_mask))
    wanted = slow_scale(list(zip(trace % 3, trace, name, values, strict=True)))
    np.testing.assert_allclose(rows.gather(made.scale), [scale for scale, _ in wanted], rtol=2e-5)
    np.testing.assert_array_equal(rows.gather(made.traces), [count for _, count in wanted])


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-25, 1.0, 1e30])
def test_a_scale_follows_the_unit_of_reward_where_squares_would_not(size: float) -> None:
    trace = np.array([0, 0, 1, 2, 3])
    graph, reward, rows = credit.from_columns(
        group=np.zeros(5, int), trace=trace, agent=["a", "b", "a", "b", "b"], reward=np.array([size, 0, 0, size])[trace]
    )
    scaled = credit.compose(graph, reward, []).advantage("control", scale="agent_name")
    one = credit.compose(graph, reward / np.float32(size), []).advantage("control", scale="agent_name")
    np.testing.assert_allclose(rows.gather(scaled.credit.advantage), rows.gather(one.credit.advantage), rtol=1e-5)


@pytest.mark.slow
def test_an_agent_that_acts_twice_in_one_trace_of_its_group_has_no_scale() -> None:
    """It had 1e-6, the eps beside a standard deviation of 0: an advantage of 1,000,000."""
    trace = np.array([0, 0, 0, 1, 2])
    agent = ["lead", "guest", "guest", "lead", "lead"]
    graph, reward, rows = credit.from_columns(
        group=np.zeros(5, int), trace=trace, agent=agent, reward=np.array([1.0, 0, 0])[trace]
    )
    signal = credit.compose(graph, reward, []).advantage("control", scale="agent_name")
    reason = rows.gather(signal.credit.reason)
    assert reason.tolist() == [0, Reason.TOO_FEW, Reason.TOO_FEW, 0, 0]
    advantage = rows.gather(signal.credit.advantage)
    assert advantage[1:3].tolist() == [0, 0] and 0 < np.abs(advantage).max() < 3


@pytest.mark.slow
def test_agents_whose_traces_all_ended_alike_are_not_divided_by_nothing() -> None:
    """The guest acts in two failing traces: its advantages do not vary, and it deserves no thousands."""
    trace = np.array([0, 0, 1, 1, 2, 3])
    agent = ["lead", "guest", "lead", "guest", "lead", "lead"]
    graph, reward, rows = credit.from_columns(
        group=np.zeros(6, int), trace=trace, agent=agent, reward=np.array([0, 0, 1.0, 1])[trace]
    )
    for scale in ("agent_name", credit.dr_mas(graph, reward)):
        signal = credit.compose(graph, reward, []).advantage("control", scale=scale)
        guest = np.asarray(rows.gather(signal.credit.advantage))[[1, 3]]
        assert np.all(guest < 0) and np.abs(guest).max() <= LARGEST * (1 + 1e-6)


@pytest.mark.slow
def test_one_success_among_forty_failures_is_held_to_the_stated_multiple() -> None:
    """By the root mean square alone it would be 29: the floor is the largest advantage of the group over `LARGEST`."""
    graph, reward, rows = credit.from_columns(
        group=np.zeros(41, int), trace=np.arange(41), agent=["lead"] * 41, reward=np.arange(41) == 40
    )
    scaled = credit.compose(graph, reward, []).advantage("control", scale="agent_name").credit
    assert np.abs(rows.gather(scaled.advantage)).max() == pytest.approx(LARGEST)


@pytest.mark.slow
def test_replays_under_another_task_are_a_sample_of_each_task() -> None:
    """They counted for the first task alone: a name that two traces of the second held had no scale there."""
    graph, reward, rows = credit.from_columns(
        group=list("qqqqrrrr"),
        trace=[0, 0, 1, 1, 2, 2, 3, 3],
        reward=[1.0, 1, 0, 0, 10, 10, 0, 0],
        evidence={"node": list("xbcdxfgh")},
    )
    assert np.asarray(graph.cluster_ids)[:4].tolist() == [0, 1, 0, 3]
    signal = credit.compose(graph, reward, []).advantage("control", scale="agent_name")
    np.testing.assert_allclose(rows.gather(signal.credit.advantage), [1, 1, -1, -1, 1, 1, -1, -1], rtol=1e-6)


@pytest.fixture(scope="module")
def demo() -> credit.Traces:
    """The corpus of `credit demo`."""
    world = World()
    episodes = world.sample(jax.random.key(0), 80)
    return world.traces(episodes, world.increments(episodes))


@pytest.mark.parametrize(
    "scale", ["agent_name", *(pytest.param(s, marks=pytest.mark.slow) for s in ("role_name", "dr_mas"))]
)
@pytest.mark.slow
def test_no_advantage_of_the_demonstration_is_beyond_the_stated_multiple(demo: credit.Traces, scale: str) -> None:
    """`credit compose --methods rloo --advantage control --scale agent_name` wrote up to 571,428."""
    normaliser = credit.dr_mas(demo.graph, demo.reward)
    claims = {"rloo": credit.rloo(demo.graph, demo.reward), "dr_mas": normaliser}
    for kind in ("control", "entry"):
        signal = compose_claims(demo, claims).advantage(kind, scale=scale)
        assert np.abs(np.asarray(signal.credit.advantage)).max() <= LARGEST * (1 + 1e-6)


def stacked(batch: Batches) -> tuple[jax.Array, jax.Array]:
    """The stack's advantages before and after its scale; claims are centred and wrong, coefficients are 1."""
    graph, parts = batch.graph, []
    for kind in ("message", "orchestrator"):
        here = jnp.isin(graph.event_type, jnp.asarray([int(t) for t in KINDS[kind]], graph.event_type.dtype))
        amount = batch.evidence["wrong_q_value"] - batch.evidence["wrong_value"]
        parts.append(
            credit.Credit(
                credit=jnp.where(here & graph.event_mask, amount, 0),
                baseline=jnp.zeros_like(amount),
                scale=jnp.ones_like(amount),
                stderr=jnp.full_like(amount, jnp.inf),
                reason=jnp.where(here & graph.event_mask, Reason.VALID, Reason.NO_EVIDENCE),
                unit="event", estimand="increment", source=kind, centred=True, own_outcome=False,
            )
        )  # fmt: skip
    result = control_advantage(graph, batch.returns, parts, beta=1.0).credit
    spread = agent_scale(graph, result.advantage, result.valid)
    after = jnp.where(result.valid & (spread.traces >= 2), result.advantage / spread.scale, 0)
    return result.advantage, after


def expected_gradients(name: str, k: int) -> dict[str, Any]:
    """E g of the stack before and after its scale over every batch of k traces; and the largest advantage."""
    world = MICRO[name]
    draws = independent(world, k, room=3)
    batch = stack(draws, {"wrong_q_value", "wrong_value"})
    with x64():
        before, after = map(np.asarray, jax.jit(jax.vmap(stacked))(batch))
    row, event = np.nonzero(batch.state >= 0)
    at = row, event
    found = {"largest": float(np.abs(after[at]).max())}
    for part, values in (("before", before), ("after", after)):
        pushed = np.zeros((len(draws.chance), *world.policy.shape))
        np.add.at(pushed, (row, batch.state[at], batch.choice[at]), batch.weight[at] * values[at])
        found[part] = np.tensordot(draws.chance, world.through_scores(pushed), axes=1)
    return found


COSINE = {
    "hire-additive": (0.980, 0.991),
    "spawn-and": (0.976, 0.994),
    "delegate-luck": (0.932, 0.989),
    "stop-rewards": (0.980, 0.995),
}
"""Between the scaled stack's expected gradient and the true one, for groups of 2 and 3: the table of docs/ledger.md."""


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", COSINE)
@pytest.mark.sampled
@pytest.mark.slow
def test_the_stack_under_stochastic_spawning(name: str, k: int) -> None:
    """Every batch of k traces of a world whose policy decides who acts: bias 0 before the scale; after it a cosine.

    With the scale as it was the gradient had a bias of 5.7e4 times its length and a cosine of −0.73 in such a world.
    """
    true = MICRO[name].gradient()
    found = expected_gradients(name, k)
    length = np.linalg.norm(true)
    assert np.linalg.norm(found["before"] - true) / length < 1e-12
    cosine = np.sum(found["after"] * true) / np.linalg.norm(found["after"]) / length
    assert cosine == pytest.approx(COSINE[name][k - 2], abs=6e-4)
    assert found["largest"] <= np.sqrt(k * (k - 1 + PRIOR_TRACES) / PRIOR_TRACES) * 2


@pytest.mark.slow
@pytest.mark.parametrize("frozen", ["", "worker"])
@pytest.mark.parametrize("name", ["relay-and", "spawn-and", "stop-rewards"])
def test_the_stack_among_replays_has_no_bias_before_its_scale(name: str, frozen: str) -> None:
    """Two fan-outs of two siblings from the second decision on; with a frozen agent, at the decisions of the others."""
    world = MICRO[name]
    draws = fan_outs(world, 2, 1, 2)
    batch = stack(draws, {"wrong_q_value", "wrong_value"})
    trained = np.array([decision.agent.partition("-")[0] != frozen for decision in world.states.values()])
    assert trained.all() == (frozen == "")
    if frozen:
        mask = trained[batch.state] & batch.graph.event_mask
        batch = dataclasses.replace(batch, graph=dataclasses.replace(batch.graph, trainable_mask=mask))
    with x64():
        before = np.asarray(jax.jit(jax.vmap(lambda one: stacked(one)[0]))(batch))
    at = np.nonzero(batch.state >= 0)
    assert (before[at][~trained[batch.state[at]]] == 0).all()
    pushed = np.zeros((len(draws.chance), *world.policy.shape))
    np.add.at(pushed, (at[0], batch.state[at], batch.choice[at]), batch.weight[at] * before[at])
    mean, true = np.tensordot(draws.chance, world.through_scores(pushed), axes=1), world.gradient()
    assert np.linalg.norm((mean - true)[trained]) / np.linalg.norm(true) < 1e-12


@pytest.mark.slow
def test_replays_of_one_trace_are_one_sample_of_a_scale() -> None:
    """Traces 0 and 1 share a choice: together they are one sample, and a name that only they have has no scale."""
    trace = np.array([0, 0, 1, 1, 2, 3])
    agent = ["lead", "guest", "lead", "guest", "lead", "lead"]
    graph, reward, rows = credit.from_columns(
        group=np.zeros(6, int), trace=trace, agent=agent, reward=np.array([1.0, 0, 0, 1])[trace]
    )
    clusters = np.arange(graph.num_traces, dtype=np.int32)
    clusters[1] = 0
    tree = dataclasses.replace(graph, cluster_ids=clusters)
    value = np.where(graph.action_mask, np.asarray(reward)[graph.trace_ids] - 0.25, 0)
    plain = agent_scale(graph, value, np.asarray(graph.action_mask))
    together = agent_scale(tree, value, np.asarray(graph.action_mask))
    assert rows.gather(plain.traces).tolist() == [4, 2, 4, 2, 4, 4]
    assert rows.gather(together.traces).tolist() == [3, 1, 3, 1, 3, 3]
    square = np.array([(0.75**2 + 0.25**2) / 2, 0.25**2, 0.75**2])  # of the three samples
    wanted = np.sqrt((square[1] + square[2] + PRIOR_TRACES * square.mean()) / (2 + PRIOR_TRACES))
    np.testing.assert_allclose(rows.gather(together.scale)[0], wanted, rtol=1e-5)
