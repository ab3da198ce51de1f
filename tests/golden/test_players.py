"""SPIRAL and MARSHAL against the numbers that the authors' own code gave."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import credit
from estimators.baselines import released
from estimators.baselines.players import spiral_rae_state
from estimators.tokens.turn_masks import turn_tokens

pytestmark = pytest.mark.optimised

Batch = Callable[..., tuple]
Oracle = Callable[[str], dict]


def close(found: object, expected: object) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


def play(batch: Batch, games: list[dict]) -> tuple:
    """Games as traces: the turns of player 0, then those of player 1; each player's reward at its last turn."""
    rows: dict[str, list] = {name: [] for name in ("trace", "agent", "row_reward", "turn")}
    for g, game in enumerate(games):
        for player in (0, 1):
            for turn in range(game["n_turns"][player]):
                last = turn == game["n_turns"][player] - 1
                for name, x in zip(
                    rows, (g, f"p{player}", float(game["rewards"][str(player)]) * last, turn), strict=True
                ):
                    rows[name].append(x)
    turns = rows.pop("turn")
    graph, reward, event_reward, _, row = batch(group=[0] * len(turns), **rows)
    turn_ids = np.zeros(graph.num_events, np.int32)
    turn_ids[row] = np.arange(len(turns))  # each row is a turn, also where a player moves twice
    return credit.EventGraph(**{**vars(graph), "turn_ids": turn_ids}), reward, event_reward, row


@pytest.mark.slow
def test_spiral_rae(batch: Batch, oracle: Oracle) -> None:
    case = oracle("spiral_rae")
    games, outputs = case["inputs"]["games"], case["outputs"]["games"]
    graph, reward, event_reward, row = play(batch, games)
    decay = case["inputs"]["ema_decay"]
    found = credit.spiral_rae(graph, reward, event_reward=event_reward, decay=decay).advantage[row]
    close(found, [a for game in outputs for _, a in game["adv"]])
    for games_seen in range(1, len(games) + 1):
        seen = play(batch, games[:games_seen])
        state = spiral_rae_state(*seen[:2], event_reward=seen[2], decay=decay)
        close(state[:2], outputs[games_seen - 1]["ema_after"])


@pytest.mark.slow
def test_spiral_rae_goes_on_where_the_batch_before_ended(batch: Batch, oracle: Oracle) -> None:
    case = oracle("spiral_rae")
    games, outputs = case["inputs"]["games"], case["outputs"]["games"]
    first, second = play(batch, games[:2]), play(batch, games[2:])
    state = np.asarray(spiral_rae_state(*first[:2], event_reward=first[2]))
    initial = np.zeros(second[0].num_agents, np.float32)
    initial[:2] = state[:2]
    found = credit.spiral_rae(*second[:2], event_reward=second[2], initial=initial).advantage[second[3]]
    close(found, [a for game in outputs[2:] for _, a in game["adv"]])


@pytest.mark.slow
def test_spiral_rae_discounts_earlier_turns(batch: Batch, oracle: Oracle) -> None:
    case = oracle("spiral_rae")
    graph, reward, event_reward, row = play(batch, [{"rewards": {"0": 1, "1": -1}, "n_turns": [3, 1]}])
    found = credit.spiral_rae(graph, reward, event_reward=event_reward, discount=0.9).advantage[row]
    close(found, case["outputs"]["gamma0.9_first_game_3turns"])


@pytest.mark.slow
def test_spiral_rae_updates_a_player_who_had_no_turn(batch: Batch) -> None:
    """Games (1, -1), the second player without a turn, then (1, -1): the original gives it -0.95, not -1."""
    graph, reward, event_reward, row = play(batch, [{"rewards": {"0": 1, "1": -1}, "n_turns": [1, 1]}] * 2)
    action_mask = np.asarray(graph.action_mask).copy()
    action_mask[row[1]] = False  # the game ended before it could move
    graph = dataclasses.replace(graph, action_mask=action_mask)
    found = credit.spiral_rae(graph, reward, event_reward=event_reward).advantage[row]
    close(found, [1.0, 0.0, 0.95, -0.95])


CONFIGURATIONS = {
    "shipped(mean,sep,whiten_r,advnorm=mean,whiten_a)": {},
    "no_whiten_rewards": {"whiten_rewards": False},
    "no_adv_norm_no_whiten": {"whiten_rewards": False, "normalise": "none", "whiten": False},
    "advnorm_mean_std_only": {"whiten_rewards": False, "normalise": "mean_std", "whiten": False},
    "gamma0.9": {"discount": 0.9},
    "identity_not_sep+whiten_rewards_only(length drift demo)": {
        "centre": False,
        "normalise": "none",
        "whiten": False,
    },
}


def test_all_configurations_are_tried(oracle: Oracle) -> None:
    assert set(oracle("marshal_turn_level")["outputs"]) == set(CONFIGURATIONS)


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.sampled
def test_marshal_tokens(oracle: Oracle, name: str) -> None:
    case = oracle("marshal_turn_level")
    given = case["inputs"]
    player = np.array([int(group[-1]) for group in given["group_ids"]])
    found = released.marshal_tokens(
        np.array(given["token_rewards"], np.float32),
        np.array(given["turn_end"]),
        np.array(given["response_mask"]),
        player,
        **CONFIGURATIONS[name],
    )
    close(found, case["outputs"][name]["advantages"])


def test_marshal_normalize_unique(oracle: Oracle) -> None:
    case = oracle("marshal_normalize_unique")
    x = np.array(case["inputs"]["x"], np.float32)
    key = np.zeros(len(x), np.int32)
    close(released.distinct_normalised(x, key), case["outputs"]["mean"])
    close(released.distinct_normalised(x, key, scale="std"), case["outputs"]["mean_std"])
    constant = released.distinct_normalised(np.full(3, 0.1, np.float32), key[:3], scale="std")
    assert np.asarray(constant).tolist() == case["outputs"]["constant"]


@pytest.mark.parametrize(("output", "scale"), [("mean", "none"), ("mean_std", "std")])
@pytest.mark.sampled
def test_marshal_score_normalize(batch: Batch, oracle: Oracle, output: str, scale: str) -> None:
    """With one turn a trace the method is the normalisation of scores."""
    case = oracle("marshal_score_normalize")
    x = case["inputs"]["x"]
    graph, reward, _, _, row = batch(group=[0] * 4, trace=list(range(4)), agent=["p0"] * 4, reward=x)
    close(credit.marshal(graph, reward, scale=scale).advantage[row], case["outputs"][output])
    constant = credit.marshal(graph, np.full_like(reward, 0.1), scale=scale).advantage[row]
    assert not np.asarray(constant).any()


@pytest.mark.slow
@pytest.mark.parametrize(("output", "scale"), [("asym_clip", "std"), ("identity", "none"), ("mean_std_const", "std")])
def test_marshal_score_normalize_in_its_other_settings(batch: Batch, oracle: Oracle, output: str, scale: str) -> None:
    """The clip of the oracle does not bind, "identity" subtracts nothing, and equal scores give exactly 0."""
    case = oracle("marshal_score_normalize")
    expected = case["outputs"][output]
    x = [0.1] * len(expected) if output == "mean_std_const" else case["inputs"]["x"]
    graph, reward, _, _, row = batch(group=[0] * len(x), trace=list(range(len(x))), agent=["p0"] * len(x), reward=x)
    result = credit.marshal(graph, reward, scale=scale)
    close((result.credit if output == "identity" else result.advantage)[row], expected)


def test_marshal_score_normalize_under_a_mask(batch: Batch, oracle: Oracle) -> None:
    """Three scores count, equally spaced by their standard deviation of 2; traces without an outcome are masked."""
    expected = np.ravel(oracle("marshal_score_normalize")["outputs"]["masked_mean_std"])
    x = np.array([1.0, np.nan, 5.0, 3.0, np.nan, np.nan], np.float32)
    graph, reward, _, _, row = batch(group=[0] * 6, trace=list(range(6)), agent=["p0"] * 6, reward=[0.0] * 6)
    reward = np.array(reward)
    reward[np.asarray(graph.trace_ids)[row]] = x
    close(credit.marshal(graph, reward, scale="std").advantage[row], expected)


@pytest.mark.slow
def test_marshal_masks(oracle: Oracle) -> None:
    case = oracle("marshal_masks")
    given, outputs = case["inputs"], case["outputs"]
    ids, scores = np.array(given["ids"]), np.array([given["turn_scores"]], np.float32)
    options = {"start": given["im_start"], "end": given["im_end"], "header": given["assistant_hdr"]}
    found = turn_tokens(ids, scores, **options)
    close(found.response, outputs["response_mask"])
    close(found.turn_end, outputs["turn_end"])
    close(found.after_prompt, outputs["non_prompt_mask"])
    close(found.rewards, outputs["scores"])
    cut = turn_tokens(ids[:, :-1], scores, **options)  # the last turn broken off: its reward moves to the last column
    assert np.flatnonzero(cut.turn_end[0]).tolist() == [12, 19] and float(cut.rewards[0, 19]) == 1.0
    with pytest.raises(ValueError, match="expected it to begin with start"):
        turn_tokens(ids, scores, start=1, end=9, header=[2, 3])
