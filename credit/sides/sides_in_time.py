"""Whether sides of models were run one after the other: what else changed with time is then told from neither."""

from __future__ import annotations

import numpy as np

from credit.reports.durations import AT_ONCE, begins, date_text, part_later
from credit.reports.task_kinds import task_kinds
from credit.reports.trace_numbers import TraceMetric
from credit.sides.chosen_sides import Sides
from credit.sides.side_rows import corrected_rows
from credit.sides.side_tests import compare_metric
from credit.sides.side_words import first_to_second
from graphs.text import counted, printable
from graphs.traces.batch import Traces

__all__ = ["apart_in_time"]


def apart_in_time(traces: Traces, sides: Sides, task: np.ndarray, name: str, metric: TraceMetric | None) -> str:
    """That one model ran mostly before the other, with the difference in the time of both; "" elsewhere.

    A version, or a release of a table, begins at its time. A model is chosen beside it.

    Args:
      traces: what was read.
      sides: of these traces.
      task: of each trace: int [traces].
      name, metric: what is compared; None for nothing.
    """
    begin = begins(traces)
    later = part_later(begin, sides.side) if sides.of_model else np.nan
    if np.isnan(later) or min(later, 1 - later) >= AT_ONCE:
        return ""
    first, second = sides.heads if later > 0.5 else sides.heads[::-1]
    times = [begin[(sides.side == one) & np.isfinite(begin)] for one in (0, 1)]
    low, high = max(of.min() for of in times), min(of.max() for of in times)
    mostly = "" if later in (0, 1) else "mostly "
    said = f"time may be why: {printable(first, 60)} ran {mostly}before {printable(second, 60)}"
    at_once = np.where((begin >= low) & (begin <= high), sides.side, -1)
    row = None if metric is None else compare_metric(name, metric, at_once, task, task_kinds(traces)[1])
    if row is None or not min(part := part_later(begin, at_once), 1 - part) >= AT_ONCE:
        return said
    (row,) = corrected_rows([row])
    span = " to ".join(date_text(end)[:10] for end in (low, high))
    means, of = first_to_second(row.first, row.second), counted(row.tasks, "task")
    return f"{said}; from {span}, when both ran, {name} {means} in {of}, {row.says()}"
