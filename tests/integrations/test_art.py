"""ART 0.5.18 for real: its local backend, from groups of trajectories to the packed tensors that its step reads.

The step itself needs a GPU (Unsloth); what runs here is everything before it, on a tokenizer made on the spot.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look-up of prices
pytest.importorskip("art", reason="ART is not installed here; `make integrations` runs this")

import art
from art.local import LocalBackend
from art.trajectories import History
from openai.types.chat.chat_completion import Choice
from pages import block
from timing import compare
from tiny import tiny_tokenizer

from credit.integrations.art import CreditLocalBackend

TOLERANCE = 2e-6


def messages(words: int) -> list[Any]:
    """A question and an answer of some tokens."""
    tokens = [{"token": f"token_id:{3 + i}", "logprob": -1.0, "bytes": [], "top_logprobs": []} for i in range(words)]
    answer = {
        "finish_reason": "stop",
        "index": 0,
        "message": {"role": "assistant", "content": "cat"},
        "logprobs": {"content": tokens},
    }
    return [{"role": "user", "content": "the cat"}, Choice.model_validate(answer)]


def trajectory(reward: float, words: int, *further: int) -> Any:
    """Own messages, and histories of further members; the number of words tells them apart."""
    histories = [History(messages_and_choices=messages(count)) for count in further]
    return art.Trajectory(messages_and_choices=messages(words), reward=reward, additional_histories=histories)


def packed(backend: Any, folder: Path, groups: list[Any], *, scale_rewards: bool = True) -> dict[int, list[float]]:
    """The advantages of what ART packs, by the number of trained tokens: all those of a history are one number."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    tokenizer.save_pretrained(folder)
    model = art.TrainableModel(name="m", project="p", base_model=str(folder))
    tensors = backend._get_packed_tensors(model, groups, 0.0, False, scale_rewards, False, 64, 8)
    found: dict[int, list[float]] = {}
    for values, mask, part in zip(
        tensors["advantages"], tensors["assistant_mask"].bool(), tensors["group_ids"], strict=True
    ):
        for one in part[mask].unique().tolist():
            kept = values[mask & (part == one)].tolist()
            assert len(set(kept)) == 1
            found.setdefault(len(kept), []).append(kept[0])
    return found


@pytest.mark.parametrize("scale_rewards", [True, False])
def test_arts_own_numbers_are_reproduced(tmp_path: Path, scale_rewards: bool) -> None:
    rewards = np.random.default_rng(3).normal(size=6).tolist()
    groups = [
        art.TrajectoryGroup([trajectory(reward, 2 + i) for i, reward in enumerate(rewards)][start : start + 3])
        for start in (0, 3)
    ]
    want = packed(LocalBackend(path=str(tmp_path)), tmp_path / "t", groups, scale_rewards=scale_rewards)
    backend = CreditLocalBackend(path=str(tmp_path), credit="grpo", options={"ddof": 0})
    got = packed(backend, tmp_path / "t", groups, scale_rewards=scale_rewards)
    assert set(want) == set(range(2, 8))
    assert {words: values[0] for words, values in got.items()} == pytest.approx(
        {words: values[0] for words, values in want.items()}, abs=TOLERANCE
    )
    assert backend.credit_metrics["credit/groups"] == 2


def test_members_of_a_team_are_compared_with_their_like(tmp_path: Path) -> None:
    """Planner and two workers against planner and worker, Dr. MAS by hand: a trajectory counts once for each member."""
    scope: dict[str, Any] = {"path": str(tmp_path)}
    exec(block("py", "CreditLocalBackend("), scope)
    group = art.TrajectoryGroup([trajectory(1.0, 2, 3, 4), trajectory(0.0, 5, 6)])
    found = packed(scope["backend"], tmp_path / "t", [group])
    planner, worker = np.std([1, 0], ddof=1) + 1e-6, np.std([1, 1, 0], ddof=1) + 1e-6
    want = {2: 0.5 / planner, 3: 1 / 3 / worker, 4: 1 / 3 / worker, 5: -0.5 / planner, 6: -2 / 3 / worker}
    assert {words: values[0] / found[2][0] for words, values in found.items()} == pytest.approx(
        {words: value / want[2] for words, value in want.items()}, abs=TOLERANCE
    ), "ART multiplies all advantages of a batch by one number"
    assert scope["backend"].credit_metrics["credit/traces"] == 2


def test_what_has_nothing_to_be_compared_with_is_left_out(tmp_path: Path) -> None:
    groups = [art.TrajectoryGroup([trajectory(1.0, 2)]), art.TrajectoryGroup([trajectory(1.0, 3), trajectory(0.0, 4)])]
    found = packed(CreditLocalBackend(path=str(tmp_path)), tmp_path / "t", groups)
    assert set(found) == {3, 4} and [found[3][0], found[4][0]] == pytest.approx([1.0, -1.0], abs=TOLERANCE)


def test_overhead_beside_a_plain_loop(tmp_path: Path) -> None:
    """Rewards to advantages, which ART computes in the middle of its function that tokenizes."""
    backend = CreditLocalBackend(path=str(tmp_path), credit="grpo", options={"ddof": 0, "eps": 1e-6, "rows": 1024})
    draw = np.random.default_rng(4)

    @functools.cache
    def batch(rows: int) -> list[Any]:
        return [[art.Trajectory(reward=reward) for reward in row] for row in draw.normal(size=(rows // 8, 8)).tolist()]

    def ours(groups: list[Any]) -> list[float]:
        places = [(number, trace, 0) for number, group in enumerate(groups) for trace in range(len(group))]
        return backend._answers(groups, places, True)

    def theirs(groups: list[Any]) -> list[float]:
        rewards = [np.array([trajectory.reward for trajectory in group]) for group in groups]
        return [one for row in rewards for one in ((row - row.mean()) / (row.std() + 1e-6)).tolist()]

    compare("ART, beside a plain loop", batch, ours, theirs, backend._of_scale[True],
            ran="`LocalBackend` from groups to packed tensors")  # fmt: skip
