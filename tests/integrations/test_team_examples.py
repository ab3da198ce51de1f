"""The examples of a team in TRL and in verl, as they stand."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_turn_of_trls_team_has_its_own_advantage(tmp_path: Path) -> None:
    """Rewards 3, 0, 0, 0: planners are compared with planners and workers with workers, the words between get 0."""
    pytest.importorskip("trl", reason="TRL is not installed here; `make integrations` runs this")
    from tiny import prompts, tiny_model, tiny_tokenizer

    tokenizer = tiny_tokenizer()
    rows = [{"prompt": prompt, "answer": "mat"} for prompt in prompts(4)]

    def first(prompts: list[str], **_: Any) -> list[float]:
        return [3.0 * (i % 4 == 0) for i in range(len(prompts))]

    made = load("trl_team").trainer(
        tiny_model(len(tokenizer)), tokenizer, rows, first, output_dir=str(tmp_path), per_device_train_batch_size=4,
        max_steps=1, report_to=[], use_cpu=True, bf16=False, save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    shown: list[Any] = []
    step = made._generate_and_score_completions
    made._generate_and_score_completions = lambda inputs: shown.append(step(inputs)) or shown[-1]
    made.train()
    assert made.state.global_step == 1
    advantages = shown[0]["advantages"]
    between = len(tokenizer(" The answer:", add_special_tokens=False)["input_ids"])
    assert advantages.shape == (4, 16 + between)
    assert (
        (advantages[:, 8 : 8 + between] == 0).all() and (advantages[0, :8] > 0).all() and (advantages[1, -8:] < 0).all()
    )


def test_a_planner_and_a_worker_of_verls_loop_are_rows_with_their_agents() -> None:
    pytest.importorskip("verl", reason="verl is not installed here; `make integrations` runs this")
    from tiny import tiny_tokenizer

    module = load("verl_team")
    asked: list[list[int]] = []

    class Server:
        async def generate(self, *, prompt_ids: list[int], **_: Any) -> Any:
            asked.append(prompt_ids)
            return SimpleNamespace(token_ids=[5, 6, 7, 8], log_probs=[-1.0] * 4)

    loop = object.__new__(module.TeamLoop)  # verl's own constructor asks for a whole configuration
    loop.tokenizer, loop.server_manager = tiny_tokenizer(), Server()
    loop.tokenizer.chat_template = "{% for m in messages %}{{ m.content }} {% endfor %}"
    loop.rollout_config = SimpleNamespace(response_length=3)
    rows = asyncio.run(loop.run({}, raw_prompt=[{"role": "user", "content": "the cat sat"}]))
    assert [row.extra_fields for row in rows] == [{"agent": "planner", "turn": 0}, {"agent": "worker", "turn": 0}]
    assert [row.prompt_ids for row in rows] == asked and rows[0].response_ids == [5, 6, 7]
    assert loop.tokenizer.decode([5, 6, 7]) in loop.tokenizer.decode(asked[1])
