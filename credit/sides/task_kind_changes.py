"""The outcome of each kind of tasks on two sides: a side may be better in one kind and worse in another."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from credit.reports.trace_numbers import TraceMetric
from credit.sides.side_rows import SideDifference
from credit.sides.side_tests import compare_metric
from graphs.task_means import holm
from graphs.traces.batch import Traces

__all__ = ["task_kind_changes"]


def task_kind_changes(
    traces: Traces, side: np.ndarray, name: str, metric: TraceMetric, untold: np.ndarray
) -> list[SideDifference]:
    """One metric within each kind of tasks of which both sides have a number, corrected for how many are tested.

    Args:
      traces: what was read.
      side: 0 or 1 of each trace, -1 for none: int [traces].
      name, metric: what is compared.
      untold: whether the task of a trace is not known: bool [traces].

    Reference: Holm 1979, A simple sequentially rejective multiple test procedure.
    """
    names, kind = task_kinds(traces)
    task = task_ids(traces)
    every = [compare_metric(name, metric, np.where(kind == i, side, -1), task, untold) for i in range(len(names))]
    rows = [dataclasses.replace(row, kind=of) for of, row in zip(names, every, strict=True) if row is not None]
    tests = sum(row.p is not None for row in rows)
    corrected = holm([math.nan if row.p is None else row.p for row in rows])
    return [row.corrected(p, tests) for row, p in zip(rows, corrected, strict=True)]
