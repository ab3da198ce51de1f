"""Tasks that an agent no longer takes part in may collapse while others gain: the mean of all hides both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.reports.tool_calls import ToolCalls
from credit.sides.changed_teams import TeamChange, team_changes, told_team_changes

Run = tuple[str, int, tuple[str, ...], float]


def drawn(random: np.random.Generator, kind: str, tasks: int = 40) -> list[Run]:
    """Runs of two versions, 2 to 4 each of a task, of which every fourth one needs cold.

    In version 1 it acts there, in version 0 not, mostly, which takes 6 of 10 successes where `kind` is "harm". Or it is
    called where a run goes wrong: on both sides alike, or on the first one alone.
    """
    runs = []
    for task in range(tasks):
        rate = float(random.beta(2, 1.5))
        for side in (0, 1):
            for _ in range(int(random.integers(2, 5))):
                cold = task % 4 == 0 and random.random() < (0.94, 0.15)[side]
                won = random.random() < (rate if kind != "harm" else (0.6, 0.78)[side] if task % 4 else 0.8)
                if kind == "harm" and task % 4 == 0 and not cold:
                    won = random.random() < 0.2
                if kind in ("called", "dropped"):
                    cold = random.random() < (0.2 if won else 0.7) and (kind == "called" or side == 0)
                runs.append((f"q{task}", side, ("desk", "cold" if cold else "general"), float(won)))
    return runs


def changes(runs: list[Run]) -> list[TeamChange]:
    rows = [(group, f"t{i}", agent, won) for i, (group, _, agents, won) in enumerate(runs) for agent in agents]
    group, trace, agent, reward = map(list, zip(*rows, strict=True))
    _, _, read = credit.from_columns(group=group, trace=trace, agent=agent, reward=reward)
    place = [int(name[1:]) for name in read.traces.traces["trace"].to_pylist()]
    side, value = np.array([runs[i][1] for i in place]), np.array([runs[i][3] for i in place])
    return team_changes(read.traces, value, side, ToolCalls(read.traces))


def test_tasks_that_collapsed_behind_a_mean_are_told_with_their_agent() -> None:
    """Success was 0.655 and 0.655, and of the 11 tasks whose desk no longer acted it fell from 0.83 to 0.24."""
    random, found = np.random.default_rng(0), 0
    for _ in range(10):
        first, *_ = made = changes(drawn(random, "harm"))
        found += first.stands_out
        assert (first.agent, first.stopped) == ("cold", True)
        assert 8 <= first.changed.tasks <= 10 and first.changed.tasks + first.rest.tasks == 40
        assert first.changed.second < first.changed.first - 0.2 and first.rest.second > first.rest.first
        told = told_team_changes(made, ("v1", "v2"), "success", certain=True)
        assert told.count("success of ") == first.stands_out  # general acts in its place, and says the same
        assert told == told_team_changes(made, ("v1", "v2"), "success") or not first.stands_out
    assert found >= 7


@pytest.mark.parametrize("kind", ["called", "dropped", "moved"])
def test_an_agent_that_is_called_where_runs_fail_or_moves_without_harm_is_told_in_one_of_20(kind: str) -> None:
    """Of tasks chosen by the run itself the side with the agent is at its worst, whatever the sides do."""
    random = np.random.default_rng(1)
    found = sum(any(one.stands_out for one in changes(drawn(random, kind))) for _ in range(60))
    assert found <= 6  # 7 or more would come once in 30 such tests at 5 %


def test_parts_of_pairs_are_counted_by_hand() -> None:
    runs = []
    for task in range(9):
        gone = task < 8
        runs += [(f"q{task}", 0, ("a", "b"), 1.0)] * 2 + [(f"q{task}", 1, ("a",) if gone else ("a", "b"), 0.0)] * 2
    runs += [("q9", 0, ("a", "b"), 1.0), ("q9", 1, ("a",), 0.0)]  # of one run nothing tells who would act
    (only,) = changes(runs)
    assert (only.agent, only.stopped, only.changed.tasks, only.rest.tasks, only.single) == ("b", True, 8, 1, 1)
    assert (only.changed.first, only.changed.second, only.rest.first, only.rest.second) == (1, 0, 1, 0)
    assert only.changed.p == 2 / 2**8 and only.changed.stands_out and not only.stands_out
    assert only.changed.told() == "1 to 0, beyond chance" and only.rest.told() == "1 to 0, too few differ to tell"
    runs[32:36] = [("q8", 0, ("a", "b"), 0.0)] * 2 + [("q8", 1, ("a", "b"), 1.0)] * 2
    assert told_team_changes(changes(runs), ("v1", "v2"), "success") == (
        "success of 8 tasks in which b acts in v1 and mostly not in v2: 1 to 0, beyond chance; of 1 other task: 0 to "
        "1, too few differ to tell; 1 more task has one run of a side"
    )
    runs = [(task, side, ("a", "b") if side else ("a",), won) for task, side, _, won in runs]
    assert changes(runs) == [], "a team that changed as a whole is what all tasks tell"


def test_the_page_and_metrics_tell_it_with_the_tasks_that_fell_most(tmp_path: Path) -> None:
    lines = []
    for i, (task, side, agents, won) in enumerate(drawn(np.random.default_rng(0), "harm", 80)):
        events = [{"id": name, "type": "message", "agent": name} for name in agents]
        lines.append({"trace_id": f"t{i}", "task_id": task, "system": f"v{side}", "events": events, "edges": [],
                      "rewards": {"team": won}})  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = ["metrics", str(tmp_path), "--sides", "system=v0,v1"]
    told = json.loads(CliRunner().invoke(cli, [*asked, "--json"]).stdout)
    begin = "success of 19 tasks in which cold acts in v0 and mostly not in v1: "
    assert told["by_team"].startswith(begin) and told["origin"].startswith(told["by_team"])
    assert told["teams"][0]["stands_out"] and f"S{told['by_team'][1:]}." in told["lines"]
    means = told["each_task"]
    fell = [means[name][1] - means[name][0] for name in told["tasks"]["fell"]]
    assert fell == sorted(fell) and fell[0] < fell[-1] < 0
    assert f"; fell most: {told['tasks']['fell'][0]} 1 to 0, " in told["of_tasks"]
    told_plainly = CliRunner().invoke(cli, ["summary", str(tmp_path)]).stdout
    assert f"\nS{told['by_team'][1:]}.\n" in told_plainly
    page = tmp_path / "page.html"
    said = CliRunner().invoke(cli, ["report", str(tmp_path), "--sides", "system=v0,v1", "-o", str(page)])
    assert said.exit_code == 0, said.output
    assert begin in page.read_text()
