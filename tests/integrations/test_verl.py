"""verl 0.9.1 for real: its registry, its v1 trainers on a TransferQueue, its legacy `compute_advantage`.

The training step itself needs GPUs (FSDP workers and a rollout engine); what runs here is everything from the batch in
the TransferQueue to the advantages written back to it, by the class that the configuration names.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest

verl = pytest.importorskip("verl", reason="verl is not installed here; `make integrations` runs this")
tq = pytest.importorskip("transfer_queue", reason="TransferQueue is not installed here")

import ray  # noqa: E402
import torch  # noqa: E402
from hydra import compose, initialize_config_module  # noqa: E402
from pages import block  # noqa: E402
from timing import compare  # noqa: E402
from verl import DataProto  # noqa: E402
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput  # noqa: E402
from verl.trainer.ppo import core_algos  # noqa: E402
from verl.trainer.ppo.ray_trainer import compute_advantage as compute_advantage_of_verl  # noqa: E402
from verl.trainer.ppo.v1 import PPOTrainerSync, get_trainer_cls  # noqa: E402
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories  # noqa: E402
from verl.utils.tensordict_utils import list_of_dict_to_tensordict  # noqa: E402

from credit.integrations import RowAdvantages  # noqa: E402
from credit.integrations import verl as verl_integration  # noqa: E402
from credit.integrations.verl import METHOD_NAMES, compute_advantage  # noqa: E402
from credit.integrations.verl_sessions import session_advantage  # noqa: E402
from credit.ray import RemoteRowAdvantages  # noqa: E402
from graphs.errors import CreditError  # noqa: E402

TOLERANCE = 2e-6


@pytest.fixture(scope="module")
def queue() -> Iterator[None]:
    ray.init(num_cpus=16, include_dashboard=False, log_to_driver=False, configure_logging=False)
    config = configuration().transfer_queue
    config.backend.SimpleStorage.num_data_storage_units = 1
    tq.init(config)
    yield
    tq.close()
    ray.shutdown()


def configuration(*overrides: str) -> Any:
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=list(overrides))


def trainer(estimator: str, mode: str = "credit_sync", *more: str) -> Any:
    """A trainer as `TaskRunnerV1` makes it, from the two lines that a user writes."""
    lines = block("yaml", "credit_sync").replace("credit_sync", mode).replace("credit_dr_mas", estimator)
    lines = [line.replace(": ", "=") for line in lines.splitlines()]
    config = configuration(*lines, *more)
    return get_trainer_cls(config.trainer.v1.trainer_mode)(config=config)


def put(outputs: dict[str, tuple[float, dict[str, Any]]], *, padded: int = 0) -> Any:
    """A batch as verl's agent loop writes it: one `AgentLoopOutput` a key, {uid}_{session}_{index}."""
    fields, tags = [], []
    for position, (key, (reward, extra)) in enumerate(outputs.items()):
        tokens = 2 + position % 3
        output = AgentLoopOutput(
            prompt_ids=[1, 2],
            response_ids=[3] * tokens,
            response_mask=[1] * (tokens - 1) + [position % 2],
            reward_score=reward,
            metrics=AgentLoopMetrics(),
            extra_fields=extra,
        )
        fields.append({**output.as_dict(), "uid": key.rsplit("_", 2)[0]})
        tags.append({"status": "success", "is_padding": position >= len(outputs) - padded})
    return tq.kv_batch_put(
        keys=list(outputs), partition_id="train", fields=list_of_dict_to_tensordict(fields), tags=tags
    )


def advantages_of(trainer: Any, batch: Any, metrics: dict[str, Any] | None = None) -> tuple[dict[str, float], Any]:
    """Run the trainer's `_compute_advantage` and read back, from the queue, one number a row."""
    trainer._compute_advantage(batch, {} if metrics is None else metrics)
    data = tq.kv_batch_get(
        keys=batch.keys, partition_id="train", select_fields=["advantages", "returns", "response_mask"]
    )
    result = {}
    for key, row, mask in zip(batch.keys, data["advantages"].unbind(), data["response_mask"].unbind(), strict=True):
        assert (row[mask == 0] == 0).all()
        values = row[mask == 1]
        assert len(values) and (values == values[0]).all()
        result[key] = float(values[0])
    return result, data


def shuffled(outputs: dict[str, Any]) -> dict[str, Any]:
    """Rows in another order, as `_balance_batch` leaves them."""
    items = list(outputs.items())
    random.Random(3).shuffle(items)
    return dict(items)


def test_a_session_counts_once_however_many_rows_it_has(queue: None) -> None:
    """One session of three rows earns 1, three of one row 0: leave-one-out gives 1 and -1/3, rows as traces ±0.6."""
    outputs = {"q_0_0": (1.0, {}), "q_0_1": (1.0, {}), "q_0_2": (1.0, {})}
    outputs |= {f"q_{session}_0": (0.0, {}) for session in (1, 2, 3)}
    metrics: dict[str, Any] = {}
    result, _ = advantages_of(trainer("credit_rloo"), put(shuffled(outputs)), metrics)
    assert result == pytest.approx({**dict.fromkeys(("q_0_0", "q_0_1", "q_0_2"), 1.0),
                                    **{f"q_{session}_0": -1 / 3 for session in (1, 2, 3)}}, abs=TOLERANCE)  # fmt: skip
    assert metrics["credit/groups_that_teach"] == 1 and metrics["credit/traces"] == 4


def test_an_actor_of_the_cluster_computes_the_same(queue: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer's ids and rewards go to an actor, its tokens stay."""
    outputs = {"q_0_0": (1.0, {}), "q_0_1": (1.0, {}), "q_1_0": (0.0, {}), "q_2_0": (0.5, {})}
    made = trainer("credit_rloo")
    monkeypatch.setattr(type(made), "make_advantages", lambda self, name, options: RemoteRowAdvantages(name, **options))
    result, _ = advantages_of(made, put(shuffled(outputs)))
    assert result == pytest.approx({"q_0_0": 0.75, "q_0_1": 0.75, "q_1_0": -0.75, "q_2_0": 0.0}, abs=TOLERANCE)
    assert isinstance(made._advantages, RemoteRowAdvantages)


def test_agents_of_a_team_are_compared_with_their_like(queue: None) -> None:
    """Two sessions, solver and critic in each, the solver of the first twice: Dr. MAS by hand."""
    outputs = {
        "q_0_0": (1.0, {"agent": "solver", "turn": 0}),
        "q_0_1": (1.0, {"agent": "critic", "turn": 0}),
        "q_0_2": (1.0, {"agent": "solver", "turn": 1}),
        "q_1_0": (0.0, {"agent": "solver", "turn": 0}),
        "q_1_1": (0.0, {"agent": "critic", "turn": 0}),
    }
    result, _ = advantages_of(trainer("credit_dr_mas"), put(shuffled(outputs)))
    solver = np.std([1, 1, 0], ddof=1) + 1e-6
    critic = np.std([1, 0], ddof=1) + 1e-6
    assert result == pytest.approx(
        {
            "q_0_0": (1 - 2 / 3) / solver,
            "q_0_2": (1 - 2 / 3) / solver,
            "q_1_0": (0 - 2 / 3) / solver,
            "q_0_1": 0.5 / critic,
            "q_1_1": -0.5 / critic,
        },
        abs=TOLERANCE,
    )


def test_turns_stand_in_the_order_of_their_keys(queue: None) -> None:
    """What single rows earn counts from there on: the turn baseline by hand, rows shuffled."""
    outputs = {
        "q_0_0": (0.0, {"agent": "a", "turn": 0, "event_reward": 1.0}),
        "q_0_1": (0.0, {"agent": "a", "turn": 1, "event_reward": 0.0}),
        "q_1_0": (0.0, {"agent": "a", "turn": 0, "event_reward": 0.0}),
        "q_1_1": (0.0, {"agent": "a", "turn": 1, "event_reward": 4.0}),
    }
    result, _ = advantages_of(trainer("credit_turn_baseline"), put(shuffled(outputs)))
    assert result == pytest.approx({"q_0_0": 1 - 4, "q_0_1": 0 - 4, "q_1_0": 4 - 1, "q_1_1": 4 - 0}, abs=TOLERANCE)


def test_context_and_node_reach_the_method(queue: None) -> None:
    """C3: three messages drawn under one frozen context, each against the mean of the others."""
    fields = [{"agent": "a", "context": "c", "node": f"n{i}"} for i in range(3)]
    outputs = {f"q_{i}_0": (reward, fields[i]) for i, reward in enumerate((1.0, 0.0, 0.5))}
    result, _ = advantages_of(trainer("credit_c3"), put(outputs))
    assert result == pytest.approx({"q_0_0": 0.75, "q_1_0": -0.75, "q_2_0": 0.0}, abs=TOLERANCE)


def test_rows_that_fill_the_batch_change_nothing(queue: None) -> None:
    real = {f"q_{session}_0": (float(session % 2), {"agent": "a"}) for session in range(4)}
    bare, _ = advantages_of(trainer("credit_reinforce_batch"), put(real))
    padding = {f"padx_{i}_0": (0.0, {"agent": "a"}) for i in range(4)}
    filled, _ = advantages_of(trainer("credit_reinforce_batch"), put({**real, **padding}, padded=4))
    assert {key: filled[key] for key in real} == pytest.approx(bare, abs=TOLERANCE)
    assert all(filled[key] == 0 for key in padding)


@pytest.mark.parametrize(("theirs", "ours"), [("grpo", "credit_verl_grpo"), ("rloo", "credit_verl_rloo")])
def test_verls_own_estimators_are_reproduced(queue: None, theirs: str, ours: str) -> None:
    draw = random.Random(5)
    outputs = {f"q{i % 6}_{i // 6}_0": (draw.gauss(0, 1), {}) for i in range(48)}
    batch = put(outputs)
    want, _ = advantages_of(trainer(theirs, "sync"), batch)
    got, _ = advantages_of(trainer(ours), batch)
    delegated, _ = advantages_of(trainer(theirs), batch)
    assert got == pytest.approx(want, abs=TOLERANCE)
    assert delegated == want, "estimators of verl are left to verl"


def test_without_the_trainers_line_it_refuses(queue: None) -> None:
    batch = put({"q_0_0": (1.0, {}), "q_1_0": (0.0, {})})
    with pytest.raises(CreditError, match=r"trainer.v1.trainer_mode: credit_sync"):
        trainer("credit_rloo", "sync")._compute_advantage(batch, {})


def test_options_come_from_the_configuration(queue: None) -> None:
    batch = put({"q_0_0": (1.0, {}), "q_1_0": (0.0, {})})
    result, _ = advantages_of(trainer("credit_grpo", "credit_sync", "+algorithm.credit.eps=1.0"), batch)
    assert result["q_0_0"] == pytest.approx(0.5 / (np.sqrt(0.5) + 1.0), abs=TOLERANCE)


@pytest.mark.parametrize("mode", ["credit_sync", "credit_colocate_async", "credit_separate_async"])
def test_the_trainers_are_verls_own(mode: str) -> None:
    config = configuration(f"trainer.v1.trainer_mode={mode}")
    made = get_trainer_cls(mode)
    assert issubclass(made, get_trainer_cls(mode.removeprefix("credit_")))
    assert config.trainer.v1.trainer_mode == mode


def test_the_switch_of_the_scale_is_followed(queue: None) -> None:
    """`norm_adv_by_std_in_grpo: False` with verl's GRPO, by sessions; an option of the method goes before it."""
    draw, switch = random.Random(11), "algorithm.norm_adv_by_std_in_grpo=False"
    batch = put({f"q{draw.randrange(7)}_{i}_0": (draw.gauss(0, 1), {}) for i in range(40)})
    want, _ = advantages_of(trainer("grpo", "sync", switch), batch)
    for ours in ("credit_verl_grpo", "credit_agent_lightning"):
        got, _ = advantages_of(trainer(ours, "credit_sync", switch), batch)
        assert got == pytest.approx(want, abs=TOLERANCE)
    divided, _ = advantages_of(trainer("grpo", "sync"), batch)
    kept, _ = advantages_of(trainer("credit_verl_grpo", "credit_sync", switch, "+algorithm.credit.scaled=true"), batch)
    assert kept == pytest.approx(divided, abs=TOLERANCE)
    assert max(abs(want[key] - divided[key]) for key in want) > 0.01


def test_every_method_is_registered() -> None:
    assert {f"credit_{name}" for name in METHOD_NAMES} <= set(core_algos.ADV_ESTIMATOR_REGISTRY)


def legacy(scores: list[float], uid: list[str], **ids: list[Any]) -> DataProto:
    rewards = torch.zeros(len(scores), 4)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).repeat(len(scores), 1)[: len(scores)]
    rewards[:, 1] = torch.tensor(scores)
    arrays = {name: np.array(values, dtype=object) for name, values in {"uid": uid, **ids}.items()}
    return DataProto.from_dict(
        tensors={"token_level_rewards": rewards, "response_mask": mask}, non_tensors=arrays, meta_info={}
    )


def row_values(data: DataProto) -> list[float]:
    advantages, mask = data.batch["advantages"], data.batch["response_mask"].bool()
    assert (advantages[~mask] == 0).all()
    return [float(row[kept][0]) for row, kept in zip(advantages, mask, strict=True)]


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


def test_sessions_score_as_their_last_output_does() -> None:
    """A colocated reward model scores every output; verl takes the last. An output without `event_reward` earned 0."""
    keys = ["q_0_1", "q_1_1", "q_0_0", "q_1_0", "q_2_0"]
    data = legacy([1.0, 0.0, 0.2, 0.1, 0.25], ["q"] * 5)
    data.batch["token_level_scores"] = data.batch["token_level_rewards"].clone()
    advantages, grpo = RowAdvantages("agent_lightning"), core_algos.AdvantageEstimator.GRPO
    session_advantage(advantages, data, keys, None, [False] * 5)
    got = row_values(data)
    want = row_values(compute_advantage_for_multi_trajectories(data, keys, grpo, config=None))
    assert got == pytest.approx(want, abs=TOLERANCE)
    extra = [{"event_reward": 0.5}, {}, {}, {}, {}]
    session_advantage(RowAdvantages("rloo"), data, keys, extra, [False] * 5)
    assert row_values(data) == pytest.approx([1.375, -0.875, 1.375, -0.875, -0.5], abs=TOLERANCE)


def test_warmup_covers_a_kl_penalty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The penalty is 0 in the first step and becomes a column in a later one, which compiled there."""
    sizes = ("data.train_batch_size=2", "actor_rollout_ref.rollout.n=2")
    made = trainer("credit_rloo", "credit_sync", "algorithm.use_kl_in_reward=True", *sizes)
    monkeypatch.setattr(PPOTrainerSync, "on_train_begin", lambda self: None)
    made.on_train_begin()
    compiled = made._advantages.compilations
    data = legacy([1.0, 0.0, 0.5, 0.0], ["q"] * 4)
    for penalty in (0.0, 0.25):
        data.batch["token_level_scores"] = data.batch["token_level_rewards"] + penalty
        session_advantage(made._advantages, data, [f"q_{i}_0" for i in range(4)], None, [False] * 4)
    assert made._advantages.compilations == compiled == 2


def test_overhead_beside_verls_own() -> None:
    """At 1,024 rows of 64 tokens, by name as verl calls it; and no compilation while sizes vary."""
    advantages = verl_integration._advantages("verl_grpo", ())
    advantages.warmup(1024)
    ours_of_verl = core_algos.get_adv_estimator_fn("credit_verl_grpo")

    def batch(rows: int) -> dict[str, Any]:
        uid = np.array([f"{i // 8:08x}-uid" for i in range(rows)], dtype=object)
        rewards = torch.nn.functional.pad(torch.randn(rows, 1), (63, 0))
        return {"token_level_rewards": rewards, "response_mask": torch.ones(rows, 64, dtype=torch.int64), "index": uid}

    def ours(given: dict[str, Any]) -> Any:
        return ours_of_verl(**given)[0]

    def theirs(given: dict[str, Any]) -> Any:
        given["token_level_rewards"] = given["token_level_rewards"].clone()
        return core_algos.compute_grpo_outcome_advantage(**given)[0]

    some = batch(1000)
    assert torch.allclose(ours(some), theirs(some), atol=TOLERANCE)
    compare("verl, estimator by name", batch, ours, theirs, lambda: advantages.compilations)


def test_overhead_of_sessions_beside_verls_own() -> None:
    """What the v1 trainer calls, on sessions of two outputs: 512 sessions in groups of four."""
    advantages = RowAdvantages("agent_lightning", rows=1024)
    advantages.warmup()

    def batch(rows: int) -> tuple[DataProto, list[str]]:
        uid = np.array([f"{i // 8:08x}-uid" for i in range(rows)], dtype=object)
        keys = [f"{uid[i]}_{i // 2}_{i % 2}" for i in range(rows)]
        rewards = torch.nn.functional.pad(torch.randn(rows // 2, 1).repeat_interleave(2, 0), (63, 0))
        tensors = {"token_level_rewards": rewards, "token_level_scores": rewards.clone()}
        tensors["response_mask"] = torch.ones(rows, 64, dtype=torch.int64)
        return DataProto.from_dict(tensors=tensors, non_tensors={"uid": uid}, meta_info={}), keys

    def ours(given: tuple[DataProto, list[str]]) -> Any:
        data, keys = given
        session_advantage(advantages, data, keys, None, [False] * len(keys))
        return data.batch["advantages"]

    def theirs(given: tuple[DataProto, list[str]]) -> Any:
        data, keys = given
        grpo = core_algos.AdvantageEstimator.GRPO
        return compute_advantage_for_multi_trajectories(data, keys, grpo, config=None).batch["advantages"]

    some = batch(1000)
    assert torch.allclose(ours(some), theirs(some), atol=TOLERANCE)
    compare("verl, sessions of v1", batch, ours, theirs, lambda: advantages.compilations)


@pytest.mark.skipif(
    not any(point.name == "credit" for point in entry_points(group="verl.plugins")),
    reason="the package is on the path but not installed, so it has no entry point",
)
def test_installing_is_enough() -> None:
    """`import verl` alone knows the estimators and, once asked for, the trainers; it imports no JAX and no trainer."""
    program = (
        "import sys, verl;"
        "from verl.trainer.ppo.core_algos import get_adv_estimator_fn; get_adv_estimator_fn('credit_dr_mas');"
        "assert 'jax' not in sys.modules, 'JAX was imported';"
        "assert 'verl.trainer.ppo.v1' not in sys.modules, 'the v1 trainers were imported';"
        "from verl.trainer.ppo.v1 import get_trainer_cls; get_trainer_cls('credit_sync')"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=180)
