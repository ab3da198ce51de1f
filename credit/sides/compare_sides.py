"""Two sides of a corpus, such as before and after a change, compared in all metrics."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np

from credit.doctor.verdict_errors import verdict_errors
from credit.metrics.event_costs import Prices
from credit.metrics.success_costs import success_costs
from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import OF_CREDIT, success_of_traces
from credit.reports.judged_traces import judged_traces
from credit.reports.owners import owned_events, owners
from credit.reports.part_rates import part_rates
from credit.reports.refused_traces import refused_ids
from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import call_mask
from credit.reports.trace_numbers import TeamFacts, TraceMetric, numbered
from credit.reports.unread_outcomes import NO_SIDE, unread_outcomes, unscored_ends
from credit.reports.verdict_channels import left_out, of_one_source, outcome_name
from credit.sides.asked_metrics import ASKED, ASKED_NEXT, FIRST, TOOL_CALLS, WALL_CLOCK, same_in_all
from credit.sides.call_times import call_times
from credit.sides.changed_mix import changed_mix
from credit.sides.changed_teams import team_changes
from credit.sides.chosen_sides import Sides
from credit.sides.comparable_traces import (
    of_like_parts,
    of_told_tasks,
    of_unchosen,
    of_whole_runs,
    untold_runs,
)
from credit.sides.differing_kinds import agents_alone, differs_too
from credit.sides.side_agents import agents_of_costs
from credit.sides.side_bounds import bounds_of_sides
from credit.sides.side_comparison import SideComparison
from credit.sides.side_differences import side_differences, uncompared
from credit.sides.side_tests import means_by_task
from credit.sides.side_weights import side_weights
from credit.sides.sides_in_time import apart_in_time
from credit.sides.task_kind_changes import costs_of_kinds, task_kind_changes
from credit.sides.tool_failures import emptier_tools, tool_failures
from credit.sides.verdict_changes import held_to_reference, verdict_changes
from credit.sides.weighted_outcomes import weighted_outcomes
from graphs.compared_alone import tasks_alone
from graphs.errors import UNREAD_OUTCOME
from graphs.traces.batch import Traces

__all__ = ["compare_costs", "compare_sides", "compare_systems"]


def compare_sides(
    traces: Traces,
    sides: Sides,
    measured: dict[str, TraceMetric],
    prices: Prices | None = None,
    success_at: float | None = None,
) -> SideComparison:
    """Compare two sides in success, costs and other metrics, but those `OF_CREDIT`: 14 of 20 sides of a fair coin had a
    star in them, of runs that were dealt within their tasks.

    Args:
      traces: what was read.
      sides: of these traces.
      measured: what `with_costs` gives for them.
      prices: of models and tools.
      success_at: the least outcome of a success, as of `unread_outcomes`.
    """
    every, traces = traces, of_one_source(traces)
    if traces is not every:
        outcome = np.asarray(traces.reward, np.float64)[: traces.sizes.traces]
        graded = {"outcome": numbered(outcome, (np.isnan(outcome), "the trace has no outcome"))}
        by_one = graded | {"success": success_of_traces(traces, success_at)}
        measured = {name: by_one.get(name, metric) for name, metric in measured.items()}
    kept = sides.side >= 0
    measured = {name: metric for name, metric in measured.items() if name not in OF_CREDIT}
    task, known_outcomes = task_ids(traces), measured
    of_all = {name: weighted_outcomes(traces, measured[name], sides.side) for name in FIRST if name in measured}
    measured = measured | {name: of.metric for name, of in of_all.items()}
    compared = measured | {name: of.compared for name, of in of_all.items()}
    whole = of_like_parts(of_whole_runs(traces, compared, kept), sides.side)
    whole = of_unchosen(whole, sides.side, task)
    untold = untold_runs(traces, compared, sides.side)
    told_tasks = {name: of_told_tasks(metric, untold) for name, metric in whole.items()}
    lost = uncompared(told_tasks, sides.side)
    same = tuple(name for name in same_in_all(compared, kept) if name not in {one.metric for one in lost})
    rows = side_differences(traces, {name: of for name, of in whole.items() if name not in same}, sides.side)
    kinds = task_kinds(traces)
    facts = TeamFacts.of(traces)
    few = {row.metric for row in rows if row.few_lack}
    bounds = [of for of in bounds_of_sides(traces, measured, sides.side, prices) if of.metric not in few]
    verdicts = tuple(verdict_changes(verdict_errors(every, success_at), sides.side, task, kinds[1]))
    judged = next((row.metric for row in rows if row.metric in FIRST), None)
    of_judged = None if judged is None else (judged, measured[judged])
    apart, apart_in, not_told = differs_too(traces, sides, of_judged, facts)
    in_time = apart_in_time(traces, sides, task, judged or "", None if judged is None else measured[judged])
    asked = {name: place for place, name in enumerate((*ASKED, *ASKED_NEXT))}
    rows = sorted(rows, key=lambda row: asked.get(row.metric, len(asked)))
    unread = tuple(unread_outcomes(traces, success_at, sides.unread, sides.heads, sides.side))
    unscored = tuple(unscored_ends(traces, success_at, sides.side, sides.heads))
    success, calls, took = measured["success"].value, facts.calls, facts.durations
    known, failed = np.isfinite(success), known_outcomes["success"].value
    shared = tasks_alone(np.where(known, sides.side, -1), task)
    # Tasks of one side may be harder, and dearer.
    of_shared = np.isin(task, shared) | (len(shared) == 0)
    weights = side_weights(success, sides.side, task, kinds[1]).sum(axis=0)
    weights /= weights.max() or 1.0  # a ratio of sums of whole numbers is not rounded
    told_by = of_all["success"].of_costs()
    paid, paid_elsewhere = (
        tuple(success_costs(traces, measured, sides.heads, np.where(of, sides.side, -1), prices, weights, **told_by))
        for of in (of_shared, ~known & ~of_shared)
    )
    told = {problem.trace for problem in traces.problems if problem.kind == UNREAD_OUTCOME}
    of_refused = (sides.unread.get(trace) for trace in refused_ids(traces) - told)
    without = collections.Counter(NO_SIDE if one is None else sides.heads[one] for one in of_refused)
    found = SideComparison(sides, rows, bounds, lost, task, apart, same, unread, unscored, without, paid, len(shared))
    agents = agents_of_costs(traces, sides, rows, told_tasks, prices, facts)
    outcome = np.full(len(task), np.nan) if judged is None else known_outcomes[judged].value
    teams = tuple(team_changes(traces, outcome, sides.side))
    asked_of = ([judged] if judged else [], [*costs_of_kinds(rows)])
    families = ({name: whole[name] for name in names} for names in asked_of)
    of_kinds = [row for family in families for row in task_kind_changes(kinds, sides.side, task, family, untold)]
    failing = tuple(tool_failures(traces, sides.side, calls, untold))
    failures = tuple(
        (int((failed[rows] < 1).sum()), int(rows.sum()))
        for of in (np.isfinite(failed), np.isfinite(failed) & np.isin(task, shared))
        for rows in (of & (sides.side == one) for one in (0, 1))
    )
    weighted = part_rates(traces, judged_traces(traces, success_at), sides.side, 2)
    found = dataclasses.replace(
        found,
        failures=failures,
        unweighted=next((of.refused for of in of_all.values() if of.refused), ""),
        rates=weighted and weighted.told(sides.heads),
        paid_elsewhere=paid_elsewhere,
        failing=failing,
        empty=tuple(emptier_tools(traces, sides.side, calls, untold)),
        times=tuple(call_times(traces, sides.side, calls, took, untold)),
        verdicts=verdicts,
        apart_in=apart_in,
        not_told=not_told,
        in_time=in_time,
        left_out=left_out(every),
        judged=judged or "",
        each_task=_tasks(traces, outcome, sides.side),
        teams=teams,
        kinds=tuple(of_kinds),
        mix=changed_mix(kinds, sides.side, task) if any(row.within for row in rows) else "",
        agents=agents,
        alone=agents_alone(traces, sides.side) if "format" in apart_in else ((), ()),
    ).together()
    judge, events = outcome_name(traces), owned_events(calls) | {TOOL_CALLS: np.flatnonzero(call_mask(traces))}
    events[WALL_CLOCK] = np.flatnonzero(np.isfinite(took.event))
    rows, of_kinds = (
        [
            of_all[row.metric].told_of(held_to_reference(row, judge, found.verdicts)) if row.metric in FIRST else row
            for row in of
        ]
        for of in (found.rows, found.kinds)
    )
    for i, row in enumerate(rows):
        if row.worth_telling and row.metric in events:
            weights = side_weights(told_tasks[row.metric].value, sides.side, task, kinds[1])
            seconds = took.event[events[WALL_CLOCK]] if row.metric == WALL_CLOCK else None
            whose = owners(traces, calls, events[row.metric], weights, seconds)
            rows[i] = dataclasses.replace(row, owners=whose if seconds is None else whose.of_most(row.difference))
    return dataclasses.replace(found, rows=rows, kinds=tuple(of_kinds))


def compare_systems(
    traces: Traces, prices: Prices | None = None, success_at: float | None = None
) -> SideComparison | None:
    """Two systems that the log states (`Sides.latest`), in success and costs alone; None without.

    Args:
      traces, prices, success_at: as of `compare_sides`.
    """
    sides = Sides.latest(traces)
    return None if sides is None else compare_costs(traces, sides, prices, success_at)


def compare_costs(
    traces: Traces, sides: Sides, prices: Prices | None = None, success_at: float | None = None
) -> SideComparison:
    """Two sides in success and costs alone, which `SideComparison.in_short` is about.

    Args:
      traces, sides, prices, success_at: as of `compare_sides`.
    """
    measured = with_costs(traces, {"success": success_of_traces(traces, success_at)}, prices)
    return compare_sides(traces, sides, measured, prices, success_at)


def _tasks(traces: Traces, value: np.ndarray, side: np.ndarray) -> dict[str, tuple[float, float]]:
    """The means on both sides of each task with a number on both."""
    task, names = task_ids(traces), {}
    for number, name in zip(task.tolist(), traces.traces["task"].to_pylist(), strict=True):
        names[number] = name
    (tasks, first), (others, second) = (
        means_by_task(value, np.flatnonzero(np.isfinite(value) & (side == one)), task) for one in (0, 1)
    )
    shared, i, j = np.intersect1d(tasks, others, return_indices=True)
    each = zip(shared.tolist(), first[i].tolist(), second[j].tolist(), strict=True)
    return {names[number]: (before, after) for number, before, after in each}
