"""What of a log leaves open whether a method without a bias has none there: its notes, and joint turns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from credit.methods.logged_siblings import has_joint_turns
from credit.methods.method_row import Method
from graphs.traces.batch import Traces
from graphs.traces.repeated_rows import APART, REPEATED_ROWS

__all__ = ["AT_ONE_TIME", "BREAKING", "OF_PAYMENT", "doubts_of_log"]

AT_ONE_TIME = "rewards-at-one-time"
OF_PAYMENT = frozenset({AT_ONE_TIME, "outcome-again"})
"""Of these notes, those on what events were paid."""
_OF_ORDER = frozenset({"unordered-rows", AT_ONE_TIME})
BREAKING = _OF_ORDER | OF_PAYMENT | {REPEATED_ROWS}
"""Notes on a log that leave open whether a method is unbiased in it; those of the order, of methods that read it.

Several policy versions in a group are not among them. A baseline of independent traces has no bias under any version.
Comparison within versions only raises its variance. A claim with mean 0 needs siblings of one version.
"""


def doubts_of_log(
    traces: Traces, method: Method, options: Mapping[str, Any], kinds: Collection[str] = BREAKING
) -> Iterator[str]:
    """What leaves the bias of a method open, in words: notes of these kinds, and rows of agents at once."""
    reads = method.reads_order(options, traces.evidence)
    for note in traces.problems:
        if note.kind in kinds and (reads or note.kind not in _OF_ORDER):
            yield f"{note.field} is {note.value}"
    if method.reads_order(options, (), of_agents=True) and has_joint_turns(traces) and not _stand_by_name(traces):
        yield (
            "agents act at once, and the order of their rows, maybe that in which they ended, numbers their turns; "
            "expected the rows of each round in an order that no action chooses, as by the agents' names"
        )


def _stand_by_name(traces: Traces) -> bool:
    """Whether the rows of each round stand by the agents' names, in as many rounds as are no chance."""
    graph, context = traces.graph, traces.evidence["context"]
    acts = np.flatnonzero(context.mask & np.asarray(graph.action_mask))
    at = np.stack([np.asarray(graph.trace_ids)[acts], context.array[acts]])
    order = np.lexsort(at[::-1])  # stable: rows of a round keep theirs
    _, rank = np.unique(traces.agents["name"].to_pylist(), return_inverse=True)
    name = rank[np.asarray(graph.agent_ids)[acts[order]]]
    same = (np.diff(at[:, order]) == 0).all(0)
    rounds = np.unique(at[:, order[1:]][:, same & (np.diff(name) != 0)], axis=1).shape[1]
    return rounds >= APART and bool((np.diff(name)[same] >= 0).all())
