"""Event graphs of agent teams as padded arrays, their readers and structure, and worlds with known credit.

Names load on first use: arrays and structure need JAX, and the readers in `graphs.logs` do not, so a process that
only reads logs starts without JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphs.errors import CapacityError, CreditError, MissingExtraError, NothingReadError, Problem, TraceError
    from graphs.event_graph import ACTION_TYPES, KINDS, EdgeType, EventGraph, EventType
    from graphs.levels import LEVELS, key_ids, level_ids, pair_ids, unit_ids
    from graphs.padding import Sizes, bucket, pad, pad_array, sizes, unpad

__all__ = [
    "ACTION_TYPES",
    "KINDS",
    "LEVELS",
    "CapacityError",
    "CreditError",
    "EdgeType",
    "EventGraph",
    "EventType",
    "MissingExtraError",
    "NothingReadError",
    "Problem",
    "Sizes",
    "TraceError",
    "bucket",
    "key_ids",
    "level_ids",
    "pad",
    "pad_array",
    "pair_ids",
    "sizes",
    "unit_ids",
    "unpad",
]

_HOME: dict[str, str] = {
    **dict.fromkeys(
        ("CapacityError", "CreditError", "MissingExtraError", "NothingReadError", "Problem", "TraceError"),
        "graphs.errors",
    ),
    **dict.fromkeys(("ACTION_TYPES", "KINDS", "EdgeType", "EventType"), "graphs.event_types"),
    "EventGraph": "graphs.event_graph",
    **dict.fromkeys(("LEVELS", "key_ids", "level_ids", "pair_ids", "unit_ids"), "graphs.levels"),
    **dict.fromkeys(("Sizes", "bucket", "pad", "pad_array", "sizes", "unpad"), "graphs.padding"),
}


def __getattr__(name: str) -> Any:
    """Load a name of `__all__` on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'graphs' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
