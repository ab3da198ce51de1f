"""Frozen agents: policies that are not trained, such as judges and fixed sub-agents."""

from __future__ import annotations

import dataclasses

import numpy as np

from graphs.errors import CreditError, expect
from graphs.event_graph import Array, EventGraph

__all__ = ["with_trainable"]


def with_trainable(graph: EventGraph, trainable: Array) -> EventGraph:
    """The graph with `trainable_mask` from the log's `trainable`; on the host.

    Args:
      graph: the batch, padded or not.
      trainable: float [E], 0 at actions of frozen agents; any other value, NaN included, marks a trained agent.

    Returns:
      The graph with `trainable_mask` bool [E], False in padding; None where no action is frozen.

    Raises:
      CreditError: `trainable` has not one entry for each event.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a", "a", "b", "b"], agent=["solver", "judge"] * 2,
      ...     reward=[1.0, 1.0, 0.0, 0.0], evidence={"trainable": [1, 0, 1, 0]})
      >>> rows.gather(credit.rloo(graph, reward).advantage).tolist()
      [1.0, 0.0, -1.0, 0.0]
    """
    expect("graph", graph, EventGraph, "an EventGraph, such as traces.graph")
    frozen = np.asarray(trainable) == 0
    if frozen.shape != (graph.num_events,):
        raise CreditError(f"trainable has shape {frozen.shape}; expected ({graph.num_events},), one for each event")
    real = np.asarray(graph.event_mask)
    some = bool((frozen & real & np.asarray(graph.action_mask)).any())
    return dataclasses.replace(graph, trainable_mask=(real & ~frozen) if some else None)
