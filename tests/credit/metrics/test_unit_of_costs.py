"""A cost is told in money wherever money is known, and in the same unit in the head, below it and on the page."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.doctor.idle_agents import costly_agents
from credit.metrics.event_costs import read_prices
from credit.metrics.part_costs import agents_paid
from credit.page.findings import Findings
from credit.page.overview import overview
from credit.reports.outcome_differences import OutcomeDifferences, outcome_differences
from credit.sides.compare_sides import compare_systems

PRICES = "model,input,output\ncheap,0,1\ndear,0,100\n"
OUTPUT = {"cheap": 1e-6, "dear": 1e-4}


def logged(folder: Path, *, helps: float = 0.0, model: str = "dear", money: float = 0.0, tasks: int = 40) -> Path:
    """Runs of a lead and, by a coin, a critic that generates a tenth of its tokens; so much of the money is logged."""
    random, lines = np.random.default_rng(1), []
    for number in range(10 * tasks):
        task, kind, critic = number // 10, "ab"[number // 10 % 2], bool(random.random() < 0.5)
        agents = [("lead", "cheap", 200), *[("critic", model, 20)] * critic, ("lead", "cheap", 200)]
        events: list[dict[str, Any]] = [
            {"id": f"e{place}", "type": "message", "agent": agent, "model": of, "input_tokens": 0, "tokens": tokens}
            for place, (agent, of, tokens) in enumerate(agents)
        ]
        for event in events if random.random() < money else ():
            event["money"] = OUTPUT[event["model"]] * event["tokens"]
        edges = [{"src": f"e{i}", "dst": f"e{i + 1}", "type": "message"} for i in range(len(events) - 1)]
        won = float(random.random() < 0.4 + helps * critic)
        lines.append({"trace_id": f"t{number}", "task_id": f"q{task}", "task_kind": kind, "events": events,
                      "system": ("old", "new")[number % 2], "edges": edges, "rewards": {"team": won}})  # fmt: skip
    (folder / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (folder / "prices.csv").write_text(PRICES)
    return folder / "log.jsonl"


@pytest.mark.parametrize(
    ("money", "priced", "unit"),
    [(0.95, False, "logged cost"), (0.5, False, ""), (1, True, "money at the given prices"),
     pytest.param(0, False, "", marks=pytest.mark.slow), pytest.param(1, False, "logged cost", marks=pytest.mark.slow),
     pytest.param(0, True, "money at the given prices", marks=pytest.mark.slow)],
)  # fmt: skip
def test_an_agent_that_helps_little_is_in_what_was_lost_with_its_part_of_the_money(
    tmp_path: Path, money: float, priced: bool, unit: str
) -> None:
    """`2.4 % of the tokens` stood below the head, beside prices by which the agent took most of the money."""
    log = logged(tmp_path, money=money)
    more = ["--prices", str(tmp_path / "prices.csv")] if priced else []
    shown = CliRunner().invoke(cli, ["summary", str(log), *more]).stdout
    head = "What it costs" if unit else "What was lost"
    lost = shown.partition(f"\n{head}:\n")[2].partition("\nLook first:")[0].partition("\n\n")[0]
    alike = next(line for line in shown.splitlines() if line.startswith("Traces that succeeded"))
    if not unit:
        assert "critic" not in lost and " % of the tokens generated)" in alike
        return
    dear, _, lost = lost.partition("\n")  # the model of the critic
    assert f" % of the {unit} (" in dear and ") went to dear, for 2 % of the tokens." in dear
    assert f" % of the {unit} went into critic, which helps little, if at all (" in lost
    assert "tokens" not in lost and f" % of the {unit})" in alike
    traces, prices = credit.read(log), read_prices(tmp_path / "prices.csv") if priced else None
    found = outcome_differences(traces, paid=agents_paid(traces, prices))
    assert 0.6 < found.agents_paid["critic"] < 0.8 and found.agents_paid["critic"] + found.agents_paid["lead"] == 1
    ((head, said),) = costly_agents(found).items()
    assert head == "critic" and said in lost
    plain = json.loads(CliRunner().invoke(cli, ["summary", str(log), "--json", *more]).stdout)["findings"]
    page = overview(Findings.of(traces, {}, prices=prices))["findings"]
    for findings in (plain, page):
        told = next(one["lines"][1:] for one in findings if one["name"] == "What it costs")
        assert lost.splitlines() == [f"  {line}" for line in told]


def test_what_helps_or_costs_little_is_not_lost(tmp_path: Path) -> None:
    prices = read_prices(logged(tmp_path).parent / "prices.csv")
    for of, lost in (({}, ["critic"]), ({"helps": 0.3}, []), ({"model": "cheap"}, [])):
        traces = credit.read(logged(tmp_path, **of))
        assert [*costly_agents(outcome_differences(traces, paid=agents_paid(traces, prices)))] == lost


def test_an_agent_is_told_to_help_little_only_where_much_is_ruled_out() -> None:
    """One stood in the head with a gain of +2 points, -21 to +23, as in 92 of 315 logs of chance."""
    of = {"most": (0.48, 0.23), "little": (0.08, 0.11), "idle": (0.19, 0.1), "cheap": (0.01, 0.005)}
    found = OutcomeDifferences(
        20, 20, 1.0, math.nan, True, 18, (), paid_in="money",
        agents_paid={name: part for name, (part, _) in of.items()},
        agents_alike={name: (0.0, -high, high, 18) for name, (_, high) in of.items()},
    )  # fmt: skip
    told = costly_agents(found)
    assert [*told] == ["idle"]
    assert told["idle"].startswith("19 % of the money went into idle, which helps little, if at all (0 percentage")


def test_kinds_of_tasks_cost_money_where_it_is_known(tmp_path: Path) -> None:
    """`tokens generated of a … ; none beyond chance in money` stood there, of tokens that cost next to nothing."""
    log = logged(tmp_path, money=1)
    prices = read_prices(tmp_path / "prices.csv")
    for given, of, name in ((prices, log, "money"), (None, log, "logged_money")):
        found = compare_systems(credit.read(of), given)
        assert found is not None and {row.metric for row in found.kinds} == {"success", name}
    found = compare_systems(credit.read(logged(tmp_path, money=0.5)))
    assert found is not None and {row.metric for row in found.kinds} == {"success", "input_tokens", "tokens"}


@pytest.mark.parametrize("asked", [("summary",), ("costs",), ("metrics", "--sides", "system"), ("metrics",), ("card",)])
def test_what_a_log_states_that_calls_cost_has_one_name(tmp_path: Path, asked: tuple[str, ...]) -> None:
    """It was `money as logged`, `money, as logged` and `money that the log states`, by turns."""
    shown = " ".join(CliRunner().invoke(cli, [*asked, str(logged(tmp_path, money=1))]).stdout.split())
    assert re.search("logged cost|logged_money", shown) and not re.search("as logged|money that|log states it", shown)
