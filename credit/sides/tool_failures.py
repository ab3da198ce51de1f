"""Which tools fail, or find nothing, more or less often on one side than on the other, whatever the sum of all does."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_list import has_statuses
from credit.reports.trace_numbers import numbered
from credit.sides.comparable_traces import of_told_tasks
from credit.sides.rates_per_call import compare_rates
from credit.sides.side_rows import SideDifference, corrected_rows
from credit.sides.side_tests import compare_metric
from credit.sides.side_weights import side_weights
from credit.sides.side_words import MOST_TOLD, up_to
from graphs.structure.host_ids import ranked
from graphs.text import counted, part_of, percent, printable
from graphs.traces.batch import Traces

__all__ = ["ToolFailures", "emptier_tools", "failing_tools", "tool_failures"]


@dataclasses.dataclass(frozen=True)
class ToolFailures:
    """Calls of a tool that failed, of those that ended; or that gave nothing, of those that worked.

    Attributes:
      tool: its name.
      failed, calls: of each side, over the traces that the test compares.
      share: the test of the share that failed, of traces with such calls, within tasks as of any metric. Its p is
        corrected by Holm's method, for tools alone: what one of them does is not lost in what others do. Where some
        tasks are shared, and cannot tell alone (`tasks_alone`), `compare_rates` of all traces.
      shared: the tasks that both sides ran, where the test is of all traces; else 0.
      in_shared: in these, failed calls of each side, and calls of each.
    """

    tool: str
    failed: tuple[int, int]
    calls: tuple[int, int]
    share: SideDifference
    shared: int = 0
    in_shared: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))

    def raised(self, times: float, parts: int) -> ToolFailures:
        """The same with its p-values so many times as large."""
        return dataclasses.replace(self, share=self.share.raised(times, parts))

    def row(self, what: str) -> SideDifference:
        """The test as a row of a table, of `what` per call; in the tasks seen alone it says nothing of a tool."""
        return dataclasses.replace(self.share, metric=f"{what} per call", kind=self.tool, here=None)

    def counts(self) -> str:
        """The counts of both sides; the shares that are tested stand beside counts that do not go their way."""
        before, after = (some / every for some, every in zip(self.failed, self.calls, strict=True))
        means = " to ".join(percent(mean) for mean in (self.share.first, self.share.second))
        unlike = (after - before) * self.share.difference <= 0
        by = "within kinds of task" if self.share.within else "by kind" if self.shared else "by task"
        return f"{' to '.join(map(part_of, self.failed, self.calls))}{f', {by} {means}' * unlike}"

    def told(self) -> str:
        """The tool, its counts, and of which traces these are."""
        if not self.shared:
            return f"{printable(self.tool, 60)} {self.counts()}"
        both = " to ".join(f"{some} of {every}" for some, every in zip(*self.in_shared, strict=True))
        place = f"in all traces (on {counted(self.shared, 'task')} that both ran, {both})"
        return f"{printable(self.tool, 60)} {self.counts()} {place}"


def tool_failures(traces: Traces, side: np.ndarray, calls: ToolCalls, untold: np.ndarray) -> list[ToolFailures]:
    """The tools that both sides call, those that differ most clearly first.

    Args:
      traces: what was read.
      side: 0 or 1 of each trace, -1 for none: int [traces].
      calls: of these traces.
      untold: of `untold_runs`.

    Reference: Holm 1979; Tarone 1990.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> records = [TraceRecord(name, "q", "log.jsonl", instances={"a": Agent()}) for name in "st"]
      >>> for record in records:
      ...     for i, status in enumerate(("ok", "error" if record.trace_id == "t" else "ok")):
      ...         _ = record.event(f"e{i}", 4, "a", action=True, tool="web", status=status)
      >>> traces = assemble(records)
      >>> found = tool_failures(traces, np.array([0, 1]), ToolCalls(traces), np.zeros(2, bool))
      >>> [(one.tool, one.failed, one.calls) for one in found]
      [('web', (0, 1), (2, 2))]
    """
    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    failed = np.zeros(len(trace), bool)
    failed[calls.owners[calls.counted]] = True
    rows = calls.rows[(~calls.open | failed)[calls.rows] & has_statuses(traces)[trace[calls.rows]]]
    return _of_tools(traces, side, calls, untold, rows, failed, depends=False)


def emptier_tools(traces: Traces, side: np.ndarray, calls: ToolCalls, untold: np.ndarray) -> list[ToolFailures]:
    """The same of empty results, of tools that have some.

    Args:
      traces: what was read.
      side, calls, untold: as of `tool_failures`.
    """
    trace, events = np.asarray(traces.graph.trace_ids), traces.sizes.events
    empty, wrong = np.zeros(events, bool), np.zeros(events, bool)
    empty[calls.owners[calls.empty.rows]] = True
    wrong[calls.owners[calls.errors]] = True
    rows = np.unique(calls.calls)
    rows = rows[~wrong[rows] & calls.empty.tells[trace[rows]] & np.isin(calls.tools[rows], calls.tools[empty])]
    return _of_tools(traces, side, calls, untold, rows, empty, depends=True)


def _of_tools(
    traces: Traces,
    side: np.ndarray,
    calls: ToolCalls,
    untold: np.ndarray,
    rows: np.ndarray,
    failed: np.ndarray,
    *,
    depends: bool,
) -> list[ToolFailures]:
    """`ToolFailures` of these calls, by which of all events `failed`; as any metric where that `depends` on tasks.

    What a search finds is the task's doing, and tasks of one side may be harder. Whether a call fails is the tool's.
    """
    count, trace = traces.sizes.traces, np.asarray(traces.graph.trace_ids)
    rows = rows[(side[trace[rows]] >= 0) & (calls.tools[rows] >= 0)]
    names, tool = ranked(traces.events["tool"].take(rows).to_pylist())
    task, (_, kind), found = task_ids(traces), task_kinds(traces), []
    for number, name in enumerate(names):
        of = rows[tool == number]
        made, wrong = (np.bincount(trace[some], minlength=count) for some in (of, of[failed[of]]))
        share = numbered(wrong / np.maximum(made, 1), (made == 0, "the tool was not called"))
        row = compare_metric("", share, side, task, kind, untold)  # a tool may be called tokens
        if row is None:
            continue
        compared = side_weights(of_told_tasks(share, untold).value, side, task, kind) > 0
        one = np.where(untold | (made == 0), -1, side)
        both = np.intersect1d(*(task[one == which] for which in (0, 1)))
        if depends or not len(both) or (row.paired and row.p is not None):
            found.append(ToolFailures(name, *_summed(wrong, made, compared), row))
        else:
            rates = compare_rates(wrong, made, one, task, kind)
            every, shared = (np.stack([of & (one == which) for which in (0, 1)])
                             for of in (rates.kept, np.isin(task, both)))  # fmt: skip
            in_shared = _summed(wrong, made, shared)
            found.append(ToolFailures(name, *_summed(wrong, made, every), rates.row, len(both), in_shared))
    corrected = corrected_rows([one.share for one in found], by_least=True)
    found = [dataclasses.replace(one, share=row) for one, row in zip(found, corrected, strict=True)]
    return sorted(found, key=lambda one: (1.0 if one.share.p is None else one.share.p, -abs(one.share.difference)))


def _summed(wrong: np.ndarray, made: np.ndarray, of: np.ndarray) -> tuple[tuple[int, int], tuple[int, int]]:
    """What went wrong, and what was made, in these traces of the first side and of the second."""
    (first, second), (all_first, all_second) = ([int(each[rows].sum()) for rows in of] for each in (wrong, made))
    return (first, second), (all_first, all_second)


def failing_tools(found: Sequence[ToolFailures], what: str = "errors") -> str:
    """The tools whose share of failed calls, or of empty results, differs beyond chance, with their counts; "" without
    any."""
    every = "; ".join(up_to([one.told() for one in found if one.share.stands_out], MOST_TOLD))
    return f"{what} per call, which have a test of their own: {every}" if every else ""
