"""TRL: `GRPOTrainer` with advantages of this library.

    trainer = CreditGRPOTrainer(..., credit="rloo")     # in place of GRPOTrainer(...)

Everything else stays TRL's: sampling, rewards, loss, logging. The advantages that are trained on are those that are
logged. Without `credit` the numbers are TRL's own. Written against TRL 1.16.0, of which it uses two private methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from trl import GRPOTrainer

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.trainer_credit import COLUMNS, EVIDENCE, TrainerCredit
from graphs.errors import CreditError

__all__ = ["CreditGRPOTrainer", "token_rows"]

OF_TOKEN = "_of_token"
"""The end of keys that a `rollout_func` of a team adds: for each completion, a label of each of its tokens."""

NAMES = (*COLUMNS, *EVIDENCE, "policy_version")

RETURN = "a rollout_func returns it for each token, under this name with _of_token behind it"
HOOKS = ("_calculate_rewards", "_generate_and_score_completions", "compute_loss")

EPS = 1e-4  # TRL's


class CreditGRPOTrainer(GRPOTrainer):
    """TRL's trainer, with credit by any method of this library.

    `scale_rewards` and `multi_objective_aggregation` keep their meaning:

        scale_rewards="group"   the method's own scale, if it has one
                      "none"    no scale: credit minus baseline
                      "batch"   one standard deviation, that of the rewards of the batch, in its place
        multi_objective_aggregation="sum_then_normalize"   the method sees the weighted sum of the rewards
                                    "normalize_then_sum"   it sees each reward on its own, with its own scale; the
                                                           weighted sum of its answers is whitened over the batch
                                                           (TRL, too, leaves scale_rewards out of this)

    A team's `rollout_func` returns, beside TRL's keys, `agent_of_token` and, if it likes, `turn_of_token`: for each
    completion a list with the label of each token, None for tokens that no agent wrote. Advantages are then
    [rows, tokens], each agent's turn with its own. A further column of `RowAdvantages` or evidence of the method is
    returned in the same form, as `value_of_token`; a row has what stands at its first token.

    Args:
      credit: a method by name or a function; the default computes what TRL does.
      options: keyword arguments of the method.
      args, kwargs: TRL's.

    Attributes:
      rewards_per_function: [rows of all processes, reward functions], of the last batch; NaN where unscored.
    """

    def __init__(
        self,
        *args: Any,
        credit: str | Callable[..., Any] = "trl_grpo",
        options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        own_scale = self.scale_rewards == "group" or self.multi_objective_aggregation == "normalize_then_sum"
        rows = RowAdvantages(credit, scaled=own_scale, **(options or {}))
        self._credit = TrainerCredit(
            rows,
            trainer="TRL 1.16.0",
            hooks={GRPOTrainer: HOOKS},
            columns=RETURN,
            evidence=self.rollout_func is not None,
        )
        if not rows.needs:
            rows.warmup(self.args.generation_batch_size)
        self.rewards_per_function: torch.Tensor | None = None
        self._states: dict[int, Any] = {}  # of each reward function, and of their sum: what the method carries on

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        self.rewards_per_function = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        self._lengths = [len(ids) for ids in completion_ids_list]  # of this process's completions
        return self.rewards_per_function

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        mode = "train" if self.model.training else "eval"
        rewards = self.rewards_per_function
        assert rewards is not None
        columns: dict[str, Any] = {"trace": np.arange(len(rewards))}
        tokens = None
        if keys := [key for key in inputs[0] if key.endswith(OF_TOKEN)]:
            policy = output.get("tool_mask", output["completion_mask"]).bool().tolist()
            labels = {key.removesuffix(OF_TOKEN): [example[key] for example in inputs] for key in keys}
            _check_labels(labels, self._lengths, policy)
            width = max(
                gather_object([output["completion_ids"].shape[1]])
            )  # each process pads its completions to their own length
            taken = [name for name in labels if name in COLUMNS or self._credit.accepts(name)]
            columns, tokens = token_rows({name: gather_object(labels[name]) for name in taken}, width)
        group = columns["trace"] // (self.num_generations if mode == "train" else self.num_generations_eval)
        advantages = self._credit_of(rewards, group, columns, mode)
        if tokens is not None:
            row = torch.from_numpy(tokens).to(advantages.device)
            advantages = torch.where(row >= 0, advantages[row.clamp(min=0)], 0.0)
        self._log_advantages(advantages, None if tokens is None else torch.from_numpy(tokens) >= 0, mode)
        local = len(output["advantages"])
        start = self.accelerator.process_index * local
        advantages = advantages[start : start + local]
        if tokens is not None:
            advantages = advantages[:, : output["completion_ids"].shape[1]]
        output["advantages"] = advantages.to(output["advantages"])
        return output

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        self._credit.check_ran()
        return super().compute_loss(*args, **kwargs)

    @property
    def credit_metrics(self) -> dict[str, float]:
        """The metrics of the last batch, also among TRL's."""
        return self._credit.metrics

    def _credit_of(self, rewards: torch.Tensor, group: np.ndarray, columns: dict[str, Any], mode: str) -> torch.Tensor:
        """Advantages of rows, from the rewards of completions, [completions, functions]."""
        weights = self.reward_weights.to(rewards.device)
        unscored = torch.isnan(rewards).all(dim=1)
        total = (rewards * weights).nansum(dim=1)
        total[unscored] = torch.nan
        sample = torch.from_numpy(np.asarray(columns["trace"])).to(rewards.device)

        def advantages_for(reward: torch.Tensor, part: int = -1) -> torch.Tensor:
            self._credit.rows.state = self._states.get(part)
            result = self._credit(group=group, reward=reward[sample], learns=mode == "train", **columns)
            self._states[part] = self._credit.rows.state
            numbers: torch.Tensor = result.advantages
            return numbers

        if self.multi_objective_aggregation == "sum_then_normalize":
            advantages = advantages_for(total)
            if self.scale_rewards == "batch":
                advantages = advantages / (_std(total) + EPS)
            return advantages
        parts = [weight * advantages_for(rewards[:, i], i) for i, weight in enumerate(weights)]
        summed = torch.stack(parts).sum(dim=0)
        scored = ~unscored[sample]
        whitened = (summed - summed[scored].mean()) / (_std(summed[scored]) + EPS)
        advantages_for(total)  # the metrics that are logged are those of the sum
        return torch.where(scored, whitened, 0.0)

    def _log_advantages(self, advantages: torch.Tensor, wrote: torch.Tensor | None, mode: str) -> None:
        """Put what is trained on in the place of what TRL logged: one number a completion, the mean over what it wrote.

        Args:
          advantages: [completions], or [completions, T] with `wrote`.
          wrote: bool [completions, T], the tokens of agents.
        """
        if wrote is not None:
            advantages = advantages.sum(dim=1) / wrote.sum(dim=1).to(advantages.device)  # 0 at all other tokens
        logged = self._logs["advantages"]
        for _ in range(min(len(advantages), len(logged))):
            logged.pop()
        logged.extend(advantages.tolist())
        for name, value in self._credit.metrics.items():
            self._metrics[mode][name].append(value)


def token_rows(labels: Mapping[str, Sequence[Sequence[Any]]], width: int) -> tuple[dict[str, Any], np.ndarray]:
    """Rows of a team from labels of tokens: one row for each agent and turn of a completion.

    Args:
      labels: by the name of a column, for each completion the label of each of its tokens; "agent", None where no
        agent wrote the token, and others, such as "turn".
      width: T, the padded length.

    Returns:
      The columns of the rows, "trace" the completion among them, each label that of the row's first token, evidence in
      "evidence"; and int [completions, T], the row of each token, -1 for none.

    Raises:
      CreditError: a completion has no token of an agent.
    """
    of_token = np.full((len(labels["agent"]), width), -1)
    first: list[tuple[int, int]] = []  # of each row, its completion and the place of its first token there
    turns = labels.get("turn")
    for i, agents in enumerate(labels["agent"]):
        rows: dict[tuple[Any, Any], int] = {}
        for t, agent in enumerate(agents):
            if agent is None:
                continue
            row = rows.setdefault((agent, None if turns is None else turns[i][t]), len(first))
            if row == len(first):
                first.append((i, t))
            of_token[i, t] = row
        if not rows:
            raise CreditError(f"completion {i} has no token with an agent in agent{OF_TOKEN}; expected at least one")
    columns: dict[str, Any] = {"trace": np.array([i for i, _ in first]), "evidence": {}}
    for name, of_completion in labels.items():
        column = [of_completion[i][t] for i, t in first]
        text = [str(label) for label in column] if name in ("agent", "turn") else column
        (columns if name in COLUMNS else columns["evidence"])[name] = text
    return columns, of_token


def _check_labels(
    labels: Mapping[str, Sequence[Sequence[Any]]], lengths: Sequence[int], policy: Sequence[Sequence[bool]]
) -> None:
    """Refuse labels of a completion that are not one for each of its tokens, and tokens to train without an agent.

    Args:
      labels: as of `token_rows`, of this process's completions.
      lengths: the number of tokens of each completion.
      policy: of each completion, which of the padded tokens the policy wrote.

    Raises:
      CreditError: it names the completion; no agents, or labels of an unknown name.
    """
    if "agent" not in labels or labels.keys() - NAMES:
        keys = ", ".join(name + OF_TOKEN for name in (["agent"] if "agent" not in labels else NAMES))
        raise CreditError(f"rollout_func returns {', '.join(name + OF_TOKEN for name in labels)}; expected {keys}")
    for i, (length, wrote) in enumerate(zip(lengths, policy, strict=True)):
        for name, column in labels.items():
            if len(column[i]) != length:
                raise CreditError(
                    f"completion {i} has {len(column[i])} labels in {name}{OF_TOKEN}, for {length} tokens; expected "
                    "one for each token"
                )
        for t, agent in enumerate(labels["agent"][i]):
            if agent is None and wrote[t]:
                raise CreditError(
                    f"completion {i} has no agent in agent{OF_TOKEN} at token {t}, which the policy wrote; expected "
                    "one, or 0 there in env_mask"
                )


def _std(values: torch.Tensor) -> torch.Tensor:
    """Standard deviation with ddof 1 of the values that are numbers; 0 where fewer than two are."""
    known = values[~torch.isnan(values)]
    return known.std() if len(known) > 1 else torch.zeros((), device=values.device)
