"""The advantages that a writer may put into a log: those that are valid, of actions of agents that are trained."""

from __future__ import annotations

import numpy as np

from graphs.errors import CreditError
from graphs.traces.batch import Traces

__all__ = ["valid_advantages"]


def valid_advantages(
    traces: Traces, advantage: np.ndarray, valid: np.ndarray, format: str
) -> dict[str, dict[str, float]]:
    """By trace and event id, the valid advantages of actions of agents that are trained.

    Raises:
      CreditError: a trace has another format, an array is too short, or a valid advantage is not finite.
    """
    formats = set(traces.traces["format"].to_pylist())
    if formats != {format}:
        raise CreditError(f"traces are of the formats {', '.join(sorted(formats))}; expected {format} alone")
    count = traces.sizes.events
    if len(advantage) < count or len(valid) < count:
        raise CreditError(f"advantage has {len(advantage)} numbers and valid {len(valid)}; expected {count} events")
    names = traces.traces["trace"].to_pylist()
    advantages: dict[str, dict[str, float]] = {name: {} for name in names}
    kept = np.asarray(valid[:count], bool) & np.asarray(traces.graph.action_mask)[:count]
    if "trainable" in traces.evidence:
        trainable = traces.evidence["trainable"]
        kept &= trainable.array[:count] != 0  # NaN where the log has no value
    rows = np.flatnonzero(kept)
    events = traces.events["event"].take(rows).to_pylist()
    for row, event in zip(rows.tolist(), events, strict=True):
        amount = float(advantage[row])
        if not np.isfinite(amount):
            raise CreditError(f"advantage[{row}] is {amount}; expected a finite number where valid")
        advantages[names[int(traces.graph.trace_ids[row])]][event] = amount
    return advantages
