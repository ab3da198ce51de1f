"""In which traces each agent acts, and where that says more than the format of the trace, or that it was cut short."""

from __future__ import annotations

import numpy as np

from credit.reports.endings import ended_early
from credit.reports.missing_lines import lacking_traces
from graphs.traces.batch import Traces

__all__ = ["taking_part"]


def taking_part(traces: Traces) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The names of agents in order, the traces in which each has an action, and those that tell: bool [names, traces].

    An agent that is in all traces of a format, or in none, says no more of a trace than its format does. One that is
    missing only where traces end early may have had no turn there. Neither tells. Of the others all traces of the
    format tell, as a run that an agent ended is one with it, but those that lack lines, which may be all of an agent's.

    Args:
      traces: what was read.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["s", "s", "t"], agent=["a", "b", "a"], reward=[1.0, 1.0, 0.0])
      >>> names, acts, tells = taking_part(rows.traces)
      >>> names, acts.tolist(), tells.tolist()
      (['a', 'b'], [[True, True], [True, False]], [[False, False], [True, True]])
    """
    graph, n = traces.graph, traces.sizes
    rows = np.flatnonzero(np.asarray(graph.action_mask)[: n.events])
    names, of = np.unique(np.array(traces.agents["name"].to_pylist(), object).astype(str), return_inverse=True)
    acts, tells = np.zeros((2, len(names), n.traces), bool)
    acts[of[np.asarray(graph.agent_ids)[rows]], np.asarray(graph.trace_ids)[rows]] = True
    told, ended = ~lacking_traces(traces), ~ended_early(traces)[0]
    formats = np.array(traces.traces["format"].to_pylist(), object)
    for one in {*formats.tolist()}:
        of_format = told & (formats == one)
        both = (acts & of_format).any(axis=1) & (~acts & of_format & ended).any(axis=1)
        tells |= both[:, None] & of_format
    return names.tolist(), acts, tells
