"""Advantages written back into the episodes of verifiers v1 that they were computed from.

Each message node has a slot `advantages`: a list with one number for each token that the model sampled, in the layout
of `logprobs`. The trainers that read these files (prime-rl) take them from there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphs.atomic import atomic_write
from graphs.errors import CreditError, Problem
from graphs.readers.common.places import documents
from graphs.readers.common.source import Source
from graphs.traces.batch import Traces

__all__ = ["write"]


def write(
    traces: Traces, advantage: np.ndarray | Sequence[float], valid: np.ndarray | Sequence[bool], path: str | Path
) -> int:
    """Write the episodes that were read again, with the advantage of each model call at its sampled tokens.

    A node's list repeats the advantage of its event for every sampled token. A node whose event has no valid advantage
    (not identified, or of an agent that is not trained) has `null`, which verifiers reads as unassigned; what the slot
    held before is dropped. Everything else in the file stays as it is.

    Args:
      traces: episodes that `credit.read` read from files; all of the format "verifiers".
      advantage: [E] advantage of each event.
      valid: [E] whether it is one.
      path: the JSON lines file to write; it appears whole or not at all.

    Returns:
      How many nodes got advantages.

    Raises:
      CreditError: a trace of another format or from standard input; arrays of another length; a number that is not
        finite; an episode of the batch that its file does not hold any more.
      OSError: a file cannot be read or written.
    """
    numbers = _by_node(traces, np.asarray(advantage), np.asarray(valid))
    waiting = set(traces.traces["trace"].to_pylist())
    files = dict.fromkeys(traces.traces["file"].to_pylist())
    filled = 0
    with atomic_write(path) as out:
        for name in files:
            for document in documents(Source(name, Path(name))):
                if isinstance(document, Problem):
                    raise CreditError(str(document))
                episode = json.loads(document.raw)
                if isinstance(episode, dict) and episode.get("id") in waiting:  # others were not read: no agent ran
                    waiting.discard(episode["id"])
                    filled += sum(_fill(trace, numbers[episode["id"]]) for trace in episode.get("traces", [episode]))
                out.write(json.dumps(episode, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        if waiting:
            raise CreditError(f"episode {min(waiting)!r} is not in its file any more; expected the files as read")
    return filled


def _by_node(traces: Traces, advantage: np.ndarray, valid: np.ndarray) -> dict[str, dict[str, float]]:
    """By episode and event id, the advantages that are valid."""
    formats = set(traces.traces["format"].to_pylist())
    if formats != {"verifiers"}:
        raise CreditError(f"traces are of the formats {', '.join(sorted(formats))}; expected verifiers alone")
    count = traces.sizes.events
    if len(advantage) < count or len(valid) < count:
        raise CreditError(f"advantage has {len(advantage)} numbers and valid {len(valid)}; expected {count} events")
    names = traces.traces["trace"].to_pylist()
    advantages: dict[str, dict[str, float]] = {name: {} for name in names}
    kept = np.asarray(valid[:count], bool) & np.asarray(traces.graph.action_mask)[:count]
    if "trainable" in traces.evidence:
        trainable = traces.evidence["trainable"]
        kept &= trainable.array[:count] != 0  # NaN where the log does not say
    rows = np.flatnonzero(kept)
    events = traces.events["event"].take(rows).to_pylist()
    for row, event in zip(rows.tolist(), events, strict=True):
        amount = float(advantage[row])
        if not np.isfinite(amount):
            raise CreditError(f"advantage[{row}] is {amount}; expected a finite number where valid")
        advantages[names[int(traces.graph.trace_ids[row])]][event] = amount
    return advantages


def _fill(trace: dict[str, Any], numbers: dict[str, float]) -> int:
    """Set the slot of each sampled node; how many got numbers."""
    filled = 0
    for index, node in enumerate(trace.get("nodes", [])):
        amount = numbers.get(f"{trace.get('id')}/{index}")
        if amount is not None:
            node["advantages"] = [amount] * sum(node.get("mask", []))
            filled += 1
        elif "advantages" in node:
            node["advantages"] = None
    return filled
