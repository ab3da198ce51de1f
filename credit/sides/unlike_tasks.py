"""Whether systems ran unlike mixes of tasks, so that what differs of a trace may be the tasks."""

from __future__ import annotations

import numpy as np

from credit.reports.tasks import task_ids
from graphs.structure.host_ids import ranked
from graphs.text import printable
from graphs.traces.batch import Traces

__all__ = ["unlike_tasks"]

UNLIKE = 0.05
"""Part of the traces of one system that are of tasks of which another one ran a smaller part, from which it is told. If
one task costs ten times another, amounts of a trace are then up to 45 % apart; where a few runs are lost, less is."""


def unlike_tasks(traces: Traces) -> str:
    """A sentence on the two systems whose mixes of tasks are most unlike, of which one has the most traces; "" where
    all are alike.

    Args:
      traces: what was read.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> runs = [("a", "easy", "v1"), ("b", "easy", "v1"), ("c", "easy", "v2"), ("d", "hard", "v2")]
      >>> records = [TraceRecord(*of, "log.jsonl", system=system, instances={"x": Agent()}) for *of, system in runs]
      >>> _ = [record.event("e", 3, "x", action=True) for record in records]
      >>> unlike_tasks(assemble(records)).partition(". ")[0]
      'the mixes of tasks of v1 and v2 are unlike, so amounts of a trace are of unlike tasks'
    """
    stated, task = np.asarray(traces.traces["system"].to_pylist(), object), task_ids(traces)
    known = np.array([bool(name) for name in stated], bool)
    if len({*stated[known]}) < 2:
        return ""
    (names, system), task = ranked(stated[known].tolist()), task[known]
    size = np.bincount(system)
    pairs, runs = np.unique(system * (task.max() + np.int64(1)) + task, return_counts=True)
    of, which = np.divmod(pairs, task.max() + 1)
    part, most = runs / size[of], int(size.argmax())
    theirs = np.zeros(task.max() + 1)
    theirs[which[of == most]] = part[of == most]
    alike = np.bincount(of, np.minimum(part, theirs[which]))
    least = int(alike.argmin())
    if alike[least] > 1 - UNLIKE:
        return ""
    first, second = (printable(names[one], 60) for one in sorted((most, least)))
    if alike[least] == 0:
        return f"no task is of both {first} and {second}: those of one may be harder"
    asked = "system" if len(names) == 2 else f"system={first},{second}"
    why = f"the mixes of tasks of {first} and {second} are unlike, so amounts of a trace are of unlike tasks"
    return f"{why}. With each task weighed alike: credit metrics --sides {asked}"
