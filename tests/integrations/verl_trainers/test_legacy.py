"""verl 0.9.1 for real: its registry of estimators, and its legacy `compute_advantage`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

verl = pytest.importorskip("verl", reason="verl is not installed here; `make integrations` runs this")
tq = pytest.importorskip("transfer_queue", reason="TransferQueue is not installed here")

import torch  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.trainer.ppo import core_algos  # noqa: E402
from verl.trainer.ppo.ray_trainer import compute_advantage as compute_advantage_of_verl  # noqa: E402

from credit.integrations.verl import compute_advantage, method_names  # noqa: E402
from graphs.errors import CreditError  # noqa: E402

from .batches import TOLERANCE, legacy, row_values  # noqa: E402


def test_every_method_is_registered() -> None:
    assert {f"credit_{name}" for name in method_names()} <= set(core_algos.ADV_ESTIMATOR_REGISTRY)


@pytest.mark.parametrize(("theirs", "ours"), [("grpo", "credit_verl_grpo"), ("rloo", "credit_verl_rloo")])
def test_legacy_by_name(theirs: str, ours: str) -> None:
    draw = random.Random(7)
    scores, uid = [draw.gauss(0, 1) for _ in range(40)], [f"q{i % 5}" for i in range(40)]
    want = compute_advantage_of_verl(legacy(scores, uid), theirs, config=None)
    got = compute_advantage_of_verl(legacy(scores, uid), ours, config=None)
    assert row_values(got) == pytest.approx(row_values(want), abs=TOLERANCE)


def test_legacy_with_executions_and_agents() -> None:
    data = legacy(
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        ["q"] * 6,
        traj_uid=["a", "a", "a", "b", "c", "d"],
        agent_id=["s", "v", "s", "s", "s", "s"],
    )
    result = compute_advantage(data, "credit_rloo")
    assert row_values(result) == pytest.approx([1, 1, 1, -1 / 3, -1 / 3, -1 / 3], abs=TOLERANCE)
    assert result.meta_info["credit_metrics"]["credit/traces"] == 4
    rows = compute_advantage(legacy([1.0, 0.0], ["q", "q"]), "credit_rloo")
    assert row_values(rows) == pytest.approx([1, -1], abs=TOLERANCE)


@pytest.mark.parametrize(("theirs", "ours"), [("grpo", "credit_verl_grpo"), ("rloo", "credit_verl_rloo")])
def test_legacy_counts_a_penalty_in_the_reward(theirs: str, ours: str) -> None:
    """`token_level_rewards` hold a KL that `token_level_scores` do not: 40 rows against verl's own."""
    draw = random.Random(13)
    scores, uid = [draw.gauss(0, 1) for _ in range(40)], [f"q{i % 5}" for i in range(40)]
    penalties = [abs(draw.gauss(0, 1)) for _ in range(40)]

    def batch(**ids: list[Any]) -> DataProto:
        return penalised(legacy(scores, uid, **ids), penalties)

    want = row_values(compute_advantage_of_verl(batch(), theirs, config=None))
    for given in (batch(), batch(traj_uid=[f"t{i}" for i in range(40)])):
        assert row_values(compute_advantage(given, ours)) == pytest.approx(want, abs=TOLERANCE)
    bare = row_values(compute_advantage_of_verl(legacy(scores, uid), theirs, config=None))
    assert np.abs(np.subtract(want, bare)).max() > 0.1


def test_a_penalty_of_an_execution_is_that_of_its_rows() -> None:
    """Returns 1 - 0.1 - 0.2 and 0 - 0.3 - 0.4: leave-one-out gives 1.4. As with sessions."""
    data = legacy([1.0, 1.0, 0.0, 0.0], ["q"] * 4, traj_uid=["a", "a", "b", "b"])
    result = compute_advantage(penalised(data, [0.1, 0.2, 0.3, 0.4]), "credit_rloo")
    assert row_values(result) == pytest.approx([1.4, 1.4, -1.4, -1.4], abs=TOLERANCE)


def penalised(data: DataProto, penalties: list[float]) -> DataProto:
    """The batch after verl's `apply_kl_penalty`: the rewards less something on each token of the policy."""
    mask = data.batch["response_mask"]
    data.batch["token_level_scores"] = data.batch["token_level_rewards"].clone()
    data.batch["token_level_rewards"] -= torch.tensor(penalties)[:, None] * mask / mask.sum(1, keepdim=True)
    return data


def test_legacy_rows_stand_in_the_order_of_their_turns() -> None:
    """verl's `_balance_batch` rearranges rows before the advantages; the turn baseline by hand, in both orders."""
    rows = [("a", 0, 1.0), ("a", 1, 1.0), ("a", 2, 1.0), ("b", 0, 0.0), ("b", 1, 0.0), ("c", 0, 0.5)]
    in_place, moved = turn_baselines(rows), turn_baselines([rows[i] for i in (2, 4, 1, 0, 5, 3)])
    want = {("a", 0): 0.75, ("a", 1): 1.0, ("a", 2): 1.0, ("b", 0): -0.75, ("b", 1): -0.5, ("c", 0): 0.0}
    assert in_place == pytest.approx(want, abs=TOLERANCE) and moved == pytest.approx(want, abs=TOLERANCE)


def turn_baselines(rows: list[tuple[str, Any, float]]) -> dict[tuple[str, Any], float]:
    trace, turn, reward = (list(column) for column in zip(*rows, strict=True))
    data = legacy(reward, ["q"] * len(rows), rollout_id_list=trace, turn_index_list=turn)
    result = compute_advantage(data, "credit_turn_baseline")
    return dict(zip(zip(trace, turn, strict=True), row_values(result), strict=True))


def test_turns_without_an_order_are_refused() -> None:
    assert len(turn_baselines([("a", "first", 1.0), ("b", "first", 0.0)])) == 2, "one row an execution has no order"
    for turn, named in (("second", "'second' in row 1"), (None, "None in row 1"), (float("nan"), "nan in row 1")):
        with pytest.raises(CreditError, match=rf"'turn_index_list' of non_tensor_batch is {named}; expected a number"):
            turn_baselines([("a", 0, 1.0), ("a", turn, 1.0), ("b", 0, 0.0)])


def test_legacy_follows_the_switch_of_the_scale() -> None:
    """By the argument in `compute_advantage`, by the configuration in an estimator by name."""
    draw = random.Random(17)
    scores, uid = [draw.gauss(0, 1) for _ in range(40)], [f"q{draw.randrange(9)}" for _ in range(40)]
    want = row_values(compute_advantage_of_verl(legacy(scores, uid), "grpo", norm_adv_by_std_in_grpo=False))
    ours = compute_advantage(legacy(scores, uid), "credit_verl_grpo", norm_adv_by_std_in_grpo=False)
    assert row_values(ours) == pytest.approx(want, abs=TOLERANCE)
    by_name = compute_advantage_of_verl(
        legacy(scores, uid), "credit_verl_grpo", config={"norm_adv_by_std_in_grpo": False}
    )
    assert row_values(by_name) == pytest.approx(want, abs=TOLERANCE)


def test_every_division_by_a_groups_spread_can_be_left_out() -> None:
    """Twice the rewards, twice the advantages: what is left has no scale. A whitened batch keeps its own."""
    ids: dict[str, list[Any]] = {"traj_uid": ["a", "a", "b", "c"], "agent_id": ["s", "v", "s", "s"]}
    ids["turn"], uid, scores = [0, 1, 0, 0], ["q"] * 4, [1.0, 1.0, 0.25, 0.5]
    for name in ("grpo", "dr_mas", "mt_grpo", "trl_grpo", "agent_lightning_rows"):
        once, twice = (
            compute_advantage(legacy(given, uid, **ids), f"credit_{name}", norm_adv_by_std_in_grpo=False)
            for given in (scores, [2 * score for score in scores])
        )
        assert row_values(twice) == pytest.approx([2 * value for value in row_values(once)], abs=TOLERANCE), name
        assert max(map(abs, row_values(once))) > 0.1
    kept, whitened = (
        compute_advantage(legacy(scores, uid, **ids), "credit_reinforce_pp", norm_adv_by_std_in_grpo=switch)
        for switch in (False, True)
    )
    assert row_values(kept) == row_values(whitened)


def test_a_batch_without_uids_is_named() -> None:
    data = legacy([1.0, 0.0], ["q", "q"])
    data.non_tensor_batch.pop("uid")
    with pytest.raises(CreditError, match="credit_rloo needs the uid of each row; the batch has no 'uid'"):
        compute_advantage(data, "credit_rloo")
