"""Record rollout dumps of trainers by the functions that write them: `python record_rollouts.py`, with pandas.

    pip download --no-deps verl==0.9.1 trl==1.16.0, and git clone https://github.com/NovaSky-AI/SkyRL at a956457
    python record_rollouts.py FOLDER     with the unpacked packages and the clone as verl, trl and SkyRL below it

A trainer needs a model and a GPU. So the function that writes the dump is taken out of its source and called with the
rollouts of two prompts, made by hand: the files are what the function makes of them.
"""

from __future__ import annotations

import ast
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


def main() -> None:
    sources = Path(sys.argv[1])
    for name, record in {"verl": verl, "SkyRL": skyrl, "trl": trl}.items():
        with tempfile.TemporaryDirectory() as out:
            record(sources / name, Path(out))


if __name__ == "__main__":
    main()
