"""Numbers of events: who joins and leaves the team, how large it is, and the critical steps of each decision."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from credit.metrics.metric_summary import metric_means
from credit.reports.clock import first_of_each, last_of_each
from credit.reports.missing_lines import LACKING, lacking_traces
from credit.reports.trace_numbers import NO_ACTION, TeamFacts, numbered
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
      deaths: bool [events], its last event, the one that ends last.
      size: int64 [events], agents in the team as the event begins; its own, if that acts, is one.
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

    An instance that acts is in the team from the begin of its first event to the end of its last one, by the clock of
    the log (`credit.reports.clock`). One that joins at the moment at which another leaves is not with it. Tools, people
    and simulated users do not act. Every form of a log has these; who spawned whom, and agents without an event, only
    some have.

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
    facts = TeamFacts.of(traces)
    agent, clock, n = facts.agent, facts.clock, traces.sizes.events
    acts, born, died = _lives(facts)
    births, deaths, rows = np.zeros(n, bool), np.zeros(n, bool), np.arange(n)
    births[first_of_each(agent, rows, clock.at, len(acts))[acts]] = True
    deaths[last_of_each(agent, rows, clock.end, len(acts))[acts]] = True
    # Who is there right after a moment, right before it, and both: an agent of one moment is there at that one alone.
    lasts = acts & (died > born)
    joined, left = (np.bincount(at[lasts], minlength=int(clock.end.max(initial=-1)) + 1) for at in (born, died))
    after = np.cumsum(joined - left)
    before, through = after - joined + left, after - joined
    around = np.where(died[agent] > clock.at, after[clock.at], before[clock.at])
    size = np.where(lasts[agent], around, through[clock.at] + acts[agent])
    return TeamEvents(births, deaths, size)


def _lives(facts: TeamFacts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each instance acts, and the moments at which its first event begins and its last one ends: [A] each."""
    acts = facts.counts.acts > 0
    born, died = np.full(len(acts), facts.clock.end.max(initial=0)), np.zeros(len(acts), np.int64)
    np.minimum.at(born, facts.agent, facts.clock.begin)
    np.maximum.at(died, facts.agent, facts.clock.end)
    return acts, born, died


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

    Events are in the order of the clock (`credit.reports.clock`). Means are over tasks of means over their traces.
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
    facts, lacking = TeamFacts.of(traces), lacking_traces(traces)
    if lacking.all():
        raise CreditError("the log lacks lines of every trace")
    clock, (acts, born, died) = facts.clock, _lives(facts)
    size = team_events(traces).size
    order = np.lexsort((size, clock.at))  # the events of one moment have no other order
    count = np.bincount(facts.trace, minlength=traces.sizes.traces)
    start = np.cumsum(count) - count
    final = facts.greatest(clock.end)
    # Moments are numbered trace after trace, so that what came before a trace is taken off.
    so_far = [np.append(0, np.cumsum(np.bincount(at[acts], minlength=final.max(initial=0) + 1))) for at in (born, died)]
    earlier = np.append(0, final[:-1] + 1)
    points = []
    for tenth in range(1, PARTS + 1):
        last = order[start + np.maximum(-(-tenth * count // PARTS), 1) - 1]
        moment = (final if tenth == PARTS else clock.at[last]) + 1
        alone = dict(zip(("births", "deaths"), (total[moment] - total[earlier] for total in so_far), strict=True))
        alone["size"] = size[last]
        rows = metric_means(traces, {name: numbered(values, (lacking, LACKING)) for name, values in alone.items()})
        births, deaths, agents = (row.mean or 0.0 for row in rows)
        points.append(CoursePoint(tenth / PARTS, births, deaths, agents, rows[0].traces, rows[0].tasks))
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
