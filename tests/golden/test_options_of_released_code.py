"""What the released code also offers: options and corner cases, against numbers worked out from its formulas."""

from __future__ import annotations

import numpy as np
import pytest

import credit
import estimators
from estimators.base import Reason
from estimators.baselines import released
from estimators.tokens import rows as tokens
from graphs.errors import CreditError


def close(found: object, expected: object, atol: float = 2e-6) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


@pytest.mark.slow
def test_foldgrpo_fork_keeps_each_rows_own_reward() -> None:
    """Rows 1, .8 and 0, 0 of two traces: statistics over the first rows, 1 and 0."""
    graph, reward, rows = credit.from_columns(group=[0] * 4, trace=[0, 0, 1, 1], row_reward=[1, 0.8, 0, 0])
    found = released.foldgrpo_fork(graph, reward, row_reward=rows.event_reward)
    sd = np.std([1, 0], ddof=1) + 1e-6
    close(rows.gather(found.advantage), np.array([0.5, 0.3, -0.5, -0.5]) / sd)
    plain = released.foldgrpo_fork(graph, reward, row_reward=rows.event_reward, scale="none")
    close(rows.gather(plain.advantage), [0.5, 0.3, -0.5, -0.5])


@pytest.mark.slow
def test_foldgrpo_fork_marks_take_the_best_and_worst_of_all_rows() -> None:
    graph, reward, rows = credit.from_columns(group=[0] * 4, trace=[0, 0, 1, 1], row_reward=[0.8, 1, 0, 0])
    mark = np.zeros(graph.num_events, np.float32)
    mark[2], mark[0] = 1, -1
    found = released.foldgrpo_fork(graph, reward, row_reward=rows.event_reward, event_reward=mark, scale="none")
    close(rows.gather(found.advantage), [-0.4, 0.6, 0.6, -0.4])  # first rows .8 and 0; the best row is no first one


@pytest.mark.slow
def test_agent_lightning_without_the_division() -> None:
    graph, reward, rows = credit.from_columns(group=[0] * 4, trace=[0, 0, 1, 2], reward=[1.0, 1.0, 0.0, 0.5])
    found = rows.gather(estimators.agent_lightning(graph, reward, scale="none").advantage)
    close(found, [0.5, 0.5, -0.5, 0.0])


@pytest.mark.slow
def test_magrpo_raw_answers_a_lone_joint_turn() -> None:
    graph, reward, rows = credit.from_columns(
        group=[0], trace=[0], reward=[0.75], evidence={"context": ["c"], "node": ["n"]}
    )
    tree = {name: rows.evidence[name] for name in ("context", "node")}
    assert float(estimators.magrpo(graph, reward, **tree, baseline="raw").advantage[0]) == 0.75
    assert int(estimators.magrpo(graph, reward, **tree, baseline="none").reason[0]) == Reason.NO_SIBLING


@pytest.mark.slow
def test_c3_magrpo_takes_the_mean_of_leaf_rows() -> None:
    graph, reward, rows = credit.from_columns(
        group=[0] * 6, trace=[0, 0, 0, 1, 1, 1], row_reward=[9.0, 1.0, 0.5, 7.0, 0.0, 0.5]
    )
    leaf = np.zeros(graph.num_events, bool)
    leaf[[1, 2, 4, 5]] = True
    options = {"event_reward": rows.event_reward, "leaf": leaf}
    close(rows.gather(estimators.c3_magrpo(graph, reward, **options, normalise=False).credit), [0.75] * 3 + [0.25] * 3)
    leaf[[4, 5]] = False  # a trace without a leaf: the mean of all its rows
    close(rows.gather(estimators.c3_magrpo(graph, reward, **options, normalise=False).credit), [0.75] * 3 + [2.5] * 3)
    with pytest.raises(CreditError, match="leaf is given, and rows are compared by task, agent"):
        estimators.c3_magrpo(graph, reward, **options, by="agent_name")
    with pytest.raises(CreditError, match="leaf is int32"):
        estimators.c3_magrpo(graph, reward, leaf=np.zeros(graph.num_events, np.int32))


@pytest.mark.slow
def test_marshal_clips_and_pools() -> None:
    """Two players with one turn each, rewards 3 and -1; nothing is whitened or made distinct."""
    rewards = np.array([[0, 0, 3.0], [0, 0, -1.0]], np.float32)
    turn_end = np.array([[False, False, True]] * 2)
    plain = {"whiten_rewards": False, "normalise": "none", "whiten": False}
    mask, player = np.array([[False, True, True]] * 2), np.array([0, 1])

    def run(**also: object) -> np.ndarray:
        return np.asarray(released.marshal_tokens(rewards, turn_end, mask, player, **{**plain, **also}))

    close(run(), 0)  # each is its player's mean
    close(run(pooled=True), [[2, 2], [-2, -2]])
    close(run(centre=False, reward_clip=0.5), [[0.5, 0.5], [-0.5, -0.5]])
    close(run(centre=False, advantage_clip=2.0), [[2, 2], [-1, -1]])


@pytest.mark.slow
def test_whitening_keeps_its_digits_after_a_large_first_token() -> None:
    """48 rows of 12 tokens of 0.1 and 0.3, the first row -1.6: the error was 1.4e-5."""
    x = np.where(np.arange(48)[:, None] % 2 == 0, 0.1, 0.3) * np.ones((48, 12))
    x[0] = -1.6
    x = x.astype(np.float32)
    exact = (x.astype(np.float64) - x.mean(dtype=np.float64)) / np.sqrt(x.astype(np.float64).var(ddof=1) + 1e-8)
    for values, expected in ((x, exact), (x[::-1], exact[::-1])):
        close(tokens.masked_whiten(values, np.ones(x.shape, bool)), expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("along", ["trace", "agent"])
@pytest.mark.sampled
def test_gae_takes_a_bootstrap_value_where_a_trace_was_cut_off(along: str) -> None:
    graph, reward, rows = credit.from_columns(
        group=[0] * 4, trace=[0, 0, 1, 1], reward=[0.0, 0.0, 1.0, 1.0], evidence={"value": [0.2, 0.5, 0.4, 0.6]}
    )
    cut = np.full(graph.num_traces, np.nan, np.float32)
    cut[0] = 0.7
    options = {"value": rows.evidence["value"], "discount": 0.9, "lambda_": 0.8, "along": along}
    found = rows.gather(np.asarray(estimators.gae(graph, reward, **options, bootstrap=cut).advantage))
    last, end = 0.9 * 0.7 - 0.5, 1 - 0.6
    close(found, [0.9 * 0.5 - 0.2 + 0.72 * last, last, 0.9 * 0.6 - 0.4 + 0.72 * end, end])
    with pytest.raises(CreditError, match="along is 'causal'"):
        estimators.gae(graph, reward, **options | {"along": "causal"}, bootstrap=cut)
    with pytest.raises(CreditError, match="one entry for each trace"):
        estimators.gae(graph, reward, **options, bootstrap=cut[:3])


def test_gae_over_tokens_takes_a_bootstrap_value() -> None:
    rewards, values = np.zeros((2, 3), np.float32), np.array([[0.2, 0.5, 9.0], [0.4, 9.0, 9.0]], np.float32)
    mask = np.array([[True, True, False], [True, False, False]])
    cut = np.array([0.7, 0.0], np.float32)
    found, _ = tokens.gae(rewards, values, mask, 0.9, 0.8, bootstrap=cut)
    last = 0.9 * 0.7 - 0.5
    close(found, [[0.9 * 0.5 - 0.2 + 0.72 * last, last, 0], [-0.4, 0, 0]])
    with pytest.raises(ValueError, match="bootstrap has shape"):
        tokens.gae(rewards, values, mask, bootstrap=cut[:1])
