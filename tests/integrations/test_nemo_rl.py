"""NeMo-RL's own estimator and its configuration, from its source at 7ea279a."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

import numpy as np
import pytest
from sources import definitions, modules, source_of
from timing import compare

torch = pytest.importorskip("torch", reason="PyTorch is not installed here; `make integrations` runs this")
NEMO = source_of("nemo_rl", "NeMo-RL has no release of this source; put it at 7ea279a on PYTHONPATH")

from credit.integrations import MissingColumnWarning  # noqa: E402
from graphs.errors import CreditError  # noqa: E402


@functools.cache
def of_nemo() -> dict[str, Any]:
    from pydantic import BaseModel

    file = NEMO / "algorithms" / "advantage_estimator.py"
    baseline = definitions(NEMO / "algorithms" / "utils.py", "calculate_baseline_and_std_per_prompt", {"torch": torch})
    scope = {"torch": torch, "BaseModel": BaseModel, **baseline}
    return definitions(file, "AdvEstimatorConfig GRPOAdvantageEstimator", scope)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    modules(monkeypatch, "nemo_rl.algorithms.advantage_estimator", **of_nemo())
    monkeypatch.delitem(sys.modules, "credit.integrations.nemo_rl", raising=False)
    estimator = importlib.import_module("credit.integrations.nemo_rl").CreditAdvantageEstimator
    return lambda **settings: estimator(of_nemo()["AdvEstimatorConfig"](**settings), None)


def batch_of(rewards: np.ndarray, each: int = 4) -> dict[str, Any]:
    """Prompts of three tokens; conversations of two turns of the policy, of lengths that differ."""
    rows = np.arange(len(rewards))
    mask = torch.zeros(len(rewards), 7)
    for row in rows:
        mask[row, 1:3] = mask[row, 5 : 6 + row % 2] = 1
    prompt = torch.tensor(np.stack([rows // each, rows * 0, rows * 0 + 5], axis=1))
    return {"prompt_ids": prompt, "rewards": torch.tensor(rewards, dtype=torch.float32), "mask": mask}


def test_nemos_own_is_reproduced(made: Any) -> None:
    batch = batch_of(np.random.default_rng(0).normal(size=24))
    theirs = of_nemo()["GRPOAdvantageEstimator"](of_nemo()["AdvEstimatorConfig"](normalize_rewards=False), None)
    want = torch.where(batch["mask"] > 0, theirs.compute_advantage(**batch), 0.0)
    ours = made(credit="rloo", credit_options={"rows": 64})
    got = ours.compute_advantage(**batch, repeated_batch={}, logprobs_policy=None)
    assert (got - want).abs().max() <= 2e-6 and want.abs().max() > 1
    assert ours.last_metrics["credit/groups"] == 6 and ours.last_metrics["credit/compilations"] == 1


def test_turns_and_names_of_messages_are_told_apart(made: Any) -> None:
    """The worker of the last conversation got no turn, so that its planner is compared and it is not."""
    batch = batch_of(np.array([1.0, 0.0, 0.5]), each=3)
    batch["mask"][2, 3:] = 0
    logs = [[{"role": "user"}, {"role": "assistant", "name": name}] for name in ("planner", "worker")]
    log = [*logs[0], *logs[1]]
    team = made(credit="rloo", credit_options={"by": "task,agent"})
    got = team.compute_advantage(**batch, repeated_batch={"message_log": [log, log, logs[0]]})
    assert got[:, 1].tolist() == [0.75, -0.75, 0.0] and got[:, 5].tolist() == [1, -1, 0]
    assert not got[batch["mask"] == 0].any()
    with pytest.raises(CreditError, match="2 stretches of the policy's tokens and messages of the assistant by"):
        team.compute_advantage(**batch, repeated_batch={"message_log": [logs[0]] * 3})
    with pytest.raises(CreditError, match="have names in 2 of 3 conversations; expected all or none"):
        team.compute_advantage(**batch, repeated_batch={"message_log": [log, log, [{"role": "assistant"}]]})
    with pytest.warns(MissingColumnWarning, match="needs the column 'agent'.*message_log carry the agent's name"):
        made(credit="dr_mas").compute_advantage(**batch)


def test_a_renamed_hook_is_refused(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(of_nemo()["GRPOAdvantageEstimator"], "compute_advantage")
    with pytest.raises(CreditError, match="GRPOAdvantageEstimator has no compute_advantage"):
        made()


def test_overhead_beside_nemos_own(made: Any) -> None:
    draw, ours = np.random.default_rng(4), made(credit="rloo", credit_options={"rows": 1024})
    theirs = of_nemo()["GRPOAdvantageEstimator"](of_nemo()["AdvEstimatorConfig"](normalize_rewards=False), None)
    compare(
        "NeMo-RL",
        functools.cache(lambda rows: batch_of(draw.normal(size=rows // 2))),  # of two turns each
        lambda batch: ours.compute_advantage(**batch),
        lambda batch: theirs.compute_advantage(**batch),
        ours._credit,
        ran="its estimator from its source, on its message logs",
        numbers=lambda batch, answer: torch.where(batch["mask"] > 0, answer, 0.0),
    )
