"""verl 0.9.1 for real: its v1 trainers on a TransferQueue.

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
from hydra import compose, initialize_config_module  # noqa: E402
from pages import block  # noqa: E402
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput  # noqa: E402
from verl.trainer.ppo import core_algos  # noqa: E402
from verl.trainer.ppo.v1 import PPOTrainerSync, get_trainer_cls  # noqa: E402
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync  # noqa: E402
from verl.trainer.ppo.v1.trainer_base import PPOTrainer  # noqa: E402
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories  # noqa: E402
from verl.utils.tensordict_utils import list_of_dict_to_tensordict  # noqa: E402

from credit.integrations import MissingColumnWarning  # noqa: E402
from credit.integrations.verl_sessions import session_advantage  # noqa: E402
from credit.ray import RemoteRowAdvantages  # noqa: E402
from graphs.errors import CreditError  # noqa: E402

from .batches import TOLERANCE, legacy, row_values  # noqa: E402


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
    made = get_trainer_cls(config.trainer.v1.trainer_mode)(config=config)
    made.global_steps = 5  # the step at hand, as `fit` counts; the weights are of the last
    return made


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
        tags[-1]["min_global_steps"] = 3 + position % 2
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
    made = trainer("credit_rloo")
    made.global_steps = 7
    result, _ = advantages_of(made, put(shuffled(outputs)), metrics)
    assert result == pytest.approx({**dict.fromkeys(("q_0_0", "q_0_1", "q_0_2"), 1.0),
                                    **{f"q_{session}_0": -1 / 3 for session in (1, 2, 3)}}, abs=TOLERANCE)  # fmt: skip
    assert metrics["credit/groups_that_teach"] == 1 and metrics["credit/traces"] == 4
    assert metrics["credit/policy_age"] == 3 and metrics["credit/groups_of_several_versions"] == 1


def test_a_group_is_held_until_it_is_whole(queue: None) -> None:
    """A session that ended first waits in verl's buffer; the group is trained at once, its versions in the metrics."""
    prompt = {"is_prompt": True, "status": "running", "global_steps": 3}
    tq.kv_put(key="w", partition_id="train", tag=prompt)
    outputs = {"w_0_0": (1.0, {}), "w_1_0": (0.0, {})}
    put({"w_0_0": outputs["w_0_0"]})
    buffer = ReplayBufferAsync("separate_async", None, None, "drop", None, poll_interval=0.01)
    assert buffer.get_sampleable_count(4, "train") == 0
    put(outputs)
    tq.kv_put(key="w", partition_id="train", tag=prompt | {"status": "finished"})
    batch, _ = buffer.sample(4, "train", 1)
    metrics: dict[str, Any] = {}
    assert advantages_of(trainer("credit_rloo"), batch, metrics)[0] == {
        "w_0_0": 1,
        "w_1_0": -1,
    }
    assert metrics["credit/groups_of_several_versions"] == metrics["credit/policy_age"] == 1


def test_an_actor_of_the_cluster_computes_the_same(queue: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer's ids and rewards go to an actor, its tokens stay."""
    outputs = {"q_0_0": (1.0, {}), "q_0_1": (1.0, {}), "q_1_0": (0.0, {}), "q_2_0": (0.5, {})}
    kind = get_trainer_cls("credit_sync")
    monkeypatch.setattr(kind, "make_advantages", lambda self, name, options: RemoteRowAdvantages(name, **options))
    made = trainer("credit_rloo")
    result, _ = advantages_of(made, put(shuffled(outputs)))
    assert result == pytest.approx({"q_0_0": 0.75, "q_0_1": 0.75, "q_1_0": -0.75, "q_2_0": 0.0}, abs=TOLERANCE)
    assert isinstance(made._credit.rows, RemoteRowAdvantages)


def test_the_score_of_an_output_that_does_not_count_may_be_nan(queue: None) -> None:
    """It ended the step. A session is scored by its last output; one whose last output has NaN has no reward."""
    nan = float("nan")
    outputs = {"n_0_0": (nan, {}), "n_0_1": (1.0, {}), "n_1_0": (0.0, {}), "n_2_0": (nan, {})}
    result, _ = advantages_of(trainer("credit_rloo"), put(shuffled(outputs)))
    assert result == pytest.approx({"n_0_0": 1.0, "n_0_1": 1.0, "n_1_0": -1.0, "n_2_0": 0.0}, abs=TOLERANCE)


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


def test_a_misspelt_key_is_named() -> None:
    """All rows of Dr. MAS were pooled, without a word."""
    extra, data = [{"agnet": agent} for agent in "abab"], legacy([1.0, 1.0, 0.0, 0.0], ["q"] * 4)
    data.batch["token_level_scores"] = data.batch["token_level_rewards"]
    rows = (data, [f"q_{i}_{j}" for i in range(2) for j in range(2)], extra, [False] * 4)
    with pytest.warns(MissingColumnWarning, match=r"'dr_mas' needs the column 'agent', and .* agent loop writes it"):
        assert session_advantage(trainer("credit_dr_mas")._credit, *rows)["credit/agents"] == 1
    with pytest.raises(CreditError, match="'dr_mas' needs the column 'agent'"):
        session_advantage(trainer("credit_dr_mas", "credit_sync", "+algorithm.credit.strict=True")._credit, *rows)
    with pytest.raises(CreditError, match="'gae' needs value: the agent loop writes it into extra_fields"):
        session_advantage(trainer("credit_gae")._credit, *rows)


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


def test_sessions_score_as_their_last_output_does() -> None:
    """A colocated reward model scores every output; verl takes the last. An output without `event_reward` earned 0."""
    keys = ["q_0_1", "q_1_1", "q_0_0", "q_1_0", "q_2_0"]
    data = legacy([1.0, 0.0, 0.2, 0.1, 0.25], ["q"] * 5)
    data.batch["token_level_scores"] = data.batch["token_level_rewards"].clone()
    grpo = core_algos.AdvantageEstimator.GRPO
    session_advantage(trainer("credit_agent_lightning")._credit, data, keys, None, [False] * 5)
    got = row_values(data)
    want = row_values(compute_advantage_for_multi_trajectories(data, keys, grpo, config=None))
    assert got == pytest.approx(want, abs=TOLERANCE)
    extra = [{"event_reward": 0.5}, {}, {}, {}, {}]
    session_advantage(trainer("credit_rloo")._credit, data, keys, extra, [False] * 5)
    assert row_values(data) == pytest.approx([1.375, -0.875, 1.375, -0.875, -0.5], abs=TOLERANCE)


def test_warmup_covers_a_kl_penalty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The penalty is 0 in the first step and becomes a column in a later one, which compiled there."""
    sizes = ("data.train_batch_size=2", "actor_rollout_ref.rollout.n=2")
    made = trainer("credit_rloo", "credit_sync", "algorithm.use_kl_in_reward=True", *sizes)
    monkeypatch.setattr(PPOTrainerSync, "on_train_begin", lambda self: None)
    made.on_train_begin()
    compiled = made._credit.rows.compilations
    data = legacy([1.0, 0.0, 0.5, 0.0], ["q"] * 4)
    for penalty in (0.0, 0.25):
        data.batch["token_level_scores"] = data.batch["token_level_rewards"] + penalty
        session_advantage(made._credit, data, [f"q_{i}_0" for i in range(4)], None, [False] * 4)
    assert made._credit.rows.compilations == compiled == 2


def test_a_renamed_hook_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CreditError, match=r"never asked 'rloo' for advantages.*written against verl 0.9.1"):
        trainer("credit_rloo")._update_actor(None, {})
    monkeypatch.delattr(PPOTrainer, "_compute_advantage")
    with pytest.raises(CreditError, match="PPOTrainerSync has no _compute_advantage"):
        trainer("credit_rloo")


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
