"""A log of siblings that a behaviour policy drew, with the probabilities of another policy."""

from __future__ import annotations

import functools

import numpy as np

from graphs import EventGraph
from graphs.worlds.siblings import overlapping_world

CONTEXTS, DRAWS = 60, 80
Log = tuple[EventGraph, np.ndarray, dict[str, np.ndarray]]


@functools.cache
def small_log() -> Log:
    """Contexts with few draws of many alternatives: some are drawn once only, some never, though they could be."""
    graph, reward, given = overlapping_world(2).sample(np.random.default_rng(0), CONTEXTS, DRAWS, critic=True)
    return graph, reward, {**given, "target_support": np.ones(CONTEXTS * DRAWS, np.float32)}


def evidence(log: Log, critic: bool) -> dict[str, np.ndarray]:
    return {k: v for k, v in log[2].items() if critic or k not in ("q_value", "target_value")}


LONG = 300
"""Draws of a context in worlds of known value."""
