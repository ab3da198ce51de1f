"""Player baselines against plain loops, on ragged games of three players."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import credit
from estimators.baselines import released
from estimators.baselines.players import spiral_rae_state


def games(seed: int) -> list[dict]:
    """Rows of nine games of two tasks; a player may be missing, move several times, and take several rows a turn."""
    rng = np.random.default_rng(seed)
    rows = []
    for trace in range(9):
        outcome = round(float(rng.normal()), 3)
        for turn, player in enumerate(rng.integers(0, 3, rng.integers(1, 7))):
            for _ in range(rng.integers(1, 3)):
                step = round(float(rng.normal()), 3)
                rows.append(
                    {
                        "group": trace % 2,
                        "trace": trace,
                        "agent": f"p{player}",
                        "turn": turn,
                        "reward": outcome,
                        "event_reward": step,
                    }
                )
    return rows


def columns(rows: list[dict]) -> tuple:
    return credit.from_columns(
        **{name: [row[name] for row in rows] for name in rows[0]}, events=128, traces=32, agents=64
    )


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("over", ["batch", "group"])
@pytest.mark.parametrize("scale", ["none", "std"])
@pytest.mark.parametrize("seed", range(2))
def test_marshal_against_a_loop(seed: int, scale: str, over: str) -> None:
    rows = games(seed)
    earned: dict[tuple, float] = defaultdict(float)
    for row in rows:
        earned[row["trace"], row["agent"], row["turn"]] += row["event_reward"]
    to_go = {}
    for trace, agent, turn in earned:
        mine = sorted(k for t, a, k in earned if (t, a) == (trace, agent))
        outcome = next(r["reward"] for r in rows if r["trace"] == trace)
        later = [k for k in mine if k >= turn]
        to_go[trace, agent, turn] = sum(
            0.9**i * (earned[trace, agent, k] + (outcome if k == mine[-1] else 0.0)) for i, k in enumerate(later)
        )
    expected, valid = [], []
    for row in rows:
        pool = [
            g for (t, a, _), g in to_go.items() if a == row["agent"] and (over == "batch" or t % 2 == row["trace"] % 2)
        ]
        x = to_go[row["trace"], row["agent"], row["turn"]]
        valid.append(len(pool) > 1)
        spread = np.std(pool, ddof=1) + 1e-6 if scale == "std" and len(pool) > 1 else 1.0
        expected.append((x - np.mean(pool)) / spread if len(pool) > 1 else 0.0)
    graph, reward, at = columns(rows)
    result = credit.marshal(
        graph, reward, event_reward=at.event_reward, discount=0.9, over=over, scale=scale, by="role_name"
    )
    np.testing.assert_allclose(at.gather(result.advantage), expected, rtol=2e-5, atol=2e-5)
    assert np.asarray(at.gather(result.valid)).tolist() == valid


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("seed", range(3))
def test_spiral_rae_against_a_loop(seed: int) -> None:
    rows = games(seed)
    rng = np.random.default_rng(seed)
    names = list(dict.fromkeys(row["agent"] for row in rows))
    initial = np.zeros(64, np.float32)
    initial[:3] = rng.normal(size=3)
    average = {name: float(initial[i]) for i, name in enumerate(names)}
    expected = {}
    for trace in range(9):
        for player in {row["agent"] for row in rows if row["trace"] == trace}:
            mine = [row for row in rows if (row["trace"], row["agent"]) == (trace, player)]
            reward = mine[0]["reward"] + sum(row["event_reward"] for row in mine)
            turns = sorted({row["turn"] for row in mine})
            for i, turn in enumerate(turns):
                expected[trace, player, turn] = (reward - average[player]) * 0.8 ** (len(turns) - 1 - i)
            average[player] = 0.7 * average[player] + 0.3 * reward
    graph, reward, at = columns(rows)
    result = credit.spiral_rae(graph, reward, event_reward=at.event_reward, decay=0.7, discount=0.8, initial=initial)
    found = at.gather(result.advantage)
    np.testing.assert_allclose(found, [expected[r["trace"], r["agent"], r["turn"]] for r in rows], rtol=1e-5, atol=1e-5)
    state = spiral_rae_state(graph, reward, event_reward=at.event_reward, decay=0.7, initial=initial)
    np.testing.assert_allclose(state[: len(names)], list(average.values()), rtol=1e-5, atol=1e-5)
    assert not np.asarray(state)[3:].any()


@pytest.mark.slow
@pytest.mark.parametrize("normalise", ["none", "mean", "mean_std"])
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.sampled
def test_marshal_tokens_against_a_loop(whiten: bool, normalise: str) -> None:
    rng = np.random.default_rng(3)
    n, width = 7, 11
    mask = rng.random((n, width)) < 0.6
    turn_end = mask & (rng.random((n, width)) < 0.4)
    rewards = np.where(turn_end, rng.integers(-4, 5, (n, width)) / 4, 0).astype(np.float32)
    player = np.array([0, 2, 2, 0, 1, 1, 0])
    x = rewards.astype(np.float64)
    # Sums of quarters are exact, so that equal sums are one value; after centring that is a matter of the last bit.
    centre = normalise == "none"
    for p in range(3 if centre else 0):
        of_p = player == p
        x[of_p] = np.where(turn_end[of_p], x[of_p] - rewards[of_p][turn_end[of_p]].mean(dtype=np.float64), 0)
    x, seen = x[:, 1:], mask[:, 1:]
    g = np.cumsum(x[:, ::-1], axis=1)[:, ::-1]
    if normalise != "none":
        for p in range(3):
            values = np.unique(g[player == p])
            spread = values.std(ddof=1) + 1e-6 if normalise == "mean_std" else 1.0
            g[player == p] = (g[player == p] - values.mean()) / spread
    if whiten:
        g = (g - g[seen].mean()) / np.sqrt(g[seen].var(ddof=1) + 1e-8)
    options = {"normalise": normalise, "whiten": whiten, "centre": centre, "whiten_rewards": False}
    found = released.marshal_tokens(rewards, turn_end, mask, player, **options)
    np.testing.assert_allclose(found, np.where(seen, g, 0), rtol=1e-5, atol=1e-5)


def test_wrong_options_are_refused() -> None:
    graph, reward, _ = columns(games(0))
    with pytest.raises(ValueError, match="by is 'team'"):
        credit.spiral_rae(graph, reward, by="team")
    with pytest.raises(ValueError, match="scale is 'variance'"):
        credit.marshal(graph, reward, scale="variance")
    with pytest.raises(ValueError, match="normalise is 'max'"):
        released.marshal_tokens(
            np.zeros((2, 3)), np.zeros((2, 3), bool), np.zeros((2, 3), bool), np.zeros(2, int), normalise="max"
        )
    with pytest.raises(ValueError, match="scale is 'variance'"):
        released.distinct_normalised(np.zeros(3, np.float32), np.zeros(3, int), scale="variance")
