"""Kinds of tasks, as the log or a table of groups states them, and how many traces of each failed."""

from __future__ import annotations

import collections
from collections.abc import Collection, Sequence

import numpy as np

from credit.reports.judged_traces import JudgedTraces
from credit.reports.of_batch import kept
from credit.reports.part_rates import part_rates
from credit.reports.tasks import task_ids
from credit.reports.unlike_kinds import unlike_kinds
from graphs.text import part_of, printable
from graphs.traces.batch import Traces

__all__ = ["MOST_KINDS", "SEVERAL", "every_kind", "failed_by_kind", "only_kind", "task_kinds"]

MOST_KINDS = 8
"""Kinds that are shown, those of most tasks."""
OTHERS, SEVERAL = "other kinds", "several kinds"


def task_kinds(traces: Traces) -> tuple[list[str], np.ndarray]:
    """As `every_kind`, with kinds beyond `MOST_KINDS` as one.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> task_kinds(rows.traces)
      ([], array([-1, -1]))
    """
    names, kind = every_kind(traces)
    if len(names) > MOST_KINDS + 1:
        names, kind = [*names[:MOST_KINDS], OTHERS], np.minimum(kind, MOST_KINDS)
    return names, kind


@kept
def every_kind(traces: Traces) -> tuple[list[str], np.ndarray]:
    """The kinds of tasks, those of most tasks first, and that of each trace, -1 for none: int [traces].

    A kind is one of a task: a trace without one has that of its task. Tasks of which traces state several are a kind of
    their own. No kind is told where all tasks are of one.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> every_kind(rows.traces)
      ([], array([-1, -1]))
    """
    stated: dict[int, set[str]] = {}
    tasks = task_ids(traces).tolist()
    for task, kind in zip(tasks, traces.traces["task_kind"].to_pylist(), strict=True):
        stated.setdefault(task, set()).update([kind] if kind else [])
    of_task = {task: SEVERAL if len(kinds) > 1 else next(iter(kinds)) for task, kinds in stated.items() if kinds}
    count = collections.Counter(of_task.values())
    names = sorted(count, key=lambda kind: (-count[kind], kind))
    if len(names) == 1 and len(of_task) == len(stated):
        names, of_task = [], {}
    place = {kind: i for i, kind in enumerate(names)}
    return names, np.array([place.get(of_task.get(task, ""), -1) for task in tasks], int)


def only_kind(traces: Traces, rows: np.ndarray) -> str:
    """The kind of which all tasks of some traces are; "" where these are of several, or no kinds are told.

    Args:
      traces: what was read.
      rows: the places of the traces.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> only_kind(rows.traces, np.array([0]))
      ''
    """
    names, kind = task_kinds(traces)
    its = {names[i] if i >= 0 else "" for i in np.unique(kind[rows]).tolist()}
    return "".join(its - {OTHERS, SEVERAL}) if len(its) == 1 else ""


def failed_by_kind(
    traces: Traces,
    judged: JudgedTraces,
    side: np.ndarray | None = None,
    heads: Sequence[str] = (),
    split: Collection[str] = (),
) -> list[str]:
    """How many traces of each kind of task failed, of those with an outcome, and which kinds differ beyond chance
    (`unlike_kinds`), a sentence each; those that fail more come first, then the kind of most. None without kinds, and
    where each task has its own cut, of which about half are below. Where a verdict decides who has an outcome, the part
    of all (`part_rates`), which is not tested.

    Args:
      traces: what was read.
      judged: which of these failed.
      side: of each trace, a place in `heads`, or none of them: int [traces].
      heads: names of sides.
      split: kinds of which the parts of sides are told, too.
    """
    if judged.of_task:
        return []
    (names, kind), found = task_kinds(traces), []
    if names and (weighted := part_rates(traces, judged, kind, len(names))) is not None:
        told = weighted.told(names)
        return [f"Failed by kind of task: {told}."] if told else []
    unlike = unlike_kinds(traces, judged, *every_kind(traces))
    more = {one.kind: -place for place, one in enumerate(reversed(unlike.found), 1) if one.more}
    for i, name in [*enumerate(names), *[(-1, "no kind stated")] * bool(names)]:
        rows = judged.rows[kind[judged.rows] == i]
        if not len(rows):
            continue
        failed, parts = judged.failed[rows], []
        for place, head in enumerate(heads if name in split else ()):
            of_side = failed[np.asarray(side)[rows] == place]
            parts += [f"{head} {of_side.sum()} of {len(of_side)}"] * (len(of_side) > 0)
        told = f"{printable(name, 60)} {part_of(failed.sum(), len(rows), more=', '.join(parts))}"
        found.append((i < 0, more.get(i, 0), -failed.mean(), told))
    every = ", ".join(told for *_, told in sorted(found, key=lambda one: one[:3]))
    alike = ["differs from the others"] * (unlike.tested and not unlike.found)
    alike += ["changed"] * (bool(heads) and not split)
    every += f"; no kind {' or '.join(alike)} beyond chance" * bool(alike)
    by_kind = f"{judged.kinds[0].capitalize()} by kind of task: {every}."
    return [by_kind, *filter(None, [unlike.told])] if found else []
