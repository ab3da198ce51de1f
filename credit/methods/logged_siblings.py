"""Whether a log has siblings, which methods compare: draws of one action from the same context."""

from __future__ import annotations

import numpy as np

from graphs.distinct_columns import distinct_columns
from graphs.replay_clusters import first_of_decision
from graphs.traces.batch import Traces

__all__ = ["why_no_siblings"]


def why_no_siblings(traces: Traces) -> str:
    """Why no action of a log with `context` and `node` has a sibling of its group, to which ids belong; "" if one has.

    Examples:
      >>> import credit
      >>> evidence = {"context": ["c", "c"], "node": ["a", "b"]}
      >>> _, _, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0], evidence=evidence)
      >>> why_no_siblings(rows.traces)
      ''
    """
    graph, context, node = traces.graph, traces.evidence["context"], traces.evidence["node"]
    logged = np.flatnonzero(context.mask & node.mask & np.asarray(graph.action_mask))
    least = np.full(len(context.array), np.iinfo(np.int64).max)  # node of each decision, whatever its actions' order
    np.minimum.at(least, _decisions(traces)[logged], node.array[logged].astype(np.int64))
    drawn = least < np.iinfo(np.int64).max
    group = np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)]
    alternatives = distinct_columns(group[drawn], context.array[drawn], least[drawn]).columns
    if (distinct_columns(*alternatives[:2]).counts > 1).any():
        return ""
    if not len(logged):
        return "no action has both a context and a node, without which its draw is not known from another trace's"
    return "no context has two alternatives: sample siblings of an action from the same frozen prompt"


def _decisions(traces: Traces) -> np.ndarray:
    """The first action of each event's decision."""
    context = traces.evidence["context"]
    actions = context.mask & np.asarray(traces.graph.action_mask)
    return first_of_decision(np.asarray(traces.graph.trace_ids), actions, [context.array])
