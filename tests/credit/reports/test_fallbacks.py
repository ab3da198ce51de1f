"""An agent that went on with another model was seen nowhere: not in the head, and in no test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.reports.leading_causes import leading_causes
from credit.reports.outcome_differences import outcome_differences
from graphs.logs import read
from graphs.traces.batch import Traces


def logs(
    folder: Path, random: np.random.Generator, harm: float, *, begins: int = 1, agents: tuple[str, ...] = ("searcher",),
    tasks: int = 40, lead: bool = False,
) -> Traces:  # fmt: skip
    """Runs in which an agent is asked 4 times, the small model in 40 % of them from call `begins` on, at random which.
    The outcome is less by `harm` there. Several agents have the same model, each call."""
    folder.mkdir(exist_ok=True)
    lines = []
    for i in range(tasks * 4):
        small = random.random() < 0.4
        reward = float(np.clip(np.round((0.7 + random.normal(0, 0.1) - harm * small) * 20) / 20, 0, 1))
        steps = [("lead", "large")] * lead + [
            (agent, "small" if small and k >= begins else "large") for k in range(4) for agent in agents
        ]
        events = [{"id": f"e{k}", "type": "message", "agent": agent, "model": model, "tokens": 100}
                  for k, (agent, model) in enumerate(steps)]  # fmt: skip
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i // 4}", "events": events, "edges": [],
                      "rewards": {"team": reward}})  # fmt: skip
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read(folder)


def test_a_model_that_an_agent_goes_on_with_is_a_cause_and_its_command_works(tmp_path: Path) -> None:
    (cause,) = leading_causes(logs(tmp_path, np.random.default_rng(1), 0.35))
    assert cause.words == "runs in which searcher used small after large" and cause.event == "e1"
    assert cause.told().endswith(
        "(beyond chance; what went wrong before may be why; `--sides model:searcher=large,small` compares them)"
    )
    told = CliRunner().invoke(cli, ["metrics", str(tmp_path), "--sides", cause.sides])
    assert told.exit_code == 0 and "beyond chance" in told.stdout
    printed = CliRunner().invoke(cli, ["summary", str(tmp_path)]).stdout
    assert f"What went wrong most:\n  R{cause.told()[1:]}.\n  See event e1 of trace " in printed
    beside = CliRunner().invoke(cli, ["summary", str(tmp_path), "--sides", cause.sides]).stdout
    assert "used small after large" not in beside, "the sides are this difference"


def test_a_model_of_whole_runs_is_a_cause_and_its_line_has_the_test(tmp_path: Path) -> None:
    """`large 12 %, small 96 %` had no test, and the head said that nothing stands out."""
    traces = logs(tmp_path, np.random.default_rng(1), 0.35, begins=0)
    (cause,) = leading_causes(traces)
    assert cause.words == "runs of model small" and cause.sides == "model" and cause.beyond_chance
    (line,) = [line for line in outcome_differences(traces).comparison() if "by model" in line]
    assert line.endswith("; beyond chance.")
    assert leading_causes(traces, of_model="model") == ()


@pytest.mark.parametrize("begins", [0, 1])
def test_agents_that_swap_models_together_are_one_cause(tmp_path: Path, begins: int) -> None:
    agents = tuple(f"searcher-{k}" for k in (1, 2, 3))
    traces = logs(tmp_path, np.random.default_rng(1), 0.35, begins=begins, agents=agents, lead=True)
    (cause,) = leading_causes(traces)
    lines = [line for line in outcome_differences(traces).comparison() if "by model" in line]
    if begins:
        assert not lines
        assert cause.words == "runs in which searcher-1, searcher-2 and searcher-3 used small after large"
    else:
        assert cause.words == "runs in which searcher-1, searcher-2 and searcher-3 have small"
        assert len(lines) == 1
        assert "by model of searcher-1, searcher-2 and searcher-3, mean" in lines[0]
    assert cause.sides == f"model:searcher-1{'=large,small' * begins}"


@pytest.mark.parametrize("worlds", [6, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("begins", [0, 1])
def test_models_at_random_are_no_cause(tmp_path: Path, worlds: int, begins: int) -> None:
    random, named = np.random.default_rng(begins), 0
    for k in range(worlds):
        agents = ("a", "b", "c")[: 1 + k % 3]
        traces = logs(tmp_path / str(k), random, 0.0, begins=begins, agents=agents, tasks=10, lead=k % 2 == 1)
        named += any(one.beyond_chance for one in leading_causes(traces))
    assert named <= max(1, 0.03 * worlds)
