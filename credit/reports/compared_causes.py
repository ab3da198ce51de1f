"""Causes compared: within groups, across systems and models, across sides, and within one kind of task."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from credit.reports.acting_instead import acting_instead
from credit.reports.cause_candidates import Candidate, candidates, of_fallbacks, of_models, of_teams
from credit.reports.cause_kind import of_one_kind, where_others_act, within_kinds
from credit.reports.cause_tests import CauseTest, tested
from credit.reports.compared_kinds import ComparedKinds, compared_kinds
from credit.reports.judged_traces import JudgedTraces, judged_traces
from credit.reports.model_failures import model_failures, within_systems
from credit.reports.tool_calls import ToolCalls
from graphs.task_means import LEVEL
from graphs.traces.batch import Traces

__all__ = ["ComparedCauses", "Counted", "compared_causes", "of_each"]


class Counted(NamedTuple):
    """A candidate with the traces that have it.

    `having`, and `lasting` where not only other calls succeeded later: bool [traces]. `value`: whether each trace with
    an outcome has it, NaN where its log does not tell. `has`, `of`: failed and succeeded traces with it, of how many.
    """

    one: Candidate
    having: np.ndarray
    lasting: np.ndarray
    value: np.ndarray
    has: tuple[int, int]
    of: tuple[int, int]


class ComparedCauses(NamedTuple):
    """Candidates with what their comparison says of each.

    `values`: as of `Counted`. `by`: what the test compares. `of_kind`: as of `of_one_kind`. `kinds`: traces within
    groups; None where they are not of both kinds. `within`: those by which models are compared. `of_tasks`: all traces
    of a task, where groups are finer; else None. `decided`: the tests of these, or else of groups.
    """

    found: list[Counted]
    values: list[np.ndarray]
    tests: list[CauseTest]
    by: list[ComparedKinds | None]
    of_kind: list[int]
    kinds: ComparedKinds | None
    within: ComparedKinds | None
    of_tasks: ComparedKinds | None
    decided: list[CauseTest]


def compared_causes(
    traces: Traces,
    calls: ToolCalls,
    judged: JudgedTraces,
    success_at: float | None,
    side: np.ndarray | None,
    of_model: str,
) -> ComparedCauses:
    """Every candidate, tested where traces are of both kinds.

    Args:
      traces: what was read.
      calls: its tool calls.
      judged: which traces failed.
      success_at, side, of_model: as of `leading_causes`.
    """
    wide = judged_traces(traces, success_at, side, whole_tasks=True)  # a group has one model of each agent
    if not judged.both:
        plain = (
            one._replace(tells=one.tells & ~judged.succeeded) for one in candidates(traces, calls, with_empty=False)
        )
        found = [_counted(traces, one, judged, judged.rows) for one in plain]
        none, n = [CauseTest()] * len(found), len(found)
        return ComparedCauses(found, [of.value for of in found], none, [None] * n, [-1] * n, None, None, None, none)
    kinds = compared_kinds(traces, judged, between=True, by_outcome=True)
    within = within_systems(traces, compared_kinds(traces, wide, between=True))
    every = [*candidates(traces, calls, with_empty=True)]  # which alone are no sign of anything
    # Between tasks who takes part differs because these do, unless an agent is left out.
    every += [one for one in of_teams(traces, kinds, judged) if kinds.within or one.is_left_out]
    every += of_fallbacks(traces, of_model)
    every += of_models(traces, model_failures(traces, judged, of_model), within, side)
    found = [_counted(traces, one, judged if one.test is None else wide, judged.rows) for one in every]
    found = _told_within(kinds, found) if kinds.within else found
    tests = decided = tested(kinds, [one.value for one in found], every)
    of_tasks = None
    if kinds.single is not None:
        of_tasks = kinds.across_systems()
    elif judged.unit is not None and kinds.unit.max() > judged.stratum.max():
        of_tasks = compared_kinds(traces, wide, between=True, by_outcome=True)
    if of_tasks is not None:
        differing = "sides" if of_tasks.single is not None and np.ptp(kinds.model) == 0 else "systems and models"
        found, tests, decided = _across_systems(traces, judged, of_tasks, found, tests, differing)
    if judged.sided and kinds.within and kinds.single is None:
        tests = _across_sides(kinds, found, tests, decided)
    by: list[ComparedKinds | None] = [of_tasks or kinds if test.across else kinds for test in tests]
    of_kind = [-1] * len(found)
    for i, its in enumerate(by):
        if its is not None and its.single is not None and tests[i].sure:
            found[i], tests[i], of_kind[i] = _of_kind(its, found[i], tests[i])
    values = [of.value for of in found]
    if kinds.within:
        trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
        joined, told_so = acting_instead(of_tasks or kinds, every, values, tests, trace)
        found = [of._replace(one=joined.get(i, of.one)) for i, of in enumerate(found)]
        tests = [CauseTest() if i in told_so else test for i, test in enumerate(tests)]
    return ComparedCauses(found, values, tests, by, of_kind, kinds, within, of_tasks, decided)


def _across_systems(
    traces: Traces,
    judged: JudgedTraces,
    of_tasks: ComparedKinds,
    found: list[Counted],
    tests: list[CauseTest],
    differing: str,
) -> tuple[list[Counted], list[CauseTest], list[CauseTest]]:
    """Candidates, their tests, and those of all traces of a task, or kind, which decide where the former leave it."""
    teams = {(one.of_agent, one.quotes): _counted(traces, one, judged, judged.rows)
             for one in of_teams(traces, of_tasks, judged)}  # fmt: skip
    across = [teams.get((of.one.of_agent, of.one.quotes), of) if of.one.of_team else of for of in found]
    across = _told_within(of_tasks, across) if of_tasks.within else across
    decided = tested(of_tasks, [of.value for of in across], [of.one for of in across])
    tests = [test.or_across(wider, differing) for test, wider in zip(tests, decided, strict=True)]
    found = [wider if test.across else of for of, wider, test in zip(found, across, tests, strict=True)]
    return found, tests, decided


def _across_sides(
    kinds: ComparedKinds, found: list[Counted], tests: list[CauseTest], decided: list[CauseTest]
) -> list[CauseTest]:
    """The tests, or those of the runs of a task on both sides where these are left open within them."""
    beside = tested(kinds._replace(relative=True), [of.value for of in found], [of.one for of in found])
    of_both = [one.or_across(other, "sides") for one, other in zip(decided, beside, strict=True)]
    return [other if other.across and not test.sure else test._replace(best=other.best)
            for test, other in zip(tests, of_both, strict=True)]  # fmt: skip


def _of_kind(kinds: ComparedKinds, of: Counted, test: CauseTest) -> tuple[Counted, CauseTest, int]:
    """A cause where it is compared within kinds: of those in which others usually act in the agent's place, and of the
    one that has most of it, if any has."""
    value = of.value
    if of.one.of_agent and of.one.quotes:
        value = where_others_act(kinds, value)
        chance, _, _, p, *_ = kinds.test(value)
        test = test if chance > 0.5 and p < LEVEL else CauseTest()
    kind = of_one_kind(kinds, value)
    return of._replace(value=np.where((kinds.task == kind) | (kind < 0), value, math.nan)), test, kind


def _counted(traces: Traces, one: Candidate, judged: JudgedTraces, scored: np.ndarray) -> Counted:
    """The traces with a candidate, those of `judged` by their kind."""
    trace, every = np.asarray(traces.graph.trace_ids)[: traces.sizes.events], np.arange(traces.sizes.traces)
    having = np.isin(every, trace[one.rows]) & one.tells
    lasting = np.isin(every, trace[np.setdiff1d(one.rows, one.passed_over)]) & having
    value = np.where(one.tells, having, math.nan)[scored]
    return Counted(one, having, lasting, value, of_each(having, judged), of_each(one.tells, judged))


def _told_within(kinds: ComparedKinds, found: list[Counted]) -> list[Counted]:
    values = within_kinds(kinds, [of.one for of in found], [of.value for of in found])
    return [of._replace(value=value) for of, value in zip(found, values, strict=True)]


def of_each(some: np.ndarray, judged: JudgedTraces) -> tuple[int, int]:
    """How many failed, and how many succeeded, traces are among some.

    Args:
      some: whether each trace is: bool [traces].
      judged: which of them failed.
    """
    return int((some & judged.failed).sum()), int((some & judged.succeeded).sum())
