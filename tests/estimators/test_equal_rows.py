"""Rewards of 0 at all events change nothing: the shorter way without them gives the numbers of the longer one."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import credit
from estimators.group import group_relative

ROWS = [(g, f"{g}{u}", f"a{k % 2}") for g in range(3) for u in range(3) for k in range(1 + (2 * g + 3 * u) % 5)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["verl_grpo", "turn_baseline", "verl_rloo", "dr_mas"])
@pytest.mark.sampled
def test_rewards_of_zero_at_events_change_nothing(method: str) -> None:
    graph, _, rows = credit.from_columns(
        group=[g for g, _, _ in ROWS],
        trace=[t for _, t, _ in ROWS],
        agent=[a for _, _, a in ROWS],
        reward=[0.0] * len(ROWS),
    )
    trained = np.arange(graph.num_events) % 7 != 3  # some rows enter no statistic
    graph = dataclasses.replace(graph, trainable_mask=jnp.asarray(trained))
    rng = np.random.default_rng(0)
    reward = jnp.asarray(np.where(np.arange(graph.num_traces) == 4, np.nan, rng.normal(size=graph.num_traces)))
    reward = reward.astype(jnp.float32)
    short = credit.METHODS[method](graph, reward)
    long = credit.METHODS[method](graph, reward, event_reward=jnp.zeros(graph.num_events))
    assert rows.gather(short.reason).tolist() == rows.gather(long.reason).tolist()
    assert np.asarray(short.valid).sum() > 10
    for name in ("credit", "baseline", "scale", "stderr"):
        np.testing.assert_allclose(getattr(short, name), getattr(long, name), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_equal_rows_of_a_whole_batch_and_a_rows_own_score() -> None:
    graph, _, _ = credit.from_columns(
        group=[g for g, _, _ in ROWS], trace=[t for _, t, _ in ROWS], reward=[0.0] * len(ROWS)
    )
    reward = jnp.asarray(np.random.default_rng(1).normal(size=graph.num_traces), jnp.float32)
    settings = {"baseline": "leave_one_out", "scale": "std", "population": "row", "over": "batch", "own_score": True}
    short = group_relative(graph, reward, **settings)
    long = group_relative(graph, reward, event_reward=jnp.zeros(graph.num_events), **settings)
    assert np.asarray(short.reason).tolist() == np.asarray(long.reason).tolist()
    np.testing.assert_allclose(short.advantage, long.advantage, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(short.stderr, long.stderr, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("over", ["group", "batch"])
@pytest.mark.parametrize("singleton", ["refuse", "zero", "raw"])
@pytest.mark.sampled
def test_equal_rows_by_name_and_of_a_group_of_one(over: str, singleton: str) -> None:
    """Rows of names; one group has one trace, and one name one row. Over the batch all rows are compared."""
    listed = [*ROWS, (3, "lone", "a0"), (3, "lone", "a0"), (3, "lone", "once")]
    graph, _, rows = credit.from_columns(
        group=[g for g, _, _ in listed],
        trace=[t for _, t, _ in listed],
        agent=[a for _, _, a in listed],
        reward=[0.0] * len(listed),
    )
    reward = jnp.asarray(np.random.default_rng(2).normal(size=graph.num_traces), jnp.float32)
    settings = {"baseline": "leave_one_out", "population": "row", "by": "agent_name"}
    short = group_relative(graph, reward, over=over, singleton=singleton, **settings)
    long = group_relative(
        graph, reward, event_reward=jnp.zeros(graph.num_events), over=over, singleton=singleton, **settings
    )
    assert rows.gather(short.reason).tolist() == rows.gather(long.reason).tolist()
    assert bool(rows.gather(short.valid)[-1]) == (singleton != "refuse" or over == "batch")  # which mixes names
    for name in ("credit", "baseline", "scale", "stderr"):
        np.testing.assert_allclose(getattr(short, name), getattr(long, name), rtol=1e-5, atol=1e-6, err_msg=name)
