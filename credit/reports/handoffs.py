"""Who takes part in a run: the agent that it was handed to, one that was left out, or others than most of its task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from credit.reports.compared_kinds import models_and_systems
from credit.reports.endings import ended_early
from credit.reports.missing_lines import lacking_traces
from credit.reports.shown_example import surely_above
from credit.reports.taking_part import taking_part
from credit.reports.tasks import task_ids
from graphs.distinct_columns import distinct_columns
from graphs.structure.forest import real_edges
from graphs.task_means import LEAST_TASKS
from graphs.text import printable
from graphs.traces.batch import Traces

__all__ = ["Handoff", "handoffs", "instead_of", "of_any_instead", "without_agent"]

MOST, OF_TEAM = 10, 100
"""Agents that are looked at alone, and that are compared with other runs of a group: those of nearest to half of the
traces. One with a name of its own in each trace says nothing of two."""
NAME, WHOM = 40, 3
"""Length of a name in a sentence, and how many agents one names that other runs have, or lack."""


class Handoff(NamedTuple):
    """Runs that are alike in who takes part.

    Attributes:
      words: how.
      rows: of each of these runs the event to look at: int [n].
      tells: of which traces the log tells whether they are among these: bool [traces].
      quotes: whether the event handed the run over; the last one of a run says nothing of an agent that did not act.
      of_agent: the one agent that acts or does not; "" of several.
      beside: of each trace, which runs of other tasks it is like but for an agent that most runs have and these lack,
        or these alone have: int [traces]. They have the same system and model, and the same agents of those that act in
        its place. None of other kinds of runs.
      lengths: of each trace, how many actions it has, and how many are of others: it is to be tested beside each. Empty
        where failed runs have no more or fewer.
    """

    words: str
    rows: np.ndarray
    tells: np.ndarray
    quotes: bool = True
    of_agent: str = ""
    beside: np.ndarray | None = None
    lengths: tuple[np.ndarray, ...] = ()


def handoffs(traces: Traces, differs: Callable[[np.ndarray], bool], failed: np.ndarray) -> Iterator[Handoff]:
    """Runs with each agent, then those without it, and those with others than most runs of their task have in the place
    of agents that these have. An agent more, or less, is told by the first two.

    More agents act in longer runs. So where failed runs have more or fewer actions, who takes part is compared beside
    runs of its length. One agent is only where they have more or fewer without its actions and those of agents in its
    place, too: a wrong agent may work longer, and a run that lacks one is shorter. Where each run of a wrong agent is
    longer than any other, by actions of others, too, length may be why. Of 720 logs with repeated tasks in which length
    alone makes runs fail, 3 had who takes part as a cause.

    To look at is the event that handed the run to the agent: the cause of its first event, else the last event of the
    one that spawned it; its first event where the log states neither. A run without an agent has its
    last action; one that ended early may have had no turn for it, and does not tell.

    What most runs of a task have is seen in its runs of the same system and model. Where no half of these are alike, as
    of two that differ, it is seen in all runs of the task, if it is what one of these has: a version whose whole team
    is another makes none of the older one unlike.

    Args:
      traces: what was read.
      differs: whether a number of each trace differs between failed and succeeded ones.
      failed: whether each trace failed: bool [traces]. Of the agents that other runs of the task have, or lack, those
        of the most failed runs above the average are named first.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 8 + ["r"] * 4, trace=["a", "a", "b", "b", "c", "c", "d", "d", "e", "e", "f", "f"],
      ...     agent=["x", "y"] * 3 + ["x", "z"] * 3, reward=[1.0] * 6 + [0.0] * 2 + [1.0] * 4)
      >>> found = handoffs(rows.traces, lambda of: False, np.arange(6) == 3)
      >>> [(one.words, one.rows.tolist()) for one in found if not one.of_agent]
      [('runs with other agents than most runs of their task (1 without y, 1 with z)', [7])]
    """
    every, acts, tells = taking_part(traces)
    some, none = ((of & tells).sum(axis=1) for of in (acts, ~acts))
    fewer = np.where(some > 1, np.minimum(some, none), 0)
    kept = np.sort([i for i in np.argsort(-fewer, kind="stable") if fewer[i]][:OF_TEAM]).astype(np.int64)
    names, acts, tells, fewer = [every[i] for i in kept.tolist()], acts[kept], tells[kept], fewer[kept]
    if not names:
        return
    graph, n = traces.graph, traces.sizes
    action = np.flatnonzero(np.asarray(graph.action_mask)[: n.events])
    of = np.asarray(graph.trace_ids)[action]
    count, last = np.bincount(of, minlength=n.traces), np.full(n.traces, -1)
    last[of] = action
    whole = (last >= 0) & ~ended_early(traces)[0] & ~lacking_traces(traces)
    handed, linked, own = _handed(traces, names, action)
    agent, called = np.asarray(graph.agent_ids), traces.agents["name"].to_pylist()
    _, task = np.unique(task_ids(traces), return_inverse=True)
    looked = [i for i in np.argsort(-fewer, kind="stable").tolist() if fewer[i] >= LEAST_TASKS][:MOST]
    of_all = (count,) if differs(count) else ()
    lengths: dict[int, tuple[np.ndarray, ...]] = {}
    for i in looked:
        others = count - own[i] - own[_instead(acts, acts[i], tells[i])].sum(axis=0)
        lengths[i] = (count, others) if of_all and differs(others) else ()
    formats = np.unique(traces.traces["format"].to_pylist(), return_inverse=True)[1]
    version = distinct_columns(models_and_systems(traces), formats).of
    usual = 2 * (acts & tells).sum(axis=1) >= tells.sum(axis=1)
    for i in looked:
        having, name = tells[i] & acts[i], printable(names[i], NAME)
        by = {called[one] for one in agent[handed[i][having]].tolist()} if linked[i][having].all() else set()
        words = f"that {printable(by.pop(), NAME)} hands to {name}" if len(by) == 1 else f"in which {name} acts"
        tell = tells[i] & (having | whole | (not lengths[i]))
        beside = None if lengths[i] or usual[i] else _alike(acts, acts[i], tell, version)
        yield Handoff(f"runs {words}", handed[i][having], tell, True, names[i], beside, lengths[i])
    for i in looked:
        of_version = np.isin(version, version[acts[i]])  # another version's team may have no such agent
        tell = tells[i] & (acts[i] | whole) & of_version
        beside = None if lengths[i] or not usual[i] else _alike(acts, acts[i], tell, version)
        yield Handoff(without_agent(names[i]), last[tell & ~acts[i]], tell, False, names[i], beside, lengths[i])
    unlike, fewest, others = _unlike(traces, formats, acts, whole, task)
    unlike &= (acts & fewest).any(axis=0) & (~acts & ~fewest).any(axis=0)  # an agent in the place of another
    rows = last.copy()
    for i in range(len(names)):  # the first agent that most of the others lack
        extra = acts[i] & fewest[i]
        rows[extra] = np.minimum(rows, handed[i])[extra]
    if not unlike.any():
        return
    each = [(how, printable(name, NAME), runs[i] & unlike) for i, name in enumerate(names)
            for how, runs in (("with", acts & fewest), ("without", ~acts & ~fewest))]  # fmt: skip
    each = sorted((one for one in each if one[2].any()), key=lambda one: float((failed.mean() - failed)[one[2]].sum()))
    whom = ", ".join([f"{runs.sum()} {how} {name}" for how, name, runs in each[:WHOM]] + ["…"] * (len(each) > WHOM))
    words = f"runs with other agents than most runs of their task{f' ({whom})' * bool(whom)}"
    others_first = ~each[0][2][unlike] if each else rows[unlike]
    yield Handoff(
        words, rows[unlike][np.argsort(others_first, kind="stable")], whole & (others > 0), False, lengths=of_all
    )


def without_agent(name: str) -> str:
    """The words of `Handoff` for runs in which an agent does not act.

    Args:
      name: its name.
    """
    return f"runs in which {printable(name, NAME)} does not act"


def instead_of(name: str) -> str:
    """What ends the words of `Handoff` for runs in which another agent acts in the place of one.

    Args:
      name: its name.
    """
    return f" instead of {printable(name, NAME)}"


def of_any_instead(acting: list[tuple[str, str]], name: str) -> str:
    """The words for runs in which any of some agents acts in the place of one.

    Args:
      acting: of each agent the words of `Handoff`, and its name.
      name: of the one that is left out.

    Examples:
      >>> of_any_instead([(f"runs that desk hands to {one}", one) for one in ("law", "sales", "tech")], "billing")
      'runs that desk hands to law, sales or tech instead of billing'
    """
    names = [printable(one, NAME) for _, one in acting]
    more = f"{len(names) - WHOM} others" if len(names) > WHOM + 1 else names[-1]
    any_of = f"{', '.join(names[: WHOM if len(names) > WHOM + 1 else -1])} or {more}"
    heads = {words.removesuffix(one) for (words, _), one in zip(acting, names, strict=True)}
    by = heads.pop() if len(heads) == 1 else ""
    return f"{f'{by}{any_of}' if by.endswith(' hands to ') else f'runs in which {any_of} acts'}{instead_of(name)}"


def _alike(acts: np.ndarray, has: np.ndarray, tells: np.ndarray, version: np.ndarray) -> np.ndarray | None:
    """`Handoff.beside`."""
    if not (tells & has).any() or not (tells & ~has).any():
        return None
    return distinct_columns(version, *acts[_instead(acts, has, tells)]).of


def _instead(acts: np.ndarray, has: np.ndarray, tells: np.ndarray) -> list[int]:
    """Which agents are in the place of one: they surely act in more of the runs without it."""
    without, having = tells & ~has, tells & has
    none, some = int(without.sum()), int(having.sum())
    with_none, with_some = ((acts & runs).sum(axis=1).tolist() for runs in (without, having))
    return [i for i, (a, b) in enumerate(zip(with_none, with_some, strict=True)) if surely_above(a, none, b, some) > 0]


def _unlike(
    traces: Traces, formats: np.ndarray, acting: np.ndarray, whole: np.ndarray, task: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which runs have other agents than most others, bool [traces], whether half of these or more lack each agent, bool
    [names, traces], and how many they are, int [traces]."""
    team = distinct_columns(*acting).of
    found = []
    for of in (np.asarray(traces.graph.group_ids)[: traces.sizes.traces], task):
        key = distinct_columns(of, formats, whole).of
        pairs, _, same, size = distinct_columns(key, team)
        others, alike = (np.bincount(key) - 1)[key], (size - 1)[same]
        lacking = [2 * (np.bincount(key, acts)[key] - acts) <= others for acts in acting]
        settled = np.bincount(key, (2 * alike >= others) & (others > 0))[key] > 0
        order = np.lexsort((size, pairs[0]))  # the last one of each key is of most runs
        most = pairs[1, order[np.searchsorted(pairs[0, order], key, "right") - 1]]
        found.append((2 * alike < others, np.array(lacking).reshape(acting.shape), others, settled, most, key))
    own, every = found
    group = own[5] * len(team)
    by_task = ~own[3] & every[3] & np.isin(group + every[4], group + team)
    unlike, lacking_most, others = (np.where(by_task, b, a) for a, b in zip(own[:3], every[:3], strict=True))
    return whole & unlike, lacking_most, others


def _handed(traces: Traces, names: list[str], action: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where each name was handed each trace, -1 where it has no event, whether the log states who did it, and how
    many actions it has: [names, traces] each."""
    graph, n = traces.graph, traces.sizes
    agent, trace = (np.asarray(ids)[: n.events].astype(np.int64) for ids in (graph.agent_ids, graph.trace_ids))
    every = np.array(traces.agents["name"].to_pylist(), object).astype(str)
    of = np.searchsorted(names, every).clip(max=len(names) - 1)
    name = np.where(np.array(names)[of] == every, of, -1)[agent]
    (senders, receivers), cause = real_edges(graph), np.full(n.events, -1)
    other = name[senders] != name[receivers]
    np.maximum.at(cause, receivers[other], senders[other])
    mine = np.flatnonzero(name >= 0)
    first = mine[np.unique((name * n.traces + trace)[mine], return_index=True)[1]]
    # The last event of the spawner before the first of the agent: rows of one instance ascend.
    place = np.sort(agent * n.events + np.arange(n.events))
    parent = np.asarray(graph.agent_parent)[agent[first]].astype(np.int64)
    before = place[np.searchsorted(place, parent * n.events + first) - 1]
    spawned = (before // n.events == parent) & (parent != agent[first])
    at = np.where(cause[first] >= 0, cause[first], np.where(spawned, before % n.events, -1))
    stated = at >= 0
    at = np.where(stated, at, first)
    handed, linked = np.full((len(names), n.traces), -1), np.zeros((len(names), n.traces), bool)
    handed[name[first], trace[first]], linked[name[first], trace[first]] = at, stated
    own = np.bincount((name * n.traces + trace)[np.intersect1d(action, mine)], minlength=handed.size)
    return handed, linked, own.reshape(handed.shape)
