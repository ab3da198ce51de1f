"""Model calls that failed without a count, as at a rate limit, count as 0 tokens; those that gave something do not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.metrics.event_costs import Price, Prices, event_costs
from credit.metrics.failed_costs import failed_cost
from credit.metrics.success_costs import success_costs
from credit.metrics.trace_costs import IDLE, UNSTATED_COST, costs_of_traces, with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.outcome_differences import outcome_differences
from credit.reports.trace_list import trace_rows
from credit.sides.chosen_sides import Sides
from credit.sides.compare_sides import compare_sides
from credit.sides.side_bounds import bounds_of_sides
from credit.sides.side_differences import side_differences
from graphs.event_types import EdgeType, EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord
from tests.credit.cli.logs import run, trace, write

RATIO = 1.55
"""Tokens of a call of the second side over one of the first."""
LIMITS = ((0.0, 0.0), (0.05, 0.05), (0.02, 0.2))
"""Chances, by side, that a call fails at a rate limit and is made again."""


def of_calls(*calls: dict[str, Any], reward: float = 1.0, name: str = "t") -> TraceRecord:
    record = TraceRecord(name, "q", "log.jsonl", instances={"a": Agent()}, rewards={"team": reward}, model="m")
    for i, columns in enumerate(calls):
        record.event(f"e{i}", EventType.MESSAGE, "a", action=True, **columns)
    return record


WHOLE: dict[str, Any] = {"tokens": 5, "input_tokens": 7, "money": 0.5}
REFUSED: dict[str, Any] = {"status": "error"}


def test_a_call_that_failed_without_a_count_costs_nothing() -> None:
    record = of_calls(WHOLE, REFUSED, WHOLE)
    record.sum_money(range(3))
    assert "money" not in record.costs, "what the reader knows of it"
    traces = assemble([record])
    costs, found = event_costs(traces, Prices({"m": Price(1.0, 1.0)})), costs_of_traces(traces)
    assert [costs.tokens.tolist(), costs.input_tokens.tolist()] == [[5, 0, 5], [7, 0, 7]]
    assert costs.money.tolist() == pytest.approx([12e-6, 0, 12e-6])
    assert [found[name].value.tolist() for name in ("tokens", "input_tokens", "logged_money")] == [[10], [14], [1]]
    told = failed_cost(assemble([record, of_calls(WHOLE, reward=0.0, name="u")]))
    assert told is not None and told.told() == "33 % of the logged cost (0.5 of 1.5) went into failed traces"


def test_a_call_that_worked_without_a_count_still_makes_a_sum_incomplete() -> None:
    """So does one that failed after it had asked for a tool, and any call of a log that counts nothing."""
    asked = of_calls(WHOLE, REFUSED)
    call = asked.event("c", EventType.TOOL_CALL, "a", action=False, tool="grep")
    asked.edge(1, call, EdgeType.CAUSAL)
    for records in ([of_calls(WHOLE, {})], [asked], [of_calls(REFUSED, {})], [of_calls(REFUSED, REFUSED)]):
        traces = assemble(records)
        found = costs_of_traces(traces)
        assert math.isnan(found["tokens"].value[0]) and math.isnan(found["input_tokens"].value[0])
        known = traces.evidence.get("money")
        assert ("logged_money" in found) == (known is not None and bool(known.mask.any()))
        assert "logged_money" not in found or found["logged_money"].reasons == [UNSTATED_COST]


def test_a_run_that_was_refused_from_its_first_call_on_cost_nothing_and_is_not_compared() -> None:
    """With 5 % of such runs 43 % of sides of 30 tasks had a ratio of tokens: a task of 0 has none."""
    records = [of_calls(WHOLE, name="w"), of_calls(REFUSED, REFUSED, reward=0.0, name="r")]
    traces, prices = assemble(records), Prices({"m": Price(1.0, 1.0)})
    found = costs_of_traces(traces, prices)
    assert [found[name].reasons for name in ("tokens", "input_tokens", "money")] == [["", IDLE]] * 3
    assert not bounds_of_sides(traces, found, np.array([0, 1]))
    measured = trace_metrics(traces) | {"money": found["money"]}
    (paid,) = success_costs(traces, measured, ["all"], np.zeros(2, int), prices)
    assert paid.whole and paid.traces == 2
    traces, sides = world(np.random.default_rng(2), RATIO, LIMITS[1], dead=0.1)
    (row,) = side_differences(traces, {"tokens": costs_of_traces(traces)["tokens"]}, sides.side)
    assert row.ratio is not None and row.refused.keys() == {IDLE} and sum(row.lacking) > 3


def test_how_many_calls_without_a_count_failed_is_said(tmp_path: Path) -> None:
    columns: tuple[dict[str, Any], ...] = ({"tokens": 9}, REFUSED, REFUSED, {}, {"tokens": 9})
    calls = [{"id": f"c{i}", "t": i, "type": "message", "agent": "a"} | own for i, own in enumerate(columns)]
    write(tmp_path / "log.jsonl", [trace("t", "q", 1.0, events=calls, edges=[])])
    said = (
        "2 of 3 calls without a count of tokens failed and count as 0 tokens; "
        "a provider may have billed those that timed out"
    )
    for command in ("costs", "summary"):
        assert said in run(command, str(tmp_path)).stdout.replace("\n", " "), command


@pytest.mark.parametrize("bare", [0, 1])
def test_sums_are_bounds_in_every_table_or_in_none(tmp_path: Path, bare: int) -> None:
    """Agents had "≥ 32,800" where the total, and the same numbers by `costs`, had no bound."""
    calls: list[dict[str, Any]] = [{"tokens": 9000 + i} for i in range(3)] + [REFUSED] * 2 + [{}] * bare
    events = [{"id": f"c{i}", "t": i, "type": "message", "agent": "a"} | own for i, own in enumerate(calls)]
    write(tmp_path / "log.jsonl", [trace(f"t{i}", "q", float(i), events=events, edges=[]) for i in range(2)])
    for command in (["summary"], ["traces"], ["costs", "--by", "agent"], ["show", "--trace", "t0"]):
        said = run(command[0], str(tmp_path), *command[1:]).stdout
        assert ("≥" in said or "5 of 6 actions" in said) == bool(bare), (command, said)
    rows = trace_rows(credit.read(tmp_path))
    assert [(row["actions"] - row["actions_with_tokens"]) for row in rows] == [bare] * 2


def world(
    rng: np.random.Generator, ratio: float, limits: tuple[float, float], dead: float = 0.0
) -> tuple[Traces, Sides]:
    """Two sides of 30 tasks of unlike sizes, 1 to 3 runs of each; calls that fail at a limit have no count.

    A part `dead` of runs has no other calls.
    """
    records, side = [], []
    for task, size in enumerate(rng.lognormal(6, 0.7, 30)):
        for one, limit in enumerate(limits):
            for number in range(rng.integers(1, 4)):
                calls: list[dict[str, Any]] = []
                calls += [REFUSED] * 3 if (ends := dead > 0 and rng.random() < dead) else []
                for _ in range(0 if ends else 1 + rng.poisson(4)):
                    calls += [REFUSED] * int(rng.geometric(1 - limit) - 1)
                    calls.append({"tokens": int(1 + size * ratio**one * rng.lognormal(0, 0.5))})
                record = of_calls(*calls, reward=float(rng.random() < 0.6), name=f"{task}-{one}-{number}")
                record.group_id = f"q{task}"
                records.append(record)
                side.append(one)
    return assemble(records), Sides(("a", "b"), np.array(side), ("a", "b"))


def test_tokens_are_compared_where_calls_of_one_side_fail() -> None:
    """They were not where 63 % of one side's traces had such a call."""
    traces, sides = world(np.random.default_rng(1), RATIO, LIMITS[2])
    rows = compare_sides(traces, sides, with_costs(traces, trace_metrics(traces))).rows
    row = next(row for row in rows if row.metric == "tokens")
    assert row.stands_out and row.ratio is not None and row.ratio.low <= RATIO <= row.ratio.high
    assert any(row.what == "tokens generated" for row in outcome_differences(traces, side=sides.side).rows)


@pytest.mark.slow
@pytest.mark.parametrize("limits", LIMITS)
def test_a_ratio_of_tokens_is_found_and_covered_with_rate_limits(limits: tuple[float, float]) -> None:
    """With calls that fail on both sides 88 % of intervals held the ratio, and 47 of 60 were beyond chance."""
    for ratio in (RATIO, 1.0):
        held, starred = [], []
        for seed in range(120):
            traces, sides = world(np.random.default_rng(seed), ratio, limits)
            (row,) = side_differences(traces, {"tokens": costs_of_traces(traces)["tokens"]}, sides.side)
            assert row.ratio is not None and row.traces == row.asked
            held.append(row.ratio.low <= ratio <= row.ratio.high)
            starred.append(row.stands_out)
        assert np.mean(held) > 0.9
        assert np.mean(starred) > 0.85 if ratio > 1 else np.mean(starred) < 0.08
