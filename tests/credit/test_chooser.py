"""The chooser: each branch is decided by evidence that is, or is not, in the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.methods.advice import BRANCHES, UNITS, Advice, choose
from graphs.readers import read


def write(path: Path, *, rewards: tuple[float, ...] = (0.0, 1.0, 1.0), agents: int = 1, **evidence: Any) -> Path:
    """Traces of one task: a decision and two messages; evidence by name, one for all events or by (trace, event)."""
    lines = []
    for i, reward in enumerate(rewards):
        events: list[dict[str, Any]] = []
        for k, kind in enumerate(("orchestrator_decision", "message", "message")):
            event = {"id": f"e{k}", "t": k, "type": kind, "agent": f"a{k % agents}", "action": True}
            event |= {name: value(i, k) if callable(value) else value for name, value in evidence.items()}
            events.append(event)
        content = {"trace_id": f"t{i}", "task_id": "q", "events": events, "edges": [], "rewards": {"team": reward}}
        lines.append(json.dumps(content | {"costs": {"tokens": 1, "wall_clock_s": 1.0}}))
    path.write_text("\n".join(lines))
    return path


def advice(path: Path) -> Advice:
    return choose(read(path))


def methods(found: Advice) -> dict[str, str]:
    return {branch.unit: branch.method for branch in found.branches}


def test_every_method_and_unit_of_the_tree_exists() -> None:
    assert [unit for unit, _ in BRANCHES] == list(UNITS)
    assert {name for _, names in BRANCHES for name in names} <= set(credit.METHODS)


def test_an_outcome_alone_is_broadcast_and_says_so(tmp_path: Path) -> None:
    found = advice(write(tmp_path / "x.jsonl"))
    expected = {"team": "rloo", "orchestrator": "", "message": "", "tool": "", "agent": "", "role": "", "token": ""}
    assert methods(found) | {"turn": ""} == expected | {"turn": ""}
    assert found.command == "credit assign PATH... --method rloo -o advantages.parquet"
    assert "Splitting without new information gains nothing" in found.warnings[-1]
    by_unit = {branch.unit: branch for branch in found.branches}
    assert '"context": STRING' in by_unit["message"].needs["c3"] and by_unit["tool"].why.startswith("there is no such")


def test_values_and_agents_make_a_ledger_with_a_scale(tmp_path: Path) -> None:
    found = advice(write(tmp_path / "x.jsonl", agents=2, value=0.5))
    assert methods(found)["message"] == methods(found)["orchestrator"] == "gae" and found.scale == "dr_mas"
    assert found.compose == ("gae",) and not any("Splitting" in line for line in found.warnings)
    assert found.command.startswith("credit compose PATH... --methods rloo,gae,dr_mas -o ledger.parquet")
    assert found.command.endswith("--scale dr_mas")


@pytest.mark.parametrize("alternatives", [1, 2])
def test_siblings_count_only_where_a_context_has_two(tmp_path: Path, alternatives: int) -> None:
    def context(i: int, k: int) -> str:
        return f"c{k}"

    def node(i: int, k: int) -> str:
        return f"n{k}-{i % alternatives}"

    found = advice(write(tmp_path / "x.jsonl", context=context, node=node))
    assert methods(found)["message"] == ("c3" if alternatives == 2 else "")
    needs = {branch.unit: branch.needs for branch in found.branches}["message"]
    assert ("no context has two alternatives" in needs.get("c3", "")) == (alternatives == 1)


def test_groups_that_cannot_teach_fall_back_by_name(tmp_path: Path) -> None:
    lone = write(tmp_path / "x.jsonl")
    lone.write_text("\n".join(line.replace('"q"', f'"q{i}"') for i, line in enumerate(lone.read_text().splitlines())))
    found = advice(lone)
    assert found.baseline == "reinforce_batch" and "no group has traces of different outcomes" in found.warnings[0]
    assert "nothing to compare" in found.branches[0].needs["rloo"]
    equal = advice(write(tmp_path / "y.jsonl", rewards=(1.0, 1.0)))
    assert equal.baseline == "moving_average"


def test_the_command_follows_its_own_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.jsonl", agents=2, value=0.5)
    result = CliRunner().invoke(cli, ["choose", str(path), "--json"])
    assert result.exit_code == 0, result.output
    command = json.loads(result.stdout)["command"]
    assert command in CliRunner().invoke(cli, ["choose", str(path)]).stdout
    monkeypatch.chdir(tmp_path)
    followed = CliRunner().invoke(cli, command.replace("PATH...", str(path)).split()[1:])
    assert followed.exit_code == 0, followed.output
    assert (tmp_path / "advantages.parquet").is_file() and (tmp_path / "ledger.parquet").is_file()


def test_real_logs_get_honest_advice(shared_data: Path) -> None:
    tau = choose(read(shared_data / "tau_bench_airline"))
    assert tau.baseline == "rloo" and tau.compose == () and tau.scale == ""
    assert any("groups that teach nothing: 9 of 20" in line for line in tau.warnings)
    blamed = choose(read(shared_data / "who_and_when"))
    assert any("no group has traces of different outcomes" in line for line in blamed.warnings)
