"""Dr. MAS advantages by dictionaries and loops over rows, as trainers write them, for `benchmarks/columns.py`.

Kept in a file of its own so that it can be reviewed: nothing in it is slower than the plain way needs to be.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

__all__ = ["plain", "tight"]

EPS = 1e-6


def plain(task: Sequence[str], agent: Sequence[str], reward: Sequence[float]) -> np.ndarray:
    """(R − mean) / (std + eps) over the rows of a task and agent name, ddof 1; NumPy for each key.

    The form of the trainers' own functions: one loop that fills a dictionary of lists, one over its keys, one over the
    rows. A key of one row keeps its reward, as the released code of Dr. MAS does.
    """
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for i in range(len(task)):
        scores[task[i], agent[i]].append(reward[i])
    mean, std = {}, {}
    for key, found in scores.items():
        mean[key] = np.mean(found) if len(found) > 1 else 0.0
        std[key] = np.std(found, ddof=1) if len(found) > 1 else 1.0
    out = np.empty(len(task), np.float32)
    for i in range(len(task)):
        key = task[i], agent[i]
        out[i] = (reward[i] - mean[key]) / (std[key] + EPS)
    return out


def tight(task: Sequence[str], agent: Sequence[str], reward: Sequence[float]) -> np.ndarray:
    """The same without NumPy for each key: as fast as a loop in Python gets, for comparison."""
    keys = list(zip(task, agent, strict=True))
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key, amount in zip(keys, reward, strict=True):
        scores[key].append(amount)
    moments: dict[tuple[str, str], tuple[float, float]] = {}
    for key, found in scores.items():
        n = len(found)
        mean = sum(found) / n if n > 1 else 0.0
        spread = math.sqrt(sum((x - mean) ** 2 for x in found) / (n - 1)) if n > 1 else 1.0
        moments[key] = mean, spread + EPS
    return np.array([(x - moments[key][0]) / moments[key][1] for key, x in zip(keys, reward, strict=True)], np.float32)
