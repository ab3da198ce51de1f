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
1910, Brown 1910). Intervals are from resampling tasks. Agreement is not truth: a method that is always wrong in the
same way agrees with itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import EventType
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
      low, high: its 95 % interval, from resampled tasks.
      stepped_up: 2r/(1 + r); NaN where r is not positive.
      units: numbers that the halves were compared on, on average over splits.
      groups: tasks with at least one valid action.
      splits: random splits that were averaged.
    """

    agreement: float
    low: float
    high: float
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
    resamples: int = 400,
    seed: int = 0,
) -> Reliability:
    """Split-half agreement of a method's advantages on a batch of logs.

    Args:
      traces: what was read.
      method: computes the method; it sees the traces of the other half without an outcome, which leaves them out.
      by: kinds of action: the tool called (with the event type, and the type alone where there is none), the agent's
        or the role's name, or the event type.
      halves: what is split.
      splits, resamples, seed: of the random numbers.

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
    kind, kinds = _kinds(traces, by)
    rng = np.random.default_rng(seed)
    weight = np.stack([np.ones(len(sizes)), *rng.multinomial(len(sizes), np.ones(len(sizes)) / len(sizes), resamples)])
    correlations, units, taught = [], [], np.zeros(len(sizes), bool)
    for _ in range(splits):
        second = _second_half(rng, group, halves)
        total, count = (np.stack(x) for x in zip(*(
            _by_kind(traces, method, second == half, group, kind, kinds) for half in (0, 1)
        ), strict=True))  # fmt: skip
        taught |= count.sum((0, 2)) > 0
        correlation, compared = _correlations(total, count, weight, halves)
        correlations.append(correlation)
        units.append(compared)
    mean = np.mean(correlations, axis=0)
    spread = mean[1:][np.isfinite(mean[1:])]
    r = float(mean[0])
    low, high = np.percentile(spread, [2.5, 97.5]) if len(spread) else (np.nan, np.nan)
    stepped_up = 2 * r / (1 + r) if r > 0 else float("nan")
    return Reliability(r, float(low), float(high), stepped_up, float(np.mean(units)), int(taught.sum()), splits)


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
    for g in range(group.max() + 1):
        members = rng.permutation(np.flatnonzero(group == g))
        side[members] = (np.arange(len(members)) + rng.integers(2)) % 2
    return side


def _by_kind(
    traces: Traces,
    method: Callable[[Traces], Credit],
    in_half: np.ndarray,
    group: np.ndarray,
    kind: np.ndarray,
    kinds: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of advantages of one half and numbers of valid actions, by task and kind: [G, kinds] each."""
    n = traces.sizes.events
    reward = np.array(traces.reward)
    reward[: len(in_half)][~in_half] = np.nan
    credit = method(dataclasses.replace(traces, reward=reward))
    valid = np.asarray(credit.valid)[:n]
    trace = np.asarray(traces.graph.trace_ids)[:n]
    cell = (group[trace] * kinds + kind)[valid]
    shape = (int(group.max()) + 1, kinds)
    room = shape[0] * kinds
    return (
        np.bincount(cell, np.asarray(credit.advantage, np.float64)[:n][valid], room).reshape(shape),
        np.bincount(cell, minlength=room).astype(np.float64).reshape(shape),
    )


def _correlations(total: np.ndarray, count: np.ndarray, weight: np.ndarray, halves: Halves) -> tuple[np.ndarray, float]:
    """The weighted correlation for each row of task weights [B, G], and how many units the first of them has."""
    if halves == "groups":
        sums, n = np.einsum("bg,hgk->hbk", weight, total), np.einsum("bg,hgk->hbk", weight, count)
    else:
        sums, n = (np.broadcast_to(x.reshape(2, 1, -1), (2, len(weight), x[0].size)) for x in (total, count))
    both = (n[0] > 0) & (n[1] > 0)
    mean = sums / np.where(n > 0, n, 1)
    w = np.where(both, n[0] * n[1] / np.where(both, n[0] + n[1], 1), 0)
    if halves == "traces":
        w = w * np.repeat(weight, total.shape[2], axis=1)
    scale = w.sum(1, keepdims=True)
    w = w / np.where(scale > 0, scale, 1)
    a, b = (m - (w * m).sum(1, keepdims=True) for m in mean)
    norm = np.sqrt((w * a * a).sum(1) * (w * b * b).sum(1))
    known = (norm > 0) & ((w > 0).sum(1) >= _FEWEST)
    r = np.where(known, (w * a * b).sum(1) / np.where(known, norm, 1), np.nan)
    return r, float(np.sum(both[0]))
