"""A batch as lists of traces and events, and batches whose numbers no formula was tuned to."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from credit.laws.trial_batches import ONE_FOR, Batch, Needs, ragged

__all__ = ["Event", "Trace", "grouped", "mean_sd", "perturbed", "plain"]


@dataclasses.dataclass
class Event:
    """`place` in the batch; `sub`, whether its agent was spawned; `given`, its evidence, None where there is none."""

    place: int
    trace: int
    action: bool
    agent: int
    name: int
    role: int
    sub: bool
    turn: int
    reward: float
    given: dict[str, Any]


@dataclasses.dataclass
class Trace:
    """`outcome` is None where the log has none."""

    number: int
    group: int
    outcome: float | None
    events: list[Event]
    given: dict[str, Any]

    @property
    def rows(self) -> list[Event]:
        """The actions of a trace that has an outcome."""
        return [] if self.outcome is None else [e for e in self.events if e.action]

    @property
    def total(self) -> float:
        """The outcome and all rewards at events."""
        return self.outcome + sum(e.reward for e in self.events)


def plain(batch: Batch) -> list[Trace]:
    """An unpadded batch, number by number."""
    graph = batch.graph
    traces = []
    for t in range(graph.num_traces):
        outcome = float(batch.reward[t])
        given = {k: _stated(v[t]) for k, v in batch.evidence.items() if len(v) == graph.num_traces}
        traces.append(Trace(t, int(graph.group_ids[t]), None if math.isnan(outcome) else outcome, [], given))
    for e in range(graph.num_events):
        a, t, reward = int(graph.agent_ids[e]), int(graph.trace_ids[e]), float(batch.event_reward[e])
        traces[t].events.append(
            Event(
                place=e,
                trace=t,
                action=bool(graph.action_mask[e]),
                agent=a,
                name=int(graph.agent_name_ids[a]),
                role=int(graph.agent_role_ids[a]),
                sub=int(graph.agent_parent[a]) != a,
                turn=int(graph.turn_ids[e]),
                reward=0.0 if math.isnan(reward) else reward,
                given={k: _stated(v[e]) for k, v in batch.evidence.items() if len(v) == graph.num_events},
            )
        )
    return traces


def _stated(value: np.generic) -> float | int | None:
    """Evidence as a number, None where NaN or a negative id or count says that there is none."""
    x = value.item()
    return None if (math.isnan(x) if isinstance(x, float) else x < 0) else x


def perturbed(seed: int, needs: Needs, joint: bool = False) -> Batch:
    """A ragged batch of the laws with noise on every number, and some rewards at events missing; unpadded.

    Of what is one number for an agent or a trace, a few have two.
    Outcomes and event rewards of the group with equal outcomes stay as they are. Stages rise along a trace, as rounds
    do. With `joint`, two actions in a row are one step of the replay tree.
    """
    batch, rng = ragged(seed, needs), np.random.default_rng(1000 + seed)
    graph = batch.graph
    tied = _tied_group(batch)
    reward = batch.reward + rng.normal(0, 0.5, graph.num_traces)
    reward = np.where(graph.group_ids == tied, batch.reward, reward).astype(np.float32)
    step = np.where(batch.event_reward == 0, 0, batch.event_reward + rng.normal(0, 0.1, graph.num_events))
    step[(rng.random(graph.num_events) < 0.1) & (graph.group_ids[graph.trace_ids] != tied)] = np.nan
    evidence = {name: np.array(values) for name, values in batch.evidence.items()}
    for name, values in evidence.items():
        if np.issubdtype(values.dtype, np.floating) and "propensity" not in name:
            noise = rng.normal(0, 0.3, len(values))
            if name in ONE_FOR:  # two numbers of every seventh
                unit = getattr(graph, ONE_FOR[name])
                noise = np.where(unit % 7 == 3, noise, noise[unit % len(values)])
            evidence[name] = (values + noise).astype(np.float32)
    if "stage" in evidence:
        for t in range(graph.num_traces):
            there = (graph.trace_ids == t) & (evidence["stage"] >= 0)
            evidence["stage"][there] = np.sort(evidence["stage"][there])
    if joint:
        for t in range(graph.num_traces):
            acts = np.flatnonzero((graph.trace_ids == t) & graph.action_mask)
            for first, second in zip(acts[::2], [*acts[1::2], *acts[-1:]], strict=False):
                evidence["context"][second] = evidence["context"][first]
                evidence["node"][first] = evidence["node"][second]
    return dataclasses.replace(batch, reward=reward, event_reward=step.astype(np.float32), evidence=evidence)


def _tied_group(batch: Batch) -> int:
    for group in np.unique(batch.graph.group_ids):
        rewards = batch.reward[batch.graph.group_ids == group]
        if len(rewards) > 1 and len(set(rewards.tolist())) == 1:
            return int(group)
    raise AssertionError("no group of the batch has equal outcomes")


def grouped(things: Iterable[Any], key: Callable[[Any], Hashable]) -> dict[Any, list[Any]]:
    """Things by key, in their order."""
    out = defaultdict(list)
    for thing in things:
        out[key(thing)].append(thing)
    return dict(out)


def mean_sd(values: list[float], ddof: int = 1) -> tuple[float, float]:
    """Mean and standard deviation of two or more values."""
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((x - mean) ** 2 for x in values) / (len(values) - ddof))
