"""Checks of the invariants of an `EventGraph`, for graphs that no reader of this library built."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import (
    AGENT_FIELDS,
    EDGE_FIELDS,
    EVENT_FIELDS,
    TRACE_FIELDS,
    EdgeType,
    EventGraph,
    EventType,
)
from graphs.structure.forest import spawn_forest

__all__ = ["INVARIANTS", "InvariantError", "validate", "validate_ids"]

INVARIANTS: dict[str, str] = {
    "shape": "the arrays of an axis are one-dimensional and equally long",
    "dtype": "masks are bool, ids integers, time floating",
    "id-range": "every id, also in padding, lies inside the array it points into",
    "unknown-type": "event and edge types are those of `EventType` and `EdgeType`",
    "packed": "real rows come first on each axis",
    "padding": "padded rows have id 0, type 0 and mask False, and padded edges run 0 -> 0",
    "masked-reference": "real events, edges and agents refer to real rows only",
    "trace-order": "trace_ids do not decrease over real events, so that each trace is contiguous",
    "edge-order": "every edge runs forward in position",
    "edge-trace": "both ends of an edge lie in one trace",
    "agent-trace": "an event lies in the trace of its agent instance",
    "turn-agent": "a turn belongs to one agent instance",
    "parent-trace": "an agent instance and its parent lie in one trace",
    "parent-cycle": "the parents form a forest",
}
"""The invariants by name; `InvariantError.invariant` is such a name."""

POINTERS = {
    "trace_ids": ("event_mask", "trace_mask"),
    "agent_ids": ("event_mask", "agent_mask"),
    "senders": ("edge_mask", "event_mask"),
    "receivers": ("edge_mask", "event_mask"),
    "agent_parent": ("agent_mask", "agent_mask"),
    "agent_trace": ("agent_mask", "trace_mask"),
}
"""Fields that hold rows: the mask of their own axis and the mask of the axis they index."""

LABELS = {
    "turn_ids": "event_mask",
    "agent_name_ids": "agent_mask",
    "agent_role_ids": "agent_mask",
    "group_ids": "trace_mask",
    "cluster_ids": "trace_mask",
}
"""Fields whose ids are labels, less than the length of their own axis; the mask of that axis."""


class InvariantError(CreditError):
    """An `EventGraph` breaks an invariant; `invariant` is its name in `INVARIANTS`, `row` the first offending row."""

    def __init__(self, invariant: str, field: str, row: int | None, value_text: str) -> None:
        place = field if row is None else f"{field}[{row}]"
        super().__init__(f"{place} is {value_text}; expected that {INVARIANTS[invariant]} [{invariant}]")
        self.invariant, self.field, self.row = invariant, field, row


def validate(graph: EventGraph, *, packed: bool = True) -> None:
    """Check every invariant of an `EventGraph` and raise at the first that is broken; O(E + K + A + T), on the host.

    Args:
      graph: a batch, such as one that a trainer built from its own columns.
      packed: also require that real rows come first; False for what `graphs.structure.prefix.prefix` returns.

    Raises:
      InvariantError: names the invariant, the field and the first offending row.
    """
    arrays = {name: np.asarray(value) for name, value in vars(graph).items() if value is not None}
    _check_arrays(arrays)
    _check_ids(arrays)
    _check_padding(arrays, packed)
    _check_references(arrays)
    _check_events(arrays)
    _check_forest(graph, arrays)


def validate_ids(graph: EventGraph) -> None:
    """Check what makes kernels read and write outside a group or an array: the part of `validate` that costs little.

    These are shapes, dtypes, the ranges of ids, references to padding, and the order of events.

    Args:
      graph: a batch on the host or on a device; no tracer.

    Raises:
      InvariantError: names the invariant, the field and the first offending row.
    """
    arrays = {name: np.asarray(value) for name, value in vars(graph).items() if value is not None}
    _check_arrays(arrays)
    _check_ids(arrays)
    _check_references(arrays)
    _check_events(arrays)


def _first(broken: np.ndarray) -> int:
    return int(np.flatnonzero(broken)[0])


def _fail(invariant: str, field: str, broken: np.ndarray, values: np.ndarray) -> NoReturn:
    row = _first(broken)
    raise InvariantError(invariant, field, row, str(values[row]))


def _present(fields: tuple[str, ...], arrays: dict[str, np.ndarray]) -> tuple[str, ...]:
    """The fields of an axis, with the optional ones of traces or events where the graph has them."""
    optional = {"cluster_ids": "group_ids", "trainable_mask": "event_type", "joint_mask": "event_type"}
    return (*fields, *(name for name, first in optional.items() if first in fields and name in arrays))


def _check_arrays(arrays: dict[str, np.ndarray]) -> None:
    axes = {
        "event_mask": EVENT_FIELDS,
        "edge_mask": EDGE_FIELDS,
        "agent_mask": AGENT_FIELDS,
        "trace_mask": TRACE_FIELDS,
    }
    for mask, fields in axes.items():
        for name in (mask, *_present(fields, arrays)):
            shape = arrays[name].shape
            if len(shape) != 1 or shape != arrays[mask].shape:
                raise InvariantError("shape", name, None, f"of shape {shape}, with {mask} {arrays[mask].shape}")
    for name, values in arrays.items():
        kind = np.bool_ if name.endswith("_mask") else np.floating if name == "time" else np.integer
        if not np.issubdtype(values.dtype, kind):
            raise InvariantError("dtype", name, None, str(values.dtype))


def _check_ids(arrays: dict[str, np.ndarray]) -> None:
    rooms = {name: len(arrays[target]) for name, (_, target) in POINTERS.items()}
    rooms |= {name: len(arrays[axis]) for name, axis in LABELS.items() if name in arrays}
    for name, room in rooms.items():
        outside = (arrays[name] < 0) | (arrays[name] >= room)
        if outside.any():
            _fail("id-range", name, outside, arrays[name])
    for name, types in (("event_type", EventType), ("edge_type", EdgeType)):
        unknown = (arrays[name] < 0) | (arrays[name] >= len(types))  # codes are 0, 1, …
        if unknown.any():
            _fail("unknown-type", name, unknown, arrays[name])


def _check_padding(arrays: dict[str, np.ndarray], packed: bool) -> None:
    axes = {
        "event_mask": EVENT_FIELDS,
        "edge_mask": EDGE_FIELDS,
        "agent_mask": AGENT_FIELDS,
        "trace_mask": TRACE_FIELDS,
    }
    for mask, fields in axes.items():
        real = arrays[mask]
        if packed and (real[1:] & ~real[:-1]).any():
            _fail("packed", mask, np.concatenate([[False], real[1:] & ~real[:-1]]), real)
        for name in _present(fields, arrays):
            if name != "time":  # information, never used by a kernel; NaN in padding
                left = ~real & (arrays[name] != 0)
                if left.any():
                    _fail("padding", name, left, arrays[name])


def _check_references(arrays: dict[str, np.ndarray]) -> None:
    for name, (axis, target) in POINTERS.items():
        dangling = arrays[axis] & ~arrays[target][arrays[name]]
        if dangling.any():
            _fail("masked-reference", name, dangling, arrays[name])


def _check_events(arrays: dict[str, np.ndarray]) -> None:
    events, edges = arrays["event_mask"], arrays["edge_mask"]
    trace, agent = arrays["trace_ids"], arrays["agent_ids"]
    position = np.flatnonzero(events)
    falls = np.diff(trace[position]) < 0
    if falls.any():
        row = int(position[_first(falls) + 1])
        raise InvariantError("trace-order", "trace_ids", row, str(trace[row]))
    elsewhere = events & (arrays["agent_trace"][agent] != trace)
    if elsewhere.any():
        _fail("agent-trace", "agent_ids", elsewhere, agent)
    backward = edges & (arrays["senders"] >= arrays["receivers"])
    if backward.any():
        _fail("edge-order", "receivers", backward, arrays["receivers"])
    across = edges & (trace[arrays["senders"]] != trace[arrays["receivers"]])
    if across.any():
        _fail("edge-trace", "receivers", across, arrays["receivers"])
    owner = np.zeros(len(events), agent.dtype)
    owner[arrays["turn_ids"][position]] = agent[position]
    shared = events & (owner[arrays["turn_ids"]] != agent)
    if shared.any():
        _fail("turn-agent", "turn_ids", shared, arrays["turn_ids"])


def _check_forest(graph: EventGraph, arrays: dict[str, np.ndarray]) -> None:
    real, parent, trace = arrays["agent_mask"], arrays["agent_parent"], arrays["agent_trace"]
    elsewhere = real & (trace[parent] != trace)
    if elsewhere.any():
        _fail("parent-trace", "agent_parent", elsewhere, parent)
    try:
        spawn_forest(graph)
    except CreditError:
        raise InvariantError("parent-cycle", "agent_parent", _on_cycle(real, parent), "part of a cycle") from None


def _on_cycle(real: np.ndarray, parent: np.ndarray) -> int:
    """The first instance that is its own ancestor without being its own parent."""
    current = np.flatnonzero(real)
    while len(survivors := np.intersect1d(current, parent[current])) < len(current):
        current = survivors  # each round removes leaves; roots and cycles remain
    return int(current[parent[current] != current][0])
