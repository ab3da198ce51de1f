"""Runs that were killed before their log told of which task they are, as spans below a root that was not exported."""

from __future__ import annotations

import numpy as np
import pytest

from credit.metrics.metric_summary import metric_means
from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.tasks import UNTOLD, untold_tasks
from credit.sides.chosen_sides import Sides
from credit.sides.compare_sides import compare_sides
from credit.sides.side_comparison import SideComparison
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import CUT_SHORT, Agent, TraceRecord

TASKS, RUNS, KILLED = 12, (12, 10), (3, 9)


def killed_runs(*, told: bool = False, shared: bool = True, helper: bool = False) -> Traces:
    """12 tasks with 12 runs on one side and 10 on the other, of which 3 and 9 are killed.

    Args:
      told: whether the killed runs say of which task they are.
      shared: whether the sides have the same tasks.
      helper: whether another agent acts, too.
    """
    records: list[TraceRecord] = []
    for side in (0, 1):
        for i in range(TASKS * RUNS[side]):
            task = f"q{i % TASKS}" if shared else f"q{side}-{i % TASKS}"
            killed, name = i < KILLED[side], f"t{len(records)}"
            record = TraceRecord(name, name if killed and not told else task, f"{side}.jsonl", format="spans")
            record.instances = {"lead": Agent()}
            record.event("e", EventType.MESSAGE, "lead", action=True, tokens=20 if killed else 100 + i % TASKS)
            if helper:
                record.instances["helper"] = Agent()
                record.event("h", EventType.MESSAGE, "helper", action=True, tokens=5 + side)
            record.metrics |= {CUT_SHORT: 1.0} if killed else {}
            record.rewards |= {} if killed else {"team": float(i % 2)}
            records.append(record)
    return assemble(records)


def side_of(traces: Traces) -> np.ndarray:
    return np.array([int(file[0]) for file in traces.traces["file"].to_pylist()])


def compared(traces: Traces) -> SideComparison:
    measured = with_costs(traces, trace_metrics(traces))
    return compare_sides(traces, Sides(("a", "b"), side_of(traces), ("a", "b")), measured)


@pytest.mark.parametrize("shared", [True, False])
def test_killed_runs_of_no_known_task_count_on_their_side(shared: bool) -> None:
    """3 of 144 and 9 of 120 runs were killed, and early ends were "0 to 0: the same": none was of a shared task."""
    found = compared(killed_runs(shared=shared))
    rows = {row.metric: row for row in found.rows}
    ends, success = rows["ended_early"], rows["success"]
    assert (ends.first, ends.second, ends.stands_out, ends.refused) == (0, 0, False, {UNTOLD: 12})
    assert (ends.untold, ends.asked, ends.traces) == ((3, 9), (144, 120), (141, 111))
    assert ends.least_rest == ends.most_rest == (3 / 144, 9 / 120)
    assert ends.says(brief=True) == "no change shown" and ends.tasks == (TASKS if shared else 2 * TASKS)
    bound = "with the 3 of a and 9 of b whose task is not known, early ends are 0.0208 to 0.075"
    assert bound in found.but() and f"W{bound[1:]}." in found.caveats()
    assert {row.metric: (row.first, row.second) for row in found.bounds}["ended_early"] == (3 / 144, 9 / 120)
    assert (success.asked, success.lacking) == ((144, 120), (3, 9))
    known = [(success.first * part, success.second * rest) for part, rest in ((141 / 144, 111 / 120),)]
    assert success.least_rest == pytest.approx(known[0])
    assert success.most_rest == pytest.approx((known[0][0] + 3 / 144, known[0][1] + 9 / 120))
    assert "With the missing outcomes (3 of a, 9 of b) as failures or successes, success differs by" in str(
        found.caveats()
    )
    assert rows["tokens"].traces == (141, 111) and rows["tokens"].refused == {UNTOLD: 12}
    assert "tasks are on one side only" not in " ".join(found.lines())


@pytest.mark.parametrize("shared", [True, False])
def test_parts_of_agents_are_of_the_runs_that_are_compared(shared: bool) -> None:
    found = compared(killed_runs(shared=shared, helper=True))
    (tokens,) = [row for row in found.rows if row.metric == "tokens"]
    parts = [(one.first, one.second) for one in found.agents["tokens"]]
    assert np.sum(parts, axis=0) == pytest.approx([tokens.first, tokens.second])


def test_killed_runs_of_known_tasks_are_compared_as_before() -> None:
    found = compared(killed_runs(told=True))
    (ends,) = [row for row in found.rows if row.metric == "ended_early"]
    assert [ends.first, ends.second] == pytest.approx([3 / 144, 9 / 120])
    assert (ends.untold, ends.least_rest, ends.refused) == ((0, 0), None, {})
    assert "not known" not in " ".join([*found.lines(), *found.caveats()])


def test_a_side_of_killed_runs_alone_is_compared() -> None:
    """Its early ends are all that is known of it."""
    traces = killed_runs()
    side = side_of(traces)
    side[np.isfinite(np.asarray(traces.reward)[: len(side)]) & (side == 1)] = -1
    found = compare_sides(traces, Sides(("a", "b"), side, ("a", "b")), with_costs(traces, trace_metrics(traces)))
    (ends,) = [row for row in found.rows if row.metric == "ended_early"]
    assert (ends.second, ends.untold, ends.traces[1]) == (1, (0, 0), 9)


def test_a_run_without_a_task_is_of_none_where_no_log_tells_tasks() -> None:
    """Each run is its own task then, as one whose agent was killed; nor is one that ended, or that has an outcome."""
    traces = killed_runs()
    early = np.array([name in {f"t{i}" for i in (*range(3), *range(144, 153))} for name in
                      traces.traces["trace"].to_pylist()])  # fmt: skip
    assert untold_tasks(traces, early).tolist() == early.tolist()
    assert not untold_tasks(traces, ~early).any()
    alone = [TraceRecord(f"t{i}", f"t{i}", "x.jsonl", metrics={CUT_SHORT: 1.0}) for i in range(4)]
    for record in alone:
        record.instances = {"lead": Agent()}
        record.event("e", EventType.MESSAGE, "lead", action=True)
    assert not untold_tasks(assemble(alone), np.ones(4, bool)).any()


def test_means_of_metrics_weigh_a_killed_run_as_any_other() -> None:
    """12 of 264 runs ended early, in a mean of 0.5 over 24 "tasks", since each killed run was a task of its own."""
    for told in (True, False):
        traces = killed_runs(told=told)
        means = {row.metric: row for row in metric_means(traces, with_costs(traces, trace_metrics(traces)))}
        ends, success = means["ended_early"], means["success"]
        assert ends.mean == pytest.approx(12 / 264) and (ends.tasks, ends.traces) == (TASKS, 264)
        assert ends.low is None and (UNTOLD in ends.without) == (not told) and UNTOLD not in success.without
        assert means["tokens"].median is not None and means["tokens"].median.median > 90  # of tasks that are known
