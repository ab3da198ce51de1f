"""Who matters: each agent, role, turn, tool or type against the other actions of its own traces, over tasks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from credit.reports.beyond_chance import beyond_chance, starred
from credit.reports.tasks import task_ids
from credit.reports.tool_calls import call_mask
from credit.tables.advantages import TYPE_NAMES, turn_in_trace
from credit.telling_apart import alike_by, place_note, tells_apart
from estimators.base import Credit
from graphs.errors import CreditError, expect
from graphs.task_means import LEAST_TASKS, ROUNDING, TaskMean, holm, task_mean
from graphs.traces.batch import Traces

__all__ = ["KINDS_OF_UNIT", "Kind", "Unit", "alike_note", "labels_of", "unit_terms", "units_of_each", "who_matters"]

Kind = Literal["agent", "role", "turn", "tool", "type"]
KINDS_OF_UNIT: tuple[Kind, ...] = ("agent", "role", "turn", "tool", "type")

NOTHING = np.zeros(0)


@dataclasses.dataclass(frozen=True)
class Unit:
    """One agent name, role, turn number, tool or event type.

    Attributes:
      name: of the unit.
      actions: its actions that have an advantage.
      traces: traces with such an action.
      tasks: groups with such an action.
      advantage: mean over tasks, of means over their traces, of the mean advantage of those actions in a trace.
      difference: the same mean of a trace's difference: the unit's mean advantage minus that of the other actions of
        the trace. NaN where no trace has others.
      signal: tasks in which that difference is not 0.
      low, high: 95 % interval of `difference` by `graphs.task_means.task_mean`; NaN where there is none.
      p: of the test that the difference is 0, by Holm's method for all units; NaN where there is none.
      rest: the unit that is its whole rest, and whose rest it is, in all traces where either is compared, as in a team
        of two: one comparison, seen from both sides, which counts once. "" without.
    """

    name: str
    actions: int
    traces: int
    tasks: int
    advantage: float
    difference: float
    signal: int
    low: float
    high: float
    p: float
    rest: str = ""

    @property
    def stands_out(self) -> bool:
        """Whether it differs beyond chance."""
        return beyond_chance(self.p, self.low, self.high)


def who_matters(traces: Traces, credit: Credit, by: Kind = "agent") -> list[Unit]:
    """Units against the other actions of their own traces, with intervals over tasks.

    A trace gives one number whatever its length: the mean over the unit's actions minus the mean over its other
    actions. A task gives the mean over its traces. What all actions of a trace share cancels, so a method that
    broadcasts the outcome has no difference. Intervals and tests are those of `task_mean`; tasks count as independent.
    Where a method's numbers rest on no evidence about the actions (`tells_apart`), or on their places (`place_note`),
    its differences are of its making, and units have none.

    Units that stand out come first, those without an interval last, and the larger difference before the smaller. Turns
    stand in their order.

    Args:
      traces: what was read.
      credit: a method's result on `traces.graph`.
      by: what units are. A tool gets the advantages of the actions that called it.

    Raises:
      CreditError: `by` is something else, or `credit` is of another batch.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> [unit] = who_matters(rows.traces, credit.rloo(graph, reward))
      >>> unit.name, unit.actions, unit.tasks
      ('planner', 3, 1)
    """
    expect("traces", traces, Traces, "what credit.read returns")
    expect("credit", credit, Credit, "what a method returns, such as credit.run(traces, 'rloo')")
    if by not in KINDS_OF_UNIT:
        raise CreditError(f"by is {by!r}; expected one of {', '.join(KINDS_OF_UNIT)}")
    if credit.credit.shape != (traces.graph.num_events,):
        raise CreditError(f"credit has shape {credit.credit.shape}; expected ({traces.graph.num_events},)")
    return _units(labels_of(traces, by), credit, _Numbers.of(traces, credit), by, _compares(traces, credit))


def units_of_each(traces: Traces, claims: Mapping[str, Credit]) -> dict[str, dict[Kind, list[Unit]]]:
    """What `who_matters` finds, by method and by kind of unit; what several share is computed once.

    Args:
      traces: what was read.
      claims: results of methods on `traces.graph`, by name.
    """
    labels = {by: labels_of(traces, by) for by in KINDS_OF_UNIT}
    numbers = {name: _Numbers.of(traces, claim) for name, claim in claims.items()}
    told = {name: _compares(traces, claim, name) for name, claim in claims.items()}
    return {
        name: {by: _units(labels[by], claim, numbers[name], by, told[name]) for by in KINDS_OF_UNIT}
        for name, claim in claims.items()
    }


def _compares(traces: Traces, credit: Credit, name: str = "") -> bool:
    """Whether differences of a method's numbers within a trace can be of what its actions did."""
    return tells_apart(traces, credit, name) and not place_note(traces, credit)


def _units(
    labels: tuple[np.ndarray, np.ndarray, list[str]], credit: Credit, numbers: _Numbers, by: Kind, told: bool
) -> list[Unit]:
    """Units of one kind, in the order of `who_matters`; without differences where nothing tells actions apart."""
    events, label, names = labels
    valid = np.asarray(credit.valid)[events]
    units = _compared(events[valid], label[valid], names, numbers)
    if not told:
        nan = math.nan
        units = [dataclasses.replace(unit, difference=nan, signal=0, low=nan, high=nan, p=nan) for unit in units]
        return units if by == "turn" else sorted(units, key=lambda unit: -unit.actions)
    corrected = holm([unit.p for unit in units], [frozenset((unit.name, unit.rest or unit.name)) for unit in units])
    units = [dataclasses.replace(unit, p=p) for unit, p in zip(units, corrected, strict=True)]
    if by == "turn":
        return units  # in the order of a trace

    def order(unit: Unit) -> tuple[bool, bool, float, float]:
        size = 0.0 if math.isnan(unit.difference) else abs(unit.difference)
        return not unit.stands_out, math.isnan(unit.low), -size, -abs(unit.advantage)

    return sorted(units, key=order)


def alike_note(
    units: list[Unit],
    method: str,
    by: Kind,
    told: bool = True,
    first: str = "",
    place: str = "",
    apart: Sequence[str] = (),
    varied: bool = False,
) -> str:
    """The line that says why no unit differs from the rest of its traces; "" where one does.

    `told` is what `tells_apart` says of the method, `place` what `place_note` does, `apart` are the methods of
    `apart_by_events`, `varied` is what `differs_within` says of the method's numbers, and `first` is what failed and
    succeeded traces tell of units.

    Args:
      units: all of the kind.
      method: its name.
      by: the kind.
      told, first, place, apart, varied: as above.
    """
    if any(unit.signal for unit in units) or not units:
        return ""
    if told and place and len(units) > 1:
        return f"By {method} no {by} is compared with the rest of its traces: {place[0].lower()}{place[1:]}"
    if not told and len(units) > 1:
        within = alike_by(method, f"one {by}", f"{by}s", apart)
        return f"{first} Within a trace: {within[0].lower()}{within[1:]}" if first else within
    if all(math.isnan(unit.difference) for unit in units):
        return f"No trace has actions of a second {by}, so there is nothing to compare one with."
    why = "numbers differ within a trace, but average out over the traces of each task"
    why = why if varied else "all actions of a trace have one number"
    return f"By {method} no {by} differs from the rest of its traces: {why}."


def unit_terms(units: Sequence[Unit], method: str) -> list[tuple[str, str]]:
    """The terms of a table of units.

    Args:
      units: its rows.
      method: its name.
    """
    once = ", two that are each other's rest as one" if any(unit.rest for unit in units) else ""
    return [
        ("", f"advantage: by {method}, mean over tasks"),
        ("against the rest: ", "against the rest: minus the mean of the other actions of the same trace"),
        ("–", f"–: fewer than {LEAST_TASKS} tasks differ, or all alike"),
        starred(f"all rows{once}"),
    ]


def labels_of(traces: Traces, by: Kind) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Actions with the unit that each belongs to: rows of events, ids of units, and the names of the units.

    By tool an action appears once for each tool that it is or that it called.

    Args:
      traces: a batch.
      by: the kind of unit.
    """
    graph, n = traces.graph, traces.sizes.events
    actions = np.flatnonzero(np.asarray(graph.action_mask)[:n])
    if by == "turn":
        number = turn_in_trace(np.asarray(graph.turn_ids)[:n], np.asarray(graph.trace_ids)[:n])[actions]
        names, label = np.unique(number, return_inverse=True)
        return actions, label, [f"turn {name}" for name in names]
    if by == "tool":
        actions, owner, words = _tools(traces, actions)
    elif by == "type":
        owner, words = np.asarray(graph.event_type)[actions], list(TYPE_NAMES)
    else:
        column = traces.agents["name" if by == "agent" else "role"]
        owner, words = np.asarray(graph.agent_ids)[actions], column.to_pylist()
    distinct = sorted({words[i] for i in np.unique(owner).tolist()})
    place = {name: i for i, name in enumerate(distinct)}
    return actions, np.array([place.get(word, -1) for word in words], np.int64)[owner], distinct


def _tools(traces: Traces, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Actions that are tool calls or led to some, with the places of the tools among the words; "no tool" for others.

    The words are in alphabetical order, and so are the tools of an action.
    """
    graph, n = traces.graph, traces.sizes.events
    column = traces.events["tool"].combine_chunks().dictionary_encode()
    named = [*(word or "unnamed tool" for word in column.dictionary.to_pylist()), "unnamed tool", "no tool"]
    words = sorted(set(named))
    rank = {word: i for i, word in enumerate(words)}
    place = np.array([rank[word] for word in named], np.int64)
    tool = place[column.indices.fill_null(len(named) - 2).to_numpy(zero_copy_only=False)]
    is_call = call_mask(traces)
    is_action = np.asarray(graph.action_mask)[:n]
    edges = np.asarray(graph.edge_mask)
    senders, receivers = np.asarray(graph.senders)[edges], np.asarray(graph.receivers)[edges]
    called = is_action[senders] & is_call[receivers] & ~is_action[receivers]
    itself = actions[is_call[actions]]
    event = np.concatenate([senders[called], itself])
    bare = actions[~np.isin(actions, event)]
    which = np.concatenate([tool[receivers[called]], tool[itself], np.full(len(bare), place[-1])])
    pairs = np.unique(np.concatenate([event, bare]).astype(np.int64) * len(words) + which)
    return pairs // len(words), pairs % len(words), words


@dataclasses.dataclass(frozen=True)
class _Numbers:
    """Advantages of valid actions, and their sums over traces.

    Attributes:
      advantage, rounding: of each event, and how far single precision may put it off: float64 [E].
      first: advantage of the first valid action of each trace. Sums are of differences to it, so that equal advantages
        have a difference of exactly 0: [T].
      total, off, count: sums of these differences and of `rounding` over each trace, and its valid actions: [T].
      trace: of each event: int [E].
      group: of each trace: int [T].
    """

    advantage: np.ndarray
    rounding: np.ndarray
    first: np.ndarray
    total: np.ndarray
    off: np.ndarray
    count: np.ndarray
    trace: np.ndarray
    group: np.ndarray

    @classmethod
    def of(cls, traces: Traces, credit: Credit) -> _Numbers:
        graph, many = traces.graph, traces.graph.num_traces
        trace = np.asarray(graph.trace_ids)
        rows = np.flatnonzero(np.asarray(credit.valid) & np.asarray(graph.action_mask))
        advantage = np.asarray(credit.advantage, np.float64)
        terms = np.abs(np.asarray(credit.credit, np.float64)) + np.abs(np.asarray(credit.baseline, np.float64))
        rounding = ROUNDING * terms / np.asarray(credit.scale, np.float64)
        first, where = np.zeros(many), trace[rows]
        present, earliest = np.unique(where, return_index=True)
        first[present] = advantage[rows[earliest]]
        total = np.bincount(where, advantage[rows] - first[where], many)
        off, count = np.bincount(where, rounding[rows], many), np.bincount(where, minlength=many)
        return cls(advantage, rounding, first, total, off, count, trace, task_ids(traces))


def _compared(events: np.ndarray, label: np.ndarray, names: list[str], numbers: _Numbers) -> list[Unit]:
    """The units that have events, each against the rest of its traces; `p` is not corrected.

    Args:
      events, label: valid actions, and the unit of each.
      names: of the units.
      numbers: of all actions.
    """
    many = len(numbers.first)
    pairs, where = np.unique(label * many + numbers.trace[events], return_inverse=True)
    unit, trace = pairs // many, pairs % many
    first = numbers.first[trace]
    count = np.bincount(where)
    above = np.bincount(where, numbers.advantage[events] - first[where])
    off = np.bincount(where, numbers.rounding[events])
    advantages = _by_task(first + above / count, off / count, unit, numbers.group[trace])
    compared = numbers.count[trace] > count
    share, others = above / count, np.maximum(numbers.count[trace] - count, 1)
    rest, rest_off = (numbers.total[trace] - above) / others, (numbers.off[trace] - off) / others
    apart, apart_off = (share - rest)[compared], (off / count + rest_off)[compared]
    differences = _by_task(apart, apart_off, unit[compared], numbers.group[trace][compared])
    rest = _whole_rest(unit, trace, count, numbers.count, len(names))
    actions, traces = (np.bincount(ids, minlength=len(names)) for ids in (label, unit))
    units = []
    for i in np.flatnonzero(actions).tolist():
        advantage, difference = advantages.get(i, NOTHING), differences.get(i, NOTHING)
        found = task_mean(difference) if len(difference) else TaskMean(math.nan, math.nan, math.nan, math.nan)
        signal = int(np.count_nonzero(difference))
        mean = float(advantage.mean())
        units.append(
            Unit(
                names[i],
                int(actions[i]),
                int(traces[i]),
                len(advantage),
                mean,
                found.mean,
                signal,
                *found[1:],
                rest=names[rest[i]] if rest[i] >= 0 else "",
            )
        )
    return units


def _whole_rest(unit: np.ndarray, trace: np.ndarray, count: np.ndarray, total: np.ndarray, many: int) -> np.ndarray:
    """The unit that is all of the rest of each one wherever it is compared, and whose rest it is: int [many], or -1.

    Args:
      unit, trace, count: of each pair of a unit and a trace that it acts in, and its actions there: int [N].
      total: int [T], the actions of each trace.
      many: the number of units.
    """
    present, acting = np.bincount(trace, minlength=len(total)), np.bincount(trace, count, len(total))
    both = (present == 2) & (acting == total)  # an action counts for each tool that it calls
    other = np.where(both[trace], np.bincount(trace, unit, len(total))[trace] - unit, -1).astype(np.int64)
    compared = total[trace] > count
    least, most = np.full(many, many), np.full(many, -1)
    np.minimum.at(least, unit[compared], other[compared])
    np.maximum.at(most, unit[compared], other[compared])
    found = np.where(least == most, most, -1)
    mutual: np.ndarray = np.where((found >= 0) & (found[found] == np.arange(many)), found, -1)
    return mutual


def _by_task(values: np.ndarray, off: np.ndarray, unit: np.ndarray, group: np.ndarray) -> dict[int, np.ndarray]:
    """Of each unit, means over its traces of each task: float64 [tasks]; those that are 0 in exact arithmetic are 0."""
    if not len(values):
        return {}
    wide = int(group.max()) + 1
    keys, task = np.unique(unit * wide + group, return_inverse=True)
    total = np.bincount(task, values)
    means = np.where(np.abs(total) <= np.bincount(task, off), 0.0, total) / np.bincount(task)
    units, begin = np.unique(keys // wide, return_index=True)
    return dict(zip(units.tolist(), np.split(means, begin[1:]), strict=True))
