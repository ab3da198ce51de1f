"""Which agents act in tasks of which kind, and how often these runs succeed."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.reports.judged_traces import judged_traces
from credit.reports.taking_part import taking_part
from credit.reports.task_kinds import task_kinds
from credit.reports.verdict_channels import of_one_source
from graphs.traces.batch import Traces

__all__ = ["AgentOfKind", "agents_by_kind"]


@dataclasses.dataclass(frozen=True)
class AgentOfKind:
    """An agent in runs of a kind of task.

    Attributes:
      kind, agent: names.
      traces: in how many traces of the kind it acts.
      of_traces: of how many that tell (`taking_part`).
      succeeded: how many of those with an outcome in which it acts succeeded.
      of_known: of how many.
      others_succeeded, of_others: the same of those in which it does not.
    """

    kind: str
    agent: str
    traces: int
    of_traces: int
    succeeded: int
    of_known: int
    others_succeeded: int
    of_others: int


def agents_by_kind(traces: Traces, success_at: float | None = None) -> list[AgentOfKind]:
    """Agents that act in some runs and not in others, in each kind of task; kinds of most tasks, and agents of most
    runs, first. None where no kinds of task are told.

    Args:
      traces: what was read.
      success_at: as of `judged_traces`.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], agent=["x", "y"], reward=[1.0, 0.0])
      >>> agents_by_kind(rows.traces)
      []
    """
    traces = of_one_source(traces)
    (kinds, kind), (agents, acts, tells) = task_kinds(traces), taking_part(traces)
    judged, found = judged_traces(traces, success_at), []
    known = judged.failed | judged.succeeded
    for i, name in enumerate(kinds):
        of_kind = []
        for agent, having, telling in zip(agents, acts, tells, strict=True):
            its, others = (telling & (kind == i) & part for part in (having, ~having))
            if its.any():
                counts = (np.sum(part & of) for part in (its, others) for of in (judged.succeeded, known))
                of_kind.append(AgentOfKind(name, agent, int(its.sum()), int((its | others).sum()), *map(int, counts)))
        found += sorted(of_kind, key=lambda one: (-one.traces, one.agent))
    return found
