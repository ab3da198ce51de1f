"""Numbers of events: who joins and leaves the team, how large it is, and the critical steps of each decision."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from credit.metrics.metric_summary import metric_means
from credit.reports.missing_lines import LACKING, lacking_traces
from credit.reports.trace_numbers import NO_ACTION, numbered
from graphs.errors import CreditError, expect
from graphs.event_graph import EventType
from graphs.structure.critical_path import decision_steps
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CoursePoint",
    "DecisionCost",
    "TeamEvents",
    "decision_costs",
    "event_table",
    "steps_of_decisions",
    "team_course",
    "team_events",
]

PARTS = 10
NO_MAIN = "no single main agent, an action without a stage, or a sub-agent that no action of the main agent led to"


class TeamEvents(NamedTuple):
    """Who joins and leaves the team. Each is of the events of a batch.

    Attributes:
      births: bool [events], the first event of an agent that acts.
      deaths: bool [events], its last event.
      size: int64 [events], agents between their first and last events, these included.
    """

    births: np.ndarray
    deaths: np.ndarray
    size: np.ndarray


@dataclasses.dataclass(frozen=True)
class CoursePoint:
    """The team after a part of the events of a trace, as means over tasks.

    Attributes:
      part: of the events of a trace.
      births, deaths: agents that joined, and left, up to there; the first agent and the last one count.
      size: agents at the last event of the part.
      traces, tasks: how many there are.
    """

    part: float
    births: float
    deaths: float
    size: float
    traces: int
    tasks: int


@dataclasses.dataclass(frozen=True)
class DecisionCost:
    """The decisions of one type by main agents of one name.

    Attributes:
      agent, type: whose, and the type of the events.
      decisions: how many there are.
      steps: critical steps of a decision, on average; 1 is its own.
      share: their part of all critical steps.
    """

    agent: str
    type: str
    decisions: int
    steps: float
    share: float


def team_events(traces: Traces) -> TeamEvents:
    """Births, deaths and the size of the team at each event.

    An instance that acts is in the team from its first event to its last one. Tools, people and simulated users do not
    act. Every form of a log has these; who spawned whom, and agents without an event, only some have.

    Args:
      traces: what was read.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a"] * 3, agent=["x", "y", "x"], reward=[1.0] * 3)
      >>> team_events(rows.traces).size.tolist()
      [1, 2, 1]
    """
    expect("traces", traces, Traces, "what credit.read returns")
    graph, n = traces.graph, traces.sizes.events
    agent, action = np.asarray(graph.agent_ids)[:n], np.asarray(graph.action_mask)[:n]
    first, last, rows = np.zeros(graph.num_agents, np.int64), np.zeros(graph.num_agents, np.int64), np.arange(n)
    first[agent[::-1]], last[agent] = rows[::-1], rows  # the last assignment counts
    acts = np.bincount(agent[action], minlength=graph.num_agents) > 0
    births, deaths = np.zeros(n, bool), np.zeros(n, bool)
    births[first[acts]], deaths[last[acts]] = True, True
    size = np.cumsum(births) - np.cumsum(deaths) + deaths  # 0 between traces, whose events are contiguous
    return TeamEvents(births, deaths, size)


def steps_of_decisions(traces: Traces) -> tuple[np.ndarray, list[str]]:
    """The critical steps of each decision of the main agent (`graphs.structure.critical_path.decision_steps`).

    Args:
      traces: what was read; its evidence `stage`, if it has any, tells the stages.

    Returns:
      float64 [events], NaN at other events; and for each trace why it has none, "" where it has.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a"] * 3, agent=["x", "y", "x"], parent=[None, "x", None], reward=[1.0] * 3,
      ...     edges={"sender": [0, 1], "receiver": [1, 2]})
      >>> steps_of_decisions(rows.traces)[0].tolist()
      [2.0, nan, 1.0]
    """
    expect("traces", traces, Traces, "what credit.read returns")
    graph, n, m = traces.graph, traces.sizes.events, traces.sizes.traces
    stage = traces.evidence.get("stage")
    found = decision_steps(graph) if stage is None else decision_steps(graph, stage.array)
    acting = np.asarray(graph.trace_ids)[np.asarray(graph.action_mask)]
    idle = np.bincount(acting, minlength=m)[:m] == 0
    lacking = lacking_traces(traces)
    reasons = numbered(np.zeros(m), (lacking, LACKING), (idle, NO_ACTION), (~found.defined[:m], NO_MAIN)).reasons
    known = (found.steps[:n] > 0) & ~lacking[np.asarray(graph.trace_ids)[:n]]
    return np.where(known, found.steps[:n].astype(np.float64), np.nan), reasons


def team_course(traces: Traces) -> list[CoursePoint]:
    """Births, deaths and the size of the team after each tenth of the events of a trace.

    Position in the log is the time: clocks may be absent or wrong. Means are over tasks of means over their traces.
    Traces that lack lines are left out (`lacking_traces`).

    Args:
      traces: what was read.

    Raises:
      CreditError: every trace lacks lines.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"] * 2, trace=["a"] * 2, agent=["x", "y"], reward=[1.0] * 2)
      >>> [(point.part, point.births, point.deaths) for point in team_course(rows.traces)][4:6]
      [(0.5, 1.0, 1.0), (0.6, 2.0, 2.0)]
    """
    found, lacking = team_events(traces), lacking_traces(traces)
    if lacking.all():
        raise CreditError("the log lacks lines of every trace")
    n, m = traces.sizes.events, traces.sizes.traces
    trace = np.asarray(traces.graph.trace_ids)[:n]
    count = np.bincount(trace, minlength=m)
    start = np.cumsum(count) - count
    points = []
    for tenth in range(1, PARTS + 1):
        last = start + np.maximum(-(-tenth * count // PARTS), 1) - 1
        alone = {}
        for name in ("births", "deaths"):
            total = np.append(0, np.cumsum(getattr(found, name)))
            alone[name] = total[last + 1] - total[start]
        alone["size"] = found.size[last]
        rows = metric_means(traces, {name: numbered(values, (lacking, LACKING)) for name, values in alone.items()})
        births, deaths, size = (row.mean or 0.0 for row in rows)
        points.append(CoursePoint(tenth / PARTS, births, deaths, size, rows[0].traces, rows[0].tasks))
    return points


def decision_costs(traces: Traces) -> list[DecisionCost]:
    """The critical steps of decisions by agent and type, the greatest sum first.

    Args:
      traces: what was read.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"] * 2, trace=["a"] * 2, agent=["x", "x"], reward=[1.0] * 2)
      >>> decision_costs(rows.traces)
      [DecisionCost(agent='x', type='message', decisions=2, steps=1.0, share=1.0)]
    """
    steps, _ = steps_of_decisions(traces)
    rows = np.flatnonzero(np.isfinite(steps))
    names, graph = traces.agents["name"].to_pylist(), traces.graph
    of: dict[tuple[str, str], list[float]] = {}
    for row, agent, kind in zip(
        rows.tolist(), np.asarray(graph.agent_ids)[rows].tolist(), np.asarray(graph.event_type)[rows].tolist(),
        strict=True,
    ):  # fmt: skip
        of.setdefault((names[agent], EventType(kind).name.lower()), []).append(float(steps[row]))
    total = sum(map(sum, of.values()))
    costs = [DecisionCost(*key, len(x), sum(x) / len(x), sum(x) / total) for key, x in of.items()]
    return sorted(costs, key=lambda cost: (-cost.share, cost.agent, cost.type))


def event_table(traces: Traces) -> pa.Table:
    """A row for each event: its trace and id, as tables of advantages have them, and a column for each number.

    Events of traces that lack lines have none.
    """
    import pyarrow as pa

    found, (steps, _) = team_events(traces), steps_of_decisions(traces)
    of = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    lacking = lacking_traces(traces)[of]
    births, deaths, size = (pa.array(column, mask=lacking) for column in found)
    return pa.table(
        {
            "trace": traces.traces["trace"].take(of), "event": traces.events["event"], "births": births,
            "deaths": deaths, "team_size": size, "critical_steps": pa.array(steps, pa.float64(), from_pandas=True),
        }
    )  # fmt: skip
