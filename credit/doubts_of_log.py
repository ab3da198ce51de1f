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
    "SAW_LATER",
    "TURN_GAP",
    "arrays_of",
    "doubts_of_log",
    "saw_later",
]

_SAW_ACTION = (
    "value is q_value at every action that has both, as if it had been computed after the action; expected a value "
    "from before it"
)
_SAW_OUTCOME = (
    "value is what its own trace earned at every action, as if it had been computed after the end; expected a value "
    "from before the action"
)
SAW_LATER = (_SAW_ACTION, _SAW_OUTCOME)
"""Said where a value is subtracted that knows what was chosen, or how the trace ended."""
_COMPARED = frozenset({"value", "q_value", "event_reward"})

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
    if "value" in method.needs and (saw := saw_later(traces.graph, arrays_of(traces), traces.reward)):
        yield saw
    reads = method.reads_order(options, traces.evidence)
    for note in traces.problems:
        if note.kind in kinds and (reads or note.kind not in _OF_ORDER):
            what = {REPEATED_ROWS: "such row", TURN_GAP: "such trace"}.get(note.kind)
            such = f" ({counted(note.count, what)})" if what and note.count > 1 else ""
            line = {REPEATED_ROWS: f"line {note.line}", TURN_GAP: f"{note.field} of line {note.line}"}
            yield f"{line.get(note.kind, note.field)} is {note.value}{such}"


def arrays_of(traces: Traces) -> dict[str, np.ndarray]:
    """The evidence that `saw_later` compares."""
    return {name: traces.evidence[name].array for name in _COMPARED & traces.evidence.keys()}


def saw_later(graph: EventGraph, evidence: Mapping[str, np.ndarray], reward: Any) -> str:
    """What the values of a batch have seen, as of `SAW_LATER`; "" where they saw nothing, or are all equal.

    Args:
      graph: the batch.
      evidence: `value`, and maybe `q_value` and `event_reward`, [E] each.
      reward: outcomes, [T].
    """
    if "value" not in evidence:
        return ""
    n = int(np.count_nonzero(graph.event_mask))
    known = {name: np.asarray(evidence[name])[:n].astype(np.float64) for name in _COMPARED & evidence.keys()}
    value, trace = known["value"], np.asarray(graph.trace_ids)[:n]
    value[~np.asarray(graph.action_mask)[:n]] = np.nan
    if "q_value" in known and _are_equal(value, known["q_value"], np.zeros(n)):
        return _SAW_ACTION
    group, earned = np.asarray(graph.group_ids)[trace], np.asarray(reward)[trace].astype(np.float64)
    if "event_reward" in known:  # from each event on
        paid = np.nan_to_num(known["event_reward"]).cumsum()
        last = np.append(np.flatnonzero(np.diff(trace)), n - 1)
        earned += np.repeat(paid[last], np.diff(last, prepend=-1)) - np.append(0, paid[:-1])
    alone = len(np.unique(group)) == len(np.unique(trace))
    return _SAW_OUTCOME if _are_equal(value, earned, np.zeros(n) if alone else group) else ""


def _are_equal(value: np.ndarray, other: np.ndarray, part: np.ndarray) -> bool:
    """Whether values are equal wherever both are known, and differ within a part."""
    both = np.isfinite(value) & np.isfinite(other)
    value, other, part = value[both], other[both], part[both]
    if not len(value) or np.abs(value - other).max() > 1e-5 * np.ptp(other):
        return False
    order = np.lexsort((value, part))
    return bool(((np.diff(value[order]) > 0) & (np.diff(part[order]) == 0)).any())
