"""Mean advantage by agent, role, turn, tool or type, with intervals over tasks: who matters."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Literal

import numpy as np

from credit.tables.advantages import turn_in_trace
from estimators.base import Credit
from graphs.errors import CreditError, expect
from graphs.event_graph import EventType
from graphs.traces.batch import Traces

__all__ = ["KINDS_OF_UNIT", "Kind", "Unit", "labels_of", "who_matters"]

Kind = Literal["agent", "role", "turn", "tool", "type"]
KINDS_OF_UNIT: tuple[Kind, ...] = ("agent", "role", "turn", "tool", "type")

LEAST_TASKS = 3
"""With a signal, for an interval. Student's t of two tasks stretches it to thirteen times their difference and more."""

ROUNDING = 4 * float(np.finfo(np.float32).eps)
"""Of a difference in single precision, as part of its terms. A sum of differences that is smaller counts as 0."""


@dataclasses.dataclass(frozen=True)
class Unit:
    """One agent name, role, turn number, tool or event type.

    Attributes:
      name: of the unit.
      actions: its actions that have an advantage.
      traces: traces with such an action.
      tasks: groups with such an action.
      signal: tasks with a signal for the unit, those in which one of these advantages is not 0.
      advantage: mean advantage of those actions.
      low, high: 95 % interval of that mean, by Student's t with the tasks as clusters; NaN with fewer
        than `LEAST_TASKS` tasks with a signal, or where the advantages of every task sum to 0, as by a baseline of the
        other traces those of a unit with as many actions in each trace must.
      excludes_zero: whether the interval leaves out 0.
    """

    name: str
    actions: int
    traces: int
    tasks: int
    signal: int
    advantage: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval leaves out 0."""
        return bool(self.low > 0 or self.high < 0)


def who_matters(traces: Traces, credit: Credit, by: Kind = "agent") -> list[Unit]:
    """Mean advantages of units with intervals over tasks.

    Units whose interval leaves out 0 come first, those of too few tasks for one last, and the larger mean before the
    smaller. Turns stand in their order.

    The mean is Σ A / n over the valid actions of a unit. With S_g and n_g the sum and count of task g, its variance is
    G/(G−1) Σ (S_g − mean n_g)² / n², that of a ratio over clusters. Tasks count as independent; within a task nothing
    is assumed.

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
    events, label, names = labels_of(traces, by)
    valid = np.asarray(credit.valid)[events]
    events, label = events[valid], label[valid]
    value = np.asarray(credit.advantage, np.float64)[events]
    terms = np.abs(np.asarray(credit.credit, np.float64)) + np.abs(np.asarray(credit.baseline, np.float64))
    rounding = ROUNDING * terms[events] / np.asarray(credit.scale, np.float64)[events]
    trace = np.asarray(traces.graph.trace_ids)[events]
    group = np.asarray(traces.graph.group_ids)[trace]
    units = []
    rows_of = np.argsort(label, kind="stable")  # a search for each unit would take their square
    for rows in np.split(rows_of, np.flatnonzero(np.diff(label[rows_of])) + 1) if len(label) else ():
        units.append(_unit(names[int(label[rows[0]])], value[rows], rounding[rows], trace[rows], group[rows]))
    if by == "turn":
        return units  # in the order of a trace
    return sorted(units, key=lambda unit: (not unit.excludes_zero, unit.signal < LEAST_TASKS, -abs(unit.advantage)))


def labels_of(traces: Traces, by: Kind) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Actions with the unit that each belongs to: rows of events, ids of units, and the names of the units.

    By tool an action appears once for each tool that it is or that it called.
    """
    graph, n = traces.graph, traces.sizes.events
    actions = np.flatnonzero(np.asarray(graph.action_mask)[:n])
    agent = np.asarray(graph.agent_ids)[actions]
    if by == "agent":
        texts = np.asarray(traces.agents["name"].to_pylist(), object)[agent]
    elif by == "role":
        texts = np.asarray(traces.agents["role"].to_pylist(), object)[agent]
    elif by == "type":
        texts = np.asarray([EventType(int(t)).name.lower() for t in np.asarray(graph.event_type)[actions]], object)
    elif by == "turn":
        number = turn_in_trace(np.asarray(graph.turn_ids)[:n], np.asarray(graph.trace_ids)[:n])[actions]
        names, label = np.unique(number, return_inverse=True)
        return actions, label, [f"turn {name}" for name in names]
    else:
        actions, texts = _tools(traces, actions)
    distinct = sorted(set(texts.tolist()))
    place = {name: i for i, name in enumerate(distinct)}
    return actions, np.array([place[text] for text in texts], np.int64), distinct


def _tools(traces: Traces, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Actions that are tool calls or led to some, with the tools; "no tool" for the others."""
    graph, n = traces.graph, traces.sizes.events
    tool = np.asarray(traces.events["tool"].to_pylist(), object)
    is_call = np.asarray(graph.event_type)[:n] == int(EventType.TOOL_CALL)
    is_action = np.asarray(graph.action_mask)[:n]
    edges = np.asarray(graph.edge_mask)
    senders, receivers = np.asarray(graph.senders)[edges], np.asarray(graph.receivers)[edges]
    called = is_action[senders] & is_call[receivers] & ~is_action[receivers]
    pairs = {(int(s), tool[r] or "unnamed tool") for s, r in zip(senders[called], receivers[called], strict=True)}
    pairs |= {(int(a), tool[a] or "unnamed tool") for a in actions if is_call[a]}
    with_tool = {event for event, _ in pairs}
    pairs |= {(int(a), "no tool") for a in actions if int(a) not in with_tool}
    events, texts = zip(*sorted(pairs), strict=True) if pairs else ((), ())
    return np.array(events, np.int64), np.array(texts, object)


def _unit(name: str, value: np.ndarray, rounding: np.ndarray, trace: np.ndarray, group: np.ndarray) -> Unit:
    tasks, task = np.unique(group, return_inverse=True)
    count, total = np.bincount(task), np.bincount(task, value)
    signal = int(np.count_nonzero(np.bincount(task, np.abs(value) > rounding)))
    rounding = np.bincount(task, rounding)
    total = np.where(np.abs(total) <= rounding, 0.0, total)  # a sum that is 0 in exact arithmetic is 0 here
    mean = 0.0 if abs(total.sum()) <= rounding.sum() else float(total.sum() / len(value))
    half = math.nan
    if signal >= LEAST_TASKS and total.any():
        spread = float(np.sum((total - mean * count) ** 2)) * len(tasks) / (len(tasks) - 1)
        half = _student(len(tasks) - 1) * math.sqrt(spread) / len(value)
    return Unit(name, len(value), len(np.unique(trace)), len(tasks), signal, mean, mean - half, mean + half)


@functools.lru_cache(maxsize=256)
def _student(degrees: int) -> float:
    """The 97.5 % quantile of Student's t, by bisection on its distribution function."""
    from jax.scipy.special import betainc

    def below(t: float) -> float:
        return 1 - 0.5 * float(betainc(degrees / 2, 0.5, degrees / (degrees + t * t)))

    low, high = 1.9, 13.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < 0.975 else (low, middle)
    return high
