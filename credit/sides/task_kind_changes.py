"""Outcomes and costs of each kind of tasks on two sides: one may be better in a kind and worse in another."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from credit.metrics.event_costs import MOST_UNPRICED_TOKENS
from credit.metrics.part_costs import PAID_IN
from credit.reports.trace_numbers import TraceMetric
from credit.sides.asked_metrics import WALL_CLOCK
from credit.sides.side_rows import SideDifference, corrected_rows
from credit.sides.side_tests import compare_metric

__all__ = ["costs_of_kinds", "task_kind_changes"]


def costs_of_kinds(rows: Sequence[SideDifference]) -> Iterator[str]:
    """The costs that are told by kind: money, where it is known of almost as many traces as tokens, else these; time.

    Args:
      rows: of all costs that both sides have a number of.
    """
    known = {row.metric: sum(row.traces) for row in rows}
    least = (1 - MOST_UNPRICED_TOKENS) * known.get("tokens", 0)
    paid = next((name for name in PAID_IN if known.get(name, -1) >= least), "tokens")
    named = ("input_tokens", "tokens") if paid == "tokens" else (paid,)
    yield from (name for name in (*named, WALL_CLOCK) if name in known)


def task_kind_changes(
    kinds: tuple[list[str], np.ndarray],
    side: np.ndarray,
    task: np.ndarray,
    metrics: Mapping[str, TraceMetric],
    untold: np.ndarray,
) -> list[SideDifference]:
    """Metrics within each kind of tasks of which both sides have a number, corrected for how many are tested.

    Args:
      kinds: of `task_kinds`: their names, and that of each trace.
      side: 0 or 1 of each trace, -1 for none: int [traces].
      task: of each trace: int [traces].
      metrics: what is compared, by name.
      untold: whether the task of a trace is not known: bool [traces].

    Reference: Holm 1979, A simple sequentially rejective multiple test procedure.
    """
    names, kind = kinds
    rows = [
        dataclasses.replace(row, kind=of)
        for name, metric in metrics.items()
        for i, of in enumerate(names)
        if (row := compare_metric(name, metric, np.where(kind == i, side, -1), task, None, untold)) is not None
    ]
    return corrected_rows(rows)
