"""Whether outcomes are of agents is a property of the log: a few traces with outcomes of agents alone are left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.methods.availability import availability
from credit.tables.advantages import table
from estimators import Reason

Runs = dict[str, tuple[str, dict[str, float], bool]]
"""Of each trace its group, its agents with what each earned, and whether these are outcomes of agents."""

AGENTS = ("planner", "coder", "tester")


def drawn(seed: int, odd: int, groups: int = 6) -> Runs:
    """Groups of two to four traces of two or three agents; so many traces have outcomes of agents."""
    rng = np.random.default_rng(seed)
    runs: Runs = {}
    for group in range(groups):
        for run in range(int(rng.integers(2, 5))):
            earned = round(float(rng.normal()), 3)
            runs[f"t{group}-{run}"] = f"g{group}", dict.fromkeys(AGENTS[: rng.integers(2, 4)], earned), False
    for name in rng.permutation(list(runs))[:odd].tolist():
        group, agents, _ = runs[name]
        runs[name] = group, agents | {"coder": 0.123}, True
    return runs


def verifiers(folder: Path, runs: Runs) -> Path:
    node = {"message": {"role": "assistant", "content": "x"}, "sampled": True, "token_ids": [1], "mask": [True]}
    return lines(
        folder / "traces.jsonl",
        [
            {"id": name, "env": {"id": "e"}, "task": {"key": group}, "group": {"id": group}, "ok": True,
             "traces": [{"id": f"{name}-{agent}", "agent": {"name": agent, "trainable": True}, "nodes": [node],
                         "rewards": {"right": {"score": earned, "weight": 1.0}}} for agent, earned in agents.items()]}
            for name, (group, agents, _) in runs.items()
        ],
    )  # fmt: skip


def native(folder: Path, runs: Runs) -> Path:
    return lines(
        folder / "log.jsonl",
        [
            {"trace_id": name, "task_id": group, "rewards": {} if own else {"team": agents["planner"]}, "edges": [],
             "costs": {}, "events": [{"id": f"{name}-{agent}", "t": i, "type": "message", "agent": agent}
                                     | ({"agent_reward": earned} if own else {})
                                     for i, (agent, earned) in enumerate(agents.items())]}
            for name, (group, agents, own) in runs.items()
        ],
    )  # fmt: skip


def rows(folder: Path, runs: Runs) -> Path:
    path = folder / "rows.csv"
    cells = ["group,trace,agent,reward,agent_reward"]
    for name, (group, agents, own) in runs.items():
        cells += [f"{group},{name},{agent},{f',{x}' if own else f'{x},'}" for agent, x in agents.items()]
    path.write_text("\n".join(cells) + "\n")
    return path


def lines(path: Path, documents: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


FORMATS: dict[str, Callable[[Path, Runs], Path]] = {"verifiers": verifiers, "native": native, "table": rows}


def advantages(path: Path, method: str) -> dict[tuple[str, int], tuple[float, bool]]:
    """The advantage of each action, by its trace and its number there, and whether it is one."""
    traces = credit.read(path)
    assert traces.problems == ()
    found: dict[tuple[str, int], tuple[float, bool]] = {}
    for row in table(traces, credit.run(traces, method), actions_only=True).to_pylist():
        number = sum(trace == row["trace"] for trace, _ in found)
        found[row["trace"], number] = (row["advantage"] if row["valid"] else 0.0), row["valid"]
    return found


@pytest.mark.parametrize("method", ["rloo", "grpo", "dr_grpo", "dr_mas"])
@pytest.mark.parametrize("odd", [1, *(pytest.param(odd, marks=pytest.mark.slow) for odd in (2, 3))])
@pytest.mark.parametrize("form", FORMATS)
def test_the_others_are_compared_as_if_odd_traces_were_absent(form: str, odd: int, method: str, tmp_path: Path) -> None:
    runs = drawn(odd, odd)
    whole = {name: run for name, run in runs.items() if not run[2]}
    for part in ("all", "whole"):
        (tmp_path / part).mkdir()
    found = advantages(FORMATS[form](tmp_path / "all", runs), method)
    expected = advantages(FORMATS[form](tmp_path / "whole", whole), method)
    assert sum(valid for _, valid in expected.values()) > 10
    others = {key: number for key, number in found.items() if key[0] in whole}
    assert others.keys() == expected.keys()
    np.testing.assert_allclose(list(others.values()), [expected[key] for key in others], rtol=1e-6, atol=1e-7)
    assert not any(valid for key, (_, valid) in found.items() if key[0] not in whole)


@pytest.mark.parametrize("form", FORMATS)
def test_odd_traces_are_named_with_a_remedy(form: str, tmp_path: Path) -> None:
    runs = drawn(4, 2)
    path = FORMATS[form](tmp_path, runs)
    first = next(name for name, run in runs.items() if run[2])
    said = f"2 of {len(runs)} traces have outcomes of agents alone, and most have one of the trace"
    assigned = CliRunner().invoke(cli, ["assign", str(path), "-o", str(tmp_path / "out.csv")]).stderr
    checked, chosen = (CliRunner().invoke(cli, [command, str(path)]).stdout for command in ("validate", "choose"))
    assert (
        f"the policy gradient may be biased: {said}" in assigned
        and "to train: credit assign" in chosen
        and "--method rloo -o" in chosen
    )
    for text in (assigned, checked, chosen):
        assert said in text and f": {first}, … and 1 more; " in text
        assert ("--reward-channel planner.reward makes" in text) == (form == "verifiers")
        assert "killed run" not in text
    traces = credit.read(path)
    reason = np.asarray(credit.run(traces, "rloo").reason)[: traces.sizes.events]
    assert (reason == Reason.NO_REWARD).sum() == sum(len(run[1]) for run in runs.values() if run[2])


@pytest.mark.parametrize(("odd", "switched"), [(0, False), (2, False), (3, True), (6, True)])
def test_the_majority_decides_and_a_switched_comparison_is_said(odd: int, switched: bool, tmp_path: Path) -> None:
    """Of six traces; at three and three, as of games with draws, agents are compared."""
    runs: Runs = {
        f"t{i}": ("g", {"planner": float(i), "coder": float(i) + (0.5 if i < odd else 0)}, i < odd) for i in range(6)
    }
    path = verifiers(tmp_path, runs)
    assigned = CliRunner().invoke(cli, ["assign", str(path), "-o", str(tmp_path / "out.csv")])
    line = f"look: agents of {odd} of 6 traces have outcomes of their own: rloo compares agents of one name (by task,"
    assert assigned.exit_code == 0 and (line in assigned.stderr) == switched
    number = {name: i for i, name in enumerate(runs)}
    compared = range(6) if switched else range(odd, 6)
    for (trace, of), (amount, valid) in advantages(path, "rloo").items():
        own = [number[t] + (0.5 if of and number[t] < odd and switched else 0) for t in runs if number[t] in compared]
        assert valid == (number[trace] in compared)
        if valid:
            mine = own[number[trace] - min(compared)]
            assert amount == pytest.approx(mine - (sum(own) - mine) / (len(own) - 1), abs=1e-6)


def test_games_of_which_some_end_in_a_draw_are_advised_as_they_are_assigned(tmp_path: Path) -> None:
    runs: Runs = {
        f"t{group}-{i}": (f"g{group}", {"white": won, "black": -won}, won != 0)
        for group in range(3) for i, won in enumerate((1.0, 0.0, -1.0, 1.0))
    }  # fmt: skip
    path = verifiers(tmp_path, runs)
    states = availability(credit.read(path))
    assert states["rloo"].state == "computable" == states["hierarchical_grpo"].state
    chosen = CliRunner().invoke(cli, ["choose", str(path)]).stdout
    assert "--method rloo -o" in chosen and "outcomes are of traces and of agents" not in chosen
    assert all(valid for _, valid in advantages(path, "rloo").values())


@pytest.mark.slow
def test_what_compares_agents_anyway_keeps_odd_traces(tmp_path: Path) -> None:
    """No comparison is switched by them: games that mostly end in a draw train by those that do not."""
    runs = drawn(5, 2)
    path = verifiers(tmp_path, runs)
    for method in ("hierarchical_grpo", "prime_rl_rae"):
        assert all(valid for _, valid in advantages(path, method).values())
    asked = CliRunner().invoke(cli, ["assign", str(path), "--evidence", "agent_reward", "-o", str(tmp_path / "o.csv")])
    assert "rloo compares agents of one name" in asked.stderr and "left out" not in asked.stderr


def test_parts_that_would_be_compared_in_two_ways_are_refused(tmp_path: Path) -> None:
    runs: Runs = {
        f"t{group}{i}": (f"g{group}", {"planner": float(i), "coder": float(i) / 2 if group else float(i)}, bool(group))
        for group in range(2) for i in range(3)
    }  # fmt: skip
    call = ["assign", str(native(tmp_path, runs)), "--chunk-events", "1", "-o", str(tmp_path / "out.csv")]
    found = CliRunner().invoke(cli, call)
    assert found.exit_code and "compared agents in some parts of the log" in str(found.exception) + found.output
    asked = CliRunner().invoke(cli, [*call, "--evidence", "agent_reward"])
    assert asked.exit_code == 0 and "compares agents of one name" in asked.stderr
