"""What of a log leaves open whether a method without a bias has none there: its notes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from credit.methods.method_row import Method
from graphs.event_graph import EventGraph
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.repeated_rows import REPEATED_ROWS
from graphs.traces.turn_gaps import TURN_GAP

__all__ = [
    "AT_ONE_TIME",
    "BREAKING",
    "OF_PAYMENT",
    "SAW_ACTION",
    "TURN_GAP",
    "arrays_of",
    "doubts_of_log",
    "saw_action",
]

SAW_ACTION = (
    "value is q_value at every action that has both, as if it had been computed after the action; expected a value "
    "from before it"
)
"""Said where a value is subtracted that knows what was chosen."""

AT_ONE_TIME = "rewards-at-one-time"
OF_PAYMENT = frozenset({AT_ONE_TIME, "outcome-again"})
"""Of these notes, those on what events were paid."""
_OF_ORDER = frozenset({"unordered-rows", AT_ONE_TIME, TURN_GAP})
BREAKING = _OF_ORDER | OF_PAYMENT | {REPEATED_ROWS}
"""Notes on a log that leave open whether a method is unbiased in it; those of the order, of methods that read it.

Several policy versions in a group are not among them. A baseline of independent traces has no bias under any version.
Comparison within versions only raises its variance. A claim with mean 0 needs siblings of one version.
"""


def doubts_of_log(
    traces: Traces, method: Method, options: Mapping[str, Any], kinds: Collection[str] = BREAKING
) -> Iterator[str]:
    """What leaves the bias of a method open, in words: notes of these kinds."""
    if "value" in method.needs and saw_action(traces.graph, arrays_of(traces)):
        yield SAW_ACTION
    reads = method.reads_order(options, traces.evidence)
    for note in traces.problems:
        if note.kind in kinds and (reads or note.kind not in _OF_ORDER):
            what = {REPEATED_ROWS: "such row", TURN_GAP: "such trace"}.get(note.kind)
            such = f" ({counted(note.count, what)})" if what and note.count > 1 else ""
            line = {REPEATED_ROWS: f"line {note.line}", TURN_GAP: f"turn of line {note.line}"}
            yield f"{line.get(note.kind, note.field)} is {note.value}{such}"


def arrays_of(traces: Traces) -> dict[str, np.ndarray]:
    """The evidence that `saw_action` compares."""
    return {name: traces.evidence[name].array for name in ("value", "q_value") if name in traces.evidence}


def saw_action(graph: EventGraph, evidence: Mapping[str, np.ndarray]) -> bool:
    """Whether two actions or more have both values, which are equal at each and differ among them."""
    if not {"value", "q_value"} <= evidence.keys():
        return False
    value, of_choice = (np.asarray(evidence[name]) for name in ("value", "q_value"))
    both = np.isfinite(value) & np.isfinite(of_choice) & np.asarray(graph.action_mask)
    numbers = value[both]
    return bool(len(numbers) and np.ptp(numbers) > 0 and np.allclose(numbers, of_choice[both], rtol=1e-6, atol=0))
