"""Record rollout dumps of trainers by the functions that write them: `python record_rollouts.py FOLDER [TRAINER …]`.

    pip download --no-deps verl==0.9.1 trl==1.16.0, and git clone https://github.com/NovaSky-AI/SkyRL at a956457,
    https://github.com/NVIDIA-NeMo/RL at 7ea279a; pip install pandas pyarrow torch transformers tinker-cookbook==0.6.1
    python record_rollouts.py FOLDER     with the unpacked packages and the clones as verl, trl, SkyRL and RL below it

A trainer needs a model and a GPU. So the function that writes the dump is taken out of its source and called with the
rollouts of two prompts, made by hand: the files are what the function makes of them. NeMo-RL's messages become rows by
its own functions and types. tinker-cookbook plays its own rollouts of an environment, with a policy that has two
answers.
"""

from __future__ import annotations

import ast
import asyncio
import collections
import json
import logging
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

HERE = Path(__file__).parent
KEYS = [f"2b1f6f0e-8a43-4d0c-9c5e-0d9f6f0c1a7{key}" for key in ("0_0_0", "0_1_0", "0_1_1", "1_0_0", "1_1_0")]
"""Two prompts with two rollouts each, one of which has two outputs."""


def function(file: Path, name: str, **names: Any) -> Any:
    """A function or method of a source file, without the rest of its module; `names` are the globals that it uses."""
    (found,) = (
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    found.decorator_list, found.returns = [], None
    for argument in (*found.args.args, *found.args.kwonlyargs):
        argument.annotation = None
    exec(compile(ast.Module([found], []), str(file), "exec"), names)
    return names[name]


def verl(source: Path, out: Path) -> None:
    """The keys are those that `_log_rollout_data` of the trainer of version 0.9 passes on."""
    write = function(source / "verl/trainer/ppo/ray_trainer.py", "_write_generations", os=os, json=json)
    prompts, answers = ["1+1?"] * 3 + ["2+2?"] * 2, ["2", "a summary", "3", "4", "5"]
    write(prompts, answers, ["2"] * 3 + ["4"] * 2, [1.0, 0.5, 0.0, 1.0, 0.0], {"uid": KEYS}, str(out), 7)
    shutil.move(out / "7.jsonl", HERE / "verl_rollouts.jsonl")


def skyrl(source: Path, out: Path) -> None:
    write = function(
        source / "skyrl/train/utils/trainer_utils.py", "dump_per_dataset_eval_results", json=json,
        logger=logging.getLogger(), sanitize_data_source=lambda name: name.replace("/", "_"),
    )  # fmt: skip
    generated = {
        "prompt_token_ids": [[1], [1]], "response_ids": [[2], [3, 4]], "rewards": [1.0, [0.0, 0.5]],
        "stop_reasons": ["stop", "length"],
    }  # fmt: skip
    tokenizer = SimpleNamespace(decode=lambda ids: " ".join(map(str, ids)))
    extras = [{"reward_spec": {"ground_truth": "2"}}] * 2
    write(out, tokenizer, generated, ["openai/gsm8k"] * 2, ["gsm8k"] * 2, extras, {"eval/all/pass_at_1": 0.5})
    shutil.rmtree(HERE / "skyrl", ignore_errors=True)
    (HERE / "skyrl").mkdir()
    for path in out.glob("*.jsonl"):
        shutil.move(path, HERE / "skyrl" / path.name)


def trl(source: Path, out: Path) -> None:
    log = function(
        source / "trl/trainer/grpo_trainer.py", "log", os=os, math=math, pd=pd, is_rich_available=lambda: False,
        strip_images_from_messages=lambda messages: messages, super=lambda: SimpleNamespace(log=lambda *_: None),
    )  # fmt: skip
    (out / "completions").mkdir()
    asked = [{"role": "user", "content": "1+1?"}]
    logs = {
        "prompt": [asked] * 2, "completion": [[{"role": "assistant", "content": answer}] for answer in ("2", "3")],
        "rewards": {"right": [1.0, 0.0]}, "extra": {"solution": ["two", "two"]}, "advantages": [0.7, -0.7],
        "images": [],
    }  # fmt: skip
    trainer = SimpleNamespace(
        model=SimpleNamespace(training=True), _metrics=collections.defaultdict(dict), log_completions=True,
        _logs=logs,
        accelerator=SimpleNamespace(is_main_process=True), state=SimpleNamespace(global_step=7),
        args=SimpleNamespace(report_to=[], output_dir=str(out)),
    )  # fmt: skip
    log(trainer, {})
    shutil.move(out / "completions/completions_00007.parquet", HERE / "completions_00007.parquet")


def nemo_rl(source: Path, out: Path) -> None:
    """The rows are made by the statement of `grpo_train` that writes them, and by what it calls before."""
    import numpy as np
    import torch

    sys.path.insert(0, str(source))
    from nemo_rl.data.llm_message_utils import batched_message_log_to_flat_message
    from nemo_rl.distributed.batched_data_dict import BatchedDataDict

    def log(question: list[int], *turns: tuple[list[int], list[int]]) -> list[dict[str, Any]]:
        """A question, and answers that are each followed by what the environment says."""
        messages = [{"role": "user", "content": "1+1?", "token_ids": torch.tensor(question)}]
        for answer, said in turns:
            probs = torch.full((len(answer),), -0.5)
            messages.append({"role": "assistant", "content": "2", "token_ids": torch.tensor(answer),
                             "generation_logprobs": probs})  # fmt: skip
            if said:
                messages.append({"role": "environment", "content": "no", "token_ids": torch.tensor(said)})
        return messages

    trainer = source / "nemo_rl/algorithms/grpo.py"
    masks = function(trainer, "add_grpo_token_loss_masks_and_generation_logprobs", torch=torch,
                     cast=lambda _, value: value, backfill_missing_routed_experts=lambda _: None)  # fmt: skip
    logs = [log([1, 2], ([3], [4, 5]), ([3, 6], [])), log([1, 2], ([7], [])), log([1, 8], ([3], []))]
    masks(logs)
    flat, lengths = batched_message_log_to_flat_message(logs, pad_value_dict={"token_ids": 0})
    outcome = torch.tensor([1.0, 0.0, 0.5])
    train = {
        "input_ids": flat["token_ids"], "token_mask": flat["token_loss_mask"], "sample_mask": torch.ones(3),
        "advantages": (outcome - outcome.mean())[:, None].expand_as(flat["token_ids"]),
        "generation_logprobs": flat["generation_logprobs"], "prev_logprobs": flat["generation_logprobs"],
    }  # fmt: skip
    rows = function(source / "nemo_rl/utils/logger.py", "log_batched_dict_as_jsonl", os=os, json=json, np=np,
                    torch=torch, BatchedDataDict=BatchedDataDict)  # fmt: skip
    logger = SimpleNamespace(base_log_dir=str(out))
    logger.log_batched_dict_as_jsonl = lambda *given: rows(logger, *given)
    (write,) = (
        node
        for each in ast.parse(trainer.read_text()).body
        if isinstance(each, ast.FunctionDef) and each.name == "grpo_train"
        for node in ast.walk(each)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "not _should_log_nemo_gym_responses(master_config)"
        and "log_batched_dict_as_jsonl" in ast.unparse(node)
    )  # fmt: skip
    exec(compile(ast.Module([write], []), str(trainer), "exec"), {
        "_should_log_nemo_gym_responses": lambda _: False, "repeated_batch": {}, "flat_messages": flat,
        "rewards": outcome, "input_lengths": lengths, "train_data": train, "logger": logger, "total_steps": 6,
        "master_config": SimpleNamespace(grpo=SimpleNamespace(use_dynamic_sampling=False)),
    })  # fmt: skip
    shutil.move(out / "train_data_step7.jsonl", HERE / "train_data_step7.jsonl")


def tinker(_: Path, out: Path) -> None:
    import tinker
    from tinker_cookbook.completers import TokensWithLogprobs
    from tinker_cookbook.rl import rollouts, types
    from tinker_cookbook.rl.rollout_logging import RolloutSummaryGroup, serialize_rollout_summaries_from_groups
    from tinker_cookbook.stores.storage import LocalStorage
    from tinker_cookbook.stores.training_store import TrainingRunStore

    class Sum(types.Env):
        """Asks for a token; a wrong one is asked again once, and the second answer ends the episode."""

        def __init__(self, right: int) -> None:
            self.right, self.said = right, [1, 2]

        async def initial_observation(self) -> Any:
            return tinker.ModelInput.from_ints(self.said), []

        async def step(self, action: list[int], *, extra: Any = None) -> types.StepResult:
            is_right, is_last = action[-1] == self.right, len(self.said) > 2
            self.said += [*action, 4]
            return types.StepResult(
                reward=0.0 if is_right else -0.25, episode_done=is_right or is_last, next_stop_condition=[],
                next_observation=tinker.ModelInput.from_ints(self.said), metrics={"correct": float(is_right)},
            )  # fmt: skip

    class Two(types.EnvGroupBuilder):
        async def make_envs(self) -> list[types.Env]:
            return [Sum(3), Sum(5)]

        async def compute_group_rewards(self, trajectory_group: Any, env_group: Any) -> Any:
            return [(each.transitions[-1].metrics["correct"], {"turns": len(each.transitions)})
                    for each in trajectory_group]  # fmt: skip

        def logging_tags(self) -> list[str]:
            return ["sums"]

    async def policy(model_input: Any, stop: Any, *, max_tokens: int | None = None) -> TokensWithLogprobs:
        answer = [3] if model_input.length == 2 else [6, 5]
        return TokensWithLogprobs(tokens=answer, maybe_logprobs=[-0.5] * len(answer))

    groups = [RolloutSummaryGroup(asyncio.run(rollouts.do_group_rollout(Two(), policy)), ["sums"], 6) for _ in range(2)]
    records = serialize_rollout_summaries_from_groups(split="train", iteration=7, groups_P=groups)
    TrainingRunStore(LocalStorage(out)).write_rollouts(7, records)
    (written,) = out.rglob("*_rollout_summaries.jsonl")
    shutil.move(written, HERE / written.name)


TRAINERS = {"verl": verl, "SkyRL": skyrl, "trl": trl, "RL": nemo_rl, "tinker": tinker}


def main() -> None:
    sources = Path(sys.argv[1])
    for name in sys.argv[2:] or TRAINERS:
        with tempfile.TemporaryDirectory() as out:
            TRAINERS[name](sources / name, Path(out))


if __name__ == "__main__":
    main()
