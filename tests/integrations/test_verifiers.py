"""verifiers 0.4.0 for real: its own episodes, traces and branches, and the tokens that a trainer would read."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("verifiers", reason="verifiers is not installed here; `make integrations` runs this")

from pages import block
from timing import compare
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.episode import Episode, GroupInfo
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, Reward, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, UserMessage

from credit.integrations import RowAdvantages
from credit.integrations.verifiers import assign_advantages
from graphs.errors import CreditError

TOLERANCE = 2e-6
COUNT = itertools.count()


def trace_of(agent: str, reward: float | None, turns: int, *, trainable: bool = True, ok: bool = True) -> Any:
    nodes = []
    for turn in range(turns):
        nodes.append(MessageNode(parent=len(nodes) - 1 if nodes else None, message=UserMessage(content="go on"),
                                 token_ids=[1, 2], mask=[False, False]))  # fmt: skip
        nodes.append(MessageNode(parent=len(nodes) - 1, message=AssistantMessage(content="done"), sampled=True,
                                 token_ids=[3, *[4] * (turn + 1)], mask=[False, *[True] * (turn + 1)],
                                 logprobs=[-1.0] * (turn + 1)))  # fmt: skip
    return Trace(
        task=TraceTask(type="Task", data={"q": 1}, key="task"),
        agent=AgentInfo(config=AgentConfig(), name=agent, trainable=trainable),
        nodes=nodes,
        rewards={} if reward is None else {"correct": Reward(score=reward)},
        ok=ok,
    )


def episode(*traces: Any, group: str | None = "g") -> Any:
    task = TraceTask(type="Task", data={"q": 1}, key="task")
    return Episode(task=task, traces=list(traces), group=None if group is None else GroupInfo(id=group))


def numbers(made: Any) -> list[list[float | None]]:
    return [
        [None if node.advantages is None else node.advantages[0] for node in trace.nodes if node.sampled]
        for trace in made.traces
    ]


def test_an_episode_counts_once_however_many_messages_it_has() -> None:
    episodes = [episode(trace_of("a", 1.0, 3)), *(episode(trace_of("a", 0.0, 1)) for _ in range(3))]
    metrics = assign_advantages(episodes, credit="rloo")
    assert numbers(episodes[0]) == [[pytest.approx(1.0, abs=TOLERANCE)] * 3]
    assert numbers(episodes[1]) == [[pytest.approx(-1 / 3, abs=TOLERANCE)]]
    assert metrics["credit/traces"] == 4


def test_a_trainer_reads_the_numbers_from_the_branch() -> None:
    episodes = [episode(trace_of("a", 1.0, 2)), episode(trace_of("a", 0.0, 1))]
    assign_advantages(episodes)
    (branch,) = episodes[0].traces[0].branches
    assert branch.token_ids == [1, 2, 3, 4, 1, 2, 3, 4, 4]
    assert branch.advantages == [0, 0, 0, 1, 0, 0, 0, 1, 1]
    assert len(branch.advantages) == len(branch.logprobs)


def test_agents_of_a_team_are_compared_with_their_like() -> None:
    episodes = [
        episode(trace_of("solver", 1.0, 2), trace_of("critic", 1.0, 1)),
        episode(trace_of("solver", 0.0, 1), trace_of("critic", 0.0, 1)),
    ]
    exec(block("py", "assign_advantages("), {"episodes": episodes})
    solver, critic = np.std([1, 1, 0], ddof=1) + 1e-6, np.std([1, 0], ddof=1) + 1e-6
    assert numbers(episodes[0])[0] == pytest.approx([1 / 3 / solver] * 2, abs=TOLERANCE)
    assert numbers(episodes[0])[1] == pytest.approx([0.5 / critic], abs=TOLERANCE)
    assert numbers(episodes[1]) == [[pytest.approx(-2 / 3 / solver)], [pytest.approx(-0.5 / critic)]]


def test_what_is_not_trained_is_left_alone() -> None:
    frozen = [trace_of("judge", 1.0, 1, trainable=False), trace_of("judge", 0.0, 1, trainable=False)]
    episodes = [episode(trace_of("a", 1.0, 1), frozen[0]), episode(trace_of("a", 0.0, 1), frozen[1])]
    kept = RowAdvantages("reinforce_pp")
    assign_advantages(episodes, credit=kept)
    assert numbers(episodes[0])[1] == [None] and numbers(episodes[0])[0] != [None]
    assign_advantages(episodes, credit=kept)
    assert kept.compilations == 1


def test_episodes_without_an_outcome_get_zeros() -> None:
    episodes = [episode(trace_of("a", 1.0, 1)), episode(trace_of("a", 0.0, 1)), episode(trace_of("a", None, 1))]
    metrics = assign_advantages(episodes)
    assert [numbers(made) for made in episodes] == [[[1.0]], [[-1.0]], [[0.0]]]
    assert metrics["credit/unscored"] == pytest.approx(1 / 3)


def test_averages_that_a_call_would_lose_are_refused() -> None:
    """SPIRAL's averages began with 0 in each call, so that advantages were rewards, without a word."""
    with pytest.raises(CreditError, match=r"'spiral_rae' carries averages .*; pass a RowAdvantages that is made once"):
        assign_advantages([], credit="spiral_rae")
    assert assign_advantages([], credit=RowAdvantages("spiral_rae"))["credit/rows"] == 0


def test_rewards_that_differ_are_not_guessed_at() -> None:
    episodes = [episode(trace_of("a", 1.0, 1), trace_of("b", 0.5, 1)), episode(trace_of("a", 0.0, 1), group=None)]
    with pytest.raises(CreditError, match=r"earned different rewards, \[0.5, 1.0\]; pass reward="):
        assign_advantages(episodes)
    episodes[1].group = GroupInfo(id="g")
    assign_advantages(episodes, reward=lambda made: sum(trace.reward for trace in made.traces))
    assert numbers(episodes[0]) == [[1.5], [1.5]]


def test_agents_with_rewards_of_their_own_are_compared_by_name() -> None:
    """Self-play, and several traces of one name, were refused; an error counted as a reward of 0."""
    draw = np.random.default_rng(8)
    won = draw.normal(size=4)
    episodes = [
        episode(trace_of("first", reward, 2), trace_of("second", -reward, 1), trace_of("second", 0.5 * reward, 1))
        for reward in won
    ]
    episodes.append(episode(trace_of("first", 9.0, 1, ok=False), trace_of("second", 0.0, 1)))
    assign_advantages(episodes, credit="dr_grpo", options={"by": "task,agent", "population": "agent"})
    second = np.append(np.stack([-won, 0.5 * won], axis=1).ravel(), 0.0)
    want = [
        [[x] * 2, [y], [z]]
        for x, (y, z) in zip(won - won.mean(), (second[:8] - second.mean()).reshape(4, 2), strict=True)
    ]
    for made, row in zip(episodes, want, strict=False):
        assert numbers(made) == [pytest.approx(part, abs=TOLERANCE) for part in row]
    assert numbers(episodes[4]) == [[None], [pytest.approx(-second.mean(), abs=TOLERANCE)]]


def test_overhead_beside_a_plain_loop() -> None:
    """Reward minus the group's mean into the same slots, since verifiers has no estimator of its own."""
    kept = RowAdvantages("dr_grpo", rows=1024)
    kept.warmup()
    draw = np.random.default_rng(4)

    @functools.cache  # both overwrite what they write, and episodes take longer to make than to fill
    def episodes(rows: int) -> list[Any]:
        return [episode(trace_of("a", float(draw.normal()), 2), group=f"g{i // 4}") for i in range(rows // 2)]

    def ours(batch: list[Any]) -> Any:
        assign_advantages(batch, credit=kept)

    def theirs(batch: list[Any]) -> Any:
        groups: dict[str, list[Any]] = {}
        for one in batch:
            groups.setdefault(one.group.id, []).append(one)
        for members in groups.values():
            mean = sum(one.traces[0].reward for one in members) / len(members)
            for one in members:
                for node in one.traces[0].nodes:
                    if node.sampled:
                        node.advantages = [one.traces[0].reward - mean] * sum(node.mask)

    compare("verifiers, beside a plain loop", episodes, ours, theirs, kept, trainer="verifiers 0.4.0",
            ran="its episodes", numbers=lambda batch, _: [numbers(one) for one in batch])  # fmt: skip
