"""Split-half agreement: does a method give an action the same credit when it sees other runs of the team?

Real logs have no known true credit. The agreement of two independent halves can be measured: whether they give the same
answer. Both halves are split by chance, the method sees each half alone, and the mean advantage of every *kind of
action* (its tool, or its agent, role or event type) is compared with that of the other half.

    halves="groups"   half of the tasks against the other half; one number a kind. Does the method value a kind of
                      action alike whatever the task?
    halves="traces"   half of each task's traces against the other half; one number a kind and task. Does it value what
                      was done on a task alike whatever traces it was compared with?

Agreement is the correlation r of the two halves over these numbers, each weighted by n₁n₂/(n₁ + n₂) of its counts of
actions, averaged over random splits; 2r/(1 + r) is what two data sets as large as the whole would agree to (Spearman
1910, Brown 1910). No interval is stated: none is known to hold for few kinds and few tasks. Agreement is not truth: a
method that is always wrong in the same way agrees with itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.structure.host_ids import rows_of_each
from graphs.text import counted

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["Reliability", "SplitError", "reliability"]

By = Literal["tool", "agent", "role", "type"]
Halves = Literal["groups", "traces"]

_FEWEST = 3  # two numbers always lie on a line


class SplitError(CreditError):
    """Logs that have too few tasks, or too few traces of each, to be split in two."""


@dataclasses.dataclass(frozen=True)
class Reliability:
    """How well two halves agree.

    Attributes:
      agreement: mean weighted correlation between halves, over splits; NaN with fewer than three numbers to compare.
      stepped_up: 2r/(1 + r); NaN where r is not positive.
      units: numbers that the halves were compared on, on average over splits.
      groups: tasks with at least one valid action.
      splits: random splits that were averaged.
    """

    agreement: float
    stepped_up: float
    units: float
    groups: int
    splits: int


def reliability(
    traces: Traces,
    method: Callable[[Traces], Credit],
    *,
    by: By = "tool",
    halves: Halves = "groups",
    splits: int = 20,
    seed: int = 0,
) -> Reliability:
    """Split-half agreement of a method's advantages on a batch of logs.

    Args:
      traces: what was read.
      method: computes the method; it sees the traces of the other half without an outcome, which leaves them out.
      by: kinds of action: the tool called (with the event type, and the type alone where there is none), the agent's
        or the role's name, or the event type.
      halves: what is split.
      splits, seed: of the random numbers.

    Raises:
      SplitError: fewer than two tasks, or with `halves="traces"` no task with four traces.
      CreditError: an unknown option, and whatever `method` raises.
    """
    if by not in ("tool", "agent", "role", "type"):
        raise CreditError(f"by is {by!r}; expected 'tool', 'agent', 'role' or 'type'")
    if halves not in ("groups", "traces"):
        raise CreditError(f"halves is {halves!r}; expected 'groups' or 'traces'")
    group = np.asarray(traces.graph.group_ids)[: traces.sizes.traces]
    sizes = np.bincount(group)
    if halves == "groups" and len(sizes) < 2:
        raise SplitError(f"the logs have {counted(len(sizes), 'task')}; expected 2 or more to split")
    if halves == "traces" and not np.any(sizes >= 4):
        raise SplitError(f"the largest task has {counted(sizes.max(), 'trace')}; expected 4 or more, two for each half")
    cells = _Cells.of(traces, group, by)
    rng = np.random.default_rng(seed)
    correlations, units, taught = [], [], np.zeros(len(sizes), bool)
    for _ in range(splits):
        second = _second_half(rng, group, halves)
        total, count = (np.stack(x) for x in zip(*(
            _by_cell(traces, method, second == half, cells) for half in (0, 1)
        ), strict=True))  # fmt: skip
        taught[cells.group[count.sum(0) > 0]] = True
        if halves == "groups":  # one number a kind, over all tasks of a half
            total, count = (np.stack([np.bincount(cells.kind, row, cells.kinds) for row in x]) for x in (total, count))
        correlation, compared = _weighted_correlation(*total, *count)
        correlations.append(correlation)
        units.append(compared)
    r = float(np.mean(correlations))
    stepped_up = 2 * r / (1 + r) if r > 0 else float("nan")
    return Reliability(r, stepped_up, float(np.mean(units)), int(taught.sum()), splits)


@dataclasses.dataclass(frozen=True)
class _Cells:
    """The pairs of a task and a kind of action that the logs hold: at most as many as events, whatever both number.

    Attributes:
      of_event: the cell of each event, int [E].
      group, kind: of each cell, int [C].
      kinds: how many there are.
    """

    of_event: np.ndarray
    group: np.ndarray
    kind: np.ndarray
    kinds: int

    @classmethod
    def of(cls, traces: Traces, group: np.ndarray, by: By) -> _Cells:
        kind, kinds = _kinds(traces, by)
        task = group[np.asarray(traces.graph.trace_ids)[: traces.sizes.events]].astype(np.int64)
        pairs, of_event = np.unique(task * kinds + kind, return_inverse=True)
        return cls(of_event, pairs // kinds, pairs % kinds, kinds)


def _kinds(traces: Traces, by: By) -> tuple[np.ndarray, int]:
    """The kind of each event, int [E], and how many there are."""
    n = traces.sizes.events
    graph = traces.graph
    agent = np.asarray(graph.agent_ids)[:n]
    if by == "agent":
        labels = np.asarray(graph.agent_name_ids)[agent].astype(str)
    elif by == "role":
        labels = np.asarray(graph.agent_role_ids)[agent].astype(str)
    else:
        names = [EventType(int(t)).name for t in np.asarray(graph.event_type)[:n]]
        tools = traces.events["tool"].to_pylist() if by == "tool" else [None] * n
        labels = np.array([f"{name} {tool or ''}" for name, tool in zip(names, tools, strict=True)])
    distinct, kind = np.unique(labels, return_inverse=True)
    return kind, len(distinct)


def _second_half(rng: np.random.Generator, group: np.ndarray, halves: Halves) -> np.ndarray:
    """0 or 1 for each trace; where there is an odd one out, chance decides its half."""
    if halves == "groups":
        order = rng.permutation(group.max() + 1)
        half: np.ndarray = (np.argsort(order) % 2)[group]
        return half
    side = np.zeros(len(group), int)
    for rows in rows_of_each(group):
        members = rng.permutation(rows)
        side[members] = (np.arange(len(members)) + rng.integers(2)) % 2
    return side


def _by_cell(
    traces: Traces, method: Callable[[Traces], Credit], in_half: np.ndarray, cells: _Cells
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of advantages of one half and numbers of valid actions, by cell: [C] each."""
    n = traces.sizes.events
    reward = np.array(traces.reward)
    reward[: len(in_half)][~in_half] = np.nan
    credit = method(dataclasses.replace(traces, reward=reward))
    valid = np.asarray(credit.valid)[:n]
    cell, room = cells.of_event[valid], len(cells.kind)
    return (
        np.bincount(cell, np.asarray(credit.advantage, np.float64)[:n][valid], room),
        np.bincount(cell, minlength=room).astype(np.float64),
    )


def _weighted_correlation(first: np.ndarray, other: np.ndarray, n: np.ndarray, m: np.ndarray) -> tuple[float, int]:
    """The correlation of the means of two halves, from their sums and counts [K], and on how many numbers it is."""
    both = (n > 0) & (m > 0)
    n, m = n[both], m[both]
    w = n * m / (n + m)
    if len(w) < _FEWEST:
        return float("nan"), len(w)
    w = w / w.sum()
    a, b = (mean - w @ mean for mean in (first[both] / n, other[both] / m))
    norm = float(np.sqrt((w @ (a * a)) * (w @ (b * b))))
    return (float(w @ (a * b)) / norm if norm > 0 else float("nan")), len(w)
