"""TRL: `GRPOTrainer` with advantages of this library.

    trainer = CreditGRPOTrainer(..., credit="rloo")     # in place of GRPOTrainer(...)

Everything else stays TRL's: sampling, rewards, loss, logging. The advantages that are trained on are those that are
logged. Without `credit` the numbers are TRL's own. Written against TRL 1.16.0, of which it uses two private methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from trl import GRPOTrainer

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.trainer_credit import TrainerCredit
from graphs.errors import CreditError

__all__ = ["AGENT_KEY", "TURN_KEY", "CreditGRPOTrainer", "token_rows"]

AGENT_KEY, TURN_KEY = "agent_of_token", "turn_of_token"
"""Keys that a `rollout_func` of a team adds: for each completion, the label of each of its tokens."""

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
    [rows, tokens], each agent's turn with its own.

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
        self._credit = TrainerCredit(rows, trainer="TRL 1.16.0", hooks={GRPOTrainer: HOOKS})
        rows.warmup(self.args.generation_batch_size)
        self.rewards_per_function: torch.Tensor | None = None

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        self.rewards_per_function = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
        return self.rewards_per_function

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        mode = "train" if self.model.training else "eval"
        rewards = self.rewards_per_function
        assert rewards is not None
        rows, width = len(rewards), output["completion_ids"].shape[1]
        trace = np.arange(rows)
        columns: dict[str, Any] = {"trace": trace}
        tokens = None
        if AGENT_KEY in inputs[0]:
            _check_lengths(inputs, width)
            width = max(gather_object([width]))  # each process pads its completions to their own length
            agents = gather_object([example[AGENT_KEY] for example in inputs])
            turns = gather_object([example[TURN_KEY] for example in inputs]) if TURN_KEY in inputs[0] else None
            sample, agent, turn, tokens = token_rows(agents, turns, width)
            columns = {"trace": sample, "agent": agent, "turn": turn}
        group = columns["trace"] // (self.num_generations if mode == "train" else self.num_generations_eval)
        advantages = self._credit_of(rewards, group, columns)
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

    def _credit_of(self, rewards: torch.Tensor, group: np.ndarray, columns: dict[str, Any]) -> torch.Tensor:
        """Advantages of rows, from the rewards of completions, [completions, functions]."""
        weights = self.reward_weights.to(rewards.device)
        unscored = torch.isnan(rewards).all(dim=1)
        total = (rewards * weights).nansum(dim=1)
        total[unscored] = torch.nan
        sample = torch.from_numpy(np.asarray(columns["trace"])).to(rewards.device)

        def advantages_for(reward: torch.Tensor) -> torch.Tensor:
            numbers: torch.Tensor = self._credit(group=group, reward=reward[sample], **columns).advantages
            return numbers

        if self.multi_objective_aggregation == "sum_then_normalize":
            advantages = advantages_for(total)
            if self.scale_rewards == "batch":
                advantages = advantages / (_std(total) + EPS)
            return advantages
        parts = [weight * advantages_for(rewards[:, i]) for i, weight in enumerate(weights)]
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


def token_rows(
    agents: Sequence[Sequence[Any]], turns: Sequence[Sequence[Any]] | None, width: int
) -> tuple[np.ndarray, list[str], list[str] | None, np.ndarray]:
    """Rows of a team from labels of tokens: one row for each agent and turn of a completion.

    Args:
      agents: for each completion, the agent that wrote each token; None where none did.
      turns: the turn of each token, or None.
      width: T, the padded length.

    Returns:
      Of each row its completion, agent and turn; and int [completions, T], the row of each token, -1 for none.

    Raises:
      CreditError: labels are more than the tokens, or of two lengths; a completion has no token of an agent.
    """
    of_token = np.full((len(agents), width), -1)
    sample: list[int] = []
    agent: list[str] = []
    turn: list[str] = []
    for i, labels in enumerate(agents):
        in_turn: Sequence[Any] = [0] * len(labels) if turns is None else turns[i]
        if len(labels) > width or len(in_turn) != len(labels):
            raise _unlike(i, len(labels), len(in_turn), width)
        rows: dict[tuple[Any, Any], int] = {}
        for t, key in enumerate(zip(labels, in_turn, strict=True)):
            if key[0] is None:
                continue
            if key not in rows:
                rows[key] = len(sample)
                sample.append(i)
                agent.append(str(key[0]))
                turn.append(str(key[1]))
            of_token[i, t] = rows[key]
        if not rows:
            raise CreditError(f"completion {i} has no token with an agent in {AGENT_KEY}; expected at least one")
    return np.array(sample), agent, None if turns is None else turn, of_token


def _check_lengths(inputs: Sequence[dict[str, Any]], width: int) -> None:
    for i, example in enumerate(inputs):
        labels = example[AGENT_KEY]
        if len(labels) > width:
            raise _unlike(i, len(labels), len(example.get(TURN_KEY, labels)), width)


def _unlike(completion: int, agents: int, turns: int, width: int) -> CreditError:
    return CreditError(
        f"completion {completion} has {agents} labels in {AGENT_KEY} and {turns} in {TURN_KEY}, for up to {width} "
        "tokens; expected one for each token"
    )


def _std(values: torch.Tensor) -> torch.Tensor:
    """Standard deviation with ddof 1 of the values that are numbers; 0 where fewer than two are."""
    known = values[~torch.isnan(values)]
    return known.std() if len(known) > 1 else torch.zeros((), device=values.device)
