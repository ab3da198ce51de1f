"""Shapley credit obeys the laws of every method, given a game for each trace.

`shapley` takes evaluated coalitions, which no log holds; here each trace's game is made of per-event evidence: a unit
is worth what its actions are worth, pairs of units are worth their product in addition, all of it times the reward.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credit.laws import LAWS, Subject
from credit.laws.trial_batches import SIZES, padded, ragged
from estimators.base import Credit
from estimators.shapley import batch_shapley, plan_exact
from estimators.shapley.plan import Plan
from graphs.event_graph import EventGraph
from graphs.floats import at_least_float32
from graphs.segment import segment_sum

pytestmark = pytest.mark.slow

UNITS = 5  # agent instances of a trace, at most


def game(graph: EventGraph, reward: Any, worth: Any, plan: Plan) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Values [T, C] of a plan's coalitions, the agent of each unit [T, N], and how many units a trace has [T]."""
    reward, worth = at_least_float32(reward), at_least_float32(worth)
    there = jnp.asarray(graph.agent_mask)
    trace = jnp.asarray(graph.agent_trace)
    before = there[None, :] & (trace[None, :] == trace[:, None]) & jnp.tri(len(trace), k=-1, dtype=bool)
    place = jnp.where(there, jnp.sum(before, axis=1), UNITS)
    acts = jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask) & jnp.isfinite(worth)
    own = segment_sum(jnp.where(acts, worth, 0), jnp.asarray(graph.agent_ids), graph.num_agents, acts)
    units = (
        jnp.zeros((graph.num_traces, UNITS), jnp.int32)
        .at[trace, place]
        .set(jnp.arange(len(trace), dtype=jnp.int32), mode="drop")
    )
    known = jnp.zeros((graph.num_traces, UNITS), bool).at[trace, place].set(there, mode="drop")
    part = jnp.where(known, own[units], 0)
    inside = jnp.asarray(plan.coalitions).astype(part.dtype)
    total = jnp.einsum("tn,cn->tc", part, inside)
    squares = jnp.einsum("tn,cn->tc", part**2, inside)
    scored = jnp.isfinite(reward)[:, None]
    value = jnp.where(scored, reward[:, None], 0) * (total + (total**2 - squares) / 2)
    return jnp.where(scored, value, jnp.nan), units, known


def share_of_the_game(graph: EventGraph, reward: Any, *, worth: Any, event_reward: Any = None) -> Credit:
    """The Shapley value of each agent in its trace's game, by enumeration."""
    plan = plan_exact(UNITS)
    values, units, known = game(graph, reward, worth, plan)
    rows = jnp.asarray(plan.coalitions)
    every = jax.tree.map(lambda leaf: jnp.broadcast_to(jnp.asarray(leaf), (graph.num_traces, *leaf.shape)), plan)
    there = ~jnp.any(rows[None] & ~known[:, None], axis=2)
    stacked = dataclasses.replace(every, unit_mask=known, row_mask=there)
    return batch_shapley(graph, stacked, values, units)


@functools.cache
def subject() -> Subject:
    return Subject(share_of_the_game, {"worth": "event"}, "trace", seed=0)


# In the game above, an action without a worth is worth nothing by definition.
@pytest.mark.parametrize("law", [law for law in LAWS if law != "absent_evidence"])
def test_shapley_obeys_law(law: str) -> None:
    result = subject().try_law(law, LAWS[law])
    assert result.passed is not False, result.detail


@pytest.mark.study
def test_units_share_the_whole_game_whatever_the_padding() -> None:
    """Per trace Σ shares of its agents = v(N), here by a loop over traces."""
    batch = ragged(3, {"worth": "event"})
    big = padded(batch, SIZES)
    credit = share_of_the_game(big.graph, big.reward, worth=big.evidence["worth"])
    amount, valid = np.asarray(credit.credit), np.asarray(credit.valid)
    graph = batch.graph
    for trace in range(graph.num_traces):
        mine = (graph.trace_ids == trace) & valid[: graph.num_events]
        if not mine.any():
            continue
        agents = np.unique(graph.agent_ids[mine])
        counted = (graph.trace_ids == trace) & graph.action_mask & np.isfinite(batch.evidence["worth"])
        acting = np.unique(graph.agent_ids[(graph.trace_ids == trace) & graph.action_mask])
        own = [batch.evidence["worth"][counted & (graph.agent_ids == agent)].sum() for agent in acting]
        pairs = sum(a * b for i, a in enumerate(own) for b in own[:i])
        shares = [amount[: graph.num_events][mine & (graph.agent_ids == agent)][0] for agent in agents]
        assert sum(shares) == pytest.approx(batch.reward[trace] * (sum(own) + pairs), rel=1e-5, abs=1e-6)
