"""SkyRL 0.3.0 for real: its registry, and its trainer's `compute_advantages_and_returns` on its own batches.

The trainer's workers need GPUs; what runs here is its advantage path, from the generator's output to the batch that the
workers would be sent.
"""

from __future__ import annotations

import asyncio
import sys
import types
import typing
from typing import Any

import numpy as np
import pytest

if sys.version_info < (3, 12):  # SkyRL's types need the newer TypedDict, which pydantic asks for by this name
    import typing_extensions

    typing.TypedDict = typing_extensions.TypedDict  # type: ignore[attr-defined,misc,unused-ignore]
pytest.importorskip("skyrl", reason="SkyRL is not installed here; `make integrations` runs this")

import ray
import torch
from pages import block
from skyrl.backends.skyrl_train.training_batch import TrainingInputBatch, pad_training_input_batch
from skyrl.backends.skyrl_train.utils import ppo_utils
from skyrl.train.fully_async_trainer import FullyAsyncRayPPOTrainer, GeneratedOutputGroup
from skyrl.train.generators.base import TrajectoryID
from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator
from skyrl.train.trainer import RayPPOTrainer
from timing import compare

from credit.integrations import skyrl as skyrl_integration
from credit.integrations.skyrl import CreditFullyAsyncRayPPOTrainer, CreditRayPPOTrainer
from credit.ray import RemoteRowAdvantages, row_actors
from graphs.errors import CreditError

TOLERANCE = 2e-6


def trainer(
    estimator: str, *, step_wise: bool, by_std: bool = True, of: type[CreditRayPPOTrainer] = CreditRayPPOTrainer
) -> Any:
    made = object.__new__(of)
    algorithm = types.SimpleNamespace(advantage_estimator=estimator, gamma=1.0, lambd=1.0, grpo_norm_by_std=by_std)
    made.cfg = types.SimpleNamespace(
        trainer=types.SimpleNamespace(algorithm=algorithm),
        generator=types.SimpleNamespace(step_wise_trajectories=step_wise),
    )
    made.all_metrics = {}
    return made


def batch(rewards: list[float], uids: list[str], **metadata: Any) -> Any:
    """A batch of SkyRL's own type; rows differ in length."""
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]]).repeat(len(rewards), 1)[: len(rewards)]
    scores = torch.zeros(len(rewards), 4)
    scores[:, 0] = torch.tensor(rewards)
    made = TrainingInputBatch({"rewards": scores, "response_mask": mask, "loss_mask": mask.clone(), "values": None})
    made.metadata = {"uids": uids, "avg_response_length": 2.0, **metadata}
    return made


def numbers(data: Any) -> list[float]:
    rows = zip(data["advantages"], data["response_mask"].bool(), strict=True)
    assert (data["advantages"][~data["response_mask"].bool()] == 0).all()
    return [float(row[mask][0]) for row, mask in rows]


@pytest.mark.parametrize(("theirs", "ours"), [("grpo", "credit_verl_grpo"), ("rloo", "credit_rloo")])
@pytest.mark.parametrize("by_std", [True, False])
@pytest.mark.parametrize("step_wise", [False, True])
def test_skyrls_own_estimators_are_reproduced(theirs: str, ours: str, step_wise: bool, by_std: bool) -> None:
    draw = np.random.default_rng(3)
    rewards, uids = draw.normal(size=24).tolist(), [f"q{i // 6}" for i in range(24)]
    last = [i % 2 == 1 for i in range(24)] if step_wise else [True] * 24
    own = trainer(theirs, step_wise=step_wise, by_std=by_std)
    want = own.compute_advantages_and_returns(batch(rewards, uids, is_last_step=last))
    if step_wise and theirs == "grpo":
        ours = "credit_agent_lightning"  # verl's formula with one sample a trajectory
    made = trainer(ours, step_wise=step_wise, by_std=by_std)
    got = made.compute_advantages_and_returns(batch(rewards, uids, is_last_step=last))
    assert numbers(got) == pytest.approx(numbers(want), abs=TOLERANCE)
    assert got.metadata["metrics"] == pytest.approx(want.metadata["metrics"], abs=1e-5)


@pytest.mark.parametrize("of", [CreditRayPPOTrainer, CreditFullyAsyncRayPPOTrainer])
def test_agents_of_a_trajectory_are_told_apart(of: Any) -> None:
    """Planner, worker, planner against planner, worker; Dr. MAS by hand, with two rows that fill the batch."""
    agents = ["planner", "worker", "planner", "planner", "worker"]
    data = batch(
        [0.0, 0.0, 1.0, 0.0, 0.0],
        ["q"] * 5,
        is_last_step=[False, False, True, False, True],
        credit_agent=agents,
    )
    made = trainer("credit_dr_mas", step_wise=True, of=of)
    result = made.compute_advantages_and_returns(pad_training_input_batch(data, 2))
    planner, worker = np.std([1, 1, 0], ddof=1) + 1e-6, np.std([1, 0], ddof=1) + 1e-6
    assert numbers(result) == pytest.approx(
        [1 / 3 / planner, 0.5 / worker, 1 / 3 / planner, -2 / 3 / planner, -0.5 / worker, 0, 0], abs=TOLERANCE
    )
    assert made.all_metrics["credit/traces"] == 2 and made.all_metrics["loss/avg_final_rewards"] == 0.5


def test_an_actor_of_the_cluster_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the class of the page: ids and rewards of SkyRL's batch go to an actor, its tokens stay."""
    sent: list[dict[str, Any]] = []
    send = row_actors._sent
    monkeypatch.setattr(row_actors, "_sent", lambda *given: sent.append(send(*given)[0]) or send(*given))
    names: dict[str, Any] = {"CreditRayPPOTrainer": CreditRayPPOTrainer, "RemoteRowAdvantages": RemoteRowAdvantages}
    exec(block("py", "class OnRay", "clusters.md"), names)
    draw = np.random.default_rng(5)
    last = [i % 3 == 2 for i in range(24)]
    agents = [("planner", "worker", "planner")[i % 3] for i in range(24)]
    data = batch(
        draw.normal(size=24).tolist(), [f"q{i // 12}" for i in range(24)], is_last_step=last, credit_agent=agents
    )
    here = trainer("credit_dr_mas", step_wise=True)
    want = here.compute_advantages_and_returns(pad_training_input_batch(data, 3))
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        made = trainer("credit_dr_mas", step_wise=True, of=names["OnRay"])
        got = made.compute_advantages_and_returns(pad_training_input_batch(data, 3))
        assert isinstance(made._credit.rows, RemoteRowAdvantages)
    finally:
        ray.shutdown()
    assert torch.equal(got["advantages"], want["advantages"]) and want["advantages"].abs().max() > 0.1
    assert got.metadata["metrics"] == want.metadata["metrics"]
    assert set(sent[0]) == {"group", "trace", "agent", "turn", "reward", "where"}
    assert {np.shape(column) for column in sent[0].values()} == {(27,)}


def converted(env_metrics: Any, estimator: str = "credit_dr_mas", *, merge: bool = False) -> Any:
    """The batch that SkyRL makes of a generator's output: two trajectories of a planner and a worker."""
    made, space = trainer(estimator, step_wise=True), types.SimpleNamespace
    algorithm = made.cfg.trainer.algorithm
    algorithm.max_seq_len, algorithm.zero_variance_filter = 64, False
    algorithm.off_policy_correction = space(tis_ratio_type=None, sequence_mask_metric=None)
    sizes = {"train_batch_size": 1, "policy_mini_batch_size": 1, "critic_mini_batch_size": 1}
    made.cfg.trainer = space(algorithm=algorithm, critic=space(model=space(path=None)), **sizes)
    made.cfg.generator = space(step_wise_trajectories=True, n_samples_per_prompt=2, merge_stepwise_output=merge)
    made.tokenizer = space(pad_token_id=0)
    made.dispatch = space(get_lcm_dp_size=lambda: 1)
    output = {
        "prompt_token_ids": [[1], [1, 2, 3], [1], [1, 9, 3]],
        "response_ids": [[2, 3], [4], [2, 5], [6]],
        "rewards": [[0.0, 0.0], [1.0], [0.0, 0.0], [0.0]],
        "loss_masks": [[1, 1], [1], [1, 1], [1]],
        "stop_reasons": ["stop"] * 4,
        "rollout_logprobs": None,
        "rollout_metrics": {},
        "trajectory_ids": [TrajectoryID("q", i // 2) for i in range(4)],
        "is_last_step": [False, True, False, True],
        "env_metrics": env_metrics,
    }
    return made.convert_to_training_input(*made.postprocess_generator_output(output, ["q"] * 4))


def test_columns_come_from_the_generators_output() -> None:
    labels = [{"agent": "planner", "turn": 0}, {"agent": "worker", "turn": 0}] * 2
    metadata = converted(labels).metadata
    assert metadata["credit_agent"] == ["planner", "worker"] * 2 and metadata["credit_turn"] == [0] * 4
    frozen = [{**label, "trainable": label["agent"] == "planner"} for label in labels]
    assert converted(frozen, "credit_rloo").metadata["credit_trainable"] == [True, False] * 2
    data = batch([0.0, 1.0, 0.0, 0.0], ["q"] * 4, is_last_step=[False, True] * 2, credit_trainable=[True, False] * 2)
    result = trainer("credit_rloo", step_wise=True).compute_advantages_and_returns(pad_training_input_batch(data, 2))
    assert numbers(result) == [1, 0, -1, 0, 0, 0], "a frozen agent was trained"
    for none in (None, [], [{}] * 4, [{}, {"score": 1.0}] * 2):
        assert not [key for key in converted(none).metadata if key.startswith("credit_")]
    assert "credit_agent" not in converted([{}, {"agent": "worker"}] * 2, "grpo").metadata, "SkyRL's own need none"


@pytest.mark.parametrize(
    ("env_metrics", "named"),
    [
        ([{}, {"agent": "worker"}] * 2, r"'agent' is in some rows only, and not in row 0: the generator must write it"),
        ([{"agent": "a"}] * 3 + [{"agent": None}], r"'agent' is in some rows only, and not in row 3:"),
        ([{"agent": "a", "turn": 0}] * 3 + [{"agent": "a"}], r"'turn' is in some rows only, and not in row 3:"),
        ([{"agent": "a"}] * 3, r"3 entries have 'agent', for 4 rows:"),
    ],
)
def test_labels_of_some_rows_are_refused(env_metrics: Any, named: str) -> None:
    with pytest.raises(CreditError, match=named):
        converted(env_metrics)


def test_groups_of_a_mini_batch_carry_the_step_that_began_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """SkyRL hands whole groups over, whatever the steps at which it scheduled them; each is compared with itself."""
    name = "convert_generation_group_mini_batch_to_training_input"
    groups = [GeneratedOutputGroup({"response_ids": [[2], [3]]}, uid, step) for uid, step in (("q", 3), ("r", 5))]
    data = batch([1.0, 0.0, 4.0, 2.0], ["q", "q", "r", "r"], is_last_step=[True] * 4)
    monkeypatch.setattr(FullyAsyncRayPPOTrainer, name, lambda self, groups, dropped=None: data)
    made = trainer("credit_rloo", step_wise=True, of=CreditFullyAsyncRayPPOTrainer)
    made.global_step = 6
    result = made.compute_advantages_and_returns(pad_training_input_batch(getattr(made, name)(groups), 2))
    assert numbers(result) == [1, -1, 2, -2, 0, 0]
    assert made.all_metrics["credit/policy_age"] == 3 and made.all_metrics["credit/groups_of_several_versions"] == 0
    monkeypatch.delattr(FullyAsyncRayPPOTrainer, name)
    with pytest.raises(CreditError, match=f"FullyAsyncRayPPOTrainer has no {name}"):
        trainer("credit_rloo", step_wise=True, of=CreditFullyAsyncRayPPOTrainer).train_critic_and_policy(None)


def test_what_loses_the_labels_is_refused() -> None:
    with pytest.raises(CreditError, match=r"the agent of each; set generator.merge_stepwise_output=false"):
        converted([{"agent": "a"}] * 4, merge=True)
    assert len(converted(None, merge=True)["response_mask"]) == 3, "rows without labels are merged"
    made = trainer("credit_rloo", step_wise=True)
    made.cfg.trainer.algorithm.dynamic_sampling = types.SimpleNamespace(type="replace")
    with pytest.raises(CreditError, match=r"dynamic_sampling.type is 'replace'.*dynamic_sampling.type=null"):
        made.handle_dynamic_sampling({}, [])


def test_a_generator_writes_labels_as_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's class, over what SkyRL's generator gives: metrics of the environment at the last step alone."""

    async def generate(self: Any, input_batch: Any, disable_tqdm: bool = False) -> Any:
        return {"env_metrics": [{}, {}, {"score": 1.0}, {}, {}], "is_last_step": [False, False, True, False, True]}

    monkeypatch.setattr(SkyRLGymGenerator, "generate", generate)
    names: dict[str, Any] = {}
    exec(block("py", "class TeamGenerator"), names)
    output = asyncio.run(names["TeamGenerator"].generate(object.__new__(names["TeamGenerator"]), {}))
    assert [row["agent"] for row in output["env_metrics"]] == ["planner", "worker", "planner", "planner", "worker"]
    assert output["env_metrics"][2]["score"] == 1.0


def test_the_pages_experiment_makes_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    exec(block("py", "class Experiment"), names)
    given: dict[str, Any] = {}
    monkeypatch.setattr(CreditRayPPOTrainer, "__init__", lambda self, **parts: given.update(parts))
    made = names["Experiment"].get_trainer(object.__new__(names["Experiment"]), cfg=1, tracker=None)
    assert type(made) is CreditRayPPOTrainer and given == {"cfg": 1, "tracker": None}


def test_a_renamed_hook_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer("credit_rloo", step_wise=True)
    with pytest.raises(CreditError, match=r"never asked 'rloo' for advantages.*written against SkyRL 0.3.0"):
        made.train_critic_and_policy(None)
    monkeypatch.delattr(RayPPOTrainer, "compute_advantages_and_returns")
    with pytest.raises(CreditError, match="RayPPOTrainer has no compute_advantages_and_returns"):
        trainer("credit_rloo", step_wise=True).train_critic_and_policy(None)


def test_overhead_beside_skyrls_own() -> None:
    """The trainer's whole `compute_advantages_and_returns`, on trajectories of two steps."""
    ours, theirs = trainer("credit_agent_lightning", step_wise=True), trainer("grpo", step_wise=True)

    def rows_of(rows: int) -> Any:
        uids = [f"q{i // 8}" for i in range(rows)]
        made = batch([0.0] * rows, uids, is_last_step=[i % 2 == 1 for i in range(rows)])
        made["rewards"][1::2, 0] = torch.randn(rows // 2)
        return made

    def through(made: Any) -> Any:
        return lambda data: made.compute_advantages_and_returns(data)["advantages"]

    compare("SkyRL, step-wise", rows_of, through(ours), through(theirs), ours._credit,
            ran="`RayPPOTrainer` from a generator's output to the batch of its workers")  # fmt: skip


def test_overhead_of_an_estimator_by_name() -> None:
    made, own = skyrl_integration._credit_by_name("verl_grpo").rows, ppo_utils.compute_grpo_outcome_advantage
    made.warmup(1024)
    by_name = ppo_utils.AdvantageEstimatorRegistry.get("credit_verl_grpo")

    def rows_of(rows: int) -> dict[str, Any]:
        rewards = torch.nn.functional.pad(torch.randn(rows, 1), (63, 0))
        index = np.array([f"q{i // 8}" for i in range(rows)], object)
        return {"token_level_rewards": rewards, "response_mask": torch.ones(rows, 64), "index": index}

    compare("SkyRL, estimator by name", rows_of, lambda b: by_name(**b)[0], lambda b: own(**b)[0], made,
            ran="its registry", trainer="SkyRL 0.3.0")  # fmt: skip
