"""A number that traces lack by what it would be is compared nowhere: those that have one are a choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.doctor.team_checks import examine
from credit.metrics.trace_costs import costs_of_traces
from credit.reports.chosen_numbers import LACK, NO_ARGUMENTS, are_chosen
from credit.reports.tasks import task_ids
from credit.sides.comparable_traces import of_unchosen
from tests.credit.cli.logs import run, trace, write

COUNTS = ("unrecovered_errors", "loops")


def log(folder: Path, *, arguments: bool, looping: tuple[float, float] = (0.2, 0.5)) -> Path:
    """Forty tasks with two runs of each system. A run asks for different things, or for one thing four times, or for
    one that fails at first."""
    lines = []
    for i in range(160):
        new, kind = i % 2, i // 2 * 7 % 20 / 20
        calls: list[tuple[str, str]] = [("read", f"{k}") for k in range(2)]
        if kind < looping[new]:
            calls = [("read", "x")] * 4
        elif kind < looping[new] + 0.3:
            calls = [("get", "x")] * 2
        events: list[dict[str, Any]] = []
        for k, (tool, said) in enumerate(calls):
            wrong = tool == "get" and (not k or i % 3 < new)
            call = {
                "id": f"c{k}",
                "type": "tool_call",
                "agent": "a",
                "tool": tool,
                "status": "error" if wrong else "ok",
            }
            events.append(call | ({"arguments": {"q": said}} if arguments else {}))
        lines.append(
            trace(f"t{i}", f"q{i // 4}", float(kind > 0.4), events=events, edges=[], system=("old", "new")[new])
        )
    return write(folder / "x.jsonl", lines)


def test_counts_that_need_arguments_are_not_compared_without_them(tmp_path: Path) -> None:
    """Runs whose calls might be a loop had no number, all others 0: "the same number in all traces: loops"."""
    for arguments in (True, False):
        path = log(tmp_path, arguments=arguments)
        told = json.loads(run("metrics", path, "--sides", "system=old,new", "--json").stdout)
        compared, lost = {row["metric"] for row in told["differences"]}, {row["metric"] for row in told["uncompared"]}
        assert (compared if arguments else lost) >= {*COUNTS} and not {*COUNTS} & {*told["same"]}
        means = json.loads(run("metrics", path, "--json").stdout)["metrics"]
        assert {row["metric"] for row in means if row["mean"] is not None} & {*COUNTS} == (
            {*COUNTS} if arguments else set()
        )
        left = " ".join(run("summary", path).stdout.split())
        assert ("Not compared, as which traces lack the number" in left) is not arguments
        assert arguments or "loops (known of" in left
        spam = next(one for one in examine(credit.read(path)) if one.check == "tool_spam")
        assert arguments or (spam.found, spam.words) == (None, NO_ARGUMENTS)


@pytest.mark.parametrize(("looping", "whole"), [((0.0, 0.09), False), ((0.05, 0.05), True)])
def test_few_traces_that_lack_a_number_are_a_choice_where_they_are_of_one_side(
    tmp_path: Path, looping: tuple[float, float], whole: bool
) -> None:
    traces = credit.read(log(tmp_path, arguments=False, looping=looping))
    side = np.array([name == "new" for name in traces.traces["system"].to_pylist()]).astype(int)
    metric = costs_of_traces(traces)["loops"]
    lacks = ~np.isfinite(metric.value)
    assert 0 < lacks[side == 1].mean() <= LACK
    kept = of_unchosen({"loops": metric}, side, task_ids(traces))["loops"]
    assert np.isfinite(kept.value).any() == whole and ({*kept.reasons} == {NO_ARGUMENTS}) is not whole


def test_numbers_are_a_choice_no_more_often_than_by_chance() -> None:
    rng, draws, stratum = np.random.default_rng(4), 400, np.arange(200) // 4
    chosen = [are_chosen(rng.random(200) > 0.04, np.arange(200) % 2 == 1, stratum, stratum * 0, np.ones(200, bool))
              for _ in range(draws)]  # fmt: skip
    assert sum(chosen) <= 0.08 * draws
