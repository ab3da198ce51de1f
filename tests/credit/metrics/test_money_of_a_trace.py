"""One rule for the money of a trace: what the log states of it, else the sum of its calls where all state theirs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from credit.metrics.event_costs import AS_LOGGED
from credit.metrics.run_card import run_card
from credit.metrics.trace_costs import UNSTATED_COST, costs_of_traces
from credit.sides.side_bounds import bounds_of_sides
from graphs.logs import read
from graphs.traces.batch import Traces
from tests.credit.cli.logs import run

CALLS = {"a": (0.1, 0.3), "b": (0.4, None), "c": (0.5, 0.25), "d": (1.25, 2.0)}
"""Money of the two calls of each trace."""


def table(folder: Path, *traces: str, stated: str = "") -> Traces:
    """A CSV of these calls; `stated`: the trace whose money as a whole is 9."""
    lines = ["trace,group,system,reward,agent,usd,whole"]
    for trace in traces:
        side, outcome = ("new", 1) if trace in "cd" else ("old", 0)
        for usd in CALLS[trace]:
            lines.append(f"{trace},q,{side},{outcome},x,{'' if usd is None else usd},{9 if trace == stated else ''}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    return read(folder / "log.csv", columns={"money": "usd", "costs.money": "whole"})


def test_money_of_calls_is_money_of_the_trace(tmp_path: Path) -> None:
    """`credit costs` summed it, and metrics, sides and the page had none, without a reason."""
    found = costs_of_traces(table(tmp_path, *"acd"))["logged_money"]
    assert found.value == pytest.approx([0.4, 0.75, 3.25]) and found.reasons == ["", "", ""]
    options = ("--columns", "money=usd,costs.money=whole")
    shown = run("metrics", tmp_path, *options).stdout
    assert "logged_money" in shown and "1.467" in shown  # the mean of 0.4, 0.75 and 3.25
    shown = run("summary", tmp_path, *options).stdout
    assert "logged cost of a success: 2.2\n" in shown  # 4.4 for 2


def test_what_is_stated_of_the_trace_goes_first(tmp_path: Path) -> None:
    assert costs_of_traces(table(tmp_path, *"ab", stated="b"))["logged_money"].value == pytest.approx([0.4, 9.0])


def test_a_call_without_its_money_is_told(tmp_path: Path) -> None:
    traces = table(tmp_path, *"abcd")
    found = costs_of_traces(traces)
    assert found["logged_money"].reasons == ["", UNSTATED_COST, "", ""]
    (bound,) = bounds_of_sides(traces, found, np.array([0, 0, 1, 1]))
    assert (bound.metric, bound.first, bound.second) == ("logged_money", pytest.approx(0.4), pytest.approx(2.0))
    assert bound.whole == (False, True)
    card = {line.item: line.value for line in run_card(traces)}
    assert card["logged cost of a trace"] == "≥ 1.2"  # 4.8 of 4


def test_no_trace_with_its_whole_money_is_told_too(tmp_path: Path) -> None:
    found = costs_of_traces(table(tmp_path, "b"))
    assert found["logged_money"].reasons == [UNSTATED_COST]
    assert UNSTATED_COST in " ".join(run("metrics", tmp_path, "--columns", "money=usd").stdout.split())


def test_money_by_prices_that_the_log_states_is_told_once(tmp_path: Path) -> None:
    """Each sum stood twice, as computed and as logged; one that differs stands beside it."""
    (prices := tmp_path / "prices.csv").write_text("model,input,output\nm,1000,2000\n")
    for usd, agrees in ((0.012, True), (0.02, False)):
        lines = [f"{trace},q,{trace > 'b'},{trace < 'c'},x,m,4,4,{usd}" for trace in "abcd"]
        (log := tmp_path / "log.csv").write_text(
            "\n".join(["trace,group,system,reward,agent,model,input_tokens,tokens,usd", *lines])
        )
        of = (log, "--columns", "money=usd", "--prices", prices)
        shown = [run(*asked, *of).stdout for asked in (("summary",), ("costs",), ("metrics",))]
        for printed in shown:
            assert (AS_LOGGED in printed) == agrees
            assert ("logged cost" in printed.replace(AS_LOGGED, "")) != agrees
        assert ("logged_money" in run("metrics", "--sides", "system", *of).stdout) != agrees
