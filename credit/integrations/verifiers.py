"""verifiers: advantages written into the `advantages` slot of message nodes, episode by episode.

    assign_advantages(episodes, credit="dr_mas")      # before the episodes go to the trainer

Written against verifiers 0.4.0, whose episodes hold one trace for each agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from credit.integrations.row_advantages import RowAdvantages
from graphs.errors import CreditError

__all__ = ["assign_advantages"]


def assign_advantages(
    episodes: Sequence[Any],
    *,
    credit: str | Callable[..., Any] | RowAdvantages = "rloo",
    reward: Callable[[Any], float] | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Write an advantage on each sampled token of each trainable agent, and return the metrics.

    An episode is a trace, a message that the policy sampled is an action and a turn, the agent's name is the agent. A
    group is what `episode.group` says, else the task. Agents that are not trainable keep their slot and enter no
    statistics; messages without an answer get 0. An episode in which no trace was scored has no reward.

    Args:
      episodes: `verifiers.v1.Episode`s with their token ids and masks, as a training client records them.
      credit: a method by name, a function, or a `RowAdvantages` kept from step to step, which compiles once.
      reward: the outcome of an episode. Default: what its traces earned, which must be one number.
      options: keyword arguments of the method.

    Raises:
      CreditError: traces of one episode earned different numbers and `reward` was not given; an episode without a
        group has no key of its task.
    """
    advantages = credit if isinstance(credit, RowAdvantages) else RowAdvantages(credit, **(options or {}))
    nodes: list[Any] = []
    columns: dict[str, Any] = {name: [] for name in ("group", "trace", "agent", "turn", "reward", "where")}
    for number, episode in enumerate(episodes):
        group, outcome = _group(episode), _outcome(episode) if reward is None else float(reward(episode))
        for part, trace in enumerate(episode.traces):
            for place, node in enumerate(trace.nodes):
                if not node.sampled:
                    continue
                nodes.append(node)
                row = (group, number, trace.agent.name, f"{part}.{place}", outcome, trace.agent.trainable)
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
    score = np.array(columns.pop("reward"), np.float64)
    result = advantages(reward=score, **columns)
    for node, value, trained in zip(nodes, result.advantages, columns["where"], strict=True):
        if trained:
            node.advantages = [float(value)] * sum(node.mask)
    return result.metrics


def _group(episode: Any) -> str:
    if episode.group is not None:
        return str(episode.group.id)
    key = episode.task.key or episode.task.hash
    if key is None:
        raise CreditError(f"episode {episode.id!r} has no group, and its task no key and no hash; set episode.group")
    return str(key)


def _outcome(episode: Any) -> float:
    """The one number that the traces of an episode earned; NaN where none was scored."""
    earned = {trace.reward for trace in episode.traces if any(part is not None for part in trace.rewards.values())}
    if len(earned) > 1:
        raise CreditError(
            f"traces of episode {episode.id!r} earned different rewards, {sorted(earned)}; pass reward=, the outcome "
            "of an episode"
        )
    return earned.pop() if earned else float("nan")
