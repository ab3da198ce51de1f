"""Tunix 0.1.7 for real: GRPO steps of its toy transformer on the CPU, and the agentic learner on its trajectories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tunix", reason="Tunix is not installed here; `make integrations` runs this")

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from grain import python as grain
from pages import block
from timing import compare
from tunix.rl import function_registry, rl_cluster
from tunix.rl.agentic import agentic_grpo_learner
from tunix.rl.agentic.agents.agent_types import TrajectoryItem
from tunix.rl.grpo import grpo_learner
from tunix.rl.rollout import base_rollout
from tunix.tests import test_common

from credit.integrations import MissingColumnWarning, RowAdvantages
from credit.integrations.tunix import (
    HOOKS,
    NAMES,
    TRAINER,
    CreditAgenticLearner,
    estimator,
    metrics_of,
    token_turns,
)
from graphs.errors import CreditError

TOLERANCE = 2e-6

PROMPTS = ["input string", "hello world", "My name", "hello there"]


@pytest.fixture(autouse=True)
def standard_promotion() -> Iterator[None]:
    """Tunix adds booleans to integers, also in threads of its own, which strict promotion refuses."""
    jax.config.update("jax_numpy_dtype_promotion", "standard")
    yield
    jax.config.update("jax_numpy_dtype_promotion", "strict")


class Prompts(grain.RandomAccessDataSource):
    def __getitem__(self, index: int) -> str:
        return PROMPTS[index % len(PROMPTS)]

    def __len__(self) -> int:
        return 40


def cluster(steps: int = 8) -> Any:
    """A cluster of one CPU with a transformer of two layers; its words are Tunix's test vocabulary."""
    words = test_common.MockVocab()
    config = test_common.ModelConfig(vocab_size=words.GetPieceSize(), num_layers=2)
    actor, reference = (test_common.ToyTransformer(config=config, rngs=nnx.Rngs(0)) for _ in range(2))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("fsdp", "tp"))
    roles = rl_cluster.Role
    return rl_cluster.RLCluster(
        actor=actor,
        reference=reference,
        tokenizer=words,
        cluster_config=rl_cluster.ClusterConfig(
            role_to_mesh=dict.fromkeys((roles.ACTOR, roles.REFERENCE, roles.ROLLOUT), mesh),
            rollout_engine="vanilla",
            offload_to_cpu=False,
            training_config=rl_cluster.RLTrainingConfig(
                actor_optimizer=optax.sgd(1e-2), eval_every_n_steps=1000, max_steps=steps
            ),
            rollout_config=base_rollout.RolloutConfig(
                max_tokens_to_generate=6, max_prompt_length=8, kv_cache_size=64, return_logprobs=True
            ),
        ),
    )


def test_eight_steps_of_training() -> None:
    made, used = cluster(), []

    def length(prompts: list[str], completions: list[str], **_: Any) -> list[float]:
        return [float(len(text)) for text in completions]

    def spy(rewards: Any, advantages: Any, **_: Any) -> dict[str, Any]:
        used.append((np.asarray(rewards), np.asarray(advantages)))
        return {}

    scope: dict[str, Any] = {"GRPOConfig": grpo_learner.GRPOConfig}
    exec(block("py", "GRPOConfig("), scope)
    before = jax.tree.map(jnp.copy, nnx.state(made.actor_trainer.model, nnx.Param))
    learner = grpo_learner.GRPOLearner(
        rl_cluster=made,
        reward_fns=length,
        algo_config=scope["config"],
        metric_fns=[metrics_of("credit_rloo"), spy],
    )
    data = grain.MapDataset.source(Prompts()).batch(2).map(lambda batch: {"prompts": batch, "answer": batch})
    learner.train(data)
    after = nnx.state(made.actor_trainer.model, nnx.Param)
    assert any(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a != b).any()), before, after)))
    assert len(used) == 8
    for rewards, advantages in used:
        groups = rewards.reshape(-1, 4)
        others = (groups.sum(axis=1, keepdims=True) - groups) / 3
        assert advantages == pytest.approx((groups - others).ravel(), abs=1e-5)
    assert made._rl_metrics_logger.metric_exists("credit", "groups_that_teach", "train")


@pytest.mark.parametrize(
    ("theirs", "ours", "options"),
    [("grpo", "grpo", {"eps": 1e-6, "ddof": 1}), ("rloo", "rloo", {}), ("drgrpo", "dr_grpo", {})],
)
def test_tunix_own_estimators_are_reproduced(theirs: str, ours: str, options: dict[str, Any]) -> None:
    rewards = np.random.default_rng(1).normal(size=48).astype(np.float32)
    want = function_registry.get_advantage_estimator(theirs)(rewards=rewards, num_generations=6)
    got = function_registry.get_advantage_estimator(estimator(ours, **options))(rewards=rewards, num_generations=6)
    assert got == pytest.approx(np.asarray(want), abs=TOLERANCE)


def test_options_are_part_of_the_name_and_groups_are_whole() -> None:
    """A second configuration of one method changed the first: .394 where it was 1.318."""
    plain, other = estimator("grpo"), estimator("grpo", eps=1.0)
    rewards = np.array([1.0, 0, 0, 0], np.float32)
    first, second = (function_registry.get_advantage_estimator(name)(rewards, 4) for name in (plain, other))
    assert plain == "credit_grpo" != other and first[0] > 2 * second[0]
    with pytest.raises(CreditError, match="6 rewards come with num_generations=4; expected whole groups"):
        function_registry.get_advantage_estimator(plain)(np.zeros(6), 4)


def test_a_method_that_needs_evidence_is_refused() -> None:
    with pytest.raises(CreditError, match=r"'gae' needs value, which Tunix 0.1.7 does not pass"):
        estimator("gae")


def trajectory(reward: float, masks: list[int], names: list[str] | None = None, group: int = 0) -> Any:
    turns = sum(1 for i, m in enumerate(masks) if m and (i == 0 or not masks[i - 1]))
    messages = [
        {"role": "assistant", "content": "world", **({"name": names[i]} if names else {})} for i in range(turns)
    ]
    return TrajectoryItem(
        pair_index=0,
        group_id=group,
        start_step=0,
        traj={
            "conversation_text": [{"role": "user", "content": "hello"}, *messages],
            "prompt_tokens": np.array([5, 6]),
            "conversation_tokens": np.full(len(masks), 6),
            "conversation_masks": np.array(masks),
            "old_logprobs": np.full(len(masks), -1.0),
            "policy_version": 0,
            "trajectory_reward": reward,
            "original_input": {"prompts": np.array(["hello"])},
            "group_id": group,
            "env_time": {"reset": 0.0},  # without it Tunix logs nothing of the call
        },
    )


def team_learner(credit: str, masked: bool = False, **options: Any) -> CreditAgenticLearner:
    return CreditAgenticLearner(
        rl_cluster=cluster(),
        reward_fns=None,  # the trajectories' own
        algo_config=agentic_grpo_learner.GRPOConfig(
            num_generations=4, beta=0.0, max_response_length=6, degenerate_group_masking=masked
        ),
        chat_parser=object(),
        credit=credit,
        **options,
    )


def test_a_team_gets_advantages_for_each_turn() -> None:
    """A planner's and a worker's turn with the environment's word between; Dr. MAS compares like with like."""
    learner = team_learner("dr_mas")
    group = [
        trajectory(1.0, [1, 1, 0, 1], ["planner", "worker"]),
        trajectory(0.0, [1, 0, 1, 1], ["planner", "worker"]),
        trajectory(0.0, [1, 1], ["planner"]),
    ]
    (example,) = learner._process_results(group, mode=rl_cluster.Mode.TRAIN, expected_step=0)
    got = np.asarray(example.advantages)
    planner, worker = np.std([1, 0, 0], ddof=1) + 1e-6, np.std([1, 0], ddof=1) + 1e-6
    assert got[0].tolist() == pytest.approx([2 / 3 / planner] * 2 + [0, 0.5 / worker, 0, 0], abs=TOLERANCE)
    assert got[1].tolist() == pytest.approx([-1 / 3 / planner, 0, -0.5 / worker, -0.5 / worker, 0, 0], abs=TOLERANCE)
    assert got[2].tolist() == pytest.approx([-1 / 3 / planner] * 2 + [0] * 4, abs=TOLERANCE)
    unnamed = [trajectory(float(i), [1, 0, 1]) for i in range(2)]
    with pytest.warns(MissingColumnWarning, match=f"needs the column 'agent'.*{re.escape(NAMES)}"):
        team_learner("dr_mas")._process_results(unnamed, mode=rl_cluster.Mode.TRAIN, expected_step=0)


def test_prompts_of_one_micro_batch_are_groups_of_their_own() -> None:
    """With `compute_logps_micro_batch_size=2` Tunix hands over two prompts at once; they were trained as one group.

    It logged the numbers of its own estimator, and gave them to `metric_fns`.
    """
    logged: list[Any] = []
    learner = team_learner("rloo", metric_fns=[lambda advantages, **_: logged.append(advantages) or {}])
    learner._full_batch_size = 2
    rewards = {0: [11.0, 12, 10, 11], 1: [2.0, 0, 1, 2]}
    batch = [trajectory(reward, [1, 0, 1], group=group) for group, earned in rewards.items() for reward in earned]
    (example,) = learner._batch_to_train_example(batch, rl_cluster.Mode.TRAIN)
    want = np.array([0, 4 / 3, -4 / 3, 0, 1, -5 / 3, -1 / 3, 1])
    assert np.asarray(example.advantages) == pytest.approx(want[:, None] * [1, 0, 1, 0, 0, 0], abs=1e-5)
    assert logged[0] == pytest.approx(want, abs=1e-5)
    metrics = learner.rl_cluster._buffered_train_metrics[-1].metrics
    assert metrics["rewards/advantage/max"][0] == pytest.approx([4 / 3], abs=1e-5)


def test_a_renamed_hook_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, of_tunix = team_learner("rloo"), agentic_grpo_learner.GRPOLearner
    with pytest.raises(CreditError, match=r"never asked 'rloo' for advantages.*written against Tunix 0.1.7"):
        learner.rl_cluster.actor_trainer._train_step(learner.rl_cluster.actor_trainer.model, None, None)
    monkeypatch.setattr(of_tunix, "_results", of_tunix._process_results, raising=False)
    monkeypatch.delattr(of_tunix, "_process_results")
    with pytest.raises(CreditError, match="GRPOLearner has no _process_results"):
        team_learner("rloo")


def test_groups_that_teach_nothing_are_left_out_one_by_one() -> None:
    learner = team_learner("rloo", masked=True)
    batch = [trajectory(float(group and i), [1, 0, 1], group=group) for group in range(2) for i in range(2)]
    (example,) = learner._process_results(batch, mode=rl_cluster.Mode.TRAIN, expected_step=0)
    assert np.asarray(example.completion_mask).any(axis=1).tolist() == [False, False, True, True]


def test_named_messages_must_match_the_turns() -> None:
    turn, agents = token_turns(trajectory(1.0, [1, 0, 1, 1]).traj)
    assert turn.tolist() == [0, -1, 1, 1] and agents == ["", ""]
    broken = trajectory(1.0, [1, 0, 1], ["planner", "worker"]).traj
    broken["conversation_masks"] = np.array([1, 1, 1])
    with pytest.raises(CreditError, match="1 stretches"):
        token_turns(broken)


def test_overhead_beside_tunix_own() -> None:
    draw, advantages = np.random.default_rng(2), RowAdvantages("grpo", rows=1024)
    advantages.warmup()
    own = function_registry.get_advantage_estimator("grpo")

    def rewards(rows: int) -> np.ndarray:
        return draw.normal(size=rows).astype(np.float32)

    def ours(batch: np.ndarray) -> np.ndarray:
        return np.asarray(advantages(group=np.arange(len(batch)) // 8, reward=batch).advantages)

    def theirs(batch: np.ndarray) -> np.ndarray:
        return np.asarray(own(rewards=batch, num_generations=8))

    compare("Tunix", rewards, ours, theirs, advantages, trainer=TRAINER, hooks=HOOKS,
            ran="steps of training; the agentic learner on its trajectories")  # fmt: skip
