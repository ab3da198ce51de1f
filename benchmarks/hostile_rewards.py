"""Whether a log states the rewards that were read from it; for `hostile.py` and `hostile_commands.py`."""

from __future__ import annotations

import io
import itertools
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from hostile_tables import numbers_in, rewards_beside

if TYPE_CHECKING:
    from graphs.traces.batch import Traces

VERDICTS = (0.0, 0.5, 1.0)
"""Rewards that a log may state by a word: true and false, correct, partial and incorrect."""
_NUMBER = re.compile(rb"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|-?\.\d+")


def stated_rewards(data: bytes) -> set[np.float32] | None:
    """Every number that a file writes anywhere, and the verdicts, in single precision.

    None for an archive that Python cannot unpack (damaged, or Zstandard) and for a damaged Parquet file: its rewards
    count as not checked.
    """
    if data.startswith(b"PAR1"):
        return numbers_in(data)
    texts = [data]
    if data.startswith(b"PK"):
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                texts = [archive.read(name) for name in archive.namelist()]
        except (zipfile.BadZipFile, zlib.error, NotImplementedError):
            return None
    with np.errstate(over="ignore"):
        stated = {np.float32(m) for text in texts for m in _NUMBER.findall(text)}
    return stated | {np.float32(v) for v in VERDICTS}


def invented_reward(traces: Traces, data: bytes, stated: set[np.float32]) -> float | None:
    """A reward that the file does not state, as a number, as a sum of channels that it states or of listed scores.

    In a table the reward must stand in a row of its trace.
    """
    channels = [e.amounts.tolist() for name, e in traces.evidence.items() if name.startswith("rewards.")]
    names = traces.traces["trace"].to_pylist()
    given = traces.reward[: len(names)].tolist()
    allowed = stated | {np.float32(sum(some)) for some in _sums(channels, stated)}
    allowed |= {np.float32(math.fsum(scores)) for scores in _listed_scores(data)}
    beside = rewards_beside(data) if "table" in traces.traces["format"].to_pylist() else None
    for name, reward in zip(names, given, strict=True):
        if math.isnan(reward):
            continue
        if np.float32(reward) not in allowed or (beside is not None and np.float32(reward) not in beside.get(name, ())):
            return float(reward)
    return None


def _sums(channels: list[list[float]], stated: set[np.float32]) -> Iterator[tuple[float, ...]]:
    """Channels that may make up a reward, which some formats define as the sum of its parts: each part is stated."""
    parts = sorted({amount for one in channels for amount in one if np.float32(amount) in stated})[:40]
    yield from itertools.combinations(parts, 2)
    yield from itertools.combinations(parts, 3)


def _listed_scores(data: bytes) -> Iterator[list[float]]:
    """Lists of numbers that rows of JSON state as their `score`."""
    for line in data.split(b"\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        scores = row.get("score") if isinstance(row, dict) else None
        if isinstance(scores, list) and all(isinstance(one, int | float) and math.isfinite(one) for one in scores):
            yield scores
