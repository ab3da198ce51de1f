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

__all__ = ["assign_advantages", "credit_of_episodes"]


def assign_advantages(
    episodes: Sequence[Any],
    *,
    credit: str | Callable[..., Any] | RowAdvantages = "rloo",
    reward: Callable[[Any], float] | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Write an advantage on each sampled token of each trainable agent, and return the metrics.

    An episode is a trace, a message that the policy sampled is an action and a turn, the agent's name is the agent. A
    group is what `episode.group` says, else the task. Traces with an error, and those of agents that are not trainable,
    keep their slots and enter no statistics; messages without an answer get 0.

    A method that pays agents (`RowAdvantages.pays_agents`), such as `spiral_rae`, gets what each trace earned by
    itself. The others get the one number that the traces of an episode share. What nothing scored has no reward.

    Args:
      episodes: `verifiers.v1.Episode`s with their token ids and masks, as a training client records them.
      credit: a method by name, a function, or a `RowAdvantages` kept from step to step, which compiles once.
      reward: the outcome of an episode, for all its traces, in the place of what they earned.
      options: keyword arguments of the method.

    Raises:
      CreditError: traces of one episode earned different numbers, the method does not pay agents, and `reward` was not
        given; an episode without a group has no key of its task; a method by name carries averages from call to call.
    """
    advantages = credit if isinstance(credit, RowAdvantages) else RowAdvantages(credit, **(options or {}))
    if advantages.carries_state and advantages is not credit:
        raise CreditError(
            f"method {advantages.name!r} carries averages from batch to batch; pass a RowAdvantages that is made once"
        )
    traces = [(episode, trace) for episode in episodes for trace in episode.traces if _is_trained(trace)]
    metrics: dict[str, float] = credit_of_episodes(advantages, traces, _group, reward).metrics
    return metrics


def credit_of_episodes(
    advantages: Any,
    traces: Sequence[tuple[Any, Any]],
    group: Callable[[Any], str],
    reward: Callable[[Any], float] | None = None,
) -> Any:
    """Write the advantages of traces into their nodes, and return the answer.

    Args:
      advantages: a `RowAdvantages`, or a `TrainerCredit` of one.
      traces: the episode and the trace of each agent that is trained, each with sampled tokens.
      group: the group of an episode.
      reward, and errors: as of `assign_advantages`.
    """
    rows = getattr(advantages, "rows", advantages)
    episodes = list({id(episode): episode for episode, _ in traces}.values())
    places = {id(episode): number for number, episode in enumerate(episodes)}
    nodes = [[node for node in trace.nodes if any(node.mask)] for _, trace in traces]
    of_trace = np.repeat(np.arange(len(traces)), np.array([len(some) for some in nodes], np.int64))
    of_episode = np.array([places[id(episode)] for episode, _ in traces], np.int64)[of_trace]
    pays_agents = rows.pays_agents and reward is None
    outcome = (
        np.zeros(len(episodes)) if pays_agents else np.array([(reward or _outcome)(e) for e in episodes], np.float64)
    )
    earned = np.array([_earned(trace) if pays_agents else 0.0 for _, trace in traces], np.float64)
    result = advantages(
        group=_repeated([group(episode) for episode in episodes], of_episode),
        trace=of_episode,
        agent=_repeated([trace.agent.name for _, trace in traces], of_trace),
        instance=of_trace,
        turn=np.arange(len(of_trace)),
        reward=outcome[of_episode],
        evidence={"agent_reward": earned[of_trace]} if pays_agents else None,
    )
    for node, value in zip([node for some in nodes for node in some], result.advantages.tolist(), strict=True):
        node.advantages = [value] * node.mask.count(True)
    return result


def _is_trained(trace: Any) -> bool:
    return not trace.has_error and trace.agent.trainable and any(any(node.mask) for node in trace.nodes)


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


def _earned(trace: Any) -> float:
    """What a trace earned; NaN where nothing scored it."""
    scored = [part for part in trace.rewards.values() if part is not None]
    return float(trace.reward) if scored else float("nan")


def _outcome(episode: Any) -> float:
    """The one number that the traces of an episode earned, but for those with an error; NaN where none was scored."""
    numbers = {_earned(trace) for trace in episode.traces if not trace.has_error}
    earned = sorted(number for number in numbers if number == number)
    if len(earned) > 1:
        raise CreditError(
            f"traces of episode {episode.id!r} earned different rewards, {earned}; pass reward=, the outcome of an "
            "episode, or choose a method that pays agents, such as hierarchical_grpo, or rloo with population=agent"
        )
    return earned[0] if earned else float("nan")
