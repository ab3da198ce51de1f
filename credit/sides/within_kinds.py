"""How a metric differs between sides within each kind of traces that both have, as within each system or model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from credit.reports.beyond_chance import beyond_chance
from credit.reports.trace_numbers import TraceMetric
from credit.sides.chosen_sides import Sides
from credit.sides.same_models import ONE, SameModels
from credit.sides.shown_changes import shown
from credit.sides.side_rows import corrected_rows
from credit.sides.side_tests import compare_metric
from credit.sides.side_words import MOST_TOLD, first_to_second, up_to
from graphs.distinct_columns import distinct_columns
from graphs.task_means import ROUNDING, alike, task_mean
from graphs.text import counted, printable, signed

__all__ = ["MOST_NAMES", "within_kinds", "within_models"]

MOST_NAMES = 20
"""Kinds that are looked at, those of most traces."""
Tasks = tuple[np.ndarray, np.ndarray]
"""The task of each trace, and its kind: int [traces]."""
NONE = "no {} has traces on both sides, so what it does cannot be told from what changed"


def within_kinds(
    word: str, names: Sequence[str], kind: np.ndarray, sides: Sides, tasks: Tasks, name: str, metric: TraceMetric
) -> str:
    """How a metric differs within each kind of which both sides have traces, and in how many tasks; "" where these are
    all traces.

    Args:
      word: what kinds are of.
      names: of the kinds.
      kind: of each trace, -1 for none: int [traces].
      sides, tasks: of the traces.
      name, metric: what is compared.
    """
    told = _numbers(word, names, kind, sides, tasks, name, metric)
    return NONE.format(word) if told is None else told


def _numbers(
    word: str, names: Sequence[str], kind: np.ndarray, sides: Sides, tasks: Tasks, name: str, metric: TraceMetric
) -> str | None:
    """`within_kinds`, None where no kind has traces on both sides."""
    count = np.bincount(kind[kind >= 0], minlength=len(names))
    most = sorted(range(len(names)), key=lambda one: (-count[one], names[one]))[:MOST_NAMES]
    every = {one: compare_metric(name, metric, np.where(kind == one, sides.side, -1), *tasks) for one in most}
    both = {one: row for one, row in every.items() if row is not None}
    if not both:
        return None
    both = {one: row for one, row in both.items() if not (kind == one)[sides.side >= 0].all()}  # else it is that of all
    if not both:
        return ""
    told = []
    for one, row in zip(both, corrected_rows([*both.values()]), strict=True):
        means, of = first_to_second(row.first, row.second), counted(row.tasks, "task")
        told.append(f"{printable(names[one], 60)} {means} in {of}, {row.says(brief=True)}")
    told = up_to(told, MOST_TOLD)
    if len(both) > 1:
        told += _together(np.where(np.isin(kind, [*both]), kind, -1), sides.side, tasks[0], metric.value)
    return f"{name} within each {word} ({'; '.join(told)})"


def _together(kind: np.ndarray, side: np.ndarray, task: np.ndarray, value: np.ndarray) -> list[str]:
    """The difference within each task and kind that both sides have, over tasks; empty where they share none.

    A task gives the mean of its kinds' differences, weighted by n m / (n + m) with n and m traces on the sides.

    Reference: Cochran 1954, Some methods for strengthening the common χ² tests.
    """
    rows = np.flatnonzero(np.isfinite(value) & (side >= 0) & (kind >= 0))
    cells, _, cell, _ = distinct_columns(task[rows], kind[rows])
    count, total = (
        np.stack([np.bincount(cell, weight * (side[rows] == one), cells.shape[1]) for one in (0, 1)])
        for weight in (np.ones(len(rows)), value[rows])
    )
    both = count.all(axis=0)
    if not both.any():
        return []
    first, second = total[:, both] / count[:, both]
    apart = np.where(alike(first, second), 0.0, second - first)
    weight, (tasks, of) = (
        count[:, both].prod(axis=0) / count[:, both].sum(axis=0),
        np.unique(cells[0, both], return_inverse=True),
    )
    found = task_mean(np.bincount(of, weight * apart) / np.bincount(of, weight))
    beyond = beyond_chance(found.p, found.low, found.high)
    chance = shown(beyond=beyond, seen="" if math.isnan(found.p) else None)
    mean = 0.0 if abs(found.mean) <= ROUNDING * np.abs(apart).max() else found.mean
    return [f"together {signed(mean)} in {counted(len(tasks), 'task')}, {chance}"]


def within_models(
    same: SameModels, sides: Sides, tasks: Tasks, name: str, metric: TraceMetric, swaps: Mapping[str, str]
) -> tuple[str, str]:
    """`within_kinds` of traces with the same models, and why that says nothing of others, each "" without.

    A kind is left out where a trace without known models, which may be of it, has a number in a task that is compared:
    those that are known are then those that got so far. `swaps`: the models of agents on both sides.
    """
    side, known = sides.side, np.isfinite(metric.value) & (sides.side >= 0)
    kind, lost, swapped = same.kind.copy(), np.zeros(len(known), bool), []
    for team in np.unique(same.team[known & (same.team >= 0)]).tolist():
        of_team = known & (same.team == team)
        both = [one for one in np.unique(same.kind[of_team & (same.kind >= 0)]).tolist()
                if all((of_team & (same.kind == one) & (side == end)).any() for end in (0, 1))]  # fmt: skip
        if not both:
            swapped += same.swapped(np.where(of_team, side, -1), team)
        for one in both:
            shared = np.intersect1d(*(tasks[0][of_team & (same.kind == one) & (side == end)] for end in (0, 1)))
            near = np.isin(tasks[0], shared) if len(shared) else np.ones(len(side), bool)
            unknown = known & (same.kind < 0) & np.isin(same.team, (team, -1)) & near
            if unknown.any():
                kind[same.kind == one], lost = -1, lost | unknown
    told = _numbers("model", same.names, kind, sides, tasks, name, metric)
    from_rest, others = f"did to {name} cannot be told from the rest", f"among other traces, {told}" if told else ""
    if swapped and (told or swapped != [ONE]):
        names = {agent: f"{printable(agent, 60)} ({models})" for agent, models in swaps.items()}
        whose = [names.get(agent, printable(agent, 60) or "other traces") for agent in swapped]
        models, it = ("models", "they") if len(swapped) > 1 else ("model", "it")
        whose = up_to(whose, MOST_TOLD)
        return others, f"the {models} of {' and '.join(whose)} changed with the side, so what {it} {from_rest}"
    if lost.any():
        who = " or ".join(map(printable, same.unseen(np.flatnonzero(lost))[:MOST_TOLD])) or "any agent"
        of = counted(int(lost.sum()), "trace")
        return others, f"in {of} {who} does not act or states no model, so what its model {from_rest}"
    return told or "", NONE.format("model") if told is None else ""
