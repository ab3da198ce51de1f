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
from graphs.errors import CreditError
from graphs.reading.documents import documents
from graphs.reading.source import Source
from graphs.traces.batch import Traces
from graphs.writers.valid_advantages import valid_advantages

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
    numbers = valid_advantages(traces, np.asarray(advantage), np.asarray(valid), "verifiers")
    waiting = set(traces.traces["trace"].to_pylist())
    files = dict.fromkeys(traces.traces["file"].to_pylist())
    filled = 0
    with atomic_write(path) as out:
        for file in files:
            source = Source(file, Path(file))
            for document in documents(source):
                episode = json.loads(document.raw)
                if isinstance(episode, dict):
                    name = str(episode.get("id"))
                    of_episode = numbers[name] if name in waiting else {}  # refused, or no agent ran
                    waiting.discard(name)
                    filled += sum(_fill(trace, of_episode) for trace in episode.get("traces", [episode]))
                out.write(json.dumps(episode, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
            if source.lost:
                raise CreditError(str(next(iter(source.lost.values())).problem))
        if waiting:
            expected = "the files as read, episodes of verifiers v1 (rows of results.jsonl have no slot for advantages)"
            raise CreditError(f"episode {min(waiting)!r} is not in its file; expected {expected}")
    return filled


def _fill(trace: dict[str, Any], numbers: dict[str, float]) -> int:
    """Set the slot of each sampled node; the number of nodes with an advantage."""
    filled = 0
    for index, node in enumerate(trace.get("nodes", [])):
        amount = numbers.get(f"{trace.get('id')}/{index}")
        if amount is not None:
            node["advantages"] = [amount] * sum(node.get("mask", []))
            filled += 1
        elif "advantages" in node:
            node["advantages"] = None
    return filled
