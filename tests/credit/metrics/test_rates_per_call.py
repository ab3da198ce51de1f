"""Errors per call are told of all traces where the tasks that both sides ran have few of the calls."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from credit.reports.tool_calls import ToolCalls
from credit.sides.rates_per_call import compare_rates
from credit.sides.tool_failures import failing_tools, tool_failures
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.record import Agent, TraceRecord


def tickets(
    rng: np.random.Generator, rates: Any, *, spread: float = 0.0, moved: bool = False, more: int = 1
) -> tuple[np.ndarray, ...]:
    """A month of 95 tickets and a release on day 15: what failed, calls, side, task and kind of each run.

    Args:
      rng: of chance.
      rates: of errors per call: of each of three kinds, or [2, 3] of both sides.
      spread: how much tickets of a kind differ, as a part of what they can.
      moved: whether later tickets are of other kinds.
      more: how many times as many calls a run has after the release.
    """
    rates = np.broadcast_to(rates, (2, 3))
    start, shift, parts = rng.uniform(0, 29, 95), rng.beta(0.5, 0.5, 95), [0.5, 0.3, 0.2]
    kind = np.where(start > 13, *(rng.choice(3, 95, p=p) for p in (parts[::-1] if moved else parts, parts)))
    task = np.repeat(np.arange(95), rng.choice(np.arange(1, 7), 95, p=[0.2, 0.25, 0.25, 0.15, 0.1, 0.05]))
    again = np.append(False, task[1:] == task[:-1])
    side = (start[task] + again * rng.uniform(0, 9, len(task)) >= 15).astype(int)
    calls = rng.integers(1, 4, len(task)) * np.where(side, more, 1)
    rate = rates[side, kind[task]] * (1 + spread * (2 * shift[task] - 1))
    return rng.binomial(calls, rate), calls, side, task, kind[task]


@pytest.mark.parametrize(
    "world",
    [
        {"rates": [0.03] * 3},
        pytest.param({"rates": [0.01] * 3}, marks=pytest.mark.slow),
        pytest.param({"rates": [0.3] * 3, "spread": 0.9}, marks=pytest.mark.slow),
        pytest.param({"rates": [0.02, 0.1, 0.3], "moved": True}, marks=pytest.mark.slow),
        {"rates": [0.05, 0.1, 0.4], "spread": 0.9, "moved": True},
        {"rates": [0.05] * 3, "spread": 0.9, "more": 2},
    ],
)
def test_one_of_twenty_tools_that_did_not_change_is_told_at_most(world: dict[str, Any]) -> None:
    rng = np.random.default_rng(11)
    logs = [tickets(rng, **world) for _ in range(300)]
    told = np.mean([compare_rates(*log).row.stands_out for log in logs])
    assert told <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5, told


def test_a_tool_that_began_to_fail_is_told_in_most_logs() -> None:
    rng = np.random.default_rng(12)
    for before, after, least in ((0.01, 0.16, 0.99), (0.05, 0.15, 0.8)):
        rates = [[before] * 3, [after] * 3]
        told = [compare_rates(*tickets(rng, rates)).row.stands_out for _ in range(100)]
        assert np.mean(told) >= least, (before, after)


@pytest.mark.parametrize("kinds", [True, False])
def test_a_tool_is_named_with_all_its_calls_and_those_of_the_tasks_that_both_ran(*, kinds: bool) -> None:
    """2 of 143 became 65 of 394, and only the 12 tickets that both sides ran were looked at: 0 of 29 to 5 of 29."""
    rng, records = np.random.default_rng(13), []
    wrong, made, side, task, kind = tickets(rng, [[0.01] * 3, [0.16] * 3])
    for failed, calls, its, of in zip(wrong, made, task, kind, strict=True):
        record = TraceRecord(f"t{len(records)}", f"q{its}", "log.jsonl", instances={"a": Agent()})
        record.task_kind = f"kind {of}" if kinds else ""
        for k in range(calls):
            status = "error" if k < failed else "ok"
            record.event(f"e{k}", EventType.TOOL_CALL, "a", action=True, tool="pytest", status=status)
        records.append(record)
    traces = assemble(records)
    (one,) = tool_failures(traces, side, ToolCalls(traces), np.zeros(len(side), bool))
    assert one.calls == tuple(made[side == of].sum() for of in (0, 1))
    assert one.failed == tuple(wrong[side == of].sum() for of in (0, 1))
    shared = np.isin(task, both := np.intersect1d(task[side == 0], task[side == 1]))
    beside = " to ".join(
        f"{wrong[rows].sum()} of {made[rows].sum()}" for rows in (shared & (side == of) for of in (0, 1))
    )
    told = rf"pytest .* %\) in all traces \(on {len(both)} tasks that both ran, {beside}\)$"
    assert re.search(told, failing_tools([one]))
