"""Which agent takes most of the money: the head, the work by agent and the costs say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from credit.cli import cli

PRICES = "model,input,output\nbig,0,90\nsmall,0,1\n"


def shown(folder: Path, *command: str, models: dict[str, str]) -> str:
    """What a command prints of runs in which each agent, of its model, writes 100 tokens."""
    lines = []
    for number in range(8):
        events = [{"id": name, "type": "message", "agent": name, "model": model, "tokens": 100, "input_tokens": 0}
                  for name, model in models.items()]  # fmt: skip
        one = {"trace_id": f"t{number}", "task_id": f"q{number}", "events": events, "edges": []}
        lines.append(json.dumps(one | {"rewards": {"team": float(number % 2)}}) + "\n")
    (folder / "log.jsonl").write_text("".join(lines))
    (folder / "prices.csv").write_text(PRICES)
    call = [command[0], str(folder / "log.jsonl"), *command[1:]]
    return CliRunner(env={"COLUMNS": "200"}).invoke(cli, call, catch_exceptions=False).stdout


TEAM = {"planner": "small", "writer": "small", "reviewer": "big"}


def test_the_agent_that_takes_most_of_the_money_is_in_the_head(tmp_path: Path) -> None:
    """That a reviewer took 87 % of it stood in no line of the summary."""
    prices = ("--prices", str(tmp_path / "prices.csv"))
    said = shown(tmp_path, "summary", *prices, models=TEAM)
    assert "\nWhat it costs:\n  98 % of the money at the given prices (0.072 of 0.0736) went to reviewer.\n" in said
    work = said.partition("Work by agent\n")[2].splitlines()
    assert work[0].split()[-1] == "money"
    assert {row.split()[0]: row.split()[-1] for row in work[1:4]} == {
        "planner": "0.0008", "writer": "0.0008", "reviewer": "0.072"
    }  # fmt: skip
    costs = shown(tmp_path, "costs", *prices, models=TEAM).splitlines()
    assert costs[0].split()[-2:] == ["money", "share"]
    assert [row.split()[-2:] for row in costs[1:5]] == [["98", "%"], ["1", "%"], ["1", "%"], ["100", "%"]]


@pytest.mark.parametrize("models", [TEAM | {"reviewer": "small"}, {"writer": "small", "reviewer": "big"}])
def test_money_that_is_spread_or_of_two_agents_is_no_finding(tmp_path: Path, models: dict[str, str]) -> None:
    said = shown(tmp_path, "summary", "--prices", str(tmp_path / "prices.csv"), models=models)
    assert "went to " not in said


def test_without_money_there_is_no_column_of_it(tmp_path: Path) -> None:
    said = shown(tmp_path, "summary", models=TEAM).replace(str(tmp_path), "")
    assert "money" not in said and "went to " not in said
