"""Marks of single actions: bounded where the outcomes of a group vary, refused where they do not."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import credit
from estimators.base import Reason


@pytest.mark.slow
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
    assert rows.gather(result.reason)[1] == Reason.NO_DIVISOR
    assert np.abs(rows.gather(result.advantage)).max() < 1


@pytest.mark.parametrize("apart", [1.0, 1e-2, 1e-4, 1e-6, 1e-8])
def test_a_mark_is_never_divided_by_a_spread_near_nothing(apart: float) -> None:
    """Outcomes 0.5 and 0.50001 and a mark of −0.6 gave −70,710."""
    outcome = np.array([0.5, 0.5 + apart, 0.5])
    rounds = pytest.warns(UserWarning, match="subtract an offset") if apart < 1e-4 else contextlib.nullcontext()
    with rounds:
        graph, reward, rows = credit.from_columns(
            group=["q"] * 4,
            trace=["a", "a", "b", "c"],
            reward=outcome[[0, 0, 1, 2]],
            event_reward=[0.0, -0.6, 0.0, 0.0],
        )
    result = credit.foldgrpo(graph, reward, event_reward=rows.event_reward)
    assert np.abs(rows.gather(result.advantage)).max() <= np.sqrt(3)
    assert rows.gather(result.reason)[1] == (Reason.VALID if apart > 0.9 else Reason.NO_DIVISOR)
    assert rows.gather(result.valid)[[0, 2, 3]].all()


def test_outcomes_of_failure_and_success_refuse_no_mark() -> None:
    """One success among 40, marked down, and failures marked up."""
    trace = np.arange(40)
    graph, reward, rows = credit.from_columns(
        group=["q"] * 40,
        trace=trace,
        reward=(trace == 7).astype(float),
        event_reward=np.where(trace == 7, -1.0, np.where(trace % 3 == 0, 1.0, 0.0)),
    )
    result = credit.foldgrpo(graph, reward, event_reward=rows.event_reward)
    assert rows.gather(result.valid).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outcome", "marks", "valid"),
    [
        (1, [0, 0], False),
        (1, None, False),
        (0, None, True),
        (1, [0, 1], True),
        (1, [0, 1e-9], False),
        (0, [0, 1e-9], True),
    ],
)
def test_an_outcome_is_no_verdict_of_the_first_turn(outcome: float, marks: list[float] | None, valid: bool) -> None:
    """Without verdicts the first turn of each trace was paid the whole outcome."""
    graph, reward, rows = credit.from_columns(
        group=[0] * 2, trace=[0] * 2, turn=[0, 1], reward=[outcome] * 2, evidence={"stage": [0, 1]}
    )
    given = (
        None if marks is None else np.where(np.arange(graph.num_events) < 2, np.resize(marks, graph.num_events), 0.0)
    )
    result = credit.unitymas_o(graph, reward, stage=rows.evidence["stage"], event_reward=given)
    assert rows.gather(result.valid).tolist() == [valid] * 2
