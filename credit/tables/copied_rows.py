"""Rows that equal an earlier one in every column, as those do that fill up a trainer's batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from credit.tables.batch_rows import Rows
from graphs.structure.host_ids import distinct
from graphs.traces.schema import TRACE_EVIDENCE

__all__ = ["copied_rows"]

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, as hashes multiply with


def copied_rows(rows: Rows, places: np.ndarray | None = None, beside: Iterable[np.ndarray] = ()) -> tuple[int, str]:
    """How many rows equal an earlier one in every column; and in words where they seem to fill up the batch, else "".

    So they do where two or more stand at the end, none before, and columns tell rows of one agent of a trace apart.
    Trainers fill up with one row, or with the first ones again. Elsewhere calls of one turn may be equal, too.

    Args:
      rows: of `credit.from_columns`.
      places: of the rows in the batch, [N]. Default: they are the batch.
      beside: what is known of each row besides, numbers [N].
    """
    count, graph = len(rows.event), rows.names.graph
    turn, agent = (np.asarray(ids)[rows.event] for ids in (graph.turn_ids, graph.agent_ids))
    if count == 0 or int(turn.max()) + 1 == count:  # numbered over the batch, without gaps
        return 0, ""
    content = turn.astype(np.uint64)
    kinds = 2 * np.asarray(graph.event_type) + np.asarray(graph.action_mask)
    known = [kinds, *(column for name, column in rows.evidence.items() if name not in TRACE_EVIDENCE)]
    for column in itertools.chain((column[rows.event] for column in known), beside):
        content = (content * _ODD ^ column.astype(np.float64).view(np.uint64)) * _ODD
        content ^= content >> np.uint64(29)
    order = np.arange(count) if places is None else np.argsort(places)
    _, first, which = np.unique(content[order], return_index=True, return_inverse=True)
    again = first[which] < np.arange(count)
    copies = int(np.count_nonzero(again))
    if copies < 2 or not again[-copies:].all() or len(distinct(agent[order][~again])) + copies == count:
        return copies, ""
    return copies, f"the batch ends in {copies} rows that equal earlier ones in every column: if they only fill it up,"
