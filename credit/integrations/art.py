"""ART (openpipe-art): its local backend with advantages of this library.

    backend = CreditLocalBackend(credit="rloo")      # in place of LocalBackend()

ART computes advantages where it tokenizes trajectories, on the host. Written against ART 0.5.18, of which it overrides
one private method.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from art.local.backend import LocalBackend
from art.preprocessing.tokenize import tokenize_trajectory_groups
from art.trajectories import History

from credit.hooks import with_globals
from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.trainer_credit import TrainerCredit
from graphs.errors import CreditError

__all__ = ["CreditLocalBackend"]

HOOKS = {LocalBackend: ("_get_packed_tensors",)}
NAMES = "CreditLocalBackend(agent=) names who acted in a history, and each history is a turn"


class CreditLocalBackend(LocalBackend):
    """ART's local backend; a trajectory is a trace, each of its histories a turn, a `TrajectoryGroup` a group.

    A team keeps the messages of each member in a history of its own (`additional_histories`), so that each history gets
    its member's advantage. `scale_rewards=False` in ART's `train` leaves out the method's scale. ART drops what has the
    advantage 0.

    Args:
      credit: a method by name, or a function.
      agent: the name of the agent that acted in a history, from the trajectory and the history's number, 0 for its own
        messages. Default: one agent.
      options: keyword arguments of `RowAdvantages`, the method's and `watch`.
      args, kwargs: ART's.

    Attributes:
      credit_metrics: the metrics of the last batch.
    """

    def __init__(
        self,
        *args: Any,
        credit: str | Callable[..., Any] = "rloo",
        agent: Callable[[Any, int], str] | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        words: dict[str, Any] = {"trainer": "ART 0.5.18", "hooks": HOOKS, "columns": NAMES}
        of_scale = {scaled: RowAdvantages(credit, scaled=scaled, **(options or {})) for scaled in (True, False)}
        self._of_scale = {scaled: TrainerCredit(rows, **words) for scaled, rows in of_scale.items()}
        self._agent = agent
        self.credit_metrics: dict[str, float] = {}

    def _get_packed_tensors(self, *args: Any, **kwargs: Any) -> Any:
        step = with_globals(LocalBackend._get_packed_tensors, tokenize_trajectory_groups=self._tokenized)
        return step(self, *args, **kwargs)

    def _tokenized(
        self,
        tokenizer: Any,
        trajectory_groups: Iterable[Any],
        allow_training_without_logprobs: bool,
        scale_rewards: bool,
        shuffle_group_trajectories: bool = True,
        drop_zero_advantage_trajectories: bool = True,
        **settings: Any,
    ) -> Iterator[Any]:
        """ART's function of this name; its results carry the advantages of the method."""
        groups = [group for group in trajectory_groups if group]
        rows = [
            (number, trace, place)
            for number, group in enumerate(groups)
            for trace, trajectory in enumerate(group)
            for place, history in enumerate(_histories(trajectory))
            if _is_trained(history, allow_training_without_logprobs)
        ]
        answers = iter(self._answers(groups, rows, scale_rewards))
        for number, group in enumerate(groups):
            results = list(
                tokenize_trajectory_groups(
                    tokenizer,
                    [group],
                    allow_training_without_logprobs,
                    scale_rewards,
                    shuffle_group_trajectories=False,
                    drop_zero_advantage_trajectories=False,
                    **settings,
                )
            )
            count = sum(of == number for of, _, _ in rows)
            if len(results) != count:
                raise CreditError(f"ART tokenized {len(results)} histories of group {number}; expected {count}")
            for result in results:
                result.advantage = next(answers)
            if drop_zero_advantage_trajectories:
                results = [result for result in results if result.advantage != 0]
            if shuffle_group_trajectories:
                random.shuffle(results)
            yield from results

    def _answers(self, groups: list[Any], rows: list[tuple[int, int, int]], scaled: bool) -> list[float]:
        members = [list(group) for group in groups]
        result = self._of_scale[scaled](
            group=np.array([number for number, _, _ in rows], np.int64),
            trace=[f"{number}/{trace}" for number, trace, _ in rows],
            agent=None if self._agent is None else [self._agent(members[g][t], place) for g, t, place in rows],
            turn=np.array([place for _, _, place in rows], np.int64),
            reward=np.array([members[number][trace].reward for number, trace, _ in rows], np.float64),
        )
        self.credit_metrics = result.metrics
        answers: list[float] = result.advantages.tolist()
        return answers


def _histories(trajectory: Any) -> list[Any]:
    """A trajectory's own messages and the further ones, as ART tokenizes them."""
    main = History(messages_and_choices=trajectory.messages_and_choices, tools=trajectory.tools)
    return [main, *trajectory.additional_histories]


def _is_trained(history: Any, without_logprobs: bool) -> bool:
    """Whether ART trains on any message of a history."""
    for message in history.messages_and_choices:
        if isinstance(message, dict):
            if without_logprobs and message["role"] == "assistant":
                return True
        elif without_logprobs or message.logprobs:
            return True
    return False
