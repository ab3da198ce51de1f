"""Length and parallelism of traces: critical path, work and span, stages, critical steps.

All functions run in NumPy on the host, over the whole batch. Results are per trace [T] or per event [E]; padded rows
are 0 or False.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.structure.edge_order import EdgeOrder
from graphs.structure.forest import Forest, real_edges, spawn_forest
from graphs.structure.host_ids import by_id

__all__ = [
    "CriticalPath",
    "CriticalSteps",
    "DecisionSteps",
    "Parallelism",
    "critical_path",
    "critical_steps",
    "decision_steps",
    "derived_stages",
    "main_agents",
    "parallelism",
]


class CriticalPath(NamedTuple):
    """The heaviest path of each trace. `length` float64 [T]: its weight. `on_path` bool [E]: True at its events."""

    length: np.ndarray
    on_path: np.ndarray


class Parallelism(NamedTuple):
    """Work, span and width of each trace.

    Attributes:
      work: int64 [T], actions.
      span: int64 [T], number of actions on the critical path, the fewest consecutive steps of any schedule.
      average: float64 [T], work / span; 0 without actions.
      width: int64 [T], greatest number of actions on one level. Actions of one level could run at once. The level of
        an action is the number of actions on the longest path to it, itself included.
      agents: int64 [T], greatest number of agent instances that act on one level.
    """

    work: np.ndarray
    span: np.ndarray
    average: np.ndarray
    width: np.ndarray
    agents: np.ndarray


class CriticalSteps(NamedTuple):
    """Critical steps of each trace.

    Attributes:
      steps: int64 [T]; 0 where not `defined`.
      stages: int64 [T], number of stages that hold an action.
      defined: bool [T], False where there is no action, no single main agent, or an action without a stage.
    """

    steps: np.ndarray
    stages: np.ndarray
    defined: np.ndarray


class DecisionSteps(NamedTuple):
    """Critical steps of each decision of the main agent.

    Attributes:
      steps: int64 [E], at the main agent's actions; 0 at other events, and where not `defined`.
      defined: bool [T], False where `critical_steps` is not defined, or no action of the main agent led to the
        sub-agent that takes longest in some stage.
    """

    steps: np.ndarray
    defined: np.ndarray


class _Stages(NamedTuple):
    """Who acts in which stage.

    Attributes:
      stage, sub, actions, first: for each instance in each stage, a row of the stages below, whether it is a sub-agent,
        its number of actions, and the first of them.
      trace, own, longest: for each stage, its trace, the actions of the main agent, and the most of a sub-agent.
    """

    stage: np.ndarray
    sub: np.ndarray
    actions: np.ndarray
    first: np.ndarray
    trace: np.ndarray
    own: np.ndarray
    longest: np.ndarray


def critical_path(graph: EventGraph, weight: Array | None = None) -> CriticalPath:
    """The heaviest chain of causes and effects of each trace.

        length = max over paths of Σ weight(e) over the path's events

    The default weight is 1 for an action and 0 for other events; the length is then a number of actions. With durations
    as weights, the length is the least time for the trace under unlimited parallelism. A path follows logged edges
    only: it does not link consecutive events of an agent unless the log does. Of several heaviest paths, `on_path` has
    the one that ends first in the log; of those, the one whose last, last but one, ... event comes first.

    Args:
      graph: a batch.
      weight: int or float [E], 0 or more, such as seconds; padding is ignored.

    Raises:
      CreditError: `weight` is not [E], or is negative or not finite at a real event.
    """
    real = np.asarray(graph.event_mask)
    weight = np.asarray(graph.action_mask) if weight is None else np.asarray(weight)
    if weight.shape != real.shape:
        raise CreditError(f"weight has shape {weight.shape}; expected {real.shape}, one entry for each event")
    weight = np.where(real, weight, 0).astype(np.float64)
    bad = np.flatnonzero(~((weight >= 0) & np.isfinite(weight)))
    if len(bad):
        raise CreditError(f"weight of event {bad[0]} is {weight[bad[0]]}; expected a finite number, 0 or more")

    senders, receivers = real_edges(graph)
    total, previous = EdgeOrder(senders, receivers).longest(weight)
    num = len(real)
    best_cause = np.full(num, num)
    attains = total[senders] >= previous[receivers]  # a maximum is one of its inputs, so this picks exactly those
    np.minimum.at(best_cause, receivers[attains], senders[attains])

    trace_ids, events = np.asarray(graph.trace_ids), np.flatnonzero(real)
    length = np.zeros(graph.num_traces)
    np.maximum.at(length, trace_ids[events], total[events])
    ends = events[total[events] >= length[trace_ids[events]]]
    current = np.full(graph.num_traces, num)
    np.minimum.at(current, trace_ids[ends], ends)
    on_path = np.zeros(num, bool)
    while len(current := current[current < num]):
        on_path[current] = True
        current = best_cause[current]
    return CriticalPath(length, on_path)


def parallelism(graph: EventGraph) -> Parallelism:
    """Work, span, width and average parallelism of each trace, by the logged edges."""
    action = _acts(graph)
    level, _ = EdgeOrder(*real_edges(graph)).longest(action.astype(np.int64))
    chosen = np.flatnonzero(action)
    trace = np.asarray(graph.trace_ids)[chosen]
    work = np.bincount(trace, minlength=graph.num_traces)
    span, width, agents = (np.zeros(graph.num_traces, np.int64) for _ in range(3))
    np.maximum.at(span, trace, level[chosen])
    (at, _), count = _count(trace, level[chosen])
    np.maximum.at(width, at, count)
    (at, on, _), _ = _count(trace, level[chosen], np.asarray(graph.agent_ids)[chosen])
    (at, _), count = _count(at, on)
    np.maximum.at(agents, at, count)
    return Parallelism(work, span, work / np.maximum(span, 1), width, agents)


def main_agents(graph: EventGraph, forest: Forest | None = None) -> np.ndarray:
    """The main agent of each trace, the only root whose spawn tree acts: int32 [T], -1 where there is none or several.

    A root does not count if neither it nor any descendant has an action (a simulated user, an unused agent).

    Args:
      graph: a batch.
      forest: its `spawn_forest`, where it is known.
    """
    acting, counts = np.zeros((2, graph.num_agents), bool)
    acting[np.asarray(graph.agent_ids)[np.flatnonzero(_acts(graph))]] = True
    counts[(forest or spawn_forest(graph)).root[acting]] = True
    roots = np.flatnonzero(counts)
    trace = np.asarray(graph.agent_trace)[roots]
    main = np.full(graph.num_traces, -1, np.int32)
    main[trace] = roots
    main[np.bincount(trace, minlength=graph.num_traces) > 1] = -1
    return main


def _acts(graph: EventGraph) -> np.ndarray:
    """Real events that are actions: bool [E]."""
    acts: np.ndarray = np.asarray(graph.event_mask) & np.asarray(graph.action_mask)
    return acts


def derived_stages(graph: EventGraph, main: Array | None = None) -> np.ndarray:
    """Stage of each event, for logs that state none: int32 [E], counted from 0 in each trace; 0 without a main agent.

    A *synchronisation point* is an action of the main agent with a cause among the events of another instance. stage(e)
    is the greatest number of synchronisation points on a path that ends at e, itself included; paths follow the logged
    edges and the main agent's own order. Work that the main agent starts in a stage belongs to that stage until the
    main agent waits for it. The order of concurrent events in the log does not matter.

    Args:
      graph: a batch.
      main: int [T], the main agent of each trace, -1 for none; by default `main_agents`.
    """
    main = main_agents(graph) if main is None else np.asarray(main)
    by_main = _of_main(graph, main)
    agent_ids, (senders, receivers) = np.asarray(graph.agent_ids), real_edges(graph)
    sync = np.zeros(len(by_main), bool)
    sync[receivers[by_main[receivers] & (agent_ids[senders] != agent_ids[receivers])]] = True
    sync &= np.asarray(graph.action_mask)
    stage = np.zeros(len(by_main), np.int32)
    if sync.any():
        # Every path to an event of the main agent may go through all that it did before: these are counted one by one.
        events = np.flatnonzero(by_main)
        count, trace = np.cumsum(sync[events]), np.asarray(graph.trace_ids)[events]
        first = np.searchsorted(trace, trace)
        stage[events] = count - count[first] + sync[events[first]]
        latest = _latest_of_main(by_main, senders, receivers)
        stage[latest >= 0] = stage[latest[latest >= 0]]
    return stage


def _of_main(graph: EventGraph, main: np.ndarray) -> np.ndarray:
    """Events of the main agents: bool [E]."""
    by_main: np.ndarray = main[np.asarray(graph.trace_ids)] == np.asarray(graph.agent_ids)
    by_main &= np.asarray(graph.event_mask)
    return by_main


def _latest_of_main(by_main: np.ndarray, senders: np.ndarray, receivers: np.ndarray) -> np.ndarray:
    """The last event of the main agent with a path to each event, such an event itself: int64 [E], -1 for none."""
    others = ~by_main[receivers]
    number = np.where(by_main, np.arange(1, len(by_main) + 1), 0)
    latest, _ = EdgeOrder(senders[others], receivers[others]).longest(number)
    return np.asarray(latest - 1)


def critical_steps(
    graph: EventGraph, stage: Array | None = None, stage_mask: Array | None = None, main: Array | None = None
) -> CriticalSteps:
    """Number of steps on the critical path of a staged execution, by the count of Kimi's PARL.

        critical steps = Σ over stages s of ( main(s) + max over sub-agents i of sub_i(s) )

    main(s) and sub_i(s) are the numbers of actions in stage s of the main agent and of the instance i; the maximum is 0
    in a stage without sub-agents. Every instance other than the main agent counts as parallel to the others, including
    instances that sub-agents spawned. The count is therefore too small where sub-agents wait for their own sub-agents
    within a stage; `critical_path` counts these. The number is a budget or metric, not a reward.

    Args:
      graph: a batch.
      stage: int [E], the evidence `stage`; a trace that states none, and by default each, has its `derived_stages`.
      stage_mask: bool [E], where the log states a stage; by default where `stage` is not negative.
      main: int [T], the `main_agents`, where they are known.

    Raises:
      CreditError: `stage` or `stage_mask` is not [E].

    Reference: Kimi K2.5 report, section on the agent swarm. The formula follows several independent readings of it.
    """
    main = main_agents(graph) if main is None else np.asarray(main)
    stages, defined = _stages(graph, main, stage, stage_mask)
    steps = np.zeros(graph.num_traces, np.int64)
    np.add.at(steps, stages.trace, stages.own + stages.longest)
    return CriticalSteps(steps, np.bincount(stages.trace, minlength=graph.num_traces), defined)


def decision_steps(graph: EventGraph, stage: Array | None = None, stage_mask: Array | None = None) -> DecisionSteps:
    """The critical steps that each decision of the main agent takes: their sum is that of `critical_steps`.

    An action of the main agent takes one step. The steps of the sub-agent that takes longest in a stage belong to the
    last action of the main agent before its first action there, along the logged edges and the main agent's own order.
    Of several such sub-agents the first one of the log counts.

    Args:
      graph: a batch.
      stage, stage_mask: as of `critical_steps`.

    Raises:
      CreditError: `stage` or `stage_mask` is not [E].
    """
    main = main_agents(graph)
    stages, defined = _stages(graph, main, stage, stage_mask)
    trace_ids, by_main = np.asarray(graph.trace_ids), _of_main(graph, main)
    chosen = np.asarray(graph.action_mask) & by_main
    steps = (chosen & defined[trace_ids]).astype(np.int64)
    runs = np.flatnonzero(stages.sub & (stages.actions == stages.longest[stages.stage]))
    slowest = np.full(len(stages.trace), len(steps))
    np.minimum.at(slowest, stages.stage[runs], stages.first[runs])
    has = slowest < len(steps)
    begun = _latest_of_main(by_main, *real_edges(graph))[slowest[has]]
    before = np.maximum.accumulate(np.where(chosen, np.arange(len(steps)), -1))
    decision = np.where(begun >= 0, before[begun], -1)
    known = (decision >= 0) & (trace_ids[decision] == stages.trace[has])
    np.add.at(steps, decision[known], stages.longest[has][known])
    defined[stages.trace[has][~known]] = False
    return DecisionSteps(np.where(defined[trace_ids], steps, 0), defined)


def _stages(
    graph: EventGraph, main: np.ndarray, stage: Array | None, stage_mask: Array | None
) -> tuple[_Stages, np.ndarray]:
    """Who acts in which stage of the traces whose critical steps are defined, and these traces."""
    real = np.asarray(graph.event_mask)
    stage = derived_stages(graph, main) if stage is None else np.asarray(stage)
    stated = stage >= 0 if stage_mask is None else np.asarray(stage_mask)
    for name, values in (("stage", stage), ("stage_mask", stated)):
        if values.shape != real.shape:
            raise CreditError(f"{name} has shape {values.shape}; expected {real.shape}, one entry for each event")
    trace_ids = np.asarray(graph.trace_ids)
    silent = np.asarray(graph.trace_mask).copy()
    silent[trace_ids[np.flatnonzero(real & stated)]] = False
    if silent.any():  # a trace has the stages that its own log states
        stage = np.where(silent[trace_ids], derived_stages(graph, main), stage)
        stated = stated | silent[trace_ids]
    chosen = np.flatnonzero(_acts(graph))
    defined = np.asarray(graph.trace_mask) & (main >= 0)
    defined[trace_ids[chosen[~stated[chosen]]]] = False
    chosen = chosen[defined[trace_ids[chosen]]]

    (agent, stages), run = _runs(np.asarray(graph.agent_ids)[chosen], stage[chosen])
    trace = np.asarray(graph.agent_trace)[agent]
    sub = agent != main[trace]
    count = np.bincount(run, minlength=len(trace))
    first = np.empty(len(trace), np.int64)
    first[run[::-1]] = chosen[::-1]  # the last assignment is the first action
    (stage_trace, _), stage_of = _runs(trace, stages)
    own, longest = np.zeros(len(stage_trace), np.int64), np.zeros(len(stage_trace), np.int64)
    np.add.at(own, stage_of[~sub], count[~sub])
    np.maximum.at(longest, stage_of[sub], count[sub])
    return _Stages(stage_of, sub, count, first, stage_trace, own, longest), defined


def _count(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of the columns in lexicographic order, and the number of occurrences of each."""
    rows, run = _runs(*columns)
    return rows, np.bincount(run, minlength=rows.shape[1])


def _runs(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows in lexicographic order [columns, distinct], and the index of each row among them.

    Sorts are several times as fast as `np.unique(axis=...)` on a million rows.
    """
    order = by_id(*columns)
    ordered = np.stack([np.asarray(column, np.int64)[order] for column in columns])
    new = np.ones(len(order), bool)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    run = np.empty(len(order), np.int64)
    run[order] = np.cumsum(new) - 1
    return ordered[:, new], run
