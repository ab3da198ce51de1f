"""Who takes part in a run: the agent that it was handed to, one that was left out, or others than most of its task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from credit.reports.endings import ended_early
from credit.reports.missing_lines import lacking_traces
from credit.reports.taking_part import taking_part
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import ToolCalls
from graphs.structure.forest import real_edges
from graphs.task_means import LEAST_TASKS
from graphs.text import printable
from graphs.traces.batch import Traces

__all__ = ["Handoff", "handoffs"]

MOST = 10
"""Agents that are looked at alone, those of nearest to half of the traces."""
NAME = 40
"""Length of a name in a sentence."""


class Handoff(NamedTuple):
    """Runs that are alike in who takes part.

    Attributes:
      words: how.
      rows: of each of these runs the event to look at: int [n].
      tells: of which traces the log tells whether they are among these: bool [traces].
    """

    words: str
    rows: np.ndarray
    tells: np.ndarray


def handoffs(traces: Traces, calls: ToolCalls, differs: Callable[[np.ndarray], bool]) -> Iterator[Handoff]:
    """Runs with each agent, then those without it, and those with other agents than most runs of their task have.

    More agents act in longer runs. So where failed runs have more or fewer actions, also without those of the agent, it
    counts only if it acts early: among the first actions, as many as each run of the task has.

    To look at is the event that handed the run to the agent: the cause of its first event, else the last event of the
    one that spawned it, else the last action before. A run without an agent has its last action; one that ended early
    may have had no turn for it, and does not tell.

    What most runs of a task have is seen in its runs of the same system and model. Where no half of these are alike, as
    of two that differ, it is seen in all runs of the task, if it is what one of these has: a version whose whole team
    is another makes none of the older one unlike.

    Args:
      traces: what was read.
      calls: its tool calls.
      differs: whether a number of each trace differs between failed and succeeded ones.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 6, trace=["a", "a", "b", "b", "c", "c"], agent=["x", "y", "x", "y", "x", "z"],
      ...     reward=[1.0] * 4 + [0.0] * 2)
      >>> [(one.words, one.rows.tolist()) for one in handoffs(rows.traces, ToolCalls(rows.traces), lambda of: False)]
      [('runs with other agents than most runs of their task', [4])]
    """
    names, acts, tells = taking_part(traces, calls)
    graph, n = traces.graph, traces.sizes
    action = np.flatnonzero(np.asarray(graph.action_mask)[: n.events])
    of = np.asarray(graph.trace_ids)[action]
    count, last = np.bincount(of, minlength=n.traces), np.full(n.traces, -1)
    last[of] = action
    whole = (last >= 0) & ~ended_early(traces, calls)[0] & ~lacking_traces(traces)
    handed, by, turn, own = _handed(traces, names, action)
    _, task = np.unique(task_ids(traces), return_inverse=True)
    least = np.full(task.max(initial=0) + 1, n.events)
    np.minimum.at(least, task[whole], count[whole])
    early = turn < least[task]
    fewer = np.minimum((acts & tells).sum(axis=1), (~acts & tells).sum(axis=1))
    looked = [i for i in np.argsort(-fewer, kind="stable").tolist() if fewer[i] >= LEAST_TASKS][:MOST]
    any_longer = differs(count)
    longer = {i: any_longer and differs(count - own[i]) for i in looked}
    for i in looked:
        having, name = tells[i] & acts[i] & (early[i] | (not longer[i])), printable(names[i], NAME)
        callers = {*by[i][having].tolist()}
        of_one = len(callers) == 1 and callers != {-1}
        words = f"that {printable(names[callers.pop()], NAME)} hands to {name}" if of_one else f"in which {name} acts"
        tell = tells[i] & (having | whole | (not longer[i]))
        yield Handoff(f"runs {words}{' early' * longer[i]}", handed[i][having], tell)
    for i in looked:
        if not longer[i]:
            lacking, tell = ~acts[i] & tells[i] & whole, tells[i] & (acts[i] | whole)
            yield Handoff(f"runs in which {printable(names[i], NAME)} does not act", last[lacking], tell)
    acting = acts & (early | (not any_longer))
    unlike, fewest, others = _unlike(traces, acting, whole, task)
    rows = last.copy()
    for i in range(len(names)):  # the first agent that most of the others lack
        extra = acting[i] & fewest[i]
        rows[extra] = np.minimum(rows, handed[i])[extra]
    if tells.any() and unlike.any():
        yield Handoff("runs with other agents than most runs of their task", rows[unlike], whole & (others > 0))


def _unlike(
    traces: Traces, acting: np.ndarray, whole: np.ndarray, task: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which runs have other agents than most others, bool [traces], whether half of these or more lack each agent, bool
    [names, traces], and how many they are, int [traces]."""
    formats = np.unique(traces.traces["format"].to_pylist(), return_inverse=True)[1]
    team = _coded(np.vstack([np.zeros(len(task), np.int64), acting]))
    found = []
    for of in (np.asarray(traces.graph.group_ids)[: traces.sizes.traces], task):
        key = _coded(np.stack([of, formats, whole]))
        pairs, same, size = np.unique(np.stack([key, team]), axis=1, return_inverse=True, return_counts=True)
        others, alike = (np.bincount(key) - 1)[key], (size - 1)[same.ravel()]
        lacking = [2 * (np.bincount(key, acts)[key] - 1) <= others for acts in acting]
        settled = np.bincount(key, (2 * alike >= others) & (others > 0))[key] > 0
        order = np.lexsort((size, pairs[0]))  # the last one of each key is of most runs
        most = pairs[1, order[np.searchsorted(pairs[0, order], key, "right") - 1]]
        found.append((2 * alike < others, np.array(lacking).reshape(acting.shape), others, settled, most, key))
    own, every = found
    group = own[5] * len(team)
    by_task = ~own[3] & every[3] & np.isin(group + every[4], group + team)
    unlike, lacking_most, others = (np.where(by_task, b, a) for a, b in zip(own[:3], every[:3], strict=True))
    return whole & unlike, lacking_most, others


def _coded(columns: np.ndarray) -> np.ndarray:
    """A number for each column of equal ones: int64 [n]."""
    return np.unique(columns, axis=1, return_inverse=True)[1].ravel().astype(np.int64)


def _handed(traces: Traces, names: list[str], action: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where each name was handed each trace, -1 where it has no event, which one did it, -1 where no cause is logged,
    how many actions come before its first one, and how many it has: int [names, traces] each."""
    graph, n = traces.graph, traces.sizes
    agent, trace = (np.asarray(ids)[: n.events].astype(np.int64) for ids in (graph.agent_ids, graph.trace_ids))
    of = np.searchsorted(names, np.array(traces.agents["name"].to_pylist(), object).astype(str))
    name = of[agent]
    (senders, receivers), cause = real_edges(graph), np.full(n.events, -1)
    other = name[senders] != name[receivers]
    np.maximum.at(cause, receivers[other], senders[other])
    _, first = np.unique(name * n.traces + trace, return_index=True)
    # The last event of the spawner before the first of the agent: rows of one instance ascend.
    place = np.sort(agent * n.events + np.arange(n.events))
    parent = np.asarray(graph.agent_parent)[agent[first]].astype(np.int64)
    before = place[np.searchsorted(place, parent * n.events + first) - 1]
    spawned = (before // n.events == parent) & (parent != agent[first])
    at = np.where(cause[first] >= 0, cause[first], np.where(spawned, before % n.events, -1))
    by = np.where(at >= 0, name[at], -1)
    acted = action[np.maximum(np.searchsorted(action, first) - 1, 0)]
    at = np.where(at >= 0, at, np.where((acted < first) & (trace[acted] == trace[first]), acted, first))
    handed, caller = np.full((2, len(names), n.traces), -1)
    handed[name[first], trace[first]], caller[name[first], trace[first]] = at, by
    turn, own = np.full((len(names), n.traces), n.events), np.zeros((len(names), n.traces), np.int64)
    code, first, size = np.unique(name[action] * n.traces + trace[action], return_index=True, return_counts=True)
    turn.flat[code], own.flat[code] = (first - np.searchsorted(trace[action], trace[action[first]])), size
    return handed, caller, turn, own
