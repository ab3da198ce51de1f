"""`from_columns(events=)` fixes the shape: a user's own compiled function is compiled once, whatever a batch holds."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

import credit


def drawn(seed: int) -> dict[str, Any]:
    """Rounds at once or one after another, agents frozen or not, replays or none: 20 to 120 rows."""
    draw = np.random.default_rng([62, seed])
    n = int(draw.integers(20, 120))
    trace = np.sort(draw.integers(0, 8, n))
    at_once, paid, frozen, shared = draw.random(4) < 0.5
    first = np.diff(trace, prepend=-1) > 0
    node = np.where(first, trace // 2 if shared else trace, -1)
    return {
        "group": trace // 4,
        "trace": trace,
        "agent": np.where(first, "a", draw.choice([*"abc"], n)),
        "order": np.arange(n) // (3 if at_once else 1) + n * trace,
        "reward": (trace % 3 > 0) * 1.0,
        "event_reward": draw.random(n) * paid,
        "tokens": draw.integers(1, 999, n),  # of calls at one place, which would else be copies
        "evidence": {"trainable": first | (draw.random(n) > 0.2 * frozen), "node": node},
    }


def test_one_compilation_serves_all_batches() -> None:
    """Masks of joint turns and of frozen agents were None in batches without one: another program."""
    compiled = []

    @jax.jit
    def loss(graph: Any, reward: Any, earned: Any) -> Any:
        compiled.append(graph)
        return credit.discounted_return(graph, reward, event_reward=earned).advantage

    ahead = None
    fields = set()
    for seed in range(30):
        columns = drawn(seed)
        graph, reward, rows = credit.from_columns(**columns, events=128)
        ahead = loss.lower(graph, reward, rows.event_reward).compile() if ahead is None else ahead
        advantage = loss(graph, reward, rows.event_reward)
        assert np.array_equal(advantage, ahead(graph, reward, rows.event_reward))
        plain, _, _ = credit.from_columns(**columns)
        fields |= {(name, getattr(plain, name) is None) for name in ("cluster_ids", "trainable_mask", "joint_mask")}
    assert len(compiled) == 1
    assert len(fields) == 6  # the batches have and lack each of them


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("method", ["rloo", "dr_mas", "turn_baseline", "discounted_return"])
def test_masks_that_mask_nothing_change_no_number(method: str) -> None:
    for seed in range(3):
        graph, reward, rows = credit.from_columns(**drawn(seed), events=128)
        plain, *_ = credit.from_columns(**drawn(seed))
        bare = {name: None for name in ("cluster_ids", "trainable_mask", "joint_mask") if getattr(plain, name) is None}
        run = getattr(credit, method)
        filled = run(graph, reward, event_reward=rows.event_reward)
        without = run(dataclasses.replace(graph, **bare), reward, event_reward=rows.event_reward)
        assert np.array_equal(filled.advantage, without.advantage) and np.array_equal(filled.reason, without.reason)
