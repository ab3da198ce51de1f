"""Marks of single actions: bounded where the outcomes of a group vary, refused where they do not."""

from __future__ import annotations

import numpy as np

import credit
from estimators.base import Reason


def test_a_mark_in_a_group_of_equal_outcomes_is_refused() -> None:
    """The formula divides such a mark by eps alone: 0.6 / 1e-6 would be trained on."""
    graph, reward, rows = credit.from_columns(
        group=["equal"] * 3 + ["mixed"] * 3,
        trace=["a", "a", "b", "c", "c", "d"],
        reward=[1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
        event_reward=[0.0, -0.6, 0.0, 0.0, -0.6, 0.0],
    )
    result = credit.foldgrpo(graph, reward, event_reward=rows.event_reward)
    assert rows.gather(result.valid).tolist() == [True, False, True, True, True, True]
    assert rows.gather(result.reason)[1] == Reason.TOO_FEW
    assert np.abs(rows.gather(result.advantage)).max() < 1
