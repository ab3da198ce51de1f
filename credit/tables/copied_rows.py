"""Rows that equal an earlier one in every column, as those do that fill up a trainer's batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from credit.tables.batch_rows import Rows
from graphs.structure.host_ids import distinct
from graphs.text import counted
from graphs.traces.repeated_rows import APART, MEASURED, repeated_rows
from graphs.traces.repeated_traces import contents, repeated_traces
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["Copied", "copied_rows"]


class Copied(NamedTuple):
    """Rows that equal an earlier one in every column.

    Attributes:
      rows: how many.
      twice: in words, where they surely are copies, as of `repeated_rows`; else "".
      filling: in words, where they seem to fill up the batch; else "".
      whole: whether all rows of a group, or of the batch, stand equally often and more than once, as where it was
        passed twice, or where each agent made as many calls.
    """

    rows: int
    twice: str = ""
    filling: str = ""
    whole: bool = False


def copied_rows(
    rows: Rows,
    places: np.ndarray | None = None,
    beside: Iterable[np.ndarray] = (),
    wrote: np.ndarray | None = None,
) -> Copied:
    """The rows of a batch that equal an earlier one.

    They seem to fill it up where two or more stand at the end, none before, and columns tell rows of one agent of a
    trace apart. Trainers fill up with one row, or with the first ones again. Elsewhere calls of one turn may be equal,
    too.

    Args:
      rows: of `credit.from_columns`.
      places: of the rows in the batch, [N]. Default: they are the batch.
      beside: what is known of each row besides, numbers [N].
      wrote: how many tokens each row wrote, [N], as far as that is known.
    """
    count, graph = len(rows.event), rows.names.graph
    turn, agent = (np.asarray(ids)[rows.event] for ids in (graph.turn_ids, graph.agent_ids))
    if count and (copied := _again_under_other_ids(rows, places, wrote)):
        return copied
    if count == 0 or int(turn.max()) + 1 == count:  # numbered over the batch, without gaps
        return Copied(0)
    kinds = 2 * np.asarray(graph.event_type) + np.asarray(graph.action_mask)
    of_rows = {name: column[rows.event] for name, column in rows.evidence.items() if name not in TRACE_EVIDENCE}
    lengths = [] if wrote is None else [wrote]
    content = contents(turn, kinds[rows.event], *of_rows.values(), *beside, *lengths)
    order = np.arange(count) if places is None else np.argsort(places)
    _, first, which, times = np.unique(content[order], return_index=True, return_inverse=True, return_counts=True)
    again = first[which] < np.arange(count)
    copies = int(np.count_nonzero(again))
    if copies == 0:
        return Copied(0)
    if twice := _said_of_twice(rows, places, content, [*(of_rows[name] for name in MEASURED & {*of_rows}), *lengths]):
        return Copied(copies, twice)
    whole = _is_whole(np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)[rows.event]][order][first], times)
    if copies < 2 or not again[-copies:].all() or len(distinct(agent[order][~again])) + copies == count:
        return Copied(copies, whole=whole)
    filling = f"the batch ends in {copies} rows that equal earlier ones in every column: if they only fill it up,"
    return Copied(copies, filling=filling, whole=whole)


def _again_under_other_ids(rows: Rows, places: np.ndarray | None, wrote: np.ndarray | None) -> Copied | None:
    """The rows of `repeated_traces`, which compares those of groups; None where there are none."""
    graph, of_event, outcome = rows.names.graph, rows.names.rows, rows.names.reward
    n = len(rows.names.traces)
    stated = {
        name: column
        for name, column in rows.evidence.items()
        if name in EVENT_EVIDENCE and EVENT_EVIDENCE[name].kind != "id"
    }
    stated |= {} if wrote is None else {"tokens": wrote[of_event]}
    measured = [column for name, column in stated.items() if name in MEASURED]
    again, first = repeated_traces(graph, np.asarray(outcome)[:n], stated.values(), measured)
    if not len(again):
        return None
    trace = np.asarray(graph.trace_ids)[: len(of_event)]
    place = of_event if places is None else places[of_event]
    copy, original = (int(place[np.flatnonzero(trace == of[0])[0]]) for of in (again, first))
    count = int(np.isin(trace, again).sum())
    where = f"row {copy} is row {original} again"
    return Copied(
        count,
        f"{counted(count, 'row')} of {counted(len(again), 'trace')} that equal earlier ones in every number, under "
        f"another id ({where}), and count twice",
    )


def _is_whole(group: np.ndarray, times: np.ndarray) -> bool:
    """`Copied.whole`, of the group of each unlike row and how often that stands; of `APART` unlike rows or more."""
    by_group = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[by_group], prepend=-1))
    often = np.gcd.reduceat(times[by_group], starts)
    sizes = np.diff([*starts, len(group)])
    return bool((len(group) >= APART and (often > 1).all()) or ((often > 1) & (sizes >= APART)).any())


def _said_of_twice(rows: Rows, places: np.ndarray | None, content: np.ndarray, measured: Iterable[np.ndarray]) -> str:
    """`Copied.twice`, of `repeated_rows` of the events."""
    of_event, graph = rows.names.rows, rows.names.graph
    trace, agent = (np.asarray(ids)[: len(of_event)] for ids in (graph.trace_ids, graph.agent_ids))
    name = np.asarray(graph.agent_name_ids)[agent]
    numbers = contents(np.zeros(len(of_event)), *measured)
    turn = np.stack([agent, np.asarray(graph.turn_ids)[: len(of_event)]], axis=1)
    place = of_event if places is None else places[of_event]
    has_turns = len(np.unique(turn[:, 1])) > len(np.unique(agent))
    given = trace, name, content[of_event], numbers[of_event], turn, place
    again, first = repeated_rows(*given, has_turns=has_turns)
    if not len(again):
        return ""
    where = f"row {place[again[0]]} is row {place[first[0]]} again"
    return f"{counted(len(again), 'row')} that equal earlier ones in every column ({where}) and count twice"
