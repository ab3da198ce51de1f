"""prime-rl's own types, algorithms and samples, from its source at 559b447, beside ours on the same episodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("prime_rl", reason="prime-rl has no release; put its source at 559b447 on PYTHONPATH")

import prime_rl.configs.algorithm
import verifiers.v1 as vf
from prime_rl.orchestrator import algo
from prime_rl.orchestrator.algo import ALGORITHM_CLASSES, build_algorithm
from prime_rl.orchestrator.algo.base import Algorithm, iter_trainable_traces
from prime_rl.orchestrator.algo.hierarchical_grpo import HierarchicalGRPOAlgorithm
from prime_rl.orchestrator.algo.rae import RAEAlgorithm
from prime_rl.orchestrator.algo.routing import is_trainable, scalar_advantage
from prime_rl.orchestrator.trajectories import trace_to_samples
from prime_rl.trainer.batch import prepare_sample
from pydantic import TypeAdapter
from sources import patched
from timing import compare

from credit.integrations.prime_rl import CreditAlgorithm
from graphs.errors import CreditError

POOL: Any = None  # the policy's servers, which none of these algorithms asks


def trace_of(agent: str, reward: float | None, turns: int = 1, *, ok: bool = True, trainable: bool = True) -> Any:
    nodes = []
    for turn in range(turns):
        parent = len(nodes) - 1 if nodes else None
        nodes.append(vf.MessageNode(parent=parent, message=vf.UserMessage(content="go on"),
                                    token_ids=[1, 2], mask=[False, False]))  # fmt: skip
        nodes.append(vf.MessageNode(parent=len(nodes) - 1, message=vf.AssistantMessage(content="done"), sampled=True,
                                    token_ids=[3, *[4] * (turn + 1)], mask=[False, *[True] * (turn + 1)],
                                    logprobs=[-1.0] * (turn + 1)))  # fmt: skip
    return vf.Trace[vf.TaskData](
        task=vf.TraceTask(type="Task", data=vf.TaskData(idx=0, prompt=None)),
        agent=vf.AgentInfo(config=vf.AgentConfig(), name=agent, trainable=trainable),
        nodes=nodes,
        rewards={} if reward is None else {"reward": vf.Reward(score=reward)},
        ok=ok,
    )


def episode(*traces: Any) -> Any:
    return vf.Episode(task=traces[0].task, group=vf.GroupInfo(id="group"), traces=list(traces), ok=True)


def games(draw: np.random.Generator, count: int, whole: bool = False) -> list[Any]:
    """Zero-sum games of two players; `whole`: rewards in eighths, with which single precision computes exactly."""
    made = []
    for _ in range(count):
        won = float(draw.integers(-8, 9)) / 8 if whole else float(draw.normal())
        made.append(episode(trace_of("first", won, int(draw.integers(1, 4))), trace_of("second", -won)))
    return made


def proposals(draw: np.random.Generator, count: int) -> list[Any]:
    """A proposer and four solvers each; one solver in six ends in an error, and one judge in each is not trained."""
    made = []
    for _ in range(count):
        solvers = [trace_of("solver", float(draw.normal()), 2, ok=bool(draw.random() > 1 / 6)) for _ in range(4)]
        judge = trace_of("judge", 9.0, trainable=False)
        made.append(episode(trace_of("proposer", float(draw.normal())), *solvers, judge))
    return made


def algorithm(credit: Any, **attributes: Any) -> Any:
    kind = type("Ours", (CreditAlgorithm,), {"credit": credit, "rows": 64, **attributes})
    return kind(SimpleNamespace(), POOL)


def numbers(episodes: list[Any]) -> list[list[float | None]]:
    return [[scalar_advantage(trace) for trace in made.traces] for made in episodes]


def of(scored: Algorithm, groups: list[list[Any]]) -> np.ndarray:
    """The numbers of an algorithm for groups one after the other, NaN for none, on copies of the episodes."""
    answers = []
    for group in groups:
        own = [made.model_copy(deep=True) for made in group]
        asyncio.run(scored.finalize_group(own))
        answers += [np.nan if value is None else value for row in numbers(own) for value in row]
    return np.array(answers)


@pytest.mark.parametrize("whole", [True, False], ids=["eighths", "normal"])
def test_rae_is_reproduced_from_group_to_group(whole: bool) -> None:
    """prime-rl computes in double precision, ours in single: the same numbers where both are exact."""
    draw = np.random.default_rng(3)
    groups = [games(draw, 6, whole) for _ in range(5)]
    decay = 0.5 if whole else 0.95
    want = of(RAEAlgorithm(SimpleNamespace(decay=decay), POOL), groups[: 1 if whole else 5])
    ours = algorithm("spiral_rae", options={"decay": decay})
    got = of(ours, groups[: 1 if whole else 5])
    assert np.abs(got - want).max() <= (0 if whole else 5e-7)
    assert set(ours.averages) == {"first", "second"} and np.abs(want).max() > 1 / 2


def test_rae_of_several_traces_of_a_name() -> None:
    groups = [proposals(np.random.default_rng(seed), 3) for seed in range(3)]
    want = of(RAEAlgorithm(SimpleNamespace(decay=0.95), POOL), groups)
    got = of(algorithm("spiral_rae", options={"population": "agent"}), groups)
    assert np.isnan(want).any() and np.array_equal(np.isnan(want), np.isnan(got))
    assert np.nanmax(np.abs(got - want)) <= 5e-7


@pytest.mark.parametrize("names", [["solver"], ["solver", "proposer"]])
def test_hierarchical_grpo_is_reproduced(names: list[str]) -> None:
    groups = [proposals(np.random.default_rng(seed), 4) for seed in range(3)]
    want = of(HierarchicalGRPOAlgorithm(SimpleNamespace(episode_agents=names), POOL), groups)
    got = of(algorithm("hierarchical_grpo", options={"episode_agents": names}), groups)
    assert np.isnan(want).sum() >= 12 and np.array_equal(np.isnan(want), np.isnan(got))
    assert np.nanmax(np.abs(got - want)) <= 5e-7


def test_what_ended_in_an_error_enters_no_baseline() -> None:
    """It counted: 1, −.5, −.5 in the place of 1, −1 and nothing."""
    group = [episode(trace_of("a", 1.0)), episode(trace_of("a", 0.0)), episode(trace_of("a", 0.0, ok=False))]
    asyncio.run(algorithm("rloo").finalize_group(group))
    assert numbers(group) == [[1.0], [-1.0], [None]]


def test_samples_of_the_trainer_carry_the_numbers() -> None:
    """Each turn has its own; what the method refuses gets 0, which prime-rl's trainer takes and does not train on."""
    group = [episode(trace_of("a", reward, turns)) for reward, turns in ((1.0, 3), (0.0, 2), (0.5, 1))]
    asyncio.run(algorithm("turn_baseline").finalize_group(group))
    (sample,) = trace_to_samples(group[0].traces[0], env_name="env")
    sample.temperatures = [1.0] * len(sample.token_ids)
    assert prepare_sample(sample, 64).advantages == sample.advantages
    assert len({value for value, wrote in zip(sample.advantages, sample.mask, strict=True) if wrote}) > 1
    alone = [episode(trace_of("a", 1.0))]
    asyncio.run(algorithm("rloo").finalize_group(alone))
    assert numbers(alone) == [[0.0]] and not is_trainable(alone[0].traces[0])


def test_a_method_that_compares_over_the_batch_is_named() -> None:
    """prime-rl asks for one group at a time; each was whitened by itself, without a word."""
    with pytest.warns(UserWarning, match="'reinforce_pp' compares over the batch, .* the episodes of one group"):
        algorithm("reinforce_pp")


def test_one_number_of_a_team_and_an_outcome_of_ones_own() -> None:
    differ = [episode(trace_of("a", 1.0), trace_of("b", 0.0)), episode(trace_of("a", 0.0), trace_of("b", 0.0))]
    with pytest.raises(CreditError, match=r"earned different rewards, \[0.0, 1.0\]; pass reward="):
        asyncio.run(algorithm("rloo").finalize_group(differ))
    outcome = staticmethod(lambda made: sum(trace.reward for trace in made.traces))
    asyncio.run(algorithm("rloo", outcome=outcome).finalize_group(differ))
    assert numbers(differ) == [[1.0, 1.0], [-1.0, -1.0]]


def test_it_is_built_by_the_name_that_it_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    class SelfPlay(CreditAlgorithm):
        credit = "spiral_rae"
        rows: ClassVar[int] = 64

    monkeypatch.setitem(ALGORITHM_CLASSES, "rae", SelfPlay)
    built = build_algorithm(SimpleNamespace(type="rae", action_loss_type="rl"), POOL)
    asyncio.run(built.setup())
    asyncio.run(built.finalize_group(games(np.random.default_rng(0), 4)))
    assert built.credit_metrics["credit/groups_that_teach"] == 1 and built.credit_metrics["credit/compilations"] == 0


def test_renamed_hooks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = algorithm("rloo")

    async def elsewhere(self: Any, episodes: list[Any]) -> None:
        """What a version does that calls another name."""

    monkeypatch.setattr(Algorithm, "finalize_group", elsewhere)
    with pytest.raises(CreditError, match="never asked 'rloo' for advantages"):
        asyncio.run(scored.finalize_group(games(np.random.default_rng(0), 2)))
    monkeypatch.delattr(Algorithm, "score_group")
    with pytest.raises(CreditError, match="Algorithm has no score_group"):
        algorithm("rloo")


def test_the_patch_of_the_page_takes_an_algorithm_by_its_import_path(tmp_path: Path) -> None:
    configs = patched(prime_rl.configs.algorithm, tmp_path / "configs")
    path = f"{CreditAlgorithm.__module__}.{CreditAlgorithm.__name__}"
    config = TypeAdapter(configs.AlgoConfig).validate_python({"type": "custom", "import_path": path})
    made = patched(algo, tmp_path / "algo").build_algorithm(config, POOL)
    played = [episode(trace_of("a", reward)) for reward in (1.0, 0.0)]
    asyncio.run(made.finalize_group(played))
    assert type(made) is CreditAlgorithm and numbers(played) == [[1.0], [-1.0]]


def test_overhead_beside_prime_rls_own() -> None:
    draw = np.random.default_rng(4)
    ours = algorithm("dr_grpo", rows=1024)
    asyncio.run(ours.setup())

    class Mean(Algorithm):
        async def score_group(self, episodes: list[Any]) -> None:
            traces = [trace for _, trace in iter_trainable_traces(episodes)]
            mean = sum(trace.reward for trace in traces) / len(traces)
            for trace in traces:
                for node in trace.nodes:
                    if any(node.mask):
                        node.advantages = [trace.reward - mean] * sum(node.mask)

    theirs = Mean(SimpleNamespace(), POOL)
    kept: dict[int, list[Any]] = {}

    def batch(rows: int) -> list[Any]:
        return kept.setdefault(rows, [episode(trace_of("a", float(draw.normal()), 2)) for _ in range(rows // 2)])

    def run(scored: Algorithm) -> Callable[[list[Any]], None]:
        return lambda episodes: asyncio.run(scored.score_group(episodes))

    compare("prime-rl, beside a plain loop", batch, run(ours), run(theirs), ours._credit,
            ran="its algorithms, on its episodes", numbers=lambda made, _: numbers(made))  # fmt: skip
