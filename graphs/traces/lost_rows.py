"""Rows that may be lost: an agent is out of a round, or a place is empty, where hardly any other of the log is.

An agent that was not asked leaves the same gap. Places that count the rows of each trace tell both apart: one is then
empty where an agent is out that others have there, or where hardly any other is. Without such places, a gap counts
where the agents of its name hardly ever have one: over all rounds before their last, and in that round.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from graphs.errors import Problem
from graphs.event_graph import EventGraph
from graphs.traces.part import Heading
from graphs.traces.turn_gaps import TURN_GAP, turn_gaps

__all__ = ["Gap", "lost_rows", "note_of_gaps"]

FEW_PLACES = 1 / 32
"""Up to which part of the places are empty, where they count rows."""
FEW_ROUNDS, FEW_HERE = 1 / 100, 1 / 8
"""Up to which part of all rounds, and of the traces in one round, agents of a name are out where rows may be lost."""
HALF = 1 / 2
"""The same of all rounds where a place is empty, too: a reviewer may be out of every second one."""
FEW_ALONE = 1 / 512
"""Up to which part of the places are empty, where one tells of a lost row though no agent is out of a round."""


class Gap(NamedTuple):
    """A place behind which a row may be lost.

    Attributes:
      row: the first one behind it, of its agent where it is a gap in the turns of an agent.
      column: what tells it, "turn" or "order".
      behind: the number before it, None at the start.
      of_agent: whether it is a gap in the turns of an agent, not of the trace.
    """

    row: int
    column: str
    behind: int | None
    of_agent: bool = False

    def said(self, number: int) -> str:
        """The gap in words.

        Args:
          number: of the row, in the column.
        """
        where = "at the start" if self.behind is None else f"behind {self.behind}"
        return f"{number} {where}{' of its agent' if self.of_agent else ''}, unlike in other traces"


def lost_rows(
    trace: np.ndarray, agent: np.ndarray, name: np.ndarray, turn: np.ndarray, place: np.ndarray | None = None
) -> list[Gap]:
    """Gaps behind which rows may be lost, one of a trace: of its turns (`turn_gaps`), its agents' turns or its places.

    Args:
      trace: int [N], of each row.
      agent: int [N], its agent; no two traces have one.
      name: int [N], a number for the name of its agent.
      turn: int [N], the number of its turn, below 0 where it has none.
      place: float [N], its place in the trace, of any numbers, NaN where it has none. Default: none is stated.

    Examples:
      >>> trace, turn = np.repeat(np.arange(64), 6), np.tile([0, 0, 1, 1, 2, 2], 64)
      >>> name, place = np.tile([0, 1], 192), np.tile(np.arange(6.0), 64)
      >>> kept = np.arange(384) != 8  # of the second trace, the turn 1 of the first agent
      >>> rows = [column[kept] for column in (trace, 2 * trace + name, name, turn)]
      >>> lost_rows(*rows) == lost_rows(*rows, place[kept])
      True
      >>> lost_rows(*rows)
      [Gap(row=9, column='turn', behind=0, of_agent=True)]
      >>> place[8:12] -= 1
      >>> lost_rows(*rows, place[kept])  # no place is empty
      []
    """
    of_traces = turn_gaps(trace, name, turn)
    found = [Gap(int(row), "turn", int(at) if at >= 0 else None) for row, at in zip(*of_traces, strict=True)]
    empty, counted = (None, False) if place is None else _empty_places(trace, place)
    if place is None or empty is None or (not counted and (turn >= 0).any()):
        found += [gap for gap, _ in _out_of_rounds(trace, agent, name, turn, FEW_ROUNDS)]
    elif not (turn >= 0).any():
        found += empty
    elif empty:
        of_trace = collections.defaultdict(list)
        for gap, since in _out_of_rounds(trace, agent, name, turn, HALF):
            of_trace[trace[gap.row]].append((gap, -np.inf if since < 0 else place[since]))
        ends = [(place[hole.row], of_trace[trace[hole.row]]) for hole in empty]
        hits = [gap for end, gaps in ends for gap, since in gaps if since < end <= place[gap.row]]
        if 2 * len({trace[gap.row] for gap in hits}) >= len({trace[hole.row] for hole in empty}):
            found += hits
        if len(empty) <= FEW_ALONE * len(trace):
            told = {trace[gap.row] for gap in found}
            found += [hole for hole in empty if trace[hole.row] not in told]
    return sorted({int(trace[gap.row]): gap for gap in reversed(found)}.values())


def note_of_gaps(
    headings: Sequence[Heading], graph: EventGraph, turn: np.ndarray, times: np.ndarray, lines: pa.ChunkedArray
) -> Iterator[Problem]:
    """The note on `lost_rows` of a log that numbers turns: of the first trace that has one.

    Args:
      headings: of the traces.
      graph: the batch.
      turn: int [N], of the events, the column `TURN`.
      times: float [N], of the events, which may count rows.
      lines: where each event stands.
    """
    if not (turn >= 0).any():
        return
    trace, agent = (np.asarray(ids)[: len(turn)] for ids in (graph.trace_ids, graph.agent_ids))
    gaps = lost_rows(trace, agent, np.asarray(graph.agent_name_ids)[agent], turn, times)
    if gaps:
        row, column = gaps[0].row, "turn" if gaps[0].column == "turn" else "time"
        where = headings[int(trace[row])]
        shown = gaps[0].said(int(turn[row] if column == "turn" else times[row]))
        each = "turn" if column == "turn" else "number"
        expected = f"each {each}: where a row is lost, later ones are compared with earlier ones of other traces"
        place = where.file, lines[row].as_py(), column
        yield Problem(TURN_GAP, *place, shown, expected, where.trace_id, count=len(gaps))


def _empty_places(trace: np.ndarray, place: np.ndarray) -> tuple[list[Gap] | None, bool]:
    """The gaps between places, None where they are no numbers of rows; and whether each row has one of its own.

    They are none where they are times, or count over the batch or over events that are no rows: many are then empty.
    """
    if not len(place) or not (np.floor(place) == place).all():  # not NaN either
        return None, False
    order = np.lexsort((place, trace))
    of, at = trace[order], place[order]
    begins = np.append(True, of[1:] != of[:-1])
    behind = np.where(begins, at.min() - 1, np.append(0, at[:-1]))
    empty = np.maximum(at - behind - 1, 0)
    if empty.sum() > FEW_PLACES * (len(at) + 1):
        return None, False
    rows = np.flatnonzero(empty).tolist()
    gaps = [Gap(int(order[i]), "order", None if begins[i] else int(behind[i])) for i in rows]
    return gaps, bool((begins | (at > behind)).all())


def _out_of_rounds(
    trace: np.ndarray, agent: np.ndarray, name: np.ndarray, turn: np.ndarray, few: float
) -> list[tuple[Gap, int]]:
    """The gaps in the turns of agents that are seldom out before their last round, and their act before it, -1 of none.

    Args:
      trace, agent, name, turn: as of `lost_rows`.
      few: up to which part of these rounds agents of one name are out.
    """
    at = np.flatnonzero(~np.isin(trace, trace[turn < 0]))
    if not len(at):
        return []
    most = np.int64(turn.max()) + 1
    rounds, of_row = np.unique(trace[at] * most + turn[at], return_inverse=True)
    opens = np.searchsorted(rounds, trace[at] * most)  # the first round of the trace
    _, first = np.unique(agent[at] * most + turn[at], return_index=True)  # acts, by agents and turns
    row, opens, rank = at[first], opens[first], (of_row - opens)[first]
    begins = np.append(True, agent[row][1:] != agent[row][:-1])
    ends = np.append(begins[1:], True)
    out = rank - np.where(begins, -1, np.append(-1, rank[:-1])) - 1  # rounds without the agent, before each act
    names = name[row]
    missed = np.bincount(names, out)
    seldom = missed <= few * (np.bincount(names, ends * rank) + 1)
    gaps = np.flatnonzero((out > 0) & seldom[names])
    if not len(gaps):
        return []
    of = np.repeat(np.arange(len(gaps)), out[gaps])
    nth = np.arange(len(of)) - np.repeat(np.cumsum(out[gaps]) - out[gaps], out[gaps])
    cell = names[gaps][of] * most + rounds[(opens + rank - out)[gaps][of] + nth] % most
    cells, times = np.unique(cell, return_counts=True)
    acts = (names * most + turn[row])[~ends]
    acted = np.bincount(np.searchsorted(cells, acts[np.isin(acts, cells)]), minlength=len(cells))
    here = (times <= FEW_HERE * (times + acted + 1))[np.searchsorted(cells, cell)]
    return [
        (Gap(int(row[i]), "turn", None, of_agent=True), -1)
        if begins[i]
        else (Gap(int(row[i]), "turn", int(turn[row[i - 1]]), of_agent=True), int(row[i - 1]))
        for i in gaps[np.bincount(of, here, len(gaps)) > 0].tolist()
    ]
