"""Writer of advantages into episodes of verifiers v1.

Each message node has a slot `advantages`: a list with one number for each sampled token, in the layout of `logprobs`.
Trainers that read these files (prime-rl) use this slot.
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
    """Write a copy of the episodes of a batch with the advantage of each model call at its sampled tokens.

    The list of a node repeats the advantage of its event for every sampled token. A node without a valid advantage (not
    identified, of an agent that is not trained, or of an episode that is not in the batch) gets `null`, which verifiers
    reads as unassigned. Previous content of the slot is dropped; everything else in the file is unchanged.

    Args:
      traces: episodes that `credit.read` read from files; all of the format "verifiers".
      advantage: float [E], advantage of each event.
      valid: bool [E], True where the advantage is valid.
      path: the JSON lines file to write, whole or not at all.

    Returns:
      The number of nodes with an advantage.

    Raises:
      CreditError: a trace has another format or is from standard input, an array is too short, a valid advantage is not
        finite, or an episode of the batch is no longer in its file.
      OSError: a file cannot be read or written.
    """
    numbers = _by_node(traces, np.asarray(advantage), np.asarray(valid))
    waiting = set(traces.traces["trace"].to_pylist())
    files = dict.fromkeys(traces.traces["file"].to_pylist())
    filled = 0
    with atomic_write(path) as out:
        for file in files:
            for document in documents(Source(file, Path(file))):
                if isinstance(document, Problem):
                    raise CreditError(str(document))
                episode = json.loads(document.raw)
                if isinstance(episode, dict):
                    name = str(episode.get("id"))
                    own = numbers[name] if name in waiting else {}  # refused, or no agent ran
                    waiting.discard(name)
                    filled += sum(_fill(trace, own) for trace in episode.get("traces", [episode]))
                out.write(json.dumps(episode, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        if waiting:
            expected = "the files as read, episodes of verifiers v1 (rows of results.jsonl have no slot for advantages)"
            raise CreditError(f"episode {min(waiting)!r} is not in its file; expected {expected}")
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
        kept &= trainable.array[:count] != 0  # NaN where the log has no value
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
