"""The values that increments of `turn_baseline` rest on, and their errors, against loops over traces."""

from __future__ import annotations

import numpy as np
import pytest

import credit
from estimators.baselines.turn_values import PRIOR_TRACES
from estimators.composition.increments import as_increment

TURNS = [3, 1, 3, 2, 2, 4, 2]  # of each trace; the first four are one group
GROUP = [0, 0, 0, 0, 1, 1, 1]
ACTIONS = 2  # of each turn


@pytest.fixture(scope="module")
def claimed() -> tuple[np.ndarray, np.ndarray, credit.Credit, credit.Credit, credit.Rows]:
    """Rewards, the trace and turn of each action, the return and its increments."""
    reward = np.random.default_rng(0).normal(size=len(TURNS))
    trace = np.repeat(np.arange(len(TURNS)), np.array(TURNS) * ACTIONS)
    number = np.concatenate([np.arange(n).repeat(ACTIONS) for n in TURNS])
    graph, outcome, rows = credit.from_columns(
        group=np.array(GROUP)[trace],
        trace=trace,
        turn=trace * 10 + number,
        order=np.arange(len(trace)),  # two equal calls in each turn may be copies
        reward=reward[trace],
    )
    result = credit.turn_baseline(graph, outcome)
    return reward, np.stack([trace, number], axis=1), result, as_increment(graph, result), rows


def value(reward: np.ndarray, trace: int, turn: int) -> tuple[float, float, float]:
    """V, its standard error and the spread of one outcome around it; NaN where no other trace plays the turn."""
    others = [reward[t] for t in range(len(TURNS)) if t != trace and GROUP[t] == GROUP[trace] and TURNS[t] > turn]
    if not others:
        return np.nan, np.nan, np.nan
    groups = [[reward[t] for t in range(len(TURNS)) if GROUP[t] == g] for g in (0, 1)]
    in_batch = sum(np.var(g) * len(g) for g in groups) / sum(len(g) - 1 for g in groups)
    own = groups[GROUP[trace]]
    prior = (np.var(own) * len(own) + PRIOR_TRACES * in_batch) / (len(own) - 1 + PRIOR_TRACES)
    variance = (np.var(others) * len(others) + PRIOR_TRACES * prior) / (len(others) - 1 + PRIOR_TRACES)
    return float(np.mean(others)), np.sqrt(variance / len(others)), np.sqrt(variance)


@pytest.mark.slow
def test_increments_are_differences_of_the_values_of_traces_that_reached_the_turn(claimed) -> None:
    reward, places, result, increment, rows = claimed
    amount, error, valid = (np.asarray(rows.gather(x)) for x in (increment.credit, increment.stderr, increment.valid))
    last = np.append(places[1:, 0] != places[:-1, 0], True)
    for i, (trace, turn) in enumerate(places):
        now, stderr, spread = value(reward, trace, turn)
        after, later, _ = (reward[trace], spread, 0) if last[i] else value(reward, *places[i + 1])
        assert valid[i] == (np.isfinite(now) and np.isfinite(after))
        if valid[i]:
            assert amount[i] == pytest.approx(after - now, abs=1e-6)
            assert error[i] == pytest.approx(np.hypot(stderr, later), rel=1e-5)
    assert not valid[places[:, 1] == 3].any()  # nobody else plays a fourth turn: no claim
    assert np.asarray(rows.gather(result.valid)).all()  # its baseline is unbiased there all the same


def test_equal_outcomes_of_siblings_are_no_certainty() -> None:
    """Their spread is 0, and an error of 0 would call one outcome more a fact."""
    trace = np.repeat(np.arange(8), 2)
    outcome = np.array([1.0, 1, 1, 1, 0, 1, 0, 1])
    graph, reward, rows = credit.from_columns(group=trace // 4, trace=trace, turn=np.arange(16), reward=outcome[trace])
    error = np.asarray(rows.gather(as_increment(graph, credit.turn_baseline(graph, reward)).stderr))
    assert np.all(error > 0.1)
