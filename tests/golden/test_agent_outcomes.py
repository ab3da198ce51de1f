"""Outcomes of single agents in episodes of prime-rl: its own `hierarchical_grpo` and `rae` gave these numbers.

PrimeIntellect-ai/prime-rl at 559b447 (Apache-2.0), `src/prime_rl/orchestrator/algo/`, executed in float64.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from estimators import Reason

Agents = list[tuple[str, float]]

GAMES: list[Agents] = [[("white", w), ("black", -w)] for w in (1.0, 0.0, -1.0, 1.0, 0.0, 1.0)]
PROPOSALS: list[Agents] = [
    [("proposer", p), *(("solver", s) for s in solved), ("judge", j)]
    for p, solved, j in ((0.75, (1.0, 0.0, 1.0, 0.25), 0.5), (0.1, (0.0, 0.0, 0.0, 0.1), 1.0), (0.3, (1.0, 1.0), 0.0))
] + [[("proposer", 0.0), ("judge", 0.0)]]
BEST: list[Agents] = [
    [*(("solver", s) for s in found), ("selector", max(found))]
    for found in ((0.2, 0.9, 0.1), (0.4, 0.3, 0.7), (1.0, 1.0, 1.0))
]
"""Agents of each episode with their rewards. The judge is not trained. Where all agree, the reward is the team's."""

EXECUTED: list[tuple[str, list[Agents], str, dict[str, Any], list[float]]] = [
    ("self-play", GAMES, "hierarchical_grpo", {}, [2 / 3, -2 / 3, -1 / 3, 1 / 3, -4 / 3, 4 / 3, 2 / 3, -2 / 3,
      -1 / 3, 1 / 3, 2 / 3, -2 / 3]),
    ("self-play", GAMES, "prime_rl_rae", {}, [1.0, -1.0, -0.05, 0.05, -1.0475, 1.0475, 1.004875, -1.004875,
      -0.04536875, 0.04536875, 0.9568996875, -0.9568996875]),
    ("proposer-solver", PROPOSALS, "hierarchical_grpo", {"episode_agents": "solver"},
     [0.4625, 0.4375, -0.5625, 0.4375, -0.3125, -0.1875, -0.025, -0.025, -0.025, 0.075, 0.0125, 0.0, 0.0, -0.2875]),
    ("proposer-solver", PROPOSALS, "prime_rl_rae", {},
     [0.75, 1.0, -0.05, 0.9525, 0.154875, 0.0625, -0.10286875, -0.0977253125, -0.092839046875, 0.011802905468749944,
      0.259375, 0.9112127601953124, 0.8656521221855468, -0.05359375]),
    ("best of n", BEST, "hierarchical_grpo", {"episode_agents": ["solver"]},
     [-0.2, 0.5, -0.3, 1 / 30, -1 / 15, -1 / 6, 7 / 30, -1 / 6, 0.0, 0.0, 0.0, 2 / 15]),
    ("best of n", BEST, "prime_rl_rae", {}, [0.2, 0.89, 0.0455, 0.9, 0.343225, 0.22606375, 0.6147605625, 0.655,
      0.884022534375, 0.8398214076562498, 0.7978303372734373, 0.92225]),
]  # fmt: skip


def episodes(folder: Path, rewards: list[Agents]) -> Path:
    """A log of verifiers: one call for each agent."""
    node = {"message": {"role": "assistant", "content": "x"}, "sampled": True, "token_ids": [1], "mask": [True]}
    lines = [
        {
            "id": f"e{number}", "env": {"id": "env"}, "task": {"key": "q"}, "group": {"id": "g"}, "ok": True,
            "traces": [
                {"id": f"e{number}-{place}", "agent": {"name": name, "trainable": name != "judge"},
                 "nodes": [node], "rewards": {"r": {"score": 2 * amount, "weight": 0.5}}}
                for place, (name, amount) in enumerate(agents)
            ],
        }
        for number, agents in enumerate(rewards)
    ]  # fmt: skip
    path = folder / "traces.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(("what", "rewards", "method", "options", "expected"), EXECUTED)
def test_numbers_are_those_of_prime_rl(
    what: str, rewards: list[Agents], method: str, options: dict[str, Any], expected: list[float], tmp_path: Path
) -> None:
    traces = credit.read(episodes(tmp_path, rewards))
    assert traces.problems == ()
    found = credit.run(traces, method, **options)
    count = traces.sizes.events
    trained = np.asarray(traces.graph.trained_mask)[:count]
    np.testing.assert_allclose(np.asarray(found.advantage)[:count][trained], expected, rtol=3e-7, atol=1e-7)
    assert np.asarray(found.valid)[:count].tolist() == trained.tolist()
    assert set(np.asarray(found.reason)[:count][~trained].tolist()) <= {int(Reason.FROZEN)}


def test_a_chosen_outcome_takes_the_place_of_those_of_agents(tmp_path: Path) -> None:
    path = episodes(tmp_path, GAMES[:4])
    assert credit.read(path).evidence["agent_reward"].mask.sum() == 6  # the second game is a draw: the team's 0
    for options in ({"reward": "white.reward"}, {"rewards": {f"e{i}": w for i, w in enumerate((1.0, 0, -1, 1))}}):
        traces = credit.read(path, **options)
        assert traces.problems == () and "agent_reward" not in traces.evidence
        assert traces.reward[:4].tolist() == [1, 0, -1, 1]
        found = credit.run(traces, "rloo").advantage[:8:2]
        np.testing.assert_allclose(found, [1, -1 / 3, -5 / 3, 1], rtol=1e-6)


def test_names_of_agents_are_looked_up_in_the_log(tmp_path: Path) -> None:
    traces = credit.read(episodes(tmp_path, PROPOSALS))
    with pytest.raises(credit.CreditError, match=r"names 'solvr'; .* judge, proposer, solver; did you mean"):
        credit.run(traces, "hierarchical_grpo", episode_agents="solvr")
    with pytest.raises(credit.CreditError, match="a graph does not hold names: call"):
        credit.hierarchical_grpo(traces.graph, traces.reward, episode_agents="solver")
    with pytest.raises(credit.CreditError, match=r"'rloo'.*population is 'trace'"):
        credit.run(traces, "rloo", population="trace")
