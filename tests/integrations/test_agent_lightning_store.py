"""Agent Lightning 0.3.0 for real: rollouts of its own store as traces, and rows as its own daemon batches them."""

from __future__ import annotations

import asyncio
import os
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look-up of prices
pytest.importorskip("agentlightning", reason="Agent Lightning is not installed here; `make integrations` runs this")

from agentlightning.emitter.reward import emit_reward
from agentlightning.store.memory import InMemoryLightningStore
from agentlightning.types import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pages import block

import credit
from credit.integrations.agent_lightning import read_store_async

TOLERANCE = 2e-6


def spans_of(value: float, calls: list[str]) -> list[Any]:
    """What a runner's tracer ends up with: a span for each agent with a call to the model, and the reward."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("runner")
    with tracer.start_as_current_span("run"):
        for number, agent in enumerate(calls):
            with tracer.start_as_current_span(agent, attributes={"agent.name": agent}):
                usage = {"gen_ai.response.id": f"r{number}", "gen_ai.usage.completion_tokens": 5}
                with tracer.start_as_current_span("openai.chat.completion", attributes=usage):
                    pass
        fields = emit_reward(value, propagate=False)
        with tracer.start_as_current_span(fields.name, attributes=fields.attributes):
            pass
    return list(kept.get_finished_spans())


async def filled(outcomes: dict[str, list[float]], mode: str = "train") -> InMemoryLightningStore:
    """A store in which each task was run once for each outcome; the first rollout needed a second attempt."""
    store = InMemoryLightningStore()
    retried = False
    for task, rewards in outcomes.items():
        for reward in rewards:
            started = await store.start_rollout(input={"question": task}, mode=mode, metadata={"data_id": task})
            attempts = [started.attempt]
            if not retried:
                again = await store.start_attempt(started.rollout_id)
                attempts.append(again.attempt)
                retried = True
            for attempt in attempts:
                last = attempt is attempts[-1]
                spans = spans_of(reward if last else 9.0, ["planner", "worker", "planner"])
                for span in spans:
                    number = await store.get_next_span_sequence_id(started.rollout_id, attempt.attempt_id)
                    await store.add_span(Span.from_opentelemetry(span, started.rollout_id, attempt.attempt_id, number))
                await store.update_attempt(
                    started.rollout_id, attempt.attempt_id, status="succeeded" if last else "failed"
                )
            await store.update_rollout(started.rollout_id, status="succeeded")
    return store


def test_rollouts_of_a_store_are_traces_in_groups() -> None:
    store = asyncio.run(filled({"a": [1.0, 0.0], "b": [0.0, 0.0, 1.0]}))
    scope: dict[str, Any] = {"credit": credit, "store": store}
    exec(block("py", "read_store("), scope)
    traces = scope["traces"]
    assert not traces.problems and np.array_equal(traces.reward, credit.read_store(store, mode="train").reward)
    real = np.asarray(traces.graph.trace_mask)
    assert sorted(np.asarray(traces.reward)[real]) == [0, 0, 0, 1, 1], "the failed attempt's 9 is not read"
    assert sorted(np.bincount(np.asarray(traces.graph.group_ids)[real])) == [2, 3]
    assert sorted(set(traces.agents["name"].to_pylist())) == ["planner", "worker"]
    result = credit.rloo(traces.graph, traces.reward)
    assert np.asarray(result.valid)[np.asarray(traces.graph.action_mask)].all(), "every action has an answer"


def test_the_log_may_be_kept_and_read_again(tmp_path: Path) -> None:
    store = asyncio.run(filled({"a": [1.0, 0.0]}))
    kept = tmp_path / "store.jsonl"
    traces = credit.read_store(store, path=kept)
    again = credit.read(kept)
    assert np.array_equal(traces.reward, again.reward) and np.array_equal(traces.graph.group_ids, again.graph.group_ids)


def test_inside_an_event_loop_it_is_awaited() -> None:
    async def algorithm() -> int:
        store = await filled({"a": [1.0, 0.0]})
        with pytest.raises(credit.CreditError, match="read_store_async"):
            credit.read_store(store)
        return (await read_store_async(store)).traces.num_rows

    assert asyncio.run(algorithm()) == 2


def test_an_empty_store_is_named() -> None:
    store = asyncio.run(filled({"a": [1.0]}))
    with pytest.raises(credit.CreditError, match="no rollouts of mode 'val'"):
        credit.read_store(store, mode="val")


def daemon_of(outcomes: dict[str, tuple[str, float, int]]) -> Any:
    """Agent Lightning's daemon after a step: for each rollout its task, its reward and its number of turns."""
    from agentlightning.types import RolloutLegacy, Triplet
    from agentlightning.verl.daemon import AgentModeDaemon

    daemon = object.__new__(AgentModeDaemon)
    daemon.is_train = True
    daemon.reward_fillna_value = None
    daemon.trace_aggregator = {"level": "transition"}
    daemon.pad_token_id = 0
    daemon._use_mrope = False
    daemon._total_tasks_queued = len(outcomes)
    daemon._task_id_to_original_sample = {name: {"data_id": task} for name, (task, _, _) in outcomes.items()}
    daemon._completed_rollouts_v0 = {
        name: RolloutLegacy(
            rollout_id=name,
            final_reward=reward,
            triplets=[
                Triplet(prompt={"token_ids": [5, 6]}, response={"token_ids": [7] * (2 + turn)}) for turn in range(turns)
            ],
        )
        for name, (_, reward, turns) in outcomes.items()
    }
    return daemon


def trainer_of(outcomes: dict[str, tuple[str, float, int]], estimator: str) -> tuple[Any, list[Any]]:
    """The trainer with its own daemon's batch; the workers, which need GPUs, are stand-ins that keep what they get."""
    pytest.importorskip("verl", reason="verl is not installed here")
    import torch
    from omegaconf import OmegaConf
    from verl import DataProto

    from credit.integrations.agent_lightning_verl import CreditAgentLightningTrainer

    trained: list[Any] = []
    daemon = daemon_of(outcomes)
    daemon.set_up_data_and_server = lambda *args, **options: None
    daemon.run_until_all_finished = lambda: None
    daemon.clear_data_and_server = lambda: None

    def log_prob(batch: Any) -> Any:
        zeros = torch.zeros_like(batch.batch["responses"], dtype=torch.float32)
        return DataProto.from_dict(tensors={"old_log_probs": zeros, "entropys": zeros.clone()})

    def update(batch: Any) -> Any:
        trained.append(batch)
        return types.SimpleNamespace(meta_info={"metrics": {"actor/loss": [0.0]}})

    trainer = object.__new__(CreditAgentLightningTrainer)
    trainer.config = OmegaConf.create(
        {
            "algorithm": {"adv_estimator": estimator, "gamma": 1.0, "lam": 1.0, "use_kl_in_reward": False},
            "agentlightning": {"trace_aggregator": {"level": "transition"}},
            "data": {"max_prompt_length": 4, "max_response_length": 6},
            "actor_rollout_ref": {
                "actor": {"loss_agg_mode": "token-mean", "ppo_mini_batch_size": 1},
                "rollout": {"n": 1, "multi_turn": {"enable": False}},
            },
            "trainer": {"balance_batch": False, "critic_warmup": 0},
        }
    )
    trainer.agent_mode_daemon = daemon
    trainer.async_rollout_manager = types.SimpleNamespace(wake_up=lambda: None, sleep=lambda: None, server_addresses=[])
    trainer.actor_rollout_wg = types.SimpleNamespace(world_size=1, compute_log_prob=log_prob, update_actor=update)
    trainer.resource_pool_manager = types.SimpleNamespace(get_n_gpus=lambda: 1)
    trainer.use_rm = trainer.use_reference_policy = trainer.use_critic = False
    trainer.global_steps = 1
    return trainer, trained


def step(outcomes: dict[str, tuple[str, float, int]], estimator: str) -> tuple[dict[tuple[str, int], float], Any]:
    """One training step; the advantage of each rollout's turns, as the actor was given them."""
    pytest.importorskip("verl", reason="verl is not installed here")
    import torch

    trainer, trained = trainer_of(outcomes, estimator)
    metrics = trainer._train_step({"fake_ids": torch.zeros(1, 1), "data_id": np.array(["x"], object)})
    (batch,) = trained
    return by_turn(batch, batch.batch["advantages"]), metrics


def by_turn(batch: Any, advantages: Any) -> dict[tuple[str, int], float]:
    rows = zip(
        batch.non_tensor_batch["rollout_id_list"],
        batch.non_tensor_batch["turn_index_list"],
        advantages,
        batch.batch["response_mask"],
        strict=True,
    )
    return {(str(rollout), int(turn)): float(row[mask.bool()][0]) for rollout, turn, row, mask in rows}


OUTCOMES = {"r0": ("q", 1.0, 3), "r1": ("q", 0.0, 1), "r2": ("q", 0.0, 1), "r3": ("q", 0.0, 1)}


def test_a_rollout_counts_once_however_many_turns_it_has() -> None:
    got, metrics = step(OUTCOMES, "credit_rloo")
    assert got == pytest.approx(
        {("r0", 0): 1, ("r0", 1): 1, ("r0", 2): 1, **{(f"r{i}", 0): -1 / 3 for i in (1, 2, 3)}}, abs=TOLERANCE
    )
    assert metrics["credit/traces"] == 4


def test_agent_lightnings_own_estimator_is_reproduced() -> None:
    """verl's GRPO over all rows. Agent Lightning runs it in bfloat16, so it runs here on the same scores in float32."""
    core_algos = pytest.importorskip("verl.trainer.ppo.core_algos", reason="verl is not installed here")
    trainer, trained = trainer_of(OUTCOMES, "grpo")
    import torch

    trainer._train_step({"fake_ids": torch.zeros(1, 1), "data_id": np.array(["x"], object)})
    (batch,) = trained
    in_half = by_turn(batch, batch.batch["advantages"])
    own, _ = core_algos.compute_grpo_outcome_advantage(
        batch.batch["token_level_rewards"].float(), batch.batch["response_mask"], batch.non_tensor_batch["uid"]
    )
    got, _ = step(OUTCOMES, "credit_agent_lightning_rows")
    assert got == pytest.approx(by_turn(batch, own), abs=TOLERANCE)
    assert got == pytest.approx(in_half, abs=4e-3)


@pytest.mark.parametrize(("theirs", "ours"), [("grpo", "credit_agent_lightning_rows"), ("rloo", "credit_verl_rloo")])
def test_a_penalty_in_the_reward_is_counted(theirs: str, ours: str) -> None:
    """`use_kl_in_reward`: verl's own over all rows, on the rewards that the trainer left, against ours."""
    core_algos = pytest.importorskip("verl.trainer.ppo.core_algos", reason="verl is not installed here")
    batch = penalised(ours)
    spent = (batch.batch["token_level_scores"].float() - batch.batch["token_level_rewards"]).sum(-1)
    assert len(set(spent.tolist())) > 3, "rows of one rollout have different penalties"
    want, _ = core_algos.get_adv_estimator_fn(theirs)(
        batch.batch["token_level_rewards"].clone(), batch.batch["response_mask"], batch.non_tensor_batch["uid"]
    )
    assert by_turn(batch, batch.batch["advantages"]) == pytest.approx(by_turn(batch, want), abs=TOLERANCE)


def test_a_rollouts_penalty_is_that_of_its_turns() -> None:
    """Leave-one-out by hand: each rollout's reward less the penalties of its turns."""
    batch = penalised("credit_rloo")
    spent = (batch.batch["token_level_scores"].float() - batch.batch["token_level_rewards"]).sum(-1)
    returns = {name: reward for name, (_, reward, _) in OUTCOMES.items()}
    for name, amount in zip(batch.non_tensor_batch["rollout_id_list"], spent.tolist(), strict=True):
        returns[str(name)] -= amount
    for (name, _), value in by_turn(batch, batch.batch["advantages"]).items():
        others = [amount for other, amount in returns.items() if other != name]
        assert value == pytest.approx(returns[name] - np.mean(others), abs=TOLERANCE)


def penalised(estimator: str) -> Any:
    """The batch of a step with `use_kl_in_reward`; the reference differs by another amount in each row."""
    trainer, trained = trainer_of(OUTCOMES, estimator)
    import torch
    from verl import DataProto
    from verl.trainer.ppo.core_algos import FixedKLController

    def reference(batch: Any) -> Any:
        zeros = torch.zeros_like(batch.batch["responses"], dtype=torch.float32)
        return DataProto.from_dict(tensors={"ref_log_prob": zeros - torch.arange(len(zeros))[:, None]})

    trainer.config.algorithm.use_kl_in_reward, trainer.config.algorithm.kl_penalty = True, "kl"
    trainer.kl_ctrl_in_reward = FixedKLController(0.1)
    trainer.use_reference_policy, trainer.ref_in_actor = True, False
    trainer.ref_policy_wg = types.SimpleNamespace(compute_ref_log_prob=reference)
    trainer._train_step({"fake_ids": torch.zeros(1, 1), "data_id": np.array(["x"], object)})
    (batch,) = trained
    return batch


def test_overhead_beside_agent_lightnings_own() -> None:
    """What its trainer calls for advantages, on rollouts of two turns."""
    ray_trainer = pytest.importorskip("verl.trainer.ppo.ray_trainer", reason="verl is not installed here")
    import torch
    from timing import compare
    from verl import DataProto

    from credit.integrations import verl as integration

    kept = integration._credit_of("agent_lightning_rows", ()).rows
    kept.warmup(1024)

    def batch(rows: int) -> Any:
        rewards = torch.nn.functional.pad(torch.randn(rows // 2, 1).repeat_interleave(2, 0), (63, 0))
        ids = {"uid": [f"q{i // 8}" for i in range(rows)], "rollout_id_list": [f"r{i // 2}" for i in range(rows)]}
        ids["turn_index_list"] = [i % 2 for i in range(rows)]
        return DataProto.from_dict(
            tensors={"token_level_rewards": rewards, "response_mask": torch.ones(rows, 64, dtype=torch.int64)},
            non_tensors={name: np.array(values, object) for name, values in ids.items()},
        )

    def ours(data: Any) -> Any:
        return integration.compute_advantage(data, "credit_agent_lightning_rows").batch["advantages"]

    def theirs(data: Any) -> Any:
        return ray_trainer.compute_advantage(data, "grpo").batch["advantages"]

    compare("Agent Lightning", batch, ours, theirs, kept, trainer="Agent Lightning 0.3.0, verl 0.6.1",
            hooks={"AgentLightningTrainer": ("_train_step",)}, ran="`_train_step` on its rollouts")  # fmt: skip
