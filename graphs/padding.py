"""Padding to a few sizes, and its inverse. It runs on the host, because the result's shape depends on the data.

A compiled function is compiled once per shape, so ragged batches are padded to buckets. `bucket` derives all four sizes
from the number of events: E is a power of two, and agents, traces and edges follow from E unless they do not fit. Four
independent buckets would give many more shapes, and so more compilations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphs.errors import CapacityError, expect
from graphs.event_graph import AGENT_FIELDS, EDGE_FIELDS, EVENT_FIELDS, TRACE_FIELDS, Array, EventGraph

__all__ = ["Sizes", "bucket", "pad", "pad_array", "sizes", "unpad"]

SMALLEST = 128  # below this, padding costs less than one more compilation


class Sizes(NamedTuple):
    """Lengths of the four axes of an `EventGraph`."""

    events: int
    edges: int
    agents: int
    traces: int


_ALIGNMENT = 64  # bytes of a cache line


def sizes(graph: EventGraph) -> Sizes:
    """Numbers of real events, edges, agents and traces.

    Args:
      graph: padded or not.
    """
    expect("graph", graph, EventGraph, "an EventGraph, such as traces.graph")
    return Sizes(
        *(
            int(np.count_nonzero(np.asarray(m)))
            for m in (graph.event_mask, graph.edge_mask, graph.agent_mask, graph.trace_mask)
        )
    )


def bucket(real: Sizes) -> Sizes:
    """The padded sizes for a batch: E is the next power of two, at least 128, and the other sizes follow from E.

    With edges (logs of teams): K = 2E, A = E/2, T = E/4, or A = T = E where either does not fit. Without edges (rows of
    a trainer, up to one agent and one trace a row): K = 8, A = T = E. A size that is still too small becomes the next
    power of two. From 128 events on, padding is less than half of E.

    Args:
      real: numbers without padding.
    """
    events = max(SMALLEST, _power_of_two(real.events))
    edges = 8 if real.edges == 0 else max(2 * events, _power_of_two(real.edges))
    if real.edges > 0 and real.agents <= events // 2 and real.traces <= events // 4:
        return Sizes(events, edges, events // 2, events // 4)
    agents, traces = (max(events, _power_of_two(need)) for need in (real.agents, real.traces))
    return Sizes(events, edges, agents, traces)


def pad(graph: EventGraph, to: Sizes | None = None) -> EventGraph:
    """The same graph with arrays of the sizes `to`, by default `bucket` of its real sizes; NumPy arrays.

    Raises:
      CapacityError: the content does not fit; the message names the axis and the size needed. Nothing is truncated.
    """
    real = sizes(graph)
    to = bucket(real) if to is None else to
    for axis, need, room in zip(Sizes._fields, real, to, strict=True):
        if need > room:
            raise CapacityError(axis=axis, need=need, room=room)
    axes = (EVENT_FIELDS, EDGE_FIELDS, AGENT_FIELDS, TRACE_FIELDS)
    values = {
        field: (np.asarray(getattr(graph, field))[:need], room)
        for fields, need, room in zip(axes, real, to, strict=True)
        for field in fields
    }
    arrays = _zeros({field: (room, column.dtype) for field, (column, room) in values.items()})
    for field, (column, _) in values.items():
        arrays[field][: len(column)] = column
    arrays["time"][real.events :] = np.nan
    for name in ("trainable_mask", "joint_mask"):
        if getattr(graph, name) is not None:
            arrays[name] = pad_array(np.asarray(getattr(graph, name))[: real.events], to.events)
    if graph.cluster_ids is not None:
        arrays["cluster_ids"] = pad_array(np.asarray(graph.cluster_ids)[: real.traces], to.traces)
    return EventGraph(**arrays)


def _zeros(wanted: dict[str, tuple[int, np.dtype]]) -> dict[str, np.ndarray]:
    """Arrays [length] of zeros in one block: one large allocation is faster than several small ones."""
    starts, size = [], 0
    for length, dtype in wanted.values():
        starts.append(size)
        size += -(-length * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    block = np.zeros(size, np.uint8)
    return {
        name: block[start : start + length * dtype.itemsize].view(dtype)
        for start, (name, (length, dtype)) in zip(starts, wanted.items(), strict=True)
    }


def unpad(graph: EventGraph) -> EventGraph:
    """The graph without padding; NumPy arrays of the real sizes."""
    return pad(graph, sizes(graph))


def pad_array(values: Array, length: int, fill: float | bool = 0) -> np.ndarray:
    """A copy of `values` [M, ...] as [length, ...], filled up with `fill`; the dtype is kept."""
    values = np.asarray(values)
    out = np.zeros((length, *values.shape[1:]), values.dtype)  # the system allocates zeroed pages lazily
    out[: len(values)] = values
    if fill:
        out[len(values) :] = fill
    return out


def _power_of_two(n: int) -> int:
    return 1 << max(0, int(n) - 1).bit_length()
