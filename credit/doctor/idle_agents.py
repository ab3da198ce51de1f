"""Which agents ride free (`free_riding`), in how many traces, and what that cost."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.doctor.team_checks import is_habit
from credit.doctor.team_work import TeamWork
from credit.metrics.cost_summary import Amount
from credit.metrics.event_costs import Prices
from credit.metrics.part_costs import LEAST_PART, part_costs, told_cost, unit_paid
from credit.reports.missing_lines import lacking_traces
from credit.reports.outcome_differences import OutcomeDifferences
from credit.reports.trace_numbers import TraceMetric, of_whole_traces
from graphs.text import percent, printable
from graphs.traces.batch import Traces

__all__ = ["IdleAgent", "costly_agents", "idle_agents", "idle_losses"]

NAME = 40
"""Length of a name in a sentence."""
GAIN = 0.15
"""Part of the traces in which an agent that helps little surely helps at most."""


@dataclasses.dataclass(frozen=True)
class IdleAgent:
    """An agent that some traces did without.

    Attributes:
      agent: its name.
      traces, of_traces: in how many it is idle, of how many that tell.
      unread: in how many the last action does not depend on it; in others it only repeats.
      costs, shares: what it cost in these (`part_costs`).
    """

    agent: str
    traces: int
    of_traces: int
    unread: int
    costs: dict[str, Amount]
    shares: dict[str, float]

    @property
    def share(self) -> float:
        """Its part of the cost that `unit_paid` names; 0 where that is not known."""
        return self.shares.get(unit_paid([(self.costs, self.shares)]), 0.0)

    @property
    def where(self) -> str:
        """Its name, and in how many traces it is idle."""
        return f"{printable(self.agent, NAME)} in {self.traces} of {self.of_traces} traces"

    @property
    def why(self) -> str:
        """In what it is idle."""
        repeats = "it only repeats others"
        unread = "the last action does not depend on what it did"
        return " or ".join([unread] * (self.unread > 0) + [repeats] * (self.unread < self.traces))

    def told(self) -> str:
        """In a sentence, as in `coder in 12 of 24 traces: the last action does not depend on what it did; ...`."""
        return "; ".join(filter(None, (f"{self.where}: {self.why}", told_cost(self.costs, self.shares))))


def idle_agents(traces: Traces, prices: Prices | None = None) -> list[IdleAgent]:
    """The agents that are idle in some trace, those of most traces first.

    Args:
      traces: what was read.
      prices: of models and tools; without them there is no money but what the log states.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["planner"], reward=[1.0])
      >>> idle_agents(rows.traces)
      []
    """
    work = TeamWork(traces)
    return _costs_of(traces, work, work.unread | work.repeating, work.free_riding(), prices)


def idle_losses(traces: Traces, differing: OutcomeDifferences, prices: Prices | None = None) -> list[str]:
    """What the costliest agent cost where nothing depends on it, a habit of the team, from `LEAST_PART` of all on; and
    the costliest other one of `costly_agents`.

    Args:
      traces, prices: as of `idle_agents`.
      differing: `outcome_differences` of these, with what agents were paid by these prices.
    """
    work = TeamWork(traces)
    number, lost, undecided = work.unread_agents(), dict[str, str](), costly_agents(differing)
    if is_habit(traces, "free_riding", number):
        most = max(_costs_of(traces, work, work.unread, number, prices), key=lambda one: one.share)
        if most.share >= LEAST_PART:
            cost = told_cost(most.costs, most.shares)
            lost = {most.agent: f"{cost} went into {most.where}, where {most.why}"}
    others = [told for name, told in undecided.items() if name not in lost]
    return [*lost.values(), *others[:1]]


def costly_agents(differing: OutcomeDifferences) -> dict[str, str]:
    """What agents cost that help little, in sentences, the costliest first: those of `LEAST_PART` of all that
    surely help in at most `GAIN` of the traces, and in less than that part.

    Args:
      differing: `outcome_differences`, with what agents were paid.
    """
    paid = sorted(differing.agents_paid.items(), key=lambda one: -one[1])
    return {
        name: f"{percent(part)} of the {differing.paid_in} went into {printable(name, NAME)}, which "
        f"helps little, if at all ({differing.adds(name)}; it may be called where runs go wrong)"
        for name, part in paid
        if part >= LEAST_PART and name in differing.agents_alike and differing.agents_alike[name][2] <= min(part, GAIN)
    }


def _costs_of(
    traces: Traces, work: TeamWork, idle: np.ndarray, number: TraceMetric, prices: Prices | None
) -> list[IdleAgent]:
    known = np.isfinite(of_whole_traces(number, lacking_traces(traces)).value)
    rows = np.flatnonzero(idle)
    rows = rows[known[work.owner[rows]]]
    names, which = np.unique(np.array(traces.agents["name"].to_pylist(), str)[rows], return_inverse=True)
    part = np.full(len(idle), len(names))
    part[rows] = which
    found = []
    for i, costs in enumerate(part_costs(traces, part[work.agent], len(names), prices)):
        of, unread = (len(np.unique(work.owner[some])) for some in (part == i, (part == i) & work.unread))
        found.append(IdleAgent(str(names[i]), of, int(known.sum()), unread, *costs))
    return sorted(found, key=lambda one: (-one.traces, one.agent))
