"""Sides whose logs are of different formats: what one keeps of killed runs, and of agents, the other may not have."""

from __future__ import annotations

import re

import numpy as np
import pytest

from credit.metrics.event_costs import Price, PriceGaps, Prices
from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.missing_lines import LACKING
from credit.sides.chosen_sides import Sides
from credit.sides.comparable_traces import EARLY
from credit.sides.compare_sides import compare_sides
from credit.sides.side_comparison import SideComparison
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.record import CUT_SHORT, LOST_PARTS, Agent, TraceRecord

PRICES = Prices({"big": Price(1, 1)})


def sides_of(lacks: str, *, formats: tuple[str, str] = ("spans", "lines"), prices: Prices = PRICES) -> SideComparison:
    """Two sides that are alike, of 12 tasks with 4 runs each, of which one is killed after 1 of 9 calls.

    Args:
      lacks: the side whose killed runs lack lines; "" for none.
      formats: of the sides.
      prices: of the model, or none of it.
    """
    rng = np.random.default_rng(0)
    records: list[TraceRecord] = []
    for task, side, run in ((q, s, r) for q in range(12) for s in (0, 1) for r in range(4)):
        killed, format_ = run == 3, formats[side]
        record = TraceRecord(f"t{len(records)}", f"q{task}", f"{side}.jsonl", model="big", format=format_)
        record.instances = {"lead": Agent(), "checker": Agent()} if side == 0 else {"lead": Agent()}
        for call in range(1 if killed else 9):
            tokens = int(rng.integers(900, 1100))
            record.event(f"e{call}", EventType.MESSAGE, "lead", action=True, tokens=tokens, input_tokens=tokens)
        if side == 0 and (not killed or lacks != "ab"[side]):
            record.event("c", EventType.MESSAGE, "checker", action=True, tokens=1, input_tokens=0)
        record.metrics |= {CUT_SHORT: 1.0} if killed else {}
        record.metrics |= {LOST_PARTS: 1.0} if killed and lacks == "ab"[side] else {}
        record.rewards |= {} if killed else {"team": float(run > 0)}
        records.append(record)
    traces, of = assemble(records), np.array([int(record.file[0]) for record in records])
    measured = with_costs(traces, trace_metrics(traces), prices)
    return compare_sides(traces, Sides(("a", "b"), of, ("a", "b")), measured, prices)


@pytest.mark.parametrize("lacks", ["a", "b"])
def test_killed_runs_that_one_side_alone_has_numbers_of_are_left_out_of_both(lacks: str) -> None:
    """Sides that are alike read "down: money, tokens generated": the sums of killed runs were on one side alone."""
    found = sides_of(lacks)
    rows = {row.metric: row for row in found.rows}
    for name in ("money", "tokens", "input_tokens", "tool_calls"):
        if name in rows:
            assert rows[name].traces == (36, 36) and not rows[name].stands_out
            assert rows[name].refused == {LACKING: 12, EARLY: 12}
    assert rows["money"].first == pytest.approx(rows["money"].second, rel=0.05)
    assert sum(one.difference for one in found.agents["money"]) == pytest.approx(rows["money"].difference, rel=1e-9)
    assert rows["success"].asked == (48, 48) and EARLY not in rows["success"].refused
    clause = "oney, tokens generated, … are without traces that end early, since some lack lines"
    assert f"m{clause}" in found.but() and f"M{clause}." in found.caveats()
    whole = {bound.metric: bound.whole for bound in found.bounds}
    assert whole["money"] == (lacks != "a", lacks != "b")  # what a killed run cost is known as before


def test_where_no_trace_lacks_lines_killed_runs_count_on_both_sides() -> None:
    found = sides_of("")
    rows = {row.metric: row for row in found.rows}
    assert rows["money"].traces == (48, 48) and not rows["money"].refused
    assert "end early, since" not in " ".join([*found.but(), *found.caveats()])


def test_an_agent_that_a_format_may_hide_is_named() -> None:
    """An agent of one side alone, which its format told nothing of, was in no sentence."""
    found = sides_of("a")
    alone = "checker acts in a alone, or the other format hides it"
    assert alone in found.but()
    assert any(re.fullmatch(f"The sides differ in format [(].*[)], too: {alone}[.]", one) for one in found.caveats())
    assert ", checker -0.000001" in found.by_agent()
    same = sides_of("a", formats=("lines", "lines"))
    assert "checker" not in same.by_agent()  # its part is small
    assert "hides it" not in " ".join([*same.but(), *same.caveats()])


def test_models_without_a_price_are_named_where_money_is_not_compared() -> None:
    """That "no row of the table prices a model of it" left to the reader which one, and the lead said no word of it."""
    found = sides_of("", prices=Prices({"bog": Price(1, 1)}))
    why = "no row of the table prices big"
    assert f"cost is not compared, because {why}" in found.but()
    assert found.origin() == f"money is not told, as {why}" and sides_of("").origin() == ""
    assert any(f"money ({why})" in line for line in found.without_number())
    assert PriceGaps(["", "a", "b", "c", "d"], [], [], [], [], [], [], [], []).unpriced_names() == "a, b, c, …"
