"""Which agent takes most of the money: the head, the work by agent and the costs say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.metrics.event_costs import read_prices
from credit.page import Findings
from credit.page.overview import overview
from graphs.logs import read

PRICES = "model,tool,input,output,call\nbig,,0,90,\nsmall,,0,1,\nboth,,1,90,\n,web,,,0.01\n"


def shown(folder: Path, *command: str, models: dict[str, str], counts: dict[str, Any] | None = None) -> str:
    """What a command prints of runs in which each agent, of its model, writes 100 tokens, or has these counts."""
    lines = []
    for number in range(8):
        events = [{"id": name, "type": "message", "agent": name, "model": model, "tokens": 100, "input_tokens": 0}
                  | (counts or {}).get(name, {}) for name, model in models.items()]  # fmt: skip
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
    assert "\nWhat it costs:\n  98 % of the money at the given prices (0.072 of 0.0736) went to reviewer, " in said
    work = said.partition("Work by agent\n")[2].splitlines()
    assert work[0].split()[-1] == "money"
    assert {row.split()[0]: row.split()[-1] for row in work[1:4]} == {
        "planner": "0.0008", "writer": "0.0008", "reviewer": "0.072"
    }  # fmt: skip
    costs = shown(tmp_path, "costs", *prices, models=TEAM).splitlines()
    assert costs[0].split()[-2:] == ["money", "share"]
    assert [row.split()[-2:] for row in costs[1:5]] == [["98", "%"], ["1", "%"], ["1", "%"], ["100", "%"]]


OF_PRICE = "a token of it (big) costs 90 times as much as one of the others (small); at their prices it would take {}"


@pytest.mark.parametrize(
    ("models", "counts", "why", "how"),
    [
        (TEAM, {}, "because of its model's price", OF_PRICE.format("33 %")),
        (TEAM, {"reviewer": {"tokens": 500}}, "because of its model's price and its tokens", OF_PRICE.format("71 %")),
        (
            TEAM | {"reviewer": "small"},
            {"reviewer": {"tokens": 500}},
            "because of its tokens",
            "a token of it costs as much as one of the others (small)",
        ),
        (  # more of what is dear: its tokens are other ones, its model is not dearer
            dict.fromkeys(TEAM, "both"),
            {"reviewer": {"tokens": 500, "input_tokens": 100}, "writer": {"tokens": 100, "input_tokens": 2000}},
            "because of its tokens",
            "a token of it costs as much as one of the others (both)",
        ),
        (TEAM, {"reviewer": {"tokens": 0, "type": "tool_call", "tool": "web"}}, "100 % of it for calls of tools", ""),
    ],
)
def test_the_head_says_why_an_agent_takes_most_of_the_money(
    models: dict[str, str], counts: dict[str, Any], why: str, how: str, tmp_path: Path
) -> None:
    """It named the reviewer, and not that its model cost 90 times as much with no more tokens."""
    prices = ("--prices", str(tmp_path / "prices.csv"))
    told = json.loads(shown(tmp_path, "summary", "--json", *prices, models=models, counts=counts))["findings"]
    (found,) = (one for one in told if one["name"] == "What it costs")
    assert found["lines"][0].endswith(f" went to reviewer, {why}.")
    assert found["more"] == [f"A{how[1:]}."] * bool(how)


def test_logged_cost_stands_beside_its_tokens(tmp_path: Path) -> None:
    """Without a table nothing tells the price of a token from how many it takes."""
    counts = {name: {"money": 1 + 8 * (name == "reviewer")} for name in TEAM}
    said = shown(tmp_path, "summary", models=TEAM, counts=counts)
    assert "% of the logged cost (72 of 88) went to reviewer, for 33 % of the tokens (big; others: small).\n" in said


@pytest.mark.parametrize("models", [TEAM | {"reviewer": "small"}, {"writer": "small", "reviewer": "big"}])
def test_money_that_is_spread_or_of_two_agents_is_no_finding(tmp_path: Path, models: dict[str, str]) -> None:
    said = shown(tmp_path, "summary", "--prices", str(tmp_path / "prices.csv"), models=models)
    assert "went to " not in said


@pytest.mark.parametrize("priced", [True, False])
def test_the_work_by_agent_has_its_money_for_programs_too(priced: bool, tmp_path: Path) -> None:
    """It stood in the terminal alone."""
    prices = ("--prices", str(tmp_path / "prices.csv")) if priced else ()
    told = json.loads(shown(tmp_path, "summary", "--json", *prices, models=TEAM))["agents"]
    paid = {"planner": 0.0008, "writer": 0.0008, "reviewer": 0.072} if priced else {}
    assert {row["agent"]: row["money"]["total"] for row in told if "money" in row} == pytest.approx(paid)
    traces = read(tmp_path / "log.jsonl")
    on_page = overview(Findings.of(traces, {}, prices=read_prices(prices[1]) if priced else None))["triage"]["agents"]
    assert [row.get("money") for row in on_page] == [row.get("money") for row in told]


def test_without_money_there_is_no_column_of_it(tmp_path: Path) -> None:
    said = shown(tmp_path, "summary", models=TEAM).replace(str(tmp_path), "")
    assert "money" not in said and "went to " not in said


def test_the_model_that_takes_the_money_in_some_traces_is_named(tmp_path: Path) -> None:
    """ "65 % of the logged cost went to coder-backend": opus took 48 % of it all, in 55 of 240 runs."""
    for dear, many in ((15.0, 2), (3.0, 2), (15.0, 8)):
        lines = []
        for number in range(8):
            coder = ("big", dear) if number < many else ("mid", 3.0)
            paid = {"lead": ("mid", 1.0), "coder": coder, "judge": ("mid", 1.0)}
            events = [{"id": name, "type": "message", "agent": name, "model": model, "tokens": 9, "money": cost}
                      for name, (model, cost) in paid.items()]  # fmt: skip
            one = {"trace_id": f"t{number}", "task_id": f"q{number}", "events": events, "edges": []}
            lines.append(json.dumps(one | {"rewards": {"team": float(number % 2)}}) + "\n")
        (tmp_path / "log.jsonl").write_text("".join(lines))
        said = CliRunner().invoke(cli, ["summary", str(tmp_path / "log.jsonl")], catch_exceptions=False).stdout
        told = "\n  Of all, 47 % went to big of coder, in 2 of 8 traces.\n"
        assert (told in said) == (dear == 15 and many == 2) and (" of coder, in " in said) == (told in said)


def of_models(folder: Path, team: dict[str, tuple[str, int]], dear: float, many: int = 2) -> str:
    """The costs in a head of eight runs, of agents with their models and tokens; `dear` is a token of big, in so many
    runs, and 1 one of another model."""
    lines = []
    for number in range(8):
        events = []
        for name, (model, tokens) in team.items():
            big = model == "big" and number < many
            cost = {"model": "big" if big else "mid", "money": tokens * (dear if big else 1), "tokens": tokens}
            events.append({"id": name, "type": "message", "agent": name, "input_tokens": 0} | cost)
        one = {"trace_id": f"t{number}", "task_id": f"q{number}", "events": events, "edges": []}
        lines.append(json.dumps(one | {"rewards": {"team": float(number % 2)}}) + "\n")
    (folder / "log.jsonl").write_text("".join(lines))
    said = CliRunner().invoke(cli, ["summary", str(folder / "log.jsonl")], catch_exceptions=False).stdout
    return said.partition("\nWhat it costs:\n")[2].partition("\n\n")[0] or "nothing"


def test_what_is_out_of_proportion_is_in_the_head(tmp_path: Path) -> None:
    """opus took 40 % of the money for 4 % of the tokens, and its agent 49.9 %, which is not half: neither was told."""
    team = {"router": ("mid", 50), "worker": ("mid", 50), "reviewer": ("big", 20)}
    said = of_models(tmp_path, team, 15.0)
    assert said.startswith("  47 % of the logged cost (720 of 1,520) went to reviewer, for 17 % of the tokens (")
    assert "  Of all, 39 % went to big of reviewer, in 2 of 8 traces." in said
    assert not any("went to" in of_models(tmp_path, team, dear).splitlines()[0] for dear in (1.0, 2.0))
    for names in (team, ["worker"]):  # whoever uses it
        said = of_models(tmp_path, dict.fromkeys(names, ("big", 50)), 9.0, many=1)
        paid = "1,350 of 2,400" if len(names) > 1 else "450 of 800"
        assert said.startswith(f"  56 % of the logged cost ({paid}) went to big, for 13 % of the tokens.")
