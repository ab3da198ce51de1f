"""Agent instances in the order of the pictures, and their labels there."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np

from graphs.structure.forest import Forest, spawn_forest
from graphs.text import printable

if TYPE_CHECKING:
    from graphs.traces.batch import Traces

__all__ = ["columns", "lanes"]


def lanes(traces: Traces, index: int, forest: Forest | None = None) -> tuple[list[int], list[str]]:
    """Agent instances from top to bottom, each root followed by what it spawned, and their labels.

    Args:
      traces: what was read.
      index: the row of a trace.
      forest: `spawn_forest(traces.graph)`, where the caller has it.
    """
    graph = traces.graph
    forest = spawn_forest(graph) if forest is None else forest
    here = np.asarray(graph.agent_mask) & (np.asarray(graph.agent_trace) == index)
    stack = np.flatnonzero(forest.is_root & here)[::-1].tolist()
    order: list[int] = []
    while stack:
        order.append(stack.pop())
        stack.extend(forest.children(order[-1])[::-1].tolist())
    shown = traces.agents.take(order)
    labels = []
    for agent, instance, name, role in zip(
        order, *(shown[c].to_pylist() for c in ("agent", "name", "role")), strict=True
    ):
        text = printable(name, 24) if role == name else f"{printable(name, 18)} ({printable(role, 14)})"
        text = text if instance == name else f"{text} {printable(instance, 10)}"
        labels.append("   " * min(int(forest.depth[agent]), 6) + text)
    return order, labels


def columns(text: str) -> int:
    """Width of text in characters, East Asian ones counting two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
