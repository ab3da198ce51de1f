"""TRL with a team: a planner writes a hint, a worker reads it and answers; each turn gets its own advantage.

pip install ".[trl]" && python examples/trl_team.py MODEL

Without a GPU it trains in float32, since TRL's default, bf16, is refused there.
"""

import sys

import torch
from datasets import Dataset
from trl import GRPOConfig

from credit.integrations.trl import CreditGRPOTrainer

HINT, ANSWER = 8, 8  # tokens of a planner's and of a worker's turn
SUMS = [{"prompt": f"Add {a} and {b}. A hint:", "answer": str(a + b)} for a in range(4) for b in range(4)]


def write(model, ids, count):
    """Tokens that the model writes after `ids`, and their log-probabilities."""
    start = torch.tensor([ids], device=model.device)
    limits = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": True}
    with torch.no_grad():
        made = model.generate(start, **limits, return_dict_in_generate=True, output_scores=True)
    log_prob = model.compute_transition_scores(made.sequences, made.scores, normalize_logits=True)
    return made.sequences[0, len(ids) :].tolist(), log_prob[0].tolist()


def team(prompts, trainer):
    """A completion is the hint, the words between, which nobody is trained on, and the answer."""
    model, tokenizer = trainer.accelerator.unwrap_model(trainer.model), trainer.processing_class
    between = tokenizer(" The answer:", add_special_tokens=False)["input_ids"]
    keys = ("prompt_ids", "completion_ids", "logprobs", "env_mask", "agent_of_token", "turn_of_token")
    made = {key: [] for key in keys}
    for prompt in prompts:
        ids = tokenizer(prompt)["input_ids"]
        hint, of_hint = write(model, ids, HINT)
        answer, of_answer = write(model, [*ids, *hint, *between], ANSWER)
        n, gap, m = len(hint), len(between), len(answer)
        row = (
            ids, [*hint, *between, *answer], [*of_hint, *[0.0] * gap, *of_answer], [*[1] * n, *[0] * gap, *[1] * m],
            [*["planner"] * n, *[None] * gap, *["worker"] * m], [*[0] * n, *[None] * gap, *[1] * m],
        )  # fmt: skip
        for key, value in zip(keys, row, strict=True):
            made[key].append(value)
    return made


def right(completions, answer, **_):
    """The team's outcome: 1 where the answer stands in the text."""
    return [float(wanted in text) for wanted, text in zip(answer, completions, strict=True)]


def trainer(model, tokenizer=None, rows=SUMS, reward=right, **options):
    config = GRPOConfig(num_generations=4, max_completion_length=64, **options)
    parts = {"args": config, "processing_class": tokenizer, "train_dataset": Dataset.from_list(rows)}
    return CreditGRPOTrainer(model=model, reward_funcs=reward, rollout_func=team, credit="dr_mas", **parts)


if __name__ == "__main__":
    trainer(sys.argv[1], output_dir="trl-team", bf16=torch.cuda.is_available()).train()
