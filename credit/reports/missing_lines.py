"""Whose lines a log is known to lack, so that counts of them are lower bounds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from credit.reports.of_batch import kept
from graphs.distinct_columns import distinct_columns
from graphs.traces.batch import Traces
from graphs.traces.record import LOST_PARTS

__all__ = [
    "FEW",
    "LACKING",
    "LackingUnits",
    "few_lacking",
    "lacking_agents",
    "lacking_events",
    "lacking_traces",
    "lacking_units",
    "silent_agents",
]

LACKING = "the log lacks lines of the trace"
"""Why a trace has no number that can be compared."""

FEW = 0.1
"""Part of all traces: as of `chosen_numbers.LACK`."""

UNFINISHED = "unfinished-line"
"""The kind of the problem that names one."""


@kept
def silent_agents(traces: Traces) -> np.ndarray:
    """Whether an instance was spawned and has no action: what it did is not in the log. bool [A]."""
    graph, n = traces.graph, traces.sizes.events
    parent = np.asarray(graph.agent_parent)
    silent: np.ndarray = parent != np.arange(len(parent))
    silent[np.asarray(graph.agent_ids)[np.flatnonzero(np.asarray(graph.action_mask)[:n])]] = False
    return silent


def few_lacking(traces: Traces) -> str:
    """That few traces lack lines, in words: rows of tables are then not marked as lower bounds, but totals are; "" for
    none, and for more than `FEW`.

    Args:
      traces: what was read.
    """
    lacks = lacking_traces(traces)
    some = int(lacks.sum())
    verb = "lacks" if some == 1 else "lack"
    return f"{some} of {len(lacks)} traces {verb} lines: rows may have more" if 0 < some <= FEW * len(lacks) else ""


class _Lacking(NamedTuple):
    """Whose lines may be missing: instances, bool [A], and traces of which it may be anybody's, bool [traces]."""

    instances: np.ndarray
    whole: np.ndarray


def _lacking(traces: Traces) -> _Lacking:
    """Whose lines may be missing.

    A trace states how many parts it is read without (`LOST_PARTS`). Each part belongs to one of its `silent_agents`. A
    part more than these is the unfinished line of a file, where one is named and each file has the lines of one agent;
    else it may be anybody's.
    """
    graph, m = traces.graph, traces.sizes.traces
    lost = traces.evidence.get(f"metrics.{LOST_PARTS}")
    of = np.asarray(graph.agent_trace)
    if lost is None:
        return _Lacking(np.zeros(len(of), bool), np.zeros(m, bool))
    parts, silent = lost.array[:m], silent_agents(traces) & np.asarray(graph.agent_mask)
    agent = np.asarray(graph.agent_ids)[: traces.sizes.events]
    seen = np.zeros(len(of), bool)
    seen[agent] = True
    silent &= seen
    more = parts - np.bincount(of[silent], minlength=m)[:m]
    cut = {problem.file for problem in traces.problems if problem.kind == UNFINISHED}
    at_end, alone = np.zeros(len(of), bool), np.zeros(m, bool)
    if cut and (more > 0).any():
        files = traces.events["file"].combine_chunks().dictionary_encode()
        file, names = files.indices.to_numpy(zero_copy_only=False), files.dictionary.to_pylist()
        # Actions alone: that an agent has returned stands among the lines of the one that started it.
        acts = np.flatnonzero(np.asarray(graph.action_mask)[: len(agent)])
        pairs = distinct_columns(file[acts], of[agent[acts]], agent[acts]).columns
        _, _, place, agents = distinct_columns(*pairs[:2])
        formats = np.array(traces.traces["format"].to_pylist(), object)
        shared = {*formats[pairs[1, agents[place] > 1]].tolist()}
        at_end[pairs[2, np.isin(pairs[0], [i for i, name in enumerate(names) if name in cut])]] = True
        ended = np.bincount(of[at_end], minlength=m)[:m] > 0
        known = cut <= {names[i] for i in np.unique(pairs[0]).tolist()}  # each shows whose it is
        alone = known & (more == 1) & ended & ~np.isin(formats, [*shared])
    whole = (more > 0) & ~alone
    real = np.asarray(graph.agent_mask)
    instances = real & np.where(whole[of], True, (parts > 0)[of] & (silent | (at_end & alone[of])))
    return _Lacking(instances, whole)


def lacking_agents(traces: Traces) -> np.ndarray:
    """Whether lines of each instance may be missing, those without an event among them: bool [A].

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["x"], reward=[1.0])
      >>> bool(lacking_agents(rows.traces).any())
      False
    """
    return _lacking(traces).instances


def lacking_events(traces: Traces) -> np.ndarray:
    """Whether lines may be missing of the agent of each real event, in its trace: bool [number of real events].

    Counts of such an agent in its trace are lower bounds; those of all traces are by `lacking_units`.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["x"], reward=[1.0])
      >>> lacking_events(rows.traces).tolist()
      [False]
    """
    lacking: np.ndarray = _lacking(traces).instances[np.asarray(traces.graph.agent_ids)[: traces.sizes.events]]
    return lacking


class LackingUnits(NamedTuple):
    """Of each unit whether its sums are lower bounds, and whether its number of traces is one: bool [units]."""

    sums: np.ndarray
    traces: np.ndarray


def lacking_units(
    traces: Traces, unit: np.ndarray, count: int, *, of_agents: bool, of_systems: bool = False
) -> LackingUnits:
    """Which sums over traces are lower bounds: those of each unit that a missing line may be of.

    A line of one agent may be of any unit that events of its name have, in any trace of the format. A line of anybody
    may be of any unit that the format has: an agent may have lost all its lines of a trace. Where the agent has no
    action in any trace, its line may be of any tool. A unit without an event in the trace may be in more traces, too.

    Args:
      traces: what was read.
      unit: of each real event, -1 for none: int [events].
      count: number of units.
      of_agents: whether a unit is of one agent or role.
      of_systems: whether it is of one system: a missing line is of that of its trace.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["x"], reward=[1.0])
      >>> lacking_units(rows.traces, np.array([0]), 1, of_agents=True).sums.tolist()
      [False]
    """
    graph, n = traces.graph, traces.sizes.events
    found, lacking = LackingUnits(np.zeros(count, bool), np.zeros(count, bool)), _lacking(traces)
    agent, trace = np.asarray(graph.agent_ids)[:n], np.asarray(graph.trace_ids)[:n]
    name, action = np.asarray(graph.agent_name_ids), np.asarray(graph.action_mask)[:n]
    columns = (traces.traces[of].to_pylist() for of in ("format", *["system"] * of_systems))
    number: dict[tuple[str | None, ...], int] = {}
    kind = np.array([number.setdefault(names, len(number)) for names in zip(*columns, strict=True)], np.int64)
    of_unit, of = unit >= 0, np.asarray(graph.agent_trace)
    first = np.searchsorted(trace, np.arange(traces.sizes.traces + 1))
    by_touch: dict[tuple[int, ...], np.ndarray] = {}
    for row in np.flatnonzero(lacking_traces(traces)).tolist():
        names = [] if lacking.whole[row] else np.unique(name[lacking.instances & (of == row)]).tolist()
        key = (int(kind[row]), *names)
        if key not in by_touch:
            like = kind[trace] == kind[row]
            theirs = like & np.isin(name[agent], names)
            if names and (of_agents or (theirs & action).any()):
                like = theirs
            by_touch[key] = np.bincount(unit[like & of_unit], minlength=count) > 0
        of_trace = unit[first[row] : first[row + 1]]
        absent = by_touch[key].copy()
        absent[of_trace[of_trace >= 0]] = False
        np.logical_or(found.sums, by_touch[key], out=found.sums)
        np.logical_or(found.traces, absent, out=found.traces)
    return found


def lacking_traces(traces: Traces) -> np.ndarray:
    """Whether a real trace lacks lines: bool [number of real traces]."""
    lost, m = traces.evidence.get(f"metrics.{LOST_PARTS}"), traces.sizes.traces
    lacking: np.ndarray = np.zeros(m, bool) if lost is None else lost.array[:m] > 0
    return lacking
