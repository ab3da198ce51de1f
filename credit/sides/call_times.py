"""Which tools, and which agents' models, take longer for a call on one side than on the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from credit.reports.call_seconds import calls_of_models, calls_of_tools
from credit.reports.durations import Durations
from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_numbers import numbered
from credit.sides.asked_metrics import LEAST_SHARE, WALL_CLOCK
from credit.sides.side_rows import SideDifference, corrected_rows
from credit.sides.side_tests import compare_metric
from credit.sides.side_words import MOST_TOLD, first_to_second, up_to
from graphs.text import printable
from graphs.traces.batch import Traces

__all__ = ["CallTimes", "call_times", "told_times"]


@dataclasses.dataclass(frozen=True)
class CallTimes:
    """How long a call of a tool, or of an agent's model, takes on two sides.

    Attributes:
      name: of the tool, or of the agent.
      of_model: whether it is an agent.
      seconds: the test of the mean of a trace with such calls, within tasks as of any metric. Its p is corrected by
        Holm's method, for tools and models alone.
      part: what the difference is for all calls of a trace, over the mean wall clock of traces with such calls; None
        where that is not known.
    """

    name: str
    of_model: bool
    seconds: SideDifference
    part: float | None = None

    @property
    def is_told(self) -> bool:
        """Whether it differs beyond chance, by `LEAST_SHARE` of the wall clock where that is known."""
        return self.seconds.worth_telling and (self.part is None or self.part >= LEAST_SHARE)

    def words(self) -> str:
        """Whose calls these are."""
        return f"{'model calls of ' * self.of_model}{printable(self.name, 60)}"


def call_times(
    traces: Traces, side: np.ndarray, calls: ToolCalls, found: Durations, untold: np.ndarray
) -> list[CallTimes]:
    """The tools and models that both sides call, those that differ most clearly first.

    Args:
      traces: what was read.
      side: 0 or 1 of each trace, -1 for none: int [traces].
      calls: of these traces.
      found: how long their events took.
      untold: of `untold_runs`.

    Reference: Holm 1979; Tarone 1990.
    """
    trace, task, count = np.asarray(traces.graph.trace_ids), task_ids(traces), traces.sizes.traces
    _, kind = task_kinds(traces)
    rows: list[CallTimes] = []
    for of_model, took in enumerate((calls_of_tools(traces, calls, found), calls_of_models(traces, found))):
        order = np.argsort(took.whose, kind="stable")
        ends = np.searchsorted(took.whose[order], np.arange(len(took.names) + 1))
        for name, first, last in zip(took.names, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            own = order[first:last]
            made = np.bincount(trace[took.rows[own]], minlength=count)
            mean = np.bincount(trace[took.rows[own]], took.seconds[own], count) / np.maximum(made, 1)
            row = compare_metric(WALL_CLOCK, numbered(mean, (made == 0, "it was not called")), side, task, kind, untold)
            if row is not None:
                timed = (made > 0) & (found.wall > 0) & (side >= 0)
                moved = abs(row.difference) * made[timed].sum()
                part = float(moved / found.wall[timed].sum()) if timed.any() else None
                rows.append(CallTimes(name, bool(of_model), row, part))
    corrected = corrected_rows([one.seconds for one in rows], by_least=True)
    times = [dataclasses.replace(one, seconds=row) for one, row in zip(rows, corrected, strict=True)]
    return sorted(times, key=lambda one: 1.0 if one.seconds.p is None else one.seconds.p)


def told_times(found: Sequence[CallTimes]) -> str:
    """The means of those that are told; "" without any."""
    told = [f"{one.words()} {first_to_second(one.seconds.first, one.seconds.second)}" for one in found if one.is_told]
    return f"seconds per call, which have a test of their own: {', '.join(up_to(told, MOST_TOLD))}" if told else ""
