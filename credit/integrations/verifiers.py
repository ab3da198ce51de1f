"""verifiers: advantages written into the `advantages` slot of message nodes, episode by episode.

    assign_advantages(episodes, credit="dr_mas")      # before the episodes go to the trainer

Written against verifiers 0.4.0, whose episodes hold one trace for each agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from credit.integrations.rows.row_advantages import RowAdvantages
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
    groups: list[str] = []
    outcomes: list[float] = []
    nodes: list[Any] = []
    episode_of: list[int] = []  # of each trace, as the next three
    names: list[str] = []
    trainable: list[bool] = []
    counts: list[int] = []
    for number, episode in enumerate(episodes):
        groups.append(_group(episode))
        outcomes.append(_outcome(episode) if reward is None else float(reward(episode)))
        for trace in episode.traces:
            sampled, agent = [node for node in trace.nodes if node.sampled], trace.agent
            nodes += sampled
            episode_of.append(number)
            names.append(agent.name)
            trainable.append(agent.trainable)
            counts.append(len(sampled))
    of_trace = np.repeat(np.arange(len(counts)), np.array(counts, np.int64))
    of_episode = np.array(episode_of, np.int64)[of_trace]
    trained = np.array(trainable, bool)[of_trace]
    count = np.bincount(of_episode, minlength=len(groups))
    place = np.arange(len(nodes)) - (np.cumsum(count) - count)[of_episode]  # of a message among those of its episode
    result = advantages(
        group=_repeated(groups, of_episode),
        trace=of_episode,
        agent=_repeated(names, of_trace),
        turn=place,
        reward=np.array(outcomes, np.float64)[of_episode],
        where=trained,
    )
    for node, value, written in zip(nodes, result.advantages.tolist(), trained.tolist(), strict=True):
        if written:
            node.advantages = [value] * node.mask.count(True)
    return result.metrics


def _repeated(names: list[str], rows: np.ndarray) -> pa.Array:
    """Names by their number, one a row: each word is read once, not once a row."""
    return pa.array(names, pa.string()).dictionary_encode().take(pa.array(rows))


def _group(episode: Any) -> str:
    if episode.group is not None:
        return str(episode.group.id)
    key = episode.task.key or episode.task.hash
    if key is None:
        raise CreditError(f"episode {episode.id!r} has no group, and its task no key and no hash; set episode.group")
    return str(key)


def _outcome(episode: Any) -> float:
    """The one number that the traces of an episode earned; NaN where none was scored."""
    earned = set()
    for trace in episode.traces:
        for part in trace.rewards.values():
            if part is not None:
                earned.add(trace.reward)
                break
    if len(earned) > 1:
        raise CreditError(
            f"traces of episode {episode.id!r} earned different rewards, {sorted(earned)}; pass reward=, the outcome "
            "of an episode"
        )
    return earned.pop() if earned else float("nan")
