"""Costs by hand, prices from tables, costs as channels of reward."""

from __future__ import annotations

import itertools
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
from credit.cli.logs.costs import stated_lines
from credit.ledger.channels import channel
from credit.metrics.cost_summary import (
    OF_TOOLS,
    UNITS_OF_COST,
    Amount,
    cost_rows,
    group_costs,
    stated_sums,
    total_costs,
)
from credit.metrics.event_costs import NAMELESS, Price, PriceGaps, Prices, event_costs, price_gaps, read_prices
from credit.metrics.failed_costs import failed_cost
from credit.metrics.run_card import run_card
from credit.paid_for_success import paid_for_success
from credit.reports.trace_list import trace_rows
from graphs.errors import CreditError
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import LOST_PARTS, Agent, TraceRecord
from graphs.writers import survey
from tests.recordings.spans import agent, chat, spans_request


def line(name: str, task: str, reward: float, model: str, **more: Any) -> dict[str, Any]:
    """A lead's call, a tool, and a worker's call, at 0, 2 and 5 seconds."""
    events = [
        {"id": "d", "t": 0, "type": "orchestrator_decision", "agent": "lead", "tokens": 10, "input_tokens": 100},
        {"id": "c", "t": 0, "type": "tool_call", "agent": "lead", "tool": "web", "action": False},
        {"id": "r", "t": 2, "type": "tool_result", "agent": "lead", "tool": "web"},
        {"id": "m", "t": 5, "type": "message", "agent": "worker", "tokens": 30, "input_tokens": 200},
    ]
    edges = [("d", "c", "tool_dependency"), ("c", "r", "return"), ("r", "m", "message")]
    about = {"schema_version": "1.0", "trace_id": name, "task_id": task, "model": model, "events": events}
    stated = [{"src": src, "dst": dst, "type": kind} for src, dst, kind in edges]
    return about | {"edges": stated, "rewards": {"team": reward}, "costs": {"tokens": 40}} | more


def read(folder: Path, *lines: dict[str, Any]) -> Traces:
    (folder / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return credit.read(folder / "log.jsonl")


PRICES = "model,tool,input,output,call\nbig,,2,8,\nsmall,,1,0,\n,web,,,0.01\n"


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return read(tmp_path, line("a", "q", 1.0, "big"), line("b", "q", 0.0, "big"), line("c", "r", 1.0, "small"))


@pytest.mark.parametrize("by", ["agent", "model", "trace"])
def test_an_event_that_stands_for_a_call_in_no_event_keeps_its_own_count(tmp_path: Path, by: str) -> None:
    """Where each event had a count the first one's was in no sum: "the log has the number of no call"."""
    one = line("a", "q", 1.0, "big", metrics={"lost_parts": 1, "unlogged_calls": 1})
    one |= {"edges": [], "events": [event | {"money": 0.25} for event in one["events"] if "tokens" in event]}
    total = total_costs(cost_rows(read(tmp_path, one), by, Prices({"big": Price(2, 8)})))
    assert (total.tokens, total.input_tokens) == (Amount(40.0, 1), Amount(300.0, 1))
    assert total.money == Amount(pytest.approx((300 * 2 + 40 * 8) / 1e6), 1)
    assert total.logged_money == Amount(0.5, 1)


def test_starts_of_agents_by_code_have_no_price_and_no_model(tmp_path: Path) -> None:
    """Each had the model "big + small", without a count or a price, so that no trace's money was known."""
    table = Prices({"big": Price(2, 8), "small": Price(1, 4)})
    used = ({"gen_ai.response.model": m, "gen_ai.usage.input_tokens": 100} for m in ("big", "small", "small"))
    calls = [chat(n, n - 1, n, n + 1, attributes=next(used)) for n in (3, 5, 7)]
    agents = [agent(n, 1, n - 0.5, n + 1.5, name) for n, name in ((2, "planner"), (4, "coder"), (6, "coder"))]
    write = tmp_path / "log.jsonl"

    def told(spans: list[dict[str, Any]]) -> tuple[Amount, PriceGaps]:
        write.write_text(json.dumps(spans_request([agent(1, 0, 0, 9, "team"), *agents, *spans])))
        traces = credit.read(write)
        return total_costs(cost_rows(traces, "agent", table)).money, price_gaps(traces, table)

    money, gaps = told(calls)
    assert money == Amount(pytest.approx((100 * 2 + 13 * 8 + 200 + (15 + 17) * 4) / 1e6), 0)
    assert not gaps.lines()
    stated = calls[2]["attributes"]
    for word, lines in (("usage", []), ("model", [NAMELESS])):
        calls[2]["attributes"] = [one for one in stated if word not in one["key"]]
        money, gaps = told(calls)
        assert (money.missing, gaps.lines()) == (1, lines)


def test_a_call_in_no_event_makes_sums_lower_bounds(tmp_path: Path) -> None:
    """A trace with a compaction has lower bounds for sums. A trace without one has exact sums."""
    traces = read(tmp_path, line("a", "q", 1.0, "big", metrics={"unlogged_calls": 2}), line("b", "q", 0.0, "big"))
    rows = {row.unit: row for row in cost_rows(traces, "trace", Prices({"big": Price(2, 8)}))}
    assert rows["a"].tokens == Amount(40, 1) and rows["a"].input_tokens.missing == 1
    assert rows["a"].money.missing == 1 and rows["a"].money.total == rows["b"].money.total
    assert rows["b"].tokens == Amount(40, 0) and rows["b"].input_tokens == Amount(300, 0)
    assert group_costs(traces).of_trace is None


def test_units_cross_and_their_rows_add_up_to_those_of_each(tmp_path: Path) -> None:
    """What each agent spent on each model was not to be had."""
    traces = read(tmp_path, line("a", "q", 1.0, "big"), line("b", "q", 0.0, "big"), line("c", "r", 1.0, "small"))
    prices = Prices({"big": Price(2, 8), "small": Price(1, 0)}, {"web": 0.01})
    for by in itertools.permutations(UNITS_OF_COST, 2):
        crossed = cost_rows(traces, ",".join(by), prices)
        money = [total_costs(rows).money.total for rows in (crossed, cost_rows(traces, by[0], prices))]
        assert money[0] == pytest.approx(money[1])
        for place, unit in enumerate(by):
            names = [row.unit.split(", ")[place] for row in crossed]
            for row in cost_rows(traces, unit, prices):
                its = [other for name, other in zip(names, crossed, strict=True) if name == row.unit]
                assert total_costs(its).events == row.events and total_costs(its).errors == row.errors
                assert total_costs(its).tokens == row.tokens and total_costs(its).tool_calls == row.tool_calls
    assert {row.unit for row in cost_rows(traces, "agent,system")} == {"lead, none stated", "worker, none stated"}
    first = next(row for row in cost_rows(traces, "agent,model") if row.unit == "worker, big")
    assert (first.events, first.tokens.total) == (2, 60)
    for wrong in ("agent,agent", "agent,", "team"):
        with pytest.raises(CreditError, match="each once"):
            cost_rows(traces, wrong)
        refused = CliRunner().invoke(cli, ["costs", str(tmp_path), "--by", wrong])
        assert refused.exit_code == 1 and "each once" in refused.output
    told = json.loads(CliRunner().invoke(cli, ["costs", str(tmp_path), "--by", "agent, model", "--json"]).stdout)
    assert told["by"] == "agent,model" and told["costs"][0]["unit"] == "worker, big"
    printed = CliRunner().invoke(cli, ["costs", str(tmp_path), "--by", "agent,model"]).stdout
    assert "seconds of work of a model's row: without those of the tools that it called" in printed  # calls it counts


def test_sums_by_hand(traces: Traces, tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(PRICES)
    prices = read_prices(tmp_path / "prices.csv")
    rows = {row.unit: row for row in cost_rows(traces, "agent", prices)}
    lead, worker = rows["lead"], rows["worker"]
    assert (lead.events, lead.tool_calls, worker.events, worker.tool_calls) == (9, 3, 3, 0)
    found = [[amount.total for amount in (r.tokens, r.input_tokens, r.seconds)] for r in (lead, worker)]
    assert found == [[30, 300, 6], [90, 600, 9]]
    big, small = (2 * 100 + 8 * 10) / 1e6, 100 / 1e6
    assert lead.money.total == pytest.approx(2 * big + small + 3 * 0.01)
    assert {row.unit for row in cost_rows(traces, "model", prices)} == {OF_TOOLS, "big", "small"}
    calls = {row.unit: row.tool_calls for row in cost_rows(traces, "decision")}
    assert calls == {"whom": 0, "tool": 3, "other": 0, "message": 0}  # the kinds of `compose --level decision`
    assert {amount.money.total for amount in cost_rows(traces, "trace")} == {None}


def test_without_a_status_errors_are_not_0(tmp_path: Path) -> None:
    """`credit summary` said "–" of the same log."""
    line = {"trace_id": "t", "task_id": "q", "edges": [], "rewards": {}, "costs": {}}
    call = {"id": "c", "type": "tool_call", "agent": "a", "tool": "web"}
    for status, total in (({}, None), ({"status": "ok"}, 0), ({"status": "error"}, 1)):
        (tmp_path / "log.jsonl").write_text(json.dumps(line | {"events": [call | status]}))
        rows = cost_rows(credit.read(tmp_path / "log.jsonl"), "tool")
        assert (rows[0].errors.total, total_costs(rows).errors.total) == (total, total)


def test_the_order_of_edges_changes_no_seconds(tmp_path: Path) -> None:
    """Of two calls that a result answers, the one whose edge came last in the log was paid for it."""

    def sums(edges: list[str]) -> dict[str, float | None]:
        kinds = (("m", "message"), ("c", "tool_call"), ("d", "tool_call"), ("r", "tool_result"))
        events = [
            {"id": name, "t": 2 * i, "type": kind, "agent": "a", "tool": name} for i, (name, kind) in enumerate(kinds)
        ]
        both = [dict(zip(("src", "dst", "type"), edge.split(), strict=True)) for edge in edges]
        line = {"trace_id": "t", "task_id": "q", "events": events, "edges": both, "rewards": {}, "costs": {}}
        (tmp_path / "log.jsonl").write_text(json.dumps(line))
        return {row.unit: row.seconds.total for row in cost_rows(credit.read(tmp_path / "log.jsonl"), "tool")}

    edges = ["c r return", "d r return"]
    assert sums(edges) == sums(edges[::-1]) and sums(edges)["d"] == 2 + 2


@pytest.mark.parametrize("name", ["tokens", "input_tokens", None])
def test_a_simulated_user_is_in_no_sum_but_its_own(tmp_path: Path, name: str | None) -> None:
    """Its seconds were in the total and in channels, on the card and in the wall clock, and its tokens, if logged."""
    said = line("a", "q", 1.0, "big")
    said["agents"] = [{"id": "lead", "role": "lead"}, {"id": "user", "role": "user_simulator"}]
    said["events"].append({"id": "u", "t": 9, "type": "message", "agent": "user", "action": False})
    said["edges"].append({"src": "m", "dst": "u", "type": "message"})
    if name is not None:
        said["events"][-1][name] = 7
    traces = read(tmp_path, said)
    rows = cost_rows(traces)
    user, total = next(row for row in rows if row.unit == "user"), total_costs(rows)
    shown = CliRunner().invoke(cli, ["costs", str(tmp_path / "log.jsonl")]).stdout
    cells = next(row for row in shown.splitlines() if row.startswith("user")).split()
    assert "no part of the team, so what it cost is in no sum: user\n" in shown
    if name is None:
        assert {user.tokens, user.input_tokens, user.seconds} == {Amount(None, 0)} and user.events == 1
        assert (total.tokens, total.seconds) == (Amount(40, 0), Amount(5, 0))
        assert cells == ["user", "1", "0", "–", "–", "–", "–", "–"]
    else:
        assert getattr(user, name) == Amount(7, 0) and user.seconds == Amount(None, 0)
    assert (total.tokens, total.input_tokens, total.seconds) == (Amount(40, 0), Amount(300, 0), Amount(5, 0))
    (whole,) = cost_rows(traces, "trace")
    assert (whole.tokens, whole.input_tokens, whole.seconds) == (total.tokens, total.input_tokens, total.seconds)
    assert [channel(traces, cost).total[0] for cost in ("tokens", "input_tokens", "seconds")] == [40, 300, 5]
    card = {row.item: row.value for row in run_card(traces) if row.section == "costs"}
    assert card["seconds of work of a trace"] == "5" == card["wall clock of a trace, seconds"]
    assert card["tokens generated of a trace"] == "40" and group_costs(traces).of_trace == 340
    (listed,) = trace_rows(traces)
    assert (listed["tokens"], listed["wall_clock"]) == (40, 5)


def test_a_call_in_no_event_bounds_the_total_where_the_user_speaks_first(tmp_path: Path) -> None:
    said = line("a", "q", 1.0, "big", metrics={"unlogged_calls": 1})
    said["agents"] = [{"id": "user", "role": "user"}]
    said["events"].insert(0, {"id": "u", "t": 0, "type": "message", "agent": "user", "action": False})
    assert total_costs(cost_rows(read(tmp_path, said))).tokens == Amount(40, 1)


def test_a_sum_without_some_counts_is_a_lower_bound(tmp_path: Path) -> None:
    short = line("a", "q", 1.0, "big")
    del short["events"][3]["input_tokens"]
    (tmp_path / "prices.csv").write_text(PRICES)
    traces = read(tmp_path, short, line("b", "r", 1.0, "small"))
    worker = next(
        row for row in cost_rows(traces, "agent", read_prices(tmp_path / "prices.csv")) if row.unit == "worker"
    )
    assert (worker.input_tokens.total, worker.input_tokens.missing, worker.money.missing) == (200, 1, 1)
    assert group_costs(traces).of_group is None


def test_the_seconds_and_errors_of_a_call_stand_in_its_row(tmp_path: Path) -> None:
    failed = line("a", "q", 1.0, "big")
    failed["events"][2]["status"] = "error"
    traces = read(tmp_path, failed)
    rows = {row.unit: row for row in cost_rows(traces, "tool")}
    assert {name: (row.events, row.tool_calls, row.errors.total) for name, row in rows.items()} == {
        "web": (2, 1, 1), "no tool": (2, 0, 0),
    }  # fmt: skip
    assert (rows["web"].seconds.total, rows["no tool"].seconds.total) == (2, 3)
    assert {row.unit: row.seconds.total for row in cost_rows(traces, "decision")}["tool"] == 2
    shown = CliRunner().invoke(cli, ["costs", str(tmp_path / "log.jsonl"), "--by", "tool"]).stdout.splitlines()
    head = ["tool", "events", "tool calls", "tokens", "input tokens", "seconds of work", "seconds a call",
            "1 in 10 over", "errors"]  # fmt: skip
    assert shown[0].split() == " ".join(head).split()
    assert next(row for row in shown if row.startswith("web")).split() == [
        "web",
        "2",
        "1",
        "0",
        "0",
        "2",
        "2",
        "2",
        "1",
    ]
    assert next(row for row in shown if row.startswith("total")).split()[1:] == ["4", "1", "40", "300", "5", "1"]


def test_a_group_costs_k_traces(traces: Traces) -> None:
    found = group_costs(traces)
    assert (found.groups, found.traces, found.multiplier) == (2, 3, 1.5)
    assert (found.of_trace, found.of_group, found.untaught) == (340, 510, pytest.approx(1 / 3))


@pytest.mark.parametrize(
    ("table", "words"),
    [("model,input,output\nbig,1,\n", ":2: output is None; expected a price"),
     ("model,input,output\nbig,1,-2\n", ":2: output is '-2'; expected a price"),
     ("model,input,output\nbig,1,nan\n", ":2: output is 'nan'; expected a price"),
     ("model,input,output\nbig,1,2\nbig,1,2\n", ":3: 'big' stands twice"),
     ("model,cost\nbig,1\n", ":2: column 'cost'; expected some of model, tool"),
     ("model,tool,call\nbig,web,1\n", "expected one of the two"),
     ("model,input,output,call\nbig,1,2,0.5\n", ":2: call is '0.5' of a model; expected none there"),
     ("tool,call,input\nweb,1,3\n", ":2: input is '3' of a tool; expected none there"),
     ("big,1,2\n", "no row below the first line; expected a line with the columns model, tool")],
)  # fmt: skip
def test_wrong_prices_are_named(table: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(table)
    with pytest.raises(credit.CreditError, match=words):
        read_prices(tmp_path / "prices.csv")


def test_a_model_without_a_price_is_named_and_the_others_are_priced(traces: Traces, tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("model,input,output\nbig,2,8\n")
    prices = read_prices(tmp_path / "prices.csv")
    assert price_gaps(traces, prices) == (["small"], [], [], [], [], [], [], [], [], False)
    money = {row.unit: row.money for row in cost_rows(traces, "model", prices)}
    assert money == {"big": Amount(pytest.approx(2 * (2 * 300 + 8 * 40) / 1e6), 0), "small": Amount(None, 2)}
    command = ["costs", str(tmp_path / "log.jsonl"), "--prices", str(tmp_path / "prices.csv")]
    shown = CliRunner().invoke(cli, command)
    assert shown.exit_code == 0 and "no row of the table prices these models" in shown.stdout
    assert ": small\n" in shown.stdout and "≥ 0.00056" in shown.stdout
    assert json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)["models_without_price"] == ["small"]


def test_a_call_has_the_price_of_the_requested_model_where_no_row_has_the_answers(tmp_path: Path) -> None:
    """The table and the requests said "big", the answers "big-2026": no call had a price, "≥ 1.459" stood for 35.19."""
    one = line("a", "q", 1.0, "big-2026")
    one["events"][0] |= {"requested_model": "big"}
    one["events"][3] |= {"requested_model": "big"}
    other = line("b", "q", 1.0, "small")
    other["events"][0] |= {"requested_model": "big"}  # a row has the answer's name
    traces = read(tmp_path, one, other)
    prices = Prices({"big": Price(2, 8), "small": Price(1, 0)})
    money = {row.unit: row.money for row in cost_rows(traces, "model", prices)}
    assert money == {"big-2026": Amount(pytest.approx((2 * 300 + 8 * 40) / 1e6), 0), "small": Amount(0.0003, 0)}
    said = "calls at the price of the requested model, as no row has the answer's: 2 of big-2026 as big"
    assert price_gaps(traces, prices).lines() == [said]
    exact = Prices(prices.models | {"big-2026": Price(1, 1)})
    assert not price_gaps(traces, exact).lines()
    assert total_costs(cost_rows(traces, "model", exact)).money.total == pytest.approx((300 + 40 + 300) / 1e6)


def test_calls_without_a_model_are_no_model_without_a_name(tmp_path: Path) -> None:
    """This read "no row of the table prices these models: none stated", as if there were none."""
    unstated = line("a", "q", 1.0, "big")
    del unstated["model"]
    (tmp_path / "prices.csv").write_text(PRICES)
    read(tmp_path, unstated, line("b", "q", 0.0, "large"))
    command = ["costs", str(tmp_path / "log.jsonl"), "--prices", str(tmp_path / "prices.csv")]
    shown = CliRunner().invoke(cli, command).stdout.splitlines()
    assert "no row of the table prices these models: large" in shown
    assert NAMELESS in shown
    told = json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)
    assert told["models_without_price"] == ["", "large"]


def test_a_row_of_any_model_prices_the_calls_that_have_no_row(tmp_path: Path) -> None:
    """Spans of an SDK name no model: every cell of money was a dash, whatever the table had."""
    unstated = line("a", "q", 1.0, "big")
    del unstated["model"]
    traces = read(tmp_path, unstated, line("b", "q", 0.0, "large"), line("c", "q", 0.0, "big"))
    (tmp_path / "prices.csv").write_text("model,input,output\n*,1,4\nbig,2,8\nlarg,1,1\n")
    prices = read_prices(tmp_path / "prices.csv")
    money = {row.unit: row.money for row in cost_rows(traces, "trace", prices)}
    low, high = (Amount(pytest.approx(of * (300 + 4 * 40) / 1e6), 0) for of in (1, 2))
    assert money == {"a": low, "b": low, "c": high}
    assert price_gaps(traces, prices).lines() == [
        "calls at the price of the row *: 2 of no stated model, 2 of large",
        "rows of the table that match nothing in these logs: model larg (Did you mean large?)",
    ]


def test_calls_of_several_models_take_a_row_of_their_joint_name(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(PRICES)
    prices, both = read_prices(tmp_path / "prices.csv"), read(tmp_path, line("a", "q", 1.0, "big + small"))
    assert price_gaps(both, prices)[0] == ["big + small"]


def test_rows_of_the_table_that_match_nothing_are_named(traces: Traces, tmp_path: Path) -> None:
    """A tool that was misspelt cost 0 without a word. A table of a whole company's models is no slip."""
    log = str(tmp_path / "log.jsonl")
    tool = next(name for name in traces.events["tool"].to_pylist() if name)
    (tmp_path / "prices.csv").write_text(f"model,input,output,tool,call\nbig,1,1,,\nsmal,1,1,,\n,,,{tool}s,1\n")
    found = price_gaps(traces, read_prices(tmp_path / "prices.csv"))
    assert found.unused == [f"tool {tool}s (Did you mean {tool}?)", "model smal (Did you mean small?)"]
    shown = CliRunner().invoke(cli, ["costs", log, "--prices", str(tmp_path / "prices.csv")]).stdout
    assert f"rows of the table that match nothing in these logs: tool {tool}s" in shown
    (tmp_path / "all.csv").write_text("model,input,output\nbig,1,1\nsmall,1,1\nother,1,1\n")
    assert price_gaps(traces, read_prices(tmp_path / "all.csv")).unused == []


def test_what_an_agent_without_a_line_cost_is_not_known(tmp_path: Path) -> None:
    """A sub-agent whose session was not among the files cost 0, and its trace's sums were exact."""
    spawned = line("a", "q", 1.0, "big")
    spawned["agents"] = [*spawned.get("agents", []), {"id": "sub", "parent": "lead"}]
    spawned["events"] += [
        {"id": "start", "type": "spawn", "agent": "lead"},
        {"id": "end", "type": "return", "agent": "sub"},
    ]
    spawned["edges"] += [{"src": "start", "dst": "end", "type": "spawn"}]
    traces = read(tmp_path, spawned)
    rows = {row.unit: row for row in cost_rows(traces, "agent")}
    assert rows["sub"].tokens == Amount(None, 1) == rows["sub"].input_tokens
    (whole,) = cost_rows(traces, "trace")
    assert whole.tokens.missing >= 1 and whole.tokens.total


def test_costs_that_a_log_states_of_a_trace_stand_beside_it(tmp_path: Path) -> None:
    lines = [line(name, "q", 1.0, "big") | {"costs": costs} for name, costs in (("a", {"usd": 0.25}), ("b", {}))]
    assert [row.stated for row in cost_rows(read(tmp_path, *lines), "trace")] == [{"usd": 0.25}, {}]
    shown = CliRunner().invoke(cli, ["costs", str(tmp_path / "log.jsonl"), "--by", "trace"]).stdout
    assert "costs.usd" in shown.splitlines()[0] and "0.25" in shown.splitlines()[1]
    assert next(row for row in shown.splitlines() if row.startswith("total")).split()[-2:] == ["≥", "0.25"]


def test_each_known_count_is_priced(tmp_path: Path) -> None:
    """Money left out the input of 98 calls whose output is not logged: 39.18 in place of 76.8 or more."""
    short = line("a", "q", 1.0, "big")
    del short["events"][3]["tokens"]
    read(tmp_path, short)
    (tmp_path / "prices.csv").write_text(PRICES)
    command = ["costs", str(tmp_path / "log.jsonl"), "--prices", str(tmp_path / "prices.csv")]
    printed = CliRunner().invoke(cli, command).stdout.splitlines()
    money = {row.split()[0]: row.split()[-2:] for row in printed if row.startswith(("lead", "worker"))}
    assert money["worker"] == ["≥", "0.0004"] and money["lead"][1] == "0.01028"
    assert "≥ 0.01068" in CliRunner().invoke(cli, [*command, "--by", "trace"]).stdout


def test_tokens_from_a_cache_have_a_price_of_their_own(tmp_path: Path) -> None:
    cached = line("a", "q", 1.0, "big")
    cached["events"][3] |= {"cached_tokens": 150, "cache_write_tokens": 50}
    traces = read(tmp_path, cached)
    (tmp_path / "with.csv").write_text("model,input,output,cached_input,cache_write\nbig,2,8,0.2,2.5\n")
    (tmp_path / "without.csv").write_text("model,input,output\nbig,2,8\n")
    own, same = read_prices(tmp_path / "with.csv"), read_prices(tmp_path / "without.csv")
    found = [cost_rows(traces, "trace", prices)[0].money.total for prices in (own, same)]
    assert found == [
        pytest.approx((2 * 100 + 0.2 * 150 + 2.5 * 50 + 8 * 40) / 1e6),
        pytest.approx((2 * 300 + 8 * 40) / 1e6),
    ]
    assert (price_gaps(traces, own), price_gaps(traces, same)) == (
        ([], [], [], [], [], [], [], [], [], False),
        ([], ["big"], [], ["big"], [], [], [], [], [], False),
    )
    command = ["costs", str(tmp_path / "log.jsonl"), "--prices", str(tmp_path / "without.csv")]
    shown = CliRunner().invoke(cli, command).stdout
    assert "reads from a cache cost as input, which is too much, of: big" in shown
    assert "writes to a cache cost as input, which is too little, of: big" in shown
    shown = CliRunner().invoke(cli, [*command[:-1], str(tmp_path / "with.csv")]).stdout
    assert "as input" not in shown  # "Writes to a cache cost as input." stood there for every table


def test_tokens_of_a_cache_that_input_tokens_leave_out_are_told(tmp_path: Path) -> None:
    """Of 5,000 tokens from a cache beside 200 that were read, 4,800 cost nothing, without a word."""
    beside = line("a", "q", 1.0, "big")
    beside["events"][3] |= {"cached_tokens": 5000}
    within = line("b", "q", 1.0, "small")
    within["events"][3] |= {"cached_tokens": 150, "cache_write_tokens": 50}
    read(tmp_path, beside, within)
    (tmp_path / "prices.csv").write_text("model,input,output,cached_input,cache_write\nbig,2,8,0.2,2\nsmall,1,1,0,1\n")
    command = ["costs", str(tmp_path / "log.jsonl"), "--prices", str(tmp_path / "prices.csv")]
    shown = CliRunner().invoke(cli, command).stdout
    assert "\ninput_tokens leaves out tokens from or into a cache, so money is too little, of: big\n" in shown
    told = json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)
    assert told["models_with_cache_beside_input"] == ["big"]


@pytest.mark.parametrize(
    ("price", "stated", "reads", "models"),
    [
        ("0.2", None, 300, ["big"]), ("0.2", 0, 300, []), ("2", None, 300, []), ("", None, 300, []),
        ("0.2", None, 0, []), ("1.999", None, 1, []), ("0.2", None, None, []),
    ],
)  # fmt: skip
def test_a_price_for_cached_tokens_that_no_event_states_is_told_where_it_can_matter(
    price: str, stated: int | None, reads: int | None, models: list[str], tmp_path: Path
) -> None:
    """All input cost as if none of it came from a cache, without a word; then of models that read nothing, too."""
    row = line("a", "q", 1.0, "big")
    for event in row["events"]:
        if "input_tokens" in event:
            event["input_tokens"] = reads
    row["events"][3] |= {} if stated is None else {"cached_tokens": stated}
    read(tmp_path, row)
    (tmp_path / "prices.csv").write_text(f"model,input,output,cached_input\nbig,2,8,{price}\n")
    command = ["costs", str(tmp_path / "log.jsonl"), "--prices", str(tmp_path / "prices.csv")]
    shown = CliRunner().invoke(cli, command).stdout
    assert ("no event states tokens from a cache, which the table prices: all cost as input" in shown) == bool(models)
    assert json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)["models_without_cached_tokens"] == models


def test_costs_are_channels(traces: Traces, tmp_path: Path) -> None:
    assert channel(traces, "costs.tokens").total[:3].tolist() == [40, 40, 40]
    tokens, seconds = channel(traces, "tokens", weight=-1e-3), channel(traces, "seconds")
    assert tokens.total[:3].tolist() == [40] * 3 and tokens.at(0) == -1e-3 and seconds.total[:3].tolist() == [5] * 3
    assert tokens.event_reward is not None and tokens.event_reward[:4].tolist() == [10, 0, 0, 30]
    assert channel(traces, "tool_calls").total[:3].tolist() == [1] * 3
    short = line("a", "q", 1.0, "big", costs={})
    del short["events"][3]["tokens"], short["events"][0]["t"]
    lacking = read(tmp_path, short, line("b", "q", 1.0, "big"))
    for name in ("costs.tokens", "tokens", "seconds"):
        assert math.isnan(channel(lacking, name).total[0]) and channel(lacking, name).total[1] > 0
    with pytest.raises(credit.CreditError, match=r"it has: team, costs.tokens, tokens, input_tokens"):
        channel(lacking, "costs.money")


def test_a_cost_that_the_surveys_form_had_to_invent_is_none(tmp_path: Path) -> None:
    untold = line("a", "q", 1.0, "big", costs={})
    for event in untold["events"]:
        event.pop("tokens", None)
    survey.write(read(tmp_path, untold), tmp_path / "survey")
    traces = credit.read(tmp_path / "survey")
    assert traces.evidence["costs.tokens"].array[0] == 0
    assert np.isnan(channel(traces, "costs.tokens").total[0])


def test_a_call_has_the_price_of_its_own_model(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(PRICES)
    both = line("a", "q", 1.0, "big + small")
    both["events"][0]["model"], both["events"][3]["model"] = "big", "small"
    rows = {row.unit: row for row in cost_rows(read(tmp_path, both), "model", read_prices(tmp_path / "prices.csv"))}
    of_tools = rows.pop(OF_TOOLS)  # no provider of a model bills them
    assert of_tools.money.total == pytest.approx(0.01) and of_tools.events == 0
    assert {name: (row.events, row.tool_calls) for name, row in rows.items()} == {"big": (3, 1), "small": (1, 0)}
    assert rows["big"].money.total == pytest.approx((2 * 100 + 8 * 10) / 1e6)
    assert rows["small"].money.total == pytest.approx(200 / 1e6)
    del both["events"][3]["model"]  # this call may have asked either
    assert price_gaps(read(tmp_path, both), read_prices(tmp_path / "prices.csv"))[0] == ["big + small"]


def test_what_comes_before_the_first_call_of_an_agent_has_the_model_of_that_call(tmp_path: Path) -> None:
    """What a person asked took a row of "big + small" with no token, beside those of big and of small."""
    events: list[dict[str, Any]] = [{"id": "ask", "type": "human_intervention", "agent": "a", "action": False}]
    events += [{"id": name, "type": "message", "agent": "a", "model": name, "tokens": 1} for name in ("big", "small")]
    events += [{"id": "idle", "type": "human_intervention", "agent": "b", "action": False}]  # who never calls a model
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": events, "edges": [], "rewards": {},
                               "model": "big + small"}))  # fmt: skip
    rows = {row.unit: row.events for row in cost_rows(credit.read(log), "model")}
    assert rows == {"big": 2, "small": 1, "unknown": 1}


def test_a_legend_explains_only_the_marks_that_a_table_has(tmp_path: Path) -> None:
    """What "≥" and "–" mean stood below tables of whole logs, which have neither."""
    log = tmp_path / "log.jsonl"
    for asked, marks in (({"tokens": 1, "input_tokens": 1}, {"≥": False, "–": False}), ({}, {"≥": False, "–": True})):
        events = [{"id": f"e{t}", "type": "message", "agent": "a", "t": t} | asked for t in (0, 1)]
        log.write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": events, "edges": [], "rewards": {}}))
        shown = CliRunner().invoke(cli, ["costs", str(log)]).stdout
        assert {mark: f"{mark}: " in shown for mark in marks} == marks


def test_costs_of_whole_traces_are_summed_beside_those_of_events(tmp_path: Path) -> None:
    """ "Of 73 traces" stood beside a sum of all, and would have stood beside one of a part."""
    lines = [line("a", "q", 1.0, "big", costs={"money": 0.5}), line("b", "q", 0.0, "big", costs={})]
    for one in lines:
        for event in one["events"]:
            event.pop("tokens", None)
    traces = read(tmp_path, *lines)
    assert stated_sums(traces) == {"money": Amount(0.5, 1)}
    assert cost_rows(traces, "agent")[0].tokens == Amount(None, 2)  # not 0, though effects generate none
    shown = CliRunner().invoke(cli, ["costs", str(tmp_path / "log.jsonl")])
    assert "costs.money, logged of 1 of 2 traces: 0.5" in shown.output


def test_without_an_outcome_no_group_is_said_to_have_equal_ones(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("trace,group,tokens,input_tokens,event_reward\na,q,5,6,1\nb,q,5,6,2\n")
    assert group_costs(credit.read(tmp_path / "t.csv")).untaught is None
    shown = CliRunner().invoke(cli, ["costs", str(tmp_path / "t.csv")]).stdout
    assert "without two" not in shown and shown.rstrip().endswith("22 by a group; no outcome is known")
    assert "hard-coded answers" in CliRunner().invoke(cli, ["doctor", str(tmp_path / "t.csv")]).stdout


def test_a_group_of_one_trace_is_not_said_to_have_equal_outcomes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("trace,group,tokens,input_tokens,reward\na,q,5,6,1\nb,r,5,6,0\n")
    shown = CliRunner().invoke(cli, ["costs", str(tmp_path / "t.csv")]).stdout
    assert shown.rstrip().endswith("; 100 % in groups without two different outcomes")
    assert "\n2 groups of 1 traces on average; " in shown


def test_a_spawn_by_a_tool_is_a_call_of_it_and_costs_what_a_call_does() -> None:
    """Claude Code's `Task` counted as called once where one call of three started no agent."""
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent(), "b": Agent(parent="a")})
    record.event("x", EventType.ORCHESTRATOR_DECISION, "a", action=True, tokens=1, input_tokens=1)
    record.event("y", EventType.SPAWN, "a", action=False, tool="Task", to="b")
    record.event("z", EventType.TOOL_CALL, "a", action=False, tool="Task")
    record.event("v", EventType.SPAWN, "a", action=False, to="b")
    costs = event_costs(assemble([record]), Prices({"": Price(0, 0)}, {"Task": 0.5}))
    assert costs.tool_calls.tolist() == [0, 1, 1, 0]
    assert costs.money.tolist() == [0, 0.5, 0.5, 0]


def test_the_share_of_the_money_that_went_into_failed_traces_is_told(tmp_path: Path) -> None:
    """A reader had what all cost and how many failed, not what the failed ones cost."""
    prices = tmp_path / "prices.csv"
    prices.write_text(PRICES)
    lines = [line(f"t{i}", "q", reward, "big") for i, reward in enumerate((0.0, 1.0, 1.0, 0.0))]
    lines[3]["rewards"] = {}  # and one without an outcome
    each = (2 * 300 + 8 * 40) / 1e6 + 0.01
    whole = read(tmp_path, *lines)
    found = failed_cost(whole, read_prices(prices))
    assert found is not None and [found.failed, found.total] == pytest.approx([each, 3 * each])
    assert found.told() == (
        "of traces with an outcome, 33 % of the money at the given prices (0.01092 of 0.03276) went into failed ones"
    )
    assert (
        f"O{found.told()[1:]}." in CliRunner().invoke(cli, ["summary", str(tmp_path), "--prices", str(prices)]).stdout
    )
    for one in lines[:3]:
        one["rewards"] = {"team": 0.0}
    lines[1]["model"], lines[2]["rewards"] = "other", {"team": 1.0}
    most = [*lines[:3], *(line(f"m{i}", "q", 1.0, "big") for i in range(8))]
    found = failed_cost(read(tmp_path, *most), read_prices(prices))
    assert found is not None and re.fullmatch(
        r"18 % of the money at the given prices \([\d.]+ of [\d.]+\) went into failed traces, of what is known: "
        "no price for other",
        found.told(),
    )
    # Of three, a third of all tokens has no price: no share of the money is told, nor what a success cost.
    few = read(tmp_path, *lines[:3])
    found = failed_cost(few, read_prices(prices))
    assert found is not None and found.told() == "67 % of the tokens generated (80 of 120) went into failed traces"
    assert paid_for_success(read(tmp_path, *most), read_prices(prices)) and not paid_for_success(
        few, read_prices(prices)
    )
    logged = [line(f"t{i}", "q", float(i > 0), "big", costs={"tokens": 40, "money": 4.0 + 8 * i}) for i in range(2)]
    logged[1]["costs"] |= {"money": 1234567.0}
    found = failed_cost(read(tmp_path, *logged))
    assert found is not None and found.told() == "<1 % of the logged cost (4 of 1,234,571) went into failed traces"
    lacking = [line(f"t{i}", "q", float(i > 0), "big", metrics={LOST_PARTS: 1.0 - i}) for i in range(2)]
    found = failed_cost(read(tmp_path, *lacking))  # each call that was logged states its tokens
    assert found is not None and found.told().endswith(", of what is known: some traces lack lines or spans")
    tokens = failed_cost(read(tmp_path, *[line(f"t{i}", "q", float(i > 0), "big") for i in range(4)]))
    assert tokens is not None and tokens.told() == "25 % of the tokens generated (40 of 160) went into failed traces"
    assert failed_cost(read(tmp_path, line("t", "q", 1.0, "big"))) is None
    graded = [line(f"t{i}", f"q{i // 8}", i % 8 / 8, "big") for i in range(64)]
    assert failed_cost(read(tmp_path, *graded)) is None, "the worse half of each task is no failure"


def test_money_that_only_some_calls_state_is_told_as_a_bound(tmp_path: Path) -> None:
    """The summary and the page said nothing of it; `credit costs` did."""
    one = line("t", "q", 1.0, "big")
    one["events"][0]["money"] = 2.5
    read(tmp_path, one)
    printed = CliRunner().invoke(cli, ["summary", str(tmp_path)]).stdout
    assert "seconds of work, ≥ 2.5 in logged cost\n" in printed
    one["events"][3]["money"] = 1.5
    one["costs"]["money"] = 4.0
    read(tmp_path, one)
    printed = CliRunner().invoke(cli, ["summary", str(tmp_path)]).stdout
    assert "seconds of work\n" in printed and "costs.money, logged of 1 trace: 4\n" in printed


def runs(folder: Path, system: str, tasks: str, agents: str) -> list[dict[str, Any]]:
    """A run of each task by each agent: one call of 10 tokens, or 100 where the task's letter is large."""
    lines = []
    for number, task in enumerate(tasks):
        of = {"type": "tool_call", "tool": "web", "status": "ok", "input_tokens": 0, "model": "big"}
        of["tokens"] = 100 if task.isupper() else 10
        events = [of | {"id": f"e{i}", "agent": name} for i, name in enumerate(agents)]
        lines.append({"trace_id": f"{system}{number}", "task_id": task, "system": system, "events": events})
    path = folder / "log.jsonl"
    path.write_text((path.read_text() if path.exists() else "") + "".join(json.dumps(one) + "\n" for one in lines))
    return lines


def test_amounts_of_a_trace_compare_systems_with_unlike_numbers_of_traces(tmp_path: Path) -> None:
    """Fewer runs of a new version cost less in sum, where each cost more: a line below the sums told how many."""
    runs(tmp_path, "v1", "aaaabbbb", "xy")
    runs(tmp_path, "v2", "ab", "xxxy")
    one = tmp_path / "log.jsonl"
    lines = [json.loads(line) for line in one.read_text().splitlines()]
    del lines[-1]["events"][-1]  # y is in one of the two traces of v2
    one.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = {row.unit: row for row in cost_rows(credit.read(one), "system,agent")}
    assert {name: (row.traces, row.of_traces) for name, row in rows.items()} == {
        "v1, x": (8, 8), "v1, y": (8, 8), "v2, x": (2, 2), "v2, y": (1, 2)}  # fmt: skip
    tokens = {name: (row.tokens.total, row.of_trace()["tokens"].total) for name, row in rows.items()}
    assert tokens == {"v2, x": (60, 30), "v1, x": (80, 10), "v1, y": (80, 10), "v2, y": (10, 5)}
    assert [*rows] == [*tokens], "the most expensive of a trace stands first"
    (whole,) = {row.of_traces for row in cost_rows(credit.read(one), "agent")}
    assert whole == 10 and {row.of_traces for row in cost_rows(credit.read(one), "system,trace")} == {1}
    command = ["costs", str(one), "--by", "system,agent"]
    shown = CliRunner().invoke(cli, command).stdout
    told = [line.split() for line in shown.partition("\n\n")[2].splitlines()]
    assert told[0][:4] == ["of", "a", "trace", "traces"]
    assert told[1] == ["v2,", "x", "2", "3", "30", "0", "–"] and told[4][:6] == ["v2,", "y", "1", "of", "2", "0.5"]
    assert [row[2:6] for row in told[5:7]] == [["v2", "2", "3.5", "35"], ["v1", "8", "2", "20"]]
    assert "sums divided by all traces of the system. 1 of 2: the row is in 1 of these.\n" in shown
    told = json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)
    assert (told["costs"][0]["traces"], told["costs"][0]["of_trace"]["tokens"]) == (2, 30)
    assert (told["total"]["of_traces"], told["total"]["of_trace"]["tokens"]) == (10, 23)
    assert "of a trace" not in CliRunner().invoke(cli, ["costs", str(one), "--by", "trace"]).stdout


def test_systems_that_ran_unlike_mixes_of_tasks_are_told(tmp_path: Path) -> None:
    """The version that ran the hard tasks looked ten times as dear."""
    command = ["costs", str(tmp_path / "log.jsonl"), "--by"]

    def told(tasks: str) -> str:
        (tmp_path / "log.jsonl").unlink(missing_ok=True)
        runs(tmp_path, "v1", 8 * "abAB" + 4 * "a", "x")
        runs(tmp_path, "v2", tasks, "x")
        return CliRunner().invoke(cli, [*command, "system"]).stdout

    unlike = "the mixes of tasks of v1 and v2 are unlike"
    assert unlike in (found := told("abAABB")) and "weighed alike: credit metrics --sides system\n" in found
    assert unlike not in CliRunner().invoke(cli, [*command, "agent"]).stdout
    assert json.loads(CliRunner().invoke(cli, [*command, "system", "--json"]).stdout)["unlike_tasks"]
    assert unlike not in told(4 * "abAB" + 2 * "a") and unlike not in told(4 * "abAB" + "a")
    assert "no task is of both v1 and v2: those of one may be harder\n" in told("cccD")
    runs(tmp_path, "v3", 8 * "abAB", "x")
    assert "no task is of both v1 and v2" in CliRunner().invoke(cli, [*command, "system"]).stdout


def test_what_calls_of_tools_cost_stands_with_its_system(tmp_path: Path) -> None:
    """One row held the fees of both versions, so that neither's rows added up to what it cost."""
    runs(tmp_path, "v1", "aa", "x")
    runs(tmp_path, "v2", "a", "xxx")
    prices = Prices({"big": Price(0, 1e4)}, {"web": 0.5})
    traces = credit.read(tmp_path / "log.jsonl")
    rows = {row.unit: row for row in cost_rows(traces, "system,model", prices)}
    fees = {name: (row.money.total, row.traces, row.of_traces) for name, row in rows.items() if OF_TOOLS in name}
    assert fees == {f"v2, {OF_TOOLS}": (1.5, 1, 1), f"v1, {OF_TOOLS}": (1.0, 2, 2)}
    for system in cost_rows(traces, "system", prices):
        its = [row.money.total or 0 for name, row in rows.items() if name.startswith(system.unit)]
        assert sum(its) == pytest.approx(system.money.total)


@pytest.mark.parametrize("width", ["60", "80"])
def test_a_narrow_terminal_has_both_tables_of_costs(tmp_path: Path, width: str) -> None:
    """With 60 columns each row was a block of lines, which nobody compares."""
    for system in ("v1", "v2"):
        runs(tmp_path, system, "ab" * 80, "xyz")
    (tmp_path / "prices.csv").write_text("model,input,output\nbig,2,3.21\n")
    command = ["costs", str(tmp_path / "log.jsonl"), "--by", "system,agent", "--prices", str(tmp_path / "prices.csv")]
    shown = CliRunner(env={"COLUMNS": width}).invoke(cli, command).stdout.splitlines()
    heads = [line for line in shown if "money" in line.split()[-2:]]
    assert len(heads) == 2 and max(map(len, heads)) <= int(width)


def test_money_of_fewer_traces_is_no_second_total() -> None:
    """ "≥ 4.70725 in logged cost" of all traces, and below "costs.money, logged of 253 of 255 traces: 4.66111"."""
    stated = {"money": Amount(4.66111, 2)}
    assert stated_lines(stated, 255, None, Amount(4.70725, 0)) == []
    assert stated_lines(stated, 255, None, Amount(None, 0)) == ["costs.money, logged of 253 of 255 traces: 4.66111"]
